//! Which names of files are meant.

/// A name, or a part of one; `%` stands for anything that is left out.
///
/// The pieces between the `%` must stand in a name in this order, wherever. Without `%` a name has the pattern in it, or is the
/// last components of it, so that `./restart.nc` and `restart.nc` are one file.
///
/// # Source
/// maneka07/DTF, doc/README.config and the function `match_str`. There a pattern that begins with `%` matches nothing, by
/// mistake; here it matches what it says. There any part of a pattern matches, such as `a.nc` of `data.nc`; here, whole components do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NamePattern(String);

impl NamePattern {
    /// The pattern of a text; none if nothing of it is left beside `%`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        text.chars().any(|one| one != '%').then(|| Self(text.to_owned()))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name is meant.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        if !self.0.contains('%') {
            let before = self.0.strip_suffix(name);
            return name.contains(&self.0) || before.is_some_and(|before| before.ends_with('/'));
        }
        let mut rest = name;
        self.0.split('%').all(|piece| match rest.find(piece) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamePattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn pieces_stand_in_order() {
        assert!(matches("00%/hist.d01%", "run/003/hist.d01.nc"));
        assert!(matches("0%/restart.%", "00/restart.060000.nc"));
        assert!(!matches("0%/restart.%", "restart.0/x"));
        assert!(!matches("a%a", "a"));
        assert!(matches("a%a", "aa"));
        assert!(matches("%.nc", "x.nc"));
    }

    #[test]
    fn without_a_sign_a_name_has_the_pattern_in_it_or_ends_it() {
        assert!(matches("restart.nc", "./restart.nc"));
        assert!(matches("./restart.nc", "restart.nc"));
        assert!(matches("mean", "out/mean.nc"));
        assert!(!matches("mean", "median.nc"));
        assert!(!matches("mean", ""));
        assert!(!matches("data.nc", "a.nc"));
    }

    #[test]
    fn what_matches_everything_is_no_pattern() {
        assert_eq!(NamePattern::new(""), None);
        assert_eq!(NamePattern::new("%%"), None);
    }
}
