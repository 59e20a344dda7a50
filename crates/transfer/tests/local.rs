//! Local files: descriptors of every kind, ends of files, locks between open files.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use sieve::{FileView, Profile, Tuple, Warmth};
use transfer::{Engine, Error, LocalFile, LockKind, Locking, Target};

const ALL: [&str; 6] = ["naive", "romio", "simple_pm", "extent", "scanfile", "adaptive"];

fn engine(name: &str) -> Engine {
    Engine::by_name(name, Profile::default()).expect("it exists")
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 % 251) as u8 + 1).collect()
}

fn file_with(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(content).expect("room for it");
    file
}

fn read(fd: BorrowedFd<'_>, view: &FileView, name: &str, out: &mut [u8]) -> transfer::Result<u64> {
    engine(name).read(&LocalFile::new(fd), view, &mut vec![0; 65536], 0, out)
}

#[test]
fn every_way_reads_and_writes_the_same_bytes() {
    let content = bytes(400_000);
    let nested = [sieve::Level { count: 20, hole: 30 }, sieve::Level { count: 4, hole: 3000 }];
    let list = (0..500u64).map(|n| Tuple { size: 1 + n * 37 % 900, hole: n * n % 3000 });
    let views = [
        FileView::strided(5, 8, 24).unwrap(),
        FileView::strided(100, 3000, 9000).unwrap(),
        FileView::strided(0, 6000, 100).unwrap(),
        FileView::nested(7, 12, &nested, 10_000).unwrap(),
        FileView::from_tuples(3, list).unwrap(),
    ];
    for view in &views {
        for name in ALL {
            let file = file_with(&content);
            let mut out = vec![0; 50_000];
            let done = read(file.as_fd(), view, name, &mut out).unwrap() as usize;
            let blocks: Vec<_> = view.blocks(0, out.len() as u64).unwrap().collect();
            let places = || blocks.iter().flat_map(|block| block.file..block.file + block.len);
            let there = places().take_while(|place| (*place as usize) < content.len()).count();
            assert_eq!(done, there, "{name}");
            assert!(places().zip(&out[..done]).all(|(at, byte)| content[at as usize] == *byte));

            let data = vec![0xCC; 50_000];
            let target = LocalFile::new(file.as_fd());
            let written = engine(name).write(&target, view, &mut vec![0; 65536], 0, &data);
            assert_eq!(written, Ok(50_000));
            let end = places().last().unwrap() as usize + 1;
            let mut expected = content.clone();
            expected.resize(expected.len().max(end), 0);
            places().for_each(|at| expected[at as usize] = 0xCC);
            let mut now = vec![0; expected.len() + 1];
            assert_eq!(file.read_at(&mut now, 0).unwrap(), expected.len(), "{name}");
            assert!(now[..expected.len()] == expected, "{name}: bytes differ");
        }
    }
}

#[test]
fn pipes_and_sockets_are_espipe() {
    let view = FileView::strided(0, 8, 8).unwrap();
    let (pipe_in, pipe_out) = std::io::pipe().unwrap();
    let (socket, _peer) = UnixStream::pair().unwrap();
    for name in ALL {
        for len in [0, 1, 100] {
            for fd in [pipe_in.as_fd(), socket.as_fd()] {
                let error = read(fd, &view, name, &mut vec![0; len]).unwrap_err();
                assert_eq!(error.to_errno(), Errno::SPIPE, "{name}, {len} bytes");
            }
            for fd in [pipe_out.as_fd(), socket.as_fd()] {
                let target = LocalFile::new(fd);
                let written = engine(name).write(&target, &view, &mut [0; 512], 0, &vec![0; len]);
                assert_eq!(written.unwrap_err().to_errno(), Errno::SPIPE, "{name}, {len} bytes");
            }
        }
    }
}

