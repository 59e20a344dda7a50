//! The tables and figures of the paper, and how matching grows.
//!
//! # Source
//! Martsinkevich et al. 2018, §4.

use std::ops::RangeInclusive;

use hyperslab::Slab;
use matching::{Distribution, Length, VariableSpec};
use nctypes::Type;

use crate::s3d::{self, Cube};
use crate::{Machine, Outcome, Scenario, ScenarioError};

/// The grid of 256 GiB: 2^31 points of 128 bytes.
///
/// The paper does not tell it. It follows from its Table 1: with stripes of 32, 16, 8, 4, 2 and 1 on 64 matchers, 2048 planes
/// divided by 8, and only so, each matcher has 576, 1088, 2144, 4224, 8448 and 16832 requests on average.
pub const GRID: Cube = [2048, 1024, 1024];

/// What is varied, and what came of it.
#[derive(Debug, Clone)]
pub struct Row {
    /// Ranks of each component.
    pub ranks: u64,
    /// Matchers.
    pub matchers: u64,
    /// Indices of a block of the slowest dimension; none where it is divided evenly or balanced.
    pub stripe: Option<u64>,
    /// Bytes of the file.
    pub bytes: u64,
    /// How requests are distributed.
    pub distribution: Distribution,
    /// What came of it.
    pub outcome: Outcome,
}

fn row(
    grid: Cube,
    ranks: u64,
    matchers: u64,
    distribution: Distribution,
    machine: &Machine,
) -> Result<Row, ScenarioError> {
    let cube = s3d::cube(ranks);
    let mut scenario = s3d::scenario(grid, cube, cube);
    scenario.matchers = u32::try_from(matchers).ok();
    scenario.distribution = distribution;
    let outcome = scenario.run(machine)?;
    let stripe = match distribution {
        Distribution::Range { block } => block,
        Distribution::Variable | Distribution::Balanced => None,
    };
    let bytes = grid.iter().product::<u64>() * s3d::POINT_BYTES;
    Ok(Row { ranks, matchers, stripe, bytes, distribution, outcome })
}

/// The matchers that the paper found best for so many ranks (its §4.1).
#[must_use]
pub fn matchers(ranks: u64) -> u64 {
    match ranks {
        0..=256 => ranks,
        257..=512 => 128,
        _ => 64,
    }
}

/// Table 1: 256 GiB, 1024 ranks each, 64 matchers, narrower and narrower stripes; and the balanced distribution, which the paper
/// leaves to future work.
///
/// # Errors
/// None but those of a scenario that cannot be.
pub fn table1(machine: &Machine) -> Result<Vec<Row>, ScenarioError> {
    let stripes = [32, 16, 8, 4, 2, 1].map(|block| Distribution::Range { block: Some(block) });
    let all = stripes.into_iter().chain([Distribution::Balanced]);
    all.map(|distribution| row(GRID, 1024, 64, distribution, machine)).collect()
}

/// Figure 5: 1 GiB a rank, more and more matchers; for so many ranks of each component.
///
/// # Errors
/// As [`table1`].
pub fn figure5(ranks: &[u64], machine: &Machine) -> Result<Vec<Row>, ScenarioError> {
    let mut rows = Vec::new();
    for &ranks in ranks {
        let mut matchers = 1;
        while matchers <= ranks {
            let grid = grid(ranks, [256, 256, 128]);
            let distribution = Distribution::Range { block: None };
            rows.push(row(grid, ranks, matchers, distribution, machine)?);
            matchers *= 2;
        }
    }
    Ok(rows)
}

/// Figure 6: 256 GiB for 32 to 1024 ranks of each component.
///
/// # Errors
/// As [`table1`].
pub fn figure6(machine: &Machine) -> Result<Vec<Row>, ScenarioError> {
    let distribution = Distribution::Range { block: None };
    let ranks = [32, 64, 128, 256, 512, 1024];
    ranks.iter().map(|&ranks| row(GRID, ranks, matchers(ranks), distribution, machine)).collect()
}

/// Figure 7: 256 MiB a rank, for 1 to 1024 ranks of each component.
///
/// # Errors
/// As [`table1`].
pub fn figure7(machine: &Machine) -> Result<Vec<Row>, ScenarioError> {
    let distribution = Distribution::Range { block: None };
    (0..=10)
        .map(|power| {
            let ranks = 1 << power;
            row(grid(ranks, [128, 128, 128]), ranks, matchers(ranks), distribution, machine)
        })
        .collect()
}

/// Figure 8: 8 GiB to 2 TiB between 1024 ranks each, the requests of each matcher always the same.
///
/// # Errors
/// As [`table1`].
pub fn figure8(machine: &Machine) -> Result<Vec<Row>, ScenarioError> {
    sizes(0..=8, machine)
}

fn sizes(powers: RangeInclusive<u32>, machine: &Machine) -> Result<Vec<Row>, ScenarioError> {
    powers
        .map(|power| {
            // 2^26 points and more; the slowest dimension stays, and with it the requests.
            let (y, x) = (1u64 << ((15 + power) / 2), 1u64 << (15 + power).div_ceil(2));
            let distribution = Distribution::Range { block: Some(32) };
            row([2048, y, x], 1024, 64, distribution, machine)
        })
        .collect()
}

fn grid(ranks: u64, block: Cube) -> Cube {
    let cube = s3d::cube(ranks);
    [cube[0] * block[0], cube[1] * block[1], cube[2] * block[2]]
}

