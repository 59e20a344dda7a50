//! What a server may send: no frame panics, directory listings included, and what decodes encodes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p9::frame::{HEADER_LEN, Header};
use p9::{DirEntries, Reply};

fuzz_target!(|data: &[u8]| {
    let Some((head, body)) = data.split_first_chunk::<HEADER_LEN>() else {
        return;
    };
    // A listing is parsed from the data of a reply, whatever a server put there. It must end.
    for entry in DirEntries::new(body).take(body.len() + 1) {
        if entry.is_err() {
            break;
        }
    }
    let Ok(header) = Header::parse(head, 1 << 20) else {
        return;
    };
    let body = &body[..header.body_len().min(body.len())];
    if let Ok(reply) = Reply::decode(header.kind, body) {
        let mut again = Vec::new();
        reply.encode(header.tag, &mut again);
        let (head, body) = again.split_first_chunk::<HEADER_LEN>().expect("a whole header");
        let header_again = Header::parse(head, u32::MAX).expect("our own frame");
        assert_eq!(header_again.body_len(), body.len());
        assert_eq!(Reply::decode(header_again.kind, body), Ok(reply));
    }
});
