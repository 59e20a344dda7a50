//! The command line: what each command takes, and what its help says.

use std::ffi::OsString;
use std::path::PathBuf;

use address::config::SieveMethod;
use clap::{Args, Parser, Subcommand, ValueHint};

pub(crate) mod couple;
pub(crate) mod layout;
pub(crate) mod log;
pub(crate) mod sieve;

/// Files of unmodified programs, wherever they live.
#[derive(Debug, Parser)]
#[command(name = "sluice", version, max_term_width = 100)]
#[command(after_long_help = "\
Addresses:
  scdc:///NAME/path                  a store in this process (--store, [stores])
  scdc+uds:///dir/x.sock/NAME/path   a service on a Unix socket
  scdc+uds://default/NAME/path       the service that `sluice serve` starts by default
  scdc+tcp://HOST[:PORT]/NAME/path   a service on TCP, port 5640 unless another is given

Examples:
  sluice serve data=/srv/data
  sluice ls scdc+uds://default/data
  sluice run -- gmsh -3 scdc+uds://default/data/in.geo -o scdc+uds://default/data/out.msh
  sluice run --map /far=scdc+uds://default/data -- sh -c 'sort /far/a > /far/b'
")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where files are")]
pub(crate) struct Common {
    /// Make paths below PREFIX mean URI (repeatable)
    #[arg(long, value_name = "PREFIX=URI", global = true)]
    pub(crate) map: Vec<OsString>,
    /// Make scdc:///NAME mean DIR, without any service (repeatable; also NAME=mem:, NAME=FILE.drepl and NAME=URI)
    #[arg(long, value_name = "NAME=DIR", global = true)]
    pub(crate) store: Vec<OsString>,
    /// Configuration file [default: $SLUICE_CONFIG, ./sluice.toml or ~/.config/sluice/sluice.toml]
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) client: ClientFlags,
}

/// The keys of `[client]` as flags.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Tuning of connections")]
pub(crate) struct ClientFlags {
    /// Most bytes read ahead of a program that reads in order; 0: nothing read is kept [default: 16MiB]
    #[arg(long, value_name = "SIZE", global = true, hide_short_help = true, value_parser = size)]
    pub(crate) read_ahead_bytes: Option<u64>,
    /// Most bytes written before they are acknowledged; 0: each write waits [default: 16MiB]
    #[arg(long, value_name = "SIZE", global = true, hide_short_help = true, value_parser = size)]
    pub(crate) write_behind_bytes: Option<u64>,
    /// Greatest 9P message to agree on [default: 1MiB]
    #[arg(long, value_name = "SIZE", global = true, hide_short_help = true, value_parser = msize)]
    pub(crate) msize_bytes: Option<u32>,
    /// How long a broken connection is tried again [default: 15]
    #[arg(long, value_name = "SECONDS", global = true, hide_short_help = true)]
    pub(crate) reconnect_seconds: Option<u32>,
}

pub(crate) fn size(text: &str) -> Result<u64, String> {
    address::parse_size_bytes(text).map_err(|error| error.to_string())
}

fn msize(text: &str) -> Result<u32, String> {
    let (min, max) = address::ClientOptions::MSIZE_BYTES_RANGE;
    let size = size(text)?;
    let fits = u32::try_from(size).ok().filter(|size| (min..=max).contains(size));
    fits.ok_or_else(|| format!("a message has from {min} to {max} bytes"))
}

fn sieve_method(text: &str) -> Result<SieveMethod, String> {
    let names = || SieveMethod::ALL.map(SieveMethod::as_str).join(", ");
    SieveMethod::parse(text).ok_or_else(|| format!("it is one of {}", names()))
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Serve(Serve),
    Ls(Ls),
    Cat(Cat),
    Cp(Cp),
    Rm(Rm),
    Stat(Stat),
    Mkdir(Mkdir),
    Cmd(Cmd),
    Mount(Mount),
    Umount(Umount),
    #[command(subcommand)]
    Sieve(sieve::Sieve),
    #[command(subcommand)]
    Layout(layout::Layout),
    #[command(subcommand)]
    Log(log::Log),
    #[command(subcommand)]
    Couple(couple::Couple),
    #[command(hide = true)]
    ObjectsAgent(ObjectsAgent),
    #[command(hide = true)]
    Orphan(Orphan),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
}

