//! `sluice sieve explain`: a plan in words.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use measure::bench::Cell;
use measure::explain::{Cost, Explanation, Question, Shape, ShownGroup};
use measure::learned::Learned;
use measure::pattern::Pattern;
use serde::Serialize;
use sieve::{Access, FileView, Request, Warmth};

use super::parameters;
use crate::args::sieve::Explain;
use crate::format::bytes_text;
use crate::in_force::InForce;
use crate::report::tell;

/// What is wanted when nobody says, in bytes of data.
const LENGTH_DEFAULT: u64 = 16 << 20;

#[derive(Serialize)]
struct Answer<'a> {
    pattern: &'a str,
    parameters: &'a str,
    #[serde(flatten)]
    explanation: &'a Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    learned: Option<LearnedAnswer>,
}

/// What a learned model says.
#[derive(Serialize)]
struct LearnedAnswer {
    /// Measured patterns that it knows.
    patterns: usize,
    /// How far the nearest of them is, in octaves.
    distance: f64,
    /// Ways and nanoseconds for all of the access, the best first.
    methods: Vec<(&'static str, f64)>,
}

pub(super) fn explain(args: &Explain, in_force: &dyn Fn() -> Result<InForce>) -> Result<ExitCode> {
    let view = Pattern::parse(&args.pattern)?.view(args.displacement, args.seed)?;
    let known = parameters::known(&args.parameters, in_force, Path::new("."))?;
    let length = args.length.unwrap_or_else(|| view.size().max(LENGTH_DEFAULT));
    let access = if args.write { Access::Write } else { Access::Read };
    let end = args.offset.checked_add(length).context("offset and length are too large")?;
    let mut request = Request::new(access, args.offset..end, args.buffer);
    request.warmth = if args.cold { Warmth::Cold } else { Warmth::Warm };
    request.locked = args.write && !args.single_writer;
    let explanation = measure::explain::explain(&Question {
        profile: &known.profile,
        view: &view,
        request: &request,
        way: args.method,
        groups_max: args.groups,
    })?;
    let learned = match &args.learned {
        Some(results) => Some(learned(results, &view, &request)?),
        None => None,
    };
    if args.json {
        let (pattern, parameters) = (&args.pattern, &known.origin);
        let answer = Answer { pattern, parameters, explanation: &explanation, learned };
        tell(format_args!("{}", serde_json::to_string(&answer)?))?;
    } else {
        show(args, &known.origin, &explanation)?;
        if let Some(learned) = &learned {
            show_learned(learned)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Explain, origin: &str, explanation: &Explanation) -> Result<()> {
    let Explanation { view, methods, groups, .. } = explanation;
    tell(format_args!("pattern     {} ({})", args.pattern, shape_text(view)))?;
    let (access, warmth) = (explanation.access, explanation.warmth);
    let wanted = bytes_text(explanation.length);
    let lock = if args.single_writer { ", without locks" } else { "" };
    tell(format_args!(
        "access      {access} {wanted} of data from {}, {warmth}, through {}{lock}",
        explanation.offset,
        bytes_text(explanation.buffer_bytes)
    ))?;
    tell(format_args!("parameters  {origin}"))?;
    let together = match explanation.in_flight {
        1 => String::new(),
        many => format!(", up to {many} requests at a time"),
    };
    tell(format_args!("{:<11} {}{together}", explanation.method, explanation.arm))?;
    tell(format_args!("planning    {:.2} ns a block", explanation.planning_ns_per_block))?;
    tell(format_args!(""))?;
    tell(format_args!(
        "{:<10} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "method", "predicted", "groups", "calls", "carried", "wasted"
    ))?;
    for Cost { method, predicted_ns, groups, calls, carried_bytes, wasted_bytes } in methods {
        tell(format_args!(
            "{method:<10} {:>12} {groups:>10} {calls:>10} {:>10} {:>10}",
            time_text(*predicted_ns),
            bytes_text(*carried_bytes),
            bytes_text(*wasted_bytes)
        ))?;
    }
    if !groups.is_empty() {
        tell(format_args!(""))?;
    }
    for ShownGroup { arm, data_start, data_bytes, file_start, file_bytes } in groups {
        tell(format_args!(
            "  data {data_start}+{data_bytes} in file {file_start}+{file_bytes}: {arm}"
        ))?;
    }
    let all = methods.iter().find(|cost| cost.method == explanation.method);
    match all.map_or(0, |cost| cost.groups.saturating_sub(groups.len() as u64)) {
        0 => {}
        more => tell(format_args!("  … and {more} more"))?,
    }
    Ok(())
}

/// Asks the model that was learned from results. It knows blocks and holes of one size; of other patterns it is told
/// the means.
fn learned(results: &Path, view: &FileView, request: &Request) -> Result<LearnedAnswer> {
    let rows = super::page::rows(results, None)?;
    let what = "measured patterns";
    let missing = || measure::Error::NoResults { path: results.to_path_buf(), what };
    let model = Learned::from_rows(&rows).ok_or_else(missing)?;
    let (data, hole) = match view.closed_form() {
        Some((block, levels, tail)) => (block, levels.first().map_or(tail, |level| level.hole)),
        None => {
            let tuples = view.tuple_count().max(1);
            (view.size() / tuples, (view.extent() - view.size()) / tuples)
        }
    };
    let prediction = model.predict(&Cell {
        access: request.access,
        warmth: request.warmth,
        data,
        hole,
        displacement: view.displacement(),
        buffer_bytes: request.buffer_bytes,
        servers: 0,
        stripe_bytes: 0,
    });
    let wanted = (request.data.end - request.data.start) as f64;
    let methods = prediction.times.iter().map(|(way, byte_ns)| (way.name(), byte_ns * wanted));
    let (patterns, distance) = (model.len(), prediction.distance);
    Ok(LearnedAnswer { patterns, distance, methods: methods.collect() })
}

fn show_learned(learned: &LearnedAnswer) -> Result<()> {
    let LearnedAnswer { patterns, distance, methods } = learned;
    tell(format_args!(""))?;
    tell(format_args!(
        "learned from {patterns} measured patterns, the nearest {distance:.1} octaves away"
    ))?;
    for (method, ns) in methods {
        tell(format_args!("{method:<10} {:>12}", time_text(*ns)))?;
    }
    Ok(())
}

fn shape_text(view: &Shape) -> String {
    let density = view.data_bytes as f64 * 100.0 / view.extent_bytes.max(1) as f64;
    let form = match view.levels {
        Some(levels) => format!("regular, {levels} level{}", if levels == 1 { "" } else { "s" }),
        None => {
            format!("{} tuples, {} of memory", view.tuples, bytes_text(view.memory_bytes as u64))
        }
    };
    format!("{form}, {density:.3} % data")
}

/// A time with three digits: `12.3 µs`.
pub(super) fn time_text(ns: f64) -> String {
    for (unit, size) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] {
        if ns >= size {
            let count = ns / size;
            let digits = if count >= 100.0 {
                0
            } else if count >= 10.0 {
                1
            } else {
                2
            };
            return format!("{count:.digits$} {unit}");
        }
    }
    format!("{ns:.0} ns")
}

#[cfg(test)]
mod tests {
    use super::time_text;

    #[test]
    fn times_have_three_digits() {
        let shown = [5.0, 1234.0, 56_789.0, 999e6, 61e9].map(time_text);
        assert_eq!(shown, ["5 ns", "1.23 µs", "56.8 µs", "999 ms", "61.0 s"]);
    }
}
