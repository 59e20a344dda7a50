//! The program as users run it: every test starts the real binary.

mod commands;
mod configuration;
mod copying;
mod couplings;
mod files;
mod launching;
mod layouts;
mod logs;
mod nodes;
mod serving;
mod sieving;
mod support;
