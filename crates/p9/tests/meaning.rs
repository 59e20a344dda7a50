//! What values mean: open modes, errors and versions.

use p9::{Errno, LegacyMode, OpenFlags, WireError};

#[test]
fn old_open_modes_are_flags_of_open() {
    let flags = |mode| LegacyMode(mode).to_flags();
    assert_eq!(flags(0), Ok(OpenFlags::empty()));
    assert_eq!(flags(1), Ok(OpenFlags::WRITE_ONLY));
    assert_eq!(flags(2), Ok(OpenFlags::READ_WRITE));
    assert_eq!(flags(3), Ok(OpenFlags::empty()), "execution is reading");
    assert_eq!(flags(0x11), Ok(OpenFlags::WRITE_ONLY | OpenFlags::TRUNCATE));
    assert_eq!(flags(0x42), Ok(OpenFlags::READ_WRITE), "removal on close is the service's");
    for refused in [0x10, 0x13, 0x04, 0x80, 0xff] {
        assert_eq!(flags(refused), Err(Errno::EINVAL), "{refused:#x}");
    }
}

#[test]
fn access_is_told_by_two_bits() {
    for (flags, reads, writes) in [
        (OpenFlags::empty(), true, false),
        (OpenFlags::WRITE_ONLY, false, true),
        (OpenFlags::READ_WRITE, true, true),
        (OpenFlags::TRUNCATE | OpenFlags::APPEND, true, false),
    ] {
        assert_eq!((flags.reads(), flags.writes()), (reads, writes), "{flags:?}");
    }
}

/// The numbers are those of this machine's headers, which are x86-64 Linux's wherever tests run.
#[test]
fn errors_have_the_names_and_texts_of_linux() {
    for (number, name, text) in [
        (1, "EPERM", "Operation not permitted"),
        (11, "EAGAIN", "Resource temporarily unavailable"),
        (39, "ENOTEMPTY", "Directory not empty"),
        (61, "ENODATA", "No data available"),
        (95, "EOPNOTSUPP", "Operation not supported"),
        (122, "EDQUOT", "Disk quota exceeded"),
    ] {
        let errno = Errno::from_raw(number);
        assert_eq!((errno.raw(), errno.name(), errno.message()), (number, name, text));
        assert_eq!(errno.to_string(), text);
        let system = std::io::Error::from_raw_os_error(number).to_string();
        assert_eq!(system, format!("{text} (os error {number})"));
    }
    assert_eq!(Errno::from_raw(4000).to_string(), "error 4000");
    assert_eq!(format!("{:?}", Errno::ENOENT), "ENOENT(2)");
    for nonsense in [0, -1, 4096, i32::MIN] {
        assert_eq!(Errno::from_raw(nonsense), Errno::EIO);
    }
}

#[test]
fn texts_of_old_services_are_understood() {
    for (text, errno) in [
        ("file does not exist", Errno::ENOENT),
        ("'x' file not found", Errno::ENOENT),
        ("No such file or directory", Errno::ENOENT),
        ("permission denied", Errno::EACCES),
        ("read-only file system", Errno::EROFS),
        ("file already exists", Errno::EEXIST),
        ("unknown fid", Errno::EBADF),
        ("phase of the moon", Errno::EIO),
        ("", Errno::EIO),
    ] {
        assert_eq!(Errno::from_text(text.as_bytes()), errno, "{text}");
    }
}

#[test]
fn refusals_say_what_is_wrong() {
    let refused = p9::Request::decode(116, &[1, 0, 0, 0, 9]).unwrap_err();
    assert_eq!(refused, WireError::Truncated { field: "u64", needed: 8, left: 1 });
    assert_eq!(refused.to_string(), "message ends within field `u64`: 8 bytes needed, 1 left");
    let refused = p9::Request::decode(120, &[1, 0, 0, 0, 9]).unwrap_err();
    assert_eq!(refused.to_string(), "1 bytes follow the last field of message type 120");
    let refused = p9::Request::decode(121, &[]).unwrap_err();
    assert_eq!(refused.to_string(), "unknown message type 121");
}
