//! What the language has beyond the paper, and what ties its files together.

use std::fmt::Write as _;
use std::time::Instant;

use drepl::definition::{
    Index, Length, Marker, Part, PartField, Placing, Record, Slice, Storage, Type, Update,
};
use drepl::{Code, Definition, Diagnostics, MemoryLoader};

use crate::support::{compile, right};

const DATASET: &str = "dataset {
    const N = 10
    type Atom struct { id, type int32; x [3]float64 }
    var n uint32
    var atoms [N]Atom
    var grid [4, 6]float32
    var list [n]float64
}
";

fn with_view(flags: &str, members: &str) -> Definition {
    right(&format!("{DATASET}view v {flags} {{\n{members}\n}}"))
}

fn taken(variable: &str) -> Part {
    with_view("", variable).views.remove(0).variables.remove(0).part
}

#[track_caller]
fn said(result: Result<impl std::fmt::Debug, Diagnostics>) -> Vec<(Code, String)> {
    let wrong = result.expect_err("it is wrong");
    wrong.list.into_iter().map(|one| (one.code, one.message)).collect()
}

fn running(dimension: usize, step: i64, start: i64) -> Index {
    Index::Running { dimension, step, start }
}

#[test]
fn any_affine_spelling_is_an_index() {
    let cases = [
        ("i*5", 5, 0, 2),
        ("5*i", 5, 0, 2),
        ("2 + 3*i", 3, 2, 3),
        ("N - 1 - i", -1, 9, 10),
        ("(i + 1)*2", 2, 2, 4),
        ("-i*4 + 9", -4, 9, 3),
        ("-(i - 9)", -1, 9, 10),
        ("i + i + i", 3, 0, 4),
        ("9", 0, 0, 0),
        ("i*10", 10, 0, 1),
        ("i + 9", 1, 9, 1),
        ("-7*i", -7, 0, 1),
    ];
    for (expr, step, start, count) in cases {
        let left = if step == 0 { "" } else { "[i]" };
        let Part::Slice(slice) = taken(&format!("var d {left} = atoms[{expr}]")) else {
            panic!("{expr}")
        };
        if step == 0 {
            assert_eq!((slice.lengths, slice.indexes), (vec![], vec![Index::Fixed(9)]));
            continue;
        }
        assert_eq!(slice.indexes, [running(0, step, start)], "{expr}");
        assert_eq!(slice.lengths, [Length::Fixed(count)], "{expr}");
    }
}

#[test]
fn a_row_a_column_and_everything_of_a_grid() {
    let Part::Slice(column) = taken("var c [i] = grid[i, 2]") else { panic!() };
    assert_eq!(column.lengths, [Length::Fixed(4)]);
    assert_eq!(column.indexes, [running(0, 1, 0), Index::Fixed(2)]);
    let Part::Slice(row) = taken("var r [j] = grid[3, j]") else { panic!() };
    assert_eq!(row.indexes, [Index::Fixed(3), running(0, 1, 0)]);
    for all in ["var g = grid", "var g [] = grid", "var g [,] = grid[,]", "var g = grid[]"] {
        assert_eq!(taken(all), Part::Whole, "{all}");
    }
}

#[test]
fn arrays_within_elements_have_brackets_of_their_own() {
    let Part::Slice(outer) = taken("var x [i] [j] = atoms[i].x[2 - j]") else { panic!() };
    assert_eq!(outer.lengths, [Length::Fixed(10)]);
    let Part::Member { field: 2, part } = &*outer.element else { panic!("{outer:?}") };
    let Part::Slice(inner) = &**part else { panic!("{part:?}") };
    assert_eq!(
        (&*inner.lengths, &*inner.indexes),
        (&[Length::Fixed(3)][..], &[running(0, -1, 2)][..])
    );
    // One coordinate of all.
    let Part::Slice(outer) = taken("var z [i] = atoms[i].x[2]") else { panic!() };
    let Part::Member { part, .. } = &*outer.element else { panic!("{outer:?}") };
    let fixed =
        Slice { lengths: vec![], indexes: vec![Index::Fixed(2)], element: Box::new(Part::Whole) };
    assert_eq!(**part, Part::Slice(fixed));
    // The coordinates of one.
    let Part::Slice(one) = taken("var p [j] = atoms[7].x[j]") else { panic!() };
    assert_eq!((&*one.lengths, &*one.indexes), (&[][..], &[Index::Fixed(7)][..]));
}

