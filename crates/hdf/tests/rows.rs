//! A file of HDF5 behaves as the row of bytes that its schema describes, however it stores it.

use drepl::definition::Scalar;
use hdf::{Dataset, Element, Error, HdfFile, Member, Schema, Storage};
use proptest::prelude::*;

fn numbers(path: &str, start: u64, shape: &[u64], storage: Storage) -> Dataset {
    let element = Element::Number(Scalar::Float64);
    Dataset { path: path.to_owned(), start, element, shape: shape.to_vec(), storage }
}

fn point() -> Element {
    let vector =
        Element::Array { shape: vec![3], element: Box::new(Element::Number(Scalar::Float32)) };
    Element::Compound {
        members: vec![
            Member { name: "at".to_owned(), offset: 0, element: vector },
            Member {
                name: "mark".to_owned(),
                offset: 12,
                element: Element::Number(Scalar::Uint16),
            },
            Member { name: "text".to_owned(), offset: 14, element: Element::Text(5) },
        ],
        size: 19,
    }
}

/// More bytes than the schema has, and than the test reads.
const ROW: usize = 3000;

/// Everything that a schema can hold, with gaps between datasets.
fn schema() -> Schema {
    let chunked = |chunk: &[u64], deflate| Storage::Chunked { chunk: chunk.to_vec(), deflate };
    let points = |path: &str, start, storage| Dataset {
        path: path.to_owned(),
        start,
        element: point(),
        shape: vec![4, 3],
        storage,
    };
    Schema::new(vec![
        numbers("/single", 0, &[], Storage::Contiguous),
        numbers("/field/plain", 16, &[3, 5], Storage::Contiguous),
        numbers("/field/pieces", 144, &[4, 3, 6], chunked(&[2, 3, 4], None)),
        numbers("/field/pressed", 720, &[7, 9], chunked(&[3, 9], Some(6))),
        points("/points", 1230, Storage::Contiguous),
        points("/pressed points", 1470, chunked(&[1, 3], Some(1))),
    ])
    .expect("the datasets do not overlap")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn writes_and_reads_are_those_of_a_row_of_bytes(
        writes in prop::collection::vec((0..1800_usize, 0..700_usize, any::<u8>()), 1..12),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("row.h5");
        let schema = schema();
        let file = HdfFile::create(&path, &schema).expect("a new file");
        let mut row = vec![0_u8; ROW];
        for (start, length, seed) in writes {
            let data: Vec<u8> = (0..length).map(|i| seed.wrapping_mul(31).wrapping_add(i as u8)).collect();
            file.write_at(&data, start as u64).expect("a write");
            for dataset in schema.datasets() {
                let from = (dataset.start as usize).max(start);
                let to = (dataset.end() as usize).min(start + length);
                if from < to {
                    row[from..to].copy_from_slice(&data[from - start..to - start]);
                }
            }
            let mut found = vec![0xEE; length + 40];
            file.read_at(&mut found, start as u64).expect("a read");
            prop_assert_eq!(&found[..], &row[start..start + length + 40]);
        }
        file.sync().expect("a sync");
        drop(file);
        let again = HdfFile::open(&path, &schema, false).expect("the file");
        let mut found = vec![0xEE; ROW];
        again.read_at(&mut found, 0).expect("a read");
        prop_assert_eq!(found, row);
    }
}

#[test]
fn contiguous_content_is_written_past_the_library() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("plain.h5");
    let plain = Schema::new(vec![numbers("/a", 0, &[10_000], Storage::Contiguous)]).unwrap();
    let file = HdfFile::create(&path, &plain).expect("a new file");
    assert!(file.is_plain());
    let data: Vec<u8> = (0..80_000_u32).map(|i| (i % 251) as u8).collect();
    file.write_at(&data, 0).expect("a write");
    drop(file);
    let whole = std::fs::read(&path).expect("the file");
    let at = whole.windows(16).position(|bytes| bytes == &data[..16]).expect("its first bytes");
    assert_eq!(at % 4096, 0, "large datasets begin at a page");
    assert_eq!(&whole[at..at + data.len()], &data[..]);
}

#[test]
fn a_file_tells_what_it_holds() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("told.h5");
    drop(HdfFile::create(&path, &schema()).expect("a new file"));
    let (found, refused) = HdfFile::inspect(&path).expect("the file");
    assert!(refused.is_empty(), "{refused:?}");
    let mut expected: Vec<_> = schema().datasets().to_vec();
    expected.sort_by(|a, b| a.path.cmp(&b.path));
    let kinds = |datasets: &[Dataset]| -> Vec<(String, Vec<u64>, Element)> {
        datasets.iter().map(|d| (d.path.clone(), d.shape.clone(), d.element.clone())).collect()
    };
    assert_eq!(kinds(found.datasets()), kinds(&expected));
    assert!(found.datasets().iter().all(|dataset| dataset.start % 8 == 0));
    HdfFile::open(&path, &found, false).expect("what a file tells can be opened");
}