/// Run a program whose files may live elsewhere
///
/// Opens, reads, stats, listings: every file operation of PROGRAM and of what it starts works on URIs and on paths
/// below mapped prefixes as if they were local. Nothing is recompiled and no privilege is needed.
///
/// A program that cannot be carried (statically linked, set-user-id, of another machine type) is refused with exit
/// status 126, because it would quietly use the local directory instead.
#[derive(Debug, Args)]
#[command(
    override_usage = "sluice run [OPTIONS] [--] PROGRAM [ARGUMENT]...",
    after_long_help = "\
Examples:
  sluice run -- sha256sum scdc+tcp://localhost/data/big.h5
  sluice run --map /far=scdc+tcp://localhost/data -- python3 analyse.py /far/in.npy
  sluice run --store tmp=/scratch/me -- ./app scdc:///tmp/out
  sluice run --layout /run=points.drepl -- ./simulation /run/aos
  sluice run --log /nvme/log --to /shared/out -- ./solver /shared/out/result
  mpirun -n 1 sluice serve --listen mpi:io data=/srv : -n 4 sluice run -- ./solver scdc+mpi://io/data/in.nc

Exit status:
  the program's, or
    2  an option before PROGRAM is wrong
  125  sluice itself failed
  126  PROGRAM cannot be carried or executed
  127  PROGRAM was not found
"
)]
pub(crate) struct Run {
    /// Catch calls by their symbols only, and do not patch libc in memory: sees less, where patching is trouble
    #[arg(long)]
    pub(crate) no_patch: bool,
    /// How strided reads and writes of MPI programs are carried out: adaptive, naive, romio, simple_pm, extent,
    /// scanfile, or disable for the MPI library's own way; the hint `sluice_sieve` of a file goes before
    #[arg(long, value_name = "METHOD", hide_short_help = true, value_parser = sieve_method)]
    pub(crate) sieve: Option<SieveMethod>,
    /// What this process is in an MPI job with services (scdc+mpi://): `agent`, a rank that runs PROGRAM beside it,
    /// which does not know of MPI; `program`, PROGRAM or what it starts calls MPI_Init itself; `off`; default is what
    /// PROGRAM is, if its arguments or a mapped prefix name such a service
    #[arg(long, value_name = "ROLE", hide_short_help = true)]
    pub(crate) mpi: Option<MpiRole>,
    /// MPI programs of one job that give the same NAME share one MPI_COMM_WORLD; the services' ranks are in none
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) mpi_world: Option<String>,
    /// Show the views of a dataset to PROGRAM as scdc:///NAME/VIEW, where NAME is that of the definition's file without
    /// `.drepl`, and below PREFIX if one is given (repeatable)
    #[arg(long, value_name = "[PREFIX=]FILE.drepl", value_hint = ValueHint::FilePath)]
    pub(crate) layout: Vec<OsString>,
    #[command(flatten)]
    pub(crate) log: log::Through,
    #[command(flatten)]
    pub(crate) couple: couple::Part,
    /// Reach buckets (s3://, gs://, az://) whatever the arguments say: PROGRAM makes up their addresses itself. Needed
    /// only where neither an argument nor a mapped prefix names one
    #[arg(long)]
    pub(crate) objects: bool,
    /// The program and its arguments; options behind its name are its own
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM",
          value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<OsString>,
}

/// The process that speaks with object stores; `sluice run` starts it
#[derive(Debug, Args)]
pub(crate) struct ObjectsAgent {
    /// Where it listens
    pub(crate) socket: PathBuf,
}

