//! The commands about non-contiguous access.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::size;

/// Reading and writing many pieces of a file: plans, parameters, measurements
#[derive(Debug, Subcommand)]
pub(crate) enum Sieve {
    Explain(Box<Explain>),
    Tune(Tune),
    Bench(Box<Bench>),
    Page(Page),
    Learn(Learn),
}

/// Say how a pattern would be accessed, and what each method would cost
///
/// Nothing is read or written: all of it is what the cost model expects, with the parameters that `sluice sieve tune`
/// measured for the place, or with built-in ones.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Patterns:
  8,92                  blocks of 8 bytes with holes of 92 between them
  8:92,16:4             8 bytes, a hole of 92, 16 bytes, a hole of 4, and again
  4KiB:1MiB*10,1KiB:0   a tuple ten times, then another
  1..200:1..6000*1M     a million tuples with sizes drawn at random (--seed)

Examples:
  sluice sieve explain 8,92 --length 80MiB
  sluice sieve explain 4KiB,64KiB --write --cold --place /scratch
  sluice sieve explain 100,1000 --method romio --profile wr --groups 20
")]
pub(crate) struct Explain {
    /// Data and holes, in bytes
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: String,
    /// Offset of the first tuple in the file
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0")]
    pub(crate) displacement: u64,
    /// First wanted byte, counted in the data of the pattern
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0")]
    pub(crate) offset: u64,
    /// Bytes of data that are wanted; default is one turn of the pattern, or 16 MiB if that is less
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) length: Option<u64>,
    /// For writing, with locks
    #[arg(long)]
    pub(crate) write: bool,
    /// No other program writes to the file: no locks
    #[arg(long, requires = "write")]
    pub(crate) single_writer: bool,
    /// The data is not in the page cache
    #[arg(long)]
    pub(crate) cold: bool,
    /// Size of the sieving buffer
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub(crate) buffer: u64,
    /// Whose groups are shown: adaptive, naive, romio, simple_pm, extent or scanfile
    #[arg(long, alias = "methods", value_name = "METHOD", default_value = "adaptive", value_parser = way)]
    pub(crate) method: measure::Way,
    /// How many groups are shown
    #[arg(long, value_name = "COUNT", default_value = "8")]
    pub(crate) groups: usize,
    /// Seed of sizes that are drawn at random
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
    /// Also ask the model that was learned from the results of a bench
    #[arg(long, value_name = "RESULTS", value_hint = ValueHint::FilePath)]
    pub(crate) learned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which parameters the cost model is given.
#[derive(Debug, Clone, Args)]
pub(crate) struct Parameters {
    /// Parameters of the cost model: a file that `tune` wrote, or default, wr or dkrz
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "place")]
    pub(crate) profile: Option<OsString>,
    /// Take the parameters that `tune` stored for this place; default is the working directory
    #[arg(long, value_name = "PATH|URI", value_hint = ValueHint::AnyPath)]
    pub(crate) place: Option<OsString>,
}

/// Measure what accesses cost at a place, and keep it for the planner
///
/// Makes a file there, times a designed set of reads, writes, copies and locks, and fits the cost model to them. The
/// result is kept in ~/.config/sluice/sieve, one file for each file system or service. The file is removed again, also
/// when the command is interrupted.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice sieve tune /scratch
  sluice sieve tune scdc+tcp://localhost/data
  sluice sieve tune . --output here.toml
