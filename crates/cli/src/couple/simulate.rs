//! `sluice couple simulate`: many ranks in virtual time.

use std::process::ExitCode;

use anyhow::{Context, Result};
use matching::Distribution;
use rehearsal::experiment::{self, Growth, Row};
use rehearsal::{Machine, Outcome, s3d};
use serde::Serialize;

use crate::args::couple::{Experiment, Simulate, Way};
use crate::format::bytes_text;
use crate::report::tell;

/// One line of a table.
#[derive(Serialize)]
struct Line {
    writers: u64,
    readers: u64,
    matchers: usize,
    distribution: String,
    file_bytes: u64,
    /// For each matcher: average, most, and their ratio.
    requests_mean: f64,
    requests_max: u64,
    imbalance: f64,
    pairs: u64,
    control_messages: u64,
    control_bytes: u64,
    data_messages: u64,
    data_bytes: u64,
    /// On this machine, the matcher that took longest.
    matched_seconds: f64,
    /// On the simulated machine.
    matched_virtual_seconds: f64,
    read_seconds: f64,
    written_seconds: f64,
    cycles_seconds: Vec<f64>,
}

impl Line {
    fn new(
        ranks: [u64; 2],
        distribution: Distribution,
        file_bytes: u64,
        outcome: &Outcome,
    ) -> Self {
        Self {
            writers: ranks[0],
            readers: ranks[1],
            matchers: outcome.loads.len(),
            distribution: distribution.to_string(),
            file_bytes,
            requests_mean: outcome.requests_mean(),
            requests_max: outcome.requests_max(),
            imbalance: outcome.imbalance(),
            pairs: outcome.loads.iter().map(|load| load.pairs).sum(),
            control_messages: outcome.control.messages,
            control_bytes: outcome.control.bytes,
            data_messages: outcome.data.messages,
            data_bytes: outcome.data.bytes,
            matched_seconds: outcome.matched_max_s(),
            matched_virtual_seconds: outcome.matched_virtual_max_s(),
            read_seconds: outcome.read_s,
            written_seconds: outcome.written_s,
            cycles_seconds: outcome.cycles_s.clone(),
        }
    }
}

/// How matching grows.
#[derive(Serialize)]
struct Grown {
    requests: u64,
    pairs: u64,
    compared: u64,
    matched_seconds: f64,
    ns_per_n_log_n: f64,
}

impl Grown {
    fn new(growth: &Growth) -> Self {
        Self {
            requests: growth.requests,
            pairs: growth.pairs,
            compared: growth.compared,
            matched_seconds: growth.matched_s,
            ns_per_n_log_n: growth.ns_per_n_log_n(),
        }
    }
}

#[derive(Serialize)]
struct Answer {
    experiment: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<Line>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    growth: Vec<Grown>,
}

/// Ranks of each component for which Figure 5 is played.
const FIGURE_5: [u64; 6] = [32, 64, 128, 256, 512, 1024];
/// About how many requests `growth` has; 16,832 is the most of Table 1.
const GROWTH: [u64; 6] = [1 << 10, 1 << 12, 16_832, 1 << 16, 100_000, 1 << 18];

pub(crate) fn simulate(args: &Simulate) -> Result<ExitCode> {
    let machine = &Machine::K;
    let experiment = args.experiment;
    let (name, rows) = match experiment {
        None => return custom(args, machine),
        Some(Experiment::Growth) => return growth(args, machine),
        Some(Experiment::Table1) => ("table1", experiment::table1(machine)?),
        Some(Experiment::Figure5) => ("figure5", experiment::figure5(&FIGURE_5, machine)?),
        Some(Experiment::Figure6) => ("figure6", experiment::figure6(machine)?),
        Some(Experiment::Figure7) => ("figure7", experiment::figure7(machine)?),
        Some(Experiment::Figure8) => ("figure8", experiment::figure8(machine)?),
    };
    let line = |row: &Row| Line::new([row.ranks; 2], row.distribution, row.bytes, &row.outcome);
    show(
        args,
        Answer { experiment: name, rows: rows.iter().map(line).collect(), growth: Vec::new() },
    )
}

