//! Views of a small dataset, read and written.

mod support;

use std::sync::Arc;

use dataset::{Dataset, DatasetStore, Error, Options};
use p9::{Errno, OpenFlags};
use store::Store;
use support::{Random, Scratch, floats};

const POINTS: &str = "
dataset {
    const N = 1000
    type Point struct { a, b, c float32 }
    var data [N]Point
}
view aos { var data = data }
view soa { var a[i] = data[i].a; var b[i] = data[i].b; var c[i] = data[i].c }
view b { var b [] { b } = data }
view fifth { var d[i] = data[i*5] }
";

fn point(i: usize) -> [f32; 3] {
    [i as f32, 1000.0 + i as f32, 2000.0 + i as f32]
}

fn expected() -> (Vec<f32>, Vec<f32>, Vec<f32>, Vec<f32>) {
    let aos: Vec<f32> = (0..1000).flat_map(point).collect();
    let soa = (0..3).flat_map(|field| (0..1000).map(move |i| point(i)[field])).collect();
    let b = (0..1000).map(|i| point(i)[1]).collect();
    let fifth = (0..1000).step_by(5).flat_map(point).collect();
    (aos, soa, b, fifth)
}

fn check_all(dataset: &Dataset) {
    let (aos, soa, b, fifth) = expected();
    for (name, values) in [("aos", aos), ("soa", soa), ("b", b), ("fifth", fifth)] {
        let view = dataset.view(name).unwrap();
        let mut bytes = vec![0; dataset.size(view) as usize + 10];
        let len = dataset.read(view, 0, &mut bytes).unwrap();
        assert_eq!(len, 4 * values.len(), "{name}");
        assert_eq!(floats(&bytes[..len]), values, "{name}");
    }
}

#[test]
fn what_is_written_through_one_view_is_read_through_all() {
    for replicas in [
        "replica one { view aos }",
        "replica one { view soa }",
        "replica one { view soa }; replica two { view b }",
        "replica one complete { view b }",
        "replica one complete { view fifth }; replica two { view b }",
        "replica one { view aos }; replica two async { view soa }; replica three on-close { view b }",
        "replica one { view aos; view b; view soa }",
    ] {
        for written in ["aos", "soa"] {
            let scratch = Scratch::new();
            let path = scratch.definition("points.drepl", &format!("{POINTS}{replicas}"));
            let dataset = Dataset::open(&path, &Options::default()).unwrap();
            let (aos, soa, ..) = expected();
            let values = if written == "aos" { aos } else { soa };
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let view = dataset.view(written).unwrap();
            for (index, piece) in bytes.chunks(777).enumerate() {
                let offset = 777 * index as u64;
                assert_eq!(dataset.write(view, offset, piece).unwrap(), piece.len());
            }
            check_all(&dataset);
            dataset.sync().unwrap();
            check_all(&dataset);
            drop(dataset);
            let dataset = Dataset::open(&path, &Options::default()).unwrap();
            check_all(&dataset);
        }
    }
}

#[test]
fn views_that_are_strewn_over_a_file_are_read_in_large_pieces() {
    let matrix = "
        dataset { const N = 2048; var m [N, N]float64 }
        view m { var m = m }
        view t { var t[i, j] = m[j, i] }
        view every8 { var e[i, j] = m[i*8, j*8] }
        view rows { var r[i, j] = m[i*2, j] }
        replica one { view m }";
    let scratch = Scratch::new();
    let path = scratch.definition("m.drepl", matrix);
    let store = DatasetStore::new(Arc::new(Dataset::open(&path, &Options::default()).unwrap()));
    let open = |view: &str, flags| {
        let node = store.root().unwrap().walk(&[view.as_bytes()]).unwrap().end.unwrap();
        node.open(flags).unwrap()
    };
    for (view, is_strewn) in [("m", false), ("t", true), ("every8", true), ("rows", false)] {
        let pieces = |flags| open(view, flags).piece_bytes().is_some();
        assert_eq!(pieces(OpenFlags::empty()), is_strewn, "{view}");
        assert!(!pieces(OpenFlags::WRITE_ONLY), "{view}");
    }
}

