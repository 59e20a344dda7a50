//! What is in the way of a dataset: broken and full disks, files that are not what they should be,
//! a second service; and replicas that are written later.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dataset::{
    Call, Condition, Dataset, DatasetStore, Error, Faults, Kind, Notice, Options, Verdict,
};
use p9::OpenFlags;
use store::Store;
use support::{Random, Scratch};

const POINTS: &str = "
dataset {
    const N = 10000
    type Point struct { a, b, c float32 }
    var data [N]Point
}
view aos { var data = data }
view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }
view b { var b [] { b } = data }
";

const THREE: &str = "
replica one.dat { view aos }
replica two.dat { view soa }
replica three.dat complete { view b }
";

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn three(scratch: &Scratch) -> std::path::PathBuf {
    let text = THREE.replace(".dat", "");
    scratch.definition("points.drepl", &format!("{POINTS}{text}"))
}

/// Fails calls of a kind on a file, once it is told to.
#[derive(Default)]
struct Breaker {
    on: AtomicBool,
    file: &'static str,
    kind: Option<Kind>,
    errno: i32,
    /// The first so many of these calls are let through.
    spare: AtomicU64,
}

impl Faults for Breaker {
    fn judge(&self, call: &Call<'_>) -> Verdict {
        let is_meant = self.on.load(Ordering::SeqCst)
            && call.path.ends_with(self.file)
            && self.kind == Some(call.kind);
        if !is_meant || self.spare.fetch_sub(1, Ordering::SeqCst) as i64 > 0 {
            if is_meant && call.len > 100 {
                return Verdict::Short(100);
            }
            return Verdict::Go;
        }
        self.spare.store(0, Ordering::SeqCst);
        Verdict::Fail(self.errno)
    }
}

fn breaker(file: &'static str, kind: Kind, errno: i32, spare: u64) -> Arc<Breaker> {
    let spare = AtomicU64::new(spare);
    Arc::new(Breaker { on: AtomicBool::new(false), file, kind: Some(kind), errno, spare })
}

/// Options with a breaker, and what is told.
fn options(faults: Arc<Breaker>) -> (Options, Arc<Mutex<Vec<Notice>>>) {
    let told: Arc<Mutex<Vec<Notice>>> = Arc::default();
    let list = Arc::clone(&told);
    let tell: dataset::Tell = Arc::new(move |notice| list.lock().unwrap().push(notice.clone()));
    (Options { tell: Some(tell), faults: Some(faults), ..Options::default() }, told)
}

fn plain(path: &Path) -> Result<Dataset, Error> {
    Dataset::open(path, &Options::default())
}

