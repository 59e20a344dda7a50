//! Where everything lies in a view, or in the files of a replica.

mod build;
mod record;
mod remainder;
mod walk;

use std::ops::Range;

use drepl::Definition;

use crate::atom::Atoms;
use crate::error::{Error, Result};
use crate::leaf::{Axis, Leaf};
use crate::lengths::Lengths;

/// The most markers between subrecords that a file may have; 65,536 of them are 128 TiB.
pub const SEAMS_MAX: u64 = 1 << 16;

/// A definition whose views and replicas can be placed.
#[derive(Debug)]
pub struct Layout<'a> {
    definition: &'a Definition,
    atoms: Atoms,
    subrecord_max: u64,
}

impl<'a> Layout<'a> {
    /// Numbers what the dataset consists of.
    ///
    /// # Errors
    /// [`Error::TooManyFields`], [`Error::TooDeep`].
    pub fn new(definition: &'a Definition) -> Result<Self> {
        Ok(Self {
            definition,
            atoms: Atoms::new(definition)?,
            subrecord_max: record::SUBRECORD_MAX,
        })
    }

    /// Splits records with 4-byte markers into subrecords of at most `bytes`, as a program does
    /// that was compiled with gfortran's `-fmax-subrecord-length`; without this, 2^31 - 9.
    ///
    /// # Panics
    /// When `bytes` is not in 1..=2^31 - 9.
    pub fn with_subrecord_max(mut self, bytes: u64) -> Self {
        assert!((1..=record::SUBRECORD_MAX).contains(&bytes));
        self.subrecord_max = bytes;
        self
    }

    /// What is placed.
    pub fn definition(&self) -> &'a Definition {
        self.definition
    }

    /// The one file that a program sees.
    ///
    /// # Errors
    /// When it would be too large, or variables would overlap; see [`Error`].
    pub fn view(&self, view: usize, lengths: &Lengths) -> Result<Placement> {
        if view >= self.definition.views.len() {
            return Err(Error::NoSuch { what: "view", index: view });
        }
        build::Builder::view(self, view, lengths)
    }

    /// The file, or the files, of a replica: its views one after the other, each at a multiple of
    /// 8, and if it is complete then what of the dataset they leave out.
    ///
    /// After every variable of variable size begins a new file (§III-B.4), so that nothing has to
    /// move when a length changes. In such a later file `at` says nothing, and a record with
    /// variables of variable size is stored without its markers.
    ///
    /// # Errors
    /// When it would be too large, or variables would overlap; see [`Error`].
    pub fn replica(&self, replica: usize, lengths: &Lengths) -> Result<Placement> {
        if replica >= self.definition.replicas.len() {
            return Err(Error::NoSuch { what: "replica", index: replica });
        }
        build::Builder::replica(self, replica, lengths)
    }
}

/// Where everything lies.
#[derive(Debug, Clone)]
pub struct Placement {
    pub(crate) files: Vec<File>,
    pub(crate) placed: Vec<Placed>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) blanks: Vec<Blank>,
    /// The leaves, by their atoms, and where each atom's begin.
    by_atom: Vec<u32>,
    atom_begin: Vec<u32>,
}

/// One file of a placement.
#[derive(Debug, Clone, Default)]
pub(crate) struct File {
    /// In bytes, with everything.
    pub(crate) size: u64,
    /// The markers between subrecords, in ascending order.
    pub(crate) seams: Vec<Seam>,
}

/// Eight bytes of markers between two subrecords. They may cut a number in two. So that all else
/// stays strided, no offset in a leaf counts them: they stand before the byte `offset` of the file
/// as it would be without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seam {
    pub(crate) offset: u64,
    pub(crate) bytes: [u8; 8],
}

/// Bytes that belong to no variable: headers, padding, markers.
#[derive(Debug, Clone)]
pub(crate) struct Blank {
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) axes: Vec<Axis>,
    pub(crate) bytes: u64,
    /// What they are; none: zeros.
    pub(crate) marker: Option<[u8; 8]>,
}

impl Blank {
    fn zeros(bytes: u64) -> Self {
        Self { file: 0, offset: 0, axes: Vec::new(), bytes, marker: None }
    }

    fn marker(marker: [u8; 8], width: u64) -> Self {
        Self { marker: Some(marker), ..Self::zeros(width) }
    }
}

/// Where one variable lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Of which view of the definition; `None`: of what a complete replica adds.
    pub view: Option<usize>,
    /// Index among the view's variables; of what a complete replica adds, among the dataset's.
    pub variable: usize,
    /// Which file of the replica; 0 for a view.
    pub file: usize,
    /// Its first byte in the file. In a record it is the one after the marker, if it comes first.
    pub offset: u64,
    /// Its bytes, with all markers inside.
    pub size: u64,
    /// Its leaves.
    pub(crate) leaves: Range<usize>,
}

impl Placement {
    /// The sizes of the files, in bytes. A view has one.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = u64> {
        self.files.iter().map(|file| file.size)
    }

    /// The size of the first file, in bytes; a view has no other one.
    pub fn size(&self) -> u64 {
        self.files.first().map_or(0, |file| file.size)
    }

    /// The variables, in the order of the definition.
    pub fn variables(&self) -> &[Placed] {
        &self.placed
    }

    /// All leaves of an atom.
    pub(crate) fn of_atom(&self, atom: u32) -> impl Iterator<Item = &Leaf> {
        let begin = self.atom_begin[atom as usize] as usize;
        let end = self.atom_begin[atom as usize + 1] as usize;
        self.by_atom[begin..end].iter().map(|&leaf| &self.leaves[leaf as usize])
    }

    fn index(&mut self, atoms: usize) {
        let mut begin = vec![0_u32; atoms + 1];
        for leaf in &self.leaves {
            begin[leaf.atom as usize + 1] += 1;
        }
        for atom in 0..atoms {
            begin[atom + 1] += begin[atom];
        }
        let mut next = begin.clone();
        self.by_atom = vec![0; self.leaves.len()];
        for (number, leaf) in self.leaves.iter().enumerate() {
            let place = &mut next[leaf.atom as usize];
            self.by_atom[*place as usize] = number as u32;
            *place += 1;
        }
        self.atom_begin = begin;
    }
}
