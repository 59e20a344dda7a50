//! A dataset whose definition changes while it is used: views and replicas come and go, replicas are
//! made while others write, and the end may come at any system call.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dataset::{
    Call, Condition, Dataset, DatasetStore, Edit, Error, Faults, Options, Report, Verdict,
};
use p9::OpenFlags;
use store::{OpenNode, Store};
use support::{Random, Scratch};

const N: usize = 40_000;

const POINTS: &str = "// Points of a run.
dataset {
    const N = 40000
    type Point struct { a, b, c float32 }
    var data [N]Point
}
view aos { var data = data }
";

const SOA: &str = "view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }";

fn open(path: &Path) -> Dataset {
    Dataset::open(path, &Options::default()).unwrap()
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

fn add(dataset: &Dataset, text: &str) -> Result<(), Error> {
    let changed = dataset.change(&Edit::Add(text.to_owned()))?;
    for replica in changed.replicas_added {
        assert!(dataset.rebuild(&replica, &mut |_, _| true)?);
    }
    Ok(())
}

/// Stops the threads that write until they are told to, also when the test fails: it would wait for them.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn is_fresh(dataset: &Dataset) -> bool {
    dataset.replicas().iter().all(|(_, condition)| *condition == Condition::Fresh)
}

#[test]
fn views_come_and_go_and_open_files_stay() {
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", &format!("{POINTS}replica one {{ view aos }}\n"));
    let dataset = Arc::new(open(&path));
    let store = DatasetStore::new(Arc::clone(&dataset));
    let aos = Random::new(1).bytes(12 * N);
    dataset.write(dataset.view("aos").unwrap(), 0, &aos).unwrap();

    add(&dataset, SOA).unwrap();
    assert_eq!(dataset.views(), ["aos", "soa"]);
    assert_eq!(whole(&dataset, "soa"), arrays(&aos));
    let root = store.root().unwrap();
    let soa = root.walk(&[b"soa"]).unwrap().end.unwrap();
    let file = soa.open(OpenFlags::READ_WRITE).unwrap();

    let changed = dataset.change(&Edit::RemoveView("soa".into())).unwrap();
    assert_eq!(changed.views_removed, ["soa"]);
    assert!(root.walk(&[b"soa"]).is_err());
    assert!(soa.open(OpenFlags::empty()).is_err(), "it has no name any more");
    // Another one of the name is another file; the open one goes on.
    add(&dataset, "view soa { var a[i] = data[i].a }").unwrap();
    assert_eq!(dataset.size(dataset.view("soa").unwrap()), 4 * N as u64);
    let again = root.walk(&[b"soa"]).unwrap().end.unwrap();
    assert_ne!(again.qid().path, soa.qid().path);
    file.write_at(&[7; 4], 0).unwrap();
    let mut found = vec![0; 12 * N];
    assert_eq!(file.read_at(&mut found, 0).unwrap(), 12 * N);
    let mut expected = aos.clone();
    expected[..4].fill(7);
    assert_eq!(found, arrays(&expected));
    assert_eq!(whole(&dataset, "aos"), expected);
    assert_eq!(file.attributes().unwrap().nlink, 0);
    drop((file, soa, again, root, store, dataset));

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("// Points of a run.\n"), "{text}");
    let dataset = open(&path);
    assert_eq!(dataset.views(), ["aos", "soa"]);
    assert_eq!(whole(&dataset, "aos"), expected);
}