fn whole(dataset: &Dataset, view: &str) -> Vec<u8> {
    let view = dataset.view(view).unwrap();
    let mut bytes = vec![0; dataset.size(view) as usize];
    assert_eq!(dataset.read(view, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// The three layouts of the same points.
fn layouts(aos: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let field = |number: usize| aos.chunks_exact(12).flat_map(move |p| &p[4 * number..][..4]);
    let soa = (0..3).flat_map(field).copied().collect();
    (soa, field(1).copied().collect())
}

fn conditions(dataset: &Dataset) -> Vec<bool> {
    dataset.replicas().iter().map(|(_, condition)| *condition == Condition::Fresh).collect()
}

#[test]
fn a_full_disk_makes_one_replica_of_three_stale_and_rebuild_makes_it_anew() {
    for (file, number) in [("one", 0), ("two", 1), ("three", 2)] {
        let scratch = Scratch::new();
        let path = three(&scratch);
        let broken = breaker(file, Kind::Write, ENOSPC, 2);
        let (options, told) = options(Arc::clone(&broken));
        let dataset = Dataset::open(&path, &options).unwrap();
        let aos = Random::new(7).bytes(120_000);
        let view = dataset.view("aos").unwrap();
        dataset.write(view, 0, &aos[..50_000]).unwrap();
        broken.on.store(true, Ordering::SeqCst);
        told.lock().unwrap().clear();
        dataset.write(view, 50_000, &aos[50_000..]).unwrap();
        let told = told.lock().unwrap().clone();
        assert!(
            matches!(&told[..], [Notice::Stale { replica, reason }]
                if replica == file && reason.contains("No space left")),
            "{told:?}"
        );
        let (soa, b) = layouts(&aos);
        assert_eq!(whole(&dataset, "aos"), aos);
        assert_eq!(whole(&dataset, "soa"), soa);
        assert_eq!(whole(&dataset, "b"), b);
        drop(dataset);
        // It is known also when the dataset is opened again, and others are right.
        let dataset = plain(&path).unwrap();
        let mut expected = [true; 3];
        expected[number] = false;
        assert_eq!(conditions(&dataset), expected);
        assert_eq!(whole(&dataset, "soa"), soa);
        assert!(dataset.rebuild(file, &mut |_, _| true).unwrap());
        assert!(!dataset.rebuild(file, &mut |_, _| true).unwrap());
        assert_eq!(conditions(&dataset), [true; 3]);
        drop(dataset);
        assert_eq!(scratch.bytes("one"), aos);
        assert_eq!(scratch.bytes("two"), soa);
        assert_eq!(scratch.bytes("three")[..b.len()], b);
        assert_eq!(whole(&plain(&path).unwrap(), "aos"), aos);
    }
}

#[test]
fn a_write_that_cannot_be_written_down_as_missed_is_not_acknowledged() {
    struct Both(Arc<Breaker>, Arc<Breaker>);
    impl Faults for Both {
        fn judge(&self, call: &Call<'_>) -> Verdict {
            match self.0.judge(call) {
                Verdict::Go => self.1.judge(call),
                other => other,
            }
        }
    }
    let scratch = Scratch::new();
    let path = three(&scratch);
    let data = breaker("two", Kind::Write, ENOSPC, 0);
    let state = breaker("state.toml.new", Kind::Write, ENOSPC, 0);
    let both = Arc::new(Both(Arc::clone(&data), Arc::clone(&state)));
    let options = Options { faults: Some(both), ..Options::default() };
    let dataset = Dataset::open(&path, &options).unwrap();
    let view = dataset.view("aos").unwrap();
    data.on.store(true, Ordering::SeqCst);
    state.on.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        let error = dataset.write(view, 0, &[1; 1000]).unwrap_err();
        assert_eq!(error.to_errno(), p9::Errno::ENOSPC, "{error}");
    }
    state.on.store(false, Ordering::SeqCst);
    dataset.write(view, 0, &[2; 1000]).unwrap();
    drop(dataset);
    let dataset = plain(&path).unwrap();
    assert_eq!(conditions(&dataset), [true, false, true]);
    assert_eq!(whole(&dataset, "aos")[..1000], [2; 1000]);
}

#[test]
fn the_only_holder_tells_its_writer_and_no_replica_differs() {
    for text in [
        "replica one { view b }; replica two { view aos }",
        "replica one { view aos }; replica two { view b }",
        "replica one async { view soa }; replica two { view aos }; replica three on-close { view b }",
    ] {
        let scratch = Scratch::new();
        let path = scratch.definition("points.drepl", &format!("{POINTS}{text}"));
        let holder = if text.starts_with("replica one { view aos") { "one" } else { "two" };
        let broken = breaker(holder, Kind::Write, EIO, 3);
        let (options, _) = options(Arc::clone(&broken));
        let dataset = Dataset::open(&path, &options).unwrap();
        let aos = Random::new(3).bytes(120_000);
        dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();
        dataset.sync().unwrap();
        broken.on.store(true, Ordering::SeqCst);
        let soa = dataset.view("soa").unwrap();
        let error = dataset.write(soa, 40_000, &[0x55; 60_000]).unwrap_err();
        assert_eq!(error.to_errno(), p9::Errno::EIO, "{error}");
        broken.on.store(false, Ordering::SeqCst);
        dataset.sync().unwrap();
        assert!(conditions(&dataset).iter().all(|is_fresh| *is_fresh), "{text}");
        let now = whole(&dataset, "aos");
        let (its_soa, its_b) = layouts(&now);
        assert_eq!(whole(&dataset, "soa"), its_soa, "{text}");
        assert_eq!(whole(&dataset, "b"), its_b, "{text}");
        drop(dataset);
        for name in ["one", "two", "three"] {
            let Ok(bytes) = std::fs::read(scratch.path().join(name)) else { continue };
            let expected = match bytes.len() {
                40_000 => &its_b,
                _ if text.contains(&format!("{name} async")) => &its_soa,
                _ => &now,
            };
            assert!(bytes == *expected, "{text}: {name}");
        }
    }
}

#[test]
fn a_replica_that_cannot_be_read_is_left_alone_and_another_serves() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    let broken = breaker("one", Kind::Read, EIO, 0);
    let (options, told) = options(Arc::clone(&broken));
    let dataset = Dataset::open(&path, &options).unwrap();
    let aos = Random::new(5).bytes(120_000);
    dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();
    broken.on.store(true, Ordering::SeqCst);
    assert_eq!(whole(&dataset, "aos"), aos);
    assert_eq!(conditions(&dataset), [false, true, true]);
    assert_eq!(whole(&dataset, "aos"), aos);
    let stale = |notice: &&Notice| matches!(notice, Notice::Stale { .. });
    assert_eq!(told.lock().unwrap().iter().filter(stale).count(), 1, "it is said once");
}

#[test]
fn a_failed_fsync_is_told_until_the_end_or_costs_the_replica() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    let broken = breaker("two", Kind::Sync, EIO, 0);
    let (several, _) = options(Arc::clone(&broken));
    let dataset = Dataset::open(&path, &several).unwrap();
    broken.on.store(true, Ordering::SeqCst);
    dataset.write(0, 0, b"data").unwrap();
    dataset.sync().unwrap();
    assert_eq!(conditions(&dataset), [true, false, true]);
    drop(dataset);

    let scratch = Scratch::new();
    let path = scratch.definition("points.drepl", &format!("{POINTS}replica one {{ view aos }}"));
    let broken = breaker("one", Kind::Sync, EIO, 0);
    let (single, _) = options(Arc::clone(&broken));
    let dataset = Dataset::open(&path, &single).unwrap();
    broken.on.store(true, Ordering::SeqCst);
    dataset.write(0, 0, b"data").unwrap();
    dataset.sync().unwrap_err();
    broken.on.store(false, Ordering::SeqCst);
    let error = dataset.sync().unwrap_err();
    assert_eq!(error.to_errno(), p9::Errno::EIO);
}

