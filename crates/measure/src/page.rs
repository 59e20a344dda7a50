//! The page of a run: one HTML file that needs nothing beside itself.

use std::fmt::Write;
use std::time::UNIX_EPOCH;

use crate::bench::results::{CellRow, RunInfo};
use crate::bench::summary::{self, CellSummary, Group, Spread};
use crate::error::{Error, Result};
use crate::learned::{self, Assessment};
use crate::plot::{self, Line, Scale, Surface, size_text};
use crate::way::Way;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #111827; margin: 2rem auto; max-width: 1240px; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin-top: 2.6rem }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem }
p.note { color: #4b5563; margin-top: 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; margin: .4rem 0 1rem }
th, td { padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #e5e7eb; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { background: #f3f4f6; font-weight: 600 }
.plots { display: flex; flex-wrap: wrap; gap: 1rem } .plots > div { border: 1px solid #e5e7eb; border-radius: 4px }
.beside { display: flex; flex-wrap: wrap; gap: 2.5rem; align-items: flex-start }
.scroll { overflow-x: auto } summary { cursor: pointer; margin: .6rem 0 } svg { display: block; max-width: 100% }
nav a { margin-right: 1.2rem } pre { font-size: 12px; white-space: pre-wrap; color: #4b5563 }
";

/// Writes the page of what a run measured. `date` turns a time (seconds since 1970) into words.
///
/// # Errors
/// [`Error::Plot`] when a plot cannot be drawn that should be.
pub fn page(info: &RunInfo, rows: &[CellRow], date: &dyn Fn(i64) -> String) -> Result<String> {
    let groups = summary::summarise(rows);
    let started = info.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let mut out = String::new();
    let state = if info.is_finished { "" } else { ", not finished" };
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\">\
         <title>sluice sieve bench</title><style>{STYLE}</style>\n\
         <h1>Non-contiguous access: {}</h1>\n\
         <p class=note>Run {} of {}{state}, {} patterns. Each is a block of data, a hole, and so on \
         to the end of the file; rates count data only.</p>\n<nav>",
        escape(&info.place),
        info.id.0,
        escape(&date(started)),
        rows.len()
    );
    for (number, group) in groups.iter().enumerate() {
        let _ = write!(out, "<a href=\"#g{number}\">{}</a>", escape(&heading(group)));
    }
    out.push_str("</nav>\n");
    for (number, group) in groups.iter().enumerate() {
        let _ = writeln!(out, "<h2 id=g{number}>{}</h2>", escape(&heading(group)));
        section(&mut out, group)?;
    }
    if let Some(assessment) = learned::assess(rows) {
        learned_section(&mut out, &assessment);
    }
    skipped_section(&mut out, &groups);
    let _ = write!(
        out,
        "<details><summary>What was asked for</summary><pre>{}</pre></details>\n</html>\n",
        escape(&info.config)
    );
    Ok(out)
}

fn heading(group: &Group) -> String {
    let access = if group.access == "read" { "Reading" } else { "Writing" };
    let cluster = match group.servers {
        0 => String::new(),
        servers => format!(", {servers} servers, stripes of {}", size_text(group.stripe_bytes)),
    };
    format!("{access}, {}{cluster}, buffer {}", group.warmth, size_text(group.buffer_bytes))
}

/// The cells of a group that lie alike on stripes: those of one kind of displacement.
fn panels(group: &Group) -> Vec<(&'static str, Vec<&CellSummary>)> {
    type IsOf = fn(&CellSummary) -> bool;
    let kinds: [(&str, IsOf); 3] = [
        ("", |cell| cell.displacement == cell.hole),
        ("aligned", |cell| cell.displacement == 0 && cell.hole != 0),
        ("unaligned", |cell| cell.displacement != 0 && cell.displacement != cell.hole),
    ];
    let has_aligned = group.cells.iter().any(|cell| cell.displacement == 0 && cell.hole != 0);
    let mut panels = Vec::new();
    for (name, is_of) in kinds {
        let cells: Vec<&CellSummary> = group
            .cells
            .iter()
            // Without a hole, "behind a hole" and "aligned" are one.
            .filter(|cell| {
                if has_aligned && cell.hole == 0 && cell.displacement == 0 {
                    name == "aligned"
                } else {
                    is_of(cell)
                }
            })
            .collect();
        if !cells.is_empty() {
            panels.push((name, cells));
        }
    }
    panels
}

fn section(out: &mut String, group: &Group) -> Result<()> {
    out.push_str("<div class=beside>");
    spreads(out, "regret", &group.regrets, ["mean", "worst"], |spread| spread.max);
    spreads(out, "adaptive is faster than", &group.speed_ups, ["mean", "least"], |spread| {
        spread.min
    });
    out.push_str("</div>\n");
    for (kind, cells) in panels(group) {
        let sizes = |size: fn(&CellSummary) -> u64| {
            let mut all: Vec<u64> = cells.iter().map(|cell| size(cell)).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let panel = Panel {
            kind,
            data: sizes(|cell| cell.data),
            holes: sizes(|cell| cell.hole),
            cells: &cells,
        };
        panel.best_table(out);
        panel.surfaces(out)?;
        panel.lines(out)?;
    }
    Ok(())
}

fn spreads(
    out: &mut String,
    title: &str,
    spreads: &[Spread],
    heads: [&str; 2],
    extreme: fn(&Spread) -> f64,
) {
    let _ =
        write!(out, "<table><tr><th>{title}</th><th>{}</th><th>{}</th></tr>", heads[0], heads[1]);
    for spread in spreads {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{:.2}</td><td>{:.2}</td></tr>",
            escape(&spread.method),
            spread.geomean,
            extreme(spread)
        );
    }
    out.push_str("</table>");
}

struct Panel<'a> {
    kind: &'static str,
    data: Vec<u64>,
    holes: Vec<u64>,
    cells: &'a [&'a CellSummary],
}

impl Panel<'_> {
    fn cell(&self, data: u64, hole: u64) -> Option<&CellSummary> {
        self.cells.iter().find(|cell| cell.data == data && cell.hole == hole).copied()
    }

    fn names(sizes: &[u64]) -> Vec<String> {
        sizes.iter().map(|size| size_text(*size)).collect()
    }

    fn methods(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Way::ALL.iter().map(|way| way.name()).collect();
        let all =
            self.cells.iter().flat_map(|cell| &cell.methods).map(|method| method.method.as_str());
        for name in all.clone() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.retain(|name| all.clone().any(|known| known == *name));
        names
    }

    /// Which way was the best, and what the adaptive one lost.
    fn best_table(&self, out: &mut String) {
        let kind = if self.kind.is_empty() { String::new() } else { format!(", {}", self.kind) };
        let _ = write!(
            out,
            "<h3>The best method, and the time of adaptive over its{kind}</h3>\
             <div class=scroll><table><tr><th>data \\ hole</th>"
        );
        for hole in &self.holes {
            let _ = write!(out, "<th>{}</th>", size_text(*hole));
        }
        for data in &self.data {
            let _ = write!(out, "</tr>\n<tr><td>{}</td>", size_text(*data));
            for hole in &self.holes {
                let cell = self.cell(*data, *hole);
                match cell.and_then(|cell| Some((cell.best.as_ref()?, cell.regret?))) {
                    Some((best, regret)) => {
                        // White at none, red at twice the time.
                        let paleness = 100.0 - 40.0 * (regret - 1.0).clamp(0.0, 1.0);
                        let _ = write!(
                            out,
                            "<td style=\"background:hsl(8 90% {paleness:.0}%)\">{} {regret:.2}</td>",
                            escape(best)
                        );
                    }
                    None => out.push_str("<td>–</td>"),
                }
            }
        }
        out.push_str("</tr></table></div>\n");
    }

    fn surface(
        &self,
        title: String,
        scale: Scale,
        value: impl Fn(&CellSummary) -> Option<f64>,
    ) -> Result<String> {
        let row = |data: &u64| {
            let at = |hole: &u64| self.cell(*data, *hole).and_then(&value);
            self.holes.iter().map(at).collect()
        };
        let values = self.data.iter().map(row).collect();
        let (data, holes) = (Self::names(&self.data), Self::names(&self.holes));
        plot::surface(&Surface { title, data, holes, values, scale })
    }

    fn surfaces(&self, out: &mut String) -> Result<()> {
        if self.data.len() < 2 || self.holes.len() < 2 {
            return Ok(());
        }
        let rate = |method: &str, cell: &CellSummary| {
            let found = cell.methods.iter().find(|known| known.method == method)?;
            Some(1e3 / found.byte_ns)
        };
        let expected = |method: &str, cell: &CellSummary| {
            let found = cell.methods.iter().find(|known| known.method == method)?;
            Some(1e3 / found.expected_byte_ns?)
        };
        out.push_str("<h3>Rates</h3><div class=plots>\n");
        for method in self.methods() {
            let svg = self.surface(method.to_owned(), Scale::Rate, |cell| rate(method, cell))?;
            let _ = writeln!(out, "<div>{svg}</div>");
        }
        for method in ["naive", "adaptive"] {
            let title = format!("{method}, as the model expects it");
            // Not every run has every method.
            match self.surface(title, Scale::Rate, |cell| expected(method, cell)) {
                Ok(svg) => drop(writeln!(out, "<div>{svg}</div>")),
                Err(Error::Plot { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        out.push_str("</div><h3>Differences to naive</h3><div class=plots>\n");
        for method in self.methods().into_iter().filter(|method| *method != "naive") {
            let title = format!("{method}, how many times as fast as naive");
            let factor = |cell: &CellSummary| Some(rate(method, cell)? / rate("naive", cell)?);
            match self.surface(title, Scale::Factor, factor) {
                Ok(svg) => drop(writeln!(out, "<div>{svg}</div>")),
                Err(Error::Plot { .. }) => {}
                Err(other) => return Err(other),
            }
        }
        out.push_str("</div>\n");
        Ok(())
    }

    fn lines(&self, out: &mut String) -> Result<()> {
        out.push_str("<details open><summary>Lines: one plot for each data size</summary><div class=plots>\n");
        for data in &self.data {
            let line = |method: &str, is_expected: bool| {
                let points = self.holes.iter().enumerate().filter_map(|(at, hole)| {
                    let cell = self.cell(*data, *hole)?;
                    let found = cell.methods.iter().find(|known| known.method == method)?;
                    let rate = |byte_ns: f64| 1e3 / byte_ns;
                    if is_expected {
                        let expected = rate(found.expected_byte_ns?);
                        return Some((at, expected, expected, expected));
                    }
                    Some((
                        at,
                        rate(found.byte_ns),
                        rate(found.max_byte_ns),
                        rate(found.min_byte_ns),
                    ))
                });
                Line { name: method.to_owned(), points: points.collect(), is_expected }
            };
            let mut lines: Vec<Line> =
                self.methods().iter().map(|method| line(method, false)).collect();
            // The most important one on top.
            lines.reverse();
            lines.extend(["naive", "adaptive"].map(|method| line(method, true)));
            lines.retain(|line| !line.points.is_empty());
            if lines.is_empty() {
                continue;
            }
            let title = format!("data {}", size_text(*data));
            let svg = plot::lines(&title, &Self::names(&self.holes), &lines)?;
            let _ = writeln!(out, "<div>{svg}</div>");
        }
        out.push_str("</div></details>\n");
        Ok(())
    }
}

fn learned_section(out: &mut String, assessment: &Assessment) {
    let _ = write!(
        out,
        "<h2>Learned and analytic model</h2><p class=note>Each of {} patterns is predicted by a model \
         that was learned from all others. Regret is the time of the method that a model chooses over \
         that of the best one.</p><table><tr><th>model</th><th>mean</th><th>worst</th></tr>",
        assessment.cells
    );
    let mut row = |name: &str, spread: Option<&Spread>| {
        let Some(Spread { geomean, max, .. }) = spread else { return };
        let _ = write!(out, "<tr><td>{name}</td><td>{geomean:.2}</td><td>{max:.2}</td></tr>");
    };
    row("learned from the other patterns", Some(&assessment.learned));
    row("analytic, corrected while running (adaptive)", assessment.analytic.as_ref());
    row("learned, among the fixed methods only", assessment.learned_fixed.as_ref());
    row("analytic, among these, before anything is measured", assessment.analytic_fixed.as_ref());
    for spread in &assessment.fixed {
        row(&format!("always {}", spread.method), Some(spread));
    }
    out.push_str("</table>\n");
}

fn skipped_section(out: &mut String, groups: &[Group]) {
    let all = groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, cell)));
    let skipped: Vec<_> = all.filter(|(_, cell)| !cell.skipped.is_empty()).collect();
    if skipped.is_empty() {
        return;
    }
    let _ = write!(out, "<details><summary>{} patterns lack a method</summary><ul>", skipped.len());
    for (group, cell) in skipped {
        for (_, why) in &cell.skipped {
            let _ = write!(
                out,
                "<li>{} {},{}: {}</li>",
                group.access,
                cell.data,
                cell.hole,
                escape(why)
            );
        }
    }
    out.push_str("</ul></details>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::RunId;
    use crate::bench::tests::cell;
    use crate::bench::{Cell, Turn};

    fn rows(displacement: Option<u64>) -> Vec<CellRow> {
        let sizes = [8, 100, 4096];
        let mut rows = Vec::new();
        for data in sizes {
            for hole in [0, 64, 4096] {
                let cell = cell(data, hole);
                let displacement = displacement.unwrap_or(hole);
                let mut row = CellRow::new(Cell { displacement, ..cell });
                for (number, way) in [Way::Adaptive, Way::Naive, Way::Romio].into_iter().enumerate()
                {
                    for round in 1..=3 {
                        let seconds = (1 + number) as f64 * 1e-6 * f64::from(round);
                        row.add(way.name(), round, Turn::new(1000, seconds));
                    }
                    row.expect(way.name(), Some(1e-9));
                }
                row.add("mpi <x>", 1, Turn::new(1000, 1e-5));
                rows.push(row);
            }
        }
        rows[0].skip("scanfile", &Error::Lane { lane: "scanfile".into(), what: "a < b".into() });
        rows
    }

    fn info() -> RunInfo {
        let (config, place) = ("{\"a\":\"<b>\"}".to_owned(), "ext4 at /".to_owned());
        RunInfo { id: RunId(3), started: UNIX_EPOCH, is_finished: true, config, place }
    }

    #[test]
    fn a_page_has_surfaces_lines_and_tables_and_is_well_formed() {
        let page = page(&info(), &rows(None), &|_| "some day".to_owned()).unwrap();
        // Four methods, two expectations, three differences, three data sizes.
        assert_eq!(page.matches("<svg").count(), 4 + 2 + 3 + 3);
        for tag in ["svg", "table", "div", "details", "ul", "h2", "h3", "tr"] {
            let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
            let opened = page.matches(&format!("{open}>")).count()
                + page.matches(&format!("{open} ")).count();
            assert_eq!(opened, page.matches(&close).count(), "{tag}");
        }
        assert!(page.contains("mpi &lt;x&gt;") && !page.contains("mpi <x>"));
        assert!(page.contains("a &lt; b") && page.contains("some day"));
        assert!(page.contains("learned from the other patterns"));
    }

    #[test]
    fn aligned_patterns_are_shown_as_such() {
        let page = page(&info(), &rows(Some(0)), &|_| String::new()).unwrap();
        assert!(page.contains("over its, aligned"));
        assert!(!page.contains("unaligned"));
    }
}
