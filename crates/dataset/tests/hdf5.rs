//! Replicas that are HDF5 files: programs write the layout they know, and HDF5 comes out.

mod support;

use std::path::{Path, PathBuf};

use dataset::{Condition, Dataset, Error, Options};
use drepl::definition::Scalar;
use hdf::{Element, HdfFile, Storage};
use support::{Random, Scratch};

const DATASET: &str = "
dataset {
    const N = 3000
    type Point struct { a, b float32; mark int16; name string6 }
    var step int64
    var data [N]Point
    var field [20,30]float64
}
view legacy bigendian header 100 records 4 { var step = step; var data = data; var field = field }
view table { var data = data; var step = step }
view fields { var a [] { a } = data; var b[i] = data[i].b; var mark[i] = data[i*3].mark }
view fortran rowminor { var field = field }
";

fn open(path: &Path) -> Dataset {
    Dataset::open(path, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn whole(dataset: &Dataset, view: &str) -> Vec<u8> {
    let view = dataset.view(view).unwrap();
    let mut bytes = vec![0; dataset.size(view) as usize];
    assert_eq!(dataset.read(view, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// Fills the dataset through the view of the old program, piece by piece and not in order.
fn fill(dataset: &Dataset) {
    let view = dataset.view("legacy").unwrap();
    let bytes = Random::new(11).bytes(dataset.size(view) as usize);
    for start in (0..bytes.len()).step_by(5000).rev() {
        let end = (start + 5000).min(bytes.len());
        assert_eq!(dataset.write(view, start as u64, &bytes[start..end]).unwrap(), end - start);
    }
}

/// A file in the directory of a definition.
fn beside(definition: &Path, name: &str) -> PathBuf {
    definition.with_file_name(name)
}

/// A dataset of an HDF5 file: its shape and its bytes.
fn content(path: &Path, name: &str) -> (Vec<u64>, Vec<u8>) {
    let (schema, refused) = HdfFile::inspect(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(refused.is_empty(), "{refused:?}");
    let found = schema.datasets().iter().find(|dataset| dataset.path == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {schema:?}"));
    let mut bytes = vec![0; found.size() as usize];
    let file = HdfFile::open(path, &schema, false).unwrap();
    file.read_at(&mut bytes, found.start).unwrap();
    (found.shape.clone(), bytes)
}

#[test]
fn what_an_old_program_writes_comes_out_as_hdf5() {
    let scratch = Scratch::new();
    let replicas = "
        replica \"raw.bin\" complete { view table }
        replica \"plain.h5\" hdf5 { view fields group \"/points\"; view table; view fortran }
        replica \"small.h5\" on-close hdf5 {
            view table group \"/\" split chunk [500] deflate 6
            view fortran group \"grid\" chunk [7,30] deflate 1
        }";
    let path = scratch.definition("run.drepl", &format!("{DATASET}{replicas}"));
    let dataset = open(&path);
    fill(&dataset);
    let table = whole(&dataset, "table");
    let fields = whole(&dataset, "fields");
    let fortran = whole(&dataset, "fortran");
    dataset.close().unwrap();
    drop(dataset);

    let plain = beside(&path, "plain.h5");
    assert_eq!(content(&plain, "/points/b"), (vec![3000], fields[12_000..24_000].to_vec()));
    assert_eq!(content(&plain, "/points/mark"), (vec![1000], fields[24_000..26_000].to_vec()));
    assert_eq!(content(&plain, "/table/data"), (vec![3000], table[..54_000].to_vec()));
    // The first index of the view runs fastest, which HDF5 says with the lengths in reverse.
    assert_eq!(content(&plain, "/fortran/field"), (vec![30, 20], fortran.clone()));

    let small = beside(&path, "small.h5");
    let field = |at: usize, size: usize| -> Vec<u8> {
        table[..54_000].chunks_exact(18).flat_map(|point| &point[at..at + size]).copied().collect()
    };
    assert_eq!(content(&small, "/data/a"), (vec![3000], field(0, 4)));
    assert_eq!(content(&small, "/data/b"), (vec![3000], field(4, 4)));
    assert_eq!(content(&small, "/data/mark"), (vec![3000], field(8, 2)));
    assert_eq!(content(&small, "/step").1, &table[54_000..]);
    assert_eq!(content(&small, "/grid/field"), (vec![30, 20], fortran));
    let (schema, _) = HdfFile::inspect(&small).unwrap();
    let of = |name: &str| schema.datasets().iter().find(|d| d.path == name).unwrap();
    let Storage::Chunked { chunk, .. } = &of("/data/a").storage else { panic!("chunks") };
    assert_eq!(chunk, &[500]);
    let Element::Compound { members, size: 8 } = &of("/data/name").element else {
        panic!("{}", of("/data/name").element)
    };
    assert_eq!(members[1].element, Element::Text(6));

    // Opened again, everything is as it was, from each of them.
    let dataset = open(&path);
    assert_eq!(whole(&dataset, "table"), table);
    assert!(dataset.replicas().iter().all(|(_, condition)| *condition == Condition::Fresh));
}

#[test]
fn an_hdf5_file_can_be_the_only_replica_and_one_that_was_there_before() {
    let scratch = Scratch::new();
    let number = |path: &str, start, number, shape: &[u64]| hdf::Dataset {
        path: path.to_owned(),
        start,
        element: Element::Number(number),
        shape: shape.to_vec(),
        storage: Storage::Contiguous,
    };
    let schema = hdf::Schema::new(vec![
        number("/x", 0, Scalar::Float64, &[100]),
        number("/deep/y", 800, Scalar::Int32, &[100, 2]),
        number("/not/mentioned", 1600, Scalar::Uint8, &[9]),
    ])
    .unwrap();
    let text = "dataset { var x [100]float64; var y [100,2]int32 }
        view root { var x = x }
        view deep { var y = y }
        view pairs bigendian { var x[i] = x[99-i]; var first[i] = y[i,0] }
        replica \"old.h5\" hdf5 { view root group \"/\"; view deep }";
    let path = scratch.definition("old.drepl", text);
    let old = beside(&path, "old.h5");
    let bytes = Random::new(3).bytes(1609);
    let made = HdfFile::create(&old, &schema).unwrap();
    made.write_at(&bytes, 0).unwrap();
    made.sync().unwrap();
    drop(made);

    let dataset = open(&path);
    assert_eq!(whole(&dataset, "root"), &bytes[..800]);
    assert_eq!(whole(&dataset, "deep"), &bytes[800..1600]);
    let pairs: Vec<u8> = bytes[..800]
        .chunks_exact(8)
        .rev()
        .flat_map(|x| x.iter().rev().copied())
        .chain(bytes[800..1600].chunks_exact(8).flat_map(|y| y[..4].iter().rev().copied()))
        .collect();
    assert_eq!(whole(&dataset, "pairs"), pairs);
    let view = dataset.view("pairs").unwrap();
    dataset.write(view, 803, &[1, 2, 3, 4, 5, 6]).unwrap();
    dataset.close().unwrap();
    drop(dataset);
    let (_, y) = content(&old, "/deep/y");
    assert_eq!((y[0], &y[8..12]), (1, &[5, 4, 3, 2][..]));
    assert_eq!(y[16 + 3], 6);
    assert_eq!(content(&old, "/not/mentioned").1, &bytes[1600..]);
}

#[test]
fn a_compressed_file_that_was_being_written_when_the_end_came_is_made_anew() {
    let scratch = Scratch::new();
    let replicas = "replica \"raw.bin\" complete { view table }
        replica \"small.h5\" on-close hdf5 { view fields deflate 5 }";
    let path = scratch.definition("run.drepl", &format!("{DATASET}{replicas}"));
    let dataset = open(&path);
    fill(&dataset);
    let fields = whole(&dataset, "fields");
    dataset.close().unwrap();
    drop(dataset);
    let small = beside(&path, "small.h5");
    let length = std::fs::metadata(&small).unwrap().len();
    let broken = std::fs::OpenOptions::new().write(true).open(&small).unwrap();
    broken.set_len(length / 3).unwrap();
    drop(broken);

    let dataset = open(&path);
    let Condition::Stale { reason } = &dataset.replicas()[1].1 else { panic!("it is stale") };
    assert!(reason.contains("small.h5"), "{reason}");
    assert_eq!(whole(&dataset, "fields"), fields);
    dataset.rebuild("small.h5", &mut |_, _| true).unwrap();
    dataset.close().unwrap();
    drop(dataset);
    assert_eq!(content(&small, "/fields/b").1, &fields[12_000..24_000]);
}

#[test]
fn what_hdf5_cannot_be_is_refused_with_the_reason() {
    for (replicas, words) in [
        ("replica \"a.h5\" complete hdf5 { view fields }", "views of everything"),
        (
            "replica r complete { view table }; replica \"a.h5\" hdf5 { view fields deflate 1 }",
            "on-close",
        ),
        (
            "replica r complete { view table }; replica \"a.h5\" hdf5 { view fields group \"/g\"; view table group \"/g/a\"; view fortran group \"/g\"; view legacy group \"/g\" }",
            "/g/field is there twice",
        ),
    ] {
        let scratch = Scratch::new();
        let path = scratch.definition("run.drepl", &format!("{DATASET}{replicas}"));
        let error = match Dataset::open(&path, &Options::default()) {
            Ok(_) => panic!("{replicas} is opened"),
            Err(error) => error,
        };
        assert!(error.to_string().contains(words), "{replicas}: {error}");
    }
    let scratch = Scratch::new();
    let path = scratch.definition(
        "v.drepl",
        "dataset { var n int32; var x [n]int8 }
        view v { var n = n; var x = x }
        replica \"a.h5\" hdf5 { view v }",
    );
    let error = Dataset::open(&path, &Options::default()).err().expect("refused");
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
}
