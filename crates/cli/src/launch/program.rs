//! Finding the program, and deciding whether it can be carried.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::elf::{CLASS_64, Elf, Image, OWN_MACHINE, machine_name};

/// Scripts whose interpreter is a script, and so on: the kernel follows five.
const SCRIPTS_MAX: usize = 5;

/// Why a program is not started.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No such program: exit status 127.
    Missing {
        /// As given.
        program: OsString,
        /// The script that wants it as interpreter, if one does.
        wanted_by: Option<PathBuf>,
    },
    /// It is there but cannot be started at all: exit status 126.
    Unstartable {
        /// Where.
        path: PathBuf,
        /// What stands in the way.
        error: io::Error,
    },
    /// It could be started, but would not be carried: exit status 126.
    Uncarried {
        /// Where.
        path: PathBuf,
        /// What it is.
        why: NotCarried,
    },
}

/// What makes the dynamic loader ignore our library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotCarried {
    /// No dynamic loader.
    Static,
    /// Set-user-id, set-group-id or file capabilities: ld.so(8), secure-execution mode.
    Privileged(&'static str),
    /// Another machine type than the library's.
    Machine(String),
    /// A loader other than glibc's.
    Loader(String),
}

impl Refusal {
    /// The exit status that shells use in this case.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Missing { .. } => 127,
            Self::Unstartable { .. } | Self::Uncarried { .. } => 126,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { program, wanted_by: None } => {
                write!(f, "{}: no such program; check the name and $PATH", program.display())
            }
            Self::Missing { program, wanted_by: Some(script) } => {
                write!(
                    f,
                    "{}: its interpreter {} does not exist; correct the first line",
                    script.display(),
                    program.display()
                )
            }
            Self::Unstartable { path, error } => {
                write!(f, "{}: cannot be executed: {error}", path.display())
            }
            Self::Uncarried { path, why } => {
                write!(f, "{}: ", path.display())?;
                match why {
                    NotCarried::Static => f.write_str(
                        "this program is statically linked: the preload library cannot reach it, and it would use local \
                         files instead of the routed ones. Use a dynamically linked build, or copy its files with `sluice cp`",
                    ),
                    NotCarried::Privileged(what) => write!(
                        f,
                        "this program has {what}: the system ignores preload libraries for it, and it would use local files \
                         instead of the routed ones. Use a copy without privileges, or copy its files with `sluice cp`",
                    ),
                    NotCarried::Machine(machine) => write!(
                        f,
                        "this program is for {machine}, the preload library for {}: it would use local files instead of the \
                         routed ones. Use a build for this machine, or copy its files with `sluice cp`",
                        machine_name(CLASS_64, OWN_MACHINE),
                    ),
                    NotCarried::Loader(loader) => write!(
                        f,
                        "this program is started by {loader}, not by glibc's loader: the preload library cannot work in it. \
                         Use a build for glibc, or copy its files with `sluice cp`",
                    ),
                }
            }
        }
    }
}

/// Finds `program` as execvp(3) does and makes sure that everything started on the way to it can be carried.
pub(crate) fn check(program: &OsStr) -> Result<PathBuf, Refusal> {
    let path = find(program)
        .ok_or_else(|| Refusal::Missing { program: program.to_owned(), wanted_by: None })?;
    check_image(&path, 0)?;
    Ok(path)
}

/// Looks along `$PATH`, unless the name has a slash.
fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return path.symlink_metadata().is_ok().then_some(path);
    }
    if program.is_empty() {
        return None;
    }
    // execvp(3) without PATH.
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut other = None;
    for dir in std::env::split_paths(&search) {
        let path = if dir.as_os_str().is_empty() {
            Path::new(".").join(program)
        } else {
            dir.join(program)
        };
        match path.metadata() {
            Ok(metadata) if metadata.is_file() && may_execute(&path) => return Some(path),
            // Told only if nothing better comes.
            Ok(metadata) if metadata.is_file() => other = other.or(Some(path)),
            _ => {}
        }
    }
    other
}

