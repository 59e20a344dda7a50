//! What the integration tests of `patch` share.
#![allow(dead_code)] // each test program uses its part

use std::process::Command;

/// Runs `body` in a process of its own: patches cannot be taken back, and the other tests need a libc as it was.
///
/// `test_name` is the name of the calling test; that test is started again in the child and gets here a second time.
pub(crate) fn in_child(test_name: &str, body: impl FnOnce()) {
    const MARK: &str = "PATCH_TEST_CHILD";
    if std::env::var_os(MARK).is_some_and(|name| name == test_name) {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test_name, "--exact", "--nocapture", "--test-threads=1"])
        .env(MARK, test_name)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{test_name} in a child: {}\n{text}", output.status);
    assert!(text.contains("1 passed"), "the child must have run the test\n{text}");
    print!("{text}");
}

/// Fails if any page of this process is writable and executable.
pub(crate) fn assert_no_page_is_writable_and_executable() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    for line in maps.lines() {
        let permissions = line.split(' ').nth(1).unwrap();
        assert!(!(permissions.contains('w') && permissions.contains('x')), "{line}");
    }
}

/// Permissions of the mapping that holds `address`, as in /proc/self/maps.
pub(crate) fn permissions_at(address: *const u8) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split(' ').next().unwrap();
        let parse = |text| usize::from_str_radix(text, 16).unwrap();
        (parse(start)..parse(end)).contains(&(address as usize))
    });
    line.expect("a mapped address").split(' ').nth(1).unwrap().to_owned()
}

/// The calling thread's errno.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}
