//! What remote files promise: what they ask of a service and when, and how they fail.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use client::{At, ReadPart, RemoteFile, Session, WritePart};
use memory::{Memory, open, opened};
use p9::{Errno, OpenFlags, SetAttributes, SetattrMask};

const MIB: usize = 1 << 20;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 3 % 251) as u8).collect()
}

fn service(content: &[u8]) -> (Memory, Arc<Session>) {
    let service = Memory::new();
    service.put("file", content);
    let session = service.session(|_| {});
    (service, session)
}

fn read(file: &RemoteFile, offset: u64, len: usize) -> Vec<u8> {
    let mut target = vec![0; len];
    let count = file.read_at(&mut target, offset).expect("read");
    target.truncate(count);
    target
}

fn errno<T>(outcome: client::Result<T>) -> Option<Errno> {
    outcome.err().map(|error| error.to_errno())
}

#[test]
fn a_small_file_and_its_end_take_one_read() {
    let content = bytes(4096);
    let (service, session) = service(&content);
    let file = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&file, 0, 8192), content);
    assert_eq!(read(&file, 4096, 8192), b"");
    assert_eq!((service.count("Read"), service.count("Getattr")), (1, 1));
}

#[test]
fn an_empty_file_takes_one_read() {
    let (service, session) = service(b"");
    let file = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&file, 0, 8192), b"");
    assert_eq!(service.count("Read"), 1);
}

#[test]
fn who_comes_again_at_the_end_sees_the_file_grow() {
    let (service, session) = service(b"first line\n");
    let file = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&file, 0, 100), b"first line\n");
    assert_eq!(read(&file, 11, 100), b"");
    service.put("file", b"first line\nsecond line\n");
    assert_eq!(read(&file, 11, 100), b"second line\n");
    assert_eq!(read(&file, 23, 100), b"");
    let much = bytes(3 * MIB);
    service.put("file", &[&b"first line\nsecond line\n"[..], &much].concat());
    let mut seen = Vec::new();
    loop {
        let part = read(&file, 23 + seen.len() as u64, 100_000);
        if part.is_empty() {
            break;
        }
        seen.extend_from_slice(&part);
    }
    assert!(seen == much);
}

#[test]
fn who_syncs_sees_what_others_wrote_before() {
    let (service, session) = service(b"");
    let file = open(&session, "file", OpenFlags::READ_WRITE);
    assert_eq!(file.write_at(b"8 bytes.", 0), Ok(8));
    file.sync(false).expect("sync");
    assert_eq!(read(&file, 0, 99), b"8 bytes.");
    service.put("file", b"SIXTEEN BYTES...");
    file.sync(false).expect("sync");
    assert_eq!(file.size(), Ok(16));
    assert_eq!(read(&file, 0, 99), b"SIXTEEN BYTES...");
    // By whatever descriptor of the process.
    let other = open(&session, "file", OpenFlags::READ_WRITE);
    assert_eq!(read(&other, 0, 99), b"SIXTEEN BYTES...");
    service.put("file", b"four");
    file.sync(false).expect("sync");
    assert_eq!((other.size(), read(&other, 0, 99)), (Ok(4), b"four".to_vec()));
}

#[test]
fn without_read_ahead_and_write_behind_processes_see_each_other_at_once() {
    let service = Memory::new();
    service.put("file", b"");
    let careful = |options: &mut client::Options| {
        (options.read_ahead_max, options.write_behind_max) = (0, 0);
    };
    let (one, two) = (service.session(careful), service.session(careful));
    let files = [&one, &two].map(|session| open(session, "file", OpenFlags::READ_WRITE));
    let much = bytes(3 * MIB);
    for round in 0..10_u64 {
        let (writer, reader) = (&files[round as usize % 2], &files[1 - round as usize % 2]);
        assert_eq!(writer.write_at(&[round as u8; 100], 40 * round), Ok(100));
        assert_eq!(reader.size(), Ok(40 * round + 100));
        assert_eq!(read(reader, 40 * round, 200), [round as u8; 100]);
    }
    // A read is as long as what there is, however many requests it takes.
    assert_eq!(files[0].write_at(&much, 0), Ok(much.len()));
    assert!(read(&files[1], 0, 4 * MIB) == much);
    service.set(|faults| faults.read_max = Some(10_007));
    assert!(read(&files[1], 5, MIB) == much[5..MIB + 5]);
    files[0].truncate(7).expect("truncate");
    assert_eq!((files[1].size(), read(&files[1], 0, 99).len()), (Ok(7), 7));
}