#[test]
fn descriptors_are_used_only_for_what_they_are_open_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, bytes(1000)).unwrap();
    let view = FileView::strided(0, 8, 8).unwrap();
    let write = |file: &File, name: &str| {
        let target = LocalFile::new(file.as_fd());
        engine(name).write(&target, &view, &mut [0; 512], 0, &[9; 100])
    };
    for name in ALL {
        let read_only = File::open(&path).unwrap();
        assert_eq!(write(&read_only, name).unwrap_err().to_errno(), Errno::BADF, "{name}");
        let append = OpenOptions::new().append(true).open(&path).unwrap();
        assert_eq!(write(&append, name), Err(Error::Append), "{name}");
        let write_only = OpenOptions::new().write(true).open(&path).unwrap();
        let mut out = [0; 10];
        let read = read(write_only.as_fd(), &view, name, &mut out);
        assert_eq!(read.unwrap_err().to_errno(), Errno::BADF, "{name}");
        let is_dir = File::open(directory.path()).unwrap();
        let read = self::read(is_dir.as_fd(), &view, name, &mut out);
        assert_eq!(read.unwrap_err().to_errno(), Errno::ISDIR, "{name}");
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1000);
    // Blocks by themselves need nothing to be read.
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    assert_eq!(write(&write_only, "adaptive"), Ok(100));
    assert_eq!(write(&write_only, "naive"), Ok(100));
    assert_eq!(write(&write_only, "romio"), Err(Error::NotReadable));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1000);
}

#[test]
fn offsets_beyond_4_gib_reach_the_file() {
    let file = file_with(b"");
    let view = FileView::strided(1, 4, (5 << 30) - 4).unwrap();
    let target = LocalFile::new(file.as_fd());
    for name in ALL {
        let mut engine = engine(name);
        assert_eq!(engine.write(&target, &view, &mut [0; 64], 2, b"abcdefgh"), Ok(8));
        let mut out = [0; 4];
        file.read_at(&mut out, (5 << 30) + 1).unwrap();
        assert_eq!(&out, b"cdef", "{name}");
        let mut out = [0; 8];
        assert_eq!(engine.read(&target, &view, &mut [0; 64], 2, &mut out), Ok(8));
        assert_eq!(&out, b"abcdefgh", "{name}");
    }
}

#[test]
fn a_full_device_is_enospc() {
    let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
    let view = FileView::strided(0, 8, 8).unwrap();
    for name in ALL {
        let target = LocalFile::new(full.as_fd());
        let error = engine(name).write(&target, &view, &mut [0; 512], 0, &[9; 100]).unwrap_err();
        assert_eq!(error.to_errno(), Errno::NOSPC, "{name}");
    }
}

#[test]
fn windows_wait_for_the_locks_of_other_open_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, bytes(4000)).unwrap();
    let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let (mine, theirs) = (open(), open());
    let mine = LocalFile::new(mine.as_fd());
    mine.lock(100..200, LockKind::Exclusive).unwrap();
    let (done, is_done) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let view = FileView::strided(0, 8, 8).unwrap();
            let target = LocalFile::new(theirs.as_fd());
            // A single writer does not wait; others do, each by itself.
            let mut free = engine("romio").locking(Locking::SingleWriter);
            done.send(free.write(&target, &view, &mut [0; 512], 0, &[9; 100])).unwrap();
            let mut locked = engine("romio");
            done.send(locked.write(&target, &view, &mut [0; 512], 0, &[9; 100])).unwrap();
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(Ok(100)));
        assert!(is_done.recv_timeout(Duration::from_millis(100)).is_err(), "it did not wait");
        mine.unlock(100..200);
        assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(Ok(100)));
    });
}

