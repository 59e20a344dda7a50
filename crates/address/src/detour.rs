//! Detours: what is asked of one place is asked of another, which carries it there.
//!
//! `sluice run --log DIR --to scdc+tcp://host/store` leads everything at or below that address over the service that
//! keeps the log. The program goes on to know its files by the addresses it used.

use crate::path::clean_absolute;
use crate::{RemotePath, Uri};

/// One detour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detour {
    /// What leads elsewhere: this address and all below it.
    pub from: Uri,
    /// Where to.
    pub over: Uri,
}

impl Detour {
    /// Where `uri` leads by this detour; `None` if it is not concerned.
    ///
    /// A path that climbs out of the place by `..` is not; symbolic links before a `..` are not asked about.
    pub fn lead(&self, uri: &Uri) -> Option<Uri> {
        swap(uri, &self.from, &self.over)
    }

    /// The address by which the program knows what the detour led to `uri`.
    pub fn lead_back(&self, uri: &Uri) -> Option<Uri> {
        swap(uri, &self.over, &self.from)
    }
}

/// `uri` with `from` at its beginning replaced by `to`.
fn swap(uri: &Uri, from: &Uri, to: &Uri) -> Option<Uri> {
    if uri.endpoint != from.endpoint {
        return None;
    }
    if uri.path.names().any(|name| name == b"..") {
        // It may climb within the place, where what it means is for the place to say.
        let climbing = [b"/", uri.path.as_bytes()].concat();
        RemotePath::new(&clean_absolute(&climbing)).strip_prefix(&from.path)?;
    }
    let rest = uri.path.strip_prefix(&from.path)?;
    Some(Uri { endpoint: to.endpoint.clone(), path: to.path.join(rest) })
}

#[cfg(test)]
mod tests {
    use super::Detour;
    use crate::Uri;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_below_are_led_over_and_back_and_others_are_not() {
        let detour = Detour { from: uri("scdc+tcp://h/store"), over: uri("scdc+uds://%2Fs/log") };
        for (from, over) in [
            ("scdc+tcp://h/store", "scdc+uds://%2Fs/log"),
            ("scdc+tcp://h:5640/store/a/b", "scdc+uds://%2Fs/log/a/b"),
            ("scdc+tcp://h/store/d/", "scdc+uds://%2Fs/log/d/"),
            ("scdc+tcp://h/store/a/../b", "scdc+uds://%2Fs/log/a/../b"),
        ] {
            assert_eq!(detour.lead(&uri(from)), Some(uri(over)));
            assert_eq!(detour.lead_back(&uri(over)), Some(uri(from)));
        }
        for other in [
            "scdc+tcp://g/store/a",
            "scdc+tcp://h/stores",
            "scdc+tcp://h/",
            "scdc+tcp://h/store/../other",
            "scdc+tcp://h/store/a/../../other/x",
            "scdc:///store",
        ] {
            assert_eq!(detour.lead(&uri(other)), None, "{other}");
        }
    }
}
