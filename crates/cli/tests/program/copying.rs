//! cp.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use crate::support::{Served, noise, run, run_with_input, sluice};

/// The one part file in a directory.
fn part(dir: &Path) -> Option<std::path::PathBuf> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.into_iter().find(|path| path.to_str().is_some_and(|name| name.ends_with(".sluice-part")))
}

#[test]
fn every_direction_is_byte_identical_and_keeps_mode_and_time() {
    let served = Served::new();
    let bytes = noise(5_000_001);
    let source = served.beside("source");
    fs::write(&source, &bytes).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o750)).unwrap();
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 123_456_789);
    fs::File::open(&source).unwrap().set_modified(then).unwrap();
    let (back, there, further) =
        (served.beside("back"), served.uri("d/there"), served.uri("m/further"));
    run(["cp", source.to_str().unwrap(), &there]).ok();
    run(["cp", &there, &further]).ok();
    run(["cp", &further, back.to_str().unwrap()]).ok();
    for copy in [served.local("there"), back] {
        assert!(fs::read(&copy).unwrap() == bytes);
        let found = fs::metadata(&copy).unwrap();
        assert_eq!(found.mode() & 0o7777, 0o750);
        assert_eq!(found.modified().unwrap(), then);
    }
    assert_eq!(part(&served.local("")), None);
}

#[test]
fn trees_are_copied_with_links_and_empty_directories() {
    let served = Served::new();
    let tree = served.beside("tree");
    fs::create_dir_all(tree.join("a/b/empty")).unwrap();
    for i in 0..300 {
        fs::write(tree.join(format!("a/{i}")), noise(i * 100)).unwrap();
    }
    std::os::unix::fs::symlink("../7", tree.join("a/b/link")).unwrap();
    fs::set_permissions(tree.join("a/b"), fs::Permissions::from_mode(0o555)).unwrap();
    let tree = tree.to_str().unwrap();
    assert!(run(["cp", tree, &served.uri("d/")]).fails(1).contains("use -r"));
    run(["cp", "-r", "--jobs", "8", tree, &served.uri("m/")]).ok();
    run(["cp", "-r", &served.uri("m/tree"), &served.uri("d/copy")]).ok();
    let differences = std::process::Command::new("diff")
        .args(["-r", tree])
        .arg(served.local("copy"))
        .output()
        .unwrap();
    assert!(differences.status.success(), "{}", String::from_utf8_lossy(&differences.stdout));
    assert_eq!(fs::read_link(served.local("copy/a/b/link")).unwrap(), Path::new("../7"));
    assert!(served.local("copy/a/b/empty").is_dir());
    assert_eq!(fs::metadata(served.local("copy/a/b")).unwrap().mode() & 0o777, 0o555);
    let time = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(time(&served.local("copy/a")), time(&Path::new(tree).join("a")));
}

#[test]
fn an_interrupted_copy_never_has_the_final_name_and_goes_on_where_it_stopped() {
    let served = Served::new();
    let bytes = noise(200 << 20);
    let source = served.beside("source");
    fs::write(&source, &bytes).unwrap();
    let mut copy = sluice();
    copy.args(["cp", source.to_str().unwrap(), &served.uri("d/target")]).stderr(Stdio::null());
    let mut copy = copy.spawn().unwrap();
    let copied = loop {
        let copied = part(&served.local(""))
            .and_then(|path| fs::metadata(path).ok())
            .map_or(0, |found| found.len());
        if copied > 100 << 20 {
            break copied;
        }
        assert!(copy.try_wait().unwrap().is_none(), "it finished before it could be interrupted");
        std::thread::sleep(Duration::from_millis(1));
    };
    copy.kill().unwrap();
    copy.wait().unwrap();
    assert!(!served.local("target").exists());
    assert!(copied < bytes.len() as u64);

    let said =
        run(["cp", "--resume", "--json", source.to_str().unwrap(), &served.uri("d/target")]).ok();
    let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&summary["resumed"], &summary["files"]), (&1.into(), &1.into()));
    assert!(fs::read(served.local("target")).unwrap() == bytes);
    assert_eq!(part(&served.local("")), None);

    let said =
        run(["cp", "--resume", "--json", source.to_str().unwrap(), &served.uri("d/target")]).ok();
    let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&summary["skipped"], &summary["files"]), (&1.into(), &0.into()));
}

