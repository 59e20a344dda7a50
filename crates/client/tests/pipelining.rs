//! Many requests in flight on one connection, from one thread and from many.

mod fake;

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{At, Handle, Repeat};
use fake::Fake;
use p9::OpenFlags;

const MIB: usize = 1 << 20;

fn big(fake: &Fake, len: usize) -> Handle {
    let pattern: Vec<u8> = (0..len).map(|i| (i / 7 % 251) as u8).collect();
    fake.replace("base/big", &pattern);
    let session = fake.session_with(|options| options.read_ahead_max = 0);
    session.open(At::root(b"base/big"), OpenFlags::READ_WRITE, 0).expect("open").handle
}

fn check(data: &[u8], offset: usize) {
    let wrong = data.iter().enumerate().find(|(i, b)| **b != ((offset + i) / 7 % 251) as u8);
    assert_eq!(wrong, None, "at {offset}");
}

#[test]
fn threads_share_a_connection_and_each_gets_its_own_data() {
    let fake = Fake::new(&["base/big"]);
    let handle = Arc::new(big(&fake, MIB));
    let threads: Vec<_> = (0..8)
        .map(|thread: usize| {
            let handle = Arc::clone(&handle);
            std::thread::spawn(move || {
                let mut state = thread * 7919 + 1;
                for round in 0..300 {
                    state =
                        state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let offset = (state >> 33) % (MIB - 40_000);
                    let len = 1 + (state >> 20) % 40_000;
                    let mut target = vec![0; len];
                    let got = handle.with(Repeat::Safe, |connection, fid| {
                        let ticket = connection.submit_read(fid, offset as u64, len as u32)?;
                        if round % 5 == 0 {
                            // Useless read-ahead in between.
                            let other = connection.submit_read(fid, 0, 10_000)?;
                            connection.forget(other);
                        }
                        if round % 3 == 0 {
                            let body = connection.wait(ticket)?;
                            target.copy_from_slice(body.data());
                            connection.recycle(body);
                            return Ok(len);
                        }
                        connection.wait_read(ticket, &mut target)
                    });
                    assert_eq!(got, Ok(len));
                    check(&target, offset);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(fake.dials(), 1);
}

#[test]
fn large_reads_and_writes_in_flight_do_not_lock_each_other_out() {
    // The service answers while we send, and blocks when we do not take its answers.
    let fake = Fake::new(&["base/big"]);
    let handle = big(&fake, 16 * MIB);
    let data: Vec<u8> = (0..MIB).map(|i| (i / 7 % 251) as u8).collect();
    handle
        .with(Repeat::Safe, |connection, fid| {
            let payload = connection.payload_max();
            assert_eq!(payload, MIB);
            let mut reads = Vec::new();
            let mut writes = Vec::new();
            for i in 0..16 {
                reads.push(connection.submit_read(fid, (i * MIB) as u64, MIB as u32)?);
            }
            for i in 16..24 {
                writes.push(connection.submit_write(fid, (i * MIB) as u64, &data)?);
            }
            let mut target = vec![0; MIB];
            for (i, ticket) in reads.into_iter().enumerate() {
                assert_eq!(connection.wait_read(ticket, &mut target)?, MIB);
                check(&target, i * MIB);
            }
            for ticket in writes {
                connection.wait(ticket)?;
            }
            Ok(())
        })
        .expect("no deadlock");
    assert_eq!(fake.content("base/big").expect("there").len(), 24 * MIB);
}

#[test]
fn senders_and_readers_on_several_threads_do_not_lock_each_other_out() {
    let fake = Fake::new(&["base/big"]);
    let handle = Arc::new(big(&fake, 4 * MIB));
    let threads: Vec<_> = (0..6)
        .map(|thread: usize| {
            let handle = Arc::clone(&handle);
            std::thread::spawn(move || {
                let data = vec![thread as u8; MIB];
                let mut target = vec![0; MIB];
                for _ in 0..12 {
                    handle
                        .with(Repeat::Safe, |connection, fid| {
                            if thread.is_multiple_of(2) {
                                let at = ((4 + thread) * MIB) as u64;
                                let ticket = connection.submit_write(fid, at, &data)?;
                                connection.wait(ticket).map(|_| ())
                            } else {
                                let ticket = connection.submit_read(fid, 0, MIB as u32)?;
                                let count = connection.wait_read(ticket, &mut target)?;
                                check(&target[..count], 0);
                                Ok(())
                            }
                        })
                        .expect("no break");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(fake.dials(), 1);
}

#[test]
fn requests_in_flight_share_one_delay() {
    let delay = Duration::from_millis(100);
    let fake = Fake::new(&["base/big"]);
    let handle = big(&fake, MIB);
    fake.set(|faults| faults.delay = delay);
    fake.reset();
    let start = Instant::now();
    handle
        .with(Repeat::Safe, |connection, fid| {
            let tickets: Result<Vec<_>, _> =
                (0..16).map(|i| connection.submit_read(fid, i * 4096, 4096)).collect();
            for (i, ticket) in tickets?.into_iter().enumerate() {
                let body = connection.wait(ticket)?;
                check(body.data(), i * 4096);
            }
            Ok(())
        })
        .expect("reads");
    // The service sleeps so long for each that comes alone; those that arrive meanwhile share the next wait.
    assert!(start.elapsed() < delay * 16, "{:?}", start.elapsed());
}

#[test]
fn replies_nobody_has_asked_for_yet_do_not_use_up_the_tags() {
    let fake = Fake::new(&["base/big"]);
    let handle = big(&fake, 4096);
    handle
        .with(Repeat::Safe, |connection, fid| {
            let kept: Result<Vec<_>, _> =
                (0..2000).map(|_| connection.submit_read(fid, 0, 16)).collect();
            let body = connection.wait(connection.submit_read(fid, 0, 4096)?)?;
            check(body.data(), 0);
            for ticket in kept? {
                let mut target = [0; 16];
                assert_eq!(connection.wait_read(ticket, &mut target)?, 16);
                check(&target, 0);
            }
            Ok(())
        })
        .expect("reads");
}
