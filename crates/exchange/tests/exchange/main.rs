//! Ranks as threads, each with its place in the meeting directory, against arrays in one memory.

mod failure;
mod flow;
mod house;
mod processes;
mod random;
