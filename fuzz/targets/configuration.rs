//! `sluice.toml`: no text panics.
#![no_main]

use std::path::Path;

use address::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        if let Err(error) = Config::parse(text, Path::new("/somewhere/sluice.toml")) {
            assert!(!error.to_string().is_empty());
        }
    }
});
