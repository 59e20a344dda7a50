//! `sluice sieve bench`: a grid of patterns, measured.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use measure::bench::beside::BesideLane;
use measure::bench::grid::{self, Alignment, Grid};
use measure::bench::local::{LocalLane, Scratch};
use measure::bench::results::Results;
use measure::bench::run::{self, Event, Rules};
use measure::bench::simulated::{Model, SimulatedLane};
use measure::bench::summary::{self, Group};
use measure::bench::{Cell, Clock, Lane, Work};
use measure::explain::{access_word, warmth_word};
use measure::{Error, Way};
use serde::Serialize;
use sieve::{Access, Warmth};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{page, parameters};
use crate::args::sieve::{AccessName, Bench, CacheName, ClusterName};
use crate::format::bytes_text;
use crate::in_force::InForce;
use crate::report::{say, tell};

/// Size of a real file when nobody says.
const FILE_BYTES: u64 = 512 << 20;
/// Size of a simulated one: that of the thesis (§5.3).
const FILE_BYTES_SIMULATED: u64 = 10 << 30;

/// What makes two runs the same: an interrupted one goes on only where it would do the same.
#[derive(Serialize)]
struct Config<'a> {
    data: &'a [u64],
    hole: &'a [u64],
    aligned: bool,
    unaligned: bool,
    access: Vec<&'static str>,
    cache: Vec<&'static str>,
    file_bytes: u64,
    call_bytes: u64,
    call_blocks: Option<u64>,
    buffer_bytes: &'a [u64],
    methods: Vec<&'static str>,
    beside: &'a [String],
    rounds: u32,
    turn_seconds: f64,
    clock: &'static str,
    cell_seconds: f64,
    servers: &'a [u32],
    stripe_bytes: &'a [u64],
    parameters: &'a str,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    run: i64,
    place: &'a str,
    results: &'a Path,
    groups: &'a [Group],
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'a Path>,
}

/// Set when the user wants to stop.
pub(super) fn stopper() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The second time it ends at once, as without us.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot take over signals")?;
    }
    Ok(stop)
}

