//! The commands about layouts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Datasets, their views and their replicas
#[derive(Debug, Subcommand)]
pub(crate) enum Layout {
    Check(Check),
    Fmt(Fmt),
    Status(Status),
    Rebuild(Rebuild),
    Add(Add),
    Remove(Remove),
    Explain(Explain),
    Import(Import),
    Export(Export),
}

/// Say what is wrong with definitions
///
/// Every error is shown with its line, with what was expected there and, where one is known, a suggestion. Files that a
/// definition includes are checked with it. The exit status is 1 if there is an error.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout check points.drepl
  sluice layout check --json points.drepl | jq '.diagnostics[].message'
")]
pub(crate) struct Check {
    /// Definitions in the DRepl language; - is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<OsString>,
    /// One JSON object per file and line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Format definitions
///
/// Blanks, indentation and needless semicolons change; lines, comments and the meaning stay. Without a flag, the result
/// goes to standard output.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout fmt points.drepl
  sluice layout fmt --write *.drepl
  sluice layout fmt --check *.drepl
")]
pub(crate) struct Fmt {
    /// Change nothing; name the files that would change, and exit with 1 if there is one
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the result into the files
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
    /// Definitions in the DRepl language; - is standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<OsString>,
}

/// Say where everything lies, and what reading it costs
///
/// For each variable of each view: its offset and size in the view's file, the replicas that serve it, and how many bytes
/// of them a read touches for each byte that is wanted. Only the definition is read; arrays of variable size count as
/// empty.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout explain points.drepl
  sluice layout explain --json points.drepl | jq '.views[] | select(.name == \"b\")'
")]
pub(crate) struct Explain {
    /// A definition in the DRepl language
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a definition of what another tool describes
///
/// The source is a .npy file, an HDF5 or netCDF-4 file, or a C text with structs; or a numpy dtype, given with --numpy.
/// The definition has a view with the very bytes of the source, and a replica that is the file: serve it, and add views
/// as you like. It is written to standard output.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout import run.h5 > run.drepl
  sluice layout import field.npy > field.drepl
  sluice layout import particle.h --struct Particle --shape 1000000 --file dump.bin > dump.drepl
  sluice layout import --numpy \"[('a', '<f4'), ('v', '<f8', (3,))]\" --shape 1000 --file run.bin > run.drepl
")]
#[group(id = "described", required = true)]
pub(crate) struct Import {
    /// A .npy, HDF5 or netCDF-4 file, or a C text
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, group = "described")]
    pub(crate) source: Option<PathBuf>,
    /// A dtype of numpy, as `dtype.descr` prints it
    #[arg(long, value_name = "DTYPE", group = "described")]
    pub(crate) numpy: Option<String>,
    /// Which struct of a C text; the last one if not given
    #[arg(long, value_name = "NAME", conflicts_with = "numpy")]
    pub(crate) r#struct: Option<String>,
    /// The lengths of an array of such elements; one element if not given
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) shape: Vec<u64>,
    /// Bytes before the first element
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub(crate) header: u64,
    /// What variable and view are called
    #[arg(long, default_value = "data")]
    pub(crate) name: String,
    /// The file that holds the data, as the definition names it: relative to itself [default: the source, or NAME.bin]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
}

/// Say how another tool reads the file of a view
///
/// For numpy a function is written that maps each variable of the view, for C a struct for each, with its offset.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout export points.drepl soa --to numpy > points.py
  sluice layout export points.drepl aos --to c > points.h
")]
pub(crate) struct Export {
    /// A definition in the DRepl language; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: OsString,
    /// One of its views
    #[arg(value_name = "VIEW")]
    pub(crate) view: String,
    /// The tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) to: Tool,
}

/// A tool that describes layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// Python: numpy.memmap
    Numpy,
    /// C11: packed structs
    C,
}

/// Say how the replicas of datasets are
///
/// Which are up to date, which are not and why, and whether a service has the dataset open. Nothing is changed. The
/// exit status is 1 if a replica is stale or missing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout status points.drepl
  sluice layout status --json points.drepl | jq '.replicas[] | select(.ok | not)'
  sluice layout status scdc+tcp://host/points
")]
pub(crate) struct Status {
    /// One JSON object per file and line
    #[arg(long)]
    pub(crate) json: bool,
    /// Definitions in the DRepl language, or addresses of datasets at services
    #[arg(value_name = "FILE|URI", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<OsString>,
}

/// Add views and replicas to a dataset, while it is served or not
///
/// The definition's file gets the new sections, formatted, and programs see new views at once. A new replica is made
/// from the others while programs read and write, and is read when it is equal to them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout add points.drepl 'view b { var b[i] = data[i].b }'
  sluice layout add points.drepl 'replica \"points.soa\" async { view soa }'
  sluice layout add scdc+uds://default/points - < views.drepl
")]
pub(crate) struct Add {
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The definition, or the address of the dataset at a service
    #[arg(value_name = "FILE|URI", value_hint = ValueHint::FilePath)]
    pub(crate) file: OsString,
    /// Views and replicas in the DRepl language; - is standard input
    #[arg(value_name = "SECTION", required = true)]
    pub(crate) sections: Vec<String>,
}

/// Remove views or replicas of a dataset, while it is served or not
///
/// Programs that have a view open go on to use it. The file of a replica stays where it is, but is not written any more.
/// A replica that alone holds a part of the dataset, and a view that a replica stores, cannot be removed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout remove points.drepl b
  sluice layout remove --replica scdc+tcp://host/points points.soa
")]
pub(crate) struct Remove {
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The names are those of replicas
    #[arg(long)]
    pub(crate) replica: bool,
    /// The definition, or the address of the dataset at a service
    #[arg(value_name = "FILE|URI", value_hint = ValueHint::FilePath)]
    pub(crate) file: OsString,
    /// Views, or replicas
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
}

/// Make replicas anew that are stale or lost
///
/// They are made from those that are up to date, beside the old ones, and take their place when they are complete and on
/// stable storage. Programs may read and write meanwhile if a service has the dataset open; the service then does the
/// work, and goes on when this command is interrupted. Otherwise, interrupted, everything stays as it was.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice layout rebuild points.drepl
  sluice layout rebuild points.drepl soa.dat
  sluice layout rebuild scdc+tcp://host/points
")]
pub(crate) struct Rebuild {
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The definition, or the address of the dataset at a service
    #[arg(value_name = "FILE|URI", value_hint = ValueHint::FilePath)]
    pub(crate) file: OsString,
    /// Which replicas; all that are stale if none is named
    #[arg(value_name = "REPLICA")]
    pub(crate) replicas: Vec<String>,
}
