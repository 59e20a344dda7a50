//! The provider `relay`: datasets of other services, each by a name, configured by commands.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use commands::{Given, HookStore, Provider, Served, Source};
use store::relay::RelayStore;
use store::{Exports, Store};

use super::hooks::CONFIG;
use super::library::{library, lock};
use super::uri;

/// What is relayed.
pub(crate) struct Relays {
    exports: Exports,
    targets: Mutex<BTreeMap<String, String>>,
}

impl Relays {
    /// None yet; its store has the configuration besides.
    pub(crate) fn new() -> Result<(Arc<Self>, Arc<dyn Store>), String> {
        let exports = Exports::new([]).map_err(|error| error.to_string())?;
        let relays = Arc::new(Self { exports, targets: Mutex::default() });
        let configuration = HookStore::new(Arc::new(Configuration(Arc::clone(&relays))));
        let added = relays.exports.add(CONFIG.as_bytes(), Arc::new(configuration));
        added.map_err(|error| error.to_string())?;
        Ok((Arc::clone(&relays), Arc::new(Shown(relays))))
    }

    fn configure(&self, line: &str) -> Result<String, String> {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        let [command, parameter, name, target] =
            std::array::from_fn(|_| words.next().unwrap_or_default());
        match (command, parameter) {
            ("ls", _) => Ok("type,relay".to_owned()),
            ("get", "type") => Ok("relay".to_owned()),
            ("get", "relay") => {
                let targets = lock(&self.targets);
                match targets.get(name) {
                    Some(target) => Ok(target.clone()),
                    None if name.is_empty() => {
                        let all: Vec<String> =
                            targets.iter().map(|(n, t)| format!("{n} {t}")).collect();
                        Ok(all.join(","))
                    }
                    None => Err(format!("getting relay '{name}' failed")),
                }
            }
            ("put" | "add", "relay") => self.put(name, target),
            ("rm", "relay") => {
                lock(&self.targets)
                    .remove(name)
                    .ok_or_else(|| format!("there is no relay '{name}'"))?;
                self.exports.remove(name.as_bytes());
                Ok(String::new())
            }
            _ => Err(format!(
                "`{line}` is not understood: put relay NAME URI, get relay [NAME], rm relay NAME, ls are known"
            )),
        }
    }

    fn put(&self, name: &str, target: &str) -> Result<String, String> {
        let failed =
            |why: String| format!("adding path '{name}' with url '{target}' failed: {why}");
        if !uri::is_name(name) || name == CONFIG {
            return Err(failed("it is no name".to_owned()));
        }
        let way = uri::parse(target).map_err(failed)?;
        let session = library()?.connection(&way.endpoint).map_err(failed)?;
        let store = RelayStore::new(session, way.path.as_bytes());
        let mut targets = lock(&self.targets);
        self.exports.remove(name.as_bytes());
        self.exports.add(name.as_bytes(), Arc::new(store)).map_err(|e| failed(e.to_string()))?;
        targets.insert(name.to_owned(), target.to_owned());
        Ok(String::new())
    }
}

struct Shown(Arc<Relays>);

impl Store for Shown {
    fn root(&self) -> store::Result<Arc<dyn store::Node>> {
        self.0.exports.root()
    }

    /// Relays may come at any time.
    fn blocks(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Configuration(Arc<Relays>);

impl Provider for Configuration {
    fn open(&self, _path: &[u8]) -> Result<Box<dyn Served>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Served for Configuration {
    fn run(&mut self, line: &[u8], _: &mut dyn Source, _: bool, _: bool) -> Given {
        match self.0.configure(&String::from_utf8_lossy(line)) {
            Ok(text) => Given { success: true, text: text.into_bytes(), ..Given::default() },
            Err(text) => Given::failed(format!("command failed: {text}")),
        }
    }
}