#[test]
fn a_second_service_is_refused_with_the_process_of_the_first() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    let first = plain(&path).unwrap();
    let Err(error) = plain(&path) else { panic!("two have it") };
    let Error::InUse { pid, .. } = &error else { panic!("{error}") };
    assert_eq!(*pid, Some(std::process::id()));
    // Another definition that has one of the files.
    let text = format!("{POINTS}replica one {{ view aos }}");
    let other = scratch.definition("other.drepl", &text);
    let Err(error) = plain(&other) else { panic!("two have `one`") };
    assert!(matches!(&error, Error::InUse { path, .. } if path.ends_with("one")), "{error}");
    drop(first);
    plain(&path).unwrap();
}

#[test]
fn files_of_another_size_are_refused_and_both_sizes_told() {
    for size in [119_999, 120_001, 0] {
        let scratch = Scratch::new();
        let path = three(&scratch);
        for known in [false, true] {
            if known {
                std::fs::remove_file(scratch.path().join("one")).unwrap();
                drop(plain(&path).unwrap());
            }
            std::fs::write(scratch.path().join("one"), vec![0; size]).unwrap();
            let Err(error) = plain(&path) else { panic!("{size} bytes were taken") };
            let text = error.to_string();
            assert!(text.contains(&format!("{size} bytes")) && text.contains("120000"), "{text}");
            assert_eq!(scratch.bytes("one").len(), size, "it was changed");
        }
    }
}

