//! Which known word did the user mean?

/// The word of `known` that needs the fewest edits to become `word`, if few enough to be a typing error.
pub fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    nearest_of(word, known.iter().copied())
}

/// The same among words that are not known beforehand.
pub fn nearest_of<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance_max = (word.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, _)| distance <= distance_max)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
///
/// # Source
/// The optimal string alignment distance; Damerau 1964.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("tpc", "tcp"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn typing_errors_are_found_and_strangers_are_not() {
        let known = ["read_ahead_bytes", "msize_bytes"];
        assert_eq!(nearest("msize_byte", &known), Some("msize_bytes"));
        assert_eq!(nearest("read_ahed_bytes", &known), Some("read_ahead_bytes"));
        assert_eq!(nearest("colour", &known), None);
    }
}
