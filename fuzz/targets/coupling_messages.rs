//! What nodes of a coupling tell each other: no bytes panic, and what is understood is written again as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use matching::{Message, Recording};

fuzz_target!(|data: &[u8]| {
    if let Ok((message, rest)) = Message::decode(data) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        // Steps of fewer than two indices are all the same, so that bytes may differ; what they mean does not.
        assert_eq!(Message::decode(&bytes), Ok((message, &[][..])));
        assert!(rest.len() < data.len());
    }
    if let Ok(recording) = Recording::from_bytes(data) {
        assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
    }
});
