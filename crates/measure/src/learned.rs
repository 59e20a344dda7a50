//! A model that is learned from measurements: which way is the best for a pattern that nobody has
//! measured.
//!
//! Each measured cell is a point: the logarithms of data size, hole size and buffer, access,
//! warmth, servers and stripes. For a new pattern, the time of each way is the mean of its times
//! at the nearest points, weighted by their distance; the way with the shortest is predicted. This
//! is *k*-nearest-neighbour regression: nothing is fitted beforehand, and what comes of it can be
//! looked up by hand.
//!
//! How good it is, is found out by cross-validation: each cell is predicted from all others, and
//! its regret is the measured time of the predicted way over that of the best.
//!
//! # Source
//! Zickler 2015, §6.2: "further optimization of data sieving algorithms with machine learning tools
//! is planned"; Kunkel, Zimmer, Betke, "Predicting Performance of Non-Contiguous I/O with Machine
//! Learning", 2014, which uses the same features.

use serde::Serialize;
use sieve::{Access, Warmth};

use crate::bench::Cell;
use crate::bench::results::CellRow;
use crate::bench::summary::{self, Spread};
use crate::way::Way;

/// How many neighbours are asked.
const NEIGHBOURS: usize = 4;

/// Distance that is added to all, so that an equal pattern does not decide alone: measurements
/// have noise. In octaves.
const BLUR: f64 = 0.25;

/// How far reading is from writing, and warm from cold, in octaves: so far that the other kind is
/// asked only where nothing else is known.
const KINDS_APART: f64 = 100.0;

/// What tells one cell from another.
type Features = [f64; 7];

/// What was learned.
#[derive(Debug, Clone)]
pub struct Learned {
    points: Vec<Point>,
}

#[derive(Debug, Clone)]
struct Point {
    features: Features,
    /// Of each way that was measured, the logarithm of its seconds for each byte.
    times: Vec<(Way, f64)>,
}

/// What is predicted for a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Ways and nanoseconds for each byte of data, the shortest first.
    pub times: Vec<(Way, f64)>,
    /// How far the nearest measured pattern is, in octaves of data and hole size.
    pub distance: f64,
}

/// How much is lost by following a model.
#[derive(Debug, Clone, Serialize)]
pub struct Assessment {
    /// Cells that could be predicted.
    pub cells: usize,
    /// The learned model's regret: time of the predicted way over that of the best way.
    pub learned: Spread,
    /// The analytic model's, in which the adaptive way plans and which it corrects while it runs.
    pub analytic: Option<Spread>,
    /// The learned model's regret when it may only choose among the ways that have no model of
    /// their own, compared with the best of those.
    pub learned_fixed: Option<Spread>,
    /// That of the analytic model before anything is measured.
    pub analytic_fixed: Option<Spread>,
    /// That of each such way if it is always taken.
    pub fixed: Vec<Spread>,
}

impl Learned {
    /// Learns from cells. None when no cell has a time.
    #[must_use]
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = &'a CellRow>) -> Option<Self> {
        let points: Vec<Point> = rows.into_iter().filter_map(Point::new).collect();
        (!points.is_empty()).then_some(Self { points })
    }

    /// How many cells it knows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether it knows nothing; never true.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Predicts the times of all known ways.
    #[must_use]
    pub fn predict(&self, cell: &Cell) -> Prediction {
        predict(self.points.iter(), &features(cell))
    }
}

impl Point {
    fn new(row: &CellRow) -> Option<Self> {
        let times: Vec<(Way, f64)> = Way::ALL
            .into_iter()
            .filter_map(|way| Some((way, row.median(way.name())?.ln())))
            .filter(|(_, log)| log.is_finite())
            .collect();
        (!times.is_empty()).then(|| Self { features: features(&row.cell), times })
    }
}

fn features(cell: &Cell) -> Features {
    let log = |bytes: u64| ((bytes + 1) as f64).log2();
    [
        log(cell.data),
        log(cell.hole),
        log(cell.buffer_bytes),
        if cell.access == Access::Write { KINDS_APART } else { 0.0 },
        if cell.warmth == Warmth::Cold { KINDS_APART } else { 0.0 },
        // Whole servers and stripes: twice as many is as far as twice the size.
        log(u64::from(cell.servers)),
        log(cell.stripe_bytes),
    ]
}

fn distance(a: &Features, b: &Features) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn predict<'a>(points: impl Iterator<Item = &'a Point>, wanted: &Features) -> Prediction {
    let mut near: Vec<(f64, &Point)> =
        points.map(|point| (distance(&point.features, wanted), point)).collect();
    near.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut times: Vec<(Way, f64)> = Vec::with_capacity(Way::ALL.len());
    for way in Way::ALL {
        // The nearest points where this way was measured.
        let known = near.iter().filter_map(|(distance, point)| {
            let (_, log) = point.times.iter().find(|(other, _)| *other == way)?;
            Some((1.0 / (distance + BLUR).powi(2), *log))
        });
        let (mut weights, mut sum) = (0.0, 0.0);
        for (weight, log) in known.take(NEIGHBOURS) {
            weights += weight;
            sum += weight * log;
        }
        if weights > 0.0 {
            times.push((way, (sum / weights).exp() * 1e9));
        }
    }
    times.sort_by(|a, b| a.1.total_cmp(&b.1));
    let distance = near.first().map_or(f64::INFINITY, |(distance, _)| *distance);
    Prediction { times, distance }
}