")]
pub(crate) struct Tune {
    /// A directory, local or of a service
    #[arg(value_name = "PATH|URI", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) place: OsString,
    /// Size of the file to measure on
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MiB")]
    pub(crate) file_size: u64,
    /// Keep the parameters in this file, not among the user's
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Measure all methods on a grid of patterns
///
/// Every pattern is a block of data, a hole, and so on to the end of a file. All methods are timed alternately; what lies
/// more than 20 % from the median is measured again. Results are kept in an SQLite database after every pattern, and an
/// HTML page shows them as surfaces and lines. Without a list of sizes, those of Zickler 2015, Table 5.1, are taken.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice sieve bench /scratch --data 8,1000,32KiB --hole 8,4KiB,1MiB
  sluice sieve bench /scratch --cache warm,cold --resume
  sluice sieve bench --simulate wr --servers 1,2,5,10 --stripe-size 128KiB,2MiB --aligned --unaligned
")]
pub(crate) struct Bench {
    /// Directory for the file to measure on
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Data sizes; in stripes with --aligned or --unaligned
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = size)]
    pub(crate) data: Vec<u64>,
    /// Hole sizes; in stripes with --aligned or --unaligned
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = size)]
    pub(crate) hole: Vec<u64>,
    /// Sizes in stripes, from the start of the file (Table 5.2)
    #[arg(long)]
    pub(crate) aligned: bool,
    /// Sizes in stripes, half a stripe off (Table 5.2)
    #[arg(long)]
    pub(crate) unaligned: bool,
    /// Reading, writing, or both
    #[arg(
        long,
        value_name = "ACCESS,…",
        value_delimiter = ',',
        value_enum,
        default_value = "read,write"
    )]
    pub(crate) access: Vec<AccessName>,
    /// Whether the file is in the page cache; a simulated one never is
    #[arg(long, value_name = "STATE,…", value_delimiter = ',', value_enum, default_value = "warm")]
    pub(crate) cache: Vec<CacheName>,
    /// Size of the file; default is 512 MiB, or 10 GiB when it is simulated
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) file_size: Option<u64>,
    /// Sizes of the sieving buffer
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = size, default_value = "4MiB")]
    pub(crate) buffer: Vec<u64>,
    /// Bytes of data that one call carries
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4MiB")]
    pub(crate) call: u64,
    /// Blocks that one call carries at most, so that calls of small blocks are not long ones
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) call_blocks: Option<u64>,
    /// Methods: adaptive, naive, romio, simple_pm, extent, scanfile
    #[arg(long = "method", alias = "methods", value_name = "METHOD,…", value_delimiter = ',', value_parser = way)]
    pub(crate) methods: Vec<measure::Way>,
    /// A program that does the same accesses, as NAME=COMMAND (repeatable)
    #[arg(long, value_name = "NAME=COMMAND")]
    pub(crate) beside: Vec<String>,
    /// Turns of each method on each pattern
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// How long one turn goes on making calls; default is 0.02, or 100 virtual seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) turn_seconds: Option<f64>,
    /// Count only the time in which the bench itself was running, on a machine that is busy with other things
    #[arg(long, conflicts_with = "simulate")]
    pub(crate) processor_time: bool,
    /// No further round of a pattern is begun after so long
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    pub(crate) cell_seconds: f64,
    /// Shares so much time among the patterns; each method still has a turn on each
    #[arg(long, value_name = "SECONDS", conflicts_with = "simulate")]
    pub(crate) seconds: Option<f64>,
    /// Measure on a simulated cluster, in virtual time
    #[arg(long, value_name = "CLUSTER", value_enum)]
    pub(crate) simulate: Option<ClusterName>,
    /// Servers of the simulated cluster
    #[arg(
        long,
        value_name = "COUNT,…",
        value_delimiter = ',',
        default_value = "2",
        requires = "simulate"
    )]
    pub(crate) servers: Vec<u32>,
    /// Stripe sizes
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = size, default_value = "2MiB")]
    pub(crate) stripe_size: Vec<u64>,
    /// Where results are kept
    #[arg(long, value_name = "FILE", default_value = "sluice-sieve.sqlite", value_hint = ValueHint::FilePath)]
    pub(crate) results: PathBuf,
    /// Go on with the newest run that asked for the same and was interrupted
    #[arg(long)]
    pub(crate) resume: bool,
    /// The page; default is the name of the results with .html
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) page: Option<PathBuf>,
    /// Draw no page
    #[arg(long, conflicts_with = "page")]
    pub(crate) no_page: bool,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// One JSON object with all figures
    #[arg(long)]
    pub(crate) json: bool,
}

/// Draw the page of results that were kept
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// The database
    #[arg(value_name = "RESULTS", default_value = "sluice-sieve.sqlite", value_hint = ValueHint::FilePath)]
    pub(crate) results: PathBuf,
    /// The page; default is the name of the results with .html
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Number of the run; default is the newest
    #[arg(long, value_name = "NUMBER")]
    pub(crate) run: Option<i64>,
}

/// Say how well a model learned from results predicts the best method
///
/// Cells are left out in turn and predicted from the others: what a program would lose that took the predicted method,
/// beside what it loses with the analytic model and with each fixed method.
#[derive(Debug, Args)]
pub(crate) struct Learn {
    /// The database
    #[arg(value_name = "RESULTS", default_value = "sluice-sieve.sqlite", value_hint = ValueHint::FilePath)]
    pub(crate) results: PathBuf,
    /// Number of the run; default is all of them
    #[arg(long, value_name = "NUMBER")]
    pub(crate) run: Option<i64>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reading or writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessName {
    Read,
    Write,
}

/// In the page cache or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CacheName {
    Warm,
    Cold,
}

/// Clusters that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterName {
    /// Desktop disks behind Gigabit Ethernet (Zickler 2015, §5.2.1)
    Wr,
    /// Two large servers behind InfiniBand (§5.2.2)
    Dkrz,
}

fn way(text: &str) -> Result<measure::Way, String> {
    text.parse().map_err(|error: measure::Error| error.to_string())
}
