//! Views that are a file of a replica, to which the kernel writes by itself.

mod support;

use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dataset::{Call, Dataset, DatasetStore, Edit, Faults, Options, Verdict};
use p9::OpenFlags;
use store::{OpenNode, Store};
use support::{Random, Scratch};

const N: usize = 40_000;

const POINTS: &str = "
dataset {
    const N = 40000
    type Point struct { a, b, c float32 }
    var data [N]Point
}
view aos { var data = data }
view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }
view twice { var data = data; var again = data }
view swapped bigendian { var data = data }
";

fn open(path: &Path) -> (Arc<Dataset>, DatasetStore) {
    let dataset = Arc::new(Dataset::open(path, &Options::default()).unwrap());
    (Arc::clone(&dataset), DatasetStore::new(dataset))
}

fn file(store: &DatasetStore, view: &str, flags: OpenFlags) -> Arc<dyn OpenNode> {
    let found = store.root().unwrap().walk(&[view.as_bytes()]).unwrap();
    found.end.unwrap().open(flags).unwrap()
}

/// What splice(2) does for a service.
fn give(data: &[u8], offset: u64) -> impl FnMut(BorrowedFd<'_>) -> usize {
    move |fd| {
        let file = std::fs::File::from(fd.try_clone_to_owned().unwrap());
        file.write_at(data, offset).unwrap()
    }
}

/// As a service writes: by the kernel, if that can be.
fn write(node: &dyn OpenNode, data: &[u8], offset: u64) -> bool {
    let given = node.write_by_kernel(offset, data.len(), &mut give(data, offset));
    if given == 0 {
        assert_eq!(node.write_at(data, offset).unwrap(), data.len());
    }
    assert!(given == 0 || given == data.len());
    given > 0
}

