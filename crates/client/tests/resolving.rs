//! Paths: walking, symbolic links, `..`, what must not be left behind, round trips.

mod fake;

use client::{At, Error, O_PATH, Session};
use fake::Fake;
use p9::{Errno, OpenFlags};

fn tree() -> Fake {
    Fake::new(&[
        "base/dir/sub/file",
        "base/dir/to_sub@sub",
        "base/dir/to_file@sub/file",
        "base/dir/up@../dir/sub",
        "base/dir/out@../../other/secret",
        "base/dir/absolute@/etc/passwd",
        "base/dir/absolute_dir@/mnt/x",
        "base/dir/loop@loop",
        "base/dir/dangling@not/there",
        "base/dir/new_by_link@sub/made",
        "other/secret",
    ])
}

fn size(session: &Session, path: &str) -> Result<u64, Error> {
    session.stat(At::root(path.as_bytes()), true).map(|attributes| attributes.size)
}

fn refused<T>(errno: Errno) -> Result<T, Error> {
    Err(Error::Refused(errno))
}

const FILE: &str = "base/dir/sub/file";

#[test]
fn links_and_dots_lead_where_the_kernel_would_go() {
    let fake = tree();
    let session = fake.session();
    let len = FILE.len() as u64;
    for path in [
        FILE,
        "base/dir/to_sub/file",
        "base/dir/to_file",
        "base/dir/up/file",
        "base//dir/./sub/../sub/file",
        // `..` behind a link goes up from where the link leads.
        "base/dir/to_sub/../to_file",
        "../../base/dir/sub/file",
        "base/../base/dir/up/../to_sub/file",
    ] {
        assert_eq!(size(&session, path), Ok(len), "{path}");
    }
}

#[test]
fn paths_that_lead_nowhere_fail_as_the_kernel_would() {
    let fake = tree();
    let session = fake.session();
    for (path, errno) in [
        ("base/dir/none", Errno::ENOENT),
        ("base/none/file", Errno::ENOENT),
        ("base/dir/sub/file/x", Errno::ENOTDIR),
        ("base/dir/sub/file/", Errno::ENOTDIR),
        ("base/dir/sub/file/.", Errno::ENOTDIR),
        ("base/dir/sub/file/..", Errno::ENOTDIR),
        ("base/dir/none/..", Errno::ENOENT),
        ("base/dir/loop", Errno::ELOOP),
        ("base/dir/dangling", Errno::ENOENT),
        ("base/dir/out", Errno::EXDEV),
    ] {
        assert_eq!(size(&session, path), refused(errno), "{path}");
    }
    let long = format!("base/{}", "x".repeat(256));
    assert_eq!(size(&session, &long), refused(Errno::ENAMETOOLONG));
    assert_eq!(size(&session, &"base/".repeat(1000)), refused(Errno::ENAMETOOLONG));
}

#[test]
fn absolute_links_are_handed_to_who_knows_the_routes() {
    let fake = tree();
    let session = fake.session();
    let link = |target: &[u8], rest: &[u8]| {
        Err(Error::AbsoluteLink { target: target.to_vec(), rest: rest.to_vec() })
    };
    assert_eq!(size(&session, "base/dir/absolute"), link(b"/etc/passwd", b""));
    assert_eq!(size(&session, "base/dir/absolute_dir/a/b"), link(b"/mnt/x", b"a/b"));
    let target = session.read_link(At::root(b"base/dir/absolute"));
    assert_eq!(target.as_deref(), Ok(&b"/etc/passwd"[..]));
}

