//! What a run means: which way was the best where, and what choosing another one costs.

use serde::Serialize;

use super::Cell;
use super::results::CellRow;
use crate::explain::{access_word, warmth_word};
use crate::way::Way;

/// Cells that differ in their data and hole sizes only.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// `read` or `write`.
    pub access: &'static str,
    /// `warm` or `cold`.
    pub warmth: &'static str,
    /// Size of the sieving buffer in bytes.
    pub buffer_bytes: u64,
    /// Simulated servers; 0 for a real file.
    pub servers: u32,
    /// Their stripe size in bytes.
    pub stripe_bytes: u64,
    /// Regret of each built-in way.
    pub regrets: Vec<Spread>,
    /// How many times as fast as the other lanes the adaptive way is.
    pub speed_ups: Vec<Spread>,
    /// The cells.
    pub cells: Vec<CellSummary>,
}

/// A figure that each cell has, over all cells of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Of which lane.
    pub method: String,
    /// Geometric mean.
    pub geomean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Number of cells that have it.
    pub cells: usize,
}

/// One cell.
#[derive(Debug, Clone, Serialize)]
pub struct CellSummary {
    /// Bytes of each block.
    pub data: u64,
    /// Bytes of each hole.
    pub hole: u64,
    /// Offset of the first block.
    pub displacement: u64,
    /// The built-in way that was the fastest.
    pub best: Option<String>,
    /// The adaptive way's time over the fastest's.
    pub regret: Option<f64>,
    /// All lanes.
    pub methods: Vec<MethodSummary>,
    /// Lanes that could not do it, and why.
    pub skipped: Vec<(String, String)>,
}

/// One lane in one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodSummary {
    /// Its name.
    pub method: String,
    /// Nanoseconds for each byte of data: the median.
    pub byte_ns: f64,
    /// The shortest.
    pub min_byte_ns: f64,
    /// The longest that counts.
    pub max_byte_ns: f64,
    /// Turns that count.
    pub turns: usize,
    /// What it was expected to take.
    pub expected_byte_ns: Option<f64>,
    /// How many times as fast as this lane the adaptive way is.
    pub speed_up: Option<f64>,
}

impl Spread {
    /// Over some values; none without values.
    #[must_use]
    pub fn of(method: &str, values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut logs, mut min, mut max, mut cells) = (0.0, f64::INFINITY, 0.0_f64, 0);
        for value in values {
            logs += value.ln();
            (min, max) = (min.min(value), max.max(value));
            cells += 1;
        }
        let geomean = (logs / f64::from(u32::try_from(cells).unwrap_or(u32::MAX))).exp();
        (cells > 0).then(|| Self { method: method.to_owned(), geomean, min, max, cells })
    }
}

/// The fastest of the built-in ways in a cell.
#[must_use]
pub fn best(row: &CellRow) -> Option<Way> {
    let timed = Way::ALL.into_iter().filter_map(|way| Some((way, row.median(way.name())?)));
    timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(way, _)| way)
}

/// A way's time over that of the fastest built-in way, measured in the same rounds; at least 1.
#[must_use]
pub fn regret(row: &CellRow, way: Way) -> Option<f64> {
    let best = best(row)?;
    row.median(way.name())?;
    if best == way { Some(1.0) } else { Some(row.ratio(way.name(), best.name())?.max(1.0)) }
}

fn key(cell: &Cell) -> Cell {
    Cell { data: 0, hole: 0, displacement: 0, ..*cell }
}

/// Summarises the cells of a run.
#[must_use]
pub fn summarise(rows: &[CellRow]) -> Vec<Group> {
    let mut keys: Vec<Cell> = Vec::new();
    for row in rows {
        if !keys.contains(&key(&row.cell)) {
            keys.push(key(&row.cell));
        }
    }
    keys.iter()
        .map(|wanted| {
            let rows: Vec<&CellRow> = rows.iter().filter(|row| key(&row.cell) == *wanted).collect();
            group(wanted, &rows)
        })
        .collect()
}

