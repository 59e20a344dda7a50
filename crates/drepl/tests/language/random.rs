//! Definitions that nobody would write, by chance.

use std::sync::Arc;

use drepl::definition::{
    Array, ByteOrder, Definition, Field, Index, Length, Marker, Order, Part, PartField, Placing,
    Record, Replica, ReplicaView, Scalar, Slice, Storage, Type, Update, Variable, View,
    ViewVariable,
};
use drepl::{format, print};
use proptest::prelude::*;

use crate::support::{compile, right};

/// Draws from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    fn kind(&mut self, depth: u64) -> Type {
        match self.below(4 + depth) {
            0..=2 => Type::Scalar(self.scalar()),
            3 => Type::Text { capacity: 1 + self.below(32767) as u16 },
            n if n % 2 == 0 => {
                let fields = (0..=self.below(4))
                    .map(|number| Field { name: format!("f{number}"), kind: self.kind(depth - 1) });
                Type::Struct(fields.collect())
            }
            _ => {
                let lengths = (0..=self.below(2)).map(|_| Length::Fixed(1 + self.below(9)));
                let lengths = lengths.collect();
                Type::Array(Arc::new(Array { lengths, element: self.kind(depth - 1) }))
            }
        }
    }

    fn scalar(&mut self) -> Scalar {
        use Scalar::{Float32, Float64, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
        self.of(&[Float32, Float64, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64])
    }

    fn marker(&mut self) -> Marker {
        self.of(&[Marker::Four, Marker::Eight])
    }

    /// Something that a view can take of a type. In the form in which it is compiled: what takes all of an array is not
    /// written as a slice.
    fn part(&mut self, kind: &Type, in_record: bool) -> Part {
        if !in_record && self.one_in(8) {
            let (marker, part) = (self.marker(), Box::new(self.part(kind, true)));
            return Part::Record { marker, part };
        }
        self.unwrapped(kind, in_record)
    }

    /// The same, but itself no record: one around a member or an element is written, and compiled, as one around what it
    /// is a member or an element of.
    fn unwrapped(&mut self, kind: &Type, in_record: bool) -> Part {
        match kind {
            Type::Struct(fields) if self.one_in(3) => {
                let field = self.below(fields.len() as u64) as usize;
                let part = self.unwrapped(&fields[field].kind, in_record);
                Part::Member { field, part: Box::new(part) }
            }
            Type::Struct(fields) if self.one_in(2) => {
                let mut parts: Vec<PartField> = Vec::new();
                for field in 0..fields.len() {
                    if parts.is_empty() || self.one_in(2) {
                        let part = self.part(&fields[field].kind, in_record);
                        let at = self.below(parts.len() as u64 + 1) as usize;
                        parts.insert(at, PartField { field, part });
                    }
                }
                Part::Fields(parts)
            }
            Type::Array(array) if self.one_in(2) => self.slice(array, in_record),
            _ => Part::Whole,
        }
    }

    fn slice(&mut self, array: &Array, in_record: bool) -> Part {
        let mut order: Vec<usize> = (0..array.lengths.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, self.below(at as u64 + 1) as usize);
        }
        let running = self.below(array.lengths.len() as u64 + 1) as usize;
        let mut lengths = vec![Length::Fixed(0); running];
        let mut indexes = vec![Index::Fixed(0); array.lengths.len()];
        for (number, &dimension) in order.iter().enumerate() {
            indexes[dimension] = match array.lengths[dimension] {
                Length::Fixed(length) if number < running => {
                    let (start, step) = (self.below(length), 1 + self.below(length) as i64);
                    let step = if self.one_in(2) { step } else { -step };
                    let count = (0..)
                        .take_while(|i| (0..length as i64).contains(&(start as i64 + step * i)));
                    lengths[number] = Length::Fixed(count.count() as u64);
                    Index::Running { dimension: number, step, start: start as i64 }
                }
                Length::Fixed(length) => Index::Fixed(self.below(length)),
                // Only by itself.
                stored @ Length::Stored(_) if number < running => {
                    lengths[number] = stored;
                    Index::Running { dimension: number, step: 1, start: 0 }
                }
                stored @ Length::Stored(_) => {
                    lengths.push(stored);
                    Index::Running { dimension: lengths.len() - 1, step: 1, start: 0 }
                }
            };
        }
        let element = match &*lengths {
            [] => self.unwrapped(&array.element, in_record),
            _ => self.part(&array.element, in_record),
        };
        Part::Slice(Slice { lengths, indexes, element: Box::new(element) })
    }

    fn definition(&mut self) -> Definition {
        let mut variables = vec![Variable { name: "n".into(), kind: Type::Scalar(Scalar::Uint16) }];
        for number in 0..=self.below(4) {
            let mut kind = self.kind(4);
            if let (Type::Array(array), true) = (&kind, self.one_in(3)) {
                let mut array = (**array).clone();
                array.lengths[0] = Length::Stored(0);
                kind = Type::Array(Arc::new(array));
            }
            variables.push(Variable { name: format!("v{number}"), kind });
        }
        let views: Vec<View> =
            (0..=self.below(3)).map(|number| self.view(number, &variables)).collect();
        let held = (0..views.len()).filter(|_| self.one_in(2)).collect::<Vec<_>>();
        let update = self.of(&[Update::Sync, Update::Async, Update::OnClose]);
        let storage = self.of(&[Storage::Raw, Storage::Hdf5]);
        let replica = Replica {
            name: "a \"name\" \\".into(),
            complete: true,
            update,
            closeness: self.below(3) as u32,
            storage,
            views: held.into_iter().map(|view| self.stored(view)).collect(),
        };
        Definition { variables, views, replicas: vec![replica] }
    }

    fn stored(&mut self, view: usize) -> ReplicaView {
        ReplicaView {
            view,
            group: self.one_in(2).then(|| "/a/b c".to_owned()),
            split: self.one_in(2),
            chunk: self.one_in(2).then(|| vec![1 + self.below(9); 2]),
            deflate: self.one_in(2).then(|| 1 + self.below(9) as u8),
        }
    }

    fn view(&mut self, number: u64, variables: &[Variable]) -> View {
        let mut taken: Vec<ViewVariable> = Vec::new();
        let mut records = 0;
        for number in 0..self.below(5) {
            let source = self.below(variables.len() as u64) as usize;
            let in_record = self.one_in(3);
            let record = in_record.then(|| {
                let before = taken.last().and_then(|last| last.record);
                before.filter(|_| self.one_in(2)).unwrap_or_else(|| {
                    records += 1;
                    Record { number: records - 1, marker: self.marker() }
                })
            });
            let placing = Placing {
                at: None,
                align: (!in_record && self.one_in(4)).then(|| 1 << self.below(8)),
                pad: if in_record || self.one_in(2) { 0 } else { self.below(9) },
            };
            let part = self.part(&variables[source].kind, in_record);
            taken.push(ViewVariable { name: format!("w{number}"), source, part, placing, record });
        }
        View {
            name: self.of(&["default", "a b", "view"]).to_owned() + &number.to_string(),
            read_only: self.one_in(2),
            order: self.of(&[Order::RowMajor, Order::RowMinor]),
            byte_order: self.of(&[ByteOrder::Little, ByteOrder::Big]),
            packed: self.one_in(2),
            header: self.below(2) * 80,
            variables: taken,
        }
    }
}