#[test]
fn sync_sends_what_other_openings_wrote() {
    let (service, session) = service(&bytes(100));
    let file = open(&session, "file", OpenFlags::READ_WRITE);
    let other = open(&session, "file", OpenFlags::READ_WRITE);
    // The first write waits for its reply; what follows at once is gathered.
    for offset in 0..20 {
        assert_eq!(other.write_at(b"x", offset), Ok(1));
    }
    file.sync(false).expect("sync");
    assert_eq!(service.content("file")[..20], [b'x'; 20]);
    // What they could not write is not durable, and they are told all the same.
    service.set(|faults| faults.refuse_writes = Some(Errno::ENOSPC));
    for offset in 0..20 {
        assert_eq!(other.write_at(b"y", offset), Ok(1));
    }
    assert_eq!(errno(file.sync(false)), Some(Errno::ENOSPC));
    assert_eq!(errno(other.flush()), Some(Errno::ENOSPC));
    assert_eq!(file.sync(false), Ok(()));
}

#[test]
fn a_file_that_became_shorter_ends_where_it_ends() {
    let (service, session) = service(&bytes(MIB));
    let file = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&file, 0, 10).len(), 10);
    service.put("file", &bytes(500_000));
    file.invalidate();
    assert_eq!(read(&file, 499_990, 100).len(), 10);
    assert_eq!(read(&file, 600_000, 100), b"");
    assert_eq!(file.size(), Ok(500_000));
}

#[test]
fn a_file_that_hides_its_size_is_read_to_its_end() {
    let service = Memory::new();
    service.world().hides_sizes = true;
    service.put("file", b"made up while it is read");
    let session = service.session(|_| {});
    let file = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&file, 0, 100), b"made up while it is read");
    assert_eq!(read(&file, 8, 100), b"while it is read");
    assert_eq!(read(&file, 24, 100), b"");
}

#[test]
fn short_replies_are_no_end() {
    let content = bytes(3 * MIB);
    let (service, session) = service(&content);
    service.set(|faults| faults.read_max = Some(10_007));
    let file = open(&session, "file", OpenFlags::empty());
    assert!(read(&file, 0, 4 * MIB) == content);
    assert_eq!(read(&file, MIB as u64, 50_000), content[MIB..MIB + 50_000]);
}

#[test]
fn sequential_readers_never_ask_beyond_the_end_and_for_no_byte_twice() {
    for len in [1000, 8192, 100_000, MIB, 5 * MIB] {
        let content = bytes(11 * MIB + 777);
        let (service, session) = service(&content);
        let file = open(&session, "file", OpenFlags::empty());
        let mut seen = Vec::new();
        while seen.len() < content.len() {
            let part = read(&file, seen.len() as u64, len);
            assert!(!part.is_empty());
            seen.extend_from_slice(&part);
        }
        assert!(seen == content, "reads of {len}");
        let world = service.world();
        let asked: usize = world.ranges.iter().map(|(_, _, count)| count).sum();
        assert_eq!(asked, content.len(), "reads of {len}: {:?}", world.ranges);
    }
}

#[test]
fn random_reads_ask_for_what_they_want() {
    let content = bytes(64 * MIB);
    let (service, session) = service(&content);
    let file = open(&session, "file", OpenFlags::empty());
    service.forget_log();
    let mut offset = 40 * MIB;
    for round in 0..200 {
        let len = if round % 2 == 0 { 100 } else { 300_000 };
        assert_eq!(read(&file, offset as u64, len), content[offset..offset + len]);
        offset = (offset * 5 + 12_345_677) % (63 * MIB) + 20_000;
    }
    let world = service.world();
    let asked: usize = world.ranges.iter().map(|(_, _, count)| count).sum();
    assert!(asked < 100 * (8192 + 300_000), "{asked} bytes were asked for");
}

