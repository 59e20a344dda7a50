//! Going through a grid: lanes alternately, outliers again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sieve::Warmth;

use super::results::{CellRow, Results, RunId};
use super::{Cell, Lane, Turn, Work};
use crate::error::{Error, Result};
use crate::way::Way;

/// A turn is an outlier when it differs from the median by more than this share.
///
/// # Source
/// Zickler 2015, §5.3.1: "The results have to be in a range of 20% from the average." The median
/// stands for the average here, as it is not moved by the outliers themselves.
pub const OUTLIER_SHARE: f64 = 0.2;

/// A lane that takes so many times as long as the best is out of question for a cell: one turn
/// tells enough of it.
const HOPELESS: f64 = 2.5;

/// A turn on a warm file in which a larger share of the time was spent away from the processor is
/// repeated at once: nothing is waited for there, so others had it.
const AWAY_SHARE: f64 = 0.08;

/// How many times a turn is repeated for that.
const REPEATS: u32 = 4;

/// Turns that take longer are not: they cannot but be interrupted.
const REPEATED_SECONDS_MAX: f64 = 0.03;

/// How a grid is gone through.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// How much is done at a time.
    pub work: Work,
    /// Turns of each lane in each cell.
    pub rounds: u32,
    /// Turns thrown away before them.
    pub warm_up: bool,
    /// No further round is begun when a cell has taken so long, but each lane has a turn.
    pub cell_seconds: f64,
    /// The time for all cells: each is given its share of what is left. Infinite for no limit.
    pub total_seconds: f64,
    /// How many times the outliers of a cell are measured again.
    pub again: u32,
}

/// What happens, for whoever tells people.
#[derive(Debug)]
pub enum Event<'a> {
    /// A cell is done, or was already; `done` of `all` are.
    Cell {
        /// Which one.
        cell: &'a Cell,
        /// Cells done.
        done: usize,
        /// Cells in the grid.
        all: usize,
        /// Its name and nanoseconds a byte, of the fastest lane.
        best: Option<(&'a str, f64)>,
        /// Whether it was done by an earlier run.
        was_there: bool,
    },
    /// A lane cannot do a cell.
    Skipped {
        /// Which one.
        cell: &'a Cell,
        /// The lane.
        lane: &'a str,
        /// Why.
        why: &'a str,
    },
}