/// The prototype that was published with the paper panics on each of these, or gives wrong data: arithmetic from the
/// right, views of one field, transposed and two-dimensional views that are not stored, reads across variables, several
/// views in a replica, read-only views that are not stored, views called `default`, replicas truncated at the start.
#[test]
fn what_the_published_prototype_gets_wrong() {
    let text = "
        dataset {
            const N = 10 - 3 - 2
            const M = 2*3+4
            type Point struct { a, b, c float32 }
            var data [N]Point
            var grid [3, M]int16
        }
        view default { var data = data; var grid = grid }
        view turned { var d [i, j] = grid[j, i] }
        view fields read-only { var b [] { b } = data; var grid = grid; var ac [i] { a, c } = data[i] }
        view same { var grid [i, j] = grid[i, j]; var data = data }
        replica one { view same; view default }";
    let scratch = Scratch::new();
    let path = scratch.definition("points.drepl", text);
    let bytes = Random::new(3).bytes(5 * 12 + 30 * 2);
    let (data, grid) = bytes.split_at(60);
    let field = |from: usize, len: usize| -> Vec<u8> {
        data.chunks_exact(12).flat_map(|point| &point[from..from + len]).copied().collect()
    };
    let of_ac = data.chunks_exact(12).flat_map(|point| [&point[..4], &point[8..]].concat());
    let turned: Vec<u8> = (0..10)
        .flat_map(|i| (0..3).map(move |j| 2 * (10 * j + i)))
        .flat_map(|at: usize| [grid[at], grid[at + 1]])
        .collect();
    let fields = [field(4, 4), grid.to_vec(), of_ac.collect()].concat();
    let expected = [
        ("default", bytes.clone()),
        ("turned", turned),
        ("fields", fields),
        ("same", [grid, data].concat()),
    ];
    for round in 0..2 {
        let dataset = Dataset::open(&path, &Options::default()).unwrap();
        if round == 0 {
            let view = dataset.view("default").unwrap();
            assert_eq!(dataset.write(view, 0, &bytes).unwrap(), 120);
        }
        for (name, whole) in &expected {
            let view = dataset.view(name).unwrap();
            assert_eq!(dataset.size(view), whole.len() as u64, "{name}");
            for start in 0..whole.len() {
                for end in start..=whole.len() {
                    let mut found = vec![0xEE; end - start];
                    assert_eq!(dataset.read(view, start as u64, &mut found).unwrap(), end - start);
                    assert_eq!(found, whole[start..end], "{name} {start}..{end}");
                }
            }
        }
        let store = DatasetStore::new(Arc::new(dataset));
        let fields = store.root().unwrap().walk(&[b"fields"]).unwrap().end.unwrap();
        let Err(error) = fields.open(OpenFlags::READ_WRITE) else { panic!("it is read-only") };
        assert_eq!(error.to_errno(), Errno::EROFS);
    }
}

#[test]
fn no_range_is_too_far_or_too_long() {
    let scratch = Scratch::new();
    let path = scratch.definition("points.drepl", &format!("{POINTS}replica one {{ view soa }}"));
    let dataset = Dataset::open(&path, &Options::default()).unwrap();
    let view = dataset.view("aos").unwrap();
    let mut model = vec![0; 12_000];
    let mut random = Random::new(29);
    let edges =
        [0, 1, 11, 12, 11_988, 11_999, 12_000, 12_001, 1 << 31, 1 << 32, 1 << 62, i64::MAX as u64];
    let edges = edges.into_iter().chain([1 << 63, u64::MAX - 12, u64::MAX - 1, u64::MAX]);
    let near = |edge: u64| [edge, edge.wrapping_sub(random.below(30) as u64)];
    let offsets: Vec<u64> = edges.flat_map(near).collect();
    for offset in offsets {
        for len in [0, 1, 4, 12, 13, 12_000, 30_000] {
            let at = usize::try_from(offset).unwrap_or(usize::MAX).min(model.len());
            let end = at.saturating_add(len).min(model.len());
            let mut found = vec![0xEE; len];
            assert_eq!(dataset.read(view, offset, &mut found).unwrap(), end - at);
            assert_eq!(found[..end - at], model[at..end]);
            assert!(found[end - at..].iter().all(|&byte| byte == 0xEE), "behind what was read");
            let data = random.bytes(len);
            match dataset.write(view, offset, &data) {
                Ok(written) => {
                    assert_eq!(written, end - at, "{offset} {len}");
                    model[at..end].copy_from_slice(&data[..end - at]);
                }
                Err(error) => {
                    assert_eq!(error.to_errno(), Errno::EFBIG, "{offset} {len}");
                    assert!(offset >= 12_000 && len > 0, "{offset} {len}");
                }
            }
        }
    }
    let mut found = vec![0; 12_000];
    assert_eq!(dataset.read(view, 0, &mut found).unwrap(), 12_000);
    assert!(found == model, "other bytes");
}

#[test]
fn elements_that_no_sync_replica_stores_are_not_served_as_zeros() {
    let opened = |replicas: &str| {
        let scratch = Scratch::new();
        let odd = "view odd { var d[i] = data[2*i + 1] }; view even { var d[i] = data[2*i] }";
        let path = scratch.definition("points.drepl", &format!("{POINTS}{odd}\n{replicas}"));
        Dataset::open(&path, &Options::default()).map(drop)
    };
    opened("replica one { view odd }; replica two { view even }").unwrap();
    for replicas in [
        "replica one { view odd }",
        "replica one { view fifth }; replica two { view even }",
        "replica one { view odd }; replica two async { view even }",
    ] {
        let Err(error) = opened(replicas) else { panic!("{replicas}: it is served") };
        assert!(matches!(&error, Error::Unheld { view, .. } if view == "aos"), "{error}");
    }
}

#[test]
fn an_array_that_may_grow_needs_a_place_for_its_elements_before_it_has_any() {
    let text = "
        dataset { var n int32; var grid [3, n]float32 }
        view all { var n = n; var grid = grid }
        view some { var n = n; var first [j] = grid[0, j]; var last [j] = grid[2, j] }
        view middle { var middle [j] = grid[1, j] }";
    let opened = |replicas: &str| {
        let scratch = Scratch::new();
        let path = scratch.definition("grid.drepl", &format!("{text}\n{replicas}"));
        Dataset::open(&path, &Options::default()).map(drop)
    };
    opened("replica one { view some; view middle }").unwrap();
    let Err(error) = opened("replica one { view some }") else { panic!("it is served") };
    assert!(matches!(&error, Error::Unheld { view, .. } if view == "all"), "{error}");
}
