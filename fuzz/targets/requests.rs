//! What a client may send: no frame panics, and what decodes encodes to a message of the same meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p9::frame::{HEADER_LEN, Header};
use p9::{LegacyStat, Request};

fuzz_target!(|data: &[u8]| {
    let Some((head, body)) = data.split_first_chunk::<HEADER_LEN>() else {
        return;
    };
    let Ok(header) = Header::parse(head, 1 << 20) else {
        return;
    };
    let body = &body[..header.body_len().min(body.len())];
    let _ = LegacyStat::parse(body);
    if let Ok(request) = Request::decode(header.kind, body) {
        let mut again = Vec::new();
        request.encode(header.tag, &mut again);
        let (head, body) = again.split_first_chunk::<HEADER_LEN>().expect("a whole header");
        let header_again = Header::parse(head, u32::MAX).expect("our own frame");
        assert_eq!(header_again.tag, header.tag);
        assert_eq!(header_again.body_len(), body.len());
        assert_eq!(Request::decode(header_again.kind, body), Ok(request));
    }
});
