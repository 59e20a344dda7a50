//! Connections that end at any moment, services that come back, stay away or lie.

mod fake;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{At, Error, Handle, Lock, Repeat, Session, WritePart};
use fake::Fake;
use p9::{Data, Errno, LockKind, OpenFlags, Reply, Request};

const FILE: &str = "base/dir/file";

const READ: u8 = 116;
const WRITE: u8 = 118;
const MKDIR: u8 = 72;
const UNLINKAT: u8 = 76;
const GETATTR: u8 = 24;

fn fake() -> Fake {
    Fake::new(&[FILE, "base/dir/other"])
}

fn open(session: &std::sync::Arc<Session>, flags: OpenFlags) -> Handle {
    session.open(At::root(FILE.as_bytes()), flags, 0).expect("open").handle
}

fn read(handle: &Handle, target: &mut [u8]) -> client::Result<usize> {
    handle.with(Repeat::Safe, |connection, fid| {
        let ticket = connection.submit_read(fid, 0, target.len() as u32)?;
        connection.wait_read(ticket, target)
    })
}

fn write(handle: &Handle, repeat: Repeat, data: &[u8]) -> client::Result<()> {
    handle.with(repeat, |connection, fid| {
        let ticket = connection.submit_write(fid, 0, data)?;
        connection.wait(ticket).map(|_| ())
    })
}

fn lost<T>(outcome: client::Result<T>) -> bool {
    matches!(outcome, Err(Error::Lost { .. }))
}

#[test]
fn reads_and_writes_go_on_after_a_break_in_the_middle() {
    for (drop_before, drop_after) in [(true, false), (false, true)] {
        let fake = fake();
        let session = fake.session_with(|options| options.read_ahead_max = 0);
        let handle = open(&session, OpenFlags::READ_WRITE | OpenFlags::TRUNCATE);
        for kind in [WRITE, READ, GETATTR] {
            // The reopening after the first break starts the counts of a connection again.
            let nth = if kind == GETATTR && fake.dials() == 1 { 2 } else { 1 };
            fake.set(|faults| {
                faults.drop_before = drop_before.then_some((kind, nth));
                faults.drop_after = drop_after.then_some((kind, nth));
            });
            let dials = fake.dials();
            match kind {
                WRITE => write(&handle, Repeat::Safe, b"new content").expect("write"),
                READ => {
                    let mut target = [0; 32];
                    assert_eq!(read(&handle, &mut target), Ok(11));
                    assert_eq!(&target[..11], b"new content");
                }
                _ => assert_eq!(handle.attributes().expect("fstat").size, 11),
            }
            assert_eq!(fake.dials(), dials + 1, "{kind}");
        }
        // Truncation belongs to the first opening only.
        assert_eq!(fake.content(FILE).as_deref(), Some(&b"new content"[..]));
    }
}

#[test]
fn what_must_not_happen_twice_fails_once_when_its_reply_is_lost() {
    let fake = fake();
    let session = fake.session();
    let made = At::root(b"base/made");
    fake.set(|faults| faults.drop_after = Some((MKDIR, 1)));
    assert!(lost(session.make_directory(made, 0o755)));
    assert_eq!(fake.count("Mkdir"), 1);
    assert_eq!(session.make_directory(made, 0o755), Err(Error::Refused(Errno::EEXIST)));
    fake.set(|faults| faults.drop_before = Some((UNLINKAT, 1)));
    assert!(lost(session.remove(At::root(FILE.as_bytes()), false)));
    assert_eq!(fake.count("Unlinkat"), 1);
    session.remove(At::root(FILE.as_bytes()), false).expect("a new connection");
    let exclusive = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
    fake.set(|faults| faults.drop_after = Some((14, 1)));
    assert!(lost(session.open(At::root(b"base/new"), exclusive, 0o644)));
    assert_eq!(fake.count("Lcreate"), 1);
}

#[test]
fn what_was_surely_not_sent_is_made_on_a_new_connection() {
    let fake = fake();
    let session = fake.session();
    session.connect().expect("connect");
    fake.cut();
    session.make_directory(At::root(b"base/made"), 0o755).expect("mkdir");
    let handle = open(&session, OpenFlags::WRITE_ONLY | OpenFlags::APPEND);
    fake.cut();
    write(&handle, Repeat::OnlyUnsent, b"!").expect("append");
    fake.cut();
    session.rename(At::root(FILE.as_bytes()), At::root(b"base/moved"), false).expect("rename");
    assert_eq!(fake.dials(), 4);
}

