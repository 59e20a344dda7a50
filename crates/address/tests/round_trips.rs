//! Properties: texts come back, matching agrees with a slow model, and no input panics.

use address::config::Config;
use address::{
    Endpoint, ObjectKind, RemotePath, Resolved, Route, Routes, Settings, SocketName, StorePlace,
    StoreSpec, Uri, clean_absolute, detect,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// A path component of arbitrary bytes: not empty, `.` or `..`, without slash and NUL.
fn name() -> impl Strategy<Value = Vec<u8>> {
    vec((1..=255u8).prop_filter("no slash", |byte| *byte != b'/'), 1..6)
        .prop_filter("a name", |name| !matches!(&name[..], b"." | b".."))
}

fn names(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(name(), count).prop_map(|names| names.join(&b'/'))
}

fn socket_path() -> impl Strategy<Value = SocketName> {
    use std::os::unix::ffi::OsStrExt;
    (names(0..3), name(), any::<bool>()).prop_map(|(dir, name, ends)| {
        let suffix: &[u8] = if ends { b".sock" } else { b"" };
        let path = [b"/", &dir[..], b"/", &name, suffix].concat();
        let path = clean_absolute(&path);
        SocketName::Path(std::path::Path::new(std::ffi::OsStr::from_bytes(&path)).to_path_buf())
    })
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let host = || {
        prop_oneof!["[a-z0-9][a-z0-9._-]{0,8}", Just("::1".to_owned()), Just("fe80::2".to_owned())]
    };
    prop_oneof![
        Just(Endpoint::Direct),
        socket_path().prop_map(Endpoint::Unix),
        "[a-z#%A-Z]{1,8}".prop_map(|name| Endpoint::Unix(SocketName::Named(name))),
        (host(), 1..=65535u16).prop_map(|(host, port)| Endpoint::Tcp { host, port }),
        "\\PC{1,8}".prop_map(|service| Endpoint::Mpi { service }),
        (proptest::option::of("[a-z][a-z0-9-]{0,5}"), host(), proptest::option::of(1..=65535u16))
            .prop_map(|(user, host, port)| Endpoint::Ssh { user, host, port }),
        "[a-z0-9][a-z0-9.-]{0,7}"
            .prop_map(|bucket| Endpoint::Object { kind: ObjectKind::S3, bucket }),
    ]
}

fn uri() -> impl Strategy<Value = Uri> {
    (endpoint(), names(0..4), any::<bool>()).prop_map(|(endpoint, mut path, slash)| {
        if slash {
            path.push(b'/');
        }
        Uri { endpoint, path: RemotePath::new(&path) }
    })
}

/// Few short names, so that paths and prefixes meet often.
fn wandering_path() -> impl Strategy<Value = String> {
    vec(prop_oneof!["a", "b", "ab", "\\.\\.", "\\.", "", "\\.b"], 0..7)
        .prop_map(|names| format!("/{}", names.join("/")))
}

fn prefix() -> impl Strategy<Value = String> {
    vec(prop_oneof!["a", "b", "ab"], 1..3).prop_map(|names| format!("/{}", names.join("/")))
}

proptest! {
    #[test]
    fn a_uri_survives_its_text(uri in uri()) {
        let text = uri.to_bytes();
        prop_assert_eq!(Uri::parse(&text).unwrap(), uri.clone());
        prop_assert!(detect(&text).is_some());
    }

    #[test]
    fn a_uri_survives_folded_slashes_and_a_directory_before_it(uri in uri()) {
        // A path component that is itself a scheme would be taken for the URI.
        prop_assume!(!uri.path.names().any(|name| name.contains(&b':')));
        let folded = clean_absolute(&[b"/home/me/", &uri.to_bytes()[..]].concat());
        let found = detect(&folded).unwrap();
        let again = found.uri(&folded).unwrap();
        prop_assert_eq!(again.endpoint, uri.endpoint);
        prop_assert!(again.path.names().eq(uri.path.names()));
    }

    #[test]
    fn settings_survive_their_text(
        uris in vec(uri(), 0..3), places in vec((name(), names(1..3), any::<bool>()), 0..3), msize_bytes in any::<u32>()
    ) {
        let routes = uris.into_iter().enumerate().map(|(i, uri)| Route::new(format!("/r {i}").as_bytes(), uri).unwrap());
        let stores = places.into_iter().enumerate().map(|(i, (name, dir, read_only))| {
            let name = [&name[..], i.to_string().as_bytes()].concat();
            StoreSpec::new(&name, StorePlace::parse(&[b"/", &dir[..]].concat()).unwrap().unwrap(), read_only).unwrap()
        });
        let mut settings = Settings { routes: Routes::new(routes).unwrap(), stores: stores.collect(), ..Settings::default() };
        prop_assume!(StoreSpec::check_distinct(&settings.stores).is_ok());
        settings.client.msize_bytes = msize_bytes;
        prop_assert_eq!(Settings::from_env(settings.to_env().as_bytes()).unwrap(), settings);
    }

    #[test]
    fn matching_agrees_with_cleaning_first(
        prefixes in proptest::collection::btree_set(prefix(), 1..4), cwd in wandering_path(), path in wandering_path(),
        relative in any::<bool>()
    ) {
        let routes = prefixes.iter().map(|prefix| Route::new(prefix.as_bytes(), "scdc:///s".parse().unwrap()).unwrap());
        let routes = Routes::new(routes).unwrap();
        let path = if relative { path.trim_start_matches('/') } else { &path };
        let whole = if relative { format!("{cwd}/{path}") } else { path.to_owned() };
        let clean = String::from_utf8(clean_absolute(whole.as_bytes())).unwrap();
        let expected = prefixes
            .iter()
            .filter(|prefix| clean.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
            .max_by_key(|prefix| prefix.len());
        match (routes.resolve(cwd.as_bytes(), path.as_bytes()), expected) {
            (Resolved::Remote(hit), Some(prefix)) => {
                prop_assert_eq!(hit.route.prefix(), prefix.as_bytes());
                let there = [prefix.as_bytes(), b"/", &hit.uri().path.as_bytes()[1..]].concat();
                prop_assert_eq!(clean_absolute(&there), clean.as_bytes());
            }
            (Resolved::Local | Resolved::LocalCleaned, None) => {}
            (got, expected) => prop_assert!(false, "{whole} is {got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn the_way_back_leads_there_again(uri in uri()) {
        let routes = Routes::new([Route::new(b"/far", Uri { endpoint: uri.endpoint.clone(), path: RemotePath::default() }).unwrap()]);
        let routes = routes.unwrap();
        match routes.resolve(b"", &routes.path_of(&uri)) {
            Resolved::Remote(hit) => prop_assert_eq!(hit.uri(), uri),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn no_bytes_panic(text in vec(any::<u8>(), 0..64), head in prop_oneof!["scdc", "scdc\\+(tcp|uds|mpi|ssh|x):/{0,3}", "s3://", "sluice-settings 1\n(route|store|x)="]) {
        let text = [head.as_bytes(), &text[..]].concat();
        if let Some(found) = detect(&text) {
            let _ = found.uri(&text);
        }
        let _ = Uri::parse(&text);
        let _ = Endpoint::parse_listen(&text);
        let _ = Route::parse(&text);
        let _ = StoreSpec::parse(&text, false);
        let _ = Settings::from_env(&text);
        let _ = Config::parse(&String::from_utf8_lossy(&text), "f".as_ref());
    }
}
