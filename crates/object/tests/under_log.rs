//! A bucket as what lies under a log: files that are replaced and renamed are the same files for who has them open.

#[path = "support/place.rs"]
mod place;
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;

use object::{Options, UnderLog};
use p9::{Errno, OpenFlags};
use place::{Bucket, errno, pattern};
use server::Fault;
use store::{Next, Node, OpenNode, Store};

const MIB: usize = 1 << 20;
const READ: OpenFlags = OpenFlags::empty();

fn under(bucket: &Bucket, options: Options) -> UnderLog {
    bucket.store_of("bucket", "base", options).under_log().unwrap()
}

fn at(store: &UnderLog, name: &str) -> Arc<dyn Node> {
    store.root().unwrap().walk(&[name.as_bytes()]).unwrap().end.unwrap()
}

fn all(open: &dyn OpenNode, len: usize) -> store::Result<Vec<u8>> {
    let mut buffer = vec![0; len];
    let got = open.read_at(&mut buffer, 0)?;
    buffer.truncate(got);
    Ok(buffer)
}

/// Makes the next version: the parts that are given are sent, the others taken over.
fn replace(store: &UnderLog, name: &str, is_new: bool, content: &[u8], sent: &[usize]) {
    let wholes = store.wholes().unwrap();
    let former = wholes.version(name.as_bytes()).unwrap().filter(|_| !is_new);
    let next = Next { former, is_new, size: content.len() as u64 };
    let replacement = wholes.replace(name.as_bytes(), &next).unwrap();
    let part_bytes = wholes.part_bytes(next.size) as usize;
    let parts: Vec<&[u8]> =
        if content.is_empty() { vec![content] } else { content.chunks(part_bytes).collect() };
    for (index, part) in parts.iter().enumerate() {
        if sent.contains(&index) || !replacement.take_over(index).unwrap() {
            replacement.send(index, part.to_vec()).unwrap();
        }
    }
    let version = replacement.finish().unwrap();
    assert_eq!(version.size, next.size);
    assert_eq!(wholes.version(name.as_bytes()).unwrap(), Some(version));
}

#[test]
fn who_reads_a_file_that_is_replaced_reads_its_next_version() {
    let bucket = Bucket::new();
    let store = under(&bucket, bucket.options());
    let mut content = pattern(20 * MIB + 5);
    replace(&store, "f", true, &content, &[0, 1, 2]);
    let (node, number) = (at(&store, "f"), at(&store, "f").qid().path);
    let open = node.open(READ).unwrap();
    assert!(all(&*open, content.len() + 9).unwrap() == content);
    content[9 * MIB] ^= 1;
    bucket.server.control.seen();
    replace(&store, "f", false, &content, &[1]);
    // The parts that are as they were do not travel.
    let seen = bucket.server.control.seen();
    let parts = seen.iter().filter(|request| request.contains("partNumber=")).count();
    assert_eq!(parts, 3, "{seen:?}");
    assert!(all(&*open, content.len()).unwrap() == content);
    assert_eq!(bucket.file("base/f").unwrap(), content);
    assert_eq!((node.qid().path, at(&store, "f").qid().path), (number, number));
    replace(&store, "f", false, b"", &[0]);
    assert_eq!(all(&*open, 9).unwrap(), b"");
}

#[test]
fn a_file_that_is_renamed_stays_the_same_for_who_has_it() {
    let bucket = Bucket::new();
    // By one request, and part by part.
    for copy_bytes_max in [u64::MAX, 1] {
        let options = Options { copy_bytes_max, ..bucket.options() };
        let store = under(&bucket, options);
        let content = pattern(9 * MIB);
        replace(&store, "a", true, &content, &[0, 1]);
        replace(&store, "b", true, b"replaced", &[0]);
        let root = store.root().unwrap();
        let (moved, replaced) = (at(&store, "a"), at(&store, "b"));
        let (open, gone) = (moved.open(READ).unwrap(), replaced.open(READ).unwrap());
        root.rename(b"a", &*root, b"b").unwrap();
        assert!(all(&*open, content.len()).unwrap() == content);
        assert_eq!(at(&store, "b").qid().path, moved.qid().path);
        assert_eq!(bucket.file("base/a"), None);
        assert_eq!(bucket.file("base/b").unwrap(), content);
        // What was there is another file, of which the bucket has nothing any more.
        assert_eq!(errno(all(&*gone, 9)), Errno::ESTALE);
        // And so is what comes to the old name.
        replace(&store, "a", true, b"new", &[0]);
        assert_ne!(at(&store, "a").qid().path, moved.qid().path);
        assert!(all(&*open, content.len()).unwrap() == content);
        root.remove(b"a", false).unwrap();
        root.remove(b"b", false).unwrap();
    }
}

#[test]
fn a_new_file_is_none_of_who_has_the_former_open() {
    let bucket = Bucket::new();
    let store = under(&bucket, bucket.options());
    replace(&store, "f", true, b"former", &[0]);
    let former = at(&store, "f");
    let open = former.open(READ).unwrap();
    replace(&store, "f", true, b"another", &[0]);
    assert_eq!(errno(all(&*open, 9)), Errno::ESTALE);
    assert_ne!(at(&store, "f").qid().path, former.qid().path);
}

#[test]
fn where_the_service_does_not_copy_parts_they_are_sent() {
    let bucket = Bucket::new();
    let store = under(&bucket, bucket.options());
    let mut content = pattern(20 * MIB);
    replace(&store, "f", true, &content, &[0, 1, 2]);
    content[0] ^= 1;
    let mut refused = false;
    let mut begun = false;
    // The first part is sent, and the first that is to be copied refused.
    bucket.server.control.judge(move |_, uri| {
        let is_first_copy = begun && !refused && uri.contains("partNumber=2");
        begun |= uri.contains("partNumber=1");
        refused |= is_first_copy;
        is_first_copy.then_some(Fault::Expired)
    });
    replace(&store, "f", false, &content, &[0]);
    assert!(bucket.file("base/f").unwrap() == content);
}

#[test]
fn an_upload_that_nobody_finished_can_be_abandoned() {
    let bucket = Bucket::new();
    let store = under(&bucket, bucket.options());
    let wholes = store.wholes().unwrap();
    let next = Next { former: None, is_new: true, size: 20 * MIB as u64 };
    let replacement = wholes.replace(b"f", &next).unwrap();
    replacement.send(0, pattern(8 * MIB)).unwrap();
    let id = replacement.id().unwrap().to_owned();
    wholes.abandon(b"f", &id).unwrap();
    // This server answers 403 for an upload that it does not know; nothing of it can be finished any more.
    assert!(replacement.finish().is_err());
    replacement.abandon();
    assert_eq!(wholes.version(b"f").unwrap(), None);
}

#[test]
fn what_no_key_can_have_is_refused() {
    let bucket = Bucket::new();
    let store = under(&bucket, bucket.options());
    let wholes = store.wholes().unwrap();
    assert_eq!(errno(wholes.check("open", b"a\nb")), Errno::EINVAL);
    assert_eq!(errno(wholes.check("open", b"\xff")), Errno::EINVAL);
    assert_eq!(errno(wholes.check("open", &b"x/".repeat(600))), Errno::ENAMETOOLONG);
    wholes.check("open", "größe & ?".as_bytes()).unwrap();
}
