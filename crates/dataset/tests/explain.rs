//! What is said of a definition.

mod support;

use dataset::Explanation;
use support::Scratch;

#[test]
fn offsets_replicas_and_costs_are_told() {
    let scratch = Scratch::new();
    let path = scratch.definition(
        "points.drepl",
        "dataset { const N = 1000; type Point struct { a, b, c float64 }; var data [N]Point; var n int16 }
         view aos { var n = n; var data = data }
         view b { var b[i] = data[i].b }
         replica one complete { view aos }
         replica two near 1 { view b }
         replica late async { view b }",
    );
    let found = Explanation::of(&path).expect("it can be laid out");
    let names: Vec<&str> = found.views.iter().map(|view| &*view.name).collect();
    assert_eq!(names, ["aos", "b"]);
    let [n, data] = found.views[0].variables.as_slice() else { panic!("two variables") };
    assert_eq!((n.offset, n.size, data.offset, data.size), (0, 2, 8, 24_000));
    assert_eq!((data.moved, data.missing), (24_000, 0));
    assert_eq!(data.replicas, ["one"]);
    assert_eq!(found.views[0].size, 24_008);
    let b = &found.views[1].variables[0];
    assert_eq!((b.replicas.as_slice(), b.touched), (["two".to_owned()].as_slice(), 8000));
    assert_eq!(found.replicas[0], ("one".to_owned(), vec![24_008]));
    assert!(!path.with_file_name(".points.drepl.sluice").exists(), "nothing is begun");

    let alone = scratch.definition(
        "alone.drepl",
        "dataset { var data [1000]struct { a, b, c float64 } }
         view aos { var data = data }
         view b { var b[i] = data[i].b }
         replica one { view aos }",
    );
    let b = Explanation::of(&alone).expect("it can be laid out").views[1].variables[0].clone();
    assert_eq!((b.moved, b.replicas.as_slice()), (8000, ["one".to_owned()].as_slice()));
    assert!((23_000..=24_000).contains(&b.touched), "{}", b.touched);
}
