//! Which source serves which variable.

use super::{between, nothing};
use crate::error::{Error, Result};
use crate::leaf::Leaf;
use crate::placement::{Placed, Placement};
use crate::slab::{self, Origin, Slab};

/// What a read of a variable costs and who serves it.
///
/// The cost is that of the bytes touched on the far side (a strided read touches what lies between
/// its elements, up to a cache line), and something for rearranging them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Index in the target's [`variables`](Placement::variables).
    pub variable: usize,
    /// The sources that serve it, by their numbers; none if nobody has any of it.
    pub sources: Vec<usize>,
    /// The bytes of it that nobody has; they read as zeros.
    pub missing: u64,
    /// The bytes that a read of all of it moves.
    pub moved: u64,
    /// The bytes on the far side that it touches.
    pub touched: u64,
    /// What was compared, in fourths of a byte touched.
    pub cost: u64,
}

/// The slabs of all variables.
pub(super) struct Chosen {
    pub(super) slabs: Vec<(u32, Slab)>,
    pub(super) served: Vec<Served>,
}

/// The most pieces into which what a source leaves of a leaf may fall before another is tried.
const PIECES_GOOD: usize = 64;
/// The most pieces of a leaf.
const PIECES_MAX: usize = 1 << 12;

pub(super) fn choose(target: &Placement, sources: &[&Placement]) -> Result<Chosen> {
    let mut chosen = Chosen { slabs: Vec::new(), served: Vec::with_capacity(target.placed.len()) };
    for (number, placed) in target.placed.iter().enumerate() {
        let leaves = &target.leaves[placed.leaves.clone()];
        let mut best: Option<(Cost, usize, Vec<Slab>)> = None;
        for (source, view) in candidates(leaves, sources) {
            let Some(slabs) = all_from(leaves, sources[source], source, view) else {
                continue;
            };
            let cost = Cost::of(&slabs);
            if best.as_ref().is_none_or(|(least, ..)| cost.total() < least.total()) {
                best = Some((cost, source, slabs));
            }
        }
        let mut served = Served {
            variable: number,
            sources: Vec::new(),
            missing: 0,
            moved: leaves.iter().map(|leaf| leaf.count() * u64::from(leaf.bytes)).sum(),
            touched: 0,
            cost: 0,
        };
        let (cost, slabs) = match best {
            Some((cost, source, slabs)) => {
                served.sources.push(source);
                (cost, slabs)
            }
            None => {
                let mut slabs = Vec::new();
                for leaf in leaves {
                    patched(leaf, sources, &mut slabs, &mut served)
                        .ok_or_else(|| fragmented(placed))?;
                }
                served.sources.sort_unstable();
                served.sources.dedup();
                (Cost::of(&slabs), slabs)
            }
        };
        served.touched = cost.touched;
        served.cost = cost.total();
        chosen.served.push(served);
        let file = placed.file as u32;
        chosen.slabs.extend(slabs.into_iter().map(|slab| (file, slab)));
    }
    Ok(chosen)
}

fn fragmented(placed: &Placed) -> Error {
    Error::Fragmented { name: format!("variable {}", placed.variable) }
}

/// The views in sources that have anything of the first leaf: what has none of it, has not all.
fn candidates(leaves: &[Leaf], sources: &[&Placement]) -> Vec<(usize, Option<Option<usize>>)> {
    let mut found = Vec::new();
    let Some(first) = leaves.first() else {
        return found;
    };
    for (number, source) in sources.iter().enumerate() {
        let begin = found.len();
        for leaf in source.of_atom(first.atom) {
            let view = source.placed[leaf.variable as usize].view;
            if !found[begin..].contains(&(number, Some(view))) {
                found.push((number, Some(view)));
            }
        }
        // All of its views together, where there are several.
        if found.len() > begin + 1 {
            found.push((number, None));
        }
    }
    found
}

