//! Remote files against a vector of bytes: whatever several open files do to one file, over a
//! service that executes out of order and hangs up, reads give what was written.

mod memory;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use client::{Dial, Link, Options, Session};
use memory::{Memory, open};
use p9::OpenFlags;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use service::{Direct, Running, Service};
use store::Store;
use store::fs::FsStore;

/// Room in which offsets fall.
const SPAN: u64 = 200 * 1024;

#[derive(Debug, Clone)]
enum Step {
    Write {
        file: usize,
        offset: u64,
        len: usize,
    },
    Append {
        len: usize,
    },
    Read {
        file: usize,
        offset: u64,
        len: usize,
    },
    /// So many reads or writes of `len` bytes one behind the other.
    Stream {
        file: usize,
        offset: u64,
        len: usize,
        count: usize,
        writes: bool,
    },
    Truncate {
        file: usize,
        size: u64,
    },
    Flush {
        file: usize,
    },
    Send {
        file: usize,
    },
    Sync {
        file: usize,
    },
    Size {
        file: usize,
    },
    Attributes {
        file: usize,
    },
    Invalidate {
        file: usize,
    },
    Reopen {
        file: usize,
    },
}

/// The file that was opened with `O_APPEND`.
const APPENDER: usize = 2;

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![0..SPAN, 0u64..9000, (0..SPAN / 4096).prop_map(|page| page * 4096)]
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 1usize..100,
        4 => 1usize..10_000,
        1 => 60_000usize..300_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let file = || 0usize..2;
    prop_oneof![
        8 => (file(), offset(), len())
            .prop_map(|(file, offset, len)| Step::Write { file, offset, len }),
        10 => (0usize..3, offset(), len())
            .prop_map(|(file, offset, len)| Step::Read { file, offset, len }),
        4 => (file(), offset(), 1usize..5000, 1usize..40, any::<bool>()).prop_map(
            |(file, offset, len, count, writes)| Step::Stream { file, offset, len, count, writes }
        ),
        2 => len().prop_map(|len| Step::Append { len }),
        1 => (0usize..3, 0..SPAN).prop_map(|(file, size)| Step::Truncate { file, size }),
        1 => (0usize..3).prop_map(|file| Step::Flush { file }),
        1 => (0usize..3).prop_map(|file| Step::Send { file }),
        1 => (0usize..3).prop_map(|file| Step::Sync { file }),
        1 => (0usize..3).prop_map(|file| Step::Size { file }),
        1 => (0usize..3).prop_map(|file| Step::Attributes { file }),
        1 => (0usize..3).prop_map(|file| Step::Invalidate { file }),
        1 => (0usize..3).prop_map(|file| Step::Reopen { file }),
    ]
}

struct Bench {
    model: Vec<u8>,
    files: Vec<client::RemoteFile>,
    filler: u8,
}

impl Bench {
    fn data(&mut self, len: usize) -> Vec<u8> {
        self.filler = self.filler.wrapping_add(1);
        let filler = self.filler;
        (0..len).map(|i| filler.wrapping_add((i / 7) as u8)).collect()
    }

    fn write(&mut self, file: usize, offset: u64, len: usize) -> Result<(), TestCaseError> {
        let data = self.data(len);
        prop_assert_eq!(self.files[file].write_at(&data, offset), Ok(len));
        let end = offset as usize + len;
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[offset as usize..end].copy_from_slice(&data);
        Ok(())
    }

    fn read(&mut self, file: usize, offset: u64, len: usize) -> Result<(), TestCaseError> {
        let mut target = vec![0xEE; len];
        let count = self.files[file].read_at(&mut target, offset);
        let expected = self.model.get(offset as usize..).unwrap_or(&[]);
        let expected = &expected[..expected.len().min(len)];
        prop_assert_eq!(count, Ok(expected.len()));
        let differs = target.iter().zip(expected).position(|(a, b)| a != b);
        prop_assert_eq!(differs, None, "first wrong byte of the read at {}", offset);
        Ok(())
    }
}

fn limits(options: &mut Options, seed: u64) {
    options.msize = if seed.is_multiple_of(3) { 1024 * 1024 + 4096 } else { 12 * 1024 };
    options.read_ahead_max = 1 << (13 + seed % 8);
    options.write_behind_max = [0, 20_000, 16 << 20][(seed % 5).min(2) as usize];
}

fn run_in_memory(
    steps: Vec<Step>,
    seed: u64,
    appends: bool,
    cut_every: Option<usize>,
) -> TestCaseResult {
    let service = Memory::new();
    service.put("file", &[0x55; 30_000]);
    service.set(|faults| {
        faults.shuffle = Some(seed);
        faults.linger = Duration::from_micros(seed % 4 * 30);
        faults.cut_every = cut_every;
    });
    let session = service.session(|options| limits(options, seed));
    run(steps, &session, appends, &|| service.content("file"))
}