/// Has all lanes do all cells that are not done yet. A lane that fails in a cell is noted there
/// and tried again in the next.
///
/// # Errors
/// [`Error::Interrupted`] when `stop` becomes true: all cells before are kept. [`Error::Results`]
/// when they cannot be.
pub fn run(
    cells: &[Cell],
    lanes: &mut [Box<dyn Lane>],
    rules: &Rules,
    results: &mut Results,
    id: RunId,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<()> {
    let done_before = results.done(id)?;
    let began = Instant::now();
    for (number, cell) in cells.iter().enumerate() {
        let (done, all) = (number + 1, cells.len());
        if done_before.contains(cell) {
            tell(Event::Cell { cell, done, all, best: None, was_there: true });
            continue;
        }
        let left_s = rules.total_seconds - began.elapsed().as_secs_f64();
        let share_s = (left_s / (all - number) as f64).max(0.0);
        let rules = Rules { cell_seconds: rules.cell_seconds.min(share_s), ..rules.clone() };
        let row = measure_cell(cell, lanes, &rules, number, stop)?;
        for (lane, why) in &row.skipped {
            tell(Event::Skipped { cell, lane, why });
        }
        results.keep(id, &row)?;
        let best = row.medians().min_by(|a, b| a.1.total_cmp(&b.1));
        let best = best.map(|(name, byte_s)| (name, byte_s * 1e9));
        tell(Event::Cell { cell, done, all, best, was_there: false });
    }
    results.finish(id)
}

fn measure_cell(
    cell: &Cell,
    lanes: &mut [Box<dyn Lane>],
    rules: &Rules,
    number: usize,
    stop: &AtomicBool,
) -> Result<CellRow> {
    let mut row = CellRow::new(*cell);
    let limit = Duration::from_secs_f64(rules.cell_seconds.clamp(0.0, 1e6));
    let began = Instant::now();
    let mut going: Vec<usize> = Vec::new();
    for (index, lane) in lanes.iter_mut().enumerate() {
        match lane.begin(cell, &rules.work) {
            Ok(()) => {
                row.expect(lane.name(), lane.expected_byte_s());
                going.push(index);
            }
            Err(error) => row.skip(lane.name(), &error),
        }
    }
    let once = |index: usize, round: u32, row: &mut CellRow, lanes: &mut [Box<dyn Lane>]| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        // Other calls of the file each round, the same for all lanes.
        let first = (number as u64 + u64::from(round)) * 7;
        let lane = &mut lanes[index];
        match undisturbed(lane.as_mut(), cell, first) {
            Ok(turn) => {
                row.add(lane.name(), round, turn);
                Ok(true)
            }
            Err(error) => {
                row.skip(lane.name(), &error);
                Ok(false)
            }
        }
    };
    if rules.warm_up {
        let mut kept = Vec::new();
        for index in going {
            if once(index, 0, &mut row, lanes)? {
                kept.push(index);
            }
        }
        going = kept;
    }
    // Programs beside the library may be faster than any way could be: they set no bar.
    let is_way = |name: &str| name.parse::<Way>().is_ok();
    let warm = row.forget_round(0);
    let ways = warm.iter().filter(|(name, _)| is_way(name));
    let best = ways.map(|(_, turn)| turn.byte_s()).fold(f64::INFINITY, f64::min);
    let is_hopeless = |name: &str| {
        let of_it = warm.iter().find(|(lane, _)| lane == name);
        name != Way::Adaptive.name()
            && of_it.is_some_and(|(_, turn)| turn.byte_s() > best * HOPELESS)
    };
    // What is out of question is not measured again: that turn tells enough.
    for (name, turn) in warm.iter().filter(|(name, _)| is_hopeless(name)) {
        row.add(name, 0, *turn);
    }
    going.retain(|index| !is_hopeless(lanes[*index].name()));
    for round in 1..=rules.rounds {
        // One round there must be, and three make a median.
        let (late, late_by_far) = (began.elapsed() > limit, began.elapsed() > limit * 3 / 2);
        if round > 3 && late || round > 1 && late_by_far {
            break;
        }
        // Another order each round, so that no lane always follows the same one.
        let by = usize::from(going.len() > 1);
        going.rotate_left(by);
        let mut kept = Vec::new();
        for &index in &going {
            if once(index, round, &mut row, lanes)? {
                kept.push(index);
            }
        }
        going = kept;
    }
    let mut round = rules.rounds;
    for _ in 0..rules.again {
        let outliers = row.outliers(OUTLIER_SHARE);
        if outliers.is_empty() || began.elapsed() > 2 * limit {
            break;
        }
        for name in outliers {
            let Some(index) = lanes.iter().position(|lane| lane.name() == name) else { continue };
            round += 1;
            once(index, round, &mut row, lanes)?;
        }
    }
    Ok(row)
}

