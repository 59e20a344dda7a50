//! How modes, times, sizes and names are shown.

use std::fmt::Write as _;

/// `drwxr-xr-x`, as ls(1) has it.
pub(crate) fn mode_text(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '-',
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (false, false) => '-',
            (false, true) => 'x',
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
        });
    }
    text
}

/// A word for a file's type.
pub(crate) fn kind_text(mode: u32) -> &'static str {
    match mode & 0o170_000 {
        0o100_000 => "file",
        0o040_000 => "directory",
        0o120_000 => "symlink",
        0o020_000 => "character device",
        0o060_000 => "block device",
        0o010_000 => "fifo",
        0o140_000 => "socket",
        _ => "unknown",
    }
}

/// `2026-11-20T11:40:15Z`: seconds since the epoch in UTC.
///
/// # Source
/// The calendar arithmetic is Hinnant's `civil_from_days`, "chrono-Compatible Low-Level Date Algorithms".
pub(crate) fn time_text(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `12.3 MiB`.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 || unit == "TiB" {
            return if unit == "B" { format!("{bytes} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    unreachable!("the last unit always fits")
}

/// A name for a terminal: control characters escaped, so that a file's name cannot drive it.
pub(crate) fn name_text(name: &[u8]) -> String {
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                // Writing to a string cannot fail.
                let _ = write!(text, "{}", character.escape_default());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_look_as_in_ls() {
        assert_eq!(mode_text(0o100_644), "-rw-r--r--");
        assert_eq!(mode_text(0o041_777), "drwxrwxrwt");
        assert_eq!(mode_text(0o104_711), "-rws--x--x");
        assert_eq!(mode_text(0o102_640), "-rw-r-S---");
    }

    #[test]
    fn times_follow_the_calendar() {
        assert_eq!(time_text(0), "1970-01-01T00:00:00Z");
        assert_eq!(time_text(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(time_text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(time_text(-1), "1969-12-31T23:59:59Z");
        assert_eq!(time_text(4_102_444_800), "2100-01-01T00:00:00Z");
    }

    #[test]
    fn sizes_and_names() {
        assert_eq!(bytes_text(1023), "1023 B");
        assert_eq!(bytes_text(1536), "1.5 KiB");
        assert_eq!(bytes_text(u64::MAX), "16777216.0 TiB");
        assert_eq!(name_text(b"a\x1b[2J\xffz"), "a\\u{1b}[2J\\xffz");
    }
}