fn group(key: &Cell, rows: &[&CellRow]) -> Group {
    let regrets = Way::ALL
        .into_iter()
        .filter_map(|way| Spread::of(way.name(), rows.iter().filter_map(|row| regret(row, way))));
    let mut names: Vec<&str> = rows.iter().flat_map(|row| row.methods()).collect();
    names.sort_unstable();
    names.dedup();
    let adaptive = Way::Adaptive.name();
    let others = names.into_iter().filter(|name| *name != adaptive);
    let speed_ups = others.filter_map(|name| {
        Spread::of(name, rows.iter().filter_map(|row| row.ratio(name, adaptive)))
    });
    Group {
        access: access_word(key.access),
        warmth: warmth_word(key.warmth),
        buffer_bytes: key.buffer_bytes,
        servers: key.servers,
        stripe_bytes: key.stripe_bytes,
        regrets: regrets.collect(),
        speed_ups: speed_ups.collect(),
        cells: rows.iter().map(|row| cell(row)).collect(),
    }
}

fn cell(row: &CellRow) -> CellSummary {
    let methods = row.methods().filter_map(|method| {
        let times: Vec<f64> = row.kept(method).map(|turn| turn.byte_s() * 1e9).collect();
        Some(MethodSummary {
            method: method.to_owned(),
            byte_ns: row.median(method)? * 1e9,
            min_byte_ns: times.iter().copied().fold(f64::INFINITY, f64::min),
            max_byte_ns: times.iter().copied().fold(0.0, f64::max),
            turns: times.len(),
            expected_byte_ns: row.expected(method).map(|byte_s| byte_s * 1e9),
            speed_up: row.ratio(method, Way::Adaptive.name()),
        })
    });
    CellSummary {
        data: row.cell.data,
        hole: row.cell.hole,
        displacement: row.cell.displacement,
        best: best(row).map(|way| way.name().to_owned()),
        regret: regret(row, Way::Adaptive),
        methods: methods.collect(),
        skipped: row.skipped.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Turn;
    use crate::bench::tests::cell as a_cell;

    fn row(hole: u64, times: &[(&str, f64)]) -> CellRow {
        let mut row = CellRow::new(a_cell(8, hole));
        for (name, seconds) in times {
            for round in 1..=3 {
                row.add(name, round, Turn::new(1, *seconds));
            }
        }
        row
    }

    #[test]
    fn regret_is_the_time_lost_by_not_taking_the_best() {
        let rows = [
            row(8, &[("adaptive", 1.0), ("naive", 4.0), ("romio", 2.0), ("mpi", 3.0)]),
            row(16, &[("adaptive", 1.1), ("naive", 1.0), ("romio", 2.0), ("mpi", 0.55)]),
        ];
        let groups = summarise(&rows);
        assert_eq!(groups.len(), 1);
        let group = &groups[0];
        let of = |name: &str, spreads: &[Spread]| {
            spreads.iter().find(|spread| spread.method == name).cloned().unwrap()
        };
        let adaptive = of("adaptive", &group.regrets);
        assert!((adaptive.geomean - 1.1_f64.sqrt()).abs() < 1e-9);
        assert!((adaptive.max - 1.1).abs() < 1e-9 && adaptive.cells == 2);
        assert!((of("romio", &group.regrets).geomean - 2.0).abs() < 1e-9);
        // Programs beside the library do not count as a way that could have been taken.
        assert_eq!(group.cells[1].best.as_deref(), Some("naive"));
        let mpi = of("mpi", &group.speed_ups);
        assert!((mpi.min - 0.5).abs() < 1e-9 && (mpi.max - 3.0).abs() < 1e-9);
    }

    #[test]
    fn cells_of_different_circumstances_are_kept_apart() {
        let mut other = row(8, &[("adaptive", 1.0)]);
        other.cell.access = sieve::Access::Write;
        let groups = summarise(&[row(8, &[("adaptive", 1.0)]), other]);
        assert_eq!(groups.iter().map(|group| group.access).collect::<Vec<_>>(), ["read", "write"]);
        assert_eq!(Spread::of("x", []), None);
    }
}