#[test]
fn a_part_of_another_source_is_not_continued() {
    let served = Served::new();
    let source = served.beside("source");
    fs::write(&source, noise(1 << 20)).unwrap();
    let mut copy = sluice();
    // A file size limit interrupts the copy in the middle.
    copy.args(["cp", source.to_str().unwrap(), served.beside("target").to_str().unwrap()]);
    let script = "ulimit -f 512; trap '' XFSZ; exec \"$@\"";
    let limited = std::process::Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(copy.get_program())
        .args(copy.get_args())
        .output()
        .unwrap();
    assert_eq!(limited.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&limited.stderr).contains("File too large"));
    let left = part(served.dir.path()).expect("a part is left");
    assert!(fs::metadata(&left).unwrap().len() > 0);
    // The part is spoiled near its end: as good as another file's.
    let mut spoiled = fs::read(&left).unwrap();
    let len = spoiled.len();
    spoiled[len - 10] ^= 1;
    fs::write(&left, spoiled).unwrap();
    let said = run([
        "cp",
        "--resume",
        "--json",
        source.to_str().unwrap(),
        served.beside("target").to_str().unwrap(),
    ])
    .ok();
    assert!(said.contains("\"resumed\":0"));
    assert!(fs::read(served.beside("target")).unwrap() == noise(1 << 20));
}

#[test]
fn parts_of_a_changed_source_are_gone_once_the_copy_is_complete() {
    let served = Served::new();
    let (source, target) = (served.beside("source"), served.local("target"));
    fs::write(&source, noise(1 << 20)).unwrap();
    let stopped = |to: &str| {
        let script = "ulimit -f 512; trap '' XFSZ; exec \"$@\"";
        let sluice = env!("CARGO_BIN_EXE_sluice");
        let mut copy = std::process::Command::new("sh");
        copy.args(["-c", script, "sh", sluice, "cp", "-r", source.to_str().unwrap(), to]);
        assert_eq!(copy.output().unwrap().status.code(), Some(1));
    };
    stopped(target.to_str().unwrap());
    let left = part(&served.local("")).expect("a part is left");
    let beside = served.local(".other.0123456789abcdef.sluice-part");
    fs::write(&beside, "somebody else's").unwrap();
    fs::write(&source, noise(100_000)).unwrap();
    run(["cp", "--resume", source.to_str().unwrap(), &served.uri("d/target")]).ok();
    assert!(fs::read(&target).unwrap() == noise(100_000));
    assert!(!left.exists() && beside.exists());
    fs::remove_file(&beside).unwrap();
    // Within a tree that is there already, and when the file itself is there already.
    for resume in [false, true] {
        stopped_in_tree(&served, &stopped, resume);
    }
}

fn stopped_in_tree(served: &Served, stopped: &dyn Fn(&str), resume: bool) {
    let (source, tree) = (served.beside("source"), served.beside("tree"));
    fs::write(&source, noise(1 << 20)).unwrap();
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(served.local("tree")).unwrap();
    stopped(served.local("tree/f").to_str().unwrap());
    assert!(part(&served.local("tree")).is_some());
    fs::write(tree.join("f"), "new").unwrap();
    let (from, to) = (tree.to_str().unwrap(), served.uri("d/"));
    if resume {
        run(["cp", tree.join("f").to_str().unwrap(), &served.uri("d/tree2")]).ok();
        fs::rename(served.local("tree2"), served.local("tree/f")).unwrap();
        assert!(run(["cp", "-r", "--resume", "--json", from, &to]).ok().contains("\"skipped\":1"));
    } else {
        run(["cp", "-r", from, &to]).ok();
    }
    assert_eq!(fs::read(served.local("tree/f")).unwrap(), b"new");
    assert_eq!(part(&served.local("tree")), None);
}

#[test]
fn a_full_or_read_only_place_is_told() {
    let served = Served::new();
    let store = format!("s={}", served.local("").display());
    fs::write(served.beside("source"), "x").unwrap();
    fs::write(
        served.beside("sluice.toml"),
        format!("[stores]\nro = {{ path = {:?}, read_only = true }}", served.local("")),
    )
    .unwrap();
    let config = served.beside("sluice.toml");
    let said = run([
        "cp",
        "--config",
        config.to_str().unwrap(),
        served.beside("source").to_str().unwrap(),
        "scdc:///ro/x",
    ])
    .fails(1);
    assert!(said.contains("scdc:///ro/x") && said.contains("read-only"), "{said}");
    run(["cp", "--store", &store, served.beside("source").to_str().unwrap(), "scdc:///s/x"]).ok();
}

