//! What happens when the service is slow, breaks, lies or refuses.

#[path = "support/place.rs"]
mod place;
#[path = "support/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use p9::{Errno, OpenFlags};
use place::{Bucket, at, create, errno, pattern, read};
use server::Fault;
use store::Store;

const READ: OpenFlags = OpenFlags::empty();

/// The first `count` requests that `wanted` picks fail so.
fn some(
    count: usize,
    fault: Fault,
    wanted: impl Fn(&str, &str) -> bool + Send + 'static,
) -> impl FnMut(&str, &str) -> Option<Fault> + Send + 'static {
    let left = AtomicUsize::new(count);
    move |method, uri| {
        let is_left =
            || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        (wanted(method, uri) && is_left().is_ok()).then_some(fault)
    }
}

#[test]
fn what_is_slowed_down_is_asked_again() {
    let bucket = Bucket::new();
    let store = bucket.store();
    bucket.put("file", b"content");
    bucket.server.control.judge(some(3, Fault::SlowDown, |_, _| true));
    let open = at(&store, "file").open(READ).unwrap();
    assert_eq!(read(&*open), b"content");
    bucket.server.control.judge(some(2, Fault::SlowDown, |method, _| method == "PUT"));
    let open = create(&store, "new");
    open.write_at(b"new content", 0).unwrap();
    open.close().unwrap();
    assert_eq!(bucket.file("new").unwrap(), b"new content");
    assert!(bucket.server.control.seen().len() >= 5);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let bucket = Bucket::new();
    let content = pattern(3 << 20);
    bucket.put("file", &content);
    let store = bucket.store();
    let open = at(&store, "file").open(READ).unwrap();
    bucket.server.control.judge(some(2, Fault::Cut, |method, _| method == "GET"));
    assert!(read(&*open) == content);
}

#[test]
fn an_object_that_is_replaced_while_it_is_open_is_an_error_and_never_a_mixture() {
    let bucket = Bucket::new();
    let content = pattern(40 << 20);
    bucket.put("file", &content);
    let store = bucket.store();
    let open = at(&store, "file").open(READ).unwrap();
    let mut buffer = vec![0; 4096];
    open.read_at(&mut buffer, 0).unwrap();
    bucket.put("file", &vec![0xaa; 40 << 20]);
    assert_eq!(errno(open.read_at(&mut buffer, 30 << 20)), Errno::ESTALE);
    assert!(bucket.has_told("was replaced while it was open"));
    // From then on nothing of it can be read, what is in the cache neither.
    assert_eq!(errno(open.read_at(&mut buffer, 0)), Errno::ESTALE);
    let again = at(&store, "file").open(READ).unwrap();
    assert_eq!(again.read_at(&mut buffer, 30 << 20).unwrap(), 4096);
    assert_eq!(buffer, [0xaa; 4096]);
}

#[test]
fn a_service_that_does_not_heed_conditions_is_found_out_by_its_answer() {
    let bucket = Bucket::new();
    bucket.put("file", &pattern(1 << 20));
    let store = bucket.store();
    let open = at(&store, "file").open(READ).unwrap();
    bucket.server.control.judge(some(1, Fault::OtherEtag, |method, _| method == "GET"));
    assert_eq!(errno(open.read_at(&mut [0; 10], 1000)), Errno::ESTALE);
}

#[test]
fn a_removed_object_is_stale_for_who_has_it_open() {
    let bucket = Bucket::new();
    bucket.put("file", &pattern(1 << 20));
    let store = bucket.store();
    let open = at(&store, "file").open(READ).unwrap();
    store.root().unwrap().remove(b"file", false).unwrap();
    assert_eq!(errno(open.read_at(&mut [0; 10], 1000)), Errno::ESTALE);
}

