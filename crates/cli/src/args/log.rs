//! The commands about the host log, and what `sluice run` takes for it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::size;

/// What `sluice run` takes for a host log.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Host log")]
pub(crate) struct Through {
    /// Write to a log in DIR, on a disk of this node, from where all goes to its place in the background
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) log: Option<PathBuf>,
    /// The place whose files are written through the log
    #[arg(long, value_name = "URI|DIR", value_hint = ValueHint::AnyPath)]
    pub(crate) to: Option<OsString>,
    /// The size that the log may have; programs wait when it is full [default: 16GiB]
    #[arg(long, value_name = "SIZE", hide_short_help = true, value_parser = size)]
    pub(crate) log_size: Option<u64>,
    /// How many bytes per second go from the log to their place [default: 0, as many as it takes]
    #[arg(long, value_name = "SIZE", hide_short_help = true, value_parser = size)]
    pub(crate) log_bandwidth: Option<u64>,
    /// End only when everything that was written through the log is in its place
    #[arg(long)]
    pub(crate) wait: bool,
    /// Have the agents of all nodes of this job find each other in DIR, which the nodes share and nobody else writes to
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) log_meet: Option<PathBuf>,
    /// The address of this node at which those of other nodes reach its agent [default: that of its name]
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    pub(crate) log_listen: Option<String>,
    /// Writes of at least so many bytes stay in this node's log; smaller ones go to the first node's
    #[arg(long, value_name = "SIZE", hide_short_help = true, value_parser = size, default_value = "64KiB")]
    pub(crate) log_own: u64,
}

/// Host logs: what has not come to its place yet
#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    Status(Status),
    Drain(Drain),
    Recover(Recover),
    Verify(Verify),
    Discard(Discard),
    #[command(hide = true)]
    Agent(Agent),
}

/// Say how far a log is
///
/// Of a log in use, what its agent says; of any other, what its files say.
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// One JSON object, with --follow one per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on until all is drained
    #[arg(long)]
    pub(crate) follow: bool,
}

/// Bring everything in a log to its place
///
/// Waits for the agent of a log in use; otherwise does the work itself.
#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// How many bytes per second at most [default: 0, as many as it takes]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) log_bandwidth: Option<u64>,
}

/// After a crash: say what counts and what does not, and bring what counts to its place
#[derive(Debug, Args)]
pub(crate) struct Recover {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// How many bytes per second at most [default: 0, as many as it takes]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) log_bandwidth: Option<u64>,
    /// The directory of another node's log that this one needs, where it can be reached from here; may be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) with: Vec<PathBuf>,
}

/// Check every checksum of a log
///
/// Changes nothing. The exit status is 1 if something is missing that had been durable.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Only say what is wrong
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Remove a log with everything in it that is not drained
#[derive(Debug, Args)]
pub(crate) struct Discard {
    /// The log's directory
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

/// The process that has a log; `sluice run --log` starts it
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The log's directory
    pub(crate) dir: PathBuf,
    /// Where it is drained to: an absolute directory or a URI
    #[arg(long)]
    pub(crate) to: OsString,
    /// The run that it is started for
    #[arg(long)]
    pub(crate) run: String,
    /// The run for people
    #[arg(long)]
    pub(crate) command: String,
    #[arg(long)]
    pub(crate) log_size: Option<u64>,
    #[arg(long)]
    pub(crate) log_bandwidth: Option<u64>,
    #[arg(long)]
    pub(crate) log_meet: Option<PathBuf>,
    #[arg(long)]
    pub(crate) log_listen: Option<String>,
    #[arg(long, default_value = "65536")]
    pub(crate) log_own: u64,
}
