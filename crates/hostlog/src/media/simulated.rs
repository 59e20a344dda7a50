//! A simulated disk.
