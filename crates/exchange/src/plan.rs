//! What the launcher has told the process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use coupling::{Configuration, Parties, Rule};
use matching::Role;

use crate::Fault;

/// The configuration, and which component this process is of.
#[derive(Debug, Clone)]
pub struct Plan {
    configuration: Configuration,
    component: u16,
    meet: PathBuf,
    patience: Duration,
}

/// How long the other side is waited for where nothing else is said.
const PATIENCE: Duration = Duration::from_secs(300);

impl Plan {
    /// The variable with the path of the configuration.
    pub const CONFIGURATION: &str = "SLUICE_COUPLE";
    /// The variable with the component's name.
    pub const COMPONENT: &str = "SLUICE_COUPLE_AS";
    /// The variable with the directory where ranks find each other.
    pub const MEET: &str = "SLUICE_COUPLE_MEET";
    /// The variable with the seconds that the other side is waited for.
    pub const WAIT: &str = "SLUICE_COUPLE_WAIT";

    /// The component `component` of a configuration, whose ranks meet in the directory `meet`, which is made if it is missing.
    ///
    /// # Errors
    /// There is no such component.
    pub fn new(configuration: Configuration, component: &str, meet: &Path) -> Result<Self, Fault> {
        let number = configuration.components.iter().position(|one| one == component);
        let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else {
            return Err(Fault::NoComponent {
                component: component.to_owned(),
                known: configuration.components.join(", "),
            });
        };
        let meet = meet.to_owned();
        Ok(Self { configuration, component: number, meet, patience: PATIENCE })
    }

    /// What the environment says; none if the process is not of a coupled program.
    #[must_use]
    pub fn of_environment() -> Option<Result<Self, Fault>> {
        let file = std::env::var_os(Self::CONFIGURATION).filter(|value| !value.is_empty())?;
        Some(Self::of(Path::new(&file)))
    }

    fn of(file: &Path) -> Result<Self, Fault> {
        let variable = |name: &'static str| {
            std::env::var(name).map_err(|_| Fault::Environment { variable: name })
        };
        let component = variable(Self::COMPONENT)?;
        let meet = variable(Self::MEET)?;
        let text = std::fs::read_to_string(file).map_err(|source| Fault::Directory {
            what: "the configuration",
            path: file.to_owned(),
            source,
        })?;
        let configuration = Configuration::parse(&text, &file.to_string_lossy())
            .map_err(|source| Fault::Configuration { source })?;
        let mut plan = Self::new(configuration, &component, Path::new(&meet))?;
        if let Ok(text) = std::env::var(Self::WAIT) {
            let seconds = text.parse::<f64>().ok().filter(|s| s.is_finite() && *s > 0.0);
            let seconds = seconds.ok_or(Fault::Environment { variable: Self::WAIT })?;
            plan.patience = Duration::from_secs_f64(seconds);
        }
        Ok(plan)
    }

    /// How long the other side is waited for.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// The same with another time that the other side is waited for.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// This component's name.
    #[must_use]
    pub fn component(&self) -> &str {
        self.name(self.component)
    }

    /// The rule for files of a name, if this component has a part in it: all others behave as if there were no coupling.
    #[must_use]
    pub fn rule(&self, name: &str) -> Option<&Rule> {
        let rule = self.configuration.rule(name)?;
        rule.parties.names().any(|one| one == self.component()).then_some(rule)
    }

    /// What this component does with a file that it creates (or opens for writing), or opens; none if that is its own business.
    #[must_use]
    pub fn role(&self, name: &str, creates: bool) -> Option<Role> {
        let rule = self.rule(name)?;
        let own = |list: &[String]| list.iter().any(|one| one == self.component());
        match (&rule.parties, creates) {
            (Parties::Directed { writers, .. }, true) => own(writers).then_some(Role::Writer),
            (Parties::Directed { readers, .. }, false) => own(readers).then_some(Role::Reader),
            (Parties::Either(..), true) => Some(Role::Writer),
            (Parties::Either(..), false) => Some(Role::Reader),
        }
    }

    /// Whether components have parts in this configuration at all; then even [`role`](Self::role) may be none for every file.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub(crate) fn number(&self) -> u16 {
        self.component
    }

    pub(crate) fn name(&self, number: u16) -> &str {
        self.configuration.components.get(usize::from(number)).map_or("?", String::as_str)
    }

    pub(crate) fn meet(&self) -> &Path {
        &self.meet
    }

    /// Who writes a file in which this component has the role `role`, and who reads it, by their numbers.
    pub(crate) fn sides(&self, rule: &Rule, role: Role) -> (Vec<u16>, Vec<u16>) {
        let number = |name: &String| {
            let found = self.configuration.components.iter().position(|one| one == name);
            found.map(|number| number as u16)
        };
        match &rule.parties {
            Parties::Directed { writers, readers } => (
                writers.iter().filter_map(number).collect(),
                readers.iter().filter_map(number).collect(),
            ),
            Parties::Either(one, other) => {
                let (own, theirs): (Vec<u16>, Vec<u16>) =
                    [one, other].into_iter().filter_map(number).partition(|n| *n == self.component);
                match role {
                    Role::Writer => (own, theirs),
                    Role::Reader => (theirs, own),
                }
            }
        }
    }
}
