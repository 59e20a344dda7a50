//! Which matcher is responsible for which part of a variable.

use hyperslab::{Slab, Steps};

use crate::coupling::block;
use crate::{Distribution, Length, Variable, VariableSpec};

/// How the variables of a file are shared among its matchers. Every node comes to the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    matchers: u64,
    variables: Vec<Tiling>,
}

/// How one variable is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tiling {
    /// For each dimension that is cut: which, into how many parts that are dealt out, and of how many indices.
    cuts: Vec<Cut>,
    /// Who has the first tile.
    first: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    dimension: usize,
    /// Indices of a part.
    size: u64,
    /// After so many parts it begins anew.
    parts: u64,
}

impl Share {
    /// The share of `matchers` matchers, of which there is at least one.
    #[must_use]
    pub fn new(distribution: Distribution, variables: &[VariableSpec], matchers: usize) -> Self {
        let matchers = matchers.max(1) as u64;
        let mut first = 0;
        let tiling = |(number, variable): (usize, &VariableSpec)| match distribution {
            Distribution::Variable => Tiling { cuts: Vec::new(), first: number as u64 % matchers },
            Distribution::Range { block } => range(number as u64, variable, block, matchers),
            Distribution::Balanced => {
                let cuts = balanced(variable, matchers);
                let tiles: u64 = cuts.iter().map(|cut| cut.parts).product();
                let tiling = Tiling { cuts, first };
                first = (first + tiles) % matchers;
                tiling
            }
        };
        Self { matchers, variables: variables.iter().enumerate().map(tiling).collect() }
    }

    /// Gives `part` each part of `slab` and the number of the matcher that is responsible for it.
    pub fn split(&self, variable: Variable, slab: &Slab, mut part: impl FnMut(usize, Slab)) {
        let Some(tiling) = self.variables.get(variable.0 as usize) else { return };
        if slab.is_empty() {
            return;
        }
        self.cut(tiling, 0, tiling.first, slab.dimensions().to_vec(), &mut part);
    }

    fn cut(
        &self,
        tiling: &Tiling,
        depth: usize,
        tile: u64,
        dimensions: Vec<Steps>,
        part: &mut impl FnMut(usize, Slab),
    ) {
        let Some(cut) = tiling.cuts.get(depth) else {
            part((tile % self.matchers) as usize, Slab::from_steps(dimensions));
            return;
        };
        let steps = dimensions[cut.dimension];
        let inner: u64 = tiling.cuts[depth + 1..].iter().map(|cut| cut.parts).product();
        let mut position = 0;
        while position < steps.count() {
            let number = steps.at(position) / cut.size;
            let piece = steps.intersection(&block(number, cut.size));
            position += piece.count();
            let mut dimensions = dimensions.clone();
            dimensions[cut.dimension] = piece;
            let tile = tile + number % cut.parts * inner;
            self.cut(tiling, depth + 1, tile, dimensions, part);
        }
    }
}

/// As DTF does it.
fn range(number: u64, variable: &VariableSpec, block: Option<u64>, matchers: u64) -> Tiling {
    let first = number % matchers;
    if variable.shape.len() < 2 {
        return Tiling { cuts: Vec::new(), first };
    }
    let size = match (variable.shape[0], block) {
        (Length::Records, _) => 1,
        (Length::Fixed(_), Some(block)) => block,
        (Length::Fixed(length), None) => length.div_ceil(matchers),
    };
    let cut = Cut { dimension: 0, size: size.max(1), parts: matchers };
    Tiling { cuts: vec![cut], first: 0 }
}

/// Halves (or thirds, …) the dimension of the longest parts until there is a part for every matcher.
fn balanced(variable: &VariableSpec, matchers: u64) -> Vec<Cut> {
    let lengths: Vec<u64> = variable
        .shape
        .iter()
        .map(|length| match length {
            Length::Fixed(length) => *length,
            Length::Records => 1,
        })
        .collect();
    let mut parts = vec![1u64; lengths.len()];
    for factor in prime_factors(matchers) {
        let length = |d: usize| lengths[d] / parts[d];
        // The first of equals is the slowest, whose parts need the fewest runs.
        let longest = (0..lengths.len()).rev().max_by_key(|&d| length(d));
        match longest.filter(|&d| length(d) >= factor) {
            Some(d) => parts[d] *= factor,
            None => break,
        }
    }
    let mut cuts = Vec::new();
    // Arrays too small for all get what they can; if they have records, these are dealt out as well.
    if variable.has_records() && parts.iter().product::<u64>() < matchers {
        let rest = matchers / parts.iter().product::<u64>();
        cuts.push(Cut { dimension: 0, size: 1, parts: rest.max(1) });
    }
    for (dimension, (&length, &parts)) in lengths.iter().zip(&parts).enumerate() {
        if parts > 1 {
            cuts.push(Cut { dimension, size: length.div_ceil(parts), parts });
        }
    }
    cuts
}

/// Greatest first.
fn prime_factors(mut number: u64) -> Vec<u64> {
    let mut factors = Vec::new();
    let mut factor = 2;
    while factor * factor <= number {
        while number.is_multiple_of(factor) {
            factors.push(factor);
            number /= factor;
        }
        factor += 1;
    }
    factors.extend((number > 1).then_some(number));
    factors.reverse();
    factors
}

#[cfg(test)]
mod tests {
    use nctypes::Type;
    use proptest::prelude::*;