#[test]
fn what_is_not_as_expected_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("other.h5");
    let one = |shape: &[u64]| {
        Schema::new(vec![numbers("/a", 0, shape, Storage::Contiguous)]).expect("one dataset")
    };
    drop(HdfFile::create(&path, &one(&[4])).expect("a new file"));
    assert!(matches!(HdfFile::create(&path, &one(&[4])), Err(Error::Library { .. })));
    let Err(Error::Differs { found, expected, .. }) = HdfFile::open(&path, &one(&[5]), false)
    else {
        panic!("another shape is refused");
    };
    assert_eq!((found.as_str(), expected.as_str()), ("[4] float64", "[5] float64"));
    let missing = Schema::new(vec![numbers("/b", 0, &[4], Storage::Contiguous)]).unwrap();
    let error = HdfFile::open(&path, &missing, false).expect_err("a dataset is missing");
    assert!(error.to_string().contains("open the dataset /b"), "{error}");
    std::fs::write(&path, b"not a file of HDF5").expect("a file");
    let error = HdfFile::inspect(&path).expect_err("it is no HDF5 file");
    assert!(error.to_string().contains("open the file"), "{error}");
}

#[test]
fn impossible_schemas_are_refused() {
    let refused = |datasets: Vec<Dataset>| Schema::new(datasets).expect_err("refused").to_string();
    let plain = |path: &str, start, shape: &[u64]| numbers(path, start, shape, Storage::Contiguous);
    assert!(refused(vec![plain("/a", 0, &[2]), plain("/b", 8, &[2])]).contains("overlap"));
    assert!(refused(vec![plain("/a", 0, &[2]), plain("/a", 16, &[2])]).contains("twice"));
    assert!(refused(vec![plain("/a", 0, &[1 << 40, 1 << 30])]).contains("64 bits"));
    let chunk = Storage::Chunked { chunk: vec![0], deflate: None };
    assert!(refused(vec![numbers("/a", 0, &[2], chunk)]).contains("at least 1"));
    let level = Storage::Chunked { chunk: vec![1], deflate: Some(10) };
    assert!(refused(vec![numbers("/a", 0, &[2], level)]).contains("gzip"));
}

#[test]
fn text_opens_as_an_array_of_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("text.h5");
    let with = |element, storage| {
        let dataset = Dataset { path: "/t".to_owned(), start: 0, element, shape: vec![2], storage };
        Schema::new(vec![dataset]).expect("one dataset")
    };
    let bytes =
        Element::Array { shape: vec![3], element: Box::new(Element::Number(Scalar::Uint8)) };
    for storage in [Storage::Contiguous, Storage::Chunked { chunk: vec![2], deflate: Some(1) }] {
        let _ = std::fs::remove_file(&path);
        let file = HdfFile::create(&path, &with(Element::Text(3), storage.clone())).expect("new");
        file.write_at(b"abcde\0", 0).expect("a write");
        drop(file);
        let file = HdfFile::open(&path, &with(bytes.clone(), storage), false).expect("alike");
        let mut found = [0; 6];
        file.read_at(&mut found, 0).expect("a read");
        assert_eq!(&found, b"abcde\0");
    }
}

#[test]
fn arrays_within_elements_are_further_dimensions_of_other_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("nested.h5");
    let with = |shape: &[u64], inner: &[u64], storage| {
        let number = Element::Number(Scalar::Int16);
        let element = match inner {
            [] => number,
            inner => Element::Array { shape: inner.to_vec(), element: Box::new(number) },
        };
        let shape = shape.to_vec();
        let dataset = Dataset { path: "/t".to_owned(), start: 8, element, shape, storage };
        Schema::new(vec![dataset]).expect("one dataset")
    };
    let bytes: Vec<u8> = (0..48).collect();
    for is_chunked in [false, true] {
        let storage = |chunk: &[u64]| match is_chunked {
            true => Storage::Chunked { chunk: chunk.to_vec(), deflate: Some(1) },
            false => Storage::Contiguous,
        };
        let flat = with(&[2, 3, 4], &[], storage(&[1, 2, 3]));
        let nested = with(&[2], &[3, 4], storage(&[1]));
        for (made, opened) in [(&flat, &nested), (&nested, &flat)] {
            let _ = std::fs::remove_file(&path);
            drop(HdfFile::create(&path, made).expect("new"));
            let file = HdfFile::open(&path, opened, true).expect("alike");
            for at in [5, 0, 31, 20] {
                let piece = &bytes[at..(at + 17).min(48)];
                file.write_at(piece, 8 + at as u64).expect("a write");
            }
            drop(file);
            let file = HdfFile::open(&path, made, false).expect("what it was made from");
            let mut found = vec![0; 48];
            file.read_at(&mut found, 8).expect("a read");
            assert_eq!(found, bytes);
        }
        let other = with(&[3], &[2, 4], storage(&[1]));
        assert!(matches!(HdfFile::open(&path, &other, false), Err(Error::Differs { .. })));
    }
}