/// Start a command of sluice's own as nobody's child
#[derive(Debug, Args)]
pub(crate) struct Orphan {
    /// The command and what it takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// What `sluice run` is in an MPI job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MpiRole {
    /// A rank that runs the program beside it.
    Agent,
    /// The program becomes a rank by itself.
    Program,
    /// Nothing of the job.
    Off,
}

/// Offer directories to other programs and machines
///
/// Serves 9P2000.L and 9P2000 until interrupted. Each NAME is a directory at the root of the service. Until
/// connections are encrypted, only Unix sockets and loopback addresses are listened on, unless --insecure.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice serve data=/srv/data
  sluice serve --read-only ref=/srv/ref --listen tcp:127.0.0.1:5640
  sluice serve scratch=mem: behind=scdc+tcp://login-node/data --listen unix:/tmp/s.sock
  mpirun -n 1 sluice serve --listen mpi:io data=/srv : -n 4 sluice run -- ./solver scdc+mpi://io/data/in.nc
")]
pub(crate) struct Serve {
    /// A directory, memory (mem:), the views of a dataset, another service or a bucket (s3://…), and the name under which it is offered
    #[arg(value_name = "NAME=DIR|mem:|FILE.drepl|URI")]
    pub(crate) stores: Vec<OsString>,
    /// Refuse every change
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Where to listen: unix:PATH, tcp:HOST:PORT, mpi:NAME for the other ranks of this MPI job, or a URI; default is
    /// the Unix socket scdc+uds://default
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<OsString>,
    /// Listen on other than loopback addresses, though anyone who can connect may read and write
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Most connections at a time [default: 1024]
    #[arg(long, value_name = "COUNT", help_heading = "Limits", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections_max: Option<u32>,
    /// Most files of one connection, open or walked to [default: 65536]
    #[arg(long, value_name = "COUNT", help_heading = "Limits", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) fids_max: Option<u32>,
    /// Close connections that are silent for so long [default: 0, never]
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub(crate) idle_seconds: Option<u32>,
}

/// List directories
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// Mode, links, owner, size and time of each file
    #[arg(short, long)]
    pub(crate) long: bool,
    /// Directories within directories, too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
    /// Names that begin with a dot, too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// One JSON object per file and line; inode numbers are text, as they may exceed 2^53
    #[arg(long)]
    pub(crate) json: bool,
    /// What to list: local paths, mapped paths or URIs
    #[arg(value_name = "PLACE", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub(crate) places: Vec<OsString>,
}

/// Write the content of files to standard output
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice cat scdc+uds://default/data/log
  sluice cat --offset 1MiB --length 512 scdc+uds://default/data/big.bin | xxd
")]
pub(crate) struct Cat {
    /// Begin at this byte of each file
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "0")]
    pub(crate) offset: u64,
    /// Write at most so many bytes of each file
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) length: Option<u64>,
    /// What to write; - is standard input
    #[arg(value_name = "PLACE", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) places: Vec<OsString>,
}

/// Give a command to a dataset, with standard input and output as its own
///
/// Datasets of programs have commands of their own (docs/COMMANDS.md). On files of a service there are: cd, ls, info,
/// mkd DIR, rm NAME, put NAME [POSITION][:SIZE], get NAME [POSITION][:SIZE]. What a command says goes to standard
/// output if it has no other output, and to standard error otherwise. A terminal is no input.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice cmd scdc+uds://default/data ls
  sluice cmd scdc+tcp://localhost/data get big.bin 1000:64 | xxd
  sluice cmd scdc+uds://solver/meshes refine 3 < coarse.msh > fine.msh
")]
pub(crate) struct Cmd {
    /// The dataset
    #[arg(value_name = "URI")]
    pub(crate) dataset: OsString,
    /// The command and what belongs to it; it is given as one line
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<OsString>,
}

