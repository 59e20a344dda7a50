//! What the launcher tells the preload library, in the one environment variable `SLUICE_SETTINGS`.
//!
//! ```text
//! sluice-settings 1
//! route=/far scdc+tcp://host/base
//! store=data rw /srv/data
//! detour=scdc+tcp://host/base scdc+uds://%2Ftmp%2Fs.sock/log
//! objects=scdc+uds://%2Ftmp%2Fobjects.sock
//! msize_bytes=1048576
//! ```
//!
//! Fields are divided by spaces and percent-escaped, so that any byte may stand in a path.

use crate::error::{SettingsFault, lossy};
use crate::escape;
use crate::{
    AddressError, Detour, Endpoint, ObjectKind, RemotePath, Route, Routes, StorePlace, StoreSpec,
    Uri,
};

const FIRST_LINE: &str = "sluice-settings 1";

/// How a client behaves. Every field has a flag of `sluice run` and a key in `[client]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// Most bytes read ahead of a program that reads in order.
    pub read_ahead_bytes: u64,
    /// Most bytes a program may write before they are acknowledged.
    pub write_behind_bytes: u64,
    /// Greatest 9P message, agreed with the server; a peer may lower it.
    pub msize_bytes: u32,
    /// How long a broken connection is tried again before a program sees EIO.
    pub reconnect_seconds: u32,
}

impl ClientOptions {
    /// Least and greatest msize: below, a 9P header and a name would not fit; above, no peer gains.
    pub const MSIZE_BYTES_RANGE: (u32, u32) = (4096, 64 << 20);
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            read_ahead_bytes: 16 << 20,
            write_behind_bytes: 16 << 20,
            // Exactly 1 MiB for data: with 4–16 such messages in flight, 1 ms of round trip costs nothing.
            msize_bytes: (1 << 20) + 4096,
            reconnect_seconds: 15,
        }
    }
}

/// Everything a preloaded process needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Mapped prefixes.
    pub routes: Routes,
    /// Stores of `scdc:///NAME`, in this process.
    pub stores: Vec<StoreSpec>,
    /// Addresses that are reached over other services; the first that fits counts.
    pub detours: Vec<Detour>,
    /// The service over which buckets are reached: there, `s3://BUCKET/key` is `s3/BUCKET/key`.
    pub objects: Option<Uri>,
    /// How the client behaves.
    pub client: ClientOptions,
}

impl Settings {
    /// Name of the environment variable.
    pub const VARIABLE: &'static str = "SLUICE_SETTINGS";

    /// The variable's value: ASCII without NUL.
    pub fn to_env(&self) -> String {
        let mut out = Vec::new();
        let field = |out: &mut Vec<u8>, bytes: &[u8]| {
            escape::encode_into(out, bytes, |byte| {
                escape::is_unreserved(byte) || matches!(byte, b'/' | b':' | b'+' | b'@')
            });
        };
        out.extend_from_slice(FIRST_LINE.as_bytes());
        for route in &self.routes {
            out.extend_from_slice(b"\nroute=");
            field(&mut out, route.prefix());
            out.push(b' ');
            field(&mut out, &route.uri().to_bytes());
        }
        for store in &self.stores {
            out.extend_from_slice(b"\nstore=");
            field(&mut out, &store.name);
            out.extend_from_slice(if store.read_only { b" ro " } else { b" rw " });
            field(&mut out, &store.place.to_bytes());
        }
        for detour in &self.detours {
            out.extend_from_slice(b"\ndetour=");
            field(&mut out, &detour.from.to_bytes());
            out.push(b' ');
            field(&mut out, &detour.over.to_bytes());
        }
        if let Some(objects) = &self.objects {
            out.extend_from_slice(b"\nobjects=");
            field(&mut out, &objects.to_bytes());
        }
        let ClientOptions { read_ahead_bytes, write_behind_bytes, msize_bytes, reconnect_seconds } =
            self.client;
        let numbers = format!(
            "\nread_ahead_bytes={read_ahead_bytes}\nwrite_behind_bytes={write_behind_bytes}\nmsize_bytes={msize_bytes}\
             \nreconnect_seconds={reconnect_seconds}\n"
        );
        // Every field is escaped to ASCII.
        lossy(&out) + &numbers
    }

