//! The grammar of Sluice: `couple.toml`, or `[couple]` in `sluice.toml`.
//!
//! ```toml
//! components = ["model", "assimilation", "plot"]
//! distribution = "balanced"             # or "range", "varid"
//! matchers = 4                          # default: one for each 64 writers
//!
//! [[file]]                              # the first whose name matches counts
//! name = "0%/history.%"
//! exclude = ["060000"]
//! writers = ["model"]
//! readers = ["assimilation", "plot"]
//! mode = "transfer"                     # or "file"
//! replay = true
//! queue = 2                             # cycles that the writers may be ahead
//! queue_full = "block"                  # or "discard"
//!
//! [[component]]                         # how it is started; whoever is not in `components` is added to them
//! name = "model"
//! command = ["mpiexec", "-n", "4", "./model"]
//! directory = "run"
//! environment = { OMP_NUM_THREADS = "2" }
//! ```

use std::path::Path;

use address::AddressError;
use address::config::table::{Entry, Table, with_root};
use matching::FullQueue;

use crate::diagnostic::{At, Found, Spot};
use crate::draft::{Draft, ProgramDraft, RuleDraft, Settings, Share, Words};
use crate::{Configuration, CycleEnd, Diagnostic, Diagnostics, Mode};

const WORDS: Words = Words {
    name: "name = \"…\"",
    parties: "`writers` and `readers`, or `between`, with the two of which either writes",
    mode: "mode = \"transfer\" or mode = \"file\"",
    add_component: "add it to `components`",
};

pub(crate) fn parse(text: &str, file: &str) -> Result<Configuration, Diagnostics> {
    let path = Path::new(file);
    let within = path.file_name().is_some_and(|name| name == "sluice.toml");
    let draft = with_root(text, path, |root| {
        if within {
            // The other keys are checked by those whose they are.
            root.table("couple").map(|table| draft(&table)).unwrap_or_default()
        } else {
            draft(root)
        }
    });
    match draft {
        Ok(draft) => draft.finish(file, &WORDS, Found::default()),
        Err(errors) => {
            let list = errors.0.into_iter().map(diagnostic).collect();
            Err(Diagnostics { file: file.to_owned(), list })
        }
    }
}

fn diagnostic(error: AddressError) -> Diagnostic {
    let (line, column, message) = match &error {
        AddressError::Config { line, column, fault, .. } => (*line, *column, fault.to_string()),
        other => (1, 1, other.to_string()),
    };
    Diagnostic { line, column, message, help: None }
}

fn draft(root: &Table<'_>) -> Draft {
    root.only(&["components", "component", "distribution", "block", "matchers", "buffer", "file"]);
    let programs = root.get("component");
    let programs = programs.and_then(|entry| entry.tables("a list of tables: [[component]]"));
    let rules = root.get("file").and_then(|entry| entry.tables("a list of tables: [[file]]"));
    Draft {
        components: texts(root, "components", "a list of names"),
        programs: programs.unwrap_or_default().iter().map(program).collect(),
        defaults: settings(root),
        rules: rules.unwrap_or_default().iter().map(rule).collect(),
    }
}

fn program(table: &Table<'_>) -> ProgramDraft {
    table.only(&["name", "command", "directory", "environment"]);
    let text = |entry: Entry<'_>| {
        let value = entry.text("a text")?.to_owned();
        Some(Spot { value, at: at(&entry) })
    };
    let command = |entry: Entry<'_>| {
        let words = entry.texts("a list of texts: the program and its arguments")?;
        let value = words.into_iter().map(str::to_owned).collect();
        Some(Spot { value, at: at(&entry) })
    };
    let variables = table.table("environment");
    let variable = |entry: Entry<'_>| {
        let value = entry.text("a text")?.to_owned();
        Some((entry.key.to_owned(), value))
    };
    let (line, column) = table.position();
    ProgramDraft {
        at: At { line, column },
        name: table.get("name").and_then(text),
        command: table.get("command").and_then(command),
        directory: table.get("directory").and_then(text).map(|spot| spot.value),
        environment: variables
            .map(|variables| variables.entries().filter_map(variable).collect())
            .unwrap_or_default(),
    }
}

fn settings(table: &Table<'_>) -> Settings {
    let names =
        [("balanced", Share::Balanced), ("range", Share::Range), ("varid", Share::Variable)];
    Settings {
        buffer: table.flag("buffer"),
        matchers: table.count("matchers", 1),
        distribution: word(table, "distribution", &names),
        block: table.get("block").and_then(|entry| {
            let value = table.count("block", 1)?;
            Some(Spot { value: value.into(), at: at(&entry) })
        }),
    }
}

fn rule(table: &Table<'_>) -> RuleDraft {
    table.only(&[
        "name",
        "exclude",
        "writers",
        "readers",
        "between",
        "mode",
        "write_only",
        "sessions",
        "replay",
        "mirror_root",
        "cycle",
        "buffer",
        "lent",
        "matchers",
        "distribution",
        "block",
        "queue",
        "queue_full",
    ]);
    let spot = |entry: Entry<'_>| {
        let value = entry.text("a name")?.to_owned();
        Some(Spot { value, at: at(&entry) })
    };
    let flag = |key: &str| {
        let value = table.flag(key)?;
        table.get(key).map(|entry| Spot { value, at: at(&entry) })
    };
    let mut between = texts(table, "between", "a list of two components").into_iter();
    let (line, column) = table.position();
    RuleDraft {
        at: At { line, column },
        name: table.get("name").and_then(spot),
        exclude: texts(table, "exclude", "a list of names"),
        writers: texts(table, "writers", "a list of components"),
        readers: texts(table, "readers", "a list of components"),
        either: [between.next(), between.next()],
        mode: word(table, "mode", &[("transfer", Mode::Transfer), ("file", Mode::File)]),
        write_only: flag("write_only"),
        sessions: table.count("sessions", 1),
        replay: flag("replay"),
        mirror_root: table.flag("mirror_root").unwrap_or(false),
        cycle: word(
            table,
            "cycle",
            &[("close", CycleEnd::Close), ("sync", CycleEnd::Sync), ("wait", CycleEnd::Wait)],
        ),
        lent: flag("lent"),
        settings: settings(table),
        queue: table.get("queue").and_then(|entry| {
            let value = table.count("queue", 1)?;
            Some(Spot { value, at: at(&entry) })
        }),
        full: word(
            table,
            "queue_full",
            &[("block", FullQueue::Block), ("discard", FullQueue::Discard)],
        ),
    }
}

fn at(entry: &Entry<'_>) -> At {
    let (line, column) = entry.position();
    At { line, column }
}

fn texts(table: &Table<'_>, key: &str, expected: &'static str) -> Vec<Spot<String>> {
    let Some(entry) = table.get(key) else { return Vec::new() };
    let texts = entry.texts(expected).unwrap_or_default();
    texts.into_iter().map(|text| Spot { value: text.to_owned(), at: at(&entry) }).collect()
}

fn word<T: Copy>(table: &Table<'_>, key: &str, known: &[(&str, T)]) -> Option<Spot<T>> {
    let entry = table.get(key)?;
    let text = entry.text("a word")?;
    let found = known.iter().find(|(word, _)| *word == text);
    if found.is_none() {
        let choices: Vec<String> = known.iter().map(|(word, _)| format!("`{word}`")).collect();
        entry.no_choice(text, &choices.join(", "));
    }
    found.map(|(_, value)| Spot { value: *value, at: at(&entry) })
}

#[cfg(test)]
mod tests;
