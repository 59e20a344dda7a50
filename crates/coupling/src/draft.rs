//! What a file says, before it is known whether it makes sense.

use std::collections::BTreeMap;

use matching::{Distribution, FullQueue};

use crate::diagnostic::{At, Found, Spot, did_you_mean};
use crate::{Configuration, CycleEnd, Diagnostics, Mode, NamePattern, Parties, Program, Rule};

/// A configuration as it was written, in any grammar.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) components: Vec<Spot<String>>,
    /// These are components, too.
    pub(crate) programs: Vec<ProgramDraft>,
    /// What rules have where they do not say it themselves.
    pub(crate) defaults: Settings,
    /// The first that matches counts.
    pub(crate) rules: Vec<RuleDraft>,
}

/// How a component is started, as it was written.
#[derive(Debug, Default)]
pub(crate) struct ProgramDraft {
    pub(crate) at: At,
    pub(crate) name: Option<Spot<String>>,
    pub(crate) command: Option<Spot<Vec<String>>>,
    pub(crate) directory: Option<String>,
    pub(crate) environment: Vec<(String, String)>,
}

/// How requests are matched.
#[derive(Debug, Default, Clone)]
pub(crate) struct Settings {
    pub(crate) buffer: Option<bool>,
    pub(crate) matchers: Option<u32>,
    pub(crate) distribution: Option<Spot<Share>>,
    pub(crate) block: Option<Spot<u64>>,
}

/// A distribution by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    Range,
    Variable,
    Balanced,
}

/// A rule as it was written.
#[derive(Debug, Default)]
pub(crate) struct RuleDraft {
    pub(crate) at: At,
    pub(crate) name: Option<Spot<String>>,
    pub(crate) exclude: Vec<Spot<String>>,
    pub(crate) writers: Vec<Spot<String>>,
    pub(crate) readers: Vec<Spot<String>>,
    /// `comp1` and `comp2`.
    pub(crate) either: [Option<Spot<String>>; 2],
    pub(crate) mode: Option<Spot<Mode>>,
    pub(crate) write_only: Option<Spot<bool>>,
    pub(crate) sessions: Option<u32>,
    pub(crate) replay: Option<Spot<bool>>,
    pub(crate) mirror_root: bool,
    pub(crate) cycle: Option<Spot<CycleEnd>>,
    pub(crate) lent: Option<Spot<bool>>,
    pub(crate) settings: Settings,
    pub(crate) queue: Option<Spot<u32>>,
    pub(crate) full: Option<Spot<FullQueue>>,
}

/// How keys are called in a grammar.
pub(crate) struct Words {
    pub(crate) name: &'static str,
    pub(crate) parties: &'static str,
    pub(crate) mode: &'static str,
    pub(crate) add_component: &'static str,
}