#[test]
fn a_lost_replica_is_stale_and_a_lost_only_one_refuses_to_serve() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    let dataset = plain(&path).unwrap();
    let aos = Random::new(9).bytes(120_000);
    dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();
    drop(dataset);
    std::fs::remove_file(scratch.path().join("one")).unwrap();
    let dataset = plain(&path).unwrap();
    assert_eq!(conditions(&dataset), [false, true, true]);
    assert_eq!(whole(&dataset, "aos"), aos);
    drop(dataset);
    std::fs::remove_file(scratch.path().join("two")).unwrap();
    let dataset = plain(&path).unwrap();
    assert_eq!(whole(&dataset, "aos"), aos, "three is complete");
    drop(dataset);
    std::fs::rename(scratch.path().join("three"), scratch.path().join("elsewhere")).unwrap();
    let Err(error) = plain(&path) else { panic!("there is nothing left to serve") };
    assert!(error.to_string().contains("three"), "{error}");
    std::fs::rename(scratch.path().join("elsewhere"), scratch.path().join("three")).unwrap();
    let dataset = plain(&path).unwrap();
    for replica in ["one", "two"] {
        assert!(dataset.rebuild(replica, &mut |_, _| true).unwrap());
    }
    assert_eq!(whole(&dataset, "soa"), layouts(&aos).0);
    drop(dataset);
    assert_eq!(scratch.bytes("one"), aos);
}

#[test]
fn an_interrupted_rebuild_leaves_the_replica_stale() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    drop(plain(&path).unwrap());
    std::fs::remove_file(scratch.path().join("two")).unwrap();
    let dataset = plain(&path).unwrap();
    let error = dataset.rebuild("two", &mut |_, _| false).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert_eq!(conditions(&dataset), [true, false, true]);
    assert!(!scratch.path().join("two").exists() && !scratch.path().join("two.new").exists());
    assert!(matches!(dataset.rebuild("four", &mut |_, _| true), Err(Error::NoSuchReplica { .. })));
}

#[test]
fn files_that_were_there_before_are_adopted_when_they_agree() {
    let aos = Random::new(11).bytes(120_000);
    let (soa, b) = layouts(&aos);
    let scratch = Scratch::new();
    let path = three(&scratch);
    std::fs::write(scratch.path().join("one"), &aos).unwrap();
    let dataset = plain(&path).unwrap();
    assert_eq!(whole(&dataset, "b"), b);
    drop(dataset);
    assert_eq!(scratch.bytes("two"), soa);

    let scratch = Scratch::new();
    let path = three(&scratch);
    std::fs::write(scratch.path().join("one"), &aos).unwrap();
    let mut wrong = soa.clone();
    wrong[77_777] ^= 1;
    std::fs::write(scratch.path().join("two"), &wrong).unwrap();
    let Err(error) = plain(&path) else { panic!("replicas that differ were taken") };
    assert!(matches!(error, Error::Differs { offset: 77_777, .. }), "{error}");
    assert!(!scratch.path().join("three").exists(), "nothing was begun");
    std::fs::write(scratch.path().join("two"), &soa).unwrap();
    assert_eq!(whole(&plain(&path).unwrap(), "b"), b);
}

