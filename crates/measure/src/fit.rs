//! Fitting costs to measured times: least squares in which no cost is negative.

/// A measured time and what it is made of: so much of each cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation<const N: usize> {
    /// How often each cost occurs in it.
    pub amounts: [f64; N],
    /// The time.
    pub time: f64,
}

/// Costs that explain observations.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit<const N: usize> {
    /// One for each kind; never negative.
    pub costs: [f64; N],
    /// By which share the observed times differ from the explained ones: root of the mean square.
    pub error: f64,
}

/// The costs for which the sum of the squared *relative* errors is smallest, so that a call of a
/// microsecond weighs as much as one of a millisecond. None without observations, or when no
/// costs can be told apart.
///
/// Costs that would be negative are 0: the best of all ways to set some of them to 0 is taken,
/// which for as few as there are here is soon found.
#[must_use]
pub fn fit<const N: usize>(observations: &[Observation<N>]) -> Option<Fit<N>> {
    let usable = |o: &&Observation<N>| o.time.is_finite() && o.time > 0.0;
    let rows: Vec<[f64; N]> = observations
        .iter()
        .filter(usable)
        .map(|o| o.amounts.map(|amount| amount / o.time))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut best: Option<Fit<N>> = None;
    for free in 1..1_u32 << N {
        let Some(costs) = solve(&rows, free) else { continue };
        if costs.iter().any(|cost| *cost < 0.0) {
            continue;
        }
        let square = |row: &[f64; N]| {
            let explained: f64 = row.iter().zip(&costs).map(|(amount, cost)| amount * cost).sum();
            (explained - 1.0).powi(2)
        };
        let error = (rows.iter().map(square).sum::<f64>() / rows.len() as f64).sqrt();
        // Fewer costs are taken only where they explain more.
        if best.as_ref().is_none_or(|known| error < known.error - 1e-12) {
            best = Some(Fit { costs, error });
        }
    }
    best
}

/// Least squares for the costs in the set `free` (a bit each), the others being 0. Every row is to
/// sum up to 1.
fn solve<const N: usize>(rows: &[[f64; N]], free: u32) -> Option<[f64; N]> {
    let is_free = |index: usize| free & (1 << index) != 0;
    // The normal equations, with each column scaled to 1 so that bytes and calls compare.
    let mut scale = [0.0_f64; N];
    for row in rows {
        for (sum, amount) in scale.iter_mut().zip(row) {
            *sum += amount * amount;
        }
    }
    let scale = scale.map(|sum| if sum > 0.0 { sum.sqrt() } else { 0.0 });
    let mut left = [[0.0; N]; N];
    let mut right = [0.0; N];
    for i in 0..N {
        if !is_free(i) {
            left[i][i] = 1.0;
            continue;
        }
        if scale[i] == 0.0 {
            return None;
        }
        for row in rows {
            right[i] += row[i] / scale[i];
            for j in (0..N).filter(|j| is_free(*j) && scale[*j] > 0.0) {
                left[i][j] += row[i] / scale[i] * (row[j] / scale[j]);
            }
        }
    }
    let scaled = gauss(left, right)?;
    let mut costs = [0.0; N];
    for index in (0..N).filter(|index| is_free(*index)) {
        costs[index] = scaled[index] / scale[index];
    }
    Some(costs)
}

