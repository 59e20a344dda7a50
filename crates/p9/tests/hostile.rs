//! Bytes that no honest peer sends: decoding ends in a value or an error, never in a panic, and
//! what it borrows lies within what it was given.

mod arbitrary;

use std::ops::Range;

use arbitrary::{Parts, REPLIES, REQUESTS, parts};
use p9::frame::HEADER_LEN;
use p9::{Data, DirEntries, LegacyStat, Reply, Request, WireError};
use proptest::collection::vec;
use proptest::prelude::*;

/// The bodies of one message of each type.
fn bodies(parts: &Parts) -> impl Iterator<Item = (u8, Vec<u8>)> + '_ {
    let mut bytes = Vec::new();
    REQUESTS.iter().chain(&REPLIES).map(move |kind| {
        bytes.clear();
        match parts.request(*kind) {
            Some(request) => request.encode(parts.tag(), &mut bytes),
            None => parts.reply(*kind).unwrap().encode(parts.tag(), &mut bytes),
        }
        (*kind, bytes[HEADER_LEN..].to_vec())
    })
}

fn within(part: &[u8], whole: &[u8]) -> bool {
    let (Range { start, end }, of) = (part.as_ptr_range(), whole.as_ptr_range());
    part.is_empty() || (of.start <= start && end <= of.end)
}

/// Decodes as either direction; what is borrowed must be borrowed from `body`, and what decodes
/// must encode to something that decodes alike.
fn decode(kind: u8, body: &[u8]) -> Result<(), WireError> {
    if kind.is_multiple_of(2) {
        let request = Request::decode(kind, body)?;
        match request {
            Request::Write { data: Data(data), .. } => assert!(within(data, body)),
            Request::Walk { names, .. } => {
                assert!(names.as_slice().iter().all(|name| within(name, body)));
            }
            Request::Wstat { stat, .. } => {
                assert!([stat.name, stat.uid, stat.gid, stat.muid].iter().all(|n| within(n, body)));
            }
            Request::Renameat { old_name, new_name, .. } => {
                assert!(within(old_name, body) && within(new_name, body));
            }
            _ => {}
        }
        let mut again = Vec::new();
        request.encode(p9::Tag(1), &mut again);
        assert_eq!(Request::decode(kind, &again[HEADER_LEN..]), Ok(request));
    } else {
        let reply = Reply::decode(kind, body)?;
        if let Reply::Read { data: Data(data) } | Reply::Readdir { data: Data(data) } = reply {
            assert!(within(data, body));
        }
        let mut again = Vec::new();
        reply.encode(p9::Tag(1), &mut again);
        assert_eq!(Reply::decode(kind, &again[HEADER_LEN..]), Ok(reply));
    }
    Ok(())
}

/// Types whose last field may be left out: cutting it off leaves a whole message.
const OPTIONAL_END: [u8; 3] = [50, 102, 104];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_panic(kind: u8, body in vec(any::<u8>(), 0..300)) {
        let _ = decode(kind, &body);
        let _ = LegacyStat::parse(&body);
        // An iterator over entries ends, and after an error at once.
        let entries: Vec<_> = DirEntries::new(&body).take(body.len() + 1).collect();
        prop_assert!(entries.len() <= body.len());
        prop_assert!(entries.iter().rev().skip(1).all(Result::is_ok));
    }

    #[test]
    fn messages_cut_short_are_refused(parts in parts(), cut in 1..40_usize) {
        for (kind, body) in bodies(&parts) {
            let short = &body[..body.len().saturating_sub(cut)];
            if short.len() == body.len() || OPTIONAL_END.contains(&kind) {
                let _ = decode(kind, short);
                continue;
            }
            let refused = decode(kind, short);
            prop_assert!(refused.is_err(), "type {} cut by {}: {:?}", kind, cut, refused);
        }
    }

    #[test]
    fn messages_with_something_behind_are_refused(parts in parts(), extra in vec(any::<u8>(), 1..4)) {
        for (kind, mut body) in bodies(&parts) {
            body.extend_from_slice(&extra);
            // Fewer than four bytes are no optional number either.
            prop_assert!(decode(kind, &body).is_err(), "type {}", kind);
        }
    }

    #[test]
    fn messages_with_changed_bytes_do_not_panic(
        parts in parts(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        for (kind, mut body) in bodies(&parts) {
            for (at, value) in &changes {
                if !body.is_empty() {
                    let at = at.index(body.len());
                    body[at] = *value;
                }
            }
            let _ = decode(kind, &body);
        }
    }

    /// Every length field in turn says the most that it can.
    #[test]
    fn lengths_that_lie_do_not_panic(parts in parts()) {
        for (kind, body) in bodies(&parts) {
            for at in 0..body.len() {
                for width in [2, 4] {
                    let mut lying = body.clone();
                    let end = (at + width).min(lying.len());
                    lying[at..end].fill(0xff);
                    let _ = decode(kind, &lying);
                }
            }
        }
    }
}

#[test]
fn a_description_must_fill_the_length_that_it_states() {
    let body = |outer: u16, inner: u16, padding: usize| {
        let mut body = vec![1, 0, 0, 0];
        body.extend(outer.to_le_bytes());
        body.extend(inner.to_le_bytes());
        // Fixed fields, and four empty names.
        body.extend([0; 39 + 8]);
        body.extend(vec![0; padding]);
        body
    };
    assert!(decode(126, &body(49, 47, 0)).is_ok());
    let refused = decode(126, &body(51, 49, 2));
    assert_eq!(refused, Err(WireError::StatLength { claimed: 49, held: 47 }));
    let refused = decode(126, &body(51, 47, 2));
    assert_eq!(refused, Err(WireError::StatLength { claimed: 51, held: 49 }));
    assert!(decode(126, &body(49, 48, 0)).is_err());
    assert!(decode(126, &body(48, 47, 0)).is_err());
}

#[test]
fn an_errno_that_is_none_becomes_eio() {
    for number in [0_u32, 4096, 0x8000_0000, u32::MAX] {
        let body = number.to_le_bytes();
        assert_eq!(Reply::decode(7, &body).unwrap(), Reply::Lerror { errno: p9::Errno::EIO });
    }
    let reply = Reply::decode(7, &[2, 0, 0, 0]).unwrap();
    assert_eq!(reply, Reply::Lerror { errno: p9::Errno::ENOENT });
}
