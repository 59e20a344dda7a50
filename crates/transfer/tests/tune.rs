//! Measuring and fitting, on a target whose times are known, and on a file.

use std::cell::RefCell;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use sieve::model::{Sample, Warmth};
use sieve::{Access, Method, Profile};
use transfer::tune::Bench;
use transfer::{LocalFile, Target};

/// A file that takes 50 µs for a request and 20 ns for a byte.
struct Slow(RefCell<Vec<u8>>);

const REQUEST: Duration = Duration::from_micros(50);
const BYTE_NS: f64 = 20.0;

fn wait(bytes: usize) {
    let end = Instant::now() + REQUEST + Duration::from_nanos((bytes as f64 * BYTE_NS) as u64);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

impl Target for Slow {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        wait(buf.len());
        buf.copy_from_slice(&self.0.borrow()[offset as usize..][..buf.len()]);
        Ok(buf.len())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        wait(data.len());
        self.0.borrow_mut()[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(data.len())
    }
}

#[test]
fn a_slow_target_is_found_to_be_slow() {
    let target = Slow(RefCell::new(vec![7; 1 << 20]));
    let samples = Bench::new(&target, 1 << 20, Duration::from_secs(2)).samples().unwrap();
    assert!(samples.len() > 10, "{}", samples.len());
    // It has no cache, so all of it is cold.
    assert!(samples.iter().all(|sample| sample.now.warmth == Warmth::Cold));
    let mut start = Profile::default();
    (start.device.unit_bytes, start.device.latency_ns) = (1, 1e3);
    let fitted = start.fitted(&samples);
    let device = &fitted.device;
    let latency = device.latency_ns + fitted.read.call_ns;
    // A busy machine makes it slower still, but nothing faster.
    assert!((25e3..1e6).contains(&latency), "{fitted:?}");
    let byte = device.byte_ns + fitted.read.byte_ns;
    assert!((8.0..400.0).contains(&byte), "{fitted:?}");
}

#[test]
fn a_local_file_gives_samples_of_every_kind_and_a_sound_profile() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![5; 8 << 20]).unwrap();
    let target = LocalFile::new(file.as_fd());
    let mut forgotten = 0;
    let mut forget = || forgotten += 1;
    let bench = Bench::new(&target, 8 << 20, Duration::from_secs(20)).writes().cold(8, &mut forget);
    let samples = bench.samples().unwrap();
    let has = |test: &dyn Fn(&Sample) -> bool| samples.iter().any(test);
    for method in [Method::Each, Method::Window, Method::Vector] {
        for access in [Access::Read, Access::Write] {
            for warmth in [Warmth::Warm, Warmth::Cold] {
                assert!(has(&|sample| {
                    (sample.method, sample.now.access, sample.now.warmth)
                        == (method, access, warmth)
                }));
            }
        }
    }
    assert!(has(&|sample| sample.now.in_flight == 8));
    assert!(samples.iter().all(|sample| sample.ns > 0.0));
    assert!(forgotten > 50);
    assert_eq!(file.metadata().unwrap().len(), 8 << 20, "it grew");
    let fitted = Profile::default().fitted(&samples);
    assert_eq!(fitted.check(), Ok(()));
}
