//! Running a slab.

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
        let mut index = vec![0_u64; self.dims.len()];
        loop {
            let (mut near, mut far) = (0_i64, 0_i64);
            for (dim, &i) in self.dims.iter().zip(&index) {
                near += dim.near * i as i64;
                far += dim.far * i as i64;
            }
            for field in &self.fields {
                let near = field.near.wrapping_add_signed(near);
                let far = field.far.wrapping_add_signed(far);
                let (to, from) = if read { (near, far) } else { (far, near) };
                let to = (to - dst_base) as usize;
                let dst = &mut dst[to..to + field.bytes as usize];
                if self.origin == Origin::Zeros {
                    dst.fill(0);
                    continue;
                }
                let from = (from - src_base) as usize;
                dst.copy_from_slice(&src[from..from + field.bytes as usize]);
                if field.unit > 1 {
                    for unit in dst.chunks_exact_mut(field.unit as usize) {
                        unit.reverse();
                    }
                }
            }
            let mut level = self.dims.len();
            loop {
                if level == 0 {
                    return;
                }
                level -= 1;
                index[level] += 1;
                if index[level] < self.dims[level].count {
                    break;
                }
                index[level] = 0;
            }
        }
    }
}
