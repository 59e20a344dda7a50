//! How definitions should look.

use drepl::format;

#[track_caller]
fn formats(text: &str, expected: &str) {
    let formatted = format(text).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    assert_eq!(formatted, expected);
    assert_eq!(format(&formatted).expect("it was understood"), formatted);
}

#[test]
fn blanks_indents_and_semicolons() {
    formats(
        "\n\n# points\ndataset{const N=10 ;type Point struct{a,b,c float32;} // three\n\n\n\
         \tvar data [ N ]Point;;\n  type Grid [ 2*N+1 , N -1<<3 ] [ 3 ]float64 ;\n var p struct {\n\n\
         x , y float64 ; /* why */\n z string8 }\n  }\nview v read-only   header - 4*-N{\nvar b[]{b}=data\n}",
        "\
# points
dataset { const N = 10; type Point struct { a, b, c float32 } // three

    var data [N]Point
    type Grid [2*N + 1, N - 1<<3][3]float64
    var p struct {
        x, y float64 /* why */
        z string8 }
}
view v read-only header -4*-N {
    var b [] { b } = data
}
",
    );
}

#[test]
fn views_and_replicas() {
    formats(
        "view \"v 1\" readonly{type P{b}Point\ntype Q [ i ]P Row[2 *i]; var d[i]record 8{b;e[j]=e[ j ]}=data[ i*3 ].x [2]at 4*4 pad 3\n\
         record{var a=a;var c [i,j]P=c[N-1-i ,j]}\n}\nreplica r   on-close near -1+2 hdf5{view \"v 1\" group \"g\" chunk[1,2]deflate 3;view w}",
        "\
view \"v 1\" readonly { type P { b } Point
    type Q [i] P Row[2*i]; var d [i] record 8 { b; e [j] = e[j] } = data[i*3].x[2] at 4*4 pad 3
    record { var a = a; var c [i, j]P = c[N - 1 - i, j] }
}
replica r on-close near -1 + 2 hdf5 { view \"v 1\" group \"g\" chunk [1, 2] deflate 3; view w }
",
    );
}

#[test]
fn lines_that_go_on_are_indented_and_comments_keep_their_words() {
    formats(
        "dataset {\n/* a\n   b */\nconst A = 1 +\n2\nvar x,   // first\ny int32\nvar z [\n3,\n4\n]int8\n// last  \n}\n# end",
        "\
dataset {
    /* a
   b */
    const A = 1 +
        2
    var x, // first
        y int32
    var z [
        3,
        4
    ]int8
    // last
}
# end
",
    );
}

#[test]
fn what_is_not_understood_is_not_touched() {
    let wrong = format("dataset { var }").unwrap_err();
    assert!(wrong.has_errors());
    assert_eq!(format(""), Ok(String::new()));
}
