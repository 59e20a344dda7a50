//! couple: configurations checked, ranks simulated, recordings explained.

use std::fs;

use serde_json::Value;

use crate::support::{Ran, run};

const RIGHT: &str = "[INFO]\nncomp=2\ncomp_name=\"model\"\ncomp_name=\"plot\"\n\
                     [FILE]\nfilename=\"0%/hist.%\"\nwriter=\"model\"\nreader=\"plot\"\niomode=\"memory\"\n";

fn couple(arguments: &[&str]) -> Ran {
    run(["couple"].iter().chain(arguments))
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&couple(arguments).ok()).expect("JSON")
}

#[test]
fn configurations_are_checked_and_said_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("dtf.ini");
    let name = file.to_str().unwrap();
    fs::write(&file, RIGHT).unwrap();
    let said = couple(&["check", name, "--name", "01/hist.nc", "--name", "mean"]).ok();
    for word in [
        "2 components, 1 rule for files",
        "line 5    0%/hist.%  model → plot  transfer, range",
        "01/hist.nc: the rule of line 5",
        "mean: not exchanged",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let told = json(&["check", name, "--name", "01/hist.nc", "--json"]);
    assert_eq!(told["files"][0]["writers"][0], "model");
    assert_eq!(told["names"][0][1], 5);
    fs::write(&file, RIGHT.replace("writer=\"model\"", "writer=\"modle\"")).unwrap();
    let said = couple(&["check", name]).fails(1);
    assert!(said.contains(":7:8: there is no component `modle`; did you mean `model`?"), "{said}");
    let ran = couple(&["check", name, "--json"]);
    assert_eq!(ran.status, Some(1));
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&told["ok"], &told["diagnostics"][0]["line"]), (&false.into(), &7.into()));
}

#[test]
fn a_simulated_run_is_counted_recorded_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pattern");
    let name = file.to_str().unwrap();
    let shape = ["--grid", "8x8x8", "--writers", "2x1x1", "--readers", "1x2x1"];
    let arguments = ["simulate", "--json", "--cycles", "2", "--record", name];
    let told = json(&[&arguments[..], &shape].concat());
    let row = &told["rows"][0];
    // Every point has 16 doubles; each of two readers gets a quarter from each of two writers, in two cycles.
    assert_eq!(row["data_bytes"], 2 * 8 * 8 * 8 * 128);
    assert_eq!((&row["pairs"], &row["data_messages"]), (&32.into(), &8.into()));
    let told = json(&[&["simulate", "--json", "--cycles", "2", "--replay"][..], &shape].concat());
    assert!(told["rows"][0]["pairs"] == 16 && told["rows"][0]["data_messages"] == 8, "{told}");
    let told = json(&["explain", name, "--json", "--parts"]);
    assert_eq!(told["bytes"], 8 * 8 * 8 * 128);
    assert_eq!((told["pairs"].as_array().unwrap().len(), told["cycle"].as_u64()), (4, Some(1)));
    let part = &told["parts"][0];
    assert_eq!(
        (&part["from"]["component"], &part["variable"]),
        (&"writer".into(), &"yspecies".into())
    );
    let said = couple(&["explain", name]).ok();
    assert!(said.contains("writer 1 → reader 0    16.0 KiB  4 parts"), "{said}");
    fs::write(&file, "no recording").unwrap();
    let said = couple(&["explain", name]).fails(1);
    assert!(said.contains("no recording") && said.contains("--record FILE"), "{said}");
}

#[test]
fn shapes_that_cannot_be_are_refused() {
    let said = couple(&["simulate", "--grid", "4x4"]).fails(2);
    assert!(said.contains("not three numbers"), "{said}");
    let said = couple(&["simulate", "--writers", "1048576x1x1"]).fails(1);
    assert!(said.contains("at most 65536 ranks"), "{said}");
}
