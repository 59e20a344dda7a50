//! Every example of the paper, and what the published prototype makes of them wrongly.

use drepl::definition::{
    ByteOrder, Index, Length, Order, Part, PartField, Scalar, Slice, Type, Update, View,
};

use crate::support::right;

const POINTS: &str = "
dataset {
  const N = 1000000

  type Point struct {
    a, b, c float32
  }

  var data [N]Point
}
";

fn view(text: &str) -> View {
    right(&format!("{POINTS}\nview v {{\n{text}\n}}")).views.remove(0)
}

fn running(dimension: usize, step: i64, start: i64) -> Index {
    Index::Running { dimension, step, start }
}

fn fields(fields: &[usize]) -> Part {
    let fields = fields.iter().map(|&field| PartField { field, part: Part::Whole });
    Part::Fields(fields.collect())
}

fn slice(length: u64, index: Index, element: Part) -> Part {
    let (lengths, element) = (vec![Length::Fixed(length)], Box::new(element));
    Part::Slice(Slice { lengths, indexes: vec![index], element })
}

#[test]
fn the_dataset_of_points() {
    let definition = right(POINTS);
    let [data] = &*definition.variables else { panic!("{definition:?}") };
    let Type::Array(array) = &data.kind else { panic!("{data:?}") };
    assert_eq!((&*data.name, &*array.lengths), ("data", &[Length::Fixed(1_000_000)][..]));
    let Type::Struct(fields) = &array.element else { panic!("{array:?}") };
    let fields: Vec<_> = fields.iter().map(|field| (&*field.name, &field.kind)).collect();
    let float = &Type::Scalar(Scalar::Float32);
    assert_eq!(fields, [("a", float), ("b", float), ("c", float)]);
}

#[test]
fn structs_and_arrays_of_section_two() {
    let text = "dataset {
        var s struct {
            a          float64
            b, c      float32
        }
        var sz int32
        var b [5,5]float64
        var c [sz]float32
    }";
    let definition = right(text);
    let Type::Array(b) = &definition.variables[2].kind else { panic!() };
    assert_eq!(b.lengths, [Length::Fixed(5), Length::Fixed(5)]);
    let Type::Array(c) = &definition.variables[3].kind else { panic!() };
    assert_eq!(c.lengths, [Length::Stored(1)]);
}

#[test]
fn a_substruct_of_every_element() {
    let view = view("var b [] {\n  b\n} = data");
    assert_eq!(view.variables[0].part, slice(1_000_000, running(0, 1, 0), fields(&[1])));
}

#[test]
fn every_fifth_element() {
    let view = view("var d[i] = data[i*5]");
    assert_eq!(view.variables[0].part, slice(200_000, running(0, 5, 0), Part::Whole));
}

#[test]
fn one_field_of_every_third_element_with_and_without_a_named_type() {
    let part = slice(333_334, running(0, 3, 0), fields(&[1]));
    assert_eq!(view("var d [i] {\n  b\n} = data[i*3]").variables[0].part, part);
    assert_eq!(
        view("type PointB { b } Point\nvar d [i]PointB = data[i*3]").variables[0].part,
        part
    );
    let view = view("var s [] Subpoint = data\ntype Subpoint {\n  a, c\n} Point");
    assert_eq!(view.variables[0].part, slice(1_000_000, running(0, 1, 0), fields(&[0, 2])));
}

#[test]
fn rows_and_columns_change_places() {
    let text = "dataset { var a [3, 4]float64 }; view v { var d [i,j] = a[j,i] }";
    let Part::Slice(slice) = &right(text).views[0].variables[0].part else { panic!() };
    assert_eq!(slice.lengths, [Length::Fixed(4), Length::Fixed(3)]);
    assert_eq!(slice.indexes, [running(1, 1, 0), running(0, 1, 0)]);
}

