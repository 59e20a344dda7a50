//! The commands about coupling.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Programs that exchange data instead of files: run them, check configurations, simulate, say who sends what to whom
#[derive(Debug, Subcommand)]
pub(crate) enum Couple {
    Run(RunAll),
    Check(Check),
    Simulate(Box<Simulate>),
    Explain(Explain),
}

/// Start all components of a configuration, and show what flows between them
///
/// Each `[[component]]` of the configuration says its command. What they print goes where sluice's own output goes; nothing is read from
/// the terminal. When one fails, the others are given time to notice, and are then ended.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice couple run couple.toml
  sluice couple run couple.toml --json --quiet > flow.json

A component in the configuration:
  [[component]]
  name = \"model\"
  command = [\"mpiexec\", \"-n\", \"4\", \"./model\", \"input.nml\"]
  directory = \"run\"                      # from the configuration's directory on
  environment = { OMP_NUM_THREADS = \"2\" }

Exit status:
  0, or that of the first component that failed (for a signal 128 and its number; 127 if it was not found);
  1 also if sluice itself failed
")]
pub(crate) struct RunAll {
    /// The configuration, in Sluice's grammar
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where ranks find each other: a directory that all nodes see; default is one of its own on this node
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) meet: Option<PathBuf>,
    /// How long a component waits for another before its call fails
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) wait: u32,
    /// How long the others may go on when one has failed, until they are ended
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    pub(crate) grace: u32,
    /// Without the library that stands before PnetCDF: the components take part by themselves
    #[arg(long, hide_short_help = true)]
    pub(crate) no_preload: bool,
    /// Do not show what flows
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// At the end, one JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say what is wrong with configurations, or what they mean
///
/// A file whose name ends with .toml is in Sluice's grammar (of sluice.toml, the section [couple] is looked at), any other in
/// DTF's, as in its paper or as released.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice couple check couple.toml
  sluice couple check dtf.ini --name 003/history.d01.nc
")]
pub(crate) struct Check {
    /// Configurations
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Also say which rule counts for a file of this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// One JSON object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Match the requests of thousands of ranks in virtual time
///
/// The pattern is that of the S3D-IO benchmark: four variables on one grid that writers and readers divide in blocks. All
/// messages are those that would be sent, and the time in matching is measured here; times of transfer are what a model of
/// the paper's machine makes of them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice couple simulate --experiment table1
  sluice couple simulate --grid 512x512x512 --writers 4x4x4 --readers 2x8x4 --matchers 8
  sluice couple simulate --writers 2x1x1 --readers 1x2x2 --record pattern && sluice couple explain pattern
")]
pub(crate) struct Simulate {
    /// A table or figure of the paper, or how matching grows with requests
    #[arg(long, value_enum, conflicts_with_all = ["grid", "writers", "readers", "matchers", "distribution", "block", "cycles", "replay", "record"])]
    pub(crate) experiment: Option<Experiment>,
    /// Points along z, y and x
    #[arg(long, value_name = "ZxYxX", value_parser = cube, default_value = "256x256x256")]
    pub(crate) grid: [u64; 3],
    /// Writing ranks along z, y and x
    #[arg(long, value_name = "ZxYxX", value_parser = cube, default_value = "4x4x4")]
    pub(crate) writers: [u64; 3],
    /// Reading ranks along z, y and x
    #[arg(long, value_name = "ZxYxX", value_parser = cube, default_value = "4x4x4")]
    pub(crate) readers: [u64; 3],
    /// How many of the writers match; default is one for each 64
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) matchers: Option<u32>,
    /// Which matcher is responsible for what
    #[arg(long, value_name = "WAY", value_enum, default_value = "balanced")]
    pub(crate) distribution: Way,
    /// Indices of a block of the slowest dimension, for the distribution `range`
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) block: Option<u64>,
    /// How often the file is written and read
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cycles: u32,
    /// Cycles after the first are not matched again
    #[arg(long)]
    pub(crate) replay: bool,
    /// Keep who sent what to whom in the last cycle
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say who sent what to whom
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice couple explain pattern
  sluice couple explain pattern --parts
")]
pub(crate) struct Explain {
    /// What `simulate --record` has kept
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Every part of every variable, not only sums for each pair of ranks
    #[arg(long)]
    pub(crate) parts: bool,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the paper shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// More and more requests for each of 64 matchers, and the balanced distribution
    Table1,
    /// More and more matchers
    Figure5,
    /// One file, more and more ranks
    Figure6,
    /// More and more ranks with as much data each
    Figure7,
    /// Larger and larger files
    Figure8,
    /// More and more requests for one matcher
    Growth,
}

/// How requests are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// Tiles in several dimensions, as many for each matcher
    Balanced,
    /// Blocks of the slowest dimension
    Range,
    /// Whole variables
    Varid,
}

/// The greatest product that is taken: a million ranks, or 2^40 points.
fn cube(text: &str) -> Result<[u64; 3], String> {
    let expected = || format!("`{text}` is not three numbers from 1 to 1048576, such as 4x4x8");
    let numbers: Vec<u64> =
        text.split('x').map(str::parse).collect::<Result<_, _>>().map_err(|_| expected())?;
    let cube: [u64; 3] = numbers.try_into().map_err(|_| expected())?;
    let fits = cube.iter().all(|number| (1..=1 << 20).contains(number));
    fits.then_some(cube).ok_or_else(expected)
}

/// PROGRAM as one component of several that are started each for itself.
#[derive(Debug, Args)]
#[command(next_help_heading = "Coupling")]
pub(crate) struct Part {
    /// PROGRAM, or what it starts, exchanges files as FILE says
    #[arg(long, value_name = "FILE", requires = "couple_as", value_hint = ValueHint::FilePath)]
    pub(crate) couple: Option<PathBuf>,
    /// Which component of it PROGRAM is
    #[arg(long = "as", value_name = "NAME", requires = "couple")]
    pub(crate) couple_as: Option<String>,
    /// Where ranks find each other: the same directory for all components, which all nodes see; default is one of this user on
    /// this node, for each configuration
    #[arg(long, value_name = "DIR", requires = "couple", value_hint = ValueHint::DirPath)]
    pub(crate) couple_meet: Option<PathBuf>,
}
