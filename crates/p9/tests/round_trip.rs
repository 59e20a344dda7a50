//! What is encoded decodes to itself, and the frame around it is true.

mod arbitrary;

use arbitrary::{REPLIES, REQUESTS, parts};
use p9::frame::{HEADER_LEN, Header};
use p9::{DirEntries, DirEntry, LegacyStat, Names, Reply, Request, Tag};
use proptest::collection::vec;
use proptest::prelude::*;

/// Splits an encoded message, with its header checked.
fn parse(bytes: &[u8]) -> (Header, &[u8]) {
    let (head, body) = bytes.split_first_chunk::<HEADER_LEN>().unwrap();
    let header = Header::parse(head, u32::MAX).unwrap();
    assert_eq!(header.body_len(), body.len(), "the header counts its body");
    (header, body)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_comes_back(parts in parts()) {
        for kind in REQUESTS {
            let request = parts.request(kind).unwrap();
            prop_assert_eq!(request.kind(), kind);
            // Encoding appends: what was there stays.
            let mut bytes = vec![0xaa; 3];
            request.encode(parts.tag(), &mut bytes);
            prop_assert_eq!(&bytes[..3], [0xaa; 3]);
            let (header, body) = parse(&bytes[3..]);
            prop_assert_eq!((header.kind, header.tag), (kind, parts.tag()));
            prop_assert_eq!(Request::decode(kind, body), Ok(request));
        }
    }

    #[test]
    fn every_reply_comes_back(parts in parts()) {
        for kind in REPLIES {
            let reply = parts.reply(kind).unwrap();
            prop_assert_eq!(reply.kind(), kind);
            let mut bytes = Vec::new();
            reply.encode(parts.tag(), &mut bytes);
            let (header, body) = parse(&bytes);
            prop_assert_eq!((header.kind, header.tag), (kind, parts.tag()));
            prop_assert_eq!(Reply::decode(kind, body), Ok(reply));
        }
    }

    /// What goes out by `writev`, head and payload apart, is the same as in one piece.
    #[test]
    fn head_and_tail_are_the_whole(parts in parts()) {
        let (mut whole, mut head) = (Vec::new(), Vec::new());
        for kind in REPLIES {
            whole.clear();
            head.clear();
            let reply = parts.reply(kind).unwrap();
            reply.encode(parts.tag(), &mut whole);
            let tail = reply.encode_head(parts.tag(), &mut head);
            prop_assert_eq!(tail.is_empty(), !matches!(reply,
                Reply::Read { data } | Reply::Readdir { data } if !data.0.is_empty()));
            head.extend_from_slice(tail);
            prop_assert_eq!(&head, &whole);
        }
    }

    #[test]
    fn directory_entries_come_back_in_order(
        names in vec(vec(any::<u8>(), 0..300), 0..40),
        parts in parts(),
        kind: u8,
    ) {
        let entry = |n: usize| {
            DirEntry { qid: parts.qid(n % 20), offset: n as u64, kind, name: &names[n] }
        };
        let mut data = Vec::new();
        for n in 0..names.len() {
            let before = data.len();
            entry(n).put(&mut data);
            prop_assert_eq!(data.len() - before, entry(n).encoded_len());
        }
        let back: Vec<DirEntry<'_>> = DirEntries::new(&data).map(Result::unwrap).collect();
        prop_assert_eq!(back, (0..names.len()).map(entry).collect::<Vec<_>>());
    }

    /// The entries of a base directory read stand one behind the other.
    #[test]
    fn descriptions_come_back_one_behind_the_other(all in vec(parts(), 1..5)) {
        let stat = |n: usize| match all[n].request(126) {
            Some(Request::Wstat { stat, .. }) => stat,
            other => panic!("126 is Twstat, not {other:?}"),
        };
        let mut bytes = Vec::new();
        for n in 0..all.len() {
            stat(n).put(&mut bytes);
        }
        let mut rest = &bytes[..];
        for n in 0..all.len() {
            let (back, len) = LegacyStat::parse(rest).unwrap();
            prop_assert_eq!(back, stat(n));
            rest = &rest[len..];
        }
        prop_assert!(rest.is_empty());
    }
}

#[test]
fn the_tables_of_types_are_complete() {
    for kind in 0..=u8::MAX {
        let unknown = |error| matches!(error, p9::WireError::UnknownType { kind: k } if k == kind);
        let request = Request::decode(kind, &[]).is_err_and(unknown);
        assert_eq!(request, !REQUESTS.contains(&kind), "request {kind}");
        let reply = Reply::decode(kind, &[]).is_err_and(unknown);
        assert_eq!(reply, !REPLIES.contains(&kind), "reply {kind}");
    }
    // Every request is answered by the type behind it.
    assert!(REQUESTS.iter().all(|kind| REPLIES.contains(&(kind + 1))));
}

#[test]
fn a_walk_takes_sixteen_elements_at_most() {
    let names = vec![&b"x"[..]; 20];
    assert_eq!(Names::collect(names).as_slice().len(), 16);
    let mut body = vec![1, 0, 0, 0, 2, 0, 0, 0, 17, 0];
    body.extend([1, 0, b'x'].repeat(17));
    let refused = Request::decode(110, &body);
    assert_eq!(refused, Err(p9::WireError::TooManyNames { count: 17 }));
}

#[test]
fn a_header_is_checked_against_the_message_size() {
    let header = Header { size: 4096, kind: 117, tag: Tag(3) };
    let bytes = header.to_bytes();
    assert_eq!(Header::parse(&bytes, 4096), Ok(header));
    assert!(Header::parse(&bytes, 4095).is_err());
    for size in 0..7 {
        let lying = Header { size, ..header }.to_bytes();
        let refused = Header::parse(&lying, 4096);
        assert_eq!(refused, Err(p9::WireError::Size { size, msize: 4096 }));
    }
    let empty = Header { size: 7, ..header };
    assert_eq!(Header::parse(&empty.to_bytes(), 4096).unwrap().body_len(), 0);
}