#[test]
fn a_reader_gets_ahead_of_itself() {
    let content = bytes(32 * MIB);
    let (service, session) = service(&content);
    let file = open(&session, "file", OpenFlags::empty());
    for step in 0..1024 {
        read(&file, step * 8192, 8192);
    }
    // The window is filled up a quarter at a time, and the service takes in what it is asked though nobody receives.
    let window = session.options().read_ahead_max;
    let asked = || service.world().ranges.iter().map(|(_, _, count)| count).sum::<usize>();
    for _ in 0..1000 {
        if asked() >= 8 * MIB + window / 4 * 3 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let expected = 8 * MIB + window / 4 * 3..=8 * MIB + window;
    assert!(expected.contains(&asked()), "{} bytes were asked for, not {expected:?}", asked());
}

#[test]
fn small_writes_travel_together() {
    let (service, session) = service(b"");
    let file = open(&session, "file", OpenFlags::WRITE_ONLY);
    let content = bytes(100_000);
    let begin = std::time::Instant::now();
    for (offset, byte) in content.iter().enumerate() {
        assert_eq!(file.write_at(&[*byte], offset as u64), Ok(1));
    }
    assert_eq!(file.close(), Ok(()));
    assert!(service.content("file") == content);
    // Slow machines send a run that is old: one in 100 ms.
    let writes_max = 10 + begin.elapsed().as_millis() as usize / 100;
    assert!(service.count("Write") <= writes_max, "{} writes", service.count("Write"));
}

#[test]
fn a_program_that_writes_seldom_is_sent_at_once() {
    let (service, session) = service(b"");
    let file = open(&session, "file", OpenFlags::WRITE_ONLY);
    for line in 0..3 {
        std::thread::sleep(Duration::from_millis(150));
        assert_eq!(file.write_at(b"line\n", line * 5), Ok(5));
    }
    // Sent, not yet executed.
    for _ in 0..1000 {
        if service.content("file") == b"line\nline\nline\n" {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{}", service.content("file").escape_ascii());
}

#[test]
fn large_writes_take_no_round_trip_each() {
    let (service, session) = service(b"");
    service.set(|faults| faults.linger = Duration::from_millis(20));
    let file = open(&session, "file", OpenFlags::WRITE_ONLY);
    let content = bytes(8 * MIB);
    for (index, part) in content.chunks(MIB / 2).enumerate() {
        assert_eq!(file.write_at(part, (index * MIB / 2) as u64), Ok(part.len()));
    }
    assert_eq!(file.flush(), Ok(()));
    assert!(service.content("file") == content);
}

#[test]
fn synchronous_and_shared_writes_are_executed_when_they_return() {
    for (flags, shared) in
        [(OpenFlags::DSYNC, false), (OpenFlags::SYNC, false), (OpenFlags::empty(), true)]
    {
        let (service, session) = service(b"");
        let file = open(&session, "file", OpenFlags::READ_WRITE | flags);
        file.set_shared(shared);
        for offset in 0..10 {
            assert_eq!(file.write_at(b"x", offset), Ok(1));
            assert_eq!(service.content("file").len() as u64, offset + 1);
        }
        service.put("file", b"written by another process");
        if shared {
            assert_eq!(read(&file, 0, 100), b"written by another process");
        }
    }
}

#[test]
fn a_late_error_surfaces_exactly_once() {
    type Ask = fn(&RemoteFile) -> client::Result<()>;
    let asks: [Ask; 5] = [
        |file| file.flush(),
        |file| file.close(),
        |file| file.sync(false),
        |file| file.sync(true),
        |file| {
            // Sent by force, so that the reply is there for the next write.
            file.attributes()?;
            file.write_at(b"more", 0).map(|_| ())
        },
    ];
    for ask in asks {
        let (service, session) = service(b"");
        let file = open(&session, "file", OpenFlags::READ_WRITE);
        assert_eq!(file.write_at(b"well", 0), Ok(4));
        service.set(|faults| faults.refuse_writes = Some(Errno::ENOSPC));
        assert_eq!(file.write_at(b"lost", 0), Ok(4));
        assert_eq!(errno(ask(&file)), Some(Errno::ENOSPC));
        assert_eq!(file.flush(), Ok(()));
        assert_eq!(read(&file, 0, 4), b"well", "what was not written is not there");
        // From now on as without buffers.
        assert_eq!(errno(file.write_at(b"lost", 0)), Some(Errno::ENOSPC));
        assert_eq!(file.flush(), Ok(()));
        service.set(|faults| faults.refuse_writes = None);
        assert_eq!(file.write_at(b"kept", 0), Ok(4));
        assert_eq!(service.content("file"), b"kept");
        assert_eq!(file.close(), Ok(()));
    }
}

#[test]
fn a_full_disk_is_reported_whatever_was_written_how() {
    for (len, space) in
        [(1, 50_000), (100, 2 * MIB), (8192, 80 * MIB), (300_000, 2 * MIB), (3 * MIB, 80 * MIB)]
    {
        let (service, session) = service(b"");
        service.set(|faults| faults.space = Some(space));
        let file = open(&session, "file", OpenFlags::READ_WRITE);
        let data = bytes(len);
        let mut offset = 0;
        let mut failed = 0;
        while offset < 2 * space && failed == 0 {
            match file.write_at(&data, offset as u64) {
                Ok(count) => offset += count,
                Err(error) => {
                    assert_eq!(error.to_errno(), Errno::ENOSPC);
                    failed += 1;
                }
            }
        }
        if file.close().is_err() {
            failed += 1;
        }
        assert!(failed > 0, "writes of {len} bytes: nobody was told");
        assert_eq!(service.content("file").len(), space);
        assert_eq!(file.close(), Ok(()));
    }
}

#[test]
fn a_disk_without_room_refuses_the_write_itself() {
    // Programs that look at the result of close(2) are the better ones.
    for (space, writes) in [(0, 0), (5, 1), (12, 2)] {
        for appends in [false, true] {
            let (service, session) = service(b"");
            service.set(|faults| faults.space = Some(space));
            let append = if appends { OpenFlags::APPEND } else { OpenFlags::empty() };
            let file = open(&session, "file", OpenFlags::WRITE_ONLY | append);
            for line in 0..writes {
                assert_eq!(file.write_at(b"line\n", line * 5), Ok(5));
            }
            assert_eq!(errno(file.write_at(b"line\n", writes * 5)), Some(Errno::ENOSPC));
        }
    }
}

#[test]
fn writing_a_small_file_takes_one_round_trip() {
    let (service, session) = service(b"");
    service.forget_log();
    let file = open(&session, "file", OpenFlags::WRITE_ONLY);
    assert_eq!(file.write_at(b"content", 0), Ok(7));
    assert_eq!(service.content("file"), b"content");
    assert_eq!(file.close(), Ok(()));
    assert_eq!((service.count("Write"), service.count("Statfs")), (1, 1));
}

#[test]
fn writes_outlive_a_break_and_appends_fail_once() {
    for executed in [false, true] {
        let (service, session) = service(b"");
        let file = open(&session, "file", OpenFlags::WRITE_ONLY);
        assert_eq!(file.write_at(b"first", 0), Ok(5));
        assert_eq!(file.write_at(b"content", 0), Ok(7));
        service.set(|faults| faults.cut_in = Some((1, executed)));
        assert_eq!(file.flush(), Ok(()));
        assert_eq!(service.content("file"), b"content");

        let log = open(&session, "file", OpenFlags::WRITE_ONLY | OpenFlags::APPEND);
        assert_eq!(log.append(b"-"), Ok(8));
        assert_eq!(log.append(b"+"), Ok(9));
        service.set(|faults| faults.cut_in = Some((1, executed)));
        assert_eq!(errno(log.flush()), Some(Errno::EIO));
        assert_eq!(log.flush(), Ok(()));
        // Once, or not at all; never twice.
        let content = service.content("file");
        assert_eq!(content, if executed { &b"content-+"[..] } else { b"content-" });
        assert!(log.append(b"!").is_ok());
        assert_eq!(log.close(), Ok(()));
        assert_eq!(service.content("file"), [&content[..], b"!"].concat());
    }
}

#[test]
fn large_writes_outlive_a_break_after_any_piece_though_the_buffer_is_used_again() {
    let content = bytes(2 * MIB);
    for pieces in 1..=8 {
        for executed in [false, true] {
            let (service, session) = service(b"");
            let file = open(&session, "file", OpenFlags::WRITE_ONLY);
            assert_eq!(file.write_at(b"first", 0), Ok(5));
            service.set(|faults| {
                faults.cut_in = Some((pieces, executed));
                faults.linger = Duration::from_millis(2);
            });
            let mut buffer = vec![0; MIB];
            for (index, part) in content.chunks(MIB).enumerate() {
                buffer.copy_from_slice(part);
                assert_eq!(file.write_at(&buffer, (index * MIB) as u64), Ok(MIB));
                buffer.fill(0xff);
            }
            assert_eq!(file.close(), Ok(()));
            assert!(service.content("file") == content, "{pieces} pieces, then a break");
        }
    }
}

#[test]
fn a_large_write_leaves_no_more_behind_than_it_may() {
    let service = Memory::new();
    service.put("file", b"");
    let session = service.session(|options| options.write_behind_max = MIB / 2);
    let file = open(&session, "file", OpenFlags::WRITE_ONLY);
    assert_eq!(file.write_at(b"first", 0), Ok(5));
    service.set(|faults| faults.linger = Duration::from_millis(20));
    let content = bytes(4 * MIB);
    for round in 1..=2 {
        assert_eq!(file.write_at(&content, ((round - 1) * 4 * MIB) as u64), Ok(4 * MIB));
        // What is not executed yet is held here.
        assert!(service.content("file").len() >= round * 4 * MIB - MIB / 2, "round {round}");
    }
    assert_eq!(file.close(), Ok(()));
    assert!(service.content("file") == [&content[..], &content].concat());
}

#[test]
fn a_service_that_stays_away_is_an_error_and_no_hang() {
    let service = Memory::new();
    service.put("file", &bytes(MIB));
    let session = service.session(|options| options.reconnect_for = Duration::from_millis(300));
    let file = open(&session, "file", OpenFlags::READ_WRITE);
    assert_eq!(file.write_at(b"first", 0), Ok(5));
    assert_eq!(file.write_at(b"content", 0), Ok(7));
    service.set(|faults| {
        faults.gone = true;
        faults.cut_in = Some((1, false));
    });
    assert_eq!(errno(file.flush()), Some(Errno::EIO));
    assert_eq!(file.flush(), Ok(()));
    let mut target = [0; 10];
    assert_eq!(errno(file.read_at(&mut target, 500_000)), Some(Errno::EIO));
    service.set(|faults| faults.gone = false);
    assert_eq!(file.write_at(b"content", 0), Ok(7));
    assert_eq!(file.read_at(&mut target[..7], 0), Ok(7));
    assert_eq!(&target[..7], b"content");
    assert_eq!(file.close(), Ok(()));
}

#[test]
fn one_record_is_one_append() {
    let (service, session) = service(b"");
    let log = open(&session, "file", OpenFlags::WRITE_ONLY | OpenFlags::APPEND);
    let record = vec![b'r'; 1000];
    for _ in 0..2500 {
        assert!(log.append(&record).is_ok());
    }
    assert_eq!(log.close(), Ok(()));
    let world = service.world();
    let writes: Vec<_> = world.ranges.iter().filter(|(name, ..)| *name == "Write").collect();
    assert!(writes.len() > 1);
    assert!(writes.iter().all(|(_, _, len)| len % 1000 == 0), "{writes:?}");
}

#[test]
fn access_modes_are_kept() {
    let (_service, session) = service(b"content");
    let reader = open(&session, "file", OpenFlags::empty());
    assert_eq!(errno(reader.write_at(b"x", 0)), Some(Errno::EBADF));
    let writer = open(&session, "file", OpenFlags::WRITE_ONLY);
    assert_eq!(errno(writer.read_at(&mut [0], 0)), Some(Errno::EBADF));
    assert_eq!(writer.write_at(b"C", 0), Ok(1));
    assert_eq!(errno(writer.read_at(&mut [0], 0)), Some(Errno::EBADF));
    assert_eq!(errno(reader.append(b"x")), Some(Errno::EBADF));
    assert_eq!(errno(writer.write_at(b"x", i64::MAX as u64)), Some(Errno::EFBIG));
}

#[test]
fn who_asks_by_name_is_served_after_settling() {
    let (service, session) = service(b"");
    let file = open(&session, "file", OpenFlags::WRITE_ONLY);
    assert_eq!(file.write_at(b"c", 0), Ok(1));
    assert_eq!(file.write_at(b"ontent", 1), Ok(6));
    let stat = opened(&session, "file", OpenFlags::empty()).attributes;
    assert_eq!(stat.size, 1);
    assert!(session.files().settle(stat.qid.path));
    assert_eq!(service.content("file"), b"content");
    assert!(!session.files().settle(stat.qid.path));
    assert_eq!(file.write_at(b"CONTENT", 0), Ok(7));
    session.files().quiesce(|| assert_eq!(service.content("file"), b"CONTENT"));
}

#[test]
fn settling_looks_at_written_files_only_however_many_are_open() {
    let (service, session) = service(b"content");
    let readers: Vec<_> = (0..50).map(|_| open(&session, "file", OpenFlags::empty())).collect();
    let writers: Vec<_> = (0..50).map(|_| open(&session, "file", OpenFlags::WRITE_ONLY)).collect();
    assert_eq!(session.files().settle_all(), 0, "nothing was written");
    assert_eq!(writers[7].write_at(b"CON", 0), Ok(3));
    assert_eq!(writers[7].write_at(b"T", 3), Ok(1));
    assert_eq!(session.files().settle_all(), 1);
    assert_eq!(service.content("file"), b"CONTent");
    assert_eq!(session.files().settle_all(), 0, "it has arrived");
    // What settled by itself, by close(2) or by a reader of the same file, is no work any more.
    assert_eq!(writers[8].write_at(b"con", 0), Ok(3));
    assert_eq!(writers[8].close(), Ok(()));
    assert_eq!(writers[9].write_at(b"t", 3), Ok(1));
    assert_eq!(read(&readers[0], 0, 100), b"content");
    assert_eq!(session.files().settle_all(), 0);
    // Large writes are sent from the caller's buffer, and are as unfinished as small ones.
    let large = vec![b'x'; 1 << 20];
    assert_eq!(writers[10].write_at(&large, 0), Ok(large.len()));
    assert_eq!(writers[10].write_at(&large, 1 << 20), Ok(large.len()));
    drop(writers);
    assert_eq!(session.files().settle_all(), 0, "closed files have settled");
    assert_eq!(service.content("file").len(), 2 << 20);
}

#[test]
fn what_one_open_file_writes_another_reads_at_once() {
    let (_service, session) = service(b"old old old");
    let early = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&early, 0, 11), b"old old old");
    let writer = open(&session, "file", OpenFlags::READ_WRITE);
    assert_eq!(writer.write_at(b"new", 4), Ok(3));
    let late = open(&session, "file", OpenFlags::empty());
    for reader in [&early, &late, &writer] {
        assert_eq!(read(reader, 0, 100), b"old new old");
    }
    assert_eq!(early.size(), Ok(11));
    assert_eq!(writer.truncate(5), Ok(()));
    assert_eq!(read(&early, 0, 100), b"old n");
}

#[test]
fn a_file_emptied_by_another_open_or_by_name_is_seen_empty() {
    let (_service, session) = service(b"old content");
    let early = open(&session, "file", OpenFlags::empty());
    assert_eq!(read(&early, 0, 3), b"old");
    let writer = open(&session, "file", OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE);
    assert_eq!(read(&early, 3, 100), b"");
    assert_eq!(writer.write_at(b"new content", 0), Ok(11));
    assert_eq!(writer.close(), Ok(()));
    drop(writer);
    assert_eq!(read(&early, 0, 3), b"new");
    let set = SetAttributes { valid: SetattrMask::SIZE, size: 5, ..SetAttributes::default() };
    assert_eq!(session.set_attributes(At::root(b"file"), true, &set), Ok(()));
    assert_eq!(read(&early, 3, 100), b" c");
}

#[test]
fn threads_read_and_write_one_file() {
    const PART: usize = 300_000;
    let content = bytes(8 * PART);
    let (service, session) = service(&content);
    service.set(|faults| faults.shuffle = Some(1));
    let file = open(&session, "file", OpenFlags::READ_WRITE);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (file, content) = (&file, &content);
            scope.spawn(move || {
                let begin = thread * PART;
                for round in 0..300 {
                    let at = begin + round * 997 % (PART - 5000);
                    if thread % 2 == 0 {
                        let len =
                            if round % 50 == 0 { 100_000.min(begin + PART - at) } else { 3000 };
                        assert!(read(file, at as u64, len) == content[at..at + len]);
                    } else {
                        let data = vec![round as u8; 1000];
                        assert_eq!(file.write_at(&data, at as u64), Ok(1000));
                        assert!(read(file, at as u64, 1000) == data);
                    }
                }
            });
        }
    });
    assert_eq!(file.close(), Ok(()));
    for thread in (0..8).step_by(2) {
        let part = thread * PART..(thread + 1) * PART;
        assert!(service.content("file")[part.clone()] == content[part]);
    }
}

