//! Does a path that a program opens contain one of our URIs? Asked on every call, so nearly free.

use crate::{AddressError, Uri};

/// Where a URI begins in a path.
///
/// Programs prepend directories (`/home/me/scdc+tcp:/host/x`) and fold slashes, so a URI may begin at
/// any component. The last one wins: `URI/URI` comes from a program that believed the second to be relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// Byte at which the scheme begins.
    pub start: usize,
}

impl Detected {
    /// Parses the URI that was detected in `path`.
    ///
    /// # Errors
    /// What [`Uri::parse`] says: something looks like a Sluice URI but is not one.
    pub fn uri(self, path: &[u8]) -> Result<Uri, AddressError> {
        Uri::parse(path.get(self.start..).unwrap_or_default())
    }
}

/// Finds the URI in `path`, or answers quickly that there is none. Never allocates.
///
/// A component that is a scheme of ours and a colon counts (`scdc+tcp:`), also with a transport that does not
/// exist (`scdc+tpc:`): a typing error must not become a local file.
#[inline]
pub fn detect(path: &[u8]) -> Option<Detected> {
    // Nearly every path of every program leaves here.
    memchr::memchr(b':', path)?;
    detect_slowly(path)
}

#[cold]
fn detect_slowly(path: &[u8]) -> Option<Detected> {
    memchr::memrchr_iter(b':', path).find_map(|colon| {
        let start = memchr::memrchr(b'/', &path[..colon]).map_or(0, |slash| slash + 1);
        begins_uri(&path[start..colon], path.get(colon + 1)).then_some(Detected { start })
    })
}

/// True if `word`, a colon and the byte `after` it begin a URI of ours.
pub(crate) fn begins_uri(word: &[u8], after: Option<&u8>) -> bool {
    match after {
        Some(b'/') => is_scheme(word),
        Some(_) => false,
        // What is left of `scdc:///` when a program cuts the slashes at the end.
        None => matches!(word, b"scdc" | b"sluice"),
    }
}

/// True if the word before the colon claims to be ours.
pub(crate) fn is_scheme(word: &[u8]) -> bool {
    let transport = word.strip_prefix(b"scdc").or_else(|| word.strip_prefix(b"sluice"));
    matches!(word, b"s3" | b"gs" | b"az")
        || transport.is_some_and(|rest| rest.is_empty() || rest[0] == b'+')
}

/// True if `text` is the URI of a file of a web server.
///
/// It is no URI of ours in a path that a program opens: many programs (git, curl, R) look whether a file of that name exists
/// before they fetch it themselves.
pub(crate) fn begins_web_uri(text: &[u8]) -> bool {
    text.starts_with(b"https://") || text.starts_with(b"http://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(path: &str) -> Option<usize> {
        detect(path.as_bytes()).map(|found| found.start)
    }

    #[test]
    fn ordinary_paths_pass() {
        for path in [
            "",
            "/",
            "/etc/passwd",
            "a:b",
            "/usr/lib:/x",
            "scdc+tcp",
            "scdc+tcp:",
            "http://host/x",
            "c:/x",
            "xscdc://a",
        ] {
            assert_eq!(start(path), None, "{path}");
        }
    }

    #[test]
    fn a_scheme_begins_a_component() {
        assert_eq!(start("scdc:///a"), Some(0));
        assert_eq!(start("sluice+uds:/a"), Some(0));
        assert_eq!(start("s3://bucket/key"), Some(0));
        assert_eq!(start("/home/me/gs:/bucket/key"), Some(9));
        assert_eq!(start("https://host/file"), None, "programs fetch such names themselves");
        assert_eq!(start("/home/me/scdc:"), Some(9));
        assert_eq!(start("/home/me/scdc+tcp:/host/x"), Some(9));
        assert_eq!(start("./scdc+tcp://host/x"), Some(2));
        assert_eq!(start("/home/me/my-scdc:/x"), None);
    }

    #[test]
    fn a_typing_error_is_still_ours() {
        assert_eq!(start("scdc+tpc://host/x"), Some(0));
    }

    #[test]
    fn the_last_uri_wins_and_colons_in_names_do_not_hide_it() {
        assert_eq!(start("scdc+tcp://a/b/scdc+tcp:/c/d:e"), Some(15));
    }
}
