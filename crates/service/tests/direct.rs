//! A service without sockets.

mod common;

use std::fs;
use std::sync::Arc;

use common::pattern;
use p9::frame::{HEADER_LEN, Header};
use p9::{Data, Errno, Fid, Names, OpenFlags, Optional, Reply, Request, Tag};
use service::Direct;

/// Calls and appends the answer to what `reply` holds; gives where it begins.
fn call(direct: &Direct, request: &Request<'_>, reply: &mut Vec<u8>) -> usize {
    let mut frame = Vec::new();
    request.encode(Tag(5), &mut frame);
    let start = reply.len();
    direct.exchange(&frame, reply);
    start
}

fn decode(frame: &[u8]) -> Reply<'_> {
    let header = Header::parse(frame.first_chunk().unwrap(), u32::MAX).unwrap();
    assert_eq!((header.size as usize, header.tag), (frame.len(), Tag(5)));
    Reply::decode(header.kind, &frame[HEADER_LEN..]).unwrap()
}

#[test]
fn requests_are_function_calls() {
    let directory = tempfile::tempdir().unwrap();
    let content = pattern(1 << 20);
    fs::write(directory.path().join("f"), &content).unwrap();
    let direct = Direct::new(Arc::new(store::fs::FsStore::new(directory.path()).unwrap()));
    let mut reply = Vec::new();
    for request in [
        Request::Version { msize: 2 << 20, version: b"9P2000.L" },
        Request::Attach {
            fid: Fid(0),
            afid: Fid::NONE,
            uname: b"",
            aname: b"",
            uid: Optional(None),
        },
        Request::Walk { fid: Fid(0), new_fid: Fid(1), names: Names::collect([&b"f"[..]]) },
        Request::Lopen { fid: Fid(1), flags: OpenFlags::READ_WRITE },
    ] {
        let start = call(&direct, &request, &mut reply);
        assert_eq!(reply[start + 4], request.kind() + 1, "{:?}", decode(&reply[start..]));
    }
    // Behind what the buffer holds already, and in a buffer of exactly the right size.
    for mut reply in [reply, Vec::with_capacity((1 << 20) + 11), Vec::new()] {
        let read = Request::Read { fid: Fid(1), offset: 0, count: 1 << 20 };
        let start = call(&direct, &read, &mut reply);
        assert_eq!(decode(&reply[start..]), Reply::Read { data: Data(&content) });
    }
    let mut reply = Vec::new();
    let tail = Request::Read { fid: Fid(1), offset: (1 << 20) - 7, count: 1 << 20 };
    call(&direct, &tail, &mut reply);
    assert_eq!(decode(&reply), Reply::Read { data: Data(&content[(1 << 20) - 7..]) });
    reply.clear();
    call(&direct, &Request::Clunk { fid: Fid(9) }, &mut reply);
    assert_eq!(decode(&reply), Reply::Lerror { errno: Errno::EBADF });
    assert_eq!(direct.session().fid_count(), 2);
}