#[test]
fn a_break_at_any_byte_of_the_replies_loses_nothing_and_does_nothing_twice() {
    const VERSION_REPLY_LEN: usize = 7 + 4 + 2 + "9P2000.L.sluice".len();
    for limit in 0..420 {
        let fake = fake().with_faults(|faults| faults.drop_at_reply_byte = Some(limit));
        let session = fake.session();
        let outcome = session.open(At::root(FILE.as_bytes()), OpenFlags::empty(), 0);
        // Until there was a connection, breaking is being unreachable.
        let handle = match outcome {
            Ok(opened) => opened.handle,
            Err(error) => {
                assert!(limit < VERSION_REPLY_LEN && error.is_retryable(), "{limit}: {error}");
                continue;
            }
        };
        let mut target = [0; 64];
        assert_eq!(read(&handle, &mut target), Ok(FILE.len()), "{limit}");
        assert_eq!(&target[..FILE.len()], FILE.as_bytes());
        let made = session.make_directory(At::root(b"base/made"), 0o755);
        assert!(made.is_ok() || lost(made), "{limit}");
        assert_eq!(fake.count("Mkdir"), 1, "{limit}");
    }
}

#[test]
fn a_file_that_became_another_one_is_stale() {
    let fake = fake();
    let session = fake.session();
    let handle = open(&session, OpenFlags::empty());
    fake.replace(FILE, b"somebody else's");
    fake.cut();
    assert_eq!(read(&handle, &mut [0; 8]), Err(Error::Refused(Errno::ESTALE)));
    let again = open(&session, OpenFlags::empty());
    assert_eq!(read(&again, &mut [0; 8]), Ok(8));
}

#[test]
fn a_handle_whose_locks_were_lost_fails_and_others_do_not() {
    let fake = fake();
    let session = fake.session();
    let locked = open(&session, OpenFlags::READ_WRITE);
    let other = open(&session, OpenFlags::READ_WRITE);
    let lock = Lock { kind: LockKind::WRITE, start: 0, length: 0, process: 1, client: vec![] };
    locked.lock(&lock, None).expect("lock");
    fake.cut();
    assert_eq!(read(&locked, &mut [0; 8]), Err(Error::Refused(Errno::EIO)));
    assert_eq!(read(&other, &mut [0; 8]), Ok(8));
    assert_eq!(read(&locked, &mut [0; 8]), Err(Error::Refused(Errno::EIO)));
}

#[test]
fn what_was_lost_with_a_connection_before_it_was_synced_is_told_of() {
    for closes_count in [true, false] {
        let fake = fake().with_faults(|faults| faults.closes_count = closes_count);
        let session = fake.session();
        let change =
            |handle: &Handle| handle.write_batch(Repeat::Safe, &mut [WritePart::new(0, b"new")]);
        let (unsynced, synced) =
            (open(&session, OpenFlags::READ_WRITE), open(&session, OpenFlags::READ_WRITE));
        change(&unsynced).expect("write");
        change(&synced).expect("write");
        synced.sync(true).expect("sync");
        fake.cut();
        change(&synced).expect("nothing of it was lost");
        assert_eq!(unsynced.sync(true).is_err(), closes_count);
        assert_eq!(unsynced.finish().is_err(), closes_count);
        synced.finish().expect("close");
    }
}

#[test]
fn a_child_is_not_told_of_what_its_parent_may_have_lost() {
    let fake = fake().with_faults(|faults| faults.closes_count = true);
    let session = fake.session();
    let handle = open(&session, OpenFlags::READ_WRITE);
    handle.write_batch(Repeat::Safe, &mut [WritePart::new(0, b"new")]).expect("write");
    session.abandon();
    handle.sync(true).expect("the parent still has its connection");
}

#[test]
fn a_lock_is_waited_for_until_told_to_stop() {
    let fake = fake().with_faults(|faults| faults.lock_held = 3);
    let session = fake.session();
    let handle = open(&session, OpenFlags::READ_WRITE);
    let lock = Lock { kind: LockKind::WRITE, start: 0, length: 0, process: 1, client: vec![] };
    assert_eq!(handle.lock(&lock, None), Err(Error::Refused(Errno::EAGAIN)));
    assert_eq!(handle.lock(&lock, Some(&|| true)), Err(Error::Refused(Errno::EINTR)));
    // Never held: a break does not make the handle fail.
    fake.cut();
    assert_eq!(handle.lock(&lock, Some(&|| false)), Ok(()));
    assert_eq!(fake.count("Lock"), 4);
}

