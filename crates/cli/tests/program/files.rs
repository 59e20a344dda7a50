//! ls, cat, stat, mkdir, rm.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Served, noise, run, run_with_input};

#[test]
fn listings_agree_here_and_there() {
    let served = Served::new();
    fs::create_dir(served.local("sub")).unwrap();
    fs::write(served.local("sub/x"), "x").unwrap();
    fs::write(served.local("b"), "bytes").unwrap();
    fs::write(served.local(".hidden"), "").unwrap();
    std::os::unix::fs::symlink("b", served.local("a")).unwrap();
    let here = served.local("").display().to_string();
    for flags in [&["ls"][..], &["ls", "-a"], &["ls", "-l"], &["ls", "-R"], &["ls", "-lR"]] {
        let with = |place: &str| {
            run(flags.iter().copied().chain([place])).ok().replace(place.trim_end_matches('/'), "@")
        };
        assert_eq!(
            with(&here).replace("@/", "@").replace("@sub", "@/sub"),
            with(&served.uri("d")),
            "{flags:?}"
        );
    }
    assert_eq!(run(["ls", &served.uri("d")]).ok(), "a\nb\nsub\n");
    assert_eq!(run(["ls", &served.uri("")]).ok(), "d\nm\n");
}

#[test]
fn json_lines_can_be_read() {
    let served = Served::new();
    fs::write(served.local("b"), "bytes").unwrap();
    fs::set_permissions(served.local("b"), fs::Permissions::from_mode(0o640)).unwrap();
    let line = run(["ls", "--json", &served.uri("d")]).ok();
    let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(entry["path"], served.uri("d/b"));
    assert_eq!(
        (&entry["size_bytes"], &entry["mode"], &entry["type"]),
        (&5.into(), &"0640".into(), &"file".into())
    );
    // The numbers of a store's files use all 64 bits, of which a double holds 53.
    let number: u64 = entry["inode"].as_str().unwrap().parse().unwrap();
    assert!(number > 1 << 53, "{number}");
    let again: serde_json::Value =
        serde_json::from_str(&run(["stat", "--json", &served.uri("d/b")]).ok()).unwrap();
    assert_eq!(entry, again);
}

#[test]
fn names_with_any_bytes_are_shown_safely_and_told_in_hexadecimal() {
    use std::os::unix::ffi::OsStrExt;
    let served = Served::new();
    let name = std::ffi::OsStr::from_bytes(b"a\x1b[2J\xff");
    fs::write(served.local("").join(name), "").unwrap();
    assert_eq!(run(["ls", &served.uri("d")]).ok(), "a\\u{1b}[2J\\xff\n");
    let entry: serde_json::Value =
        serde_json::from_str(&run(["ls", "--json", &served.uri("d")]).ok()).unwrap();
    assert!(entry["path_hex"].as_str().unwrap().ends_with("611b5b324aff"));
}

#[test]
fn cat_gives_the_bytes_asked_for() {
    let served = Served::new();
    let bytes = noise(3_000_000);
    fs::write(served.local("f"), &bytes).unwrap();
    let uri = served.uri("d/f");
    assert_eq!(run_with_input(["cat", &uri], b"").stdout, bytes);
    let part = run_with_input(["cat", "--offset", "1MiB", "--length", "1000001", &uri], b"").stdout;
    assert_eq!(part, bytes[1 << 20..][..1_000_001]);
    assert_eq!(run_with_input(["cat", "--offset", "4MiB", &uri], b"").stdout, b"");
    assert_eq!(run_with_input(["cat", "-", &uri, "-"], b"in").stdout, [b"in", &bytes[..]].concat());
}

#[test]
fn the_same_commands_work_in_process_and_through_a_map() {
    let served = Served::new();
    fs::write(served.local("f"), "content").unwrap();
    let store = format!("s={}", served.local("").display());
    assert_eq!(run(["cat", "--store", &store, "scdc:///s/f"]).ok(), "content");
    let map = format!("/far={}", served.uri("d"));
    assert_eq!(run(["cat", "--map", &map, "/far/./f"]).ok(), "content");
    assert_eq!(run(["ls", "--map", &map, "/far"]).ok(), "f\n");
}

