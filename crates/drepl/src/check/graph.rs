//! The order in which things can be defined that refer to each other.

/// An order in which whatever is referred to comes first, and the cycles that have none.
#[derive(Debug)]
pub(super) struct Ordered {
    /// All that is not part of a cycle.
    pub(super) order: Vec<usize>,
    /// Each refers to the next, and the last to the first.
    pub(super) cycles: Vec<Vec<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Done,
}

/// Orders `0..references.len()`, without recursion: chains may be long.
pub(super) fn order(references: &[Vec<usize>]) -> Ordered {
    let mut marks = vec![Mark::New; references.len()];
    let mut ordered = Ordered { order: Vec::with_capacity(references.len()), cycles: Vec::new() };
    let mut in_cycle = vec![false; references.len()];
    // What is open, and how many of its references have been followed.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for root in 0..references.len() {
        if marks[root] == Mark::New {
            marks[root] = Mark::Open;
            open.push((root, 0));
        }
        while let Some((node, followed)) = open.last_mut() {
            let node = *node;
            let Some(&next) = references[node].get(*followed) else {
                marks[node] = Mark::Done;
                if !in_cycle[node] {
                    ordered.order.push(node);
                }
                open.pop();
                continue;
            };
            *followed += 1;
            match marks[next] {
                Mark::Done => {}
                Mark::New => {
                    marks[next] = Mark::Open;
                    open.push((next, 0));
                }
                Mark::Open => {
                    let from = open.iter().rposition(|&(one, _)| one == next).unwrap_or(0);
                    let cycle: Vec<usize> = open[from..].iter().map(|&(one, _)| one).collect();
                    // One diagnostic for everything that hangs together is enough.
                    if !cycle.iter().any(|&one| in_cycle[one]) {
                        ordered.cycles.push(cycle.clone());
                    }
                    cycle.into_iter().for_each(|one| in_cycle[one] = true);
                }
            }
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn references_come_first() {
        let ordered = order(&[vec![1, 2], vec![2], vec![], vec![0]]);
        assert_eq!(ordered.order, [2, 1, 0, 3]);
        assert!(ordered.cycles.is_empty());
    }

    #[test]
    fn cycles_are_found_and_the_rest_is_ordered() {
        let ordered = order(&[vec![1], vec![2], vec![1], vec![3], vec![]]);
        assert_eq!(ordered.cycles, [vec![1, 2], vec![3]]);
        assert_eq!(ordered.order, [0, 4]);
    }

    #[test]
    fn long_chains_do_not_exhaust_the_stack() {
        let count = 200_000;
        let chain: Vec<Vec<usize>> =
            (0..count).map(|at| if at + 1 < count { vec![at + 1] } else { vec![] }).collect();
        assert_eq!(order(&chain).order.first(), Some(&(count - 1)));
    }
}
