//! Files of a bucket: what they can do, what they refuse, and how often the service is asked.

#[path = "support/place.rs"]
mod place;
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;

use object::Options;
use p9::{Errno, OpenFlags, SetAttributes, SetattrMask};
use place::{Bucket, at, create, errno, pattern, read};
use store::Store;

const READ: OpenFlags = OpenFlags::empty();
const WRITE: OpenFlags = OpenFlags::WRITE_ONLY;

#[test]
fn a_new_file_appears_as_a_whole_when_it_is_closed() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let open = create(&store, "file");
    open.write_at(b"content", 0).unwrap();
    assert_eq!(bucket.file("file"), None);
    open.close().unwrap();
    assert_eq!(bucket.file("file").unwrap(), b"content");
    let empty = create(&store, "empty");
    empty.close().unwrap();
    assert_eq!(bucket.file("empty").unwrap(), b"");
}

#[test]
fn what_is_replaced_is_there_until_the_new_one_is_closed() {
    let bucket = Bucket::new();
    bucket.put("file", b"former");
    let store = bucket.store();
    let open = at(&store, "file").open(WRITE | OpenFlags::TRUNCATE).unwrap();
    open.write_at(b"new", 0).unwrap();
    assert_eq!(read(&*at(&store, "file").open(READ).unwrap()), b"former");
    assert_eq!(open.attributes().unwrap().size, 3);
    open.close().unwrap();
    assert_eq!(bucket.file("file").unwrap(), b"new");
    assert_eq!(read(&*at(&store, "file").open(READ).unwrap()), b"new");
}

#[test]
fn large_files_are_sent_in_parts_while_they_are_written_in_whatever_order_requests_come() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let content = pattern(37_000_001);
    let open = create(&store, "large");
    let pieces: Vec<(usize, &[u8])> = content.chunks(1 << 20).enumerate().collect();
    for group in pieces.chunks(4) {
        for (n, piece) in group.iter().rev() {
            assert_eq!(open.write_at(piece, (n << 20) as u64).unwrap(), piece.len());
        }
    }
    let before = bucket.server.control.seen();
    assert!(before.iter().any(|request| request.contains("partNumber=1")), "{before:?}");
    open.close().unwrap();
    assert!(bucket.file("large").unwrap() == content);
}

#[test]
fn what_was_sent_cannot_be_changed_and_leaves_nothing() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let open = create(&store, "file");
    let piece = pattern(1 << 20);
    for n in 0..20 {
        open.write_at(&piece, n << 20).unwrap();
    }
    assert_eq!(errno(open.write_at(b"header", 0)), Errno::EOPNOTSUPP);
    assert!(bucket.has_told("sluice run --log"));
    // What lacks a write is not what its program means.
    assert_eq!(errno(open.close()), Errno::EOPNOTSUPP);
    assert_eq!(bucket.file("file"), None);
}

#[test]
fn objects_are_not_changed_appended_to_or_cut() {
    let bucket = Bucket::new();
    bucket.put("file", b"content");
    let store = bucket.store();
    let node = at(&store, "file");
    let open = node.open(OpenFlags::READ_WRITE).unwrap();
    assert_eq!(read(&*open), b"content");
    assert_eq!(errno(open.write_at(b"x", 0)), Errno::EOPNOTSUPP);
    let append = node.open(WRITE | OpenFlags::APPEND).unwrap();
    assert_eq!(errno(append.write_at(b"x", 0)), Errno::EOPNOTSUPP);
    let size = |size| SetAttributes { valid: SetattrMask::SIZE, size, ..SetAttributes::default() };
    assert_eq!(errno(open.set_attributes(&size(3))), Errno::EOPNOTSUPP);
    assert_eq!(errno(node.set_attributes(&size(3))), Errno::EOPNOTSUPP);
    for open in [open, append] {
        open.close().unwrap();
    }
    assert_eq!(bucket.file("file").unwrap(), b"content");
    assert!(bucket.has_told("only replaced as a whole"));
    node.set_attributes(&size(0)).unwrap();
    assert_eq!(bucket.file("file").unwrap(), b"");
}

#[test]
fn an_fsync_stores_what_there_is_and_small_files_go_on() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let open = create(&store, "small");
    open.write_at(b"one", 0).unwrap();
    open.sync(false).unwrap();
    assert_eq!(bucket.file("small").unwrap(), b"one");
    open.write_at(b", two", 3).unwrap();
    open.close().unwrap();
    assert_eq!(bucket.file("small").unwrap(), b"one, two");
    let open = create(&store, "large");
    let content = pattern(20 << 20);
    open.write_at(&content, 0).unwrap();
    open.sync(false).unwrap();
    assert!(bucket.file("large").unwrap() == content);
    assert_eq!(errno(open.write_at(b"more", 20 << 20)), Errno::EOPNOTSUPP);
}

#[test]
fn the_last_of_several_writers_stores_the_file() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let one = create(&store, "file");
    one.write_at(b"one ", 0).unwrap();
    let two = at(&store, "file").open(WRITE).unwrap();
    one.close().unwrap();
    assert_eq!(bucket.file("file"), None);
    two.write_at(b"two", 4).unwrap();
    two.close().unwrap();
    assert_eq!(bucket.file("file").unwrap(), b"one two");
}

