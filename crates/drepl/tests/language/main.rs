//! The language as those who write definitions meet it.

mod editor;
mod extensions;
mod faults;
mod format;
mod manual;
mod paper;
mod random;
mod support;