#[test]
fn a_replica_is_filled_while_programs_write() {
    for kind in ["", "async", "on-close", "complete", "hdf5", "on-close hdf5"] {
        let scratch = Scratch::new();
        let text = format!("{POINTS}{SOA}\nreplica one {{ view aos }}\n");
        let path = scratch.definition("p.drepl", &text);
        let dataset = open(&path);
        let view = dataset.view("aos").unwrap();
        let (mut expected, stop) = (vec![0; 12 * N], AtomicBool::new(false));
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let _stops = Stops(&stop);
            let writer = scope.spawn(|| {
                let mut random = Random::new(5);
                while !stop.load(Ordering::SeqCst) {
                    let at = random.below(12 * N - 2000);
                    let len = 1 + random.below(2000);
                    let data = random.bytes(len);
                    assert_eq!(dataset.write(view, at as u64, &data).unwrap(), len);
                    expected[at..at + len].copy_from_slice(&data);
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
            // Some were written before it begins, and some while it is made.
            let wait = |more: u64| {
                let until = written.load(Ordering::SeqCst) + more;
                while written.load(Ordering::SeqCst) < until && !writer.is_finished() {
                    std::thread::yield_now();
                }
            };
            wait(20);
            let options = if kind == "on-close hdf5" { "chunk [100] deflate 1" } else { "" };
            let replica = format!("replica \"two\" {kind} {{ view soa {options} }}");
            let changed = dataset.change(&Edit::Add(replica)).unwrap();
            assert_eq!(changed.replicas_added, ["two"]);
            let mut steps = 0;
            let made = dataset.rebuild("two", &mut |_, _| {
                wait(2);
                steps += 1;
                true
            });
            assert!(made.unwrap() && steps > 1, "{kind}: {steps} steps");
            wait(20);
        });
        assert_eq!(whole(&dataset, "soa"), arrays(&expected), "{kind}");
        assert!(is_fresh(&dataset), "{kind}: {:?}", dataset.replicas());
        drop(dataset);
        if !kind.contains("hdf5") {
            assert_eq!(scratch.bytes("two"), arrays(&expected), "{kind}");
        }
        // It alone has everything, where it may be alone.
        let dataset = open(&path);
        assert_eq!(whole(&dataset, "aos"), expected, "{kind}");
        let removed = dataset.change(&Edit::RemoveReplica("one".into()));
        assert_eq!(
            removed.is_ok(),
            !kind.starts_with("async") && !kind.starts_with("on"),
            "{kind}"
        );
        assert_eq!(whole(&dataset, "aos"), expected, "{kind}");
    }
}

#[test]
fn a_replica_is_filled_while_arrays_change_their_length() {
    let text = "dataset { var n int32; var x [n]float64; var y [n]int16 }
view v { var n = n; var x = x; var y = y }
view y { var y = y }
replica one { view v }
";
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", text);
    let dataset = open(&path);
    let view = dataset.view("v").unwrap();
    dataset.write(view, 0, &100_i32.to_le_bytes()).unwrap();
    dataset.change(&Edit::Add("replica two complete { view y }".into())).unwrap();
    let mut n = 100_i32;
    dataset
        .rebuild("two", &mut |_, _| {
            // More often than it begins anew while others may write.
            if n < 110 {
                n += 1;
                let values: Vec<u8> = (0..10 * n).map(|i| i as u8).collect();
                let written = [&n.to_le_bytes()[..], &values].concat();
                // At the last beginning whoever writes waits, which this thread must not.
                if n < 104 {
                    dataset.write(view, 0, &written).unwrap();
                }
            }
            true
        })
        .unwrap();
    let expected = whole(&dataset, "v");
    assert!(is_fresh(&dataset));
    dataset.change(&Edit::RemoveReplica("one".into())).unwrap();
    assert_eq!(whole(&dataset, "v"), expected);
    // `n`, four bytes before `x` is aligned, and what was written last.
    assert_eq!(expected.len(), 8 + 10 * 103);
}

#[test]
fn what_cannot_be_changed_is_refused_and_nothing_has_changed() {
    let scratch = Scratch::new();
    let text = format!("{POINTS}{SOA}\nreplica one {{ view aos }}\nreplica two {{ view soa }}\n");
    let path = scratch.definition("p.drepl", &text);
    let dataset = open(&path);
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(scratch.path().join("taken"), "something").unwrap();
    for (edit, said) in [
        (Edit::RemoveView("aos".into()), "remove the replica first"),
        (Edit::RemoveView("none".into()), "aos, soa"),
        (Edit::RemoveReplica("none".into()), "one, two"),
        (Edit::Add("view aos { var data = data }".into()), "aos"),
        (Edit::Add("view bad { var data = nothing }".into()), "nothing"),
        (Edit::Add("dataset { var more int32 }".into()), "more"),
        (Edit::Add("view \".sluice\" { var data = data }".into()), "Sluice's own"),
        (Edit::Add("replica taken { view aos }".into()), "is there already"),
        (Edit::Add("replica three hdf5 { view aos deflate 3 }".into()), "on-close"),
    ] {
        let error = dataset.change(&edit).expect_err(said).in_full();
        assert!(error.contains(said), "{edit:?}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{edit:?}");
        assert_eq!(dataset.views(), ["aos", "soa"], "{edit:?}");
    }
    dataset.change(&Edit::RemoveReplica("two".into())).unwrap();
    let error = dataset.change(&Edit::RemoveReplica("one".into())).unwrap_err();
    assert!(matches!(
        error,
        Error::Needed { .. } | Error::Unheld { .. } | Error::Definition { .. }
    ));
    assert!(scratch.path().join("two").exists(), "files stay");
    assert_eq!(dataset.replicas().len(), 1);
    assert_eq!(whole(&dataset, "soa").len(), 12 * N);
}

#[test]
fn a_replica_changes_when_it_is_written() {
    let scratch = Scratch::new();
    let text = format!("{POINTS}{SOA}\nreplica one {{ view aos }}\nreplica two {{ view soa }}\n");
    let path = scratch.definition("p.drepl", &text);
    let dataset = open(&path);
    let view = dataset.view("aos").unwrap();
    let mut aos = Random::new(3).bytes(12 * N);
    dataset.write(view, 0, &aos).unwrap();
    // By hand; the next change takes it over.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("replica two", "replica two async near 3")).unwrap();
    add(&dataset, "view b { var b[i] = data[i].b }").unwrap();
    aos[5..500].fill(9);
    dataset.write(view, 5, &aos[5..500]).unwrap();
    assert_eq!(whole(&dataset, "soa"), arrays(&aos));
    assert!(is_fresh(&dataset));
    drop(dataset);
    assert_eq!(scratch.bytes("two"), arrays(&aos));
    assert!(is_fresh(&open(&path)));
}

#[test]
fn a_replica_whose_file_is_lost_is_stale_and_made_anew_without_a_restart() {
    let scratch = Scratch::new();
    let text = format!("{POINTS}{SOA}\nreplica one {{ view aos }}\nreplica two {{ view soa }}\n");
    let path = scratch.definition("p.drepl", &text);
    let dataset = open(&path);
    let view = dataset.view("aos").unwrap();
    let mut aos = Random::new(8).bytes(12 * N);
    dataset.write(view, 0, &aos).unwrap();
    for is_replaced in [false, true] {
        std::fs::remove_file(scratch.path().join("two")).unwrap();
        if is_replaced {
            std::fs::write(scratch.path().join("two"), vec![1; 12 * N]).unwrap();
        }
        let report = dataset.report();
        let stale = report.replicas.iter().map(|one| one.stale.is_some()).collect::<Vec<_>>();
        assert_eq!(stale, [false, true], "{report:?}");
        aos[7..77].fill(u8::from(is_replaced));
        dataset.write(view, 7, &aos[7..77]).unwrap();
        assert!(dataset.rebuild("two", &mut |_, _| true).unwrap());
        assert!(!dataset.rebuild("two", &mut |_, _| true).unwrap(), "it is up to date");
        assert_eq!(scratch.bytes("two"), arrays(&aos));
    }
    // One that cannot be done without is used on, and saved from what is still open.
    dataset.change(&Edit::RemoveReplica("two".into())).unwrap();
    std::fs::remove_file(scratch.path().join("one")).unwrap();
    let report = dataset.report();
    assert!(report.replicas[0].stale.is_none() && report.replicas[0].orphaned.is_some());
    assert_eq!(whole(&dataset, "aos"), aos);
    assert!(dataset.rebuild("one", &mut |_, _| true).unwrap());
    assert_eq!(scratch.bytes("one"), aos);
    assert!(dataset.report().replicas[0].orphaned.is_none());
    aos[0] ^= 1;
    dataset.write(view, 0, &aos[..1]).unwrap();
    drop(dataset);
    assert_eq!(scratch.bytes("one"), aos);
    assert_eq!(whole(&open(&path), "aos"), aos);
}

/// Fails every write into a file.
struct NoRoom(&'static str);

impl Faults for NoRoom {
    fn judge(&self, call: &Call<'_>) -> Verdict {
        let is_meant = call.kind == dataset::Kind::Write && call.path.ends_with(self.0);
        if is_meant { Verdict::Fail(28) } else { Verdict::Go }
    }
}

#[test]
fn a_replica_that_cannot_be_made_is_stale_and_nobody_else_suffers() {
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", &format!("{POINTS}{SOA}\nreplica one {{ view aos }}"));
    let options = Options { faults: Some(Arc::new(NoRoom("two.new"))), ..Options::default() };
    let dataset = Dataset::open(&path, &options).unwrap();
    let view = dataset.view("aos").unwrap();
    dataset.write(view, 0, &[1; 5000]).unwrap();
    let error = add(&dataset, "replica two { view soa }").unwrap_err();
    assert!(error.in_full().contains("No space left"), "{}", error.in_full());
    dataset.write(view, 0, &[2; 5000]).unwrap();
    let reason = dataset.report().replicas[1].stale.clone().unwrap();
    assert!(reason.contains("No space left"), "{reason}");
    assert!(!scratch.path().join("two.new").exists());
    drop(dataset);
    let dataset = open(&path);
    assert!(!is_fresh(&dataset), "what could not be made is not made unasked");
    assert!(dataset.rebuild("two", &mut |_, _| true).unwrap());
    assert_eq!(scratch.bytes("two"), arrays(&whole(&dataset, "aos")));
}

fn ask(control: &dyn OpenNode, command: &str) -> Result<String, (store::Error, String)> {
    let written = control.write_at(command.as_bytes(), 0);
    let mut reply = vec![0; 4096];
    let len = control.read_at(&mut reply, 0).unwrap();
    let reply = String::from_utf8(reply[..len].to_vec()).unwrap();
    written
        .map(|len| assert_eq!(len, command.len()))
        .map(|()| reply.clone())
        .map_err(|e| (e, reply))
}

#[test]
fn the_control_files_of_a_store_say_and_do_it() {
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", &format!("{POINTS}replica one {{ view aos }}\n"));
    let dataset = Arc::new(open(&path));
    let store = DatasetStore::new(Arc::clone(&dataset));
    let root = store.root().unwrap();
    let file = |name: &[u8], flags| {
        root.walk(&[b".sluice", name]).unwrap().end.unwrap().open(flags).unwrap()
    };
    let mut names = Vec::new();
    let list = root.open(OpenFlags::empty()).unwrap();
    list.read_directory(0, &mut |entry| {
        names.push(entry.name.to_vec());
        true
    })
    .unwrap();
    assert!(!names.contains(&b".sluice".to_vec()), "programs that copy directories do not meet it");

    let control = file(b"ctl", OpenFlags::READ_WRITE);
    assert_eq!(ask(&*control, &format!("add {SOA}")).unwrap(), "added view soa\n");
    let said = ask(&*control, "add replica two { view soa }\nreplica three async { view aos }");
    assert_eq!(said.unwrap(), "making replica two\nmaking replica three\n");
    let status = || {
        let mut text = vec![0; 4096];
        let len = file(b"status", OpenFlags::empty()).read_at(&mut text, 0).unwrap();
        Report::from_text(std::str::from_utf8(&text[..len]).unwrap()).unwrap()
    };
    let begun = Instant::now();
    while !status().replicas.iter().all(|one| one.stale.is_none()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", status());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(
        ask(&*control, "remove replica two\nremove view soa\n").unwrap(),
        "removed replica two\nremoved view soa\n"
    );
    let (error, said) = ask(&*control, "remove view soa").unwrap_err();
    assert_eq!(
        (error.to_errno(), said.contains("no view `soa`")),
        (p9::Errno::EINVAL, true),
        "{said}"
    );
    let (_, said) = ask(&*control, "dance").unwrap_err();
    assert!(said.contains("`dance` is no command"), "{said}");
    let mut text = vec![0; 4096];
    let len = file(b"definition", OpenFlags::empty()).read_at(&mut text, 0).unwrap();
    assert_eq!(text[..len], std::fs::read(&path).unwrap());
    assert!(
        root.walk(&[b".sluice", b"status"])
            .unwrap()
            .end
            .unwrap()
            .open(OpenFlags::WRITE_ONLY)
            .is_err()
    );
}

/// Ends the process before a system call.
struct Killer {
    calls: AtomicU64,
    at: u64,
}

impl Faults for Killer {
    fn judge(&self, _call: &Call<'_>) -> Verdict {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
        Verdict::Go
    }
}

const CHILD: &str = "SLUICE_DATASET_LIVE_CHILD";

/// What a child does, step by step: writes, and between them changes.
fn steps(dataset: &Dataset, mut done: impl FnMut(usize)) {
    let view = dataset.view("aos").unwrap();
    let mut random = Random::new(11);
    let edits = [
        Edit::Add(SOA.to_owned()),
        Edit::Add("replica two { view soa }".to_owned()),
        Edit::RemoveReplica("one".to_owned()),
        Edit::Add(
            "view b { var b[i] = data[i].b }\nreplica three async complete { view b }".to_owned(),
        ),
        Edit::Add("replica four on-close { view aos }".to_owned()),
        Edit::RemoveReplica("three".to_owned()),
        Edit::RemoveView("b".to_owned()),
    ];
    let mut step = 0;
    for edit in edits {
        for _ in 0..3 {
            let at = random.below(12 * N - 5000);
            dataset.write(view, at as u64, &random.bytes(5000)).unwrap();
            done(step);
            step += 1;
        }
        let changed = dataset.change(&edit).unwrap();
        for replica in changed.replicas_added {
            dataset
                .rebuild(&replica, &mut |_, _| {
                    let at = random.below(12 * N - 500);
                    dataset.write(view, at as u64, &random.bytes(500)).unwrap();
                    done(step);
                    step += 1;
                    true
                })
                .unwrap();
        }
    }
}

/// Not a test of its own: what a child does until it is killed.
#[test]
fn child() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let (at, path) = order.split_once(' ').unwrap();
    let killer = Arc::new(Killer { calls: AtomicU64::new(0), at: at.parse().unwrap() });
    let options = Options { faults: Some(killer.clone()), ..Options::default() };
    let dataset = Dataset::open(Path::new(path), &options).unwrap();
    steps(&dataset, |step| println!("\nDONE {step}"));
    drop(dataset);
    println!("\nCALLS {}", killer.calls.load(Ordering::SeqCst));
}

fn run_child(at: u64, path: &Path) -> (usize, Option<u64>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CHILD, format!("{at} {}", path.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut done, mut calls) = (0, None);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if let Some(index) = line.strip_prefix("DONE ") {
            done = index.parse::<usize>().unwrap() + 1;
        } else if let Some(count) = line.strip_prefix("CALLS ") {
            calls = Some(count.parse().unwrap());
        }
    }
    let status = child.wait().unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    assert!(killed || status.success(), "at {at}: {status}");
    (done, calls)
}