/// Copy files between any two places
///
/// A file gets its final name only when it is complete and on stable storage. Until then it is called
/// .NAME.HASH.sluice-part, where HASH stands for the size and the modification time of the source. With --resume an
/// interrupted copy goes on from that file, if the end of what was copied agrees with the source; a source that has
/// changed is copied anew, and once NAME is complete all its part files are removed. Modes and modification times are
/// kept.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice cp in.msh scdc+uds://default/data/
  sluice cp -r --jobs 8 scdc+tcp://localhost/data/run7 /scratch/
  sluice cp --resume scdc+tcp://localhost/a/big.h5 scdc+uds://default/b/
  tar c dir | sluice cp - scdc+uds://default/data/dir.tar
  sluice cp scdc+uds://default/data/dir.tar - | tar t
")]
pub(crate) struct Cp {
    /// Copy directories and what is in them
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// Go on where an interrupted copy stopped; skip files that are already there with equal size and time
    #[arg(long)]
    pub(crate) resume: bool,
    /// How many files are copied at a time
    #[arg(short, long, value_name = "COUNT", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    /// Say nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print a summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Sources, then the destination; - is standard input or output
    #[arg(value_name = "PLACE", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub(crate) places: Vec<OsString>,
}

/// Remove files and directories
#[derive(Debug, Args)]
pub(crate) struct Rm {
    /// Remove directories and what is in them
    #[arg(short, long)]
    pub(crate) recursive: bool,
    /// What does not exist is no error
    #[arg(short, long)]
    pub(crate) force: bool,
    /// What to remove
    #[arg(value_name = "PLACE", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) places: Vec<OsString>,
}

/// Say what is known of files
#[derive(Debug, Args)]
pub(crate) struct Stat {
    /// One JSON object per file and line; inode numbers are text, as they may exceed 2^53
    #[arg(long)]
    pub(crate) json: bool,
    /// Of what a symbolic link leads to
    #[arg(short = 'L', long)]
    pub(crate) dereference: bool,
    /// Of what
    #[arg(value_name = "PLACE", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) places: Vec<OsString>,
}

/// Make directories
#[derive(Debug, Args)]
pub(crate) struct Mkdir {
    /// Make missing parents, too; what exists already is no error
    #[arg(short, long)]
    pub(crate) parents: bool,
    /// What to make
    #[arg(value_name = "PLACE", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) places: Vec<OsString>,
}

/// Show a store or service as a directory of this machine
///
/// By FUSE, for programs that `run` cannot carry: statically linked ones, or a shell that is running already. Serves
/// until the directory is unmounted (`sluice umount`, `fusermount3 -u`) or until interrupted. Root mounts by itself,
/// others by fusermount3 of the package fuse3.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice mount scdc+tcp://localhost/data /mnt/data
  sluice mount --daemon scdc+uds://default ~/far && ls ~/far && sluice umount ~/far
  sluice mount --read-only /srv/reference /mnt/reference
")]
pub(crate) struct Mount {
    /// What to show: a URI, a mapped path, a directory, or mem: for memory that ends with the mount
    #[arg(value_name = "URI|DIR|mem:", value_hint = ValueHint::AnyPath)]
    pub(crate) place: OsString,
    /// An empty directory
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Refuse every change
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Let other users in, too, as the modes of the files allow [default: only who mounts, with the store's own rights]
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Return once it is mounted, and serve from the background
    #[arg(long)]
    pub(crate) daemon: bool,
}

/// End a mount
#[derive(Debug, Args)]
pub(crate) struct Umount {
    /// Let the name go at once, even if programs use it; they keep what they have open
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Where something is mounted
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) dirs: Vec<PathBuf>,
}

/// Say what is in force here and whether it works
///
/// Configuration and where it comes from, routes and how long they take to reach, the preload library, and whether
/// libc can be patched. The exit status is 1 if something is broken.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  sluice completions bash > ~/.local/share/bash-completion/completions/sluice
  sluice completions zsh > ~/.zfunc/_sluice
")]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

/// Write the manual pages
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for one page per command; without it, sluice(1) goes to standard output
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}
