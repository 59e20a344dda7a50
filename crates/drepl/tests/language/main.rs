//! The language as those who write definitions meet it.

mod faults;
mod paper;
mod support;
