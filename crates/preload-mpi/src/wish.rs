//! Whether the user wants strided calls to be carried out by the sieve.
//!
//! The hint `sluice_sieve`, of MPI_File_open, MPI_File_set_view or MPI_File_set_info, says it for one
//! file; the environment variable `SLUICE_SIEVE` for all whose hints do not. Both take `enable` (or
//! `true`, `on`, `yes`, `1`), `disable`, or the name of a method: `adaptive`, `naive`, `romio`,
//! `simple_pm`, `extent`, `scanfile`.

use std::ffi::CStr;
use std::sync::OnceLock;

use mpi::{Info, Mpi};

const HINT: &CStr = c"sluice_sieve";
/// `disable` promises that nobody else writes to the file while this process does.
const LOCKS_HINT: &CStr = c"sluice_sieve_locks";
const VARIABLE: &str = "SLUICE_SIEVE";

/// What was wished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// The MPI library does everything.
    Off,
    /// The sieve, by the method of this name.
    Sieve(&'static str),
}

impl Wish {
    /// What a word means. Hints that are not understood are ignored (MPI-4.1 §14.2.8).
    fn parse(word: &str) -> Option<Wish> {
        const METHODS: [&str; 6] =
            ["adaptive", "naive", "romio", "simple_pm", "extent", "scanfile"];
        match word.trim().to_ascii_lowercase().as_str() {
            "enable" | "true" | "on" | "yes" | "1" => Some(Wish::Sieve("adaptive")),
            "disable" | "false" | "off" | "no" | "0" => Some(Wish::Off),
            word => METHODS.into_iter().find(|method| *method == word).map(Wish::Sieve),
        }
    }

    /// What the program was started with.
    pub(crate) fn of_environment() -> Wish {
        static WISH: OnceLock<Wish> = OnceLock::new();
        *WISH.get_or_init(|| {
            let word = std::env::var(VARIABLE).unwrap_or_default();
            Wish::parse(&word).unwrap_or(Wish::Off)
        })
    }

    /// What hints say, if they say anything.
    pub(crate) fn of_hints(mpi: &Mpi, info: Info) -> Option<Wish> {
        mpi.hint(info, HINT).ok().flatten().and_then(|word| Wish::parse(&word))
    }
}

/// Whether hints promise that the file has a single writer.
pub(crate) fn has_single_writer(mpi: &Mpi, info: Info) -> Option<bool> {
    let word = mpi.hint(info, LOCKS_HINT).ok().flatten()?;
    Wish::parse(&word).map(|wish| wish == Wish::Off)
}

#[cfg(test)]
mod tests {
    use super::Wish;

    #[test]
    fn words_that_are_not_understood_wish_nothing() {
        assert_eq!(Wish::parse("Enable"), Some(Wish::Sieve("adaptive")));
        assert_eq!(Wish::parse(" romio "), Some(Wish::Sieve("romio")));
        assert_eq!(Wish::parse("0"), Some(Wish::Off));
        assert_eq!(Wish::parse(""), None);
        assert_eq!(Wish::parse("maybe"), None);
    }
}
