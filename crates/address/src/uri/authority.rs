//! The part of a URI between the scheme and the path: host and port, socket, port name, bucket.

use std::net::Ipv6Addr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{
    DEFAULT_TCP_PORT, Endpoint, ObjectKind, SocketName, UriFault, distance, escape, lossy, names,
};

/// A fault and the byte at which it was found.
type Located = (usize, UriFault);

/// Reads the authority of `text`, whose first slash is at `slash_at`, and says where the path begins.
pub(super) fn parse(
    scheme: &[u8],
    text: &[u8],
    slash_at: usize,
) -> Result<(Endpoint, usize), Located> {
    let slashes = text[slash_at..].iter().take_while(|&&byte| byte == b'/').count();
    let authority_at = slash_at + slashes;
    let authority_len =
        memchr::memchr(b'/', &text[authority_at..]).unwrap_or(text.len() - authority_at);
    let rest_at = authority_at + authority_len;
    let authority = &text[authority_at..rest_at];
    let transport = scheme.strip_prefix(b"scdc").or_else(|| scheme.strip_prefix(b"sluice"));

    let authority_is_empty = slashes > 2 || authority.is_empty();
    let missing = |what| (slash_at + slashes.min(2), UriFault::Missing { what });
    let Some(transport) = transport else {
        let kind = ObjectKind::of_scheme(scheme).ok_or((0, UriFault::NotAUri))?;
        if authority_is_empty {
            return Err(missing(if kind.is_web() { "the host" } else { "the bucket" }));
        }
        let bucket = if kind.is_web() {
            host_and_port(authority).map_err(|(at, fault)| (authority_at + at, fault))?;
            lossy(authority)
        } else {
            bucket(authority, authority_at)?
        };
        return Ok((Endpoint::Object { kind, bucket }, rest_at));
    };
    match transport {
        // Two slashes alone would make this a host; one or three are the root of this process's stores.
        b"" if slashes == 2 && !authority.is_empty() => {
            Err((authority_at, UriFault::HostWithoutTransport { authority: lossy(authority) }))
        }
        b"" => Ok((Endpoint::Direct, authority_at)),
        b"+uds" => socket(text, slashes, authority_at, rest_at),
        b"+mpi" if authority_is_empty => Err(missing("the name or rank of a service")),
        b"+tcp" | b"+ssh" if authority_is_empty => Err(missing("the host")),
        b"+tcp" => {
            let (host, port) =
                host_and_port(authority).map_err(|(at, fault)| (authority_at + at, fault))?;
            Ok((Endpoint::Tcp { host, port: port.unwrap_or(DEFAULT_TCP_PORT) }, rest_at))
        }
        b"+mpi" => Ok((Endpoint::Mpi { service: decoded(authority, authority_at)? }, rest_at)),
        b"+ssh" => {
            let (user, host_part, host_at) = match memchr::memchr(b'@', authority) {
                Some(at) => (
                    Some(user(&authority[..at], authority_at)?),
                    &authority[at + 1..],
                    authority_at + at + 1,
                ),
                None => (None, authority, authority_at),
            };
            let (host, port) =
                host_and_port(host_part).map_err(|(at, fault)| (host_at + at, fault))?;
            Ok((Endpoint::Ssh { user, host, port }, rest_at))
        }
        unknown => {
            let transport = lossy(unknown.strip_prefix(b"+").unwrap_or(unknown));
            let known = ["uds", "tcp", "mpi", "ssh"];
            let nearest =
                known.into_iter().min_by_key(|known| distance(&transport, known)).unwrap_or("tcp");
            Err((
                scheme.len() - unknown.len() + 1,
                UriFault::UnknownTransport { transport, nearest },
            ))
        }
    }
}

/// `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT`.
pub(super) fn host_and_port(text: &[u8]) -> Result<(String, Option<u16>), Located> {
    if text.is_empty() {
        return Err((0, UriFault::Missing { what: "the host" }));
    }
    let bad_host = |host: &[u8]| (0, UriFault::Host { host: lossy(host) });
    let (host, after) = match text.strip_prefix(b"[") {
        Some(inner) => {
            let end = memchr::memchr(b']', inner).ok_or_else(|| bad_host(text))?;
            let host = std::str::from_utf8(&inner[..end]).map_err(|_| bad_host(text))?;
            let address: Ipv6Addr = host.parse().map_err(|_| bad_host(text))?;
            (address.to_string(), end + 2)
        }
        None => {
            let end = memchr::memchr(b':', text).unwrap_or(text.len());
            // A leading dash would be an option to ssh, a lone dot would be folded away.
            let allowed =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            if end == 0 || matches!(text[0], b'-' | b'.') || !text[..end].iter().all(allowed) {
                return Err(bad_host(&text[..end]));
            }
            (lossy(&text[..end]), end)
        }
    };
    match &text[after..] {
        [] => Ok((host, None)),
        [b':', digits @ ..] => {
            let port = std::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|d| d.is_ascii_digit()));
            match port.and_then(|digits| digits.parse().ok()) {
                Some(port) if port != 0 => Ok((host, Some(port))),
                _ => Err((after + 1, UriFault::Port { port: lossy(digits) })),
            }
        }
        _ => Err(bad_host(text)),
    }
}

