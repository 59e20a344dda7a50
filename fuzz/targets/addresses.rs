//! Addresses, routes and settings: no text panics, and what parses prints as something that parses to the same.
#![no_main]

use address::{Endpoint, Route, Settings, StorePlace, StoreSpec, Uri, clean_absolute, detect, parse_size_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(uri) = Uri::parse(data) {
        assert_eq!(Uri::parse(&uri.to_bytes()).expect("our own address"), uri);
        let _ = uri.join(data).to_string();
    }
    if let Some(found) = detect(data) {
        let _ = found.uri(data);
    }
    let _ = Endpoint::parse_listen(data);
    let _ = Route::parse(data);
    let _ = Settings::from_env(data);
    let _ = StorePlace::parse(data);
    let _ = StoreSpec::parse(data, false);
    let cleaned = clean_absolute(data);
    assert_eq!(clean_absolute(&cleaned), cleaned);
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = parse_size_bytes(text);
    }
});