fn whole(dataset: &Dataset, view: &str) -> Vec<u8> {
    let view = dataset.view(view).unwrap();
    let mut bytes = vec![0; dataset.size(view) as usize];
    assert_eq!(dataset.read(view, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Structs of three numbers as three arrays.
fn arrays(aos: &[u8]) -> Vec<u8> {
    (0..3).flat_map(|k| aos.chunks_exact(12).flat_map(move |p| p[4 * k..][..4].to_vec())).collect()
}

#[test]
fn the_kernel_writes_where_nothing_but_one_file_has_to_know() {
    for (replicas, view, by_kernel) in [
        ("replica one { view aos }", "aos", true),
        ("replica one { view soa }", "soa", true),
        ("replica one { view swapped }", "swapped", true),
        ("replica one { view swapped }", "aos", false),
        ("replica one { view aos }; replica two on-close { view soa }", "aos", true),
        ("replica one { view aos }", "soa", false),
        ("replica one { view aos }; replica two { view soa }", "aos", false),
        ("replica one { view aos }; replica two async { view soa }", "aos", false),
        ("replica one { view twice }", "twice", false),
        ("replica one { view twice }", "aos", false),
        ("replica one { view aos; view soa }", "aos", false),
        ("replica one hdf5 { view aos }", "aos", false),
    ] {
        let scratch = Scratch::new();
        let path = scratch.definition("p.drepl", &format!("{POINTS}{replicas}"));
        let (dataset, store) = open(&path);
        let node = file(&store, view, OpenFlags::READ_WRITE);
        assert!(node.as_fd().is_none(), "nobody writes unseen");
        let (before, size) = (dataset.version(), dataset.size(dataset.view(view).unwrap()));
        let data = Random::new(3).bytes(12 * N);
        for (index, piece) in data.chunks(100_001).enumerate() {
            assert_eq!(
                write(&*node, piece, 100_001 * index as u64),
                by_kernel,
                "{replicas}, {view}"
            );
        }
        assert!(dataset.version() > before, "{replicas}");
        // Nothing is written past the end, and not a byte that another opening may not write.
        for (flags, offset) in [
            (OpenFlags::READ_WRITE, size - 3),
            (OpenFlags::READ_WRITE, u64::MAX - 2),
            (OpenFlags::empty(), 0),
            (OpenFlags::READ_WRITE | OpenFlags::APPEND, 0),
        ] {
            let node = file(&store, view, flags);
            let given = node.write_by_kernel(offset, 4, &mut |_| panic!("a write at {offset}"));
            assert_eq!(given, 0);
        }
        drop(node);
        assert!(whole(&dataset, view)[..12 * N] == data, "{replicas}, {view}");
        dataset.sync().unwrap();
        if replicas.contains("two") {
            assert!(scratch.bytes("two") == arrays(&data), "{replicas}");
        }
    }
}

/// Ends whoever looks at it, also when what comes before has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_replica_that_is_made_meanwhile_misses_nothing() {
    for kind in ["", "async", "on-close"] {
        let scratch = Scratch::new();
        let path = scratch.definition("p.drepl", &format!("{POINTS}replica one {{ view aos }}\n"));
        let (dataset, store) = open(&path);
        let node = file(&store, "aos", OpenFlags::WRITE_ONLY);
        let (mut expected, stop) = (vec![0; 12 * N], AtomicBool::new(false));
        let (written, by_kernel) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            let writer = scope.spawn(|| {
                let mut random = Random::new(5);
                while !stop.load(Ordering::SeqCst) {
                    let at = random.below(12 * N - 2000);
                    let len = 1 + random.below(2000);
                    let data = random.bytes(len);
                    by_kernel
                        .fetch_add(u64::from(write(&*node, &data, at as u64)), Ordering::SeqCst);
                    expected[at..at + len].copy_from_slice(&data);
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
            let wait = |more: u64| {
                let until = written.load(Ordering::SeqCst) + more;
                while written.load(Ordering::SeqCst) < until && !writer.is_finished() {
                    std::thread::yield_now();
                }
            };
            wait(20);
            assert_eq!(by_kernel.load(Ordering::SeqCst), written.load(Ordering::SeqCst));
            let add = format!("replica \"two\" {kind} {{ view soa }}");
            dataset.change(&Edit::Add(add)).unwrap();
            let before = by_kernel.load(Ordering::SeqCst);
            let made = dataset.rebuild("two", &mut |_, _| {
                wait(20);
                true
            });
            assert!(made.unwrap(), "{kind}");
            assert!(by_kernel.load(Ordering::SeqCst) > before, "{kind}: while it is made");
            wait(20);
            if kind != "on-close" {
                let before = by_kernel.load(Ordering::SeqCst);
                wait(20);
                assert_eq!(by_kernel.load(Ordering::SeqCst), before, "{kind}: it is written, too");
            }
        });
        assert!(whole(&dataset, "soa") == arrays(&expected), "{kind}");
        assert!(whole(&dataset, "aos") == expected, "{kind}");
        drop(node);
        dataset.sync().unwrap();
        assert!(scratch.bytes("two") == arrays(&expected), "{kind}");
    }
}

#[test]
fn the_only_file_is_another_one_after_it_was_made_anew() {
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", &format!("{POINTS}replica one {{ view aos }}\n"));
    let (dataset, store) = open(&path);
    let node = file(&store, "aos", OpenFlags::WRITE_ONLY);
    assert!(write(&*node, &[1; 1000], 0));
    let lost = std::fs::File::open(scratch.path().join("one")).unwrap();
    std::fs::remove_file(scratch.path().join("one")).unwrap();
    assert!(dataset.rebuild("one", &mut |_, _| true).unwrap());
    assert!(!write(&*node, &[2; 1000], 500), "it has the descriptor of the old one");
    let mut old = [0; 1500];
    assert_eq!(lost.read_at(&mut old, 0).unwrap(), 1500);
    assert_eq!(old[..1000], [1; 1000]);
    assert_eq!(scratch.bytes("one")[..500], [1; 500]);
    assert_eq!(scratch.bytes("one")[500..1500], [2; 1000]);
    assert!(write(&*file(&store, "aos", OpenFlags::WRITE_ONLY), &[3; 10], 0));
    assert_eq!(scratch.bytes("one")[..10], [3; 10]);
}

/// The disk is full.
struct Full(AtomicBool);

impl Faults for Full {
    fn judge(&self, call: &Call<'_>) -> Verdict {
        let is_full = self.0.load(Ordering::SeqCst) && call.path.ends_with("one");
        if is_full { Verdict::Fail(28) } else { Verdict::Go }
    }
}

#[test]
fn what_cannot_be_written_is_told_by_the_ordinary_way() {
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", &format!("{POINTS}replica one {{ view aos }}\n"));
    let full = Arc::new(Full(AtomicBool::new(false)));
    let faults: Arc<dyn Faults> = Arc::clone(&full) as _;
    let options = Options { faults: Some(faults), ..Options::default() };
    let dataset = Arc::new(Dataset::open(&path, &options).unwrap());
    let store = DatasetStore::new(dataset);
    let node = file(&store, "aos", OpenFlags::WRITE_ONLY);
    assert!(write(&*node, &[1; 100], 0));
    full.0.store(true, Ordering::SeqCst);
    assert_eq!(node.write_by_kernel(0, 100, &mut |_| panic!("it is full")), 0);
    assert_eq!(node.write_at(&[1; 100], 0).unwrap_err().to_errno(), p9::Errno::ENOSPC);
    full.0.store(false, Ordering::SeqCst);
}
