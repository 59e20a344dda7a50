//! Sizes as people write them.

use crate::AddressError;

/// Parses `4194304`, `4096KiB`, `4 MiB` or `1GiB` into bytes.
///
/// # Errors
/// [`AddressError::Size`].
pub fn parse_size_bytes(text: &str) -> Result<u64, AddressError> {
    let fail = || AddressError::Size { text: text.to_owned() };
    let digits_len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, suffix) = text.split_at(digits_len);
    let unit: u64 = match suffix.trim_start() {
        "" | "B" => 1,
        "KiB" | "K" | "k" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        _ => return Err(fail()),
    };
    digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit)).ok_or_else(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("0", 0), ("17", 17), ("4KiB", 4096), ("4 MiB", 4 << 20), ("1G", 1 << 30)]
        {
            assert_eq!(parse_size_bytes(text), Ok(bytes), "{text}");
        }
        for bad in
            ["", "MiB", "-1", "1.5G", "1 MB", "99999999999999999999", "18446744073709551615K"]
        {
            assert!(parse_size_bytes(bad).is_err(), "{bad}");
        }
    }
}