#[test]
fn fields_may_be_called_like_words_of_the_language_and_say_what_of_them() {
    let Part::Slice(slice) = taken("var a [] { type; x [j] = x[j*2]; id } = atoms") else {
        panic!()
    };
    let Part::Fields(fields) = &*slice.element else { panic!("{slice:?}") };
    let whole = |field| PartField { field, part: Part::Whole };
    assert_eq!((&fields[0], &fields[2]), (&whole(1), &whole(0)));
    let Part::Slice(inner) = &fields[1].part else { panic!("{fields:?}") };
    assert_eq!(
        (&*inner.lengths, &*inner.indexes),
        (&[Length::Fixed(2)][..], &[running(0, 2, 0)][..])
    );
}

#[test]
fn types_of_the_dataset_may_be_named_in_views() {
    assert_eq!(taken("var a [i] Atom = atoms[i]"), taken("var a [i] = atoms[i]"));
    assert_eq!(taken("var g [] float32 = grid"), Part::Whole);
    let coordinates = "type Third [k] X[k*2]";
    let text = "dataset { type X [6]int8; var x X; var y [2]X }";
    let text = format!("{text}\nview v {{ var y [] Third = y; {coordinates}; var x Third = x }}");
    let definition = right(&text);
    let Part::Slice(x) = &definition.views[0].variables[1].part else { panic!() };
    assert_eq!((&*x.lengths, &*x.indexes), (&[Length::Fixed(3)][..], &[running(0, 2, 0)][..]));
}

#[test]
fn arrays_of_variable_size_are_taken_whole_or_by_their_own_index() {
    assert_eq!(taken("var l = list"), Part::Whole);
    let Part::Slice(slice) = taken("var l [i] = list[i]") else { panic!() };
    assert_eq!(slice.lengths, [Length::Stored(0)]);
}

#[test]
fn records_of_a_view_of_some_variables_and_of_elements() {
    let records = |flags: &str, members: &str| -> Vec<Option<(usize, Marker)>> {
        let view = with_view(flags, members).views.remove(0);
        let records = view.variables.iter().map(|one| one.record);
        records.map(|record| record.map(|Record { number, marker }| (number, marker))).collect()
    };
    use Marker::{Eight, Four};
    let grouped =
        "var a = n\nrecord { var b = n; var c = grid }\nrecord 8 { var d = atoms }\nvar e = n";
    let expected = [None, Some((0, Four)), Some((0, Four)), Some((1, Eight)), None];
    assert_eq!(records("", grouped), expected);
    let expected = [Some((0, Eight)), Some((1, Eight)), None, Some((2, Four))];
    let mixed = "var a = n; var b = grid; var c [i] record = atoms[i]\nrecord 4 { var d = n }";
    assert_eq!(records("records 8", mixed), expected);
    let Part::Slice(slice) = taken("var c [i] record 8 { id; type } = atoms[i]") else { panic!() };
    assert!(
        matches!(&*slice.element, Part::Record { marker: Eight, part } if matches!(**part, Part::Fields(_)))
    );
    // A view's own markers are those of the records of elements, too.
    let view = with_view("records 8", "var c [i] record = atoms[i]").views.remove(0);
    let Part::Slice(slice) = &view.variables[0].part else { panic!() };
    assert!(matches!(&*slice.element, Part::Record { marker: Eight, .. }));
}

