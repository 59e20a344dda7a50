//! A mount that outlives the command: `sluice mount --daemon`.
//!
//! The command starts itself once more. The second process mounts, says so on a pipe to the first, which passes it on
//! and ends, and leaves the terminal.

use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags};

/// Tells the second process what it is.
const VARIABLE: &str = "SLUICE_MOUNT_BACKGROUND";

/// Whether this is the second process.
pub(super) fn is_second() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Starts the second process and waits until it has mounted, or has said why not.
pub(super) fn start() -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot tell where sluice itself is")?;
    let mut second = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start sluice in the background")?;
    let mut words = Vec::new();
    if let Some(mut stdout) = second.stdout.take() {
        stdout.read_to_end(&mut words).context("cannot hear of the background process")?;
    }
    if words.is_empty() {
        // It has said why.
        second.wait().context("cannot wait for the background process")?;
        return Ok(ExitCode::FAILURE);
    }
    crate::report::standard_output(std::io::stdout().write_all(&words))?;
    Ok(ExitCode::SUCCESS)
}

/// In the second process, once it has mounted: nothing that happens to the terminal concerns it any more.
pub(super) fn leave_the_terminal() {
    if !is_second() {
        return;
    }
    let _ = rustix::process::setsid();
    // A directory that stays in use could not be unmounted or removed.
    let _ = std::env::set_current_dir("/");
    if let Ok(null) = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}
