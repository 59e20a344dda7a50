//! Which datasets a file holds, and where each lies in the row of bytes.

use drepl::definition::Scalar;

use crate::element::Element;
use crate::error::{Error, Result};

/// The datasets of a file, in the order of their begin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    datasets: Vec<Dataset>,
}

/// A dataset and its place in the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// Its path in the file, such as `/points/b`; the groups on the way are made.
    pub path: String,
    /// The first byte of the row that is its.
    pub start: u64,
    /// The type of an element.
    pub element: Element,
    /// The length of each dimension, the slowest first; none for a single element.
    pub shape: Vec<u64>,
    /// How the file stores it.
    pub storage: Storage,
}

/// How a file stores a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Storage {
    /// In one piece, allocated when it is created.
    #[default]
    Contiguous,
    /// In pieces, each of which may be compressed.
    Chunked {
        /// The elements of a piece, in every dimension.
        chunk: Vec<u64>,
        /// The gzip level, 1 to 9; none: not compressed.
        deflate: Option<u8>,
    },
}

impl Dataset {
    /// The number of its elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The bytes it takes in the row.
    pub fn size(&self) -> u64 {
        self.elements() * self.element.size()
    }

    /// The first byte of the row after it.
    pub fn end(&self) -> u64 {
        self.start + self.size()
    }

    /// The lengths with those of elements that are arrays, and what is in each place. A text is an
    /// array of bytes.
    pub(crate) fn flat(&self) -> (Vec<u64>, Element) {
        let (mut shape, mut element) = (self.shape.clone(), &self.element);
        while let Element::Array { shape: inner, element: within } = element {
            shape.extend(inner);
            element = within;
        }
        match element {
            Element::Text(size) => {
                shape.push(*size);
                (shape, Element::Number(Scalar::Uint8))
            }
            other => (shape, other.clone()),
        }
    }

    /// What it is, for messages: `[3, 4] float32`.
    pub(crate) fn describe(&self) -> String {
        format!("{:?} {}", self.shape, self.element)
    }
}

impl Schema {
    /// Orders the datasets by their begin.
    ///
    /// # Errors
    /// When two of them overlap or have one path, when a size overflows, a dimension is empty in a
    /// chunk, or a level of compression is none of gzip's.
    pub fn new(mut datasets: Vec<Dataset>) -> Result<Self> {
        datasets.sort_by_key(|dataset| dataset.start);
        for dataset in &datasets {
            let what = |what: String| Error::Schema { what: format!("{}: {what}", dataset.path) };
            let bytes = dataset
                .shape
                .iter()
                .try_fold(dataset.element.size(), |bytes, length| bytes.checked_mul(*length))
                .and_then(|bytes| bytes.checked_add(dataset.start));
            if bytes.is_none() {
                return Err(what("its size does not fit in 64 bits".to_owned()));
            }
            if let Storage::Chunked { chunk, deflate } = &dataset.storage {
                if chunk.len() != dataset.shape.len() || chunk.contains(&0) {
                    return Err(what(format!(
                        "a chunk of {chunk:?} does not fit the shape {:?}: every dimension needs \
                         a length of at least 1",
                        dataset.shape
                    )));
                }
                if deflate.is_some_and(|level| !(1..=9).contains(&level)) {
                    return Err(what("levels of gzip are 1 to 9".to_owned()));
                }
            }
        }
        for pair in datasets.windows(2) {
            if pair[0].end() > pair[1].start {
                return Err(Error::Schema {
                    what: format!("{} and {} overlap", pair[0].path, pair[1].path),
                });
            }
        }
        let mut paths: Vec<&str> = datasets.iter().map(|dataset| dataset.path.as_str()).collect();
        paths.sort_unstable();
        if let Some(pair) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Schema { what: format!("{} is there twice", pair[0]) });
        }
        Ok(Self { datasets })
    }

    /// All of them, in the order of their begin.
    pub fn datasets(&self) -> &[Dataset] {
        &self.datasets
    }

    /// The length of the row, in bytes.
    pub fn size(&self) -> u64 {
        self.datasets.last().map_or(0, Dataset::end)
    }
}