/// Serves all leaves from one source, or from one of its views, if each leaf is whole there.
fn all_from(
    leaves: &[Leaf],
    source: &Placement,
    number: usize,
    view: Option<Option<usize>>,
) -> Option<Vec<Slab>> {
    leaves
        .iter()
        .map(|leaf| {
            source
                .of_atom(leaf.atom)
                .filter(|far| {
                    view.is_none_or(|view| source.placed[far.variable as usize].view == view)
                })
                .find_map(|far| {
                    let common = leaf.common(far)?;
                    leaf.is_within(&common).then(|| between(leaf, far, &common, number))
                })
        })
        .collect()
}

/// Puts a leaf together from whatever has a part of it. `None`: too many pieces.
fn patched(
    leaf: &Leaf,
    sources: &[&Placement],
    slabs: &mut Vec<Slab>,
    served: &mut Served,
) -> Option<()> {
    let mut rest = vec![leaf.clone()];
    // First without what would leave many pieces, then with it if need be.
    for limit in [PIECES_GOOD, PIECES_MAX] {
        for (number, source) in sources.iter().enumerate() {
            for far in source.of_atom(leaf.atom) {
                let mut smaller = Vec::new();
                for piece in rest {
                    let common = piece
                        .common(far)
                        .filter(|common| piece.without(common, limit, &mut smaller).is_some());
                    match common {
                        None => smaller.push(piece),
                        Some(common) => {
                            slabs.push(between(&piece, far, &common, number));
                            served.sources.push(number);
                        }
                    }
                }
                rest = smaller;
                if rest.len() > PIECES_MAX {
                    return None;
                }
            }
        }
    }
    for piece in rest {
        // It is missing, and not only left over because it would have been too many pieces.
        for source in sources {
            if source.of_atom(leaf.atom).any(|far| piece.common(far).is_some()) {
                return None;
            }
        }
        served.missing += piece.count() * u64::from(piece.bytes);
        slabs.push(nothing(&piece));
    }
    Some(())
}

/// What reading slabs costs.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    touched: u64,
    /// Fourths of a byte.
    work: u64,
}

impl Cost {
    fn of(slabs: &[Slab]) -> Self {
        let mut cost = Self::default();
        for slab in slab::joined(slabs.to_vec()) {
            if !matches!(slab.origin, Origin::Source { .. }) {
                continue;
            }
            let elements: u64 = slab.dims.iter().map(|dim| dim.count).product();
            let stride = slab.dims.iter().map(|dim| dim.far.unsigned_abs()).min();
            let innermost = slab.dims.last().map_or(0, |dim| dim.far.unsigned_abs());
            let mut fields: Vec<_> = slab.fields.iter().collect();
            fields.sort_by_key(|field| field.far);
            let mut touched = 0;
            let mut rest = &fields[..];
            while let Some(first) = rest.first() {
                // Fields that lie within one element of the far side are touched together.
                let cell = stride.unwrap_or(first.bytes);
                let count = rest
                    .iter()
                    .take_while(|field| field.far + field.bytes <= first.far + cell)
                    .count()
                    .max(1);
                let bytes: u64 = rest[..count].iter().map(|field| field.bytes).sum();
                touched += bytes.max(cell.min(LINE));
                rest = &rest[count..];
            }
            cost.touched = cost.touched.saturating_add(elements.saturating_mul(touched));
            let bytes = slab.bytes();
            let work = match stride {
                None => 0,
                // The innermost dimension of one side is not that of the other: a transpose.
                Some(stride) if stride < innermost => bytes.saturating_mul(4),
                Some(_) => bytes,
            };
            let swapped: u64 =
                (slab.fields.iter()).filter(|field| field.unit > 1).map(|field| field.bytes).sum();
            cost.work =
                cost.work.saturating_add(work).saturating_add(elements.saturating_mul(swapped) / 2);
        }
        cost
    }

    fn total(&self) -> u64 {
        self.touched.saturating_mul(4).saturating_add(self.work)
    }
}

/// A cache line, in bytes.
const LINE: u64 = 64;
