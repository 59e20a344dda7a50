//! What is asked of an open dataset by text, from wherever its store is reached: the way of Plan 9.
//!
//! ```text
//! add SECTIONS             the rest of the text: views and replicas in the language
//! remove view NAME
//! remove replica NAME
//! rebuild [NAME]           a stale replica; all of them
//! ```
//!
//! A command a line; `add` takes all that follows.

use crate::change::Changed;
use crate::dataset::Dataset;
use crate::edit::Edit;
use crate::error::{Error, Result};

impl Dataset {
    /// Does what a text asks for, and says what was done. Replicas are made in the background.
    ///
    /// # Errors
    /// [`Error::Command`] when it is not understood; those of [`Dataset::change`] and
    /// [`Dataset::start_rebuild`]. What was asked for before is done.
    pub fn command(&self, text: &str) -> Result<String> {
        let mut said = String::new();
        let mut rest = text.trim_start();
        if rest.is_empty() {
            return Err(Error::Command { why: format!("an empty command; {KNOWN}") });
        }
        while !rest.is_empty() {
            if let Some(sections) = rest.strip_prefix("add").filter(begins_word) {
                self.changed(&Edit::Add(sections.to_owned()), &mut said)?;
                break;
            }
            let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
            self.line(line.trim_end(), &mut said)?;
            rest = behind.trim_start();
        }
        Ok(said)
    }

    fn line(&self, line: &str, said: &mut String) -> Result<()> {
        if let Some(name) = line.strip_prefix("remove view ") {
            return self.changed(&Edit::RemoveView(name.to_owned()), said);
        }
        if let Some(name) = line.strip_prefix("remove replica ") {
            return self.changed(&Edit::RemoveReplica(name.to_owned()), said);
        }
        if line == "rebuild" {
            for (name, condition) in self.replicas() {
                let is_stale = condition != crate::Condition::Fresh;
                let is_made = self.shared.plan().member(&name);
                let plan = self.shared.plan();
                let is_made = is_made.is_some_and(|index| plan.members[index].filling().is_some());
                if is_stale && !is_made {
                    self.rebuilt(&name, said)?;
                }
            }
            return Ok(());
        }
        if let Some(name) = line.strip_prefix("rebuild ") {
            return self.rebuilt(name, said);
        }
        Err(Error::Command { why: format!("`{line}` is no command; {KNOWN}") })
    }

    fn changed(&self, edit: &Edit, said: &mut String) -> Result<()> {
        let changed = self.change(edit)?;
        for replica in &changed.replicas_added {
            self.start_rebuild(replica)?;
        }
        *said += &changed.to_text();
        Ok(())
    }

    fn rebuilt(&self, name: &str, said: &mut String) -> Result<()> {
        let what = if self.start_rebuild(name)? { "making replica" } else { "up to date: replica" };
        *said += &format!("{what} {name}\n");
        Ok(())
    }
}

const KNOWN: &str =
    "there are `add SECTIONS`, `remove view NAME`, `remove replica NAME` and `rebuild [NAME]`";

fn begins_word(rest: &&str) -> bool {
    rest.starts_with(char::is_whitespace)
}

impl Changed {
    /// What was changed, a line each.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut said = String::new();
        for (what, names) in [
            ("removed view", &self.views_removed),
            ("removed replica", &self.replicas_removed),
            ("added view", &self.views_added),
            ("making replica", &self.replicas_added),
        ] {
            for name in names {
                said += &format!("{what} {name}\n");
            }
        }
        said
    }
}
