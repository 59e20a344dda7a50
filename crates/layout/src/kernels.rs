//! Running a slab.

use strided::{Dim, Run};

use crate::slab::{Origin, Slab};

impl Slab {
    /// Moves its bytes to the near side. `far` holds the far file's bytes from `far_base` on,
    /// `near` the view's from `near_base` on; of a slab of zeros or markers `far` is not looked at.
    ///
    /// # Panics
    /// When one of them does not hold the slab's span.
    pub fn read(&self, far: &[u8], far_base: u64, near: &mut [u8], near_base: u64) {
        match self.origin {
            Origin::Source { .. } => self.run(true, near, near_base, far, far_base),
            Origin::Zeros => self.run(true, near, near_base, &[], 0),
            Origin::Marker(bytes) => self.run(true, near, near_base, &bytes, 0),
        }
    }

    /// Moves its bytes to the far side.
    ///
    /// # Panics
    /// When `near` or `far` do not hold the slab's span.
    pub fn write(&self, near: &[u8], near_base: u64, far: &mut [u8], far_base: u64) {
        self.run(false, far, far_base, near, near_base);
    }

    fn run(&self, read: bool, dst: &mut [u8], dst_base: u64, src: &[u8], src_base: u64) {
        let dims = self.dims.iter().map(|dim| {
            let (dst, src) = if read { (dim.near, dim.far) } else { (dim.far, dim.near) };
            Dim { count: dim.count as usize, dst: dst as isize, src: src as isize }
        });
        let runs = self.fields.iter().map(|field| {
            let (dst, src) = if read { (field.near, field.far) } else { (field.far, field.near) };
            // Before the slice begins, this becomes a number beyond every slice.
            Run {
                dst: dst.wrapping_sub(dst_base) as usize,
                src: src.wrapping_sub(src_base) as usize,
                bytes: field.bytes as usize,
                unit: field.unit as usize,
            }
        });
        let (dims, runs): (Vec<Dim>, Vec<Run>) = (dims.collect(), runs.collect());
        if self.origin == Origin::Zeros {
            strided::fill(dst, &dims, &runs);
        } else {
            strided::copy(dst, src, &dims, &runs);
        }
    }
}