#[test]
fn a_bucket_that_is_not_there_and_credentials_that_are_not_good_are_told_in_words() {
    let bucket = Bucket::new();
    let store = bucket.store_of("none", "", bucket.options());
    assert_eq!(errno(store.root().unwrap().walk(&[b"x"])), Errno::ENOENT);
    assert!(bucket.has_told("there is no such bucket"), "{:?}", bucket.told);
    let mut options = bucket.options();
    for (name, value) in options.variables.as_mut().unwrap() {
        if name == "AWS_SECRET_ACCESS_KEY" {
            "wrong".clone_into(value);
        }
    }
    let store = bucket.store_of("bucket", "", options);
    assert_eq!(errno(store.root().unwrap().walk(&[b"x"])), Errno::EACCES);
    assert!(bucket.has_told("the credentials do not allow this"));
    let store = bucket.store();
    bucket.server.control.judge(|_, _| Some(Fault::Expired));
    assert_eq!(
        errno(
            store
                .root()
                .unwrap()
                .open(OpenFlags::DIRECTORY)
                .unwrap()
                .read_directory(0, &mut |_| true)
        ),
        Errno::EACCES
    );
    assert!(bucket.has_told("the credentials have expired; renew them"));
}

#[test]
fn a_server_that_ends_between_parts_is_an_error_and_leaves_no_object() {
    let bucket = Bucket::new();
    bucket.put("file", b"former");
    let store = bucket.store();
    let open = at(&store, "file").open(OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE).unwrap();
    let piece = pattern(4 << 20);
    for n in 0..4 {
        open.write_at(&piece, n * (4 << 20)).unwrap();
    }
    // As far as this client is concerned it is gone: every part is refused, and so is calling them back.
    bucket.server.control.judge(|_, _| Some(Fault::Expired));
    let mut failed = None;
    for n in 4..40 {
        if let Err(error) = open.write_at(&piece, n * (4 << 20)) {
            failed = Some(error);
            break;
        }
    }
    assert_eq!(failed.expect("a write tells of it").to_errno(), Errno::EACCES);
    assert_eq!(errno(open.close()), Errno::EACCES);
    drop(open);
    bucket.server.control.relent();
    assert_eq!(bucket.file("file").unwrap(), b"former");
}

#[test]
fn a_part_that_is_refused_for_a_while_is_sent_again() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let open = create(&store, "file");
    let content = pattern(30 << 20);
    let is_part = |method: &str, uri: &str| method == "PUT" && uri.contains("partNumber=2");
    bucket.server.control.judge(some(2, Fault::SlowDown, is_part));
    for (n, piece) in content.chunks(1 << 20).enumerate() {
        open.write_at(piece, (n << 20) as u64).unwrap();
    }
    open.close().unwrap();
    assert!(bucket.file("file").unwrap() == content);
}

#[test]
fn what_a_writer_leaves_without_closing_is_no_object_and_is_there_for_who_goes_on() {
    let bucket = Bucket::new();
    let store = bucket.store();
    let open = create(&store, "file");
    open.write_at(b"begun, ", 0).unwrap();
    open.lost();
    drop(open);
    assert_eq!(bucket.file("file"), None);
    // A program that became another one opens it anew.
    let open = at(&store, "file").open(OpenFlags::WRITE_ONLY).unwrap();
    open.write_at(b"done", 7).unwrap();
    open.close().unwrap();
    assert_eq!(bucket.file("file").unwrap(), b"begun, done");
}

#[test]
fn threads_that_read_one_object_are_all_told_when_it_changes() {
    let bucket = Bucket::new();
    bucket.put("file", &pattern(64 << 20));
    let store = bucket.store();
    let open = at(&store, "file").open(READ).unwrap();
    open.read_at(&mut [0; 10], 0).unwrap();
    bucket.put("file", &vec![0xaa; 64 << 20]);
    std::thread::scope(|scope| {
        for n in 0..16_u64 {
            let open = Arc::clone(&open);
            scope.spawn(move || {
                let offset = (4 * n + 2) << 20;
                assert_eq!(errno(open.read_at(&mut [0; 4096], offset)), Errno::ESTALE);
            });
        }
    });
}
