//! Files with markers between subrecords, as stretches without.

use std::ops::Range;

use crate::clip;
use crate::placement::Seam;
use crate::slab::{Field, Origin, Slab};

/// A part of a file.
pub(super) enum Stretch {
    /// Bytes `range` of the file without markers, which lie `shift` further behind.
    Data { range: Range<u64>, shift: u64 },
    /// A marker, or a part of one.
    Marker(Slab),
}

const WIDTH: u64 = 8;

/// The stretches of a range of a file.
pub(super) fn stretches(seams: &[Seam], range: Range<u64>) -> impl Iterator<Item = Stretch> {
    // Marker `k` lies at `seams[k].offset + 8 k`, the data before it from the end of marker k - 1.
    let place = |k: usize| seams[k].offset + WIDTH * k as u64;
    let mut low = 0;
    let mut high = seams.len();
    while low < high {
        let middle = usize::midpoint(low, high);
        if place(middle) + WIDTH <= range.start {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low..=seams.len())
        .take_while({
            let range = range.clone();
            move |&k| k == 0 || place(k - 1) < range.end
        })
        .flat_map(move |k| {
            let shift = WIDTH * k as u64;
            let begin = if k == 0 { 0 } else { place(k - 1) + WIDTH };
            let end = if k < seams.len() { place(k) } else { u64::MAX };
            let (from, to) = (range.start.max(begin), range.end.min(end));
            let data =
                (from < to).then(|| Stretch::Data { range: from - shift..to - shift, shift });
            let marker = (k < seams.len()).then(|| {
                let (from, to) = (range.start.max(end), range.end.min(end + WIDTH));
                (from < to).then(|| {
                    Stretch::Marker(Slab {
                        origin: Origin::Marker(seams[k].bytes),
                        dims: Vec::new(),
                        fields: vec![Field {
                            near: from,
                            far: from - end,
                            bytes: to - from,
                            unit: 1,
                        }],
                    })
                })
            });
            data.into_iter().chain(marker.flatten())
        })
}

/// Cuts a slab whose far side does not count markers where they are, and counts them.
pub(super) fn cut_far(slab: Slab, seams: &[Seam], pieces: &mut Vec<Slab>) {
    if seams.is_empty() {
        pieces.push(slab);
        return;
    }
    for mut single in slab.singles() {
        let span = single.far_span();
        let first = seams.partition_point(|seam| seam.offset <= span.start);
        let last = seams.partition_point(|seam| seam.offset < span.end);
        if first >= last {
            single.fields[0].far += WIDTH * first as u64;
            pieces.push(single);
            continue;
        }
        for k in first..=last {
            let begin = if k == 0 { 0 } else { seams[k - 1].offset };
            let end = seams.get(k).map_or(u64::MAX >> 1, |seam| seam.offset);
            clip::far(&single, &(begin..end), &mut |mut piece| {
                for field in &mut piece.fields {
                    field.far += WIDTH * k as u64;
                }
                pieces.push(piece);
            });
        }
    }
}
