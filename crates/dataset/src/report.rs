//! How an open dataset is, as text that is told over any distance.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use serde::Deserialize;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::state::{Condition, quoted};

/// How an open dataset is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Report {
    /// The process that has it open.
    pub process: u32,
    /// Its views.
    #[serde(default, rename = "view")]
    pub views: Vec<ViewReport>,
    /// Its replicas.
    #[serde(default, rename = "replica")]
    pub replicas: Vec<ReplicaReport>,
}

/// How a view is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ViewReport {
    /// Its name.
    pub name: String,
    /// How many openings it has.
    pub openings: usize,
}

/// How a replica is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReplicaReport {
    /// Its name.
    pub name: String,
    /// Why it is not up to date, if it is not.
    pub stale: Option<String>,
    /// Why its file is lost as soon as the dataset is closed.
    pub orphaned: Option<String>,
    /// While it is made: bytes done, and bytes in all.
    pub progress: Option<(u64, u64)>,
}

impl Report {
    /// Reads what [`Report::to_text`] has written.
    ///
    /// # Errors
    /// [`Error::Command`] when it is something else.
    pub fn from_text(text: &str) -> Result<Self> {
        let why = |error: toml::de::Error| format!("the report is no report: {}", error.message());
        toml::from_str(text).map_err(|error| Error::Command { why: why(error) })
    }

    /// As TOML.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line =
            |args: std::fmt::Arguments<'_>| writeln!(text, "{args}").expect("text grows");
        line(format_args!("process = {}", self.process));
        for view in &self.views {
            line(format_args!("\n[[view]]\nname = {}", quoted(&view.name)));
            line(format_args!("openings = {}", view.openings));
        }
        for replica in &self.replicas {
            line(format_args!("\n[[replica]]\nname = {}", quoted(&replica.name)));
            for (key, value) in [("stale", &replica.stale), ("orphaned", &replica.orphaned)] {
                if let Some(value) = value {
                    line(format_args!("{key} = {}", quoted(value)));
                }
            }
            if let Some((done, all)) = replica.progress {
                line(format_args!("progress = [{done}, {all}]"));
            }
        }
        text
    }
}

impl Dataset {
    /// How it is.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.look_for_lost();
        let plan = self.shared.plan();
        let views = plan.model.views().map(|(number, view)| ViewReport {
            name: view.name.clone(),
            openings: plan.uses[number].openings.load(Ordering::SeqCst),
        });
        let state = self.shared.state();
        let replicas = plan.members().map(|(_, member)| {
            let known = state.replicas.get(&member.place.name);
            let condition = known.map_or_else(Condition::not_made, |known| known.condition.clone());
            ReplicaReport {
                name: member.place.name.clone(),
                stale: match condition {
                    Condition::Fresh => None,
                    Condition::Stale { reason } => Some(reason),
                },
                orphaned: member.orphaned(),
                progress: member.filling().map(|filling| filling.progress()),
            }
        });
        let (views, replicas) = (views.collect(), replicas.collect());
        Report { process: std::process::id(), views, replicas }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_is_understood() {
        let replica = |name: &str, stale: Option<&str>, progress| ReplicaReport {
            name: name.into(),
            stale: stale.map(str::to_owned),
            orphaned: None,
            progress,
        };
        let report = Report {
            process: 7,
            views: vec![ViewReport { name: "a \"b\"\n".into(), openings: 3 }],
            replicas: vec![
                replica("x", None, None),
                replica("y", Some("disk"), Some((1, 1 << 40))),
            ],
        };
        assert_eq!(Report::from_text(&report.to_text()).unwrap(), report);
        assert!(Report::from_text("nothing").is_err());
    }
}
