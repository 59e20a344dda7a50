//! Layouts against a byte-by-byte model of the type map.

use proptest::prelude::*;

use super::{Distribution, Flat, FlatError, Made, Order, Shape, Type};

fn dense(size: u64) -> Type {
    Type { size, lower_bound: 0, extent: size as i64, made: Made::Dense }
}

/// The offset of each byte, in the order of the type map: MPI-4.1 §5.1, read literally.
fn bytes(of: &Type) -> Vec<i64> {
    let several = |of: &Type, at: i64, count: u64| -> Vec<i64> {
        let one = bytes(of);
        let instance = |index: u64| {
            one.iter().map(move |byte| at + index as i64 * of.extent + byte).collect::<Vec<_>>()
        };
        (0..count).flat_map(instance).collect()
    };
    match &of.made {
        Made::Dense => (0..of.size as i64).collect(),
        Made::Blocks(blocks) => {
            blocks.iter().flat_map(|&(at, length)| at..at + length as i64).collect()
        }
        Made::Same(of) => bytes(of),
        Made::Contiguous { count, of } => several(of, 0, *count),
        Made::Vector { count, length, stride, of } => {
            (0..*count).flat_map(|index| several(of, index as i64 * stride, *length)).collect()
        }
        Made::Indexed { places, of } => {
            places.iter().flat_map(|&(at, length)| several(of, at, length)).collect()
        }
        Made::Struct(fields) => {
            fields.iter().flat_map(|(at, length, of)| several(of, *at, *length)).collect()
        }
        Made::Subarray { sizes, subsizes, starts, order, of } => {
            let is_mine = |dimension: usize, index: u64| {
                (starts[dimension]..starts[dimension] + subsizes[dimension]).contains(&index)
            };
            elements(sizes, *order, is_mine)
                .into_iter()
                .flat_map(|at| several(of, at * of.extent, 1))
                .collect()
        }
        Made::Darray { rank, sizes, distributions, grid, order, of } => {
            let coordinate = |dimension: usize| {
                let behind: u64 = grid[dimension + 1..].iter().product();
                rank / behind % grid[dimension]
            };
            let is_mine = |dimension: usize, index: u64| match distributions[dimension] {
                Distribution::None => true,
                Distribution::Block(length) => {
                    let length = length.unwrap_or(sizes[dimension].div_ceil(grid[dimension]));
                    index / length == coordinate(dimension)
                }
                Distribution::Cyclic(length) => {
                    index / length % grid[dimension] == coordinate(dimension)
                }
            };
            elements(sizes, *order, is_mine)
                .into_iter()
                .flat_map(|at| several(of, at * of.extent, 1))
                .collect()
        }
    }
}

/// The positions in an array of the elements whose indices are wanted, in the array's order.
fn elements(sizes: &[u64], order: Order, is_mine: impl Fn(usize, u64) -> bool) -> Vec<i64> {
    let total: u64 = sizes.iter().product();
    let mut wanted = Vec::new();
    for position in 0..total {
        let mut left = position;
        let mut fastest_first: Vec<usize> = (0..sizes.len()).collect();
        if order == Order::C {
            fastest_first.reverse();
        }
        let all = fastest_first.into_iter().all(|dimension| {
            let index = left % sizes[dimension];
            left /= sizes[dimension];
            is_mine(dimension, index)
        });
        if all {
            wanted.push(position as i64);
        }
    }
    wanted
}

fn typed(made: Made, padding: i64) -> Type {
    let mut of = Type { size: 0, lower_bound: 0, extent: 0, made };
    let all = bytes(&of);
    of.size = all.len() as u64;
    let end = all.iter().max().map_or(0, |last| last + 1);
    of.lower_bound = all.iter().min().copied().unwrap_or(0);
    of.extent = end - of.lower_bound + padding;
    of
}

fn any_made(inner: BoxedStrategy<Type>) -> impl Strategy<Value = Made> {
    let of = inner.clone().prop_map(Box::new);
    let place = (-40i64..40, 0u64..4);
    let order = prop_oneof![Just(Order::C), Just(Order::Fortran)];
    let dimension = (1u64..5).prop_flat_map(|size| {
        (Just(size), 0..=size)
            .prop_flat_map(|(size, start)| (Just(size), Just(start), 0..=size - start))
    });
    let dealt = (1u64..7, 1u64..4, 0u64..4).prop_flat_map(|(size, processes, length)| {
        let block = size.div_ceil(processes) + length;
        let kind = prop_oneof![
            Just((Distribution::Block(None), processes)),
            Just((Distribution::Block(Some(block)), processes)),
            Just((Distribution::Cyclic(length + 1), processes)),
            Just((Distribution::None, 1)),
        ];
        (Just(size), kind)
    });
    prop_oneof![
        of.clone().prop_map(Made::Same),
        (0u64..5, of.clone()).prop_map(|(count, of)| Made::Contiguous { count, of }),
        (0u64..5, 0u64..4, -30i64..60, of.clone())
            .prop_map(|(count, length, stride, of)| Made::Vector { count, length, stride, of }),
        (prop::collection::vec(place.clone(), 0..6), of.clone())
            .prop_map(|(places, of)| Made::Indexed { places, of }),
        prop::collection::vec((place, inner), 0..4).prop_map(|fields| {
            let fields = fields.into_iter().map(|((at, length), of)| (at, length, of));
            Made::Struct(fields.collect())
        }),
        (prop::collection::vec(dimension, 1..4), order.clone(), of.clone()).prop_map(
            |(dimensions, order, of)| Made::Subarray {
                sizes: dimensions.iter().map(|(size, _, _)| *size).collect(),
                starts: dimensions.iter().map(|(_, start, _)| *start).collect(),
                subsizes: dimensions.iter().map(|(_, _, subsize)| *subsize).collect(),
                order,
                of,
            }
        ),
        (prop::collection::vec(dealt, 1..4), order, of, any::<u64>()).prop_map(
            |(dimensions, order, of, rank)| {
                let grid: Vec<u64> = dimensions.iter().map(|(_, (_, grid))| *grid).collect();
                Made::Darray {
                    rank: rank % grid.iter().product::<u64>(),
                    sizes: dimensions.iter().map(|(size, _)| *size).collect(),
                    distributions: dimensions.iter().map(|(_, (kind, _))| *kind).collect(),
                    grid,
                    order,
                    of,
                }
            }
        ),
    ]
}

