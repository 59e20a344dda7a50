//! Making datatypes at random, in all ways that MPI has.

use std::ffi::c_int;

use mpi::{Abi, Mpi};

use crate::call::{attempt, call};
use crate::{Library, Random};

impl Library {
    /// A random type made of another. Displacements may overlap and run backwards: allowed in memory.
    pub(crate) fn derive(
        &self,
        random: &mut Random,
        mpi: &Mpi,
        of: usize,
    ) -> (usize, &'static str) {
        if self.has_large_counts() && random.below(3) == 0 {
            return self.derive_large(random, mpi, of);
        }
        let numbers = mpi.constants().numbers;
        let mut made = 0usize;
        let to = &raw mut made;
        let count = 1 + random.below(4);
        // Open MPI misplaces data beside members without any.
        let least = i64::from(mpi.abi() == Abi::OpenMpi);
        let lengths = random.many(count, least, 4);
        let near = random.many(count, -3, 12);
        let bytes: Vec<i64> = near.iter().map(|at| i64::from(*at) * 7).collect();
        let order = [numbers.order_c, numbers.order_fortran][random.below(2) as usize];
        let name = match random.below(12) {
            0 => {
                call!(self, "PMPI_Type_dup", (usize, *mut usize), (of, to));
                "dup"
            }
            1 => {
                let count = (least + random.below(5)) as c_int;
                call!(self, "PMPI_Type_contiguous", (c_int, usize, *mut usize), (count, of, to));
                "contiguous"
            }
            2 => {
                let (length, stride) =
                    ((least + random.below(4)) as c_int, random.below(9) as c_int - 3);
                call!(
                    self,
                    "PMPI_Type_vector",
                    (c_int, c_int, c_int, usize, *mut usize),
                    (count as c_int, length, stride, of, to)
                );
                "vector"
            }
            3 => {
                let (length, stride) = ((least + random.below(4)) as c_int, random.below(99) - 30);
                call!(
                    self,
                    "PMPI_Type_create_hvector",
                    (c_int, c_int, i64, usize, *mut usize),
                    (count as c_int, length, stride, of, to)
                );
                "hvector"
            }
            4 => {
                call!(
                    self,
                    "PMPI_Type_indexed",
                    (c_int, *const c_int, *const c_int, usize, *mut usize),
                    (count as c_int, lengths.as_ptr(), near.as_ptr(), of, to)
                );
                "indexed"
            }
            5 => {
                call!(
                    self,
                    "PMPI_Type_create_hindexed",
                    (c_int, *const c_int, *const i64, usize, *mut usize),
                    (count as c_int, lengths.as_ptr(), bytes.as_ptr(), of, to)
                );
                "hindexed"
            }
            6 => {
                call!(
                    self,
                    "PMPI_Type_create_indexed_block",
                    (c_int, c_int, *const c_int, usize, *mut usize),
                    (count as c_int, lengths[0], near.as_ptr(), of, to)
                );
                "indexed_block"
            }
            7 => {
                call!(
                    self,
                    "PMPI_Type_create_hindexed_block",
                    (c_int, c_int, *const i64, usize, *mut usize),
                    (count as c_int, lengths[0], bytes.as_ptr(), of, to)
                );
                "hindexed_block"
            }
            8 => {
                let known = &mpi.constants().types;
                let choice = [known.byte.word(), of, known.double.word(), known.short_int.word()];
                let picked: Vec<usize> =
                    (0..count).map(|_| choice[random.below(4) as usize]).collect();
                let types = self.array(&picked);
                call!(
                    self,
                    "PMPI_Type_create_struct",
                    (c_int, *const c_int, *const i64, *const u8, *mut usize),
                    (count as c_int, lengths.as_ptr(), bytes.as_ptr(), types.as_ptr(), to)
                );
                "struct"
            }
            9 => {
                let dimensions = 1 + random.below(3);
                let sizes = random.many(dimensions, 1, 5);
                let part =
                    |random: &mut Random, size: &c_int| 1 + random.below(*size as u64) as c_int;
                let parts: Vec<c_int> = sizes.iter().map(|size| part(random, size)).collect();
                let room = |(size, part): (&c_int, &c_int)| {
                    random.below((size - part + 1) as u64) as c_int
                };
                let starts: Vec<c_int> = sizes.iter().zip(&parts).map(room).collect();
                call!(
                    self,
                    "PMPI_Type_create_subarray",
                    (c_int, *const c_int, *const c_int, *const c_int, c_int, usize, *mut usize),
                    (
                        dimensions as c_int,
                        sizes.as_ptr(),
                        parts.as_ptr(),
                        starts.as_ptr(),
                        order,
                        of,
                        to
                    )
                );
                "subarray"
            }
            10 => {
                self.distribute(random, mpi, order, of, to);
                "darray"
            }
            _ => {
                let (lower_bound, extent) = (random.below(9) - 4, 1 + random.below(64));
                call!(
                    self,
                    "PMPI_Type_create_resized",
                    (usize, i64, i64, *mut usize),
                    (of, lower_bound, extent, to)
                );
                "resized"
            }
        };
        (made, name)
    }

