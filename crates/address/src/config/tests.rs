//! What the file may say, and where a complaint points.

use super::*;

fn parse(text: &str) -> Result<Config, ConfigErrors> {
    Config::parse(text, Path::new("/etc/sl/sluice.toml"))
}

/// The message for `text`, with the file's name cut off.
fn complaint(text: &str) -> String {
    let message = parse(text).expect_err(text).to_string();
    message.strip_prefix("/etc/sl/sluice.toml:").expect("the file is named").to_owned()
}

#[test]
fn every_key_is_understood() {
    let config = parse(
        r#"
        [routes]
        "/far" = "scdc+tcp://host/base"
        [stores]
        data = "data"
        ref = { path = "/srv/ref", read_only = true }
        [client]
        read_ahead_bytes = "2MiB"
        write_behind_bytes = 0
        msize_bytes = 0x10000
        reconnect_seconds = 5
        [log]
        dir = "log"
        to = "scdc+tcp://host/base"
        size_max_bytes = "1GiB"
        bytes_per_second = "10MiB"
        [serve]
        listen = ["unix:/run/s.sock", "tcp:127.0.0.1:99"]
        read_only = true
        [serve.stores]
        scratch = "mem:"
        behind = "scdc+uds://other/x"
        [serve.limits]
        connections_max = 7
        fids_max = 8
        msize_bytes = "4MiB"
        idle_seconds = 0
        "#,
    )
    .unwrap();
    assert_eq!(config.routes.iter().map(Route::prefix).collect::<Vec<_>>(), [b"/far"]);
    assert_eq!(config.stores[0].place, StorePlace::Dir("/etc/sl/data".into()));
    assert_eq!(
        (&config.stores[1].place, config.stores[1].read_only),
        (&StorePlace::Dir("/srv/ref".into()), true)
    );
    let client = config.client.options();
    assert_eq!((client.read_ahead_bytes, client.write_behind_bytes), (2 << 20, 0));
    assert_eq!((client.msize_bytes, client.reconnect_seconds), (65536, 5));
    let log = config.log;
    assert_eq!(
        (log.dir, log.to),
        (Some("/etc/sl/log".into()), Some("scdc+tcp://host/base".into()))
    );
    assert_eq!((log.size_max_bytes, log.bytes_per_second), (Some(1 << 30), Some(10 << 20)));
    assert_eq!(config.serve.listen.len(), 2);
    assert!(config.serve.read_only);
    assert_eq!(config.serve.stores.len(), 2);
    let limits = config.serve.limits;
    assert_eq!(
        (limits.connections_max, limits.fids_max, limits.idle_seconds),
        (Some(7), Some(8), Some(0))
    );
    assert_eq!(limits.msize_bytes, Some(4 << 20));
}

#[test]
fn nothing_said_is_the_default() {
    assert_eq!(parse("").unwrap(), Config::default());
    assert_eq!(Config::default().client.options(), ClientOptions::default());
}

#[test]
fn unknown_keys_name_line_and_nearest() {
    assert_eq!(
        complaint("[client]\nmsize_byte = 1"),
        "2:1: unknown key `msize_byte`; did you mean `msize_bytes`?"
    );
    assert_eq!(complaint("\n[rutes]\n"), "2:2: unknown key `rutes`; did you mean `routes`?");
    assert_eq!(complaint("colour = 1"), "1:1: unknown key `colour`");
    assert!(complaint("[serve.limits]\nfid_max = 1").contains("`fids_max`"));
    assert!(complaint("[stores]\na = { path = \"x\", readonly = true }").contains("`read_only`"));
}

#[test]
fn methods_of_the_sieve_have_names() {
    for method in SieveMethod::ALL {
        let text = format!("[sieve]\nmpi = \"{method}\"");
        assert_eq!(parse(&text).unwrap().sieve.mpi, Some(method));
    }
    let enabled = parse("[sieve]\nmpi = \"enable\"").unwrap();
    assert_eq!(enabled.sieve.mpi, Some(SieveMethod::Adaptive));
    let told = complaint("[sieve]\nmpi = \"adaptiv\"");
    assert!(told.starts_with("2:7: `adaptiv` is no value of `mpi`, which is one of"), "{told}");
}

#[test]
fn every_error_is_told_in_the_order_of_the_file() {
    let text = "[serve.limits]\nfid_max = 1\nidle_seconds = -1\n[client]\nmsize_byte = 1\nread_ahead_bytes = \"x\"\n\
                reconect_seconds = 1\n[routes]\n\"/far\" = \"nowhere\"\n[stores]\na = {}\nb = 1\n";
    let told = parse(text).unwrap_err().to_string();
    let lines: Vec<&str> =
        told.lines().map(|line| line.strip_prefix("/etc/sl/sluice.toml:").unwrap()).collect();
    let begin = ["2:1: ", "3:16: ", "5:1: ", "6:20: ", "7:1: ", "9:10: ", "11:5: ", "12:5: "];
    assert_eq!(lines.len(), begin.len(), "{told}");
    for (line, begin) in lines.iter().zip(begin) {
        assert!(line.starts_with(begin), "{line} is not at {begin}");
    }
    for (line, nearest) in [(0, "`fids_max`"), (2, "`msize_bytes`"), (4, "`reconnect_seconds`")] {
        assert!(lines[line].ends_with(&format!("did you mean {nearest}?")), "{told}");
    }
}

#[test]
fn wrong_values_are_located() {
    assert!(
        complaint("[client]\nmsize_bytes = 1")
            .starts_with("2:15: `msize_bytes` must be from 4096 to")
    );
    assert!(
        complaint("[client]\nmsize_bytes = -1").starts_with("2:15: `msize_bytes` must be from")
    );
    assert!(complaint("[client]\nmsize_bytes = true").contains("not a boolean"));
    assert!(complaint("[client]\nread_ahead_bytes = \"many\"").contains("`many` is not a size"));
    assert!(
        complaint("[routes]\n\"/far\" = \"scdc+tpc://h/x\"")
            .starts_with("2:10: `scdc+tpc://h/x`, byte 5: unknown transport")
    );
    assert!(complaint("[routes]\nfar = \"scdc+tcp://h/x\"").contains("absolute path"));
    assert!(
        complaint("[routes]\n\"/a\" = \"scdc:///x\"\n\"/a/\" = \"scdc:///x\"")
            .contains("given twice")
    );
    assert!(complaint("[serve]\nlisten = \"tcp:h\"").contains("a list of addresses"));
    assert!(complaint("[serve]\nlisten = [\"udp:h\"]").contains("udp:h"));
    assert!(complaint("[stores]\na = {}").contains("needs the key `path`"));
    assert!(complaint("routes = 1").contains("a table"));
}

#[test]
fn syntax_errors_are_located() {
    assert!(complaint("[client]\nmsize_bytes = ").starts_with("2:"));
    let both = parse("[client]\nmsize_bytes = \n\nread_ahead_bytes = = 2\n").unwrap_err();
    assert_eq!(both.0.len(), 2, "{both}");
}

#[test]
fn the_users_file_comes_after_the_directorys() {
    let order = |xdg: Option<&str>, home: Option<&str>| {
        Config::search_order("/w".as_ref(), xdg.map(Path::new), home.map(Path::new))
    };
    assert_eq!(
        order(None, Some("/h")),
        ["/w/sluice.toml", "/h/.config/sluice/sluice.toml"].map(PathBuf::from)
    );
    assert_eq!(order(Some("/x"), Some("/h"))[1], PathBuf::from("/x/sluice/sluice.toml"));
    assert_eq!(order(None, None).len(), 1);
}
