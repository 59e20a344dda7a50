//! Against diod, a 9P2000.L server that is not ours (Debian package `diod`). Skipped with a message
//! where it is not installed, unless `SLUICE_NEED_FOREIGN` is set.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{At, Error, Options, Place, Repeat, Session, SocketDial};
use p9::{Errno, OpenFlags, SetAttributes, SetattrMask};

struct Diod(Child);

impl Drop for Diod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// diod serving `export` on a Unix socket, or nothing when it is not installed.
fn diod(export: &Path, socket: &Path) -> Option<Diod> {
    let program =
        ["/usr/sbin/diod", "/usr/bin/diod"].into_iter().find(|path| Path::new(path).exists());
    let Some(program) = program else {
        assert!(std::env::var_os("SLUICE_NEED_FOREIGN").is_none(), "diod is not installed");
        eprintln!("skipped: diod is not installed (apt-get install diod)");
        return None;
    };
    // diod ends at SIGPIPE when a client leaves with a reply under way.
    let child = Command::new("/bin/sh")
        .args(["-c", "trap '' PIPE; exec \"$@\"", "sh", program])
        .args(["-f", "-n", "-N", "-L", "stderr", "-e"])
        .arg(export)
        .arg("-l")
        .arg(socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("diod starts");
    let child = Diod(child);
    let start = Instant::now();
    while !socket.exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "diod makes no socket");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(child)
}

fn session(socket: &Path) -> Arc<Session> {
    let dial = SocketDial::new(Place::Unix(socket.to_owned()));
    let options = Options { uname: "root".to_owned(), ..Options::default() };
    Session::new(Box::new(dial), options)
}

fn read_all(session: &Arc<Session>, path: &[u8]) -> Result<Vec<u8>, Error> {
    let handle = session.open(At::root(path), OpenFlags::empty(), 0)?.handle;
    let mut all = Vec::new();
    loop {
        let mut part = vec![0; 1 << 20];
        let count = handle.with(Repeat::Safe, |connection, fid| {
            let most = connection.payload_max().min(part.len());
            let ticket = connection.submit_read(fid, all.len() as u64, most as u32)?;
            connection.wait_read(ticket, &mut part[..most])
        })?;
        if count == 0 {
            return Ok(all);
        }
        all.extend_from_slice(&part[..count]);
    }
}

#[test]
fn diod_is_walked_read_written_and_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let export = directory.path().join("export");
    let socket = directory.path().join("socket");
    std::fs::create_dir_all(export.join("dir/sub")).expect("mkdir");
    let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 3 % 241) as u8).collect();
    std::fs::write(export.join("dir/file"), &data).expect("write");
    std::os::unix::fs::symlink("../dir/file", export.join("dir/link")).expect("symlink");
    let Some(_diod) = diod(&export, &socket) else {
        return;
    };
    let session = session(&socket);
    let base = export.to_str().expect("text").trim_start_matches('/').to_owned();
    let path = |rest: &str| format!("{base}/{rest}").into_bytes();

    assert!(read_all(&session, &path("dir/file")) == Ok(data.clone()));
    assert!(read_all(&session, &path("dir/link")) == Ok(data.clone()));
    let stat = |rest: &str| session.stat(At::root(&path(rest)), true);
    assert_eq!(stat("dir/link").map(|a| a.size), Ok(data.len() as u64));
    assert_eq!(stat("dir/none").map(|a| a.size), Err(Error::Refused(Errno::ENOENT)));
    assert_eq!(stat("none/x").map(|a| a.size), Err(Error::Refused(Errno::ENOENT)));
    assert_eq!(stat("dir/file/x").map(|a| a.size), Err(Error::Refused(Errno::ENOTDIR)));

    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let made = session.open(At::root(&path("dir/sub/made")), flags, 0o640).expect("create");
    assert_eq!(made.attributes.mode & 0o777, 0o640);
    for (index, part) in data.chunks(100_000).enumerate() {
        made.handle
            .with(Repeat::Safe, |connection, fid| {
                let most = connection.payload_max();
                for (piece, bytes) in part.chunks(most).enumerate() {
                    let offset = index * 100_000 + piece * most;
                    connection.wait(connection.submit_write(fid, offset as u64, bytes)?)?;
                }
                Ok(())
            })
            .expect("write");
    }
    made.handle.sync(false).expect("fsync");
    assert!(std::fs::read(export.join("dir/sub/made")).expect("read") == data);
    let exclusive = session.open(At::root(&path("dir/sub/made")), flags | OpenFlags::EXCLUSIVE, 0);
    assert_eq!(exclusive.map(|_| ()), Err(Error::Refused(Errno::EEXIST)));

    let set = SetAttributes { valid: SetattrMask::SIZE, size: 7, ..Default::default() };
    session.set_attributes(At::root(&path("dir/sub/made")), true, &set).expect("truncate");
    assert_eq!(stat("dir/sub/made").map(|a| a.size), Ok(7));
    session
        .rename(At::root(&path("dir/sub/made")), At::root(&path("dir/moved")), false)
        .expect("rename");
    session.make_directory(At::root(&path("dir/new")), 0o755).expect("mkdir");
    session
        .link(At::root(&path("dir/moved")), At::root(&path("dir/new/hard")), false)
        .expect("link");
    session.symlink(b"moved", At::root(&path("dir/soft"))).expect("symlink");
    assert_eq!(read_all(&session, &path("dir/soft")).map(|d| d.len()), Ok(7));
    session.remove(At::root(&path("dir/new/hard")), false).expect("unlink");
    session.remove(At::root(&path("dir/new")), true).expect("rmdir");

    let opened = session.open(At::root(&path("dir")), OpenFlags::DIRECTORY, 0).expect("open");
    let mut names = Vec::new();
    let mut cookie = 0;
    while opened
        .handle
        .read_directory(cookie, &mut |entry| {
            names.push(String::from_utf8_lossy(entry.name).into_owned());
            cookie = entry.offset;
            true
        })
        .expect("list")
        > 0
    {}
    names.retain(|name| name != "." && name != "..");
    names.sort();
    assert_eq!(names, ["file", "link", "moved", "soft", "sub"]);
    assert_eq!(
        session.stat(At::dir(&opened.handle, b"sub"), true).map(|a| a.is_directory()),
        Ok(true)
    );
}

#[test]
fn diod_is_asked_by_many_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let export = directory.path().join("export");
    let socket = directory.path().join("socket");
    std::fs::create_dir_all(&export).expect("mkdir");
    for i in 0..40 {
        std::fs::write(export.join(format!("f{i}")), vec![i as u8; 10_000 + i]).expect("write");
    }
    let Some(_diod) = diod(&export, &socket) else {
        return;
    };
    let session = session(&socket);
    let base = export.to_str().expect("text").trim_start_matches('/').to_owned();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (session, base) = (&session, &base);
            scope.spawn(move || {
                for round in 0..40_usize {
                    let i = (round * 7 + thread * 3) % 40;
                    let path = format!("{base}/f{i}").into_bytes();
                    let size = session.stat(At::root(&path), true).map(|a| a.size);
                    assert_eq!(size, Ok(10_000 + i as u64));
                    assert!(read_all(session, &path) == Ok(vec![i as u8; 10_000 + i]));
                    let none = session.stat(At::root(format!("{base}/g{i}").as_bytes()), true);
                    assert_eq!(none.map(|a| a.size), Err(Error::Refused(Errno::ENOENT)));
                }
            });
        }
    });
}