impl Draft {
    /// What it means, if it means anything.
    pub(crate) fn finish(
        self,
        file: &str,
        words: &Words,
        mut found: Found,
    ) -> Result<Configuration, Diagnostics> {
        let mut names: Vec<String> = Vec::new();
        for Spot { value, at } in &self.components {
            if value.is_empty() {
                found.error(*at, "a component without a name", None);
            } else if names.contains(value) {
                found.error(*at, format!("component `{value}` is listed twice"), None);
            } else {
                names.push(value.clone());
            }
        }
        let mut programs: Vec<Program> = Vec::new();
        for program in self.programs {
            programs.extend(program.finish(&mut names, &programs, &mut found));
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut rules = Vec::new();
        for rule in self.rules {
            rules.extend(rule.finish(&names, &self.defaults, words, &mut found));
        }
        for rule in &rules {
            // One with exclusions leaves something to the next.
            if let Some(line) = seen.get(rule.name.as_str()) {
                let (line, name) = (*line, rule.name.as_str());
                let message = format!("`{name}` never gets here: the rule of line {line} takes it");
                found.warning(
                    At { line: rule.line, column: 1 },
                    message,
                    Some("remove one".into()),
                );
            } else if rule.exclude.is_empty() {
                seen.insert(rule.name.as_str().to_owned(), rule.line);
            }
        }
        if found.errors.is_empty() {
            let warnings = found.warnings;
            return Ok(Configuration { components: names, rules, programs, warnings });
        }
        let mut list = found.errors;
        list.sort_by_key(|one| (one.line, one.column));
        Err(Diagnostics { file: file.to_owned(), list })
    }
}

impl ProgramDraft {
    /// Adds the name to those of the components, if it is not among them.
    fn finish(
        self,
        names: &mut Vec<String>,
        others: &[Program],
        found: &mut Found,
    ) -> Option<Program> {
        let Some(Spot { value: component, at }) = self.name.filter(|one| !one.value.is_empty())
        else {
            found.error(self.at, "a component needs a name: `name`", None);
            return None;
        };
        if others.iter().any(|one| one.component == component) {
            found.error(at, format!("component `{component}` is listed twice"), None);
            return None;
        }
        if !names.contains(&component) {
            names.push(component.clone());
        }
        let command = self.command?;
        if command.value.first().is_none_or(String::is_empty) {
            let help = "write the program and its arguments, or leave the key out".to_owned();
            found.error(command.at, "a command without a program", Some(help));
            return None;
        }
        let wrong = |name: &str| name.is_empty() || name.contains(['=', '\0']);
        if let Some((name, _)) = self.environment.iter().find(|(name, _)| wrong(name)) {
            found.error(self.at, format!("`{name}` is no name of a variable"), None);
            return None;
        }
        let (directory, environment, line) = (self.directory, self.environment, self.at.line);
        Some(Program { component, command: command.value, directory, environment, line })
    }
}

impl RuleDraft {
    fn finish(
        self,
        components: &[String],
        defaults: &Settings,
        words: &Words,
        found: &mut Found,
    ) -> Option<Rule> {
        let errors = found.errors.len();
        let mut needs = |what: &str| {
            found.error(self.at, format!("a file needs {what}"), None);
        };
        if self.name.is_none() {
            needs(&format!("a name: `{}`", words.name));
        }
        if self.mode.is_none() {
            needs(&format!("a mode: `{}`", words.mode));
        }
        let pattern = |spot: &Spot<String>, found: &mut Found| {
            let pattern = NamePattern::new(&spot.value);
            if pattern.is_none() {
                let help = "write a part of the name that no other file has".to_owned();
                found.error(spot.at, format!("`{}` matches every file", spot.value), Some(help));
            }
            pattern
        };
        let name = self.name.as_ref().and_then(|name| pattern(name, found));
        let exclude = self.exclude.iter().filter_map(|one| pattern(one, found)).collect();
        let parties = self.parties(components, words, found);
        let mode = self.mode.as_ref().map_or(Mode::Transfer, |mode| mode.value);
        let write_only = self.write_only.as_ref().filter(|one| one.value);
        if let (Some(Spot { at, .. }), Mode::Transfer) = (write_only, mode) {
            let help = "write that its mode is `file`".to_owned();
            found.error(*at, "a file that nobody reads cannot be transferred", Some(help));
        }
        if let (Some(Spot { at, .. }), Mode::File) =
            (self.replay.as_ref().filter(|one| one.value), mode)
        {
            found.warning(*at, "in mode `file` nothing is matched, hence nothing replayed", None);
        }
        if let (Some(Spot { at, .. }), Mode::File) = (&self.cycle, mode) {
            found.warning(*at, "in mode `file` readers wait until it is closed", None);
        }
        if let (Some(Spot { at, .. }), None) = (&self.full, &self.queue) {
            found.warning(*at, "without a limit the queue is never full", None);
        }
        let settings = &self.settings;
        let buffer = settings.buffer.or(defaults.buffer).unwrap_or(false) && mode == Mode::Transfer;
        let lent = self.lent.as_ref().filter(|one| one.value);
        if let (Some(Spot { at, .. }), true) = (lent, buffer) {
            let help = "leave out `buffer`".to_owned();
            found.error(
                *at,
                "memory that is copied when it is written from is not lent",
                Some(help),
            );
        }
        let share = settings.distribution.as_ref().or(defaults.distribution.as_ref());
        let block = settings.block.as_ref().or(defaults.block.as_ref());
        let distribution = match share.map_or(Share::Balanced, |share| share.value) {
            Share::Range => Distribution::Range { block: block.map(|block| block.value) },
            Share::Variable => Distribution::Variable,
            Share::Balanced => Distribution::Balanced,
        };
        if let (Some(block), false) =
            (settings.block.as_ref(), matches!(distribution, Distribution::Range { .. }))
        {
            found.warning(block.at, "blocks have a size only in the distribution `range`", None);
        }
        let queue = self.queue.as_ref().map(|queue| {
            (queue.value, self.full.as_ref().map_or(FullQueue::Block, |full| full.value))
        });
        let rule = Rule {
            name: name?,
            exclude,
            parties: parties?,
            mode,
            write_only: write_only.is_some(),
            sessions: self.sessions,
            replay: self.replay.is_some_and(|one| one.value) && mode == Mode::Transfer,
            buffer,
            lent: lent.is_some() && mode == Mode::Transfer,
            mirror_root: self.mirror_root,
            cycle: self.cycle.map_or(CycleEnd::Close, |one| one.value),
            matchers: settings.matchers.or(defaults.matchers),
            distribution,
            queue,
            line: self.at.line,
        };
        (found.errors.len() == errors).then_some(rule)
    }

    fn parties(&self, components: &[String], words: &Words, found: &mut Found) -> Option<Parties> {
        let mut wrong = false;
        let either = self.either.iter().flatten();
        for Spot { value, at } in self.writers.iter().chain(&self.readers).chain(either) {
            if !components.contains(value) {
                let near = did_you_mean(value, components.iter().map(String::as_str));
                let help = near.or_else(|| Some(words.add_component.to_owned()));
                found.error(*at, format!("there is no component `{value}`"), help);
                wrong = true;
            }
        }
        let values = |list: &[Spot<String>]| -> Vec<String> {
            list.iter().map(|one| one.value.clone()).collect()
        };
        let (writers, readers) = (values(&self.writers), values(&self.readers));
        let parties = match (&self.either, writers.is_empty() && readers.is_empty()) {
            ([Some(one), Some(other)], true) if one.value == other.value => {
                let message = format!("`{}` cannot be coupled with itself", one.value);
                found.error(other.at, message, None);
                return None;
            }
            ([Some(one), Some(other)], true) => {
                Parties::Either(one.value.clone(), other.value.clone())
            }
            ([None, None], false) if !writers.is_empty() && !readers.is_empty() => {
                let both = self.readers.iter().find(|one| writers.contains(&one.value));
                if let Some(Spot { value, at }) = both {
                    found.error(*at, format!("`{value}` cannot read what it writes itself"), None);
                    return None;
                }
                Parties::Directed { writers, readers }
            }
            _ => {
                let message = format!("a file needs components: {}", words.parties);
                found.error(self.at, message, None);
                return None;
            }
        };
        (!wrong).then_some(parties)
    }
}
