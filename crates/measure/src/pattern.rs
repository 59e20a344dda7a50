//! Patterns as people write them.
//!
//! ```text
//! 8,92                 blocks of 8 bytes with holes of 92 between them
//! 8:92,16:4            8 bytes, a hole of 92, 16 bytes, a hole of 4, and again from the start
//! 4KiB:1MiB            sizes may have a unit: KiB, MiB, GiB, TiB
//! 8:92*10,16:4         the first tuple ten times, then the second
//! 1..200:1..6000*1M    a million tuples with sizes drawn at random
//! 4096                 all bytes, without holes
//! ```
//!
//! Tuples may be separated by commas, blanks or both.

use sieve::{FileView, Tuple};

use crate::error::{Error, Result};

/// The most tuples that a pattern may stand for: their list takes some 8 bytes each.
pub const TUPLES_MAX: u64 = 100_000_000;

/// A parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    items: Vec<Item>,
}

/// One or several tuples.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    size: Span,
    hole: Span,
    count: u64,
}

/// A size, or the sizes from which one is drawn; both ends are possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    least: u64,
    most: u64,
}

impl Span {
    fn draw(self, random: &mut Random) -> u64 {
        if self.least == self.most {
            return self.least;
        }
        self.least + random.below(self.most - self.least + 1)
    }

    fn is_drawn(self) -> bool {
        self.least != self.most
    }
}

/// Numbers that look random and are the same for the same seed.
///
/// # Source
/// Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014 (SplitMix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must not be 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The upper half of a product: as even as matters for sizes.
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// [`Error::Pattern`] says which part is wrong and how.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |part: &str, why: &'static str| Error::Pattern {
            pattern: text.to_owned(),
            part: part.to_owned(),
            why,
        };
        let parts: Vec<&str> =
            text.split([',', ' ', '\t', '\n']).filter(|part| !part.is_empty()).collect();
        if !text.contains(':') {
            let sizes: Vec<Span> = parts
                .iter()
                .map(|part| span(part).map_err(|why| wrong(part, why)))
                .collect::<Result<_>>()?;
            let (size, hole) = match sizes[..] {
                [size] => (size, Span { least: 0, most: 0 }),
                [size, hole] => (size, hole),
                [] => return Err(wrong(text, "is empty; a pattern is such as 8,92 or 8:92,16:4")),
                _ => {
                    return Err(wrong(text, "has more than two sizes: write tuples, as 8:92,16:4"));
                }
            };
            return Ok(Self { items: vec![Item { size, hole, count: 1 }] });
        }
        let mut items = Vec::with_capacity(parts.len());
        let mut tuples: u64 = 0;
        for part in parts {
            let (shape, count) = match part.split_once('*') {
                None => (part, 1),
                Some((shape, count)) => {
                    let count = size(count).map_err(|_| wrong(part, "has a count that is none"))?;
                    (shape, count)
                }
            };
            let Some((data, hole)) = shape.split_once(':') else {
                return Err(wrong(part, "is no tuple: write DATA:HOLE"));
            };
            let size = span(data).map_err(|why| wrong(part, why))?;
            let hole = span(hole).map_err(|why| wrong(part, why))?;
            tuples = tuples.saturating_add(count);
            if tuples > TUPLES_MAX {
                return Err(wrong(part, "makes more than 100 million tuples"));
            }
            items.push(Item { size, hole, count });
        }
        Ok(Self { items })
    }

    /// How many tuples it stands for.
    #[must_use]
    pub fn tuple_count(&self) -> u64 {
        self.items.iter().map(|item| item.count).sum()
    }

    /// Whether sizes are drawn at random.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.items.iter().any(|item| item.size.is_drawn() || item.hole.is_drawn())
    }

    /// The view that it means, from `displacement` on. What is random follows from `seed`.
    ///
    /// # Errors
    /// [`Error::Sieve`] when no file is that long or there is no tuple.
    pub fn view(&self, displacement: u64, seed: u64) -> Result<FileView> {
        if let [Item { size, hole, .. }] = self.items[..]
            && !self.is_drawn()
        {
            return Ok(FileView::strided(displacement, size.least, hole.least)?);
        }
        let mut random = Random::new(seed);
        let tuples = self.items.iter().flat_map(|item| (0..item.count).map(move |_| *item));
        let mut builder = sieve::Builder::with_capacity(self.tuple_count() as usize);
        for Item { size, hole, .. } in tuples {
            builder.push(Tuple { size: size.draw(&mut random), hole: hole.draw(&mut random) })?;
        }
        Ok(builder.finish(displacement)?)
    }
}

