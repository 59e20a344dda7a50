//! What each form of URI means, and that none is misread.

use super::*;

fn parse(text: &str) -> Uri {
    Uri::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn fault(text: &str) -> (usize, UriFault) {
    match Uri::parse(text.as_bytes()) {
        Err(AddressError::Uri { at, fault, .. }) => (at, fault),
        other => panic!("{text}: {other:?}"),
    }
}

fn tcp(host: &str, port: u16) -> Endpoint {
    Endpoint::Tcp { host: host.into(), port }
}

fn socket(path: &str) -> Endpoint {
    Endpoint::Unix(SocketName::Path(path.into()))
}

fn named(name: &str) -> Endpoint {
    Endpoint::Unix(SocketName::Named(name.into()))
}

#[test]
fn each_form_is_understood() {
    for (text, endpoint, path) in [
        ("scdc:///base/path", Endpoint::Direct, "base/path"),
        ("scdc:/base/path", Endpoint::Direct, "base/path"),
        ("sluice:///", Endpoint::Direct, ""),
        ("scdc+tcp://host/base", tcp("host", 5640), "base"),
        ("scdc+tcp:/host/base", tcp("host", 5640), "base"),
        ("sluice+tcp://host:17/base/", tcp("host", 17), "base/"),
        ("scdc+tcp://[::1]:99/a", tcp("::1", 99), "a"),
        ("scdc+tcp://[0:0::1]/a", tcp("::1", 5640), "a"),
        ("scdc+tcp://host", tcp("host", 5640), ""),
        ("scdc+tcp://host/a%20b", tcp("host", 5640), "a%20b"),
        ("scdc+uds://%2Ftmp%2Fs.sock/base/p", socket("/tmp/s.sock"), "base/p"),
        ("scdc+uds:/%2Ftmp%2Fs/base/p", socket("/tmp/s"), "base/p"),
        ("scdc+uds:///tmp/dir/s.sock/base/p", socket("/tmp/dir/s.sock"), "base/p"),
        ("scdc+uds:/tmp/dir/s.sock/base/p", socket("/tmp/dir/s.sock"), "base/p"),
        ("scdc+uds:///tmp/s.sock", socket("/tmp/s.sock"), ""),
        ("scdc+uds://name/base", named("name"), "base"),
        ("scdc+uds:/name/base", named("name"), "base"),
        ("scdc+uds://name/base/x.sock/y", named("name"), "base/x.sock/y"),
        ("scdc+mpi://tag%230$x/a", Endpoint::Mpi { service: "tag#0$x".into() }, "a"),
        (
            "scdc+ssh://me@host/a",
            Endpoint::Ssh { user: Some("me".into()), host: "host".into(), port: None },
            "a",
        ),
        (
            "scdc+ssh://host:22/a",
            Endpoint::Ssh { user: None, host: "host".into(), port: Some(22) },
            "a",
        ),
        ("gs://b/k", Endpoint::Object { kind: ObjectKind::Gcs, bucket: "b".into() }, "k"),
        ("az:/c/k", Endpoint::Object { kind: ObjectKind::Azure, bucket: "c".into() }, "k"),
        (
            "https://h.org:8443/a b",
            Endpoint::Object { kind: ObjectKind::Https, bucket: "h.org:8443".into() },
            "a b",
        ),
        (
            "s3://bucket/k/e:y",
            Endpoint::Object { kind: ObjectKind::S3, bucket: "bucket".into() },
            "k/e:y",
        ),
    ] {
        let uri = parse(text);
        assert_eq!((uri.endpoint, uri.path.as_bytes()), (endpoint, path.as_bytes()), "{text}");
    }
}

#[test]
fn names_may_have_any_byte() {
    let uri = Uri::parse(b"scdc+tcp://h/\xff\x01 %zz?#").unwrap();
    assert_eq!(uri.path.as_bytes(), b"\xff\x01 %zz?#");
    assert_eq!(uri.to_bytes(), b"scdc+tcp://h/\xff\x01 %zz?#");
}

#[test]
fn canonical_text() {
    for (text, canonical) in [
        ("sluice+tcp:/host:5640//a/./b", "scdc+tcp://host/a/b"),
        ("scdc+tcp://[::1]:1", "scdc+tcp://[::1]:1/"),
        ("scdc+uds://%2Ftmp%2Fs.sock/b", "scdc+uds:///tmp/s.sock/b"),
        ("scdc+uds://%2Ftmp%2Fs/b", "scdc+uds://%2Ftmp%2Fs/b"),
        ("scdc+uds://%2Fa.sock%2Fb.sock/b", "scdc+uds://%2Fa.sock%2Fb.sock/b"),
        ("scdc:/a", "scdc:///a"),
    ] {
        assert_eq!(parse(text).to_string(), canonical);
        assert_eq!(parse(canonical), parse(text));
    }
}

#[test]
fn faults_are_located_and_explained() {
    assert_eq!(fault("/etc/passwd"), (0, UriFault::NotAUri));
    assert_eq!(fault("scdc+tcp"), (0, UriFault::NotAUri));
    let (at, unknown) = fault("scdc+tpc://h/x");
    assert_eq!(
        (at, unknown),
        (5, UriFault::UnknownTransport { transport: "tpc".into(), nearest: "tcp" })
    );
    assert_eq!(
        fault("scdc://host/x"),
        (7, UriFault::HostWithoutTransport { authority: "host".into() })
    );
    assert_eq!(fault("scdc+tcp:///x/y"), (11, UriFault::Missing { what: "the host" }));
}

#[test]
fn bad_parts_are_refused() {
    assert!(matches!(fault("scdc+tcp://h:0/x"), (13, UriFault::Port { .. })));
    assert!(matches!(fault("scdc+tcp://h:65536/x"), (13, UriFault::Port { .. })));
    assert!(matches!(fault("scdc+tcp://h:+1/x"), (13, UriFault::Port { .. })));
    assert!(matches!(fault("scdc+tcp://a b/x"), (11, UriFault::Host { .. })));
    assert!(matches!(fault("scdc+tcp://[::1/x"), (_, UriFault::Host { .. })));
    assert!(matches!(fault("scdc+tcp://::1/x"), (_, UriFault::Host { .. })));
    assert!(matches!(fault("scdc+ssh://-oProxyCommand=x/x"), (_, UriFault::Host { .. })));
    assert!(matches!(fault("scdc+ssh://-x@h/x"), (_, UriFault::User { .. })));
    assert!(matches!(fault("scdc+uds:///tmp/s/x"), (12, UriFault::SocketEnd)));
    assert!(matches!(fault("scdc+uds://s.sock/x"), (_, UriFault::SocketName { .. })));
    assert!(matches!(fault("scdc+uds://%2/x"), (11, UriFault::Escape)));
    assert!(matches!(fault("scdc+uds://"), (_, UriFault::Missing { .. })));
    assert!(matches!(fault("s3:///"), (_, UriFault::Missing { .. })));
    assert!(matches!(fault("scdc+tcp://h/a\0b"), (14, UriFault::Nul)));
    assert!(matches!(fault("scdc+uds://%2Fa%00/b"), (_, UriFault::Nul)));
}

#[test]
fn named_sockets_resolve_to_the_users_directory() {
    let name = SocketName::Named("default".into());
    assert_eq!(
        name.resolve(Some("/run/user/7".as_ref()), 7),
        PathBuf::from("/run/user/7/sluice/default.sock")
    );
    assert_eq!(name.resolve(None, 7), PathBuf::from("/tmp/sluice-7/default.sock"));
    assert_eq!(
        name.resolve(Some("relative".as_ref()), 7),
        PathBuf::from("/tmp/sluice-7/default.sock")
    );
}

#[test]
fn listen_addresses() {
    let listen = |text: &str| Endpoint::parse_listen(text.as_bytes());
    assert_eq!(listen("unix:/tmp/s"), Ok(socket("/tmp/s")));
    assert_eq!(listen("tcp:127.0.0.1:17"), Ok(tcp("127.0.0.1", 17)));
    assert_eq!(listen("tcp:[::1]"), Ok(tcp("::1", 5640)));
    assert_eq!(listen("tcp:[::1]:0"), Ok(tcp("::1", 0)));
    assert_eq!(listen("scdc+tcp://h:9"), Ok(tcp("h", 9)));
    assert_eq!(listen("scdc+uds:///tmp/s.sock"), Ok(socket("/tmp/s.sock")));
    assert_eq!(listen("scdc+uds://name"), Ok(named("name")));
    for bad in
        ["", "tcp:", "unix:", "5640", "scdc+tcp://h/base", "scdc+ssh://h", "s3://b", "udp:h:1"]
    {
        assert!(listen(bad).is_err(), "{bad}");
    }
}
