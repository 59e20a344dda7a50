//! Which cells are measured.

use sieve::{Access, Warmth};

use super::Cell;

/// Data sizes in bytes. Zickler 2015, Table 5.1.
pub const DATA_BYTES: [u64; 9] = [8, 64, 100, 1000, 4096, 32_768, 100_000, 1_000_000, 2_097_152];

/// Hole sizes in bytes. Zickler 2015, Table 5.1.
pub const HOLE_BYTES: [u64; 11] =
    [0, 8, 64, 100, 1000, 4096, 32_768, 100_000, 1_000_000, 2_097_152, 10_000_000];

/// Data sizes in stripes. Zickler 2015, Table 5.2.
pub const ALIGNED_DATA: [u64; 4] = [1, 2, 5, 10];

/// Hole sizes in stripes. Zickler 2015, Table 5.2.
pub const ALIGNED_HOLE: [u64; 11] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// How patterns lie on stripes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alignment {
    /// Sizes as they are; the first block behind one hole. Table 5.1.
    Free,
    /// Sizes in stripes, from the start of the file. Table 5.2.
    Aligned,
    /// Sizes in stripes, half a stripe off. Table 5.2.
    Unaligned,
}

/// What is varied: all combinations are measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Reading, writing, or both.
    pub accesses: Vec<Access>,
    /// Data at hand or not, or both.
    pub warmths: Vec<Warmth>,
    /// Data sizes in bytes, or in stripes where aligned.
    pub data: Vec<u64>,
    /// Hole sizes in bytes, or in stripes where aligned.
    pub holes: Vec<u64>,
    /// How they lie.
    pub alignments: Vec<Alignment>,
    /// Sizes of the sieving buffer in bytes.
    pub buffers: Vec<u64>,
    /// Numbers of simulated servers; `[0]` for real files.
    pub servers: Vec<u32>,
    /// Stripe sizes in bytes. They shape aligned patterns also where nothing is simulated.
    pub stripes: Vec<u64>,
}

impl Grid {
    /// All cells, those next to each other that one would look at together.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &servers in &self.servers {
            for &stripe in &self.stripes {
                for &alignment in &self.alignments {
                    for &access in &self.accesses {
                        for &warmth in &self.warmths {
                            for &buffer_bytes in &self.buffers {
                                for &data in &self.data {
                                    for &hole in &self.holes {
                                        let sizes = (data, hole);
                                        let cell = Self::cell(sizes, alignment, stripe, servers);
                                        let cell = Cell { access, warmth, buffer_bytes, ..cell };
                                        if !cells.contains(&cell) {
                                            cells.push(cell);
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        cells
    }

    fn cell((data, hole): (u64, u64), alignment: Alignment, stripe: u64, servers: u32) -> Cell {
        let unit = if alignment == Alignment::Free { 1 } else { stripe };
        Cell {
            access: Access::Read,
            warmth: Warmth::Warm,
            data: data * unit,
            hole: hole * unit,
            displacement: match alignment {
                Alignment::Free => hole,
                Alignment::Aligned => 0,
                Alignment::Unaligned => stripe / 2,
            },
            buffer_bytes: 0,
            servers,
            stripe_bytes: if servers > 0 { stripe } else { 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        Grid {
            accesses: vec![Access::Read, Access::Write],
            warmths: vec![Warmth::Warm],
            data: DATA_BYTES.to_vec(),
            holes: HOLE_BYTES.to_vec(),
            alignments: vec![Alignment::Free],
            buffers: vec![4 << 20],
            servers: vec![0],
            stripes: vec![1 << 20],
        }
    }

    #[test]
    fn the_first_table_has_all_combinations_and_begins_behind_a_hole() {
        let cells = grid().cells();
        assert_eq!(cells.len(), 2 * 9 * 11);
        assert!(cells.iter().all(|cell| cell.displacement == cell.hole && cell.servers == 0));
    }

    #[test]
    fn the_second_table_counts_in_stripes() {
        let alignments = vec![Alignment::Aligned, Alignment::Unaligned];
        let (data, holes) = (ALIGNED_DATA.to_vec(), ALIGNED_HOLE.to_vec());
        let grid =
            Grid { alignments, data, holes, servers: vec![2], stripes: vec![128 << 10], ..grid() };
        let cells = grid.cells();
        assert_eq!(cells.len(), 2 * 2 * 4 * 11);
        assert!(
            cells.iter().all(|cell| cell.data % (128 << 10) == 0 && cell.stripe_bytes == 128 << 10)
        );
        assert!(cells.iter().any(|cell| cell.displacement == 64 << 10));
    }
}
