//! DTF's grammar: sections in brackets, a key and a value in each line.
//!
//! What is known of it from its parser: keys and sections do not distinguish small letters from capitals; lines that begin
//! with `#`, `;` or `!` are comments; a value may stand in quotes, and what follows it is not looked at; of several rules that
//! match a name the last one counts. The original also makes names small, so that it finds no file with a capital: here they
//! stay what they are.

use std::ops::RangeInclusive;

use crate::diagnostic::{At, Found, Spot, did_you_mean};
use crate::draft::{Draft, RuleDraft, Share, Words};
use crate::{Configuration, Diagnostics, Mode};

const WORDS: Words = Words {
    name: "filename=\"…\"",
    parties: "`comp1` and `comp2`, or `writer` and `reader`",
    mode: "mode=\"transfer\" or mode=\"file\"",
    add_component: "add comp_name=\"…\" to [INFO]",
};

const INFO_KEYS: [&str; 8] = [
    "ncomp",
    "comp_name",
    "buffer_data",
    "iodb_build_mode",
    "ioreq_distrib_mode",
    "iodb_range",
    "do_checksum",
    "log_ioreqs",
];

const FILE_KEYS: [&str; 12] = [
    "filename",
    "exclude_name",
    "comp1",
    "comp2",
    "writer",
    "reader",
    "mode",
    "iomode",
    "replay_io",
    "num_sessions",
    "write_only",
    "mirror_io_root",
];

/// Where in a file a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Before,
    Info,
    File,
    Unknown,
}

/// A line with a key.
struct Entry<'a> {
    key: String,
    key_at: At,
    value: &'a str,
    value_at: At,
}

struct Parser {
    found: Found,
    draft: Draft,
    components: Option<Spot<u32>>,
}

pub(crate) fn parse(text: &str, file: &str) -> Result<Configuration, Diagnostics> {
    let mut parser = Parser { found: Found::default(), draft: Draft::default(), components: None };
    // As the original; the grammar cannot ask for the other one.
    parser.draft.defaults.distribution = Some(Spot { value: Share::Range, at: At::default() });
    let mut section = Section::Before;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.chars().count() - trimmed.chars().count();
        let at = At { line: number + 1, column: indent + 1 };
        match trimmed.trim_end().chars().next() {
            None | Some('#' | ';' | '!') => {}
            Some('[') => section = parser.section(trimmed, at, section),
            Some(_) => {
                if let Some(entry) = parser.entry(trimmed, at) {
                    match section {
                        Section::Info => parser.info(&entry),
                        Section::File => parser.file(&entry),
                        Section::Before => {
                            let help = "begin the file with [INFO]".to_owned();
                            let message = format!("`{}` stands in no section", entry.key);
                            parser.found.error(entry.key_at, message, Some(help));
                        }
                        // One complaint is enough.
                        Section::Unknown => {}
                    }
                }
            }
        }
    }
    parser.end(file)
}

impl Parser {
    fn section(&mut self, line: &str, at: At, before: Section) -> Section {
        let Some((name, _)) = line[1..].split_once(']') else {
            self.found.error(at, "a section ends with `]`", None);
            return Section::Unknown;
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "info" => Section::Info,
            "file" => {
                if before == Section::Before {
                    let help = "begin the file with [INFO], which names the components".to_owned();
                    self.found.error(at, "a file is described before [INFO]", Some(help));
                }
                self.draft.rules.push(RuleDraft { at, ..RuleDraft::default() });
                Section::File
            }
            other => {
                let help = did_you_mean(other, ["info", "file"]);
                let help = help.or_else(|| Some("sections are [INFO] and [FILE]".to_owned()));
                self.found.error(at, format!("there is no section [{}]", name.trim()), help);
                Section::Unknown
            }
        }
    }