/// The real service over a directory, or (`direct`) called as a function.
fn run_for_real(steps: Vec<Step>, seed: u64, direct: bool) -> TestCaseResult {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    std::fs::write(&path, [0x55; 30_000]).expect("a file");
    let store: Arc<dyn Store> = Arc::new(FsStore::new(dir.path()).expect("a store"));
    let mut options = Options::default();
    limits(&mut options, seed);
    let dial: Box<dyn Dial> = if direct {
        Box::new(client::direct(Arc::new(Direct::new(store))))
    } else {
        Box::new(Pairs(Service::builder(store).start().expect("a service")))
    };
    let session = Session::new(dial, options);
    run(steps, &session, true, &|| std::fs::read(&path).expect("the file"))
}

/// Dials by handing the service one end of a socket pair.
struct Pairs(Running);

impl Dial for Pairs {
    fn dial(&self, request_timeout: Duration) -> client::Result<Link> {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        ours.set_read_timeout(Some(request_timeout)).expect("a timeout");
        self.0.adopt(OwnedFd::from(theirs)).expect("a thread");
        Ok(Link::Stream(OwnedFd::from(ours)))
    }

    fn peer(&self) -> String {
        "the service".to_owned()
    }
}

fn run(
    steps: Vec<Step>,
    session: &Arc<Session>,
    appends: bool,
    content: &dyn Fn() -> Vec<u8>,
) -> TestCaseResult {
    let flags = |file: usize| match file {
        APPENDER => OpenFlags::READ_WRITE | OpenFlags::APPEND,
        _ => OpenFlags::READ_WRITE,
    };
    let files = (0..3).map(|file| open(session, "file", flags(file))).collect();
    let mut bench = Bench { model: vec![0x55; 30_000], files, filler: 0 };
    for step in steps {
        match step {
            Step::Write { file, offset, len } => bench.write(file, offset, len)?,
            Step::Append { len } => {
                if appends {
                    let data = bench.data(len);
                    let size = bench.files[APPENDER].append(&data);
                    bench.model.extend_from_slice(&data);
                    prop_assert_eq!(size, Ok(bench.model.len() as u64));
                }
            }
            Step::Read { file, offset, len } => bench.read(file, offset, len)?,
            Step::Stream { file, mut offset, len, count, writes } => {
                for _ in 0..count {
                    if writes {
                        bench.write(file, offset, len)?;
                    } else {
                        bench.read(file, offset, len)?;
                    }
                    offset += len as u64;
                }
            }
            Step::Truncate { file, size } => {
                prop_assert_eq!(bench.files[file].truncate(size), Ok(()));
                bench.model.resize(size as usize, 0);
            }
            Step::Flush { file } => {
                prop_assert_eq!(bench.files[file].flush(), Ok(()));
            }
            Step::Send { file } => bench.files[file].send(),
            Step::Sync { file } => {
                prop_assert_eq!(bench.files[file].sync(false), Ok(()));
            }
            Step::Size { file } => {
                prop_assert_eq!(bench.files[file].size(), Ok(bench.model.len() as u64));
            }
            Step::Attributes { file } => {
                // Others' writes are settled too before anybody asks for attributes by a file.
                let attributes = bench.files[file].attributes();
                prop_assert_eq!(attributes.map(|a| a.size), Ok(bench.model.len() as u64));
            }
            Step::Invalidate { file } => bench.files[file].invalidate(),
            Step::Reopen { file } => {
                prop_assert_eq!(bench.files[file].close(), Ok(()));
                bench.files[file] = open(session, "file", flags(file));
            }
        }
    }
    for file in &bench.files {
        prop_assert_eq!(file.close(), Ok(()));
    }
    let content = content();
    prop_assert_eq!(content.len(), bench.model.len());
    let differs = content.iter().zip(&bench.model).position(|(a, b)| a != b);
    prop_assert_eq!(differs, None, "first wrong byte at the service");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 3000, ..ProptestConfig::default() })]

    #[test]
    fn remote_files_are_the_bytes_that_were_written(
        steps in prop::collection::vec(step(), 1..40),
        seed: u64,
    ) {
        run_in_memory(steps, seed, true, None)?;
    }

    #[test]
    fn breaks_lose_and_change_nothing(
        steps in prop::collection::vec(step(), 1..40),
        seed: u64,
        every in 2usize..40,
    ) {
        run_in_memory(steps, seed, false, Some(every))?;
    }

    #[test]
    fn the_real_service_keeps_what_was_written(
        steps in prop::collection::vec(step(), 1..40),
        seed: u64,
        direct: bool,
    ) {
        run_for_real(steps, seed, direct)?;
    }
}
