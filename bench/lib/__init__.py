"""What every area of the bench shares: measuring, services, alternatives, reports."""
