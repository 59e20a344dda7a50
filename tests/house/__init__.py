"""What the end-to-end tests share: inputs, services, snapshots of trees, reports.

Only the standard library is used, so the tests run with any Python from 3.11 on.
"""
