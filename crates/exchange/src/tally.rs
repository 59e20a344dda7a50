//! What was carried, for those who look on.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// What one rank has had to do with one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Openings.
    pub openings: u64,
    /// Cycles that were finished.
    pub cycles: u64,
    /// Bytes that others have from this rank, or this rank from others.
    pub bytes: u64,
    /// How long the program waited for others in calls of ours.
    pub waited: Duration,
    /// Bytes that are kept for readers who have not come for them.
    pub kept: u64,
}

/// One file of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flowing {
    /// The file, as this component calls it.
    pub file: String,
    /// Who writes it, if this rank reads; or who reads it.
    pub other: String,
    /// Whether this rank writes.
    pub writes: bool,
    /// How much.
    pub tally: Tally,
}

#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) list: BTreeMap<(String, bool, String), Tally>,
    pub(crate) dirty: bool,
}

impl Tallies {
    pub(crate) fn of(&mut self, file: &str, writes: bool, other: &str) -> &mut Tally {
        self.dirty = true;
        self.list.entry((file.to_owned(), writes, other.to_owned())).or_default()
    }

    /// A line for each: whether it is written, numbers, the other component, the file.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for ((file, writes, other), tally) in &self.list {
            let Tally { openings, cycles, bytes, waited, kept } = tally;
            let (way, waited) = (if *writes { 'w' } else { 'r' }, waited.as_nanos());
            let _ = writeln!(
                text,
                "{way}\t{openings}\t{cycles}\t{bytes}\t{waited}\t{kept}\t{}\t{}",
                line(other),
                line(file)
            );
        }
        text
    }
}

fn line(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
}

impl Flowing {
    /// What a process has left in the meeting directory (`flow/`).
    #[must_use]
    pub fn parse(text: &str) -> Vec<Self> {
        let one = |line: &str| {
            let mut parts = line.splitn(8, '\t');
            let writes = parts.next()? == "w";
            let mut number = || parts.next()?.parse::<u64>().ok();
            let (openings, cycles, bytes) = (number()?, number()?, number()?);
            let (waited, kept) = (Duration::from_nanos(number()?), number()?);
            let tally = Tally { openings, cycles, bytes, waited, kept };
            let (other, file) = (parts.next()?.to_owned(), parts.next()?.to_owned());
            Some(Self { file, other, writes, tally })
        };
        text.lines().filter_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_again() {
        let mut tallies = Tallies::default();
        let tally =
            Tally { openings: 1, cycles: 2, bytes: 3, waited: Duration::from_nanos(4), kept: 5 };
        *tallies.of("a b\tc.nc", true, "plot") = tally;
        let file = "a b c.nc".to_owned();
        let wanted = Flowing { file, other: "plot".to_owned(), writes: true, tally };
        assert_eq!(Flowing::parse(&tallies.text()), [wanted]);
    }
}
