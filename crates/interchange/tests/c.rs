//! C structs: sizes and offsets are those of the compiler of this machine.

use std::io::Write as _;
use std::process::{Command, Stdio};

use drepl::definition::{Definition, Type};
use interchange::{Place, from_c, to_c};
use layout::{Layout, Lengths};

fn place(shape: &[u64]) -> Place {
    Place { name: "data".into(), file: "data.bin".into(), shape: shape.to_vec(), header: 0 }
}

fn size(definition: &Definition) -> u64 {
    let layout = Layout::new(definition).expect("it has a layout");
    layout.view(0, &Lengths::new()).expect("it can be placed").size()
}

/// Whether the compiler of this machine accepts a text; what it says where it does not.
fn compile(text: &str) -> Result<(), String> {
    let mut compiler = Command::new("cc")
        .args(["-std=c11", "-fsyntax-only", "-Wall", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    compiler.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = compiler.wait_with_output().expect("it ends");
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{}\n{text}", String::from_utf8_lossy(&output.stderr))),
    }
}

const PARTICLE: &str = "
    #include <stdint.h>
    #define DIMENSIONS 3   /* of space */
    // Where it is, and what.
    struct position { double x[DIMENSIONS]; };
    typedef struct {
        char kind;
        struct position at, before;
        unsigned short mark;
        float weights[2][0x4];
        long long number;
        struct { uint8_t red, green, blue; } colour;
    } Particle;
";

#[test]
fn structs_are_as_large_as_the_compiler_makes_them() {
    let found = from_c(PARTICLE, None, &place(&[])).expect("it is understood");
    let check =
        format!("{PARTICLE}\n_Static_assert(sizeof(Particle) == {}, \"size\");", size(&found));
    compile(&check).unwrap_or_else(|words| panic!("{words}"));
    let Type::Struct(fields) = &found.variables[0].kind else { panic!("a struct") };
    let mut offset = 0;
    let mut asserts = String::from("#include <stddef.h>\n");
    for field in fields.iter() {
        let only = Definition {
            variables: vec![drepl::definition::Variable {
                name: "data".into(),
                kind: field.kind.clone(),
            }],
            ..found.clone()
        };
        if !field.name.starts_with("_gap") {
            asserts +=
                &format!("_Static_assert(offsetof(Particle, {}) == {offset}, \"\");\n", field.name);
        }
        offset += size(&only);
    }
    compile(&format!("{PARTICLE}{asserts}")).unwrap_or_else(|words| panic!("{words}"));
    assert!(asserts.matches("offsetof").count() == 7, "{asserts}");
}

#[test]
fn one_struct_of_several_is_chosen_by_name() {
    let position = from_c(PARTICLE, Some("position"), &place(&[10])).expect("it is there");
    assert_eq!(size(&position), 240);
    let error = from_c(PARTICLE, Some("postion"), &place(&[])).expect_err("it is not there");
    assert_eq!(error.to_string(), "there is no struct \"postion\"; there are: position, Particle");
}

#[test]
fn packed_structs_have_no_gaps() {
    let text =
        "struct __attribute__((packed)) s { char a; double b; }; struct t { char c; struct s s; };";
    assert_eq!(size(&from_c(text, Some("s"), &place(&[])).expect("understood")), 9);
    assert_eq!(size(&from_c(text, Some("t"), &place(&[])).expect("understood")), 10);
}

#[test]
fn what_has_no_bytes_of_its_own_is_refused_with_its_line() {
    for (text, words) in [
        ("struct s {\n int *p; };", "line 2: expected no pointer"),
        ("struct s { int a : 3; };", "no bit field"),
        ("struct s { union { int a; } u; };", "no unions"),
        ("struct s { int a[N]; };", "a length"),
        ("struct s { int a[0]; };", "at least 1"),
        ("struct s { long double a; };", "a type"),
        ("struct s { unknown a; };", "a type"),
        ("struct s { int a, a; };", "two fields"),
        ("int main(void) { return 0; }", "the declaration of a struct"),
        ("struct s { int a", "found the end"),
        ("struct s { int a[18446744073709551616]; };", "64 bits"),
        ("/* struct s { int a; }; ", "no struct"),
        ("", "no struct"),
    ] {
        let error = from_c(text, None, &place(&[])).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn the_structs_of_a_view_lie_over_its_file() {
    let source = "dataset { type Point struct { a float32; v [2,3]float64; s string5 }; var n int32; var data [6]Point }
        view soa { var n = n; var part [i] { v, a } = data[i*2]; var all = data }
        replica soa complete { view soa }";
    let compiled = drepl::compile("f", &mut drepl::MemoryLoader::new("f", source))
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    let text = to_c(&compiled.definition, 0).expect("C can read it");
    compile(&text).unwrap_or_else(|words| panic!("{words}"));
    for line in ["double v[2][3];", "n_offset = 0,", "part_offset = 8,", "all_offset = 164,"] {
        assert!(text.contains(line), "{line}\nnot in\n{text}");
    }
    let again = from_c(&text, Some("all"), &place(&[6])).expect_err("asserts are no structs");
    assert!(again.to_string().contains("the declaration of a struct"), "{again}");
}
