//! What numpy describes becomes a definition that the language understands.

use drepl::definition::{ByteOrder, Definition, Order};
use interchange::{Place, from_npy, from_numpy, to_numpy};
use layout::{Layout, Lengths};

fn place(shape: &[u64]) -> Place {
    Place { name: "data".into(), file: "data.bin".into(), shape: shape.to_vec(), header: 0 }
}

fn size(definition: &Definition) -> u64 {
    let layout = Layout::new(definition).expect("it has a layout");
    layout.view(0, &Lengths::new()).expect("it can be placed").size()
}

/// The text of a definition, after it was compiled again.
fn text(definition: &Definition) -> String {
    let text = drepl::print(definition);
    let again = drepl::compile("data.drepl", &mut drepl::MemoryLoader::new("data.drepl", &text));
    let again = again.unwrap_or_else(|wrong| panic!("{}\n{text}", wrong.render(false)));
    assert_eq!(again.definition, *definition, "{text}");
    text
}

#[test]
fn dtypes_become_types_of_the_same_size() {
    for (dtype, bytes) in [
        ("<f4", 4),
        ("float64", 8),
        ("?", 1),
        ("c16", 16),
        ("S7", 7),
        ("<U3", 12),
        ("('<i2', (3, 4))", 24),
        ("[('a', '<f4'), ('b', '<f8')]", 12),
        ("[('a', '|u1'), ('', '|V3'), ('b', '<i4', (2,)), ('c', [('x', '<u8')])]", 20),
        (
            "{'names': ['b', 'a'], 'formats': ['<i4', '<f8'], 'offsets': [16, 0], 'itemsize': 24}",
            24,
        ),
        ("[('normal', '<f4', (3,)), ('points', '<f4', (3, 3)), ('attribute', '<u2')]", 50),
    ] {
        let one = from_numpy(dtype, &place(&[])).unwrap_or_else(|e| panic!("{dtype}: {e}"));
        assert_eq!(size(&one), bytes, "{dtype}");
        let many = from_numpy(dtype, &place(&[5, 2])).expect(dtype);
        assert_eq!(size(&many), 10 * bytes, "{dtype}");
        text(&many);
    }
}

#[test]
fn byte_orders_are_kept_and_not_mixed() {
    let big = from_numpy("[('a', '>f4'), ('b', '|u1')]", &place(&[3])).expect("one byte order");
    assert_eq!(big.views[0].byte_order, ByteOrder::Big);
    let mixed = from_numpy("[('a', '>f4'), ('b', '<f4')]", &place(&[3])).expect_err("mixed");
    assert!(mixed.to_string().contains("mixes"), "{mixed}");
}

#[test]
fn what_has_no_bytes_here_is_refused_with_the_reason() {
    for (dtype, words) in [
        ("O", "objects"),
        ("f2", "32 or 64"),
        ("x9", "no such dtype"),
        ("[('a', '<f4'", "expected ',' or ')'"),
        ("[('a',)]", "none of"),
        ("[('a b', '<f4')]", "letters"),
        ("[('a', '<f4'), ('a', '<f4')]", "two fields"),
        ("{'names': ['a', 'b'], 'formats': ['<f8', '<f4'], 'offsets': [0, 4]}", "inside of"),
        ("{'names': ['a'], 'formats': ['<f8'], 'itemsize': 4}", "itemsize"),
        ("'<f4' 3", "the end"),
        ("", "a dtype"),
        ("99999999999999999999", "64 bits"),
        (&format!("{}'<f4'{}", "[".repeat(100), "]".repeat(100)), "less deep"),
    ] {
        let error = from_numpy(dtype, &place(&[3])).expect_err(dtype).to_string();
        assert!(error.contains(words), "{dtype}: {error}");
    }
}

#[test]
fn npy_files_tell_shape_order_and_header() {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }";
    let header = format!("{header:<117}\n");
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    let definition = from_npy(&file, &place(&[])).expect("a .npy file");
    assert_eq!(definition.views[0].header, 128);
    assert_eq!(definition.views[0].order, Order::RowMinor);
    assert_eq!(size(&definition), 128 + 96);
    assert!(text(&definition).contains("[3, 4]float64"), "{}", text(&definition));
    for cut in 0..file.len() {
        from_npy(&file[..cut], &place(&[])).expect_err("a header that is cut off");
    }
}

#[test]
fn a_view_tells_numpy_where_its_variables_are() {
    let source = "dataset { type Point struct { a, b, c float32 }; var n int32; var data [6]Point }
        view soa rowminor bigendian { var n = n; var b [i] { b } = data[i*2]; var c [] { c, a } = data }
        replica soa complete { view soa }";
    let compiled = drepl::compile("f", &mut drepl::MemoryLoader::new("f", source))
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    let python = to_numpy(&compiled.definition, 0).expect("numpy can read it");
    for line in [
        r#""n": numpy.memmap(
            file, dtype='>i4', mode='r+',
            offset=0, shape=(), order='F',"#,
        r#""b": numpy.memmap(
            file, dtype=[("b", '>f4')], mode='r+',
            offset=4, shape=(3,), order='F',"#,
        r#""c": numpy.memmap(
            file, dtype=[("c", '>f4'), ("a", '>f4')], mode='r+',
            offset=16, shape=(6,), order='F',"#,
    ] {
        assert!(python.contains(line), "{line}\nnot in\n{python}");
    }
}