/// Solves a small system with pivoting; none if it is singular, or nearly.
fn gauss<const N: usize>(mut left: [[f64; N]; N], mut right: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot =
            (column..N).max_by(|a, b| left[*a][column].abs().total_cmp(&left[*b][column].abs()))?;
        if left[pivot][column].abs() < 1e-9 {
            return None;
        }
        left.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..N {
            let factor = left[row][column] / left[column][column];
            let upper = left[column];
            for (value, above) in left[row].iter_mut().zip(upper).skip(column) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut found = [0.0; N];
    for row in (0..N).rev() {
        let known: f64 = (row + 1..N).map(|column| left[row][column] * found[column]).sum();
        found[row] = (right[row] - known) / left[row][row];
    }
    Some(found)
}

/// Where a sequence of values makes its one step: how many belong to the first part, such that
/// two levels explain the values best. All of them when one level does as well.
#[must_use]
pub fn step(values: &[f64]) -> usize {
    let spread = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
        part.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let all = spread(values);
    let parts = (1..values.len()).map(|at| (at, spread(&values[..at]) + spread(&values[at..])));
    let best = parts.min_by(|a, b| a.1.total_cmp(&b.1));
    // A step must explain much of what one level leaves open, or it is noise.
    best.filter(|(_, left)| *left < 0.5 * all).map_or(values.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn observe(costs: [f64; 3], noise: impl Fn(usize) -> f64) -> Vec<Observation<3>> {
        let sizes = [
            (1, 1.0),
            (64, 1.0),
            (2, 2.0),
            (4096, 1.0),
            (4096, 2.0),
            (65_536, 16.0),
            (1 << 20, 256.0),
            (3_000, 1.0),
        ];
        let of = |(number, (bytes, pages)): (usize, &(u32, f64))| {
            let amounts = [1.0, *pages, f64::from(*bytes)];
            let time: f64 = amounts.iter().zip(costs).map(|(amount, cost)| amount * cost).sum();
            Observation { amounts, time: time * noise(number) }
        };
        sizes.iter().enumerate().map(of).collect()
    }

    proptest! {
        #[test]
        fn costs_are_recovered(
            call in 50.0_f64..5000.0, page in 20.0_f64..500.0, byte in 0.02_f64..2.0,
        ) {
            let found = fit(&observe([call, page, byte], |_| 1.0)).unwrap();
            for (found, wanted) in found.costs.iter().zip([call, page, byte]) {
                prop_assert!((found / wanted - 1.0).abs() < 1e-5, "{found} {wanted}");
            }
            prop_assert!(found.error < 1e-6);
        }

        #[test]
        fn noise_moves_the_costs_by_not_much_more_than_itself(seed in 0_u64..1000) {
            let noise = |number: usize| {
                let mut random = crate::pattern::Random::new(seed * 31 + number as u64);
                0.95 + random.below(1000) as f64 * 1e-4
            };
            let found = fit(&observe([400.0, 300.0, 0.2], noise)).unwrap();
            prop_assert!(found.error < 0.06);
            prop_assert!((found.costs[0] / 400.0 - 1.0).abs() < 0.4, "{found:?}");
            // Every time is explained, which is what matters.
            for seen in observe([400.0, 300.0, 0.2], |_| 1.0) {
                let time: f64 = seen.amounts.iter().zip(found.costs).map(|(a, c)| a * c).sum();
                prop_assert!((time / seen.time - 1.0).abs() < 0.15);
            }
        }
    }

    #[test]
    fn a_cost_that_would_be_negative_is_none() {
        // Time falls with the second amount.
        let seen: Vec<Observation<2>> = [(1.0, 5.0), (2.0, 4.0), (3.0, 3.0)]
            .map(|(amount, time)| Observation { amounts: [1.0, amount], time })
            .to_vec();
        let found = fit(&seen).unwrap();
        assert_eq!(found.costs[1], 0.0);
        assert!(found.costs[0] > 3.0 && found.costs[0] < 5.0 && found.error > 0.1);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(fit::<2>(&[]), None);
        let bad = Observation { amounts: [1.0], time: 0.0 };
        assert_eq!(fit(&[bad]), None);
        let unseen = Observation { amounts: [0.0], time: 1.0 };
        assert_eq!(fit(&[unseen]), None);
    }

    #[test]
    fn a_step_is_found_and_noise_is_none() {
        assert_eq!(step(&[1.0, 1.1, 0.9, 1.0, 3.0, 3.1]), 4);
        assert_eq!(step(&[1.0, 1.3, 0.8, 1.2, 0.9, 1.1]), 6);
        assert_eq!(step(&[1.0]), 1);
        assert_eq!(step(&[]), 0);
    }
}