/// A login name: what useradd(8) accepts and a little more, never an option to ssh.
fn user(text: &[u8], at: usize) -> Result<String, Located> {
    let allowed = |byte: &u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'+' | b'$')
    };
    match text {
        [first, ..] if *first != b'-' && text.iter().all(allowed) => Ok(lossy(text)),
        _ => Err((at, UriFault::User { user: lossy(text) })),
    }
}

fn bucket(text: &[u8], at: usize) -> Result<String, Located> {
    if matches!(text, [b'.' | b'-', ..]) || !text.iter().all(|&byte| escape::is_unreserved(byte)) {
        return Err((at, UriFault::Bucket { bucket: lossy(text) }));
    }
    Ok(lossy(text))
}

fn decoded(text: &[u8], at: usize) -> Result<String, Located> {
    let bytes = escape::decode(text).map_err(|offset| (at + offset, UriFault::Escape))?;
    if bytes.contains(&0) {
        return Err((at, UriFault::Nul));
    }
    String::from_utf8(bytes).map_err(|_| (at, UriFault::NotUtf8))
}

/// A socket's path or name, and where the path behind it begins.
///
/// Three slashes: an absolute path up to the first component that ends in `.sock`. Two: the authority, escaped. One: a
/// program folded the slashes, so an escape tells the second form and a `.sock` the first.
fn socket(
    text: &[u8],
    slashes: usize,
    authority_at: usize,
    rest_at: usize,
) -> Result<(Endpoint, usize), Located> {
    let authority = &text[authority_at..rest_at];
    let missing = || (authority_at, UriFault::Missing { what: "the socket" });
    let escaped = slashes <= 2 && memchr::memchr(b'%', authority).is_some();
    if slashes != 2 && !escaped {
        if let Some(end) = socket_end(text, authority_at) {
            let path = [b"/", &text[authority_at..end]].concat();
            return Ok((Endpoint::Unix(SocketName::Path(folded(&path))), end));
        }
        if slashes > 2 {
            let fault =
                if authority.is_empty() { missing() } else { (authority_at, UriFault::SocketEnd) };
            return Err(fault);
        }
    }
    if authority.is_empty() {
        return Err(missing());
    }
    let name =
        escape::decode(authority).map_err(|offset| (authority_at + offset, UriFault::Escape))?;
    if name.contains(&0) {
        return Err((authority_at, UriFault::Nul));
    }
    let socket = match name.first() {
        Some(b'/') if names(&name).next().is_some() => SocketName::Path(folded(&name)),
        _ => SocketName::Named(
            service_name(&name)
                .ok_or_else(|| (authority_at, UriFault::SocketName { name: lossy(&name) }))?,
        ),
    };
    Ok((Endpoint::Unix(socket), rest_at))
}

/// The end of the first component at or after `from` that ends in `.sock`.
fn socket_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < text.len() {
        let end = memchr::memchr(b'/', &text[at..]).map_or(text.len(), |len| at + len);
        if text[at..end].ends_with(b".sock") {
            return Some(end);
        }
        at = end + 1;
    }
    None
}

/// The name of a service of this user. One that ends in `.sock` was meant as a relative path, which no URI has.
fn service_name(name: &[u8]) -> Option<String> {
    let plain =
        !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.ends_with(b".sock");
    String::from_utf8(name.to_vec()).ok().filter(|_| plain)
}

/// An absolute path with repeated slashes and `.` folded; `..` stays, as it may follow a symbolic link.
fn folded(path: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(path.len());
    for name in names(path) {
        out.push(b'/');
        out.extend_from_slice(name);
    }
    path_buf(&out)
}

pub(super) fn path_buf(bytes: &[u8]) -> PathBuf {
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_path_buf()
}

/// True if `scdc+uds://` and this path are understood as this path again, also with slashes folded.
pub(super) fn reads_back_unescaped(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
        && !path.contains(&b'%')
        && folded(path).as_os_str().as_bytes() == path
        && socket_end(path, 1) == Some(path.len())
}
