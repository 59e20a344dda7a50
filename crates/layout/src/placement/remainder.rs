//! What of the dataset a complete replica must add to its views.
//!
//! Of a variable that no view touches, all is added as it is. Of others, each atom's elements that
//! the views leave out: a few progressions of indexes. Where they would be many, as beside every
//! hundredth element, all elements of the atom are added: a byte stored twice is written twice, and
//! nothing else changes.

use drepl::definition::{ByteOrder, Order, Part};

use super::Placement;
use super::build::Builder;
use super::record::SUBRECORD_MAX;
use super::walk::{Manner, Walk, alignment, is_variable};
use crate::error::{Error, Result};
use crate::leaf::Leaf;
use crate::lengths::Lengths;

/// How additions are laid out.
pub(super) const MANNER: Manner =
    Manner { order: Order::RowMajor, byte_order: ByteOrder::Little, subrecord_max: SUBRECORD_MAX };

/// The most pieces that an atom is added in.
const PIECES_MAX: usize = 16;

/// A length at which is decided what is left out of arrays of variable size.
const LONG: u64 = 1 << 20;

/// One addition; offsets count from its begin.
pub(super) struct Piece<'a> {
    pub(super) variable: usize,
    pub(super) name: &'a str,
    pub(super) leaves: Vec<Leaf>,
    pub(super) size: u64,
    pub(super) alignment: u64,
    pub(super) is_variable: bool,
}

pub(super) fn missing<'a>(builder: &Builder<'a>) -> Result<Vec<Piece<'a>>> {
    let held = builder.so_far();
    let long = Lengths::all(LONG);
    // If the definition is too large at that length, nothing is known to be covered.
    let held_long = builder.with_lengths(&long).ok();
    let mut pieces = Vec::new();
    for (number, variable) in builder.layout.definition.variables.iter().enumerate() {
        let whole = whole(builder, number, builder.lengths)?;
        let left = if whole.is_variable {
            left_at_any_length(builder, &whole, &long, held_long.as_ref())
        } else {
            left_at_this_length(&whole, held)
        };
        match left {
            None => pieces.push(whole),
            Some(leaves) => {
                for leaf in leaves {
                    pieces.push(packed(leaf, number, &variable.name, whole.is_variable)?);
                }
            }
        }
    }
    Ok(pieces)
}

/// All of a variable.
fn whole<'a>(builder: &Builder<'a>, number: usize, lengths: &Lengths) -> Result<Piece<'a>> {
    let layout = builder.layout;
    let variable = &layout.definition.variables[number];
    let mut walk = Walk::new(&layout.atoms, lengths, MANNER, &variable.name);
    let atom = layout.atoms.of_variable(number);
    let size = walk.part(&variable.kind, &Part::Whole, atom, 0)?;
    Ok(Piece {
        variable: number,
        name: &variable.name,
        leaves: walk.leaves,
        size,
        alignment: alignment(&variable.kind, &Part::Whole),
        is_variable: is_variable(&variable.kind, &Part::Whole),
    })
}

/// What is left out of a variable whose size never changes; `None`: all.
fn left_at_this_length(whole: &Piece<'_>, held: &Placement) -> Option<Vec<Leaf>> {
    let touches = |leaf: &Leaf| held.of_atom(leaf.atom).any(|other| leaf.common(other).is_some());
    if !whole.leaves.iter().any(touches) {
        return None;
    }
    let left = whole.leaves.iter().map(|leaf| left_out(leaf, held.of_atom(leaf.atom)));
    Some(left.flatten().collect())
}

/// The atoms that are left out of a variable whose size changes; `None`: all. Which they are, and
/// so how many files there are, must not depend on how long it is at present.
fn left_at_any_length(
    builder: &Builder<'_>,
    present: &Piece<'_>,
    long: &Lengths,
    held: Option<&Placement>,
) -> Option<Vec<Leaf>> {
    let (held, all) = (held?, whole(builder, present.variable, long).ok()?);
    let covered = |leaf: &Leaf| {
        let mut others = held.of_atom(leaf.atom);
        others.any(|other| leaf.common(other).is_some_and(|common| leaf.is_within(&common)))
    };
    let left: Vec<&Leaf> = all.leaves.iter().filter(|leaf| !covered(leaf)).collect();
    if left.len() == all.leaves.len() {
        return None;
    }
    let now = |leaf: &Leaf| present.leaves.iter().find(|other| other.atom == leaf.atom).cloned();
    Some(left.into_iter().map(|leaf| now(leaf).unwrap_or_else(|| empty(leaf))).collect())
}

/// The same leaf without an element.
fn empty(leaf: &Leaf) -> Leaf {
    let mut leaf = leaf.clone();
    for axis in &mut leaf.axes {
        axis.count = 0;
    }
    leaf
}

/// What `held` leaves out of a leaf.
fn left_out<'a>(leaf: &Leaf, held: impl Iterator<Item = &'a Leaf>) -> Vec<Leaf> {
    let mut rest = vec![leaf.clone()];
    for other in held {
        let mut smaller = Vec::new();
        for piece in &rest {
            match piece.common(other) {
                None => smaller.push(piece.clone()),
                Some(common) => {
                    if piece.without(&common, PIECES_MAX, &mut smaller).is_none() {
                        return vec![leaf.clone()];
                    }
                }
            }
        }
        rest = smaller;
        if rest.len() > PIECES_MAX {
            return vec![leaf.clone()];
        }
    }
    rest
}

/// The elements of a leaf one after the other.
fn packed<'a>(
    mut leaf: Leaf,
    variable: usize,
    name: &'a str,
    is_variable: bool,
) -> Result<Piece<'a>> {
    let mut size = u64::from(leaf.bytes);
    for axis in leaf.axes.iter_mut().rev() {
        axis.stride = size;
        size = size
            .checked_mul(axis.count)
            .ok_or_else(|| Error::TooLarge { name: name.to_owned() })?;
    }
    leaf.offset = 0;
    let alignment = if leaf.order.is_some() { u64::from(leaf.bytes) } else { 1 };
    let leaves = if size > 0 { vec![leaf] } else { Vec::new() };
    Ok(Piece { variable, name, leaves, size, alignment, is_variable })
}