fn custom(args: &Simulate, machine: &Machine) -> Result<ExitCode> {
    let Simulate { grid, writers, readers, .. } = *args;
    let ranks = [writers, readers].map(|cube| cube.iter().product::<u64>());
    anyhow::ensure!(
        ranks.iter().all(|&count| count <= RANKS_MAX),
        "at most {RANKS_MAX} ranks of each component are simulated"
    );
    let mut scenario = s3d::scenario(grid, writers, readers);
    scenario.matchers = args.matchers;
    scenario.distribution = match args.distribution {
        Way::Balanced => Distribution::Balanced,
        Way::Range => Distribution::Range { block: args.block },
        Way::Varid => Distribution::Variable,
    };
    (scenario.cycles, scenario.replay) = (args.cycles, args.replay);
    let outcome = scenario.run(machine)?;
    if let Some(file) = &args.record {
        std::fs::write(file, outcome.recording.to_bytes())
            .with_context(|| format!("cannot write the recording {}", file.display()))?;
    }
    let bytes = grid.iter().product::<u64>() * s3d::POINT_BYTES;
    let rows = vec![Line::new(ranks, scenario.distribution, bytes, &outcome)];
    show(args, Answer { experiment: "s3d", rows, growth: Vec::new() })
}

/// So many are simulated within minutes.
const RANKS_MAX: u64 = 1 << 16;

fn growth(args: &Simulate, machine: &Machine) -> Result<ExitCode> {
    let mut growth = Vec::new();
    for requests in GROWTH {
        growth.push(Grown::new(&experiment::growth(requests, machine)?));
    }
    show(args, Answer { experiment: "growth", rows: Vec::new(), growth })
}

fn show(args: &Simulate, answer: Answer) -> Result<ExitCode> {
    if args.json {
        tell(format_args!("{}", serde_json::to_string(&answer)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if !answer.rows.is_empty() {
        tell(format_args!(
            "                                             requests a matcher      data  matching     simulated transfer"
        ))?;
        tell(format_args!(
            "   ranks  matchers  distribution        file     mean      max   messages      here   matching     in all"
        ))?;
    }
    for line in &answer.rows {
        let Line { writers, matchers, distribution, requests_mean, requests_max, .. } = line;
        let (file, messages, matched) =
            (bytes_text(line.file_bytes), line.data_messages, line.matched_seconds * 1e3);
        let (virtually, all) = (line.matched_virtual_seconds * 1e3, line.written_seconds * 1e3);
        tell(format_args!(
            "{writers:>8}  {matchers:>8}  {distribution:<12}  {file:>10}  {requests_mean:>7.0}  {requests_max:>7}  \
             {messages:>9}  {matched:>5.1} ms  {virtually:>6.1} ms  {all:>6.0} ms"
        ))?;
    }
    if answer.experiment == "s3d" {
        for line in &answer.rows {
            let Line { control_messages, data_messages, .. } = line;
            let (control, data) = (bytes_text(line.control_bytes), bytes_text(line.data_bytes));
            tell(format_args!(
                "{control_messages} messages of {control} decide, {data_messages} of {data} carry data"
            ))?;
            for (number, seconds) in line.cycles_seconds.iter().enumerate() {
                let ms = seconds * 1e3;
                tell(format_args!("cycle {number}: {ms:.1} ms simulated"))?;
            }
        }
    }
    if !answer.growth.is_empty() {
        tell(format_args!("requests     pairs    compared   matching here   ns / (n log2 n)"))?;
    }
    for Grown { requests, pairs, compared, matched_seconds, ns_per_n_log_n } in &answer.growth {
        let ms = matched_seconds * 1e3;
        tell(format_args!(
            "{requests:>8}  {pairs:>8}  {compared:>10}  {ms:>10.2} ms  {ns_per_n_log_n:>16.1}"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
