//! SCDC's addresses. They are those of Sluice, but for sockets: a name may be left out, and a file may be called anything.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use address::{Endpoint, SocketName, Uri};

/// The socket's name where an address, or a node port, gives none.
pub(crate) const DEFAULT_SOCKET: &str = "scdc";

/// Where an address leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) endpoint: Endpoint,
    /// Without slashes at its ends.
    pub(crate) path: String,
}

/// Puts texts in the place of `%s`.
///
/// # Errors
/// What getting a text says.
pub(crate) fn filled(
    uri: &str,
    mut text: impl FnMut() -> Result<String, String>,
) -> Result<String, String> {
    let mut parts = uri.split("%s");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        whole.push_str(&text()?);
        whole.push_str(part);
    }
    Ok(whole)
}

/// Understands an address.
///
/// # Errors
/// In words.
pub(crate) fn parse(uri: &str) -> Result<Way, String> {
    let Some((scheme, rest)) = uri.split_once(':') else { return Err("no URI given".to_owned()) };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => ("", rest),
    };
    let way = |endpoint, path: &str| Ok(Way { endpoint, path: path.trim_matches('/').to_owned() });
    match scheme {
        // The names of direct node ports all lead here.
        "scdc" | "sluice" => way(Endpoint::Direct, path),
        "scdc+uds" | "sluice+uds" => {
            let authority = authority.strip_prefix("socketname:").unwrap_or(authority);
            match authority {
                "socketfile:" => file(&format!("/{path}")),
                "" => file(&format!("/{path}")).or_else(|_| {
                    way(Endpoint::Unix(SocketName::Named(DEFAULT_SOCKET.to_owned())), path)
                }),
                name if is_name(name) => {
                    way(Endpoint::Unix(SocketName::Named(name.to_owned())), path)
                }
                _ => Err(format!("`{authority}` in `{uri}` is no name of a socket")),
            }
        }
        _ => {
            let known = Uri::parse(uri.as_bytes()).map_err(|error| error.to_string())?;
            let path = String::from_utf8_lossy(known.path.as_bytes()).into_owned();
            way(known.endpoint, &path)
        }
    }
}

pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Finds the socket in a path: what is one, or is called as if it were.
fn file(path: &str) -> Result<Way, String> {
    let mut ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).skip(1).collect();
    ends.push(path.len());
    let is_socket = |path: &str| {
        path.ends_with(".sock")
            || Path::new(path).metadata().is_ok_and(|found| found.file_type().is_socket())
    };
    match ends.into_iter().find(|end| is_socket(&path[..*end])) {
        Some(end) => Ok(Way {
            endpoint: Endpoint::Unix(SocketName::Path(PathBuf::from(&path[..end]))),
            path: path[end..].trim_matches('/').to_owned(),
        }),
        None => Err(format!("no part of `{path}` is a socket")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_scdc_are_understood() {
        let named = |name: &str| Endpoint::Unix(SocketName::Named(name.into()));
        let file = |path: &str| Endpoint::Unix(SocketName::Path(path.into()));
        let tcp = |port| Endpoint::Tcp { host: "localhost".into(), port };
        let good = [
            ("scdc:/a/b", Endpoint::Direct, "a/b"),
            ("scdc:///a/", Endpoint::Direct, "a"),
            ("scdc:////CONFIG", Endpoint::Direct, "CONFIG"),
            ("scdc://ID/a", Endpoint::Direct, "a"),
            ("scdc+uds:/a", named("scdc"), "a"),
            ("scdc+uds:///a/", named("scdc"), "a"),
            ("scdc+uds://multi/a", named("multi"), "a"),
            ("scdc+uds://socketname:multi/a", named("multi"), "a"),
            ("scdc+uds:///no/such/x.sock/a/b", file("/no/such/x.sock"), "a/b"),
            ("scdc+uds://socketfile:/no/such/x.sock/a", file("/no/such/x.sock"), "a"),
            ("scdc+tcp://localhost/a", tcp(address::DEFAULT_TCP_PORT), "a"),
            ("scdc+tcp://localhost:7/a", tcp(7), "a"),
        ];
        for (uri, endpoint, path) in good {
            assert_eq!(parse(uri), Ok(Way { endpoint, path: path.into() }), "{uri}");
        }
        for bad in ["bogus", "", "scdc+bogus://x/y", "scdc+uds://../x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let mut names = ["x", "y"].into_iter();
        let mut next = || names.next().map(str::to_owned).ok_or("none".to_owned());
        assert_eq!(filled("scdc+uds://%s/%s/z", &mut next).as_deref(), Ok("scdc+uds://x/y/z"));
        assert_eq!(filled("%s", &mut next), Err("none".to_owned()));
    }
}