/// The array of structs after so many writes of a child. The same numbers come in the same order
/// whatever the timing, since one thread draws them.
fn after(writes: usize) -> Vec<u8> {
    let scratch = Scratch::new();
    let path = scratch.definition("p.drepl", &format!("{POINTS}replica one {{ view aos }}\n"));
    let dataset = open(&path);
    let stop = std::panic::AssertUnwindSafe(|| {
        steps(&dataset, |step| {
            if step + 1 == writes {
                std::panic::resume_unwind(Box::new(whole(&dataset, "aos")));
            }
        });
    });
    match std::panic::catch_unwind(stop) {
        Err(bytes) => *bytes.downcast::<Vec<u8>>().unwrap(),
        Ok(()) => vec![0; 12 * N],
    }
}

#[test]
fn killed_at_any_call_of_a_change_nothing_is_lost_and_replicas_are_equal() {
    let text = format!("{POINTS}replica one {{ view aos }}\n");
    let scratch = Scratch::new();
    let (writes, calls) = run_child(u64::MAX, &scratch.definition("p.drepl", &text));
    let calls = calls.unwrap();
    assert!(writes > 25, "only {writes} writes");
    let mut random = Random::new(support::seed());
    let mut met = std::collections::BTreeSet::new();
    for _ in 0..support::cases(40) {
        let at = random.next() % calls;
        let scratch = Scratch::new();
        let path = scratch.definition("p.drepl", &text);
        let (done, _) = run_child(at, &path);
        let context = format!("killed at call {at} of {calls}, after {done} writes");
        let dataset = Dataset::open(&path, &Options::default())
            .unwrap_or_else(|error| panic!("{context}: {}", error.in_full()));
        let replicas = dataset.replicas();
        met.insert(replicas.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
        assert!(is_fresh(&dataset), "{context}: {replicas:?}");
        let found = whole(&dataset, "aos");
        if let Some(view) = dataset.view("soa") {
            assert_eq!(dataset.size(view), 12 * N as u64);
            assert_eq!(whole(&dataset, "soa"), arrays(&found), "{context}");
        }
        // Of the write that was not acknowledged, each byte may be there or not.
        let (before, then) = (after(done), after(done + 1));
        let is_right = |i: usize| found[i] == before[i] || done < writes && found[i] == then[i];
        if done > 0 {
            let wrong = (0..found.len()).find(|i| !is_right(*i));
            assert_eq!(wrong, None, "{context}");
        }
        drop(dataset);
        for (name, layout) in [("one", &found), ("two", &arrays(&found)), ("four", &found)] {
            if replicas.iter().any(|(replica, _)| replica == name) {
                assert_eq!(scratch.bytes(name), *layout, "{context}: {name}");
            }
        }
    }
    assert!(met.len() > 3, "{met:?}");
}

#[test]
fn late_replicas_get_every_write_in_order_while_views_come_and_go() {
    let scratch = Scratch::new();
    let text = format!(
        "{POINTS}{SOA}\nreplica one {{ view aos }}\nreplica two async {{ view soa }}\n\
         replica three on-close {{ view aos }}\n"
    );
    let path = scratch.definition("p.drepl", &text);
    let dataset = open(&path);
    let view = dataset.view("aos").unwrap();
    let (mut expected, stop) = (vec![0; 12 * N], AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| {
            // All of it again and again: in another order, something else would be left.
            let mut random = Random::new(17);
            while !stop.load(Ordering::SeqCst) {
                let at = random.below(12 * N - 50_000);
                let data = random.bytes(50_000);
                assert_eq!(dataset.write(view, at as u64, &data).unwrap(), data.len());
                expected[at..at + data.len()].copy_from_slice(&data);
            }
        });
        for turn in 0..20 {
            add(&dataset, &format!("view v{turn} {{ var a[i] = data[i].a }}")).unwrap();
            add(&dataset, &format!("replica r{turn} async {{ view v{turn} }}")).unwrap();
            if turn % 2 == 0 {
                dataset.change(&Edit::RemoveReplica(format!("r{turn}"))).unwrap();
                dataset.change(&Edit::RemoveView(format!("v{turn}"))).unwrap();
            }
        }
    });
    assert!(is_fresh(&dataset));
    drop(dataset);
    let arrays = arrays(&expected);
    assert_eq!(scratch.bytes("one"), expected);
    assert_eq!(scratch.bytes("two"), arrays);
    assert_eq!(scratch.bytes("three"), expected);
    for turn in (1..20).step_by(2) {
        assert_eq!(scratch.bytes(&format!("r{turn}")), arrays[..4 * N], "r{turn}");
    }
}
