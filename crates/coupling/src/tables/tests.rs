//! What TOML may say, and that it says the same as DTF's grammar.

use matching::{Distribution, FullQueue};

use crate::{Configuration, Mode, Parties};

const ALL: &str = r#"
components = ["model", "assimilation", "plot"]
distribution = "range"
block = 32
matchers = 4
buffer = true

[[file]]
name = "0%/history.%"
exclude = ["060000"]
writers = ["model"]
readers = ["assimilation", "plot"]
mode = "transfer"
replay = true
sessions = 10
queue = 2
queue_full = "discard"
distribution = "balanced"
matchers = 8
buffer = false
mirror_root = true
cycle = "sync"
lent = true

[[file]]
name = "mean"
between = ["model", "assimilation"]
mode = "file"
write_only = true
"#;

fn told(text: &str) -> String {
    let told = Configuration::from_toml(text, "couple.toml").expect_err(text).to_string();
    told.replace("couple.toml:", "")
}

#[test]
fn every_key_is_understood() {
    let configuration = Configuration::parse(ALL, "couple.toml").unwrap();
    assert_eq!(configuration.components.len(), 3);
    let history = configuration.rule("01/history.nc").unwrap();
    assert_eq!(history.distribution, Distribution::Balanced);
    assert_eq!((history.matchers, history.sessions), (Some(8), Some(10)));
    assert_eq!(history.queue, Some((2, FullQueue::Discard)));
    assert_eq!(history.cycle, crate::CycleEnd::Sync);
    assert!(
        history.replay
            && !history.buffer
            && history.lent
            && history.mirror_root
            && !history.write_only
    );
    assert_eq!(history.parties.names().collect::<Vec<_>>(), ["model", "assimilation", "plot"]);
    assert_eq!(configuration.rule("01/history.060000.nc"), None);
    let mean = configuration.rule("mean.nc").unwrap();
    assert_eq!(mean.parties, Parties::Either("model".to_owned(), "assimilation".to_owned()));
    assert_eq!(mean.distribution, Distribution::Range { block: Some(32) });
    assert!(mean.write_only && mean.mode == Mode::File);
}

#[test]
fn a_section_of_the_common_file_says_the_same() {
    let section = ALL.replace("[[file]]", "[[couple.file]]").replacen(
        "components",
        "[couple]\ncomponents",
        1,
    );
    let text = format!("[client]\nmsize_bytes = \"1MiB\"\n{section}");
    let common = Configuration::parse(&text, "/etc/sluice.toml").unwrap();
    let own = Configuration::parse(ALL, "couple.toml").unwrap();
    assert_eq!(common.components, own.components);
    assert_eq!(common.rules.len(), own.rules.len());
    for (common, own) in common.rules.iter().zip(&own.rules) {
        assert_eq!(&crate::Rule { line: own.line, ..common.clone() }, own);
    }
    let nothing = Configuration::parse("[client]\n", "sluice.toml").unwrap();
    assert!(nothing.components.is_empty() && nothing.rules.is_empty());
}

#[test]
fn errors_have_their_places() {
    assert_eq!(
        told("componets = []\n"),
        "1:1: unknown key `componets`; did you mean `components`?"
    );
    let file = "components = [\"a\", \"b\"]\n[[file]]\nname = \"x\"\n";
    let wrong = told(&format!("{file}writers = [\"a\"]\nreaders = [\"c\"]\nmode = \"file\"\n"));
    assert_eq!(wrong, "5:11: there is no component `c`; did you mean `a`?");
    let wrong = told(&format!("{file}between = [\"a\", \"b\"]\nmode = \"files\"\n"));
    assert_eq!(wrong, "5:8: `files` is no value of `mode`, which is one of `transfer`, `file`");
    let wrong = told(&format!("{file}mode = \"file\"\n"));
    assert_eq!(
        wrong,
        "2:1: a file needs components: `writers` and `readers`, or `between`, with the two of which either writes"
    );
    let both = "[[file]]\nname = \"x\"\nwriters = [\"a\"]\nreaders = [\"b\"]\nmode = \"transfer\"\nbuffer = true\nlent = true\n";
    assert!(
        told(both).contains("7:8: memory that is copied when it is written from is not lent"),
        "{}",
        told(both)
    );
    assert!(told("components = 1\n").contains("a list of names"));
    assert!(told("file = 1\n").contains("[[file]]"));
    assert!(told("matchers = 0\n").contains("from 1 to"));
    assert!(told("components = [\n").starts_with("1:"));
}

#[test]
fn rules_that_are_never_reached_are_warned_of() {
    let rule = "[[file]]\nname = \"x\"\nbetween = [\"a\", \"b\"]\nmode = \"file\"\n";
    let text = format!("components = [\"a\", \"b\"]\n{rule}{rule}");
    let configuration = Configuration::from_toml(&text, "couple.toml").unwrap();
    let told: Vec<String> = configuration.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["6:1: `x` never gets here: the rule of line 2 takes it; remove one"]);
}

#[test]
fn components_say_how_they_are_started() {
    let programs = r#"
[[component]]
name = "plot"
command = ["python3", "plot.py"]
directory = "plots"
environment = { DISPLAY = ":0" }

[[component]]
name = "viewer"
"#;
    let configuration = Configuration::parse(&format!("{ALL}{programs}"), "couple.toml").unwrap();
    assert_eq!(configuration.components, ["model", "assimilation", "plot", "viewer"]);
    let [program] = configuration.programs.as_slice() else { panic!("{configuration:?}") };
    assert_eq!((program.component.as_str(), program.line), ("plot", 31));
    assert_eq!(program.command, ["python3", "plot.py"]);
    assert_eq!(program.directory.as_deref(), Some("plots"));
    assert_eq!(program.environment, [("DISPLAY".to_owned(), ":0".to_owned())]);
    let wrong = "[[component]]\ncommand = [\"x\"]\n[[component]]\nname = \"a\"\ncommand = []\n";
    assert_eq!(
        told(wrong),
        "1:1: a component needs a name: `name`\n\
         5:11: a command without a program; write the program and its arguments, or leave the key out"
    );
    let twice = "[[component]]\nname = \"a\"\ncommand = [\"x\"]\n[[component]]\nname = \"a\"\n";
    assert_eq!(told(twice), "5:8: component `a` is listed twice");
}