#[test]
fn having_no_descriptor_to_dial_with_is_told_at_once_and_is_not_final() {
    let fake = fake();
    let session = fake.session_with(|options| options.reconnect_for = Duration::from_secs(60));
    let handle = open(&session, OpenFlags::empty());
    fake.cut();
    fake.set(|faults| faults.no_descriptors = true);
    let dials = fake.dials();
    let start = Instant::now();
    assert_eq!(handle.attributes().map_err(|error| error.to_errno()), Err(Errno::EMFILE));
    assert_eq!(fake.dials(), dials + 1, "tried once");
    assert!(start.elapsed() < Duration::from_secs(30));
    fake.set(|faults| faults.no_descriptors = false);
    assert!(handle.attributes().is_ok());
}

#[test]
fn a_service_that_stays_away_is_an_error_in_time_and_then_at_once() {
    let fake = fake();
    let session = fake.session();
    let handle = open(&session, OpenFlags::empty());
    fake.set(|faults| faults.unreachable = true);
    fake.cut();
    let start = Instant::now();
    assert_eq!(handle.attributes().map_err(|e| e.to_errno()), Err(Errno::EIO));
    let waited = start.elapsed();
    assert!(waited > Duration::from_millis(200) && waited < Duration::from_secs(15), "{waited:?}");
    let dials = fake.dials();
    assert_eq!(handle.attributes().map_err(|e| e.to_errno()), Err(Errno::EIO));
    assert_eq!(fake.dials(), dials + 1);
    fake.set(|faults| faults.unreachable = false);
    assert_eq!(handle.attributes().map(|a| a.size), Ok(FILE.len() as u64));
}

#[test]
fn a_service_that_comes_back_in_time_is_only_a_delay() {
    let fake = fake();
    let session = fake.session_with(|options| options.reconnect_for = Duration::from_secs(20));
    let handle = open(&session, OpenFlags::empty());
    fake.set(|faults| faults.unreachable = true);
    fake.cut();
    let back = fake.clone();
    let restart = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        back.set(|faults| faults.unreachable = false);
    });
    assert_eq!(read(&handle, &mut [0; 4]), Ok(4));
    restart.join().expect("restarted");
}

#[test]
fn a_wrong_address_is_told_at_once() {
    let fake = fake().with_faults(|faults| faults.unreachable = true);
    let session = fake.session_with(|options| options.reconnect_for = Duration::from_secs(60));
    let outcome = session.stat(At::root(b"base"), true);
    assert_eq!(outcome.map_err(|e| e.to_errno()), Err(Errno::ECONNREFUSED));
    assert_eq!(fake.dials(), 1);
}