fn may_execute(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn check_image(path: &Path, scripts: usize) -> Result<(), Refusal> {
    let stop = |error: io::Error| Refusal::Unstartable { path: path.to_path_buf(), error };
    let metadata = path.metadata().map_err(stop)?;
    if metadata.is_dir() {
        return Err(stop(io::ErrorKind::IsADirectory.into()));
    }
    if !may_execute(path) {
        return Err(stop(io::ErrorKind::PermissionDenied.into()));
    }
    let refuse = |why| Err(Refusal::Uncarried { path: path.to_path_buf(), why });
    // Privileged programs are often unreadable as well: say what matters.
    let privileged = privilege(path, &metadata);
    let file = match (File::open(path), privileged) {
        (Err(_), Some(what)) => return refuse(NotCarried::Privileged(what)),
        (opened, _) => opened.map_err(stop)?,
    };
    match Image::read(&file).map_err(stop)? {
        Image::Elf(elf) => match not_carried(&elf).or(privileged.map(NotCarried::Privileged)) {
            Some(why) => refuse(why),
            None => Ok(()),
        },
        Image::Other => check_image(Path::new("/bin/sh"), scripts + 1),
        Image::Script { .. } if scripts >= SCRIPTS_MAX => {
            Err(stop(io::Error::from_raw_os_error(40)))
        }
        Image::Script { interpreter, argument } => {
            let next = PathBuf::from(OsString::from_vec(interpreter));
            let missing = |program: &OsStr| Refusal::Missing {
                program: program.to_owned(),
                wanted_by: Some(path.to_path_buf()),
            };
            if next.symlink_metadata().is_err() {
                return Err(missing(next.as_os_str()));
            }
            check_image(&next, scripts + 1)?;
            // `#!/usr/bin/env python3`: what env starts must be carried, too.
            match argument
                .as_deref()
                .and_then(env_program)
                .filter(|_| next.file_name() == Some(OsStr::new("env")))
            {
                Some(program) => {
                    check_image(&find(program).ok_or_else(|| missing(program))?, scripts + 1)
                }
                None => Ok(()),
            }
        }
    }
}

/// The program that env(1) starts, from its arguments in a `#!` line.
fn env_program(argument: &[u8]) -> Option<&OsStr> {
    let words = argument.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    words
        .into_iter()
        .find(|word| !word.starts_with(b"-") && !word.contains(&b'='))
        .map(OsStr::from_bytes)
}

fn not_carried(elf: &Elf) -> Option<NotCarried> {
    if elf.class != CLASS_64 || elf.machine != OWN_MACHINE {
        return Some(NotCarried::Machine(machine_name(elf.class, elf.machine)));
    }
    match &elf.loader {
        None => Some(NotCarried::Static),
        Some(loader) => {
            let name = loader.rsplit(|&byte| byte == b'/').next().unwrap_or(loader);
            let glibc = name.starts_with(b"ld-linux")
                || name.starts_with(b"ld.so")
                || name.starts_with(b"ld64.so");
            // A loader by another name (Nix, Conda, a private copy) is most often glibc's; musl's says so.
            let foreign = name.starts_with(b"ld-musl") || name.starts_with(b"linker");
            (foreign && !glibc)
                .then(|| NotCarried::Loader(String::from_utf8_lossy(loader).into_owned()))
        }
    }
}

/// Whether the kernel would set `AT_SECURE` for us.
///
/// # Source
/// getauxval(3); `cap_bprm_creds_from_file` in Linux security/commoncap.c: ids that do not change, and file
/// capabilities for the real root, leave the program unprivileged.
fn privilege(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    let mode = metadata.permissions().mode();
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    if mode & 0o4000 != 0 && metadata.uid() != uid {
        return Some("the set-user-id bit");
    }
    // Without group execution the bit means mandatory locking.
    if mode & 0o2010 == 0o2010 && metadata.gid() != gid {
        return Some("the set-group-id bit");
    }
    let mut value = [0; 64];
    let capable = rustix::fs::getxattr(path, "security.capability", &mut value[..]).is_ok();
    (capable && uid != 0).then_some("file capabilities")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(loader: Option<&[u8]>) -> Elf {
        Elf {
            class: CLASS_64,
            machine: OWN_MACHINE,
            kind: 3,
            loader: loader.map(<[u8]>::to_vec),
            dynamic: true,
        }
    }

    #[test]
    fn only_glibc_programs_of_this_machine_are_carried() {
        assert_eq!(not_carried(&elf(Some(b"/lib64/ld-linux-x86-64.so.2"))), None);
        assert_eq!(not_carried(&elf(None)), Some(NotCarried::Static));
        assert!(matches!(
            not_carried(&elf(Some(b"/lib/ld-musl-x86_64.so.1"))),
            Some(NotCarried::Loader(_))
        ));
        let other = Elf { machine: 3, class: 1, ..elf(Some(b"/lib/ld-linux.so.2")) };
        assert_eq!(not_carried(&other), Some(NotCarried::Machine("32-bit x86".into())));
    }

    #[test]
    fn env_lines_name_their_program() {
        assert_eq!(env_program(b"python3"), Some(OsStr::new("python3")));
        assert_eq!(env_program(b"-S A=b perl -w"), Some(OsStr::new("perl")));
        assert_eq!(env_program(b"-S"), None);
    }

    #[test]
    fn what_is_not_there_is_127_and_a_directory_126() {
        let status = |program: &str| check(OsStr::new(program)).expect_err(program).exit_status();
        assert_eq!(status("no-such-program-here"), 127);
        assert_eq!(status("/no/such/program"), 127);
        assert_eq!(status(""), 127);
        assert_eq!(status("/"), 126);
        assert_eq!(status("/etc/passwd"), 126);
        assert!(check(OsStr::new("sh")).is_ok());
    }
}
