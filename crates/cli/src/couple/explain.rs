//! `sluice couple explain`: who sent what to whom.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context, Result};
use matching::{Place, Recording};
use serde::Serialize;

use crate::args::couple::Explain;
use crate::format::bytes_text;
use crate::report::tell;

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a str,
    cycle: u32,
    bytes: u64,
    pairs: Vec<Pair>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

/// What went from one rank to another.
#[derive(Serialize)]
struct Pair {
    from: Who,
    to: Who,
    parts: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Part {
    from: Who,
    to: Who,
    variable: String,
    part: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Who {
    component: String,
    rank: u32,
}

impl Who {
    fn new(recording: &Recording, place: Place) -> Self {
        Self { component: recording.component(place), rank: place.rank }
    }
}

pub(crate) fn explain(args: &Explain) -> Result<ExitCode> {
    let name = args.file.display();
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {name}"))?;
    let recording = Recording::from_bytes(&bytes).with_context(|| {
        format!("{name} is no recording; `sluice couple simulate --record FILE` makes one")
    })?;
    let answer = answer(&recording, args.parts);
    if args.json {
        tell(format_args!("{}", serde_json::to_string(&answer)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (pairs, sum) = (answer.pairs.len(), bytes_text(answer.bytes));
    tell(format_args!(
        "{} cycle {}: {sum} between {pairs} pairs of ranks",
        answer.file, answer.cycle
    ))?;
    if args.parts {
        for Part { from, to, variable, part, bytes } in &answer.parts {
            let (bytes, rank) = (bytes_text(*bytes), from.rank);
            let (from, to, reader) = (&from.component, &to.component, to.rank);
            tell(format_args!("  {from} {rank} → {to} {reader}  {bytes:>10}  {variable}{part}"))?;
        }
    } else {
        for Pair { from, to, parts, bytes } in &answer.pairs {
            let (bytes, rank) = (bytes_text(*bytes), from.rank);
            let (from, to, reader) = (&from.component, &to.component, to.rank);
            tell(format_args!("  {from} {rank} → {to} {reader}  {bytes:>10}  {parts} parts"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(recording: &Recording, parts: bool) -> Answer<'_> {
    let mut pairs: BTreeMap<(Place, Place), (u64, u64)> = BTreeMap::new();
    let mut list = Vec::new();
    let mut sum = 0;
    for flow in &recording.flows {
        let (variable, size) = recording.variable(flow.variable);
        // What was sent fits into memory, and so does its size into a number.
        let bytes =
            u64::try_from(flow.part.elements()).unwrap_or(u64::MAX).saturating_mul(size as u64);
        let pair = pairs.entry((flow.from, flow.to)).or_default();
        *pair = (pair.0 + 1, pair.1.saturating_add(bytes));
        sum = bytes.saturating_add(sum);
        if parts {
            let (from, to) = (Who::new(recording, flow.from), Who::new(recording, flow.to));
            list.push(Part { from, to, variable, part: flow.part.to_string(), bytes });
        }
    }
    let pair = |((from, to), (parts, bytes))| Pair {
        from: Who::new(recording, from),
        to: Who::new(recording, to),
        parts,
        bytes,
    };
    Answer {
        file: &recording.file,
        cycle: recording.cycle.0,
        bytes: sum,
        pairs: pairs.into_iter().map(pair).collect(),
        parts: list,
    }
}