pub(super) fn bench(args: &Bench, in_force: &dyn Fn() -> Result<InForce>) -> Result<ExitCode> {
    let grid = grid(args);
    let methods = if args.methods.is_empty() { &Way::ALL[..] } else { &args.methods };
    let simulated = args.simulate.map(|name| match name {
        ClusterName::Wr => Model::Wr,
        ClusterName::Dkrz => Model::Dkrz,
    });
    let file_bytes = args.file_size.unwrap_or(match simulated {
        Some(_) => FILE_BYTES_SIMULATED,
        None => FILE_BYTES,
    });
    let turn_seconds = args.turn_seconds.unwrap_or(if simulated.is_some() { 100.0 } else { 0.02 });
    if !(turn_seconds.is_finite() && turn_seconds >= 0.0 && args.cell_seconds >= 0.0) {
        bail!("seconds must not be negative");
    }
    let clock = if args.processor_time { Clock::Processor } else { Clock::Wall };
    let known = parameters::known(&args.parameters, in_force, &args.dir)?;
    let place = match simulated {
        Some(model) => format!("simulated {}", model.name()),
        None => profiles::Place::of_path(&args.dir)
            .with_context(|| format!("cannot tell the file system of {}", args.dir.display()))?
            .to_string(),
    };
    let config = serde_json::to_string(&Config {
        data: &grid.data,
        hole: &grid.holes,
        aligned: args.aligned,
        unaligned: args.unaligned,
        access: grid.accesses.iter().map(|access| access_word(*access)).collect(),
        cache: grid.warmths.iter().map(|warmth| warmth_word(*warmth)).collect(),
        file_bytes,
        call_bytes: args.call,
        call_blocks: args.call_blocks,
        buffer_bytes: &args.buffer,
        methods: methods.iter().map(|way| way.name()).collect(),
        beside: &args.beside,
        rounds: args.rounds,
        turn_seconds,
        clock: clock.name(),
        cell_seconds: args.cell_seconds,
        servers: &grid.servers,
        stripe_bytes: &grid.stripes,
        parameters: &known.origin,
    })?;
    let call_blocks = args.call_blocks.unwrap_or(u64::MAX);
    let work = Work { call_blocks, clock, ..Work::new(file_bytes, args.call, turn_seconds) };
    let cells = grid.cells();
    let cells: Vec<Cell> =
        cells.into_iter().filter(|cell| cell.data > 0 && cell.data_in(file_bytes) > 0).collect();
    if cells.is_empty() {
        bail!("a file of {} has no room for any of these patterns", bytes_text(file_bytes));
    }

    let mut results = Results::open(&args.results)?;
    let resumed = if args.resume { results.unfinished(&config, &place)? } else { None };
    if args.resume && resumed.is_none() {
        say(format_args!("sluice: no interrupted run asked for the same; a new one begins"));
    }
    let id = match resumed {
        Some(id) => id,
        None => results.begin(&config, &place)?,
    };
    let stop = stopper()?;
    let progress = Progress::new(cells.len(), args.json);
    let mut lanes: Vec<Box<dyn Lane>> = Vec::new();
    if let Some(model) = simulated {
        if !args.beside.is_empty() {
            bail!("programs given with --beside work on real files, not on simulated ones");
        }
        for way in methods {
            lanes.push(Box::new(SimulatedLane::new(*way, model)));
        }
    } else {
        progress.note(format_args!(
            "writing {} of data to {}",
            bytes_text(file_bytes),
            args.dir.display()
        ));
        let scratch = Scratch::new(&args.dir, file_bytes, |_| !stop.load(Ordering::Relaxed));
        let scratch = Rc::new(scratch?);
        for way in methods {
            lanes.push(Box::new(LocalLane::new(*way, known.profile, Rc::clone(&scratch))));
        }
        for beside in &args.beside {
            let Some((name, command)) = beside.split_once('=') else {
                bail!("--beside {beside}: write NAME=COMMAND");
            };
            if name.parse::<Way>().is_ok() || lanes.iter().any(|lane| lane.name() == name) {
                bail!("--beside {beside}: there is a method called {name} already");
            }
            lanes.push(Box::new(BesideLane::start(name, command, scratch.path())?));
        }
    }
    let rules = Rules {
        work,
        rounds: if simulated.is_some() { 1 } else { args.rounds },
        warm_up: simulated.is_none(),
        cell_seconds: args.cell_seconds,
        total_seconds: args.seconds.unwrap_or(f64::INFINITY),
        again: if simulated.is_some() { 0 } else { 2 },
    };
    let ran = run::run(&cells, &mut lanes, &rules, &mut results, id, &stop, &mut |event| {
        progress.tell(&event);
    });
    progress.end();
    drop(lanes);
    if matches!(ran, Err(Error::Interrupted)) {
        bail!("interrupted; what was measured is kept: the same command with --resume goes on");
    }
    ran?;

    let rows = results.rows(id)?;
    let groups = summary::summarise(&rows);
    let page: Option<PathBuf> =
        (!args.no_page).then(|| args.page.clone().unwrap_or_else(|| page::beside(&args.results)));
    if let Some(page) = &page {
        page::write(&results, id, page)?;
    }
    if args.json {
        let answer = Answer {
            run: id.0,
            place: &place,
            results: &args.results,
            groups: &groups,
            page: page.as_deref(),
        };
        tell(format_args!("{}", serde_json::to_string(&answer)?))?;
    } else {
        for group in &groups {
            show(group)?;
        }
        tell(format_args!("results  {} (run {})", args.results.display(), id.0))?;
        if let Some(page) = &page {
            tell(format_args!("page     {}", page.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn grid(args: &Bench) -> Grid {
    let mut alignments = Vec::new();
    if args.aligned {
        alignments.push(Alignment::Aligned);
    }
    if args.unaligned {
        alignments.push(Alignment::Unaligned);
    }
    let in_stripes = !alignments.is_empty();
    if !in_stripes {
        alignments.push(Alignment::Free);
    }
    let or_default = |given: &[u64], free: &[u64], aligned: &[u64]| match given {
        [] if in_stripes => aligned.to_vec(),
        [] => free.to_vec(),
        given => given.to_vec(),
    };
    let warmths = match args.simulate {
        Some(_) => vec![Warmth::Cold],
        None => args.cache.iter().map(CacheName::warmth).collect(),
    };
    Grid {
        accesses: args.access.iter().map(AccessName::access).collect(),
        warmths,
        data: or_default(&args.data, &grid::DATA_BYTES, &grid::ALIGNED_DATA),
        holes: or_default(&args.hole, &grid::HOLE_BYTES, &grid::ALIGNED_HOLE),
        alignments,
        buffers: args.buffer.clone(),
        servers: if args.simulate.is_some() { args.servers.clone() } else { vec![0] },
        stripes: args.stripe_size.clone(),
    }
}

impl AccessName {
    fn access(&self) -> Access {
        match self {
            Self::Read => Access::Read,
            Self::Write => Access::Write,
        }
    }
}

impl CacheName {
    fn warmth(&self) -> Warmth {
        match self {
            Self::Warm => Warmth::Warm,
            Self::Cold => Warmth::Cold,
        }
    }
}

/// One group of cells for people.
fn show(group: &Group) -> Result<()> {
    let Group { access, warmth, cells, .. } = group;
    let cluster = match group.servers {
        0 => String::new(),
        servers => format!(", {servers} servers, stripes of {}", bytes_text(group.stripe_bytes)),
    };
    tell(format_args!(
        "{access}, {warmth}, buffer {}{cluster}: {} patterns",
        bytes_text(group.buffer_bytes),
        cells.len()
    ))?;
    tell(format_args!(
        "  {:<12} {:>9} {:>9}   time over that of the best method",
        "regret", "mean", "worst"
    ))?;
    for regret in &group.regrets {
        tell(format_args!("  {:<12} {:>9.3} {:>9.2}", regret.method, regret.geomean, regret.max))?;
    }
    tell(format_args!(
        "  {:<12} {:>9} {:>9}   time over that of adaptive",
        "speed-up", "mean", "least"
    ))?;
    for speed_up in &group.speed_ups {
        tell(format_args!(
            "  {:<12} {:>9.2} {:>9.2}",
            speed_up.method, speed_up.geomean, speed_up.min
        ))?;
    }
    tell(format_args!(""))
}

/// How far it is: a bar on a terminal, lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(cells: usize, json: bool) -> Self {
        let bar = (!json && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(cells as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar }
    }

    fn note(&self, text: std::fmt::Arguments<'_>) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_string()),
            None => say(text),
        }
    }

    fn tell(&self, event: &Event<'_>) {
        match event {
            Event::Cell { cell, done, all, best, was_there } => {
                if let Some(bar) = &self.bar {
                    bar.set_position(*done as u64);
                }
                let best = match best {
                    Some((name, byte_ns)) => format!("{name} {:.0} MB/s", 1e3 / byte_ns),
                    None if *was_there => "measured before".to_owned(),
                    None => "nothing could be measured".to_owned(),
                };
                let text = cell_text(cell);
                match &self.bar {
                    Some(bar) => bar.set_message(format!("{text}: {best}")),
                    None => say(format_args!("{done}/{all} {text}: {best}")),
                }
            }
            Event::Skipped { cell, lane: _, why } => {
                let text = format!("sluice: {}: {why}", cell_text(cell));
                match &self.bar {
                    Some(bar) => bar.suspend(|| say(format_args!("{text}"))),
                    None => say(format_args!("{text}")),
                }
            }
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn cell_text(cell: &Cell) -> String {
    let (access, warmth) = (access_word(cell.access), warmth_word(cell.warmth));
    format!("{access} {warmth} {},{}", cell.data, cell.hole)
}