#[test]
fn readers_of_one_file_wait_side_by_side() {
    let (service, session) = service(&bytes(16 * MIB));
    let file = open(&session, "file", OpenFlags::empty());
    service.forget_log();
    // Who waited for another's reply before it asks would wait until the session gives up.
    service.set(|faults| faults.hold_until_reads = 15);
    std::thread::scope(|scope| {
        for thread in 1..16_u64 {
            let file = &file;
            scope.spawn(move || assert_eq!(read(file, thread * MIB as u64, 100).len(), 100));
        }
    });
    assert_eq!(service.count("Read"), 15);
}

/// A planned batch is not alone with the file: the process has other openings with caches of their own.
#[test]
fn batches_see_what_was_written_before_and_are_seen_at_once() {
    let (service, session) = service(&bytes(10_000));
    let file = open(&session, "file", OpenFlags::READ_WRITE);
    let other = open(&session, "file", OpenFlags::READ_WRITE);
    assert_eq!(read(&other, 0, 6), [0, 0, 0, 1, 1, 1]);
    // Gathered, and not sent yet.
    assert_eq!(other.write_at(b"late", 100), Ok(4));
    assert_eq!(file.write_at(b"own", 200), Ok(3));
    let (mut late, mut own, mut end) = ([0; 4], [0; 3], [7; 8]);
    let mut parts = [
        ReadPart::new(100, &mut late),
        ReadPart::new(200, &mut own),
        ReadPart::new(9_997, &mut end),
    ];
    assert_eq!(file.read_parts(&mut parts), Ok(()));
    assert_eq!(parts.map(|part| part.done), [4, 3, 3]);
    assert_eq!((&late, &own), (b"late", b"own"));

    let mut parts = [WritePart::new(0, b"abc"), WritePart::new(12_000, b"end")];
    assert_eq!(file.write_parts(&mut parts), Ok(()));
    assert_eq!(parts.map(|part| part.done), [3, 3]);
    assert_eq!(service.content("file")[12_000..], *b"end");
    assert_eq!(read(&other, 0, 6), *b"abc\x01\x01\x01");
    assert_eq!((other.size(), file.size()), (Ok(12_003), Ok(12_003)));
}

#[test]
fn batches_are_refused_where_a_single_call_would_be() {
    let (_service, session) = service(b"content");
    let mut byte = [0];
    let mut read = [ReadPart::new(0, &mut byte)];
    let mut write = [WritePart::new(0, b"x")];
    let writer = open(&session, "file", OpenFlags::WRITE_ONLY);
    assert_eq!(errno(writer.read_parts(&mut read)), Some(Errno::EBADF));
    let reader = open(&session, "file", OpenFlags::empty());
    assert_eq!(errno(reader.write_parts(&mut write)), Some(Errno::EBADF));
    let appender = open(&session, "file", OpenFlags::WRITE_ONLY | OpenFlags::APPEND);
    assert_eq!(errno(appender.write_parts(&mut write)), Some(Errno::EINVAL));
}
