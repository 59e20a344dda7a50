//! The pattern of the S3D-IO benchmark.
//!
//! A checkpoint of four variables of doubles: mass fractions of 11 species and velocity in 3 components, pressure and
//! temperature. All share three dimensions in space, which are divided among the ranks in blocks.
//!
//! # Source
//! Martsinkevich et al. 2018, §4; wkliao/S3D-IO.

use hyperslab::Slab;
use matching::{Distribution, Length, VariableSpec};
use nctypes::Type;

use crate::Scenario;

/// Points, or ranks, along z, y and x; z is the slowest.
pub type Cube = [u64; 3];

/// Bytes of all variables at one point.
pub const POINT_BYTES: u64 = (11 + 3 + 1 + 1) * 8;

/// The four variables on a grid.
#[must_use]
pub fn variables(grid: Cube) -> Vec<VariableSpec> {
    let variable = |name: &str, first: Option<u64>| VariableSpec {
        name: name.to_owned(),
        type_: Type::Double,
        shape: first.into_iter().chain(grid).map(Length::Fixed).collect(),
        fill: None,
    };
    vec![
        variable("yspecies", Some(11)),
        variable("u", Some(3)),
        variable("pressure", None),
        variable("temp", None),
    ]
}

/// What each rank has of the four variables, if `ranks` divide the grid among them as evenly as it goes.
#[must_use]
pub fn blocks(grid: Cube, ranks: Cube) -> Vec<Vec<(u32, Slab)>> {
    let block = |rank: u64| -> Vec<(u32, Slab)> {
        let [_, py, px] = ranks;
        let at = [rank / (py * px), rank / px % py, rank % px];
        let (mut start, mut count) = ([0; 3], [0; 3]);
        for d in 0..3 {
            // Below 2^63 each, as sizes of arrays are.
            let edge = |number: u64| {
                (u128::from(grid[d]) * u128::from(number) / u128::from(ranks[d])) as u64
            };
            start[d] = edge(at[d]);
            count[d] = edge(at[d] + 1) - start[d];
        }
        let slab = |first: Option<u64>| {
            let starts: Vec<u64> = first.map(|_| 0).into_iter().chain(start).collect();
            let counts: Vec<u64> = first.into_iter().chain(count).collect();
            Slab::new(&starts, &counts)
        };
        let all = [Some(11), Some(3), None, None];
        // Within the grid, which is in range.
        (0..).zip(all).filter_map(|(number, first)| Some((number, slab(first).ok()?))).collect()
    };
    (0..ranks.iter().product()).map(block).collect()
}

/// Writers and readers that divide the same grid.
#[must_use]
pub fn scenario(grid: Cube, writers: Cube, readers: Cube) -> Scenario {
    Scenario {
        variables: variables(grid),
        writes: blocks(grid, writers),
        reads: blocks(grid, readers),
        matchers: None,
        distribution: Distribution::Range { block: None },
        cycles: 1,
        replay: false,
    }
}

/// So many ranks, a power of two, as a cube as nearly as it goes; x is divided first.
#[must_use]
pub fn cube(ranks: u64) -> Cube {
    let mut cube = [1; 3];
    let (mut left, mut d) = (ranks, 2);
    while left > 1 {
        cube[d] *= 2;
        left /= 2;
        d = (d + 2) % 3;
    }
    cube
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_form_cubes() {
        assert_eq!(cube(1), [1, 1, 1]);
        assert_eq!(cube(32), [2, 4, 4]);
        assert_eq!(cube(1024), [8, 8, 16]);
    }

    #[test]
    fn blocks_cover_the_grid_once() {
        let grid = [7, 5, 3];
        let ranks = [2, 3, 1];
        for (number, variable) in variables(grid).iter().enumerate() {
            let mut left = vec![Slab::all(&match number {
                0 => vec![11, 7, 5, 3],
                1 => vec![3, 7, 5, 3],
                _ => vec![7, 5, 3],
            })];
            for rank in blocks(grid, ranks) {
                assert!(variable.holds(&rank[number].1));
                left = rank[number].1.cut_from(left);
            }
            assert!(left.is_empty());
        }
    }
}
