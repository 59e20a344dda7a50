//! Every word that means something by itself.
//!
//! No word is reserved: where a name is expected, each of these is one. A field may be called
//! `type`, and a view `default`.

/// Where a word means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Begins a section or a declaration.
    Declaration,
    /// A type of the language; `string` stands for `string1` to `string32767`.
    Type,
    /// Behind the name of a view.
    ViewFlag,
    /// Behind a variable of a view.
    Placing,
    /// Behind the name of a replica.
    ReplicaFlag,
    /// Behind a view in a replica.
    Storage,
}

/// All words with their roles.
pub const WORDS: &[(&str, Role)] = &[
    ("dataset", Role::Declaration),
    ("view", Role::Declaration),
    ("replica", Role::Declaration),
    ("const", Role::Declaration),
    ("type", Role::Declaration),
    ("var", Role::Declaration),
    ("struct", Role::Declaration),
    ("record", Role::Declaration),
    ("int8", Role::Type),
    ("int16", Role::Type),
    ("int32", Role::Type),
    ("int64", Role::Type),
    ("uint8", Role::Type),
    ("uint16", Role::Type),
    ("uint32", Role::Type),
    ("uint64", Role::Type),
    ("float32", Role::Type),
    ("float64", Role::Type),
    ("string", Role::Type),
    ("read-only", Role::ViewFlag),
    ("readonly", Role::ViewFlag),
    ("rowmajor", Role::ViewFlag),
    ("rowminor", Role::ViewFlag),
    ("columnmajor", Role::ViewFlag),
    ("default", Role::ViewFlag),
    ("littleendian", Role::ViewFlag),
    ("bigendian", Role::ViewFlag),
    ("packed", Role::ViewFlag),
    ("header", Role::ViewFlag),
    ("records", Role::ViewFlag),
    ("at", Role::Placing),
    ("align", Role::Placing),
    ("pad", Role::Placing),
    ("complete", Role::ReplicaFlag),
    ("sync", Role::ReplicaFlag),
    ("async", Role::ReplicaFlag),
    ("on-close", Role::ReplicaFlag),
    ("near", Role::ReplicaFlag),
    ("hdf5", Role::ReplicaFlag),
    ("group", Role::Storage),
    ("split", Role::Storage),
    ("chunk", Role::Storage),
    ("deflate", Role::Storage),
];

/// The words of a role.
pub(crate) fn of(role: Role) -> impl Iterator<Item = &'static str> {
    WORDS.iter().filter(move |(_, of)| *of == role).map(|(word, _)| *word)
}

/// How many names are compared with a misspelt one; a definition may have very many.
const CANDIDATES_MAX: usize = 5000;

/// The known word that a misspelt one was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let count = word.chars().count();
    let distance_max = (count / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known.into_iter().take(CANDIDATES_MAX) {
        // Lengths in bytes give a lower bound. Very long words are nobody's typing error.
        if candidate.len().abs_diff(word.len()) > 4 * distance_max || count > 64 {
            continue;
        }
        let distance = if candidate.eq_ignore_ascii_case(word) {
            usize::from(candidate != word)
        } else {
            strsim::osa_distance(word, candidate)
        };
        // A word of one letter is near to every other.
        if distance <= distance_max
            && distance < count
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_found_and_strangers_are_not() {
        assert_eq!(nearest("raedonly", of(Role::ViewFlag)), Some("readonly"));
        assert_eq!(nearest("FLOAT32", of(Role::Type)), Some("float32"));
        assert_eq!(nearest("vewi", of(Role::Declaration)), None);
        assert_eq!(nearest("veiw", of(Role::Declaration)), Some("view"));
        assert_eq!(nearest("colour", of(Role::ViewFlag)), None);
    }
}
