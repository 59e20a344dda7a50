//! Command lines: a word, a name, and perhaps which bytes.

/// Which bytes of a file a `put` or `get` means: `[POS][:SIZE]`, or `POSF[:SIZE]`, which is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// From where.
    pub start: u64,
    /// How many at most; all if not given.
    pub size: Option<u64>,
}

impl Extent {
    /// Understands the words behind a name.
    ///
    /// # Errors
    /// In words, what cannot be understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not understood: [POSITION][:SIZE] in bytes was expected");
        let number = |digits: &str| match digits {
            "" => Ok(None),
            _ if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                // Offsets are signed for the system (off_t).
                let value = digits.parse::<i64>().map_err(|_| wrong())?;
                Ok(Some(value as u64))
            }
            _ => Err(wrong()),
        };
        let (position, size) = match text.split_once(':') {
            Some((position, size)) => (position, number(size)?),
            None => (text, None),
        };
        let position = position.strip_suffix('F').unwrap_or(position);
        Ok(Self { start: number(position)?.unwrap_or(0), size })
    }
}

/// The first word of a line, and what follows the blank behind it.
pub(crate) fn split(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_understood_or_refused() {
        let good = [
            ("", 0, None),
            ("7", 7, None),
            (":9", 0, Some(9)),
            ("3:4", 3, Some(4)),
            ("3F:4", 3, Some(4)),
            ("3:", 3, None),
        ];
        for (text, start, size) in good {
            assert_eq!(Extent::parse(text), Ok(Extent { start, size }), "{text}");
        }
        for bad in ["x", "-1", "3B", "1:-2", "1:2:3", "99999999999999999999", "+1", " 1"] {
            assert!(Extent::parse(bad).is_err(), "{bad}");
        }
    }
}
