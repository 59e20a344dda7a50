//! The language as those who write definitions meet it.

mod extensions;
mod faults;
mod format;
mod paper;
mod random;
mod support;
