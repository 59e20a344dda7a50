//! Asking the library how a datatype was made.

use std::ffi::{c_int, c_void};

use crate::abi::Combiner;
use crate::calls::check;
use crate::flat::{Distribution, FlatError, Made, Order, Type};
use crate::handle::Room;
use crate::{Datatype, Flat, Mpi, MpiError};

/// Deeper nesting than programs have; each level costs a stack frame in the program's own thread.
const LEVELS_MAX: usize = 64;

/// The arguments of the call that made a type.
struct Arguments {
    /// `I` of MPI-4.1 §5.1.13. In the large-count form counts are in `counts` instead.
    integers: Vec<i64>,
    /// `A`.
    addresses: Vec<i64>,
    /// `C`; empty unless the type was made by a large-count call.
    counts: Vec<i64>,
    /// `D`: own references, which are given back when this is dropped.
    datatypes: Vec<Datatype>,
}

/// The numbers of a type that was made with `int` counts, in the order in which the large-count form
/// has them: that is where the two forms agree.
struct Reader<'a> {
    numbers: std::slice::Iter<'a, i64>,
}

impl<'a> Reader<'a> {
    fn new(numbers: &'a [i64]) -> Self {
        Self { numbers: numbers.iter() }
    }

    fn next(&mut self) -> Result<i64, MpiError> {
        self.numbers.next().copied().ok_or(MpiError::Malformed)
    }

    fn count(&mut self) -> Result<u64, MpiError> {
        u64::try_from(self.next()?).map_err(|_| MpiError::Malformed)
    }

    fn many(&mut self, count: u64) -> Result<&'a [i64], MpiError> {
        let count = usize::try_from(count).map_err(|_| MpiError::Malformed)?;
        let all = self.numbers.as_slice();
        let (taken, rest) = all.split_at_checked(count).ok_or(MpiError::Malformed)?;
        self.numbers = rest.iter();
        Ok(taken)
    }

    fn counts(&mut self, count: u64) -> Result<Vec<u64>, MpiError> {
        let all = self.many(count)?.iter();
        all.map(|&value| u64::try_from(value).map_err(|_| MpiError::Malformed)).collect()
    }
}