#[test]
fn a_service_that_is_silent_or_deaf_does_not_hang_us() {
    let fake = fake();
    let patience = Duration::from_millis(150);
    let session = fake.session_with(|options| options.request_timeout = patience);
    let handle = open(&session, OpenFlags::READ_WRITE);
    fake.set(|faults| faults.deaf = true);
    fake.cut();
    // The new connection's negotiation is never answered, nor is it read.
    let start = Instant::now();
    let outcome = write(&handle, Repeat::Safe, &[7; 1 << 20]);
    assert_eq!(outcome.map_err(|e| e.to_errno()), Err(Errno::EIO));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn lies_are_errors_and_the_next_connection_is_believed_again() {
    fn size(frame: &mut [u8], size: u32) {
        frame[..4].copy_from_slice(&size.to_le_bytes());
    }
    let lies: [(&str, Lie); 8] = [
        ("a tag that nobody has", |frame| frame[5..7].copy_from_slice(&[0x33, 0x33])),
        ("a frame larger than agreed", |frame| size(frame, u32::MAX)),
        ("a frame smaller than its header", |frame| size(frame, 3)),
        ("a reply to another request", |frame| frame[4] = 121),
        ("an unknown type", |frame| frame[4] = 255),
        ("fields that end early", |frame| {
            frame.pop();
            let len = frame.len() as u32;
            size(frame, len);
        }),
        ("bytes behind the fields", |frame| {
            frame.extend_from_slice(&[1, 2, 3]);
            let len = frame.len() as u32;
            size(frame, len);
        }),
        ("more data than asked for", |frame| {
            let tag = p9::Tag(u16::from_le_bytes([frame[5], frame[6]]));
            frame.clear();
            Reply::Read { data: Data(&[9; 5000]) }.encode(tag, frame);
        }),
    ];
    for (what, lie) in lies {
        let fake = fake();
        let session = fake.session_with(|options| options.read_ahead_max = 0);
        let handle = open(&session, OpenFlags::empty());
        fake.set(|faults| faults.lie = Some(lie));
        let mut target = [0; 16];
        let outcome = read(&handle, &mut target);
        assert_eq!(outcome.map_err(|e| e.to_errno()), Err(Errno::EIO), "{what}");
        let stat = session.stat(At::root(FILE.as_bytes()), true);
        assert_eq!(stat.map_err(|e| e.to_errno()), Err(Errno::EIO), "{what}");
        fake.set(|faults| faults.lie = None);
        assert_eq!(read(&handle, &mut target), Ok(FILE.len()), "{what}");
    }
}

/// A change of replies on their way out.
type Lie = fn(&mut Vec<u8>);

/// State of the noise in replies; the test that uses it prints its seed when it fails.
static NOISE: AtomicU64 = AtomicU64::new(0);

fn noise() -> u64 {
    // splitmix64.
    let mut z = NOISE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[allow(clippy::ptr_arg)] // It is a `Lie`.
fn add_noise(frame: &mut Vec<u8>) {
    if noise().is_multiple_of(3) {
        for _ in 0..1 + noise() % 3 {
            let at = noise() as usize % frame.len();
            frame[at] = noise() as u8;
        }
    }
}

#[test]
fn noise_in_replies_is_survived_in_time() {
    for seed in 0..16 {
        NOISE.store(seed, Ordering::Relaxed);
        let fake = fake();
        let session = fake.session_with(|options| {
            options.request_timeout = Duration::from_millis(40);
            options.reconnect_for = Duration::from_millis(40);
        });
        let handle = open(&session, OpenFlags::READ_WRITE);
        let start = Instant::now();
        fake.set(|faults| faults.lie = Some(add_noise));
        for _ in 0..4 {
            // Whatever they answer: no panic, no hang, no memory for what was never sent.
            let _ = session.stat(At::root(FILE.as_bytes()), true);
            let _ = session.open(At::root(b"base/dir/other"), OpenFlags::empty(), 0);
            let _ = read(&handle, &mut [0; 64]);
            let _ = handle.attributes();
            let _ = write(&handle, Repeat::Safe, FILE.as_bytes());
            let _ = session.make_directory(At::root(b"base/made"), 0o755);
            let directory = session.open(At::root(b"base"), OpenFlags::DIRECTORY, 0);
            if let Ok(opened) = directory {
                let _ = opened.handle.read_directory(0, &mut |_| true);
            }
        }
        fake.set(|faults| faults.lie = None);
        assert!(start.elapsed() < Duration::from_secs(20), "seed {seed}");
        // Once the noise is over, a new session finds everything in order.
        let size = fake.session().stat(At::root(FILE.as_bytes()), true).map(|a| a.size);
        assert_eq!(size, Ok(FILE.len() as u64), "seed {seed}");
    }
}

#[test]
fn a_walk_that_reaches_more_than_was_asked_is_a_lie() {
    let fake = fake();
    let session = fake.session();
    session.stat(At::root(b"base"), true).expect("attached");
    fake.set(|faults| {
        faults.lie = Some(|frame| {
            let tag = p9::Tag(u16::from_le_bytes([frame[5], frame[6]]));
            if frame[4] == 111 {
                frame.clear();
                let qids = p9::Qids::collect([p9::Qid::default(); 9]);
                Reply::Walk { qids }.encode(tag, frame);
            }
        });
    });
    let stat = session.stat(At::root(FILE.as_bytes()), true);
    assert!(matches!(stat, Err(Error::Protocol { .. })), "{stat:?}");
}

#[test]
fn a_child_leaves_the_connection_to_its_parent() {
    let fake = fake();
    let session = fake.session();
    let handle = open(&session, OpenFlags::empty());
    fake.reset();
    session.abandon();
    let mut target = [0; 64];
    assert_eq!(read(&handle, &mut target), Ok(FILE.len()));
    assert_eq!(fake.dials(), 2);
    // All of it went over the new connection: it negotiated, attached, walked and opened.
    let names = ["Version", "Attach", "Walk", "Lopen", "Read"];
    assert_eq!(fake.world().log, names);
    session.abandon();
    drop(handle);
    assert_eq!(fake.count("Clunk"), 0);
}

#[test]
fn a_small_message_size_is_kept_to() {
    let fake = fake().with_faults(|faults| faults.msize_max = Some(4096 + 24));
    let session = fake.session();
    let handle = open(&session, OpenFlags::READ_WRITE);
    let payload = handle.with(Repeat::Safe, |connection, _| Ok(connection.payload_max()));
    assert_eq!(payload, Ok(4096));
    let too_much = handle.with(Repeat::Safe, |connection, fid| {
        connection.call(&Request::Write { fid, offset: 0, data: Data(&[0; 8192]) }).map(|_| ())
    });
    assert_eq!(too_much, Err(Error::Refused(Errno::ENAMETOOLONG)));
    assert_eq!(read(&handle, &mut [0; 16]), Ok(FILE.len()));
}