impl Copy for Item {}

fn size(text: &str) -> std::result::Result<u64, &'static str> {
    address::parse_size_bytes(text)
        .map_err(|_| "has a size that is none; sizes are such as 100 or 4KiB")
}

fn span(text: &str) -> std::result::Result<Span, &'static str> {
    let Some((least, most)) = text.split_once("..") else {
        let least = size(text)?;
        return Ok(Span { least, most: least });
    };
    let span = Span { least: size(least)?, most: size(most)? };
    if span.least > span.most { Err("has a range that ends before it starts") } else { Ok(span) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(text: &str, len: u64) -> Vec<(u64, u64)> {
        let view = Pattern::parse(text).unwrap().view(0, 0).unwrap();
        view.blocks(0, len).unwrap().map(|block| (block.file, block.len)).collect()
    }

    #[test]
    fn every_way_to_write_a_pattern() {
        assert_eq!(blocks("8,92", 16), [(0, 8), (100, 8)]);
        assert_eq!(blocks("8 92", 16), [(0, 8), (100, 8)]);
        assert_eq!(blocks("8:92", 16), [(0, 8), (100, 8)]);
        assert_eq!(blocks("8:92,16:4", 32), [(0, 8), (100, 16), (120, 8)]);
        assert_eq!(blocks("8:92, 16:4", 24), [(0, 8), (100, 16)]);
        assert_eq!(blocks("4KiB:1MiB", 8192), [(0, 4096), ((1 << 20) + 4096, 4096)]);
        assert_eq!(blocks("1:1*2,5:5", 7), [(0, 1), (2, 1), (4, 5)]);
        assert_eq!(blocks("4096", 100), [(0, 100)]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, part, why) in [
            ("", "", "is empty"),
            (" , ", " , ", "is empty"),
            ("8:x", "8:x", "size that is none"),
            ("8:92,16", "16", "no tuple"),
            ("1,2,3", "1,2,3", "more than two"),
            ("1:2*x", "1:2*x", "count"),
            ("9..3:1", "9..3:1", "ends before"),
            ("1:1*90M,1:1*90M", "1:1*90M", "100 million"),
            ("-1,5", "-1", "size that is none"),
        ] {
            match Pattern::parse(text) {
                Err(Error::Pattern { part: found, why: reason, .. }) => {
                    assert_eq!(found, part, "{text}");
                    assert!(reason.contains(why), "{text}: {reason}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(Pattern::parse("16777216TiB,1").is_err());
    }

    #[test]
    fn drawn_sizes_stay_in_their_range_and_follow_the_seed() {
        let pattern = Pattern::parse("1..200:10..6000*1K").unwrap();
        assert_eq!(pattern.tuple_count(), 1024);
        let view = pattern.view(5, 7).unwrap();
        assert_eq!(view, pattern.view(5, 7).unwrap());
        assert_ne!(view, pattern.view(5, 8).unwrap());
        let tuples: Vec<_> = view.tuples_from(0).unwrap().take(1024).collect();
        for (_, Tuple { size, hole }) in &tuples {
            assert!((1..=200).contains(size) && (10..=6000).contains(hole));
        }
        let mean = tuples.iter().map(|(_, tuple)| tuple.size).sum::<u64>() / 1024;
        assert!((90..110).contains(&mean), "{mean}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9KMiB:.,* x-]{0,24}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                // Views of many tuples take their time; that they can be made is tested above.
                if pattern.tuple_count() < 1000 {
                    let _ = pattern.view(0, 0);
                }
            }
        }
    }
}