#[test]
fn names_with_spaces_and_other_scripts_are_keys_as_they_are() {
    let bucket = Bucket::new();
    let store = bucket.store();
    for name in [
        "a b",
        "größe",
        "データ",
        "plus+and&equals=",
        "per%20cent",
        "a#b?c",
        "q'uote\"s",
        "tilde~",
        "~",
    ] {
        let open = create(&store, name);
        open.write_at(name.as_bytes(), 0).unwrap();
        open.close().unwrap();
        assert_eq!(bucket.file(name).as_deref(), Some(name.as_bytes()), "{name}");
        assert_eq!(read(&*at(&store, name).open(READ).unwrap()), name.as_bytes());
    }
    let mut names = Vec::new();
    let open = store.root().unwrap().open(OpenFlags::DIRECTORY).unwrap();
    open.read_directory(0, &mut |entry| {
        names.push(String::from_utf8(entry.name.to_vec()).unwrap());
        true
    })
    .unwrap();
    assert_eq!(names.len(), 9 + 2, "{names:?}");
    let invalid = store.root().unwrap().create(b"\xff", WRITE, 0o644).map(|_| ());
    assert_eq!(errno(invalid), Errno::EINVAL);
}

#[test]
fn files_are_renamed_by_the_service_and_directories_are_not() {
    let bucket = Bucket::new();
    bucket.put("dir/file", b"content");
    let store = bucket.store();
    let root = store.root().unwrap();
    let dir = at(&store, "dir");
    dir.rename(b"file", root.as_ref(), b"moved").unwrap();
    assert_eq!(bucket.file("moved").unwrap(), b"content");
    assert_eq!(bucket.file("dir/file"), None);
    bucket.put("dir/file", b"content");
    assert_eq!(errno(root.rename(b"dir", root.as_ref(), b"other")), Errno::EOPNOTSUPP);
    assert!(bucket.has_told("sluice cp -r"));
}

#[test]
fn opening_and_reading_a_small_file_takes_two_requests() {
    let bucket = Bucket::new();
    bucket.put("some/where/file", b"content");
    let store = bucket.store();
    bucket.server.control.seen();
    let node = at(&store, "some/where/file");
    node.attributes().unwrap();
    let open = node.open(READ).unwrap();
    assert_eq!(read(&*open), b"content");
    let seen = bucket.server.control.seen();
    assert_eq!(seen.len(), 2, "{seen:?}");
}

#[test]
fn looking_at_what_was_just_listed_takes_no_requests() {
    let bucket = Bucket::new();
    for n in 0..20 {
        bucket.put(&format!("dir/file{n}"), b"x");
    }
    let store = bucket.store();
    let open = at(&store, "dir").open(OpenFlags::DIRECTORY).unwrap();
    open.read_directory(0, &mut |_| true).unwrap();
    bucket.server.control.seen();
    for n in 0..20 {
        assert_eq!(at(&store, &format!("dir/file{n}")).attributes().unwrap().size, 1);
    }
    let seen = bucket.server.control.seen();
    assert_eq!(seen, Vec::<String>::new());
}

#[test]
fn a_reader_in_order_is_served_by_few_large_requests() {
    let bucket = Bucket::new();
    let content = pattern(100 << 20);
    bucket.put("file", &content);
    let store = bucket.store();
    let open = at(&store, "file").open(READ).unwrap();
    let mut buffer = vec![0; 256 << 10];
    for (n, piece) in content.chunks(buffer.len()).enumerate() {
        assert_eq!(open.read_at(&mut buffer, (n * piece.len()) as u64).unwrap(), piece.len());
        assert!(buffer == piece);
    }
    let requests = store.requests();
    assert!(requests.gets() < 60, "{} requests for 100 MiB", requests.gets());
    assert_eq!(requests.bytes(), 100 << 20, "nothing is fetched twice");
}

#[test]
fn what_was_read_is_kept_and_the_limit_is_heeded() {
    let bucket = Bucket::new();
    bucket.put("file", &pattern(10 << 20));
    let store = bucket.store();
    for _ in 0..3 {
        let open = at(&store, "file").open(READ).unwrap();
        assert_eq!(read(&*open).len(), 10 << 20);
    }
    assert_eq!(store.requests().bytes(), 10 << 20);
}

/// Reads 4 KiB at each of many places of a file at once, by as many threads as a service has; says how many requests
/// it took.
fn scattered(bucket: &Bucket, options: Options, offsets: &[u64]) -> u64 {
    let store = bucket.store_of("bucket", "", options);
    let open = at(&store, "file").open(READ).unwrap();
    let content = pattern(1 << 20);
    std::thread::scope(|scope| {
        for part in offsets.chunks(offsets.len().div_ceil(50)) {
            let (open, content) = (Arc::clone(&open), &content);
            scope.spawn(move || {
                let mut buffer = [0; 4096];
                for offset in part {
                    assert_eq!(open.read_at(&mut buffer, *offset).unwrap(), 4096);
                    assert!(buffer == content[*offset as usize % (1 << 20)..][..4096]);
                }
            });
        }
    });
    store.requests().gets()
}

#[test]
fn scattered_reads_that_lie_close_share_requests() {
    let bucket = Bucket::new();
    // Small, as the server looks at all of an object for each answer.
    bucket.put("file", &pattern(1 << 20).repeat(16));
    // 1,000 reads in 16 clusters of 128 KiB.
    let offsets: Vec<u64> = (0..1000_u64)
        .map(|n| {
            let within = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ((128 << 10) - 4096);
            (n * 7 % 16) * (1 << 20) + within / 512 * 512
        })
        .collect();
    let clustered = scattered(&bucket, bucket.options(), &offsets);
    assert!(clustered <= 250, "{clustered} requests for 1,000 reads, naive are 1,000");
}