/// One turn, again when it was disturbed; of several the least disturbed.
fn undisturbed(lane: &mut dyn Lane, cell: &Cell, first_call: u64) -> Result<Turn> {
    let away = |turn: &Turn| turn.away_s / turn.seconds.max(f64::MIN_POSITIVE);
    let mut best = lane.turn(first_call)?;
    for _ in 0..REPEATS {
        let is_long = best.seconds > REPEATED_SECONDS_MAX;
        if cell.warmth == Warmth::Cold || is_long || away(&best) <= AWAY_SHARE {
            break;
        }
        let turn = lane.turn(first_call)?;
        if away(&turn) < away(&best) {
            best = turn;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::cell;

    /// Takes a second for each MiB, except in some rounds.
    struct Fake {
        name: &'static str,
        byte_s: f64,
        turns: u32,
        slow_turn: u32,
        fails: bool,
        away_s: f64,
    }

    impl Lane for Fake {
        fn name(&self) -> &str {
            self.name
        }

        fn begin(&mut self, _: &Cell, _: &Work) -> Result<()> {
            self.turns = 0;
            Ok(())
        }

        fn turn(&mut self, _: u64) -> Result<Turn> {
            if self.fails {
                return Err(Error::Lane { lane: self.name.into(), what: "no".into() });
            }
            self.turns += 1;
            let slow = if self.turns == self.slow_turn { 2.0 } else { 1.0 };
            Ok(Turn { away_s: self.away_s, ..Turn::new(100, 100.0 * self.byte_s * slow) })
        }
    }

    fn fake(name: &'static str, byte_s: f64) -> Fake {
        Fake { name, byte_s, turns: 0, slow_turn: 0, fails: false, away_s: 0.0 }
    }

    fn rules() -> Rules {
        let work = Work::new(1000, 10, 0.0);
        Rules { work, rounds: 4, warm_up: true, cell_seconds: 10.0, total_seconds: 60.0, again: 2 }
    }

    fn measured(lanes: Vec<Fake>) -> CellRow {
        let mut lanes: Vec<Box<dyn Lane>> =
            lanes.into_iter().map(|lane| Box::new(lane) as Box<dyn Lane>).collect();
        measure_cell(&cell(8, 8), &mut lanes, &rules(), 0, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn the_warm_up_does_not_count_and_hopeless_lanes_have_one_turn() {
        let lanes =
            [("naive", 1.0), ("romio", 2.5), ("extent", 3.5), ("adaptive", 9.0), ("mpi", 0.1)];
        let row = measured(lanes.map(|(name, byte_s)| fake(name, byte_s)).into());
        let turns = lanes.map(|(name, _)| row.turns(name).count());
        assert_eq!(turns, [4, 4, 1, 4, 4]);
    }

    #[test]
    fn a_turn_that_was_disturbed_is_repeated() {
        let mut lane = Fake { away_s: 50.0, ..fake("naive", 1.0) };
        undisturbed(&mut lane, &Cell { warmth: Warmth::Cold, ..cell(8, 8) }, 0).unwrap();
        assert_eq!(lane.turns, 1);
        // A hundred seconds are too long to be repeated for that.
        undisturbed(&mut lane, &cell(8, 8), 0).unwrap();
        assert_eq!(lane.turns, 2);
        let mut lane = Fake { away_s: 1e-4, ..fake("naive", 1e-5) };
        undisturbed(&mut lane, &cell(8, 8), 0).unwrap();
        assert_eq!(lane.turns, 1 + REPEATS);
        lane.away_s = 1e-6;
        undisturbed(&mut lane, &cell(8, 8), 0).unwrap();
        assert_eq!(lane.turns, 2 + REPEATS);
    }

    #[test]
    fn outliers_are_measured_again_and_no_longer_count() {
        let row = measured(vec![Fake { slow_turn: 3, ..fake("a", 1.0) }]);
        assert_eq!(row.turns("a").count(), 5);
        assert_eq!(row.kept("a").count(), 4);
        assert!(row.kept("a").all(|turn| (turn.byte_s() - 1.0).abs() < 1e-9));
    }

    #[test]
    fn a_lane_that_fails_is_noted_and_the_others_go_on() {
        let row = measured(vec![fake("a", 1.0), Fake { fails: true, ..fake("b", 1.0) }]);
        assert_eq!(row.turns("a").count(), 4);
        assert_eq!(row.skipped.len(), 1);
        assert_eq!(row.skipped[0].0, "b");
    }

    #[test]
    fn it_stops_when_it_shall_and_goes_on_where_it_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = Results::open(&dir.path().join("r.sqlite")).unwrap();
        let id = results.begin("{}", "here").unwrap();
        let cells = [cell(8, 8), cell(8, 16), cell(8, 24)];
        let stop = AtomicBool::new(false);
        let mut lanes: Vec<Box<dyn Lane>> = vec![Box::new(fake("a", 1.0))];
        let mut stop_after_one = |event: Event<'_>| {
            if matches!(event, Event::Cell { done: 1, .. }) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let stopped =
            run(&cells, &mut lanes, &rules(), &mut results, id, &stop, &mut stop_after_one);
        assert!(matches!(stopped, Err(Error::Interrupted)));
        assert_eq!(results.unfinished("{}", "here").unwrap(), Some(id));
        let mut were_there = 0;
        let go = AtomicBool::new(false);
        run(&cells, &mut lanes, &rules(), &mut results, id, &go, &mut |event| {
            if let Event::Cell { was_there: true, .. } = event {
                were_there += 1;
            }
        })
        .unwrap();
        assert_eq!(were_there, 1);
        assert_eq!(results.rows(id).unwrap().len(), 3);
        assert_eq!(results.unfinished("{}", "here").unwrap(), None);
    }
}