#[test]
fn a_link_itself_is_seen_without_following() {
    let fake = tree();
    let session = fake.session();
    let stat = |path: &[u8]| session.stat(At::root(path), false).map(|a| a.is_symlink());
    assert_eq!(stat(b"base/dir/to_sub"), Ok(true));
    // A slash at the end follows it all the same.
    assert_eq!(stat(b"base/dir/to_sub/"), Ok(false));
    let open = |flags| session.open(At::root(b"base/dir/to_file"), flags, 0).map(|_| ());
    assert_eq!(open(OpenFlags::NOFOLLOW), refused(Errno::ELOOP));
    assert_eq!(open(OpenFlags::empty()), Ok(()));
    assert_eq!(open(OpenFlags::NOFOLLOW | O_PATH), Ok(()));
}

#[test]
fn attributes_are_set_on_what_a_link_leads_to_and_never_on_the_link() {
    let fake = tree();
    let session = fake.session();
    let mut set = p9::SetAttributes { size: 3, ..Default::default() };
    // The fake panics when a link's attributes are set.
    set.valid = p9::SetattrMask::SIZE | p9::SetattrMask::MTIME;
    session.set_attributes(At::root(b"base/dir/to_file"), true, &set).expect("set");
    assert_eq!(fake.content(FILE).expect("there").len(), 3);
}

#[test]
fn more_than_sixteen_names_are_walked_and_leave_no_fids() {
    let deep: Vec<String> = (0..40).map(|i| format!("d{i}")).collect();
    let path = format!("{}/file", deep.join("/"));
    let fake = Fake::new(&[&path]);
    let session = fake.session();
    assert_eq!(size(&session, &path), Ok(path.len() as u64));
    fake.reset();
    assert_eq!(size(&session, &path), Ok(path.len() as u64));
    assert_eq!(fake.bursts(), 1);
    assert_eq!(size(&session, &format!("{path}x")), refused(Errno::ENOENT));
    let opened = session.open(At::root(path.as_bytes()), OpenFlags::empty(), 0).expect("open");
    assert_eq!(opened.handle.path(), path.as_bytes());
}

#[test]
fn paths_from_a_directory_go_up_as_far_as_the_root() {
    let fake = tree();
    let session = fake.session();
    let open = |path: &[u8], flags| session.open(At::root(path), flags, 0).expect("open").handle;
    for flags in [OpenFlags::DIRECTORY, OpenFlags::empty(), O_PATH] {
        let sub = open(b"base/dir/sub", flags);
        let size = |path: &str| session.stat(At::dir(&sub, path.as_bytes()), true).map(|a| a.size);
        assert_eq!(size("file"), Ok(FILE.len() as u64));
        assert_eq!(size("../to_file"), Ok(FILE.len() as u64));
        assert_eq!(size("../../../../base/dir/sub/file"), Ok(FILE.len() as u64));
        assert_eq!(size("../out"), refused(Errno::EXDEV));
        assert_eq!(session.stat(At::dir(&sub, b""), true).map(|a| a.is_directory()), Ok(true));
        let file = session.open(At::dir(&sub, b"../to_sub/file"), OpenFlags::empty(), 0);
        assert_eq!(file.expect("open").handle.path(), FILE.as_bytes());
    }
}

#[test]
fn creation_follows_links_and_obeys_the_flags() {
    let fake = tree();
    let session = fake.session();
    let create = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
    let open = |path: &[u8], flags| session.open(At::root(path), flags, 0o644).map(|_| ());
    assert_eq!(open(b"base/dir/new", create), Ok(()));
    assert!(fake.exists("base/dir/new"));
    assert_eq!(open(b"base/dir/new", create | OpenFlags::EXCLUSIVE), refused(Errno::EEXIST));
    assert_eq!(open(b"base/dir/new_by_link", create), Ok(()));
    assert!(fake.exists("base/dir/sub/made"));
    assert_eq!(open(b"base/none/new", create), refused(Errno::ENOENT));
    assert_eq!(open(b"base/dir/new/", create), refused(Errno::EISDIR));
    assert_eq!(open(b"base/dir", create), refused(Errno::EISDIR));
    assert_eq!(open(b"base/dir/absolute", create | OpenFlags::EXCLUSIVE), refused(Errno::EEXIST));
    assert!(matches!(open(b"base/dir/absolute", create), Err(Error::AbsoluteLink { .. })));
    assert_eq!(open(FILE.as_bytes(), create | OpenFlags::TRUNCATE), Ok(()));
    assert_eq!(fake.content(FILE).as_deref(), Some(&b""[..]));
}

