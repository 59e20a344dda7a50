//! HDF5 files become definitions whose replica they are.

use drepl::definition::Scalar;
use hdf::{Dataset, Element, HdfFile, Member, Schema, Storage};
use interchange::from_hdf5;

fn dataset(path: &str, start: u64, shape: &[u64], element: Element) -> Dataset {
    Dataset {
        path: path.into(),
        start,
        element,
        shape: shape.to_vec(),
        storage: Storage::Contiguous,
    }
}

#[test]
fn groups_become_views_and_datasets_variables() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.h5");
    let point = Element::Compound {
        members: vec![
            Member { name: "a".into(), offset: 0, element: Element::Number(Scalar::Float32) },
            Member { name: "s".into(), offset: 4, element: Element::Text(6) },
        ],
        size: 10,
    };
    let float = Element::Number(Scalar::Float64);
    let schema = Schema::new(vec![
        dataset("/time", 0, &[], float.clone()),
        dataset("/fields/density", 8, &[4, 5], float.clone()),
        dataset("/fields/points", 168, &[3], point),
        dataset("/fields/not a name", 200, &[2], float),
    ]);
    drop(HdfFile::create(&path, &schema.expect("they do not overlap")).expect("a new file"));
    let found = from_hdf5(&path, "run.h5").expect("it can be taken over");
    let text = drepl::print(&found.definition);
    let again = drepl::compile("f", &mut drepl::MemoryLoader::new("f", &text));
    let again = again.unwrap_or_else(|wrong| panic!("{}\n{text}", wrong.render(false)));
    assert_eq!(again.definition, found.definition, "{text}");
    let views: Vec<&str> = found.definition.views.iter().map(|view| &*view.name).collect();
    assert_eq!(views, ["root", "fields"]);
    for line in ["var fields_density [4, 5]float64", "[6]uint8", "group \"/fields\""] {
        assert!(text.contains(line), "{line}\nnot in\n{text}");
    }
    let [(left, reason)] = found.left_out.as_slice() else { panic!("{:?}", found.left_out) };
    assert_eq!(left, "/fields/not a name");
    assert!(reason.contains("letters"), "{reason}");
}