fn any_type() -> impl Strategy<Value = Type> {
    let leaf =
        prop_oneof![(0u64..9).prop_map(dense), Just(typed(Made::Blocks(vec![(0, 2), (4, 4)]), 0)),];
    leaf.prop_recursive(3, 12, 4, |inner| {
        (any_made(inner.boxed()), 0i64..9).prop_map(|(made, padding)| typed(made, padding))
    })
    .prop_filter("small enough for the model", |of| of.size < 4096)
}

fn walked(shape: &Shape) -> Vec<i64> {
    shape.blocks().flat_map(|(offset, length)| offset..offset + length as i64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_shape_holds_the_bytes_of_the_type_map_in_order(of in any_type()) {
        let flat = Flat::of(&of).unwrap();
        prop_assert_eq!(walked(&flat.shape), bytes(&of));
    }

    #[test]
    fn instances_stand_at_the_distance_of_the_extent(of in any_type(), count in 0u64..4) {
        let flat = Flat::of(&of).unwrap();
        let one = bytes(&of);
        let all: Vec<i64> = (0..count as i64)
            .flat_map(|index| one.iter().map(move |byte| byte + index * of.extent))
            .collect();
        let repeated = flat.repeated(count).unwrap();
        prop_assert_eq!(walked(&repeated), all);
    }

    #[test]
    fn ascending_is_what_the_bytes_are(of in any_type()) {
        let flat = Flat::of(&of).unwrap();
        let all = bytes(&of);
        prop_assert_eq!(flat.shape.is_ascending(), all.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn blocks_do_not_touch(of in any_type()) {
        let flat = Flat::of(&of).unwrap();
        let blocks: Vec<(i64, u64)> = flat.shape.blocks().collect();
        for pair in blocks.windows(2) {
            prop_assert_ne!(pair[0].0 + pair[0].1 as i64, pair[1].0);
        }
        prop_assert!(blocks.iter().all(|(_, length)| *length > 0));
    }
}

#[test]
fn a_vector_of_a_million_blocks_is_one_repetition() {
    let made = Made::Vector { count: 1_000_000, length: 1, stride: 16, of: Box::new(dense(8)) };
    let of = Type { size: 8_000_000, lower_bound: 0, extent: 15_999_992, made };
    let flat = Flat::of(&of).unwrap();
    assert!(matches!(&flat.shape, Shape::Repeat { count: 1_000_000, stride: 16, .. }));
    assert_eq!(flat.shape.blocks().count(), 1_000_000);
    assert!(!flat.is_dense());
}

#[test]
fn equal_displacements_are_found_to_be_regular() {
    let places: Vec<(i64, u64)> = (0..1000).map(|index| (index * 24, 2)).collect();
    let made = Made::Indexed { places, of: Box::new(dense(8)) };
    let flat = Flat::of(&typed(made, 8)).unwrap();
    assert!(matches!(&flat.shape, Shape::Repeat { count: 1000, stride: 24, .. }));
    // With the padding that continues the pattern, tiles join into one repetition.
    assert!(matches!(flat.repeated(5).unwrap(), Shape::Repeat { count: 5000, stride: 24, .. }));
}

#[test]
fn a_whole_subarray_is_one_block() {
    let made = Made::Subarray {
        sizes: vec![4, 5, 6],
        subsizes: vec![2, 5, 6],
        starts: vec![1, 0, 0],
        order: Order::C,
        of: Box::new(dense(8)),
    };
    let of = Type { size: 480, lower_bound: 0, extent: 960, made };
    let flat = Flat::of(&of).unwrap();
    assert_eq!(flat.shape, Shape::Block { offset: 240, length: 480 });
}

#[test]
fn displacements_beyond_64_bits_are_refused() {
    let vector = |count, stride| Type {
        size: count,
        lower_bound: 0,
        extent: 1,
        made: Made::Vector { count, length: 1, stride, of: Box::new(dense(1)) },
    };
    assert_eq!(Flat::of(&vector(3, i64::MAX / 2 + 1)), Err(FlatError::Overflow));
    assert_eq!(Flat::of(&vector(u64::MAX, 2)), Err(FlatError::Overflow));
    assert!(Flat::of(&vector(2, i64::MAX - 1)).is_ok());
    assert_eq!(Flat::of(&vector(2, i64::MAX)), Err(FlatError::Overflow));
}

#[test]
fn a_size_that_mpi_does_not_confirm_is_refused() {
    let mut of = dense(8);
    of.made = Made::Contiguous { count: 2, of: Box::new(dense(8)) };
    assert_eq!(Flat::of(&of), Err(FlatError::Size { expected: 8, found: 16 }));
}
