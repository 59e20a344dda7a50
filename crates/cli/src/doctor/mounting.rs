//! Does `sluice mount` work here? Memory is mounted, written and read.

use std::path::Path;

use anyhow::{Context, Result, bail};
use mount::{Manner, Mounted, Options};
use store::mem::MemStore;

const CONTENT: &[u8] = b"sluice\n";

/// What works, or why it does not.
pub(super) fn try_it() -> Result<String> {
    let way = mount::availability()?;
    let dir = std::env::temp_dir().join(format!("sluice-doctor-mount-{}", std::process::id()));
    std::fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let outcome = try_on(&dir);
    let _ = std::fs::remove_dir(&dir);
    outcome.map(|()| format!("works: a file of mounted memory is written and read ({way})"))
}

fn try_on(dir: &Path) -> Result<()> {
    let mounted = Mounted::new(&MemStore::new(), dir, Options::default())?;
    let point = mounted.point();
    let file = dir.join("file");
    let found = std::fs::write(&file, CONTENT).and_then(|()| std::fs::read(&file));
    point.unmount(Manner::Lazy)?;
    mounted.wait()?;
    if found.context("cannot use a file of what was mounted")? != CONTENT {
        bail!("a file of what was mounted has other bytes than were written");
    }
    Ok(())
}