    use super::*;

    fn variable(shape: &[Length]) -> VariableSpec {
        let (name, shape) = ("v".to_owned(), shape.to_vec());
        VariableSpec { name, type_: Type::Int, shape, fill: None }
    }

    fn parts(share: &Share, number: u32, slab: &Slab) -> Vec<(usize, String)> {
        let mut parts = Vec::new();
        share
            .split(Variable(number), slab, |matcher, part| parts.push((matcher, part.to_string())));
        parts
    }

    #[test]
    fn ranges_are_dealt_out_as_dtf_does() {
        let fixed = variable(&[Length::Fixed(10), Length::Fixed(4)]);
        let line = variable(&[Length::Fixed(10)]);
        let records = variable(&[Length::Records, Length::Fixed(4)]);
        let all = [fixed, line, records];
        let even = Share::new(Distribution::Range { block: None }, &all, 4);
        let slab = Slab::new(&[1, 0], &[6, 4]).unwrap();
        let told = |list: &[(usize, &str)]| -> Vec<(usize, String)> {
            list.iter().map(|(at, text)| (*at, (*text).to_owned())).collect()
        };
        let wanted = told(&[(0, "[1:3, 0:4]"), (1, "[3:6, 0:4]"), (2, "[6:7, 0:4]")]);
        assert_eq!(parts(&even, 0, &slab), wanted);
        assert_eq!(parts(&even, 1, &Slab::all(&[10])), told(&[(1, "[0:10]")]));
        let wanted = told(&[(3, "[3:4, 0:4]"), (0, "[4:5, 0:4]")]);
        assert_eq!(parts(&even, 2, &Slab::new(&[3, 0], &[2, 4]).unwrap()), wanted);
        let blocks = Share::new(Distribution::Range { block: Some(2) }, &all, 2);
        let matchers: Vec<_> = parts(&blocks, 0, &slab).into_iter().map(|(at, _)| at).collect();
        assert_eq!(matchers, [0, 1, 0, 1]);
        let by_variable = Share::new(Distribution::Variable, &all, 2);
        assert_eq!(parts(&by_variable, 1, &Slab::all(&[10])), told(&[(1, "[0:10]")]));
    }

    #[test]
    fn balanced_tiles_are_one_for_each_matcher() {
        let lengths = [11, 2048, 1024, 1024];
        let all = [variable(&lengths.map(Length::Fixed))];
        let share = Share::new(Distribution::Balanced, &all, 64);
        let mut seen = parts(&share, 0, &Slab::all(&lengths));
        seen.sort();
        assert_eq!(seen.len(), 64);
        assert!(seen.iter().enumerate().all(|(at, (matcher, _))| at == *matcher));
        assert_eq!(seen[0].1, "[0:11, 0:256, 0:256, 0:512]");
    }

    #[test]
    fn small_variables_go_round() {
        let all = vec![variable(&[]); 6];
        let share = Share::new(Distribution::Balanced, &all, 4);
        let scalar = Slab::all(&[]);
        let matchers: Vec<_> = (0..6).map(|number| parts(&share, number, &scalar)[0].0).collect();
        assert_eq!(matchers, [0, 1, 2, 3, 0, 1]);
        let records = variable(&[Length::Records]);
        let share = Share::new(Distribution::Balanced, &[records], 3);
        let slab = Slab::new(&[4], &[3]).unwrap();
        let matchers: Vec<_> = parts(&share, 0, &slab).into_iter().map(|(at, _)| at).collect();
        assert_eq!(matchers, [1, 2, 0]);
    }

    fn distribution() -> impl Strategy<Value = Distribution> {
        prop_oneof![
            Just(Distribution::Balanced),
            Just(Distribution::Variable),
            prop::option::of(1u64..5).prop_map(|block| Distribution::Range { block }),
        ]
    }

    proptest! {
        /// Whoever wrote or wants an element asks the same matcher for it, and asks exactly once.
        #[test]
        fn every_element_has_one_matcher(
            distribution in distribution(),
            matchers in 1usize..9,
            lengths in prop::collection::vec(1u64..7, 0..4),
            records in any::<bool>(),
            cut in prop::collection::vec((0u64..7, 1u64..4), 4),
        ) {
            let mut shape: Vec<Length> = lengths.iter().map(|&length| Length::Fixed(length)).collect();
            if records && !shape.is_empty() {
                shape[0] = Length::Records;
            }
            let share = Share::new(distribution, &[variable(&shape)], matchers);
            let dimension = |(d, &length): (usize, &u64)| {
                let (start, step) = (cut[d].0.min(length - 1), cut[d].1);
                Steps::new(d, start, (length - start).div_ceil(step), step).unwrap()
            };
            let slab = Slab::from_steps(lengths.iter().enumerate().map(dimension));
            let mut sum = 0;
            share.split(Variable(0), &slab, |matcher, part| {
                assert!(matcher < matchers && slab.contains(&part));
                sum += part.elements();
                // Element by element the same comes out.
                let mut of_one = Vec::new();
                let one = Slab::from_steps(part.dimensions().iter().map(|s| Steps::of(hyperslab::Span::new(s.start(), s.start() + 1))));
                share.split(Variable(0), &one, |matcher, _| of_one.push(matcher));
                assert_eq!(of_one, [matcher]);
            });
            prop_assert_eq!(sum, slab.elements());
        }
    }
}
