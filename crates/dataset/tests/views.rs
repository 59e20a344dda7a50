//! Views of a small dataset, read and written.

mod support;

use dataset::{Dataset, Options};
use support::{Scratch, floats};

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
