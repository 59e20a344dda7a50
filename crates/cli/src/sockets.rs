//! Sockets of this user: in a directory where nobody else can put one.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use address::SocketName;
use anyhow::{Context, Result, bail};

/// The name of a socket has fewer bytes (unix(7)).
pub(crate) const PATH_BYTES: usize = 108;

/// Where the socket `name` lies that only this user can make: below `XDG_RUNTIME_DIR`, or where that cannot be, as on nodes of
/// a cluster that have none, below `/tmp`. The directory is there then.
pub(crate) fn private(name: &str) -> Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    private_below(runtime.as_deref(), name)
}

fn private_below(runtime: Option<&Path>, name: &str) -> Result<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let name = SocketName::Named(name.to_owned());
    let below = name.resolve(runtime, uid);
    if below.as_os_str().len() < PATH_BYTES && private_directory(parent(&below)).is_ok() {
        return Ok(below);
    }
    let below = name.resolve(None, uid);
    private_directory(parent(&below))?;
    Ok(below)
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Makes the directory of this user's sockets; below /tmp somebody else may have been there first.
pub(crate) fn private_directory(dir: &Path) -> Result<()> {
    let context = || format!("cannot make the directory of the socket, {}", dir.display());
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other.with_context(context)?,
    }
    let found = dir.symlink_metadata().with_context(context)?;
    let uid = rustix::process::getuid().as_raw();
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        bail!(
            "{} is not a directory that only you can write, so no socket of yours is made there; remove it",
            dir.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_runtime_directory_that_cannot_be_used_is_passed_over() {
        let runtime = tempfile::tempdir().unwrap();
        let at = private_below(Some(runtime.path()), "x").unwrap();
        assert_eq!(at, runtime.path().join("sluice/x.sock"));
        let fallback = private_below(None, "x").unwrap();
        assert!(fallback.starts_with("/tmp"));
        let missing = runtime.path().join("missing");
        let long = runtime.path().join("long".repeat(30));
        std::fs::create_dir(&long).unwrap();
        for runtime in [missing, long] {
            assert_eq!(private_below(Some(&runtime), "x").unwrap(), fallback);
        }
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let error = private_directory(dir.path()).unwrap_err().to_string();
        assert!(error.contains("only you can write"), "{error}");
    }
}
