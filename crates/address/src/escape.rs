//! Percent escapes: `%2F` in the authority of a URI and in [`Settings`](crate::Settings).

/// True for the bytes that stand for themselves in an authority.
///
/// # Source
/// RFC 3986 §2.3, the unreserved characters.
pub(crate) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Appends `bytes` to `out`, writing `%XX` for each byte that `keep` refuses.
pub(crate) fn encode_into(out: &mut Vec<u8>, bytes: &[u8], keep: impl Fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if keep(byte) && byte != b'%' {
            out.push(byte);
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

/// Replaces every `%XX`.
///
/// # Errors
/// The position of the first `%` that two hexadecimal digits do not follow.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            let digit =
                |offset: usize| bytes.get(at + offset).and_then(|&d| char::from(d).to_digit(16));
            let (Some(high), Some(low)) = (digit(1), digit(2)) else {
                return Err(at);
            };
            // Two hexadecimal digits are at most 255.
            out.push((high * 16 + low) as u8);
            at += 3;
        } else {
            out.push(byte);
            at += 1;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_escapes_are_located() {
        assert_eq!(decode(b"ab%2"), Err(2));
        assert_eq!(decode(b"%zz"), Err(0));
        assert_eq!(decode(b"a%2Fb%2f"), Ok(b"a/b/".to_vec()));
    }

    #[test]
    fn every_byte_survives_a_round_trip() {
        let all: Vec<u8> = (0..=255).collect();
        let mut escaped = Vec::new();
        encode_into(&mut escaped, &all, is_unreserved);
        assert_eq!(decode(&escaped), Ok(all));
    }
}
