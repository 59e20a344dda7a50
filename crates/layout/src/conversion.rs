//! Conversions: all slabs between two placements.

mod seams;
mod sources;

use std::ops::Range;

use crate::clip;
use crate::error::Result;
use crate::leaf::{Common, Leaf};
use crate::placement::{Blank, Placement, Seam};
use crate::slab::{self, Dim, Field, Origin, Slab};

pub use sources::Served;

/// How the bytes of a view come from, or go to, the files of replicas.
///
/// Its size depends on how many fields there are, not on how many elements the arrays have.
#[derive(Debug, Clone)]
pub struct Conversion {
    files: Vec<Near>,
    /// The markers between subrecords on the far side, of each file of each source.
    far_seams: Vec<Vec<Vec<Seam>>>,
    served: Vec<Served>,
}

/// One file of the near side.
#[derive(Debug, Clone)]
struct Near {
    size: u64,
    seams: Vec<Seam>,
    /// In the order of their begins.
    slabs: Vec<Slab>,
    /// For each slab, the largest end of it and all before it.
    ends: Vec<u64>,
    /// The markers between subrecords are of interest.
    markers: bool,
}

impl Conversion {
    /// How to read `target`, a view or a replica that is to be rebuilt, from `sources`.
    ///
    /// Every variable is served by what costs least (see [`Served`]); among equals by the one that
    /// comes first in `sources`. A variable that no source has completely is put together from
    /// several. What nobody has is zeros, and is reported by [`served`](Self::served).
    ///
    /// # Errors
    /// [`Error::Fragmented`](crate::Error::Fragmented).
    pub fn read(target: &Placement, sources: &[&Placement]) -> Result<Self> {
        let chosen = sources::choose(target, sources)?;
        let blanks = target.blanks.iter().map(|blank| (blank.file, filling(blank)));
        let slabs = chosen.slabs.into_iter().chain(blanks);
        Ok(Self {
            files: files(target, slabs.collect(), true, true),
            far_seams: seams_of(sources),
            served: chosen.served,
        })
    }

    /// Where the bytes that are written to `view` go in `replica`: to every place that stores the
    /// same elements. Header, padding and markers of the view go nowhere.
    pub fn write(view: &Placement, replica: &Placement) -> Self {
        let mut slabs = Vec::new();
        let mut twice = false;
        for leaf in &view.leaves {
            twice |= (view.of_atom(leaf.atom))
                .any(|other| !std::ptr::eq(leaf, other) && leaf.common(other).is_some());
            for other in replica.of_atom(leaf.atom) {
                if let Some(common) = leaf.common(other) {
                    slabs.push((leaf.file, between(leaf, other, &common, 0)));
                }
            }
        }
        // If a view has an element twice, then the later place decides. Slabs that are not joined
        // are carried out in the order of the variables.
        Self {
            files: files(view, slabs, !twice, false),
            far_seams: seams_of(&[replica]),
            served: Vec::new(),
        }
    }

    /// What stands in a file of `target` that belongs to no variable: zeros and markers, to be
    /// written when the file is made, and again when lengths change.
    pub fn blanks(target: &Placement) -> Self {
        let slabs = target.blanks.iter().map(|blank| (blank.file, filling(blank)));
        Self {
            files: files(target, slabs.collect(), true, true),
            far_seams: Vec::new(),
            served: Vec::new(),
        }
    }

    /// Which source serves which variable of the target. Empty unless made by
    /// [`read`](Self::read).
    pub fn served(&self) -> &[Served] {
        &self.served
    }

    /// How many slabs there are.
    pub fn slabs(&self) -> usize {
        self.files.iter().map(|file| file.slabs.len()).sum()
    }

    /// What moves the bytes `range` of a view. Together the slabs cover every byte of the range
    /// that lies in the view, once; those of a conversion made by [`write`](Self::write) leave out
    /// what belongs to no variable, and may go to several places.
    pub fn clip(&self, range: Range<u64>) -> impl Iterator<Item = Slab> {
        self.clip_file(0, range)
    }