#[test]
fn a_definition_may_change_what_no_file_depends_on() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    let dataset = plain(&path).unwrap();
    let aos = Random::new(13).bytes(120_000);
    dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();
    drop(dataset);
    // A view more, other names, a replica more.
    let text = format!(
        "{POINTS}view every {{ var d[i] = data[i*5] }}
        replica one {{ view aos }}; replica two async {{ view soa }}
        replica three complete {{ view b }}; replica four {{ view every }}"
    );
    scratch.definition("points.drepl", &text);
    let dataset = plain(&path).unwrap();
    let every: Vec<u8> = aos.chunks_exact(12).step_by(5).flatten().copied().collect();
    assert_eq!(whole(&dataset, "every"), every);
    drop(dataset);
    assert_eq!(scratch.bytes("four"), every);
    // The bytes of `one` would mean something else.
    scratch.definition("points.drepl", &text.replace("a, b, c float32", "a, c, b float32"));
    let Err(error) = plain(&path) else { panic!("the fields were exchanged") };
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    assert_eq!(scratch.bytes("one"), aos);
}

/// Lets a thousandth of a second pass before every write to a file.
struct Slow(&'static str, AtomicU64);

impl Faults for Slow {
    fn judge(&self, call: &Call<'_>) -> Verdict {
        if call.kind == Kind::Write && call.path.ends_with(self.0) {
            self.1.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(20));
        }
        Verdict::Go
    }
}

#[test]
fn an_async_replica_follows_in_order_and_is_not_read_until_then() {
    let scratch = Scratch::new();
    let text = format!("{POINTS}replica one {{ view aos }}; replica two async near 0 {{ view b }}");
    let path = scratch.definition("points.drepl", &text);
    let slow = Arc::new(Slow("two", AtomicU64::new(0)));
    let options = Options { faults: Some(slow.clone()), ..Options::default() };
    let dataset = Dataset::open(&path, &options).unwrap();
    let b = dataset.view("b").unwrap();
    let begun = Instant::now();
    for round in 0..40_u8 {
        dataset.write(b, 4 * u64::from(round % 7), &[round; 4]).unwrap();
        let mut found = [0; 4];
        dataset.read(b, 4 * u64::from(round % 7), &mut found).unwrap();
        assert_eq!(found, [round; 4], "an old value was read");
    }
    assert!(begun.elapsed() < Duration::from_millis(40 * 20), "writers waited for it");
    dataset.sync().unwrap();
    assert_eq!(slow.1.load(Ordering::SeqCst), 40);
    let expected: Vec<u8> = [35, 36, 37, 38, 39, 33, 34].iter().flat_map(|n| [*n; 4]).collect();
    assert_eq!(scratch.bytes("two")[..28], expected);
}

#[test]
fn a_replica_on_close_is_written_when_the_last_writer_closes() {
    let scratch = Scratch::new();
    let text = format!("{POINTS}replica one {{ view aos }}; replica two on-close {{ view b }}");
    let path = scratch.definition("points.drepl", &text);
    let store = DatasetStore::new(Arc::new(plain(&path).unwrap()));
    let open = |flags| {
        let end = store.root().unwrap().walk(&[b"b"]).unwrap().end.unwrap();
        end.open(flags).unwrap()
    };
    let (first, second) = (open(OpenFlags::READ_WRITE), open(OpenFlags::READ_WRITE));
    first.write_at(&[7; 400], 0).unwrap();
    drop(first);
    assert_eq!(scratch.bytes("two")[..400], [0; 400], "another writer has it open");
    let mut found = [0; 400];
    second.read_at(&mut found, 0).unwrap();
    assert_eq!(found, [7; 400]);
    drop(open(OpenFlags::empty()));
    assert_eq!(scratch.bytes("two")[..400], [0; 400], "a reader closed");
    drop(second);
    assert_eq!(scratch.bytes("two")[..400], [7; 400]);
    // Or when somebody asks.
    let third = open(OpenFlags::READ_WRITE);
    third.write_at(&[8; 400], 0).unwrap();
    third.sync(true).unwrap();
    assert_eq!(scratch.bytes("two")[..400], [8; 400]);
}