#[test]
fn the_two_views_of_figure_four_one_of_them_called_default() {
    let text = "
dataset {
  var p struct {
    a, b, c float32
  }
}

view default {
  var p = p
}

view viz {
  var pa { a } = p
  var pba { b, a } = p
}
";
    let definition = right(text);
    assert_eq!(definition.views[0].name, "default");
    assert_eq!(definition.views[0].variables[0].part, Part::Whole);
    let parts: Vec<&Part> = definition.views[1].variables.iter().map(|one| &one.part).collect();
    assert_eq!(parts, [&fields(&[0]), &fields(&[1, 0])]);
}

#[test]
fn the_three_views_that_were_measured() {
    let text = format!(
        "{POINTS}
view aos {{ var data = data }}
view soa default {{
    var a [i] = data[i].a
    var b [i] = data[i].b
    var c [i] = data[i].c
}}
view b read-only {{ var b [] {{ b }} = data }}
replica one complete {{ view aos }}
replica two {{
    view soa
    view b
}}"
    );
    let definition = right(&text);
    let member = |field| Part::Member { field, part: Box::new(Part::Whole) };
    let soa: Vec<&Part> = definition.views[1].variables.iter().map(|one| &one.part).collect();
    let expected = [0, 1, 2].map(|field| slice(1_000_000, running(0, 1, 0), member(field)));
    assert_eq!(soa, expected.iter().collect::<Vec<_>>());
    assert!(definition.views[2].read_only && !definition.views[1].read_only);
    let held = |replica: usize| -> Vec<usize> {
        definition.replicas[replica].views.iter().map(|view| view.view).collect()
    };
    assert_eq!((held(0), held(1)), (vec![0], vec![1, 2]));
    assert!(definition.replicas[0].complete && !definition.replicas[1].complete);
    assert_eq!(definition.replicas[0].update, Update::Sync);
}

#[test]
fn flags_in_the_spelling_of_the_paper_and_of_the_prototype() {
    let text = "dataset { var a int32 }
        view one read-only rowmajor { var a = a }
        view two columnmajor readonly { var a = a }
        view three rowminor { var a = a }
        view four default { var a = a }
        view \"five.raw\" bigendian packed header 2*40 { var a = a }
        view six littleendian { var a = a }";
    let views = right(text).views;
    let said: Vec<_> = views.iter().map(|view| (view.read_only, view.order)).collect();
    use Order::{RowMajor, RowMinor};
    let expected = [(true, RowMajor), (true, RowMinor), (false, RowMinor), (false, RowMajor)];
    assert_eq!(said[..4], expected);
    assert_eq!((&*views[4].name, views[4].byte_order), ("five.raw", ByteOrder::Big));
    assert_eq!((views[4].packed, views[4].header), (true, 80));
    assert_eq!(views[5].byte_order, ByteOrder::Little);
}

/// `10 - 3 - 2` was 9 and `2*3+4` was 14.
#[test]
fn arithmetic_goes_from_the_left_and_products_before_sums() {
    let length = |expr: &str| {
        let definition = right(&format!("dataset {{ const K = 7; var a [{expr}]int8 }}"));
        match &definition.variables[0].kind {
            Type::Array(array) => array.lengths[0],
            other => panic!("{other:?}"),
        }
    };
    let cases = [
        ("10 - 3 - 2", 5),
        ("2*3+4", 10),
        ("2+3*4", 14),
        ("100/10/2", 5),
        ("17 % 5 * 2", 4),
        ("(1+2)*(3+4)", 21),
        ("-2 + 5", 3),
        ("- -2", 2),
        ("1<<4 + 1", 17),
        ("0x10 >> 2", 4),
        ("K*K - K", 42),
        ("-7/2 + 10", 7),
        ("1_000", 1000),
    ];
    for (expr, expected) in cases {
        assert_eq!(length(expr), Length::Fixed(expected), "{expr}");
    }
}

#[test]
fn constants_and_types_may_be_used_before_they_are_defined() {
    let text = "dataset {
        var b Grid
        type Grid [M, M/2]Cell
        type Cell struct { x Pair; id uint16 }
        type Pair [2]float64
        const M = N * 2
        const N = 4
    }";
    let definition = right(text);
    let Type::Array(grid) = &definition.variables[0].kind else { panic!() };
    assert_eq!(grid.lengths, [Length::Fixed(8), Length::Fixed(4)]);
}