    fn entry<'a>(&mut self, line: &'a str, at: At) -> Option<Entry<'a>> {
        let Some((key, rest)) = line.split_once('=') else {
            let help = "write key=value, or begin a comment with `!`, `#` or `;`".to_owned();
            self.found.error(at, format!("`{}` has no `=`", line.trim_end()), Some(help));
            return None;
        };
        let value = rest.trim_start();
        let before = line.chars().count() - value.chars().count();
        let value_at = At { column: at.column + before, ..at };
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let Some((inside, _)) = value[1..].split_once(quote) else {
                    self.found.error(value_at, format!("the closing `{quote}` is missing"), None);
                    return None;
                };
                inside
            }
            _ => value.split(['!', '#', ';']).next().unwrap_or_default().trim_end(),
        };
        Some(Entry { key: key.trim().to_ascii_lowercase(), key_at: at, value, value_at })
    }

    fn info(&mut self, entry: &Entry<'_>) {
        match entry.key.as_str() {
            "ncomp" => {
                let number = self.number(entry, 1..=u16::MAX.into());
                self.components = number.map(|value| Spot { value, at: entry.value_at });
            }
            "comp_name" => self.draft.components.push(text(entry)),
            "buffer_data" => self.draft.defaults.buffer = self.flag(entry),
            "iodb_build_mode" | "ioreq_distrib_mode" => {
                let known = [("range", Share::Range), ("varid", Share::Variable)];
                if let Some(value) = self.word(entry, &known) {
                    let spot = Spot { value, at: entry.value_at };
                    self.draft.defaults.distribution = Some(spot);
                }
            }
            "iodb_range" => {
                if let Some(value) = self.number(entry, 1..=u32::MAX) {
                    let spot = Spot { value: value.into(), at: entry.value_at };
                    self.draft.defaults.block = Some(spot);
                }
            }
            // For DTF's own debugging: they change nothing that is sent.
            "do_checksum" | "log_ioreqs" => {
                if self.flag(entry) == Some(true) {
                    let message = format!("`{}` has no effect here", entry.key);
                    self.found.warning(entry.key_at, message, None);
                }
            }
            other => {
                let belongs = FILE_KEYS.contains(&other).then_some("[FILE]");
                self.unknown(entry, &INFO_KEYS, belongs);
            }
        }
    }

    fn file(&mut self, entry: &Entry<'_>) {
        let at = entry.value_at;
        let flag = |parser: &mut Self| parser.flag(entry).map(|value| Spot { value, at });
        match entry.key.as_str() {
            "filename" => self.once(entry, |rule| &mut rule.name, text(entry)),
            "exclude_name" => self.rule().exclude.push(text(entry)),
            "comp1" => self.once(entry, |rule| &mut rule.either[0], text(entry)),
            "comp2" => self.once(entry, |rule| &mut rule.either[1], text(entry)),
            "writer" => self.rule().writers.push(text(entry)),
            "reader" => self.rule().readers.push(text(entry)),
            "mode" | "iomode" => {
                let known = [
                    ("file", Mode::File),
                    ("transfer", Mode::Transfer),
                    ("memory", Mode::Transfer),
                ];
                if let Some(value) = self.word(entry, &known) {
                    self.once(entry, |rule| &mut rule.mode, Spot { value, at });
                }
            }
            "replay_io" => self.rule().replay = flag(self),
            "write_only" => self.rule().write_only = flag(self),
            "mirror_io_root" => self.rule().mirror_root = self.flag(entry).unwrap_or(false),
            "num_sessions" => self.rule().sessions = self.number(entry, 1..=u32::MAX),
            other => {
                let belongs = INFO_KEYS.contains(&other).then_some("[INFO]");
                self.unknown(entry, &FILE_KEYS, belongs);
            }
        }
    }

    fn rule(&mut self) -> &mut RuleDraft {
        if self.draft.rules.is_empty() {
            self.draft.rules.push(RuleDraft::default());
        }
        let last = self.draft.rules.len() - 1;
        &mut self.draft.rules[last]
    }

    fn once<T>(
        &mut self,
        entry: &Entry<'_>,
        slot: impl FnOnce(&mut RuleDraft) -> &mut Option<Spot<T>>,
        value: Spot<T>,
    ) {
        let slot = slot(self.rule());
        let before = slot.as_ref().map(|spot| spot.at.line);
        *slot = Some(value);
        if let Some(line) = before {
            let message = format!("`{}` stands in line {line} already", entry.key);
            let help = "begin another [FILE] for another file".to_owned();
            self.found.error(entry.key_at, message, Some(help));
        }
    }

    fn number(&mut self, entry: &Entry<'_>, range: RangeInclusive<u32>) -> Option<u32> {
        let number = entry.value.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = (range.start(), range.end());
            let message = format!("`{}` must be a number from {low} to {high}", entry.key);
            self.found.error(entry.value_at, message, None);
        }
        number
    }

    fn flag(&mut self, entry: &Entry<'_>) -> Option<bool> {
        self.word(entry, &[("0", false), ("1", true)])
    }

    fn word<T: Copy>(&mut self, entry: &Entry<'_>, known: &[(&str, T)]) -> Option<T> {
        let found = known.iter().find(|(word, _)| entry.value.eq_ignore_ascii_case(word));
        if found.is_none() {
            let choices: Vec<String> = known.iter().map(|(word, _)| format!("`{word}`")).collect();
            let (key, value) = (&entry.key, entry.value);
            let message = format!("`{value}` is no value of `{key}`");
            let help = did_you_mean(value, known.iter().map(|(word, _)| *word));
            let help = help.unwrap_or_else(|| format!("write one of {}", choices.join(", ")));
            self.found.error(entry.value_at, message, Some(help));
        }
        found.map(|(_, value)| *value)
    }

    fn unknown(&mut self, entry: &Entry<'_>, known: &[&str], belongs: Option<&str>) {
        let help = match belongs {
            Some(section) => Some(format!("it belongs into {section}")),
            None => did_you_mean(&entry.key, known.iter().copied()),
        };
        self.found.error(entry.key_at, format!("unknown key `{}`", entry.key), help);
    }

    fn end(mut self, file: &str) -> Result<Configuration, Diagnostics> {
        let named = self.draft.components.len();
        match &self.components {
            Some(Spot { value, at }) if *value as usize != named => {
                let message = format!("`ncomp` is {value}, but {named} components are named");
                let help = "there is one line comp_name=\"…\" for each".to_owned();
                self.found.error(*at, message, Some(help));
            }
            None if self.found.errors.is_empty() => {
                let message = "[INFO] must say how many components there are";
                let help = format!("write ncomp={named}");
                self.found.error(At { line: 1, column: 1 }, message, Some(help));
            }
            _ => {}
        }
        // The last rule that matches counts.
        self.draft.rules.reverse();
        self.draft.finish(file, &WORDS, self.found)
    }
}

fn text(entry: &Entry<'_>) -> Spot<String> {
    Spot { value: entry.value.to_owned(), at: entry.value_at }
}

#[cfg(test)]
mod tests;
