//! DTF's own examples, and what is said to what is wrong.

use matching::Distribution;

use crate::{Configuration, Mode, Parties};

/// Figure 4 of the paper, as it stands there.
const PAPER: &str = r#"[INFO]
ncomp=2 ! number of components
comp_name="rdr" ! component name
comp_name="wrt"
ioreq_distrib_mode="range" !divide by dim length
buffer_data=0
[FILE]
filename="restart.nc"
writer="wrt" !component that writes to the file
reader="rdr" !component that reads from the file
iomode="memory" !enable direct transfer
"#;

/// In the manner of the example of doc/README.config.
const RELEASED: &str = r#"[INFO]
ncomp=2
comp_name="scale"
comp_name="letkf"
buffer_data=1

[FILE]
filename="0%/restart.%"
exclude_name="060000" !init file for first iteration is not part of coupling
comp1="scale"
comp2="letkf"
mode="file"

[FILE]
filename="0%/history.%"
comp1="scale"
comp2="letkf"
mode="transfer"
replay_io=1

[FILE]
filename="mean"
exclude_name="060000"
comp1="scale"
comp2="letkf"
mode="file"
write_only=1
"#;

fn parse(text: &str) -> Configuration {
    Configuration::from_dtf(text, "dtf.ini").unwrap_or_else(|errors| panic!("{errors}"))
}

/// What is said, without the name of the file.
fn told(text: &str) -> String {
    let told = Configuration::from_dtf(text, "dtf.ini").expect_err(text).to_string();
    told.replace("dtf.ini:", "")
}

#[test]
fn the_papers_example_is_understood() {
    let configuration = parse(PAPER);
    assert_eq!(configuration.components, ["rdr", "wrt"]);
    assert_eq!(configuration.warnings, []);
    let rule = configuration.rule("restart.nc").unwrap();
    let writers = vec!["wrt".to_owned()];
    assert_eq!(rule.parties, Parties::Directed { writers, readers: vec!["rdr".to_owned()] });
    assert_eq!(rule.mode, Mode::Transfer);
    assert_eq!(rule.distribution, Distribution::Range { block: None });
    assert!(!rule.buffer);
    assert_eq!(configuration.rule("other.nc"), None);
}

#[test]
fn the_released_example_is_understood() {
    let configuration = parse(RELEASED);
    let rule = |name| configuration.rule(name);
    assert_eq!(rule("00/restart.120000.nc").unwrap().mode, Mode::File);
    assert_eq!(rule("00/restart.060000.nc"), None);
    let history = rule("01/history.nc").unwrap();
    assert!(history.replay && history.buffer && history.mode == Mode::Transfer);
    assert_eq!(history.parties, Parties::Either("scale".to_owned(), "letkf".to_owned()));
    let mean = rule("out/mean.nc").unwrap();
    assert!(mean.write_only && !mean.buffer);
}

#[test]
fn the_last_rule_that_matches_counts() {
    let text = "[info]\nNCOMP = 2\ncomp_name='a'\ncomp_name=b ; the other\n\
                [file]\nfilename=out\ncomp1=a\ncomp2=b\nmode=file\n\
                [file]\nfilename=out.1\ncomp1=a\ncomp2=b\nmode=transfer\n";
    let configuration = parse(text);
    assert_eq!(configuration.rule("out.1").unwrap().mode, Mode::Transfer);
    assert_eq!(configuration.rule("out.2").unwrap().mode, Mode::File);
}

#[test]
fn every_error_is_told_with_its_place_and_what_to_do() {
    let text = "[INFO]\nncomp=3\ncomp_name=\"model\"\ncomp_name=\"plot\"\nbufer_data=1\n\
                [FILE]\nfilename=\"%%\"\ncomp1=\"modle\"\ncomp2=\"plot\"\nmode=\"transfr\"\nnum_sessions=0\n\
                [FILES]\nx=1\n[FILE]\nncomp=2\nno sign\nfilename='open\n";
    let lines: Vec<String> = told(text).lines().map(str::to_owned).collect();
    let wanted = [
        "2:7: `ncomp` is 3, but 2 components are named; there is one line comp_name=\"…\" for each",
        "5:1: unknown key `bufer_data`; did you mean `buffer_data`?",
        "6:1: a file needs a mode: `mode=\"transfer\" or mode=\"file\"`",
        "7:10: `%%` matches every file; write a part of the name that no other file has",
        "8:7: there is no component `modle`; did you mean `model`?",
        "10:6: `transfr` is no value of `mode`; did you mean `transfer`?",
        "11:14: `num_sessions` must be a number from 1 to 4294967295",
        "12:1: there is no section [FILES]; did you mean `file`?",
        "14:1: a file needs a name: `filename=\"…\"`",
        "14:1: a file needs a mode: `mode=\"transfer\" or mode=\"file\"`",
        "14:1: a file needs components: `comp1` and `comp2`, or `writer` and `reader`",
        "15:1: unknown key `ncomp`; it belongs into [INFO]",
        "16:1: `no sign` has no `=`; write key=value, or begin a comment with `!`, `#` or `;`",
        "17:10: the closing `'` is missing",
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn what_makes_no_sense_is_said() {
    let file = |body: &str| {
        format!("[INFO]\nncomp=2\ncomp_name=a\ncomp_name=b\n[FILE]\nfilename=f\n{body}")
    };
    assert_eq!(
        told("filename=x\n").lines().next().unwrap(),
        "1:1: `filename` stands in no section; begin the file with [INFO]"
    );
    assert!(told(&file("comp1=a\ncomp2=a\nmode=file\n")).contains("coupled with itself"));
    assert!(told(&file("writer=a\nreader=a\nmode=file\n")).contains("what it writes itself"));
    assert!(told(&file("comp1=a\nmode=file\n")).contains("a file needs components"));
    assert!(
        told(&file("comp1=a\ncomp2=b\nmode=transfer\nwrite_only=1\n")).contains("nobody reads")
    );
    assert!(told(&file("comp1=a\ncomp2=b\nmode=file\nmode=file\n")).contains("line 9 already"));
    let replayed = parse(&file("comp1=a\ncomp2=b\nmode=file\nreplay_io=1\n"));
    assert_eq!(replayed.warnings.len(), 1);
    assert!(!replayed.rules[0].replay);
}

mod any_text {
    use proptest::prelude::*;

    use crate::Configuration;

    proptest! {
        #[test]
        fn no_text_panics(text in "([\\[\\]A-Za-z0-9_=\"'%!#; \n\u{e4}]|\\[INFO\\]\n|\\[FILE\\]\n|ncomp=|comp1=|filename=){0,60}") {
            if let Err(errors) = Configuration::from_dtf(&text, "x") {
                prop_assert!(!errors.list.is_empty());
            }
        }
    }
}