#[test]
fn writes_at_the_end_are_short_and_behind_it_too_big() {
    let scratch = Scratch::new();
    let dataset = plain(&three(&scratch)).unwrap();
    let view = dataset.view("b").unwrap();
    assert_eq!(dataset.write(view, 39_990, &[1; 100]).unwrap(), 10);
    let error = dataset.write(view, 40_000, &[1; 100]).unwrap_err();
    assert_eq!(error.to_errno(), p9::Errno::EFBIG);
    assert_eq!(dataset.write(view, 40_000, &[]).unwrap(), 0);
    let mut buffer = [9; 20];
    assert_eq!(dataset.read(view, 39_995, &mut buffer).unwrap(), 5);
    assert_eq!(buffer[..6], [1, 1, 1, 1, 1, 9]);
    assert_eq!(dataset.read(view, u64::MAX, &mut buffer).unwrap(), 0);
}

#[test]
fn a_replica_that_somebody_else_has_changed_is_noticed() {
    let scratch = Scratch::new();
    let path = three(&scratch);
    let dataset = plain(&path).unwrap();
    let aos = Random::new(15).bytes(120_000);
    dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();
    drop(dataset);
    drop(plain(&path).unwrap());
    std::thread::sleep(Duration::from_millis(20));
    let mut other = aos.clone();
    other[5000] ^= 0x10;
    std::fs::write(scratch.path().join("one"), &other).unwrap();
    let Err(error) = plain(&path) else { panic!("replicas that differ are served") };
    assert!(matches!(error, Error::Differs { .. }), "{error}");
    // Written, but with the same bytes.
    std::fs::write(scratch.path().join("one"), &aos).unwrap();
    assert_eq!(whole(&plain(&path).unwrap(), "aos"), aos);
    // The advice: move the wrong one away, and it is rebuilt.
    std::thread::sleep(Duration::from_millis(20));
    std::fs::write(scratch.path().join("one"), &other).unwrap();
    std::fs::remove_file(scratch.path().join("one")).unwrap();
    let dataset = plain(&path).unwrap();
    assert!(dataset.rebuild("one", &mut |_, _| true).unwrap());
    drop(dataset);
    assert_eq!(scratch.bytes("one"), aos);
    assert_eq!(conditions(&plain(&path).unwrap()), [true; 3]);
}

#[test]
fn a_file_that_shrinks_under_a_mapping_is_an_error_and_neither_zeros_nor_the_end() {
    for left in [0, 4096, 60_000, 119_999] {
        let scratch = Scratch::new();
        let path = scratch
            .definition("points.drepl", &format!("{POINTS}replica one complete {{ view aos }}\n"));
        let options = Options { mapped_read_min_bytes: Some(1), ..Options::default() };
        let dataset = Dataset::open(&path, &options).unwrap();
        let aos = Random::new(7).bytes(120_000);
        dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();
        let (soa, b) = layouts(&aos);
        assert_eq!(whole(&dataset, "soa"), soa);
        // Writes are seen through the mapping.
        dataset.write(dataset.view("b").unwrap(), 8, &[7; 4]).unwrap();
        assert_eq!(whole(&dataset, "b"), [&b[..8], &[7; 4], &b[12..]].concat());
        let file = std::fs::OpenOptions::new().write(true).open(scratch.path().join("one"));
        let file = file.unwrap();
        file.set_len(left).unwrap();
        for view in ["soa", "b"] {
            let view = dataset.view(view).unwrap();
            let mut bytes = vec![0; dataset.size(view) as usize];
            match dataset.read(view, 0, &mut bytes) {
                // The last number is c, which b does not need.
                Ok(_) => assert!(left == 119_999 && view == dataset.view("b").unwrap()),
                Err(error) => assert!(matches!(error, Error::File { .. }), "{error}"),
            }
        }
        // What was lost stays lost, what is there can be read.
        let aos_view = dataset.view("aos").unwrap();
        let mut start = vec![0; left as usize / 2];
        dataset.read(aos_view, 0, &mut start).unwrap();
        let mut expected = aos.clone();
        expected[28..32].fill(7);
        assert_eq!(start, expected[..start.len()]);
        file.set_len(120_000).unwrap();
        assert_eq!(whole(&dataset, "soa").len(), 120_000);
    }
}