    fn has_large_counts(&self) -> bool {
        // SAFETY: dlsym(3) with a NUL-terminated name.
        !unsafe { libc::dlsym(self.handle, c"PMPI_Type_vector_c".as_ptr()) }.is_null()
    }

    /// The same by the calls of MPI-4.0, whose arguments come back in another form.
    fn derive_large(&self, random: &mut Random, mpi: &Mpi, of: usize) -> (usize, &'static str) {
        let numbers = mpi.constants().numbers;
        let mut made = 0usize;
        let to = &raw mut made;
        let count = 1 + random.below(4);
        let wide = |random: &mut Random, from, limit| -> Vec<i64> {
            random.many(count, from, limit).into_iter().map(i64::from).collect()
        };
        let lengths = wide(random, 0, 4);
        let near = wide(random, -3, 12);
        let order = [numbers.order_c, numbers.order_fortran][random.below(2) as usize];
        let name = match random.below(6) {
            0 => {
                call!(
                    self,
                    "PMPI_Type_vector_c",
                    (i64, i64, i64, usize, *mut usize),
                    (count, lengths[0], near[0], of, to)
                );
                "vector_c"
            }
            1 => {
                call!(
                    self,
                    "PMPI_Type_indexed_c",
                    (i64, *const i64, *const i64, usize, *mut usize),
                    (count, lengths.as_ptr(), near.as_ptr(), of, to)
                );
                "indexed_c"
            }
            2 => {
                call!(
                    self,
                    "PMPI_Type_create_hindexed_block_c",
                    (i64, i64, *const i64, usize, *mut usize),
                    (count, lengths[0], near.as_ptr(), of, to)
                );
                "hindexed_block_c"
            }
            3 => {
                let types = self.array(&vec![of; count as usize]);
                call!(
                    self,
                    "PMPI_Type_create_struct_c",
                    (i64, *const i64, *const i64, *const u8, *mut usize),
                    (count, lengths.as_ptr(), near.as_ptr(), types.as_ptr(), to)
                );
                "struct_c"
            }
            4 => {
                let sizes: [i64; 2] = [3 + random.below(4), 2 + random.below(4)];
                let parts = [1 + random.below(2), 1 + random.below(2)];
                let starts = [random.below(2), random.below(1)];
                call!(
                    self,
                    "PMPI_Type_create_subarray_c",
                    (c_int, *const i64, *const i64, *const i64, c_int, usize, *mut usize),
                    (2, sizes.as_ptr(), parts.as_ptr(), starts.as_ptr(), order, of, to)
                );
                "subarray_c"
            }
            _ => {
                let sizes: [i64; 2] = [3 + random.below(4), 2 + random.below(4)];
                let (kinds, arguments) = (
                    [numbers.distribute_cyclic, numbers.distribute_block],
                    [numbers.distribute_default; 2],
                );
                let grid = [2, 1];
                call!(
                    self,
                    "PMPI_Type_create_darray_c",
                    (
                        c_int,
                        c_int,
                        c_int,
                        *const i64,
                        *const c_int,
                        *const c_int,
                        *const c_int,
                        c_int,
                        usize,
                        *mut usize
                    ),
                    (
                        2,
                        random.below(2) as c_int,
                        2,
                        sizes.as_ptr(),
                        kinds.as_ptr(),
                        arguments.as_ptr(),
                        grid.as_ptr(),
                        order,
                        of,
                        to
                    )
                );
                "darray_c"
            }
        };
        (made, name)
    }

    fn distribute(&self, random: &mut Random, mpi: &Mpi, order: c_int, of: usize, to: *mut usize) {
        let numbers = mpi.constants().numbers;
        let dimensions = 1 + random.below(3);
        let sizes = random.many(dimensions, 1, 7);
        let (mut kinds, mut arguments, mut grid) = (Vec::new(), Vec::new(), Vec::new());
        for size in &sizes {
            let processes = 1 + random.below(3) as c_int;
            let (kind, argument, processes) = match random.below(5) {
                0 => (numbers.distribute_none, numbers.distribute_default, 1),
                1 => (numbers.distribute_block, numbers.distribute_default, processes),
                2 => (numbers.distribute_block, (size + processes - 1) / processes + 1, processes),
                3 => (numbers.distribute_cyclic, numbers.distribute_default, processes),
                _ => (numbers.distribute_cyclic, 1 + random.below(3) as c_int, processes),
            };
            kinds.push(kind);
            arguments.push(argument);
            grid.push(processes);
        }
        let processes: c_int = grid.iter().product();
        let rank = random.below(processes as u64) as c_int;
        let code = attempt!(
            self,
            "PMPI_Type_create_darray",
            (
                c_int,
                c_int,
                c_int,
                *const c_int,
                *const c_int,
                *const c_int,
                *const c_int,
                c_int,
                usize,
                *mut usize
            ),
            (
                processes,
                rank,
                dimensions as c_int,
                sizes.as_ptr(),
                kinds.as_ptr(),
                arguments.as_ptr(),
                grid.as_ptr(),
                order,
                of,
                to
            )
        );
        // Open MPI refuses some that the standard allows.
        if code != 0 {
            assert_eq!(mpi.abi(), Abi::OpenMpi, "PMPI_Type_create_darray failed");
            call!(self, "PMPI_Type_dup", (usize, *mut usize), (of, to));
        }
    }
}