/// What it costs to follow the learned model in cells that it has not seen, and what it costs to
/// follow others. None with fewer than two cells.
#[must_use]
pub fn assess(rows: &[CellRow]) -> Option<Assessment> {
    let points: Vec<(&CellRow, Point)> =
        rows.iter().filter_map(|row| Some((row, Point::new(row)?))).collect();
    if points.len() < 2 {
        return None;
    }
    let is_fixed = |way: Way| way != Way::Adaptive;
    let mut learned = Vec::with_capacity(points.len());
    let mut learned_fixed = Vec::with_capacity(points.len());
    let mut analytic_fixed = Vec::with_capacity(points.len());
    for (left_out, (row, point)) in points.iter().enumerate() {
        let others = points.iter().enumerate().filter(|(index, _)| *index != left_out);
        let prediction = predict(others.map(|(_, (_, point))| point), &point.features);
        // Of what was measured here; the others would not tell what is lost.
        let mut ways = prediction.times.iter().map(|(way, _)| *way);
        learned.extend(ways.clone().next().and_then(|way| summary::regret(row, way)));
        learned_fixed
            .extend(ways.find(|way| is_fixed(*way)).and_then(|way| regret_fixed(row, way)));
        let expected = Way::ALL.into_iter().filter(|way| is_fixed(*way));
        let expected = expected.filter_map(|way| Some((way, row.expected(way.name())?)));
        let chosen = expected.min_by(|a, b| a.1.total_cmp(&b.1));
        analytic_fixed.extend(chosen.and_then(|(way, _)| regret_fixed(row, way)));
    }
    let adaptive = points.iter().filter_map(|(row, _)| summary::regret(row, Way::Adaptive));
    let fixed = Way::ALL.into_iter().filter(|way| is_fixed(*way)).filter_map(|way| {
        Spread::of(way.name(), points.iter().filter_map(|(row, _)| regret_fixed(row, way)))
    });
    Some(Assessment {
        cells: points.len(),
        learned: Spread::of("learned", learned)?,
        analytic: Spread::of("analytic", adaptive),
        learned_fixed: Spread::of("learned", learned_fixed),
        analytic_fixed: Spread::of("analytic", analytic_fixed),
        fixed: fixed.collect(),
    })
}

/// A way's time over that of the best way that has no model of its own.
fn regret_fixed(row: &CellRow, way: Way) -> Option<f64> {
    let fixed = Way::ALL.into_iter().filter(|way| *way != Way::Adaptive);
    let timed = fixed.filter_map(|way| Some((way, row.median(way.name())?)));
    let (best, _) = timed.min_by(|a, b| a.1.total_cmp(&b.1))?;
    if best == way { Some(1.0) } else { Some(row.ratio(way.name(), best.name())?.max(1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Turn;
    use crate::bench::tests::cell;

    /// A world in which sieving carries holes at 1 ns a byte and a call costs 5000 ns.
    fn row(data: u64, hole: u64) -> CellRow {
        let mut row = CellRow::new(cell(data, hole));
        let naive = 5000.0 / data as f64 + 1.0;
        let romio = (data + hole) as f64 / data as f64;
        for (name, byte_ns) in
            [("naive", naive), ("romio", romio), ("adaptive", naive.min(romio) * 1.1)]
        {
            row.add(name, 1, Turn::new(1000, byte_ns * 1e-6));
            row.expect(name, Some(byte_ns * 1e-9));
        }
        row
    }

    fn rows() -> Vec<CellRow> {
        let sizes: Vec<u64> = (3..20).step_by(2).map(|log| 1 << log).collect();
        sizes.iter().flat_map(|data| sizes.iter().map(|hole| row(*data, *hole))).collect()
    }

    #[test]
    fn patterns_between_measured_ones_are_predicted() {
        let learned = Learned::from_rows(&rows()).unwrap();
        assert_eq!(learned.len(), 81);
        for (data, hole, wanted) in [
            (12, 100, Way::Romio),
            (12, 400_000, Way::Naive),
            (1000, 1500, Way::Romio),
            (300, 60_000, Way::Naive),
        ] {
            let prediction = learned.predict(&cell(data, hole));
            let best = prediction.times.iter().find(|(way, _)| *way != Way::Adaptive).unwrap();
            assert_eq!(best.0, wanted, "{data} {hole} {prediction:?}");
            assert!(prediction.distance < 2.0);
        }
        assert!(Learned::from_rows(&[]).is_none());
    }

    #[test]
    fn other_kinds_of_access_are_asked_only_where_nothing_else_is_known() {
        let mut rows = rows();
        let mut write = row(64, 64);
        write.cell.access = Access::Write;
        let wanted = write.cell;
        rows.push(write);
        let learned = Learned::from_rows(&rows).unwrap();
        assert!(learned.predict(&wanted).distance < 0.01);
        let far = Cell { warmth: Warmth::Cold, ..wanted };
        assert!(learned.predict(&far).distance > 50.0);
    }

    #[test]
    fn its_regret_is_small_where_there_is_something_to_learn() {
        let assessment = assess(&rows()).unwrap();
        assert_eq!(assessment.cells, 81);
        // The analytic model of this world is right by construction.
        assert!((assessment.analytic_fixed.unwrap().geomean - 1.0).abs() < 1e-9);
        // The adaptive way is a tenth slower than the best in this world.
        assert!((assessment.analytic.unwrap().geomean - 1.1).abs() < 1e-9);
        assert!(assessment.learned.geomean < 1.1, "{:?}", assessment.learned);
        let learned = assessment.learned_fixed.unwrap();
        assert!(learned.geomean < 1.1, "{learned:?}");
        let naive = assessment.fixed.iter().find(|spread| spread.method == "naive").unwrap();
        assert!(naive.geomean > 2.0 * learned.geomean);
        assert!(assess(&rows()[..1]).is_none());
    }
}
