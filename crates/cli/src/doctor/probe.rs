//! Does a program really work here on a file that is elsewhere? Two small ones are tried.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use address::{Settings, StorePlace, StoreSpec};
use anyhow::{Context, Result, bail};

use crate::launch::{environment, program};

/// What the probe file holds: lines in the wrong order.
const CONTENT: &str = "sluice\nprobe\n";
const SORTED: &str = "probe\nsluice\n";
/// A program that hangs is broken, too.
const PATIENCE: Duration = Duration::from_secs(10);

/// A directory with one file, gone in the end.
pub(super) struct Probe {
    dir: PathBuf,
    library: PathBuf,
}

impl Probe {
    pub(super) fn new(library: PathBuf) -> Result<Self> {
        let dir = std::env::temp_dir().join(format!("sluice-doctor-{}", std::process::id()));
        let context = || {
            format!(
                "cannot make {}; let $TMPDIR name a directory that you can write",
                dir.display()
            )
        };
        std::fs::create_dir(&dir).with_context(context)?;
        let probe = Self { dir, library };
        std::fs::write(probe.dir.join("file"), CONTENT).context("cannot write the probe file")?;
        Ok(probe)
    }

    /// The preload library.
    pub(super) fn library(&self) -> &Path {
        &self.library
    }

    /// Where files may be made.
    pub(super) fn scratch(&self) -> &Path {
        &self.dir
    }

    /// Whether libc can be patched: sort(1) reads by stdio, whose own calls no symbol can catch.
    pub(super) fn patched(&self) -> Result<String> {
        self.run("sort", true, SORTED)?;
        Ok("works: sort(1), which reads by stdio, reads a file of a store".into())
    }

    /// Whether the fallback works: cat(1) calls read(2) by its symbol.
    pub(super) fn interposed(&self) -> Result<String> {
        self.run("cat", false, CONTENT)?;
        Ok("works: cat(1) reads a file of a store without patching".into())
    }

    fn run(&self, name: &str, patch: bool, expected: &str) -> Result<()> {
        let path = match program::check(OsStr::new(name)) {
            Ok(path) => path,
            Err(refusal) => bail!("cannot be tried: {refusal}"),
        };
        let place = StorePlace::Dir(self.dir.clone());
        let stores = vec![StoreSpec::new(b"probe", place, true)?];
        let settings = Settings { stores, ..Settings::default() };
        let mut command = Command::new(path);
        environment(&mut command, &settings, &self.library, patch);
        command.arg("scdc:///probe/file").stdin(Stdio::null());
        let (out, said) = (self.dir.join("out"), self.dir.join("err"));
        command.stdout(create(&out)?).stderr(create(&said)?);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let started = Instant::now();
        let status = loop {
            if let Some(status) =
                child.try_wait().with_context(|| format!("cannot wait for {name}"))?
            {
                break status;
            }
            if started.elapsed() > PATIENCE {
                // It may just have ended.
                let _ = child.kill();
                let _ = child.wait();
                bail!("{name} hangs");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        if status.success() && read(&out) == expected {
            return Ok(());
        }
        let said = read(&said);
        match said.lines().next() {
            Some(line) => bail!("{name} says: {line}"),
            None => bail!("{name} reads something else ({status})"),
        }
    }
}

fn create(path: &Path) -> io::Result<std::fs::File> {
    std::fs::File::create(path)
}

impl Drop for Probe {
    fn drop(&mut self) {
        // A leftover in /tmp is no reason to fail.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