/// How long one matcher takes for so many requests, on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    /// Writes and wishes.
    pub requests: u64,
    /// Pairs that were found.
    pub pairs: u64,
    /// Boxes that were compared.
    pub compared: u64,
    /// The time.
    pub matched_s: f64,
}

impl Growth {
    /// Nanoseconds for each request and doubling of their number; the same in every row if matching grows as n log n.
    #[must_use]
    pub fn ns_per_n_log_n(&self) -> f64 {
        let n = self.requests as f64;
        self.matched_s * 1e9 / (n * n.log2().max(1.0))
    }
}

/// One matcher with `requests` requests: a plane that writers have divided into squares, and as many readers into squares of
/// other places, so that most wishes meet four writes.
///
/// # Errors
/// As [`table1`].
pub fn growth(requests: u64, machine: &Machine) -> Result<Growth, ScenarioError> {
    let side = (requests / 2).max(1).isqrt();
    let length = side * 16 + 8;
    let squares = |shift: u64| -> Vec<Vec<(u32, Slab)>> {
        let square = |number: u64| {
            let start = [number / side * 16 + shift, number % side * 16 + shift];
            Some((0, Slab::new(&start, &[16, 16]).ok()?))
        };
        // On a few ranks: how many there are is another question.
        let mut ranks = vec![Vec::new(); 16];
        for number in 0..side * side {
            ranks[(number % 16) as usize].extend(square(number));
        }
        ranks
    };
    let scenario = Scenario {
        variables: vec![VariableSpec {
            name: "plane".to_owned(),
            type_: Type::Float,
            shape: vec![Length::Fixed(length); 2],
            fill: Some(Type::Float.fill()),
        }],
        writes: squares(0),
        reads: squares(8),
        matchers: Some(1),
        distribution: Distribution::Variable,
        cycles: 1,
        replay: false,
    };
    let outcome = scenario.run(machine)?;
    let load = outcome.loads[0];
    Ok(Growth {
        requests: load.requests(),
        pairs: load.pairs,
        compared: load.compared,
        matched_s: outcome.matched_max_s(),
    })
}

#[cfg(test)]
mod tests {
    use matching::{Share, Variable};

    use super::*;

    /// Requests of each matcher, without playing: those of 1024 writers, and as many of the readers.
    fn requests(distribution: Distribution) -> Vec<u64> {
        let share = Share::new(distribution, &s3d::variables(GRID), 64);
        let mut requests = vec![0; 64];
        for (variable, slab) in s3d::blocks(GRID, s3d::cube(1024)).into_iter().flatten() {
            share.split(Variable(variable), &slab, |matcher, _| requests[matcher] += 2);
        }
        requests
    }

    #[test]
    fn requests_are_those_of_table_1() {
        let stripes = [32, 16, 8, 4, 2, 1].map(|block| Distribution::Range { block: Some(block) });
        let sums = stripes.map(|stripe| requests(stripe).iter().sum::<u64>());
        assert_eq!(sums, [576, 1088, 2144, 4224, 8448, 16832].map(|mean| mean * 64));
        // "a small group of matchers has to match approximately 4,000 more"
        assert_eq!(requests(stripes[0]).into_iter().max(), Some(512 + 4096));
    }

    #[test]
    fn matchers_get_what_is_their_share_and_everything_arrives_once() {
        let stripes = Distribution::Range { block: Some(32) };
        for distribution in [stripes, Distribution::Balanced] {
            let outcome = row(GRID, 1024, 64, distribution, &Machine::K).unwrap().outcome;
            let loads: Vec<u64> = outcome.loads.iter().map(matching::Load::requests).collect();
            assert_eq!(loads, requests(distribution));
            assert_eq!(outcome.data.bytes, 256 << 30);
            // What the paper leaves to future work: everybody has the same to do, and less of it.
            if distribution == Distribution::Balanced {
                assert_eq!((outcome.imbalance(), outcome.requests_mean()), (1.0, 128.0));
            }
        }
    }

    #[test]
    fn matching_compares_n_log_n_boxes() {
        let small = growth(1 << 10, &Machine::K).unwrap();
        let large = growth(1 << 14, &Machine::K).unwrap();
        assert!(small.requests >= 900 && large.requests >= 16_000);
        let each = |growth: &Growth| growth.compared as f64 / growth.requests as f64;
        // 14 doublings instead of 10; twice that for the edges of small squares of trees.
        assert!(each(&large) < each(&small) * 1.4 * 1.5, "{small:?} {large:?}");
    }

    #[test]
    fn many_matchers_are_better_until_requests_are_cut_too_often() {
        let rows = figure5(&[64], &Machine::K).unwrap();
        let times: Vec<f64> = rows.iter().map(|row| row.outcome.written_s).collect();
        let best = times.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(best < times[0], "{times:?}");
        let parts: Vec<u64> = rows.iter().map(|row| row.outcome.data.messages).collect();
        assert!(parts.is_sorted() && parts[0] < parts[6], "{parts:?}");
    }

    #[test]
    fn time_grows_with_the_size_of_a_file_and_not_with_its_requests() {
        let mut rows = sizes(0..=0, &Machine::K).unwrap();
        rows.extend(sizes(8..=8, &Machine::K).unwrap());
        assert_eq!((rows[0].bytes, rows[1].bytes), (8 << 30, 2 << 40));
        let mean: Vec<f64> = rows.iter().map(|row| row.outcome.requests_mean()).collect();
        assert_eq!(mean, [576.0; 2]);
        let times: Vec<f64> = rows.iter().map(|row| row.outcome.written_s).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
}