/// Tokens of the language in any order.
fn soup() -> impl Strategy<Value = String> {
    let words: Vec<&str> = drepl::words::WORDS.iter().map(|(word, _)| *word).collect();
    let others = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ";",
        ".",
        "=",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<<",
        ">>",
        "\n",
        "\n",
        "a",
        "b",
        "i",
        "0",
        "1",
        "99999999999",
        "\"x\"",
        "\"",
        "//",
        "/*",
        "*/",
        "#",
        "string4",
        "µ",
        "@",
        "\u{0}",
        "\u{feff}",
        "\r\n",
    ];
    let one = prop_oneof![
        prop::sample::select(words),
        prop::sample::select(others.to_vec()),
        prop::sample::select(others.to_vec()),
    ];
    prop::collection::vec(one, 0..120).prop_map(|tokens| tokens.join(" "))
}

/// A definition with one piece taken away, doubled, or replaced.
fn mutant() -> impl Strategy<Value = String> {
    (any::<u64>(), any::<prop::sample::Index>(), 0usize..12, soup(), 0..4).prop_map(
        |(seed, at, len, soup, how)| {
            let text = print(&Dice(seed | 1).definition());
            let at =
                (0..=at.index(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let end = (at + len..=text.len())
                .find(|&end| text.is_char_boundary(end))
                .unwrap_or(text.len());
            let (before, piece, after) = (&text[..at], &text[at..end], &text[end..]);
            match how {
                0 => format!("{before}{after}"),
                1 => format!("{before}{piece}{piece}{after}"),
                2 => format!("{before}{}{after}", soup.chars().take(8).collect::<String>()),
                _ => format!("{before}{soup}{after}"),
            }
        },
    )
}

/// No text may do more than be told what is wrong with it.
fn try_all(text: &str) {
    match compile(text) {
        Ok(compiled) => {
            let printed = print(&compiled.definition);
            assert_eq!(right(&printed), compiled.definition, "{printed}");
        }
        Err(wrong) => {
            assert!(wrong.has_errors());
            assert!(!wrong.render(false).is_empty() && !wrong.to_string().is_empty());
        }
    }
    if let Ok(formatted) = format(text) {
        assert_eq!(format(&formatted).as_deref(), Ok(&*formatted));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_means_the_same(seed in 1u64..) {
        let definition = Dice(seed).definition();
        let text = print(&definition);
        prop_assert_eq!(&right(&text), &definition, "{}", text);
        prop_assert_eq!(format(&text).unwrap(), text);
    }

    /// Blanks, lines within brackets, comments and `;` are squeezed in wherever they mean nothing.
    #[test]
    fn formatting_keeps_the_meaning(seed in 1u64.., noise in any::<u64>()) {
        let definition = Dice(seed).definition();
        let mut dice = Dice(noise | 1);
        let mut noisy = String::new();
        let mut in_text = false;
        for c in print(&definition).chars() {
            in_text ^= c == '"';
            match c {
                ' ' if !in_text => noisy.push_str(dice.of(&[" ", "  ", "\t", " /* c */ "])),
                '\n' => noisy.push_str(dice.of(&["\n", "\n\n\n", " // c\n", ";\n", "; # c\n\n", "\r\n"])),
                '[' | ',' if !in_text => {
                    noisy.push(c);
                    noisy.push_str(dice.of(&["", "", "\n", " ", "// c\n"]));
                }
                c => noisy.push(c),
            }
        }
        prop_assert_eq!(&right(&noisy), &definition, "{}", noisy);
        let formatted = format(&noisy).unwrap();
        prop_assert_eq!(&right(&formatted), &definition, "{}", formatted);
        prop_assert_eq!(format(&formatted).unwrap(), formatted);
    }

    #[test]
    fn no_soup_of_tokens_is_too_much(text in soup()) {
        try_all(&text);
    }

    #[test]
    fn no_characters_are_too_much(text in "\\PC*") {
        try_all(&text);
    }

    #[test]
    fn no_mutant_is_too_much(text in mutant()) {
        try_all(&text);
    }
}