#[test]
fn two_writers_of_neighbouring_blocks_lose_nothing() {
    const BLOCKS: usize = 4000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![0; BLOCKS * 32]).unwrap();
    let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // One sieves, the other writes blocks by themselves; each is kept by the other's locks.
    let writer = |file: File, displacement: u64, name: &'static str, byte: u8| {
        let view = FileView::strided(displacement, 16, 16).unwrap();
        let target = LocalFile::new(file.as_fd());
        let mut engine = engine(name).locking(Locking::All);
        for turn in 0..5u8 {
            let data = vec![byte + turn; BLOCKS * 16];
            for (part, data) in data.chunks(1600).enumerate() {
                let offset = part as u64 * 1600;
                let done = engine.write(&target, &view, &mut [0; 4096], offset, data);
                assert_eq!(done, Ok(data.len() as u64));
            }
        }
    };
    let (first, second) = (open(), open());
    std::thread::scope(|scope| {
        scope.spawn(move || writer(first, 0, "romio", 10));
        scope.spawn(move || writer(second, 16, "naive", 100));
    });
    let content = std::fs::read(&path).unwrap();
    for (number, block) in content.chunks(16).enumerate() {
        let expected = if number % 2 == 0 { 14 } else { 104 };
        assert!(block.iter().all(|byte| *byte == expected), "block {number}: {block:?}");
    }
}

#[test]
fn threads_that_share_an_open_file_lose_nothing() {
    const BLOCKS: usize = 4000;
    const WRITERS: usize = 4;
    let file = file_with(&vec![0; BLOCKS * WRITERS * 8]);
    let fd = file.as_fd();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let (block, hole) = (8, 8 * (WRITERS as u64 - 1));
                let view = FileView::strided(8 * writer as u64, block, hole).unwrap();
                let target = LocalFile::new(fd);
                let mut engine = engine("romio");
                let data = vec![1 + writer as u8; BLOCKS * 8];
                // Windows of different sizes, so that they do not just take turns.
                let mut buffer = vec![0; 4096 + 1000 * writer];
                for _ in 0..20 {
                    let done = engine.write(&target, &view, &mut buffer, 0, &data);
                    assert_eq!(done, Ok(data.len() as u64));
                }
            });
        }
    });
    let mut content = vec![0; BLOCKS * WRITERS * 8];
    file.read_exact_at(&mut content, 0).unwrap();
    for (number, block) in content.chunks(8).enumerate() {
        let expected = 1 + (number % WRITERS) as u8;
        assert!(block.iter().all(|byte| *byte == expected), "block {number}: {block:?}");
    }
}

#[test]
fn a_traditional_lock_of_the_process_itself_is_not_waited_for() {
    let file = file_with(&bytes(4000));
    let traditional = |kind: i32| {
        let lock = nix::libc::flock {
            l_type: kind as i16,
            l_whence: nix::libc::SEEK_SET as i16,
            l_start: 0,
            l_len: 0,
            l_pid: 0,
        };
        nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETLK(&lock)).unwrap();
    };
    let view = FileView::strided(0, 8, 8).unwrap();
    let write = |locking| {
        let target = LocalFile::new(file.as_fd());
        engine("romio").locking(locking).write(&target, &view, &mut [0; 512], 0, &[9; 100])
    };
    traditional(nix::libc::F_WRLCK);
    assert_eq!(write(Locking::Windows).unwrap_err().to_errno(), Errno::DEADLK);
    assert_eq!(write(Locking::SingleWriter), Ok(100));
    traditional(nix::libc::F_UNLCK);
    assert_eq!(write(Locking::Windows), Ok(100));
}

#[test]
fn pages_that_are_not_in_memory_are_cold() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("file");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all_at(&bytes(1 << 20), 0).unwrap();
    let target = LocalFile::new(file.as_fd());
    assert_eq!(target.warmth(0..1 << 20), Warmth::Warm);
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    // File systems in memory have nowhere else to keep the pages.
    if rustix::fs::fstatfs(&file).unwrap().f_type != 0x0102_1994 {
        assert_eq!(target.warmth(0..1 << 20), Warmth::Cold);
    }
    // Many requests in flight, and the same bytes.
    let view = FileView::strided(0, 512, 30_000).unwrap();
    let mut out = vec![0; 512 * 30];
    let done = engine("adaptive").read(&target, &view, &mut vec![0; 1 << 16], 0, &mut out);
    assert_eq!(done, Ok(512 * 30));
    let content = bytes(1 << 20);
    for (number, block) in out.chunks(512).enumerate() {
        assert_eq!(block, &content[number * 30_512..][..512]);
    }
}
