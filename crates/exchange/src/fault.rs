//! What goes wrong, and what netCDF calls it.

use std::path::PathBuf;
use std::time::Duration;

use coupling::Diagnostics;
use matching::{Refusal, RequestError};

/// Why a call on a coupled file fails.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A variable of the environment is missing or means nothing.
    #[error(
        "{variable} is missing or means nothing: start the program by `sluice couple run` or `sluice run --couple`"
    )]
    Environment {
        /// Which.
        variable: &'static str,
    },
    /// The configuration is wrong.
    #[error("the configuration of the coupling is wrong; `sluice couple check` shows it")]
    Configuration {
        /// Everything that is wrong.
        #[source]
        source: Diagnostics,
    },
    /// The process is of a component that nobody knows.
    #[error("there is no component `{component}` in the configuration, but {known}")]
    NoComponent {
        /// Its name.
        component: String,
        /// The names that there are.
        known: String,
    },
    /// Something in the file system cannot be used.
    #[error("{what} {}: cannot be used", path.display())]
    Directory {
        /// What it is for.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The ranks of the group cannot talk to each other.
    #[error("file `{file}`: the ranks that open it cannot agree: {why}")]
    Group {
        /// The file; empty where it is not known.
        file: String,
        /// What the MPI library, or who carries it, says.
        why: String,
    },
    /// Somebody has not come in time.
    #[error(
        "{component}, rank {rank}: file `{file}`: waited {waited:?} for {what}; set SLUICE_COUPLE_WAIT if that takes longer"
    )]
    Late {
        /// Who waited.
        component: String,
        /// Its rank.
        rank: u32,
        /// For which file.
        file: String,
        /// What has not happened.
        what: String,
        /// How long.
        waited: Duration,
    },
    /// Somebody has ended or cannot be reached.
    #[error(
        "{component}, rank {rank}: file `{file}`: {who} has ended or cannot be reached any more{why}"
    )]
    Gone {
        /// Who depends on it.
        component: String,
        /// Its rank.
        rank: u32,
        /// For which file.
        file: String,
        /// Who is gone.
        who: String,
        /// What more is known; begins with a separator.
        why: String,
    },
    /// One rule stands for two files.
    #[error(
        "`{read}` is to be read, but what was written next by the same rule is `{written}`; give each a rule, or write `%` in the name of the rule"
    )]
    OtherFile {
        /// What is read.
        read: String,
        /// What was written.
        written: String,
    },
    /// What the first rank of the group has met, which waits for all.
    #[error("{text}")]
    Told {
        /// In its words.
        text: String,
        /// netCDF's error code.
        status: i32,
    },
    /// A part cannot be read.
    #[error("{0}")]
    Refused(Refusal),
    /// A call that netCDF would refuse as well.
    #[error("{component}, rank {rank}: {source}")]
    Request {
        /// Who.
        component: String,
        /// Its rank.
        rank: u32,
        /// What is wrong.
        source: RequestError,
    },
    /// The program's memory ends before the part does.
    #[error(
        "{component}, rank {rank}: file `{file}`: variable `{variable}`: {slab} does not fit in {bytes} bytes of memory as it is laid out"
    )]
    Memory {
        /// Who.
        component: String,
        /// Its rank.
        rank: u32,
        /// The file.
        file: String,
        /// The variable.
        variable: String,
        /// The part.
        slab: String,
        /// How much memory there is.
        bytes: usize,
    },
    /// A call at the wrong time.
    #[error("{component}, rank {rank}: file `{file}`: {what}")]
    Order {
        /// Who.
        component: String,
        /// Its rank.
        rank: u32,
        /// The file.
        file: String,
        /// What is out of order.
        what: &'static str,
    },
    /// The file is none of those that this component exchanges.
    #[error("file `{file}` is not {what} by {component}; see `sluice couple check --name`")]
    NotCoupled {
        /// The file.
        file: String,
        /// `written` or `read`.
        what: &'static str,
        /// This component.
        component: String,
    },
    /// The process's own part cannot go on.
    #[error("coupling cannot go on in this process: {what}")]
    Broken {
        /// Why.
        what: String,
    },
}

/// `NC_EINVAL`, `NC_EPERM`, `NC_EINVALCOORDS` of netcdf.h.
const NC_EINVAL: i32 = -36;
const NC_EPERM: i32 = -37;
/// `NC_EFILE` and `NC_EREAD` of pnetcdf.h.
const NC_EFILE: i32 = -204;
const NC_EREAD: i32 = -205;

impl Fault {
    /// netCDF's error code for it.
    #[must_use]
    pub fn status(&self) -> i32 {
        match self {
            Self::Environment { .. }
            | Self::Configuration { .. }
            | Self::NoComponent { .. }
            | Self::Directory { .. }
            | Self::Group { .. }
            | Self::Late { .. }
            | Self::OtherFile { .. }
            | Self::Broken { .. } => NC_EFILE,
            Self::Gone { .. } => NC_EREAD,
            Self::Told { status, .. } => *status,
            Self::Refused(refusal) => refusal.status,
            Self::Request { source, .. } => source.status(),
            Self::Memory { .. } => NC_EINVAL,
            Self::Order { .. } | Self::NotCoupled { .. } => NC_EPERM,
        }
    }

    /// The whole story: this and what has caused it, in one line.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        // A request's cause is its text already.
        if matches!(self, Self::Request { .. }) {
            cause = None;
        }
        while let Some(one) = cause {
            text.push_str(": ");
            text.push_str(&one.to_string());
            cause = one.source();
        }
        text
    }
}