#[test]
fn variables_can_be_placed() {
    let view = with_view(
        "header 2*N",
        "var a = n at 32 pad 4\nvar b = grid align 4*16\nvar c [i] = atoms[i].id at 1 << 12 align 8",
    );
    let placings: Vec<Placing> = view.views[0].variables.iter().map(|one| one.placing).collect();
    let expected = [
        Placing { at: Some(32), align: None, pad: 4 },
        Placing { at: None, align: Some(64), pad: 0 },
        Placing { at: Some(4096), align: Some(8), pad: 0 },
    ];
    assert_eq!((view.views[0].header, &*placings), (20, &expected[..]));
}

#[test]
fn replicas_say_when_and_how_they_are_written() {
    let text = format!(
        "{DATASET}view v {{ var a = atoms }}
replica \"run/out.h5\" complete hdf5 async near 2 {{
    view v group \"/a/b\" split chunk [N, 3] deflate N - 1
}}
replica late on-close complete {{ }}"
    );
    let replicas = right(&text).replicas;
    let first = &replicas[0];
    assert_eq!((&*first.name, first.update, first.closeness), ("run/out.h5", Update::Async, 2));
    assert_eq!((first.storage, first.complete), (Storage::Hdf5, true));
    let held = &first.views[0];
    assert_eq!((held.group.as_deref(), held.split), (Some("/a/b"), true));
    assert_eq!((held.chunk.as_deref(), held.deflate), (Some(&[10, 3][..]), Some(9)));
    assert_eq!((replicas[1].update, replicas[1].views.len()), (Update::OnClose, 0));
}

#[test]
fn what_means_nothing_is_a_warning() {
    let text = "dataset { var a int8 }; view v { var a = a }; replica r { view v split }";
    let compiled = compile(text).expect("it is right");
    let said: Vec<&str> = compiled.warnings.iter().map(|one| &*one.message).collect();
    assert_eq!(said, ["this means nothing in a replica of raw bytes"]);
}

#[test]
fn the_map_leads_back_to_the_text() {
    let text = "dataset { var a int8 }\nview v {\n  var b = a\n}\nreplica r { view v }";
    let map = compile(text).expect("it is right").map;
    let line = |span| map.sources.position(span).map(|at| (at.line, at.column));
    assert_eq!(line(map.variables[0]), Some((1, 15)));
    assert_eq!(line(map.views[0].name), Some((2, 6)));
    assert_eq!(line(map.views[0].variables[0]), Some((3, 7)));
    assert_eq!(line(map.replicas[0].name), Some((5, 9)));
    assert_eq!(line(map.replicas[0].views[0]), Some((5, 18)));
}

#[test]
fn sections_may_stand_in_files_of_their_own_beside_the_one_that_names_them() {
    let mut loader = MemoryLoader::new(
        "d/main.drepl",
        "dataset \"data.drepl\"\nview \"views/soa.drepl\"\nreplica \"r.drepl\"; view aos { var a = a }",
    )
    .with("d/data.drepl", "dataset { var a int32 }")
    .with("d/views/soa.drepl", "view soa { var a = a }\nview \"more.drepl\"")
    .with("d/views/more.drepl", "# one more\nview more { var a = a }")
    .with("d/r.drepl", "replica r { view soa }");
    let definition = drepl::compile("d/main.drepl", &mut loader).expect("it is right").definition;
    let names: Vec<&str> = definition.views.iter().map(|view| &*view.name).collect();
    assert_eq!(names, ["soa", "more", "aos"]);
    assert_eq!(definition.replicas[0].views[0].view, 0);
}

