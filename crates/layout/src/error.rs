//! Why a definition cannot be laid out.

/// What this crate returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a definition cannot be laid out.
///
/// A definition that `drepl` accepted meets only [`TooLarge`](Error::TooLarge),
/// [`Overlap`](Error::Overlap) and the limits; the others guard against definitions made by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Offsets would not fit a file.
    #[error("`{name}` takes more than 2^63 bytes")]
    TooLarge {
        /// The variable or view.
        name: String,
    },
    /// `at` leads into another variable.
    #[error("`{name}` begins at byte {offset}, inside of `{other}`")]
    Overlap {
        /// The variable that is placed.
        name: String,
        /// The one that is there.
        other: String,
        /// Where, in bytes from the begin of the file.
        offset: u64,
    },
    /// `at` inside a record leads backwards.
    #[error("`{name}` should begin at byte {wanted}, but its record is already at byte {reached}")]
    Backwards {
        /// The variable that is placed.
        name: String,
        /// The byte of its `at`.
        wanted: u64,
        /// Where the variable before it ends.
        reached: u64,
    },
    /// More fields than a map may have.
    #[error("the types have more than {limit} fields, counted wherever they are used")]
    TooManyFields {
        /// [`FIELDS_MAX`](crate::FIELDS_MAX).
        limit: u64,
    },
    /// Types inside types inside types.
    #[error("`{name}` is nested deeper than {limit} levels")]
    TooDeep {
        /// The variable.
        name: String,
        /// [`DEPTH_MAX`](crate::DEPTH_MAX).
        limit: usize,
    },
    /// A record in a record, longer than a marker can tell.
    #[error("`{name}` has a record of more than {limit} bytes inside a record")]
    NestedSubrecords {
        /// The variable.
        name: String,
        /// The most bytes between two markers.
        limit: u64,
    },
    /// A record length that no marker can tell, or more subrecords than a table may have.
    #[error("`{name}` would have more than {limit} subrecords")]
    TooManySubrecords {
        /// The variable.
        name: String,
        /// [`SEAMS_MAX`](crate::SEAMS_MAX).
        limit: u64,
    },
    /// A part that the type does not have.
    #[error("`{name}`: what the view takes does not fit the type in the dataset")]
    Mismatch {
        /// The variable.
        name: String,
    },
    /// A slice reaches outside its array.
    #[error("`{name}`: index {index} is outside of the {length} elements of the dataset")]
    OutsideArray {
        /// The variable.
        name: String,
        /// The index, of the dataset.
        index: i128,
        /// How many elements the dimension has.
        length: u64,
    },
    /// A number that names no view, variable or replica.
    #[error("the definition has no {what} of number {index}")]
    NoSuch {
        /// "view", "variable" or "replica".
        what: &'static str,
        /// The number.
        index: usize,
    },
    /// The pieces that several sources have of an array do not fit together in a bounded number of
    /// strided copies.
    #[error("`{name}` lies in too many pieces: no source holds all of it")]
    Fragmented {
        /// The variable of the view.
        name: String,
    },
}