#[test]
fn directories_are_made_and_removed() {
    let served = Served::new();
    run(["mkdir", &served.uri("d/a")]).ok();
    assert!(run(["mkdir", &served.uri("d/a")]).fails(1).contains("File exists"));
    assert!(run(["mkdir", &served.uri("d/x/y")]).fails(1).contains("No such file"));
    run(["mkdir", "-p", &served.uri("d/x/y"), &served.uri("d/a")]).ok();
    assert!(served.local("x/y").is_dir());
    fs::write(served.local("x/y/f"), "").unwrap();
    std::os::unix::fs::symlink("/etc", served.local("x/outside")).unwrap();
    assert!(run(["rm", &served.uri("d/x")]).fails(1).contains("use -r"));
    run(["rm", "-r", &served.uri("d/x")]).ok();
    assert!(!served.local("x").exists() && std::path::Path::new("/etc").exists());
    assert!(run(["rm", &served.uri("d/x")]).fails(1).contains("No such file"));
    run(["rm", "-f", &served.uri("d/x")]).ok();
    assert!(run(["rm", "-r", &served.uri("")]).fails(1).contains("root"));
}

#[test]
fn a_whole_store_is_not_removed_and_nothing_in_it_is_touched() {
    let served = Served::new();
    fs::create_dir(served.local("sub")).unwrap();
    fs::write(served.local("sub/f"), "content").unwrap();
    let said = run(["rm", "-r", &served.uri("d")]).fails(1);
    assert!(said.contains("whole store") && said.contains(&format!("rm -r {}/*", served.uri("d"))));
    assert!(run(["rm", "-rf", &served.uri("")]).fails(1).contains("root"));
    assert_eq!(fs::read(served.local("sub/f")).unwrap(), b"content");
}

#[test]
fn the_root_of_a_service_says_that_stores_are_made_elsewhere() {
    let served = Served::new();
    let said = run(["mkdir", &served.uri("new")]).fails(1);
    assert!(said.contains("only lists its stores") && said.contains("STORE/NAME"), "{said}");
    let said = run(["cp", "/etc/passwd", &served.uri("new")]).fails(1);
    assert!(said.contains("only lists its stores"), "{said}");
}

#[test]
fn errors_name_the_place_the_reason_and_what_to_do() {
    let served = Served::new();
    let missing = run(["cat", &served.uri("d/none")]).fails(1);
    assert_eq!(
        missing,
        format!("sluice: cannot read {}: No such file or directory\n", served.uri("d/none"))
    );
    assert!(run(["cat", &served.uri("d")]).fails(1).contains("Is a directory"));
    let unreachable = run(["ls", "scdc+tcp://127.0.0.1:1/x"]).fails(1);
    assert!(
        unreachable.contains("127.0.0.1:1")
            && unreachable.contains("refused")
            && unreachable.contains("sluice serve")
    );
    let nowhere = run(["ls", "scdc+tcp://nowhere.invalid/x"]).fails(1);
    assert!(nowhere.contains("`nowhere.invalid` cannot be resolved"), "{nowhere}");
    let unknown = run(["ls", "scdc+tpc://host/x"]).fails(1);
    assert!(unknown.contains("byte 5") && unknown.contains("did you mean `tcp`"));
    assert!(run(["ls", "scdc:///none"]).fails(1).contains("--store"));
    assert!(run(["ls", "scdc+ssh://host/x"]).fails(1).contains("scdc+ssh"));
}

#[test]
fn a_store_that_is_not_there_is_told_with_those_that_are() {
    let served = Served::new();
    let said = run(["ls", &served.uri("none")]).fails(1);
    let listing = format!("`sluice ls {}` lists", served.uri(""));
    assert!(
        said.contains("No such file or directory; at the root of a service are its stores")
            && said.contains(&listing),
        "{said}"
    );
    run(["rm", "-f", &served.uri("none")]).ok();
}

#[test]
fn stat_says_where_a_mapped_path_leads() {
    let served = Served::new();
    fs::write(served.local("f"), "").unwrap();
    let map = format!("/far={}", served.uri("d"));
    let at = format!("    At: {}\n", served.uri("d/f"));
    assert!(run(["stat", "--map", &map, "/far/f"]).ok().contains(&at));
    assert!(!run(["stat", &served.uri("d/f")]).ok().contains("At:"));
}

#[test]
fn an_unreachable_service_is_not_an_absent_file() {
    assert!(
        run(["rm", "-f", "scdc+uds:///nonexistent/x.sock/f"]).fails(1).contains("cannot reach")
    );
}

#[test]
fn a_file_that_fails_does_not_stop_the_others() {
    let served = Served::new();
    fs::write(served.local("f"), "content").unwrap();
    let ran = run(["cat", &served.uri("d/none"), &served.uri("d/f")]);
    assert_eq!((ran.status, ran.out.as_str()), (Some(1), "content"));
}