#[test]
fn includes_that_cannot_be_are_refused() {
    let at = |name: &str, loader: MemoryLoader| said(drepl::compile(name, &mut loader.clone()));
    let cycle = MemoryLoader::new("a", "dataset { }; view \"b\"")
        .with("b", "view \"c\"")
        .with("c", "view \"b\"");
    assert_eq!(at("a", cycle), [(Code::Include, "`b` includes itself".to_owned())]);
    let missing = MemoryLoader::new("a", "dataset { }\nview \"b\"");
    let expected = (Code::Source, "cannot include `b`: there is no such file".to_owned());
    assert_eq!(at("a", missing), [expected]);
    let expected = (Code::Source, "cannot read `x`: there is no such file".to_owned());
    assert_eq!(at("x", MemoryLoader::default()), [expected]);
    let other = MemoryLoader::new("a", "dataset { }\nview \"b\"").with("b", "# nothing");
    assert_eq!(at("a", other), [(Code::Include, "`b` has no view".to_owned())]);
    let mut binary = MemoryLoader::new("a", "");
    binary.files.insert("a".into(), b"\x00\xff\xfe".to_vec());
    assert_eq!(at("a", binary)[0].0, Code::Source);
    let mut large = MemoryLoader::new("a", "");
    large.files.insert("a".into(), vec![b' '; (16 << 20) + 1]);
    assert_eq!(at("a", large)[0].0, Code::Limit);
    let mut deep = MemoryLoader::new("0", "dataset { }\nview \"1\"");
    for number in 1..40 {
        deep = deep.with(&number.to_string(), &format!("view \"{}\"", number + 1));
    }
    assert_eq!(at("0", deep)[0].1, "files include each other more than 16 deep");
    let mut many = MemoryLoader::new("0", "dataset { }\nview \"1\"");
    for number in 1..15 {
        let next = number + 1;
        many = many.with(&number.to_string(), &format!("view \"{next}\"\nview \"{next}\""));
    }
    assert_eq!(at("0", many.with("15", "view v { }"))[0].1, "more than 1000 files are included");
}

#[test]
fn a_fault_in_an_included_file_is_shown_there() {
    let mut loader = MemoryLoader::new("a", "dataset { var a int8 }\nview \"b\"")
        .with("b", "view v { var b = c }");
    let wrong = drepl::compile("a", &mut loader).unwrap_err();
    assert_eq!(wrong.to_string(), "b:1:18: error: there is no variable of the dataset `c`");
    assert!(wrong.render(false).contains("b:1:18"));
}

#[test]
fn of_many_faults_a_hundred_are_told_and_the_others_counted() {
    let text = format!("dataset {{\n{}}}", "var x\n".repeat(250));
    let wrong = compile(&text).unwrap_err();
    assert_eq!((wrong.list.len(), wrong.omitted), (100, 150));
    assert!(wrong.render(false).ends_with("… and 150 more errors\n"));
}

#[test]
fn a_file_need_not_end_its_last_line_or_have_lines_of_one_kind() {
    let text = "\u{feff}dataset {\r\n\tvar a, b int32\r\n}\r\nview v\n{\n var a\n [] = c }";
    assert_eq!(said(compile(text)).len(), 1);
    let text = "\u{feff}dataset {\r\n\tvar a, b int32 // x\r\n}\r\nview v\n{ var a = b }";
    let definition = right(text);
    assert!(matches!(definition.variables[1].kind, Type::Scalar(_)));
}

/// Variables, each of a struct of its own and in a view, in an order that makes constants and types look ahead.
fn large(count: usize) -> String {
    let mut text = String::from("dataset {\n");
    for number in 0..count {
        let next = if number + 1 < count { format!("C{}", number + 1) } else { "0".into() };
        let _ = writeln!(
            text,
            "var v{number} [C{number}]T{number}
            type T{number} struct {{ a, b T; c [C{number}]float32 }}
            const C{number} = 1 + {next}",
        );
    }
    text.push_str("type T struct { x, y float32 }\n}\nview v {\n");
    for number in 0..count {
        let _ = writeln!(text, "var w{number} [i] {{ b; c }} = v{number}[i]");
    }
    text + "}\nreplica r complete { view v }\n"
}

#[test]
fn ten_times_as_many_variables_take_about_ten_times_as_long() {
    let least = |count: usize| {
        let text = large(count);
        let taken = (0..3).map(|_| {
            let started = Instant::now();
            assert_eq!(right(&text).views[0].variables.len(), count);
            started.elapsed()
        });
        taken.min().unwrap_or_default()
    };
    let (small, big) = (least(1000), least(10_000));
    // What is not linear takes a hundred times as long; others work on the machine, too.
    assert!(big < small * 50, "{small:?}, {big:?}");
}