impl Mpi {
    /// The number of bytes of data in a datatype.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn type_size(&self, datatype: Datatype) -> Result<u64, MpiError> {
        let mut size = 0;
        // SAFETY: a handle of this library, and a Count to fill.
        check!("MPI_Type_size_x", unsafe { (self.calls.type_size)(datatype.word(), &mut size) })?;
        u64::try_from(size).map_err(|_| MpiError::Malformed)
    }

    /// The lower bound of a datatype and its extent, in bytes.
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn type_extent(&self, datatype: Datatype) -> Result<(i64, i64), MpiError> {
        let (mut lower_bound, mut extent) = (0, 0);
        // SAFETY: a handle of this library, and two Aint to fill.
        check!("MPI_Type_get_extent", unsafe {
            (self.calls.type_extent)(datatype.word(), &mut lower_bound, &mut extent)
        })?;
        Ok((lower_bound, extent))
    }

    /// The name of a datatype: of a predefined one, that of its constant (MPI-4.1 §7.8).
    ///
    /// # Errors
    ///
    /// [`MpiError::Failed`].
    pub fn type_name(&self, datatype: Datatype) -> Result<String, MpiError> {
        /// Longer than MPI_MAX_OBJECT_NAME of all interfaces.
        const NAME_BYTES_MAX: usize = 1024;
        let mut name = vec![0u8; NAME_BYTES_MAX];
        let mut length = 0;
        // SAFETY: a handle of this library, room for the longest name, and an integer to fill.
        check!("MPI_Type_get_name", unsafe {
            (self.calls.type_name)(datatype.word(), name.as_mut_ptr().cast(), &mut length)
        })?;
        name.truncate(usize::try_from(length).unwrap_or(0).min(NAME_BYTES_MAX));
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// The name of the one predefined type that a datatype is made of; none if it is made of several.
    ///
    /// # Errors
    ///
    /// As of [`Mpi::layout`].
    pub fn element_name(&self, datatype: Datatype) -> Result<Option<String>, MpiError> {
        self.element_at(datatype, 0)
    }

    fn element_at(&self, datatype: Datatype, level: usize) -> Result<Option<String>, MpiError> {
        if level == LEVELS_MAX {
            return Err(MpiError::TooDeep { limit: LEVELS_MAX });
        }
        let (combiner, sizes) = self.envelope(datatype)?;
        let combiner =
            combiner.ok_or(MpiError::UnknownCombiner { combiner: sizes.combiner_number })?;
        if is_predefined(combiner) {
            return self.type_name(datatype).map(Some);
        }
        let arguments = self.contents(datatype, &sizes)?;
        let names: Result<Vec<_>, MpiError> =
            arguments.datatypes.iter().map(|&inner| self.element_at(inner, level + 1)).collect();
        for &inner in &arguments.datatypes {
            self.release(inner);
        }
        let mut names = names?.into_iter();
        let first = names.next().flatten();
        let all_same = names.all(|name| name == first);
        Ok(first.filter(|_| all_same))
    }

    /// A datatype in an array of a program's.
    ///
    /// # Safety
    ///
    /// An array of MPI_Datatype of this library that is longer than `at`.
    #[must_use]
    pub unsafe fn datatype_at(&self, array: *const c_void, at: usize) -> Datatype {
        let bytes = self.constants.handle_bytes;
        // SAFETY: the caller's promise; handles stand `bytes` apart.
        unsafe {
            let place = array.byte_add(at * bytes);
            self.datatype(if bytes == 8 {
                place.cast::<usize>().read_unaligned()
            } else {
                place.cast::<u32>().read_unaligned() as usize
            })
        }
    }

    /// Which bytes an instance of a datatype consists of.
    ///
    /// # Errors
    ///
    /// As of [`Mpi::layout`], and [`MpiError::Flat`] where its numbers overflow.
    pub fn flatten(&self, datatype: Datatype) -> Result<Flat, MpiError> {
        Ok(Flat::of(&self.layout(datatype)?)?)
    }

    /// How a datatype was made, down to predefined types.
    ///
    /// # Errors
    ///
    /// [`MpiError`]: where the library fails, or the type was made in a way that is not known.
    ///
    /// # Source
    ///
    /// MPI-4.1 §5.1.13.
    pub fn layout(&self, datatype: Datatype) -> Result<Type, MpiError> {
        self.describe(datatype, 0)
    }

    /// Gives back a datatype that the library handed out; predefined ones have no owner.
    pub fn release(&self, datatype: Datatype) {
        let made_by_program = match self.envelope(datatype) {
            Ok((Some(combiner), _)) => !is_predefined(combiner),
            Ok((None, _)) => true,
            Err(_) => false,
        };
        if made_by_program {
            let mut room = Room::holding(datatype.word());
            // SAFETY: our own reference to a derived type.
            unsafe { (self.calls.type_free)(room.address()) };
        }
    }

    fn describe(&self, datatype: Datatype, level: usize) -> Result<Type, MpiError> {
        if level == LEVELS_MAX {
            return Err(MpiError::TooDeep { limit: LEVELS_MAX });
        }
        let size = self.type_size(datatype)?;
        let (lower_bound, extent) = self.type_extent(datatype)?;
        let (combiner, sizes) = self.envelope(datatype)?;
        let combiner =
            combiner.ok_or(MpiError::UnknownCombiner { combiner: sizes.combiner_number })?;
        let made = if is_predefined(combiner) {
            self.predefined(datatype, size, extent)?
        } else {
            let arguments = self.contents(datatype, &sizes)?;
            let inner: Result<Vec<Type>, MpiError> =
                arguments.datatypes.iter().map(|&inner| self.describe(inner, level + 1)).collect();
            for &inner in &arguments.datatypes {
                self.release(inner);
            }
            self.made(combiner, &arguments, inner?)?
        };
        Ok(Type { size, lower_bound, extent, made })
    }

    /// The bytes of a predefined type. Only the pairs of MPI_MINLOC have gaps (MPI-4.1 §6.9.4).
    fn predefined(&self, datatype: Datatype, size: u64, extent: i64) -> Result<Made, MpiError> {
        let types = &self.constants.types;
        let dense = u64::try_from(extent).is_ok_and(|extent| extent == size)
            || size == 0
            || [types.long_int, types.double_int, types.long_double_int].contains(&datatype);
        if dense {
            return Ok(Made::Dense);
        }
        if datatype == types.short_int {
            // short, two bytes of padding, int: the C structure.
            return Ok(Made::Blocks(vec![(0, 2), (4, 4)]));
        }
        Err(MpiError::UnknownGaps { size, extent })
    }

    /// How a type was made, and how many arguments that took.
    fn envelope(&self, datatype: Datatype) -> Result<(Option<Combiner>, Sizes), MpiError> {
        let mut sizes = Sizes::default();
        if let Some(large) = &self.large {
            let Sizes { integers, addresses, counts, datatypes, combiner_number } = &mut sizes;
            // SAFETY: a handle of this library, four Counts and an integer to fill.
            check!("MPI_Type_get_envelope_c", unsafe {
                (large.type_envelope)(
                    datatype.word(),
                    integers,
                    addresses,
                    counts,
                    datatypes,
                    combiner_number,
                )
            })?;
        } else {
            let (mut integers, mut addresses, mut datatypes) = (0, 0, 0);
            // SAFETY: a handle of this library, and four integers to fill.
            check!("MPI_Type_get_envelope", unsafe {
                (self.calls.type_envelope)(
                    datatype.word(),
                    &mut integers,
                    &mut addresses,
                    &mut datatypes,
                    &mut sizes.combiner_number,
                )
            })?;
            sizes.integers = integers.into();
            sizes.addresses = addresses.into();
            sizes.datatypes = datatypes.into();
        }
        Ok((self.constants.numbers.combiner(sizes.combiner_number), sizes))
    }

    fn contents(&self, datatype: Datatype, sizes: &Sizes) -> Result<Arguments, MpiError> {
        let length = |count: i64| usize::try_from(count).map_err(|_| MpiError::Malformed);
        let mut integers: Vec<c_int> = vec![0; length(sizes.integers)?];
        let mut addresses = vec![0i64; length(sizes.addresses)?];
        let mut counts = vec![0i64; length(sizes.counts)?];
        let mut datatypes = vec![0u64; length(sizes.datatypes)?];
        // `counts` is only ever asked for by the large-count form, whose envelope gave its length.
        if let Some(large) = &self.large {
            // SAFETY: the arrays are as long as the library said; that of datatypes has a whole word
            // for each handle.
            check!("MPI_Type_get_contents_c", unsafe {
                (large.type_contents)(
                    datatype.word(),
                    sizes.integers,
                    sizes.addresses,
                    sizes.counts,
                    sizes.datatypes,
                    integers.as_mut_ptr(),
                    addresses.as_mut_ptr(),
                    counts.as_mut_ptr(),
                    datatypes.as_mut_ptr().cast(),
                )
            })?;
        } else {
            // SAFETY: as above.
            check!("MPI_Type_get_contents", unsafe {
                (self.calls.type_contents)(
                    datatype.word(),
                    integers.len() as c_int,
                    addresses.len() as c_int,
                    datatypes.len() as c_int,
                    integers.as_mut_ptr(),
                    addresses.as_mut_ptr(),
                    datatypes.as_mut_ptr().cast(),
                )
            })?;
        }
        let count = datatypes.len();
        Ok(Arguments {
            integers: integers.into_iter().map(i64::from).collect(),
            addresses,
            counts,
            datatypes: self.handles(&datatypes, count),
        })
    }

    /// Puts a type's arguments in order. In the large-count form what used to be `int` or `Aint` is a
    /// Count, in the same order; only subarrays and distributed arrays keep some integers.
    fn made(
        &self,
        combiner: Combiner,
        arguments: &Arguments,
        mut inner: Vec<Type>,
    ) -> Result<Made, MpiError> {
        let is_large = !arguments.counts.is_empty();
        // Counts and displacements one after the other.
        let numbers: Vec<i64> = if is_large {
            arguments.counts.clone()
        } else {
            arguments.integers.iter().chain(&arguments.addresses).copied().collect()
        };
        let mut numbers = Reader::new(&numbers);
        if combiner == Combiner::Struct {
            let count = numbers.count()?;
            let lengths = numbers.counts(count)?;
            let displacements = numbers.many(count)?;
            if inner.len() as u64 != count {
                return Err(MpiError::Malformed);
            }
            let places = displacements.iter().copied().zip(lengths);
            let fields = places.zip(inner).map(|((at, length), of)| (at, length, of));
            return Ok(Made::Struct(fields.collect()));
        }
        let of = Box::new(inner.pop().ok_or(MpiError::Malformed)?);
        match combiner {
            Combiner::Dup | Combiner::Resized => Ok(Made::Same(of)),
            Combiner::Contiguous => Ok(Made::Contiguous { count: numbers.count()?, of }),
            Combiner::Vector => {
                let (count, length) = (numbers.count()?, numbers.count()?);
                let stride = scaled(&[numbers.next()?], of.extent)?[0];
                Ok(Made::Vector { count, length, stride, of })
            }
            Combiner::Hvector => {
                let (count, length) = (numbers.count()?, numbers.count()?);
                Ok(Made::Vector { count, length, stride: numbers.next()?, of })
            }
            Combiner::Indexed | Combiner::Hindexed => {
                let count = numbers.count()?;
                let lengths = numbers.counts(count)?;
                let unit = if combiner == Combiner::Indexed { of.extent } else { 1 };
                let displacements = scaled(numbers.many(count)?, unit)?;
                Ok(Made::Indexed { places: displacements.into_iter().zip(lengths).collect(), of })
            }
            Combiner::IndexedBlock | Combiner::HindexedBlock => {
                let (count, length) = (numbers.count()?, numbers.count()?);
                let unit = if combiner == Combiner::IndexedBlock { of.extent } else { 1 };
                let displacements = scaled(numbers.many(count)?, unit)?;
                let places = displacements.into_iter().map(|at| (at, length)).collect();
                Ok(Made::Indexed { places, of })
            }
            Combiner::Subarray => {
                let mut integers = Reader::new(&arguments.integers);
                let dimensions = integers.count()?;
                let numbers = if is_large { &mut numbers } else { &mut integers };
                let sizes = numbers.counts(dimensions)?;
                let subsizes = numbers.counts(dimensions)?;
                let starts = numbers.counts(dimensions)?;
                let order = self.order(integers.next()?)?;
                Ok(Made::Subarray { sizes, subsizes, starts, order, of })
            }
            Combiner::Darray => {
                let mut integers = Reader::new(&arguments.integers);
                let _processes = integers.count()?;
                let rank = integers.count()?;
                let dimensions = integers.count()?;
                let numbers = if is_large { &mut numbers } else { &mut integers };
                let sizes = numbers.counts(dimensions)?;
                let kinds = integers.many(dimensions)?;
                let arguments = integers.many(dimensions)?;
                let grid = integers.counts(dimensions)?;
                let order = self.order(integers.next()?)?;
                let distributions: Result<Vec<_>, _> = kinds
                    .iter()
                    .zip(arguments)
                    .map(|(&kind, &argument)| self.distribution(kind, argument))
                    .collect();
                let distributions = distributions?;
                // Intel MPI 2021.18 steps by the inner type's extent within a cyclic block of several
                // elements, also where the dimension is not the contiguous one.
                let in_blocks = |dealt: &Distribution| matches!(dealt, Distribution::Cyclic(2..));
                if self.version.contains("Intel(R) MPI") && distributions.iter().any(in_blocks) {
                    return Err(MpiError::Contradicted);
                }
                Ok(Made::Darray { rank, sizes, distributions, grid, order, of })
            }
            Combiner::Named | Combiner::Fortran | Combiner::ValueIndex | Combiner::Struct => {
                Err(MpiError::Malformed)
            }
        }
    }

    fn order(&self, number: i64) -> Result<Order, MpiError> {
        let numbers = self.constants.numbers;
        match number {
            number if number == i64::from(numbers.order_c) => Ok(Order::C),
            number if number == i64::from(numbers.order_fortran) => Ok(Order::Fortran),
            _ => Err(MpiError::Malformed),
        }
    }

    fn distribution(&self, kind: i64, argument: i64) -> Result<Distribution, MpiError> {
        let numbers = self.constants.numbers;
        let argument = if argument == i64::from(numbers.distribute_default) {
            None
        } else {
            Some(u64::try_from(argument).map_err(|_| MpiError::Malformed)?)
        };
        match kind {
            kind if kind == i64::from(numbers.distribute_block) => {
                Ok(Distribution::Block(argument))
            }
            kind if kind == i64::from(numbers.distribute_cyclic) => {
                Ok(Distribution::Cyclic(argument.unwrap_or(1)))
            }
            kind if kind == i64::from(numbers.distribute_none) => Ok(Distribution::None),
            _ => Err(MpiError::Malformed),
        }
    }
}

/// Displacements in bytes.
fn scaled(displacements: &[i64], unit: i64) -> Result<Vec<i64>, MpiError> {
    let bytes = |at: &i64| at.checked_mul(unit).ok_or(MpiError::Flat(FlatError::Overflow));
    displacements.iter().map(bytes).collect()
}

/// How many arguments made a type.
#[derive(Default)]
struct Sizes {
    integers: i64,
    addresses: i64,
    counts: i64,
    datatypes: i64,
    combiner_number: c_int,
}

fn is_predefined(combiner: Combiner) -> bool {
    matches!(combiner, Combiner::Named | Combiner::Fortran | Combiner::ValueIndex)
}