#[test]
fn names_come_and_go() {
    let fake = tree();
    let session = fake.session();
    let at = |path: &'static str| At::root(path.as_bytes());
    session.make_directory(at("base/made/"), 0o755).expect("mkdir");
    assert_eq!(session.make_directory(at("base/made"), 0o755), refused(Errno::EEXIST));
    session.rename(at(FILE), at("base/made/file"), false).expect("rename");
    assert!(fake.exists("base/made/file") && !fake.exists(FILE));
    session.rename(at("base/made/file"), at("base/made/other"), true).expect("rename");
    session.link(at("base/made/other"), at("base/dir/second"), false).expect("link");
    assert_eq!(fake.content("base/dir/second").as_deref(), Some(FILE.as_bytes()));
    let taken = session.rename(at("base/dir/second"), at("base/made/other"), true);
    assert_eq!(taken, refused(Errno::EEXIST));
    session.symlink(b"../made", at("base/dir/made")).expect("symlink");
    assert_eq!(size(&session, "base/dir/made/other"), Ok(FILE.len() as u64));
    session.remove(at("base/made/other"), false).expect("unlink");
    assert!(!fake.exists("base/made/other"));
    assert_eq!(session.remove(at("base/dir/"), false), refused(Errno::EISDIR));
    assert_eq!(session.remove(at("base/dir/second/"), false), refused(Errno::ENOTDIR));
    assert_eq!(session.remove(at("base/dir/."), true), refused(Errno::EINVAL));
    assert_eq!(session.remove(at("base/dir/.."), true), refused(Errno::ENOTEMPTY));
    assert_eq!(session.rename(at("base/dir/.."), at("base/x"), false), refused(Errno::EBUSY));
    let slash = session.rename(at("base/dir/second/"), at("base/x"), false);
    assert_eq!(slash, refused(Errno::ENOTDIR));
}

#[test]
fn one_round_trip_each() {
    let fake = tree();
    let session = fake.session();
    session.connect().expect("connect");
    size(&session, "base").expect("stat");
    let count = |what: &str, most: usize, act: &dyn Fn()| {
        fake.reset();
        act();
        assert_eq!(fake.bursts(), most, "{what}: {:?}", fake.world().log);
    };
    count("stat", 1, &|| assert!(size(&session, FILE).is_ok()));
    count("open and first read", 1, &|| {
        let opened = session.open(At::root(FILE.as_bytes()), OpenFlags::empty(), 0).expect("open");
        let (connection, ticket) = opened.first.and_then(|first| first.take()).expect("a read");
        let body = connection.wait(ticket).expect("data");
        assert_eq!(body.data(), FILE.as_bytes());
    });
    count("stat of what is missing", 1, &|| {
        assert_eq!(size(&session, "base/dir/none"), refused(Errno::ENOENT));
    });
    count("open of what is missing", 1, &|| {
        let none = session.open(At::root(b"base/dir/none"), OpenFlags::empty(), 0);
        assert_eq!(none.map(|_| ()), refused(Errno::ENOENT));
    });
    let exclusive = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::WRITE_ONLY;
    count("create exclusively", 1, &|| {
        session.open(At::root(b"base/dir/x"), exclusive, 0o600).expect("create");
    });
    let create = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
    count("create", 2, &|| {
        session.open(At::root(b"base/dir/y"), create, 0o600).expect("create");
    });
    count("mkdir", 1, &|| session.make_directory(At::root(b"base/dir/d"), 0o700).expect("mkdir"));
    count("unlink", 1, &|| session.remove(At::root(b"base/dir/y"), false).expect("unlink"));
    count("rename", 1, &|| {
        session.rename(At::root(b"base/dir/d"), At::root(b"base/dir/e"), false).expect("rename");
    });
    count("readlink", 1, &|| {
        session.read_link(At::root(b"base/dir/to_sub")).expect("readlink");
    });
    count("list", 2, &|| {
        let opened = session.open(At::root(b"base/dir"), OpenFlags::DIRECTORY, 0).expect("open");
        let mut names = Vec::new();
        let mut cookie = 0;
        opened
            .handle
            .read_directory(cookie, &mut |entry| {
                names.push(entry.name.to_vec());
                cookie = entry.offset;
                true
            })
            .expect("list");
        assert!(names.contains(&b"sub".to_vec()));
    });
}