    /// The same for a file of a replica that is the target.
    pub fn clip_file(&self, file: usize, range: Range<u64>) -> impl Iterator<Item = Slab> {
        let near = self.files.get(file);
        let stretches = near.into_iter().flat_map(move |near| {
            let range = range.start..range.end.min(near.size);
            seams::stretches(&near.seams, range).map(move |stretch| (near, stretch))
        });
        stretches.flat_map(move |(near, stretch)| -> Box<dyn Iterator<Item = Slab>> {
            match stretch {
                seams::Stretch::Marker(slab) => Box::new(near.markers.then_some(slab).into_iter()),
                seams::Stretch::Data { range, shift } => {
                    let slabs = near.touching(&range);
                    Box::new(slabs.flat_map(move |slab| {
                        let mut pieces = Vec::new();
                        clip::near(slab, &range, &mut |mut piece| {
                            for field in &mut piece.fields {
                                field.near += shift;
                            }
                            self.put_far(piece, &mut pieces);
                        });
                        pieces
                    }))
                }
            }
        })
    }

    /// Cuts a slab at the markers between the far side's subrecords.
    fn put_far(&self, slab: Slab, pieces: &mut Vec<Slab>) {
        if let Origin::Source { source, file } = slab.origin {
            seams::cut_far(slab, &self.far_seams[source][file], pieces);
        } else {
            pieces.push(slab);
        }
    }
}

impl Near {
    fn touching(&self, range: &Range<u64>) -> impl Iterator<Item = &Slab> + use<'_> {
        let first = self.ends.partition_point(|&end| end <= range.start);
        let end = range.end;
        self.slabs[first..].iter().take_while(move |slab| slab.fields[0].near < end)
    }
}

fn seams_of(sources: &[&Placement]) -> Vec<Vec<Vec<Seam>>> {
    let files =
        |placement: &&Placement| placement.files.iter().map(|file| file.seams.clone()).collect();
    sources.iter().map(files).collect()
}

/// Sorts slabs into the files of the near side.
fn files(target: &Placement, slabs: Vec<(u32, Slab)>, join: bool, markers: bool) -> Vec<Near> {
    let mut sorted: Vec<Vec<Slab>> = vec![Vec::new(); target.files.len()];
    for (file, slab) in slabs {
        sorted[file as usize].push(slab);
    }
    let near = |(file, mut slabs): (&crate::placement::File, Vec<Slab>)| {
        if join {
            slabs = slab::joined(slabs);
        } else {
            slabs = slabs.into_iter().map(slab::normalised).collect();
            slab::sort(&mut slabs);
        }
        let mut end = 0;
        let ends = slabs.iter().map(|slab| {
            end = slab.near_span().end.max(end);
            end
        });
        Near { size: file.size, seams: file.seams.clone(), ends: ends.collect(), slabs, markers }
    };
    target.files.iter().zip(sorted).map(near).collect()
}

/// What two leaves have in common, as a slab.
pub(crate) fn between(near: &Leaf, far: &Leaf, common: &[Common], source: usize) -> Slab {
    let mut field = Field {
        near: near.offset,
        far: far.offset,
        bytes: u64::from(near.bytes),
        unit: if near.order == far.order { 1 } else { near.bytes },
    };
    let mut dims = Vec::with_capacity(common.len());
    for ((near, far), common) in near.axes.iter().zip(&far.axes).zip(common) {
        field.near += near.stride * common.near_first;
        field.far += far.stride * common.far_first;
        if common.count > 1 {
            dims.push(Dim {
                count: common.count,
                near: (near.stride * common.near_step) as i64,
                far: far.stride as i64 * common.far_step,
            });
        }
    }
    Slab { origin: Origin::Source { source, file: far.file as usize }, dims, fields: vec![field] }
}

/// Bytes that belong to no variable.
fn filling(blank: &Blank) -> Slab {
    let marker = blank.marker.is_some();
    let dims = blank.axes.iter().map(|axis| Dim {
        count: axis.count,
        near: axis.stride as i64,
        // Zeros are as strided as we like; a marker is always the same one.
        far: if marker { 0 } else { axis.stride as i64 },
    });
    Slab {
        origin: blank.marker.map_or(Origin::Zeros, Origin::Marker),
        dims: dims.collect(),
        fields: vec![Field {
            near: blank.offset,
            far: if marker { 0 } else { blank.offset },
            bytes: blank.bytes,
            unit: 1,
        }],
    }
}

/// An element that no source has.
pub(crate) fn nothing(leaf: &Leaf) -> Slab {
    filling(&Blank {
        file: leaf.file,
        offset: leaf.offset,
        axes: leaf.axes.clone(),
        bytes: u64::from(leaf.bytes),
        marker: None,
    })
}
