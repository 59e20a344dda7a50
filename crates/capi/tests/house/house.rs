//! What the tests of the C library share: the library installed as users have it, compilers, a service.
#![allow(dead_code, clippy::new_without_default)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use service::{Listen, Running, Service};
use store::{Exports, Store};

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The C library in a directory of its own, with headers, pkg-config and CMake files.
pub(crate) struct Installed {
    pub(crate) directory: tempfile::TempDir,
}

impl Installed {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // Where cargo puts the libraries that it builds for a test: beside the test itself.
        let test = std::env::current_exe().expect("a path of its own");
        let libraries = test.parent().expect("a directory");
        let mut install = Command::new(here().join("packaging/install.sh"));
        run(install.arg(libraries).arg(directory.path()));
        Self { directory }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// What pkg-config says a program needs.
    pub(crate) fn flags(&self, package: &str) -> Vec<String> {
        let mut config = Command::new("pkg-config");
        config.env("PKG_CONFIG_PATH", self.path("lib/pkgconfig"));
        let said = run(config.args(["--cflags", "--libs", package]));
        said.split_whitespace().map(str::to_owned).collect()
    }

    /// Builds a program with `compiler` and the shared library.
    pub(crate) fn build(
        &self,
        compiler: &str,
        sources: &[PathBuf],
        flags: &[&str],
        name: &str,
    ) -> PathBuf {
        let program = self.path(name);
        let mut cc = Command::new(compiler);
        cc.current_dir(self.directory.path()).args(flags).args(sources).arg("-o").arg(&program);
        run(cc.args(self.flags("sluice_c")));
        program
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.path("lib")).current_dir(self.directory.path());
        command
    }
}

pub(crate) fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a command that succeeds prints.
pub(crate) fn run(command: &mut Command) -> String {
    let output = output(command);
    let errors = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}: {}\n{said}\n{errors}", output.status);
    said.into_owned()
}

/// A service with one store called `store`, and its address.
pub(crate) fn service(directory: &Path, store: Arc<dyn Store>) -> (Running, String) {
    let socket = directory.join("service.sock");
    let exports = Exports::new([(b"store".to_vec(), store)]).expect("a name");
    let builder = Service::builder(Arc::new(exports)).listen(Listen::Unix(socket.clone()));
    (builder.start().expect("a service"), format!("scdc+uds://{}/store", socket.display()))
}