    /// Reads the variable's value.
    ///
    /// # Errors
    /// [`AddressError::Settings`] with the line. The launcher writes what this reads, so an error means a mixed installation
    /// or a variable set by hand.
    pub fn from_env(value: &[u8]) -> Result<Self, AddressError> {
        let mut lines = value.split(|&byte| byte == b'\n').enumerate();
        let fail = |line: usize, fault| AddressError::Settings { line: line + 1, fault };
        if lines.next().map(|(_, first)| first) != Some(FIRST_LINE.as_bytes()) {
            return Err(fail(0, SettingsFault::Version { expected: FIRST_LINE }));
        }
        let mut settings = Self::default();
        let mut routes = Vec::new();
        let mut last = 0;
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            last = number;
            settings.read_line(line, &mut routes).map_err(|fault| fail(number, fault))?;
        }
        let address = |error| fail(last, SettingsFault::Address(Box::new(error)));
        settings.routes = Routes::new(routes).map_err(address)?;
        StoreSpec::check_distinct(&settings.stores).map_err(address)?;
        Ok(settings)
    }

    /// Where an address leads by the detours.
    pub fn lead(&self, uri: Uri) -> Uri {
        let led = self.detours.iter().find_map(|detour| detour.lead(&uri)).unwrap_or(uri);
        match (&led.endpoint, &self.objects) {
            (Endpoint::Object { kind, bucket }, Some(objects)) => {
                let bucket = objects.join(kind.scheme().as_bytes()).join(bucket.as_bytes());
                bucket.join(led.path.as_bytes())
            }
            _ => led,
        }
    }

    /// The bucket's address of what [`Settings::lead`] has led to the service for buckets.
    fn lead_back_to_bucket(&self, uri: &Uri) -> Option<Uri> {
        let objects = self.objects.as_ref().filter(|objects| objects.endpoint == uri.endpoint)?;
        let rest = uri.path.strip_prefix(&objects.path)?;
        let mut names = rest.splitn(3, |byte| *byte == b'/');
        let kind = ObjectKind::of_scheme(names.next()?)?;
        let bucket = String::from_utf8(names.next()?.to_vec()).ok()?;
        let path = RemotePath::new(names.next().unwrap_or_default());
        Some(Uri { endpoint: Endpoint::Object { kind, bucket }, path })
    }

    /// The path under which the program knows `uri`: with the detour undone, and below a mapped prefix if one leads there.
    pub fn path_of(&self, uri: &Uri) -> Vec<u8> {
        let bucket = self.lead_back_to_bucket(uri);
        let uri = bucket.as_ref().unwrap_or(uri);
        let known = self.detours.iter().find_map(|detour| detour.lead_back(uri));
        self.routes.path_of(known.as_ref().unwrap_or(uri))
    }

    fn read_line(&mut self, line: &[u8], routes: &mut Vec<Route>) -> Result<(), SettingsFault> {
        let address = |error| SettingsFault::Address(Box::new(error));
        let divide = memchr::memchr(b'=', line).ok_or(SettingsFault::Field)?;
        let mut fields = line[divide + 1..].split(|&byte| byte == b' ');
        let mut field = || {
            let raw = fields.next().ok_or(SettingsFault::Field)?;
            escape::decode(raw).map_err(|_| SettingsFault::Escape)
        };
        match &line[..divide] {
            b"route" => {
                let (prefix, uri) = (field()?, field()?);
                let uri = Uri::parse(&uri).map_err(address)?;
                routes.push(Route::new(&prefix, uri).map_err(address)?);
            }
            b"store" => {
                let (name, rights, place) = (field()?, field()?, field()?);
                let read_only = match &rights[..] {
                    b"ro" => true,
                    b"rw" => false,
                    _ => return Err(SettingsFault::Field),
                };
                let place =
                    StorePlace::parse(&place).map_err(address)?.ok_or(SettingsFault::Field)?;
                self.stores.push(StoreSpec::new(&name, place, read_only).map_err(address)?);
            }
            b"detour" => {
                let (from, over) = (field()?, field()?);
                let from = Uri::parse(&from).map_err(address)?;
                let over = Uri::parse(&over).map_err(address)?;
                self.detours.push(Detour { from, over });
            }
            b"objects" => self.objects = Some(Uri::parse(&field()?).map_err(address)?),
            b"read_ahead_bytes" => self.client.read_ahead_bytes = number(&field()?)?,
            b"write_behind_bytes" => self.client.write_behind_bytes = number(&field()?)?,
            b"msize_bytes" => self.client.msize_bytes = number(&field()?)?,
            b"reconnect_seconds" => self.client.reconnect_seconds = number(&field()?)?,
            key => return Err(SettingsFault::Key { key: lossy(key) }),
        }
        Ok(())
    }
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, SettingsFault> {
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| SettingsFault::Number { text: lossy(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_environment() {
        let settings = Settings {
            routes: Routes::new([
                Route::parse(b"/far=scdc+tcp://h:1/base").unwrap(),
                Route::new(b"/with space\n%=", "scdc+uds://%2Fa%2Fb/x y".parse().unwrap()).unwrap(),
            ])
            .unwrap(),
            stores: vec![
                StoreSpec::new(b"d", StorePlace::Dir("/srv/a b".into()), true).unwrap(),
                StoreSpec::new(b"\xff", StorePlace::Mem, false).unwrap(),
            ],
            detours: vec![Detour {
                from: "scdc+tcp://h/a b".parse().unwrap(),
                over: "scdc+uds://%2Fs/log".parse().unwrap(),
            }],
            objects: Some("scdc+uds://%2Fs%2Fo".parse().unwrap()),
            client: ClientOptions {
                msize_bytes: 65536,
                reconnect_seconds: 0,
                ..ClientOptions::default()
            },
        };
        let value = settings.to_env();
        assert!(value.is_ascii());
        assert_eq!(Settings::from_env(value.as_bytes()), Ok(settings));
    }

    #[test]
    fn buckets_are_led_to_their_service_and_known_by_their_addresses() {
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let settings = Settings {
            routes: Routes::new([Route::parse(b"/far=s3://b/base").unwrap()]).unwrap(),
            objects: Some(uri("scdc+uds:///run/o.sock")),
            ..Settings::default()
        };
        let led = settings.lead(uri("gs://b/a b/c"));
        assert_eq!(led, uri("scdc+uds:///run/o.sock/gs/b/a b/c"));
        assert_eq!(settings.path_of(&led), b"gs://b/a b/c");
        assert_eq!(settings.path_of(&settings.lead(uri("s3://b/base/x"))), b"/far/x");
        assert_eq!(settings.lead(uri("s3://b")), uri("scdc+uds:///run/o.sock/s3/b"));
        assert_eq!(settings.lead(uri("scdc:///s3/b")), uri("scdc:///s3/b"));
    }

    #[test]
    fn what_the_launcher_did_not_write_is_refused_by_line() {
        let line_and_fault = |value: &str| match Settings::from_env(value.as_bytes()) {
            Err(AddressError::Settings { line, fault }) => (line, fault),
            other => panic!("{value}: {other:?}"),
        };
        assert!(matches!(line_and_fault(""), (1, SettingsFault::Version { .. })));
        assert!(matches!(
            line_and_fault("sluice-settings 1\nroute=/far"),
            (2, SettingsFault::Field)
        ));
        assert!(matches!(
            line_and_fault("sluice-settings 1\n\ncolour=red"),
            (3, SettingsFault::Key { .. })
        ));
        assert!(matches!(
            line_and_fault("sluice-settings 1\nmsize_bytes=x"),
            (2, SettingsFault::Number { .. })
        ));
        assert!(matches!(
            line_and_fault("sluice-settings 1\nroute=/far%2 x"),
            (2, SettingsFault::Escape)
        ));
        assert!(matches!(
            line_and_fault("sluice-settings 1\nroute=far scdc:///x"),
            (2, SettingsFault::Address(_))
        ));
    }
}