#[test]
fn fids_are_given_back() {
    let fake = tree();
    let session = fake.session();
    for _ in 0..3000 {
        // Numbers are used again after a while: the fake panics when one is in use still.
        size(&session, FILE).expect("stat");
        size(&session, "base/dir/none").expect_err("missing");
        size(&session, "base/dir/up/file").expect("stat");
        drop(session.open(At::root(FILE.as_bytes()), OpenFlags::empty(), 0).expect("open"));
        drop(session.open(At::root(b"base/dir"), OpenFlags::DIRECTORY, 0).expect("open"));
    }
}

#[test]
fn a_service_that_promises_no_order_is_asked_step_by_step() {
    for plain in [false, true] {
        step_by_step(tree().with_faults(|faults| {
            faults.reversed = true;
            faults.plain = plain;
        }));
    }
}

fn step_by_step(fake: Fake) {
    let session = fake.session();
    assert_eq!(size(&session, FILE), Ok(FILE.len() as u64));
    assert_eq!(size(&session, "base/dir/up/file"), Ok(FILE.len() as u64));
    assert_eq!(size(&session, "base/dir/none"), refused(Errno::ENOENT));
    let opened = session.open(At::root(FILE.as_bytes()), OpenFlags::empty(), 0).expect("open");
    assert_eq!(opened.attributes.size, FILE.len() as u64);
    session.make_directory(At::root(b"base/new"), 0o755).expect("mkdir");
    assert!(fake.exists("base/new"));
    let dir = session.open(At::root(b"base/dir"), OpenFlags::DIRECTORY, 0).expect("open").handle;
    assert_eq!(dir.read_directory(0, &mut |_| true), Ok(10));
}

#[test]
fn replies_in_another_order_are_no_problem() {
    let fake = tree().with_faults(|faults| faults.replies_reversed = true);
    let session = fake.session();
    assert_eq!(size(&session, "base/dir/up/file"), Ok(FILE.len() as u64));
    let opened = session.open(At::root(FILE.as_bytes()), OpenFlags::empty(), 0).expect("open");
    assert_eq!(opened.attributes.size, FILE.len() as u64);
}

#[test]
fn a_service_without_an_unnamed_root_is_attached_by_prefixes() {
    let fake = Fake::new(&["srv/data/a/file", "srv/more/b/file", "hidden/file"])
        .with_faults(|faults| faults.trees = vec!["/srv/data", "/srv/more"]);
    let session = fake.session();
    assert_eq!(size(&session, "srv/data/a/file"), Ok(15));
    assert_eq!(size(&session, "srv/more/b/file"), Ok(15));
    assert_eq!(size(&session, "srv/data/a/none"), refused(Errno::ENOENT));
    assert_eq!(size(&session, "hidden/file"), refused(Errno::EACCES));
    let opened = session.open(At::root(b"srv/more/b"), OpenFlags::DIRECTORY, 0).expect("open");
    let file = session.open(At::dir(&opened.handle, b"file"), OpenFlags::empty(), 0);
    assert_eq!(file.expect("open").handle.path(), b"srv/more/b/file");
    fake.reset();
    assert_eq!(size(&session, "srv/data/a/file"), Ok(15));
    assert_eq!(fake.bursts(), 1);
}