#[test]
fn standard_input_and_output_are_places() {
    let served = Served::new();
    let bytes = noise(2_500_000);
    let stored = run_with_input(["cp", "-", &served.uri("d/f")], &bytes);
    assert!(stored.status.success() && stored.stdout.is_empty());
    assert!(fs::read(served.local("f")).unwrap() == bytes);
    // The usual mode of a new file, by the umask of this process.
    fs::write(served.beside("new"), "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode();
    assert_eq!(mode(&served.local("f")), mode(&served.beside("new")));
    assert!(run_with_input(["cp", &served.uri("d/f"), "-"], b"").stdout == bytes);
    assert!(run_with_input(["cp", "-", "-"], &bytes).stdout == bytes);
    // As cat: nothing is said but what goes wrong.
    assert_eq!(run_with_input(["cp", &served.uri("d/f"), "-"], b"").stderr, b"");
    let ran = run(["cp", &served.uri("d/none"), &served.uri("d/none"), "-"]);
    let line = format!("sluice: cannot read {}: No such file or directory\n", served.uri("d/none"));
    assert_eq!((ran.out.as_str(), ran.err), ("", line.repeat(2)));
    let said = run_with_input(["cp", "-", &served.uri("d/g")], b"in").stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(
        said.starts_with(&format!("standard input -> {} (2 B)\n", served.uri("d/g"))),
        "{said}"
    );
    assert!(run(["cp", "--json", &served.uri("d/f"), "-"]).fails(1).contains("standard output"));
    let gone = format!("{} cp {} - | head -c 1", env!("CARGO_BIN_EXE_sluice"), served.uri("d/f"));
    let gone = std::process::Command::new("sh").args(["-c", &gone]).output().unwrap();
    assert_eq!((gone.stdout.len(), gone.stderr), (1, Vec::new()));
    assert_eq!(part(&served.local("")), None);
}

#[test]
fn wrong_destinations_are_refused_before_anything_is_lost() {
    let served = Served::new();
    fs::write(served.local("f"), "content").unwrap();
    fs::create_dir_all(served.local("dir/f")).unwrap();
    let (file, dir) = (served.uri("d/f"), served.uri("d/dir"));
    assert!(run(["cp", &file, &file]).fails(1).contains("same file"));
    assert!(run(["cp", &file, &dir]).fails(1).contains("is a directory"));
    assert!(run(["cp", &file, &file, &file]).fails(1).contains("not a directory"));
    assert!(run(["cp", &file, &served.uri("d/none/")]).fails(1).contains("mkdir -p"));
    assert!(
        run(["cp", "-r", &dir, &served.uri("d/dir/f/deeper")]).fails(1).contains("into itself")
    );
    assert!(run(["cp", "-r", &dir, &file]).fails(1).contains("no directory"));
    assert!(
        run(["cp", &served.uri("d/none"), &served.uri("d/x")]).fails(1).contains("No such file")
    );
    assert_eq!(fs::read(served.local("f")).unwrap(), b"content");
}

#[test]
fn a_copy_replaces_a_file_at_once_and_a_link_but_not_its_target() {
    let served = Served::new();
    fs::write(served.local("old"), "old").unwrap();
    fs::write(served.local("new"), "new").unwrap();
    std::os::unix::fs::symlink("old", served.local("link")).unwrap();
    run(["cp", &served.uri("d/new"), &served.uri("d/link")]).ok();
    assert_eq!(fs::read(served.local("old")).unwrap(), b"old");
    assert_eq!(fs::read(served.local("link")).unwrap(), b"new");
    run(["cp", &served.uri("d/new"), &served.uri("d/old")]).ok();
    assert_eq!(fs::read(served.local("old")).unwrap(), b"new");
}

#[test]
fn a_copy_survives_a_restart_of_the_service() {
    let mut served = Served::new();
    let bytes = noise(300 << 20);
    fs::write(served.local("source"), &bytes).unwrap();
    let target = served.beside("target");
    let mut copy = sluice();
    copy.args(["cp", "--quiet", &served.uri("d/source"), target.to_str().unwrap()]);
    let mut copy = copy.spawn().unwrap();
    while part(served.dir.path())
        .and_then(|path| fs::metadata(path).ok())
        .is_none_or(|found| found.len() < 20 << 20)
    {
        assert!(copy.try_wait().unwrap().is_none(), "it finished before the service was restarted");
        std::thread::sleep(Duration::from_millis(1));
    }
    served.restart();
    assert!(copy.wait().unwrap().success());
    assert!(fs::read(target).unwrap() == bytes);
}
