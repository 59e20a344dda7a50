//! One component that is started by itself (`sluice run --couple`), and what every component is told.

use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use coupling::Configuration;
use exchange::{Lobby, Plan};
use rustix::process::WaitStatus;

use crate::args::couple;
use crate::report::say;

/// A component of a coupled workflow.
pub(crate) struct Part {
    pub(crate) configuration: PathBuf,
    pub(crate) component: String,
    pub(crate) number: u16,
    pub(crate) meet: PathBuf,
    /// Held while it runs.
    _running: File,
}

/// Reads a configuration.
pub(crate) fn configuration(file: &Path) -> Result<(PathBuf, Configuration)> {
    let path = std::path::absolute(file).with_context(|| file.display().to_string())?;
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
    let parsed = Configuration::parse(&text, &path.to_string_lossy());
    let parsed = parsed.context("the configuration is wrong")?;
    Ok((path, parsed))
}

/// What a component's processes read.
pub(crate) fn tell(command: &mut Command, configuration: &Path, component: &str, meet: &Path) {
    command.env(Plan::CONFIGURATION, configuration);
    command.env(Plan::COMPONENT, component);
    command.env(Plan::MEET, meet);
}

/// How something has ended, in words.
pub(crate) fn how(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_owned(),
    }
}

/// Takes the place of a component, if the program is one.
pub(crate) fn join(args: &couple::Part) -> Result<Option<Part>> {
    let (Some(file), Some(component)) = (&args.couple, &args.couple_as) else { return Ok(None) };
    let (configuration, parsed) = configuration(file)?;
    let number = parsed.components.iter().position(|one| one == component);
    let Some(number) = number.and_then(|number| u16::try_from(number).ok()) else {
        let known = parsed.components.join(", ");
        bail!("{} has no component `{component}`, but {known}", configuration.display());
    };
    let meet = match &args.couple_meet {
        Some(meet) => std::path::absolute(meet)?,
        None => {
            let mut hasher = DefaultHasher::new();
            configuration.hash(&mut hasher);
            let name = format!("couple-{:016x}", hasher.finish());
            crate::sockets::private(&name)?.with_extension("")
        }
    };
    std::fs::create_dir_all(&meet).with_context(|| meet.display().to_string())?;
    let running = enter(&meet, component, &parsed)?;
    let component = component.clone();
    Ok(Some(Part { configuration, component, number, meet, _running: running }))
}

/// Whoever comes first finds what an earlier workflow has left, and removes it.
fn enter(meet: &Path, component: &str, configuration: &Configuration) -> Result<File> {
    let open = |name: &str| {
        let path = meet.join(name);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        file.with_context(|| format!("cannot use the meeting directory: {}", path.display()))
    };
    let door = open("door")?;
    door.lock().context("cannot lock the meeting directory")?;
    let number = |name: &str| configuration.components.iter().position(|one| one == name);
    let file = |name: &str| format!("running.{}", number(name).unwrap_or_default());
    let own = open(&file(component))?;
    match own.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!(
            "component `{component}` is running already in {}; give other workflows another --couple-meet",
            meet.display()
        ),
        Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the component"),
    }
    let others = configuration.components.iter().filter(|one| *one != component);
    let mut alone = true;
    for other in others {
        alone &= open(&file(other))?.try_lock().is_ok();
    }
    if alone {
        Lobby::clear(meet).with_context(|| meet.display().to_string())?;
    }
    let lobby = Lobby::new(meet)?;
    lobby.begins(u16::try_from(number(component).unwrap_or_default())?)?;
    Ok(own)
}

impl Part {
    /// Tells the program what it is.
    pub(crate) fn tell(&self, command: &mut Command) {
        tell(command, &self.configuration, &self.component, &self.meet);
    }

    /// It has ended: nobody waits for it.
    pub(crate) fn end(&self, status: WaitStatus) {
        let told = Lobby::new(&self.meet).map_err(anyhow::Error::from);
        let told = told.and_then(|lobby| Ok(lobby.ended(self.number, &how(status))?));
        if let Err(error) = told {
            say(format_args!("sluice run: the other components are not told: {error:#}"));
        }
    }
}
