//! Conversion of values.

use crate::{Format, Type};

/// Text cannot be converted to numbers, nor numbers to text (`NC_ECHAR`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("text is converted to text only: {} cannot become {}", from.name(), to.name())]
pub struct TextWithNumbers {
    /// The type before.
    pub from: Type,
    /// The type after.
    pub to: Type,
}

/// How many values did not fit (`NC_ERANGE`); the fill value of the type into which they did not fit took their place, as in
/// PnetCDF as it is built by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranges {
    /// On the way from the writer's memory into the variable.
    pub written: u64,
    /// On the way from the variable into the reader's memory.
    pub read: u64,
}

/// From the memory of one program, through a variable, to the memory of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    from: Type,
    through: Type,
    to: Type,
    /// In CDF-1 and CDF-2 an `unsigned char` is stored in an `NC_BYTE`, and read from it, bit by bit.
    free_bytes: bool,
}

impl Conversion {
    /// `from` the writer's memory, `through` a variable of a file of `format`, `to` the reader's memory.
    ///
    /// # Errors
    /// Text in one place and numbers in another.
    pub fn new(
        from: Type,
        through: Type,
        to: Type,
        format: Format,
    ) -> Result<Self, TextWithNumbers> {
        for (from, to) in [(from, through), (through, to)] {
            if (from == Type::Char) != (to == Type::Char) {
                return Err(TextWithNumbers { from, to });
            }
        }
        Ok(Self { from, through, to, free_bytes: format == Format::Classic })
    }

    /// What values are before they are converted.
    #[must_use]
    pub fn source(&self) -> Type {
        self.from
    }

    /// Whether bytes need only be moved.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        (self.same(self.from, self.through) && self.same(self.through, self.to))
            || (self.from == self.to && self.keeps(self.from, self.through))
    }

    /// Whether every value of `inner` comes back from `outer`.
    fn keeps(&self, inner: Type, outer: Type) -> bool {
        use Type::{Byte, Double, Float, Int, Int64, Short, UByte, UInt, UInt64, UShort};
        self.same(inner, outer)
            || match inner {
                Byte => matches!(outer, Short | Int | Int64 | Float | Double),
                UByte => {
                    matches!(outer, Short | UShort | Int | UInt | Int64 | UInt64 | Float | Double)
                }
                Short => matches!(outer, Int | Int64 | Float | Double),
                UShort => matches!(outer, Int | UInt | Int64 | UInt64 | Float | Double),
                Int => matches!(outer, Int64 | Double),
                UInt => matches!(outer, Int64 | UInt64 | Double),
                // Not through doubles: what a signalling NaN becomes is the processor's choice.
                Float | Double | Int64 | UInt64 | Type::Char => false,
            }
    }

    fn same(&self, from: Type, to: Type) -> bool {
        let bytes = |one| matches!(one, Type::Byte | Type::UByte);
        // Only what the program calls unsigned is free, and only in a variable of bytes.
        from == to || (self.free_bytes && bytes(from) && bytes(to))
    }

    /// Converts the values in `source` to those in `destination`.
    ///
    /// # Panics
    /// If the lengths are not those of equally many whole values.
    pub fn apply(&self, source: &[u8], destination: &mut [u8]) -> Ranges {
        let values = source.len() / self.from.size_bytes();
        assert_eq!(source.len(), values * self.from.size_bytes(), "a part of a value");
        assert_eq!(destination.len(), values * self.to.size_bytes(), "other numbers of values");
        if self.is_plain() {
            destination.copy_from_slice(source);
            return Ranges::default();
        }
        let mut ranges = Ranges::default();
        // What passes through the variable stays in the first cache.
        let mut between = [0; 512 * 8];
        let sources = source.chunks(512 * self.from.size_bytes());
        for (source, destination) in sources.zip(destination.chunks_mut(512 * self.to.size_bytes()))
        {
            let values = source.len() / self.from.size_bytes();
            let between = &mut between[..values * self.through.size_bytes()];
            ranges.written += self.step(self.from, self.through, source, between);
            ranges.read += self.step(self.through, self.to, between, destination);
        }
        ranges
    }

    /// How many values were out of range.
    fn step(&self, from: Type, to: Type, source: &[u8], destination: &mut [u8]) -> u64 {
        if self.same(from, to) {
            destination.copy_from_slice(source);
            return 0;
        }
        macro_rules! to {
            ($from:ty, $($name:ident: $to:ty),+) => {
                match to {
                    $(Type::$name => all::<$from, $to>(source, destination, to),)+
                    // Refused when the conversion was made.
                    Type::Char => unreachable!("numbers become no text"),
                }
            };
        }
        macro_rules! from {
            ($($name:ident: $from:ty),+) => {
                match from {
                    $(Type::$name => to!($from, Byte: i8, Short: i16, Int: i32, Float: f32, Double: f64,
                        UByte: u8, UShort: u16, UInt: u32, Int64: i64, UInt64: u64),)+
                    Type::Char => unreachable!("text becomes no numbers"),
                }
            };
        }
        from!(Byte: i8, Short: i16, Int: i32, Float: f32, Double: f64, UByte: u8, UShort: u16, UInt: u32,
            Int64: i64, UInt64: u64)
    }
}

fn all<S: Number, D: Number>(source: &[u8], destination: &mut [u8], to: Type) -> u64 {
    let fill = to.fill();
    let mut outside = 0;
    let sources = source.chunks_exact(size_of::<S>());
    for (source, destination) in sources.zip(destination.chunks_exact_mut(size_of::<D>())) {
        match D::from_wide(S::read(source).wide()) {
            Some(value) => value.write(destination),
            None => {
                outside += 1;
                destination.copy_from_slice(&fill[..size_of::<D>()]);
            }
        }
    }
    outside
}

/// A value on its way from one type to another.
#[derive(Clone, Copy)]
enum Wide {
    Whole(i128),
    Real(f64),
}

trait Number: Sized {
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn wide(self) -> Wide;
    /// None if it does not fit.
    fn from_wide(value: Wide) -> Option<Self>;
}

macro_rules! number {
    ($type:ty, $wide:expr, $from:expr) => {
        impl Number for $type {
            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_ne_bytes(own)
            }
            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_ne_bytes());
            }
            #[inline(always)]
            fn wide(self) -> Wide {
                $wide(self)
            }
            #[inline(always)]
            fn from_wide(value: Wide) -> Option<Self> {
                $from(value)
            }
        }
    };
}

macro_rules! whole {
    ($($type:ty),+) => {
        $(number!($type, |value| Wide::Whole(i128::from(value)), |value| match value {
            Wide::Whole(value) => Self::try_from(value).ok(),
            // The comparison is that of netCDF: 127.5 is above 127, although its whole part would fit. The greatest values
            // of 64 bits are no doubles: there the next power of two is beyond.
            Wide::Real(value) => {
                let (low, high) = (Self::MIN as f64, Self::MAX as f64);
                let fits = value >= low && value <= high && (value as i128) <= Self::MAX as i128;
                fits.then_some(value as Self)
            }
        });)+
    };
}
whole!(i8, i16, i32, i64, u8, u16, u32, u64);

number!(f32, |value: f32| Wide::Real(f64::from(value)), |value| match value {
    Wide::Whole(value) => Some(value as f32),
    // Infinities are beyond the greatest float; NaNs are not compared.
    Wide::Real(value) =>
        (value.is_nan() || value.abs() <= f64::from(f32::MAX)).then_some(value as f32),
});
number!(f64, Wide::Real, |value| match value {
    Wide::Whole(value) => Some(value as f64),
    Wide::Real(value) => Some(value),
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes<const N: usize>(values: &[[u8; N]]) -> Vec<u8> {
        values.concat()
    }

    fn through(from: Type, by: Type, to: Type, source: &[u8]) -> (Vec<u8>, Ranges) {
        let conversion = Conversion::new(from, by, to, Format::Data64).unwrap();
        let mut out = vec![0; source.len() / from.size_bytes() * to.size_bytes()];
        let ranges = conversion.apply(source, &mut out);
        (out, ranges)
    }

    #[test]
    fn a_double_comes_out_of_a_variable_of_floats_as_a_float() {
        let source = [0.1f64, -2.5, 1e300];
        let (out, ranges) =
            through(Type::Double, Type::Float, Type::Double, &bytes(&source.map(f64::to_ne_bytes)));
        let fill = f32::from_ne_bytes(Type::Float.fill()[..4].try_into().unwrap());
        let wanted = [f64::from(0.1f32), -2.5, f64::from(fill)];
        assert_eq!(out, bytes(&wanted.map(f64::to_ne_bytes)));
        assert_eq!(ranges, Ranges { written: 1, read: 0 });
    }

    #[test]
    fn ranges_are_those_of_netcdf() {
        // (value, whether it fits a signed byte)
        for (value, fits) in [
            (127.0, true),
            (127.5, false),
            (-128.0, true),
            (-128.5, false),
            (-0.9, true),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            let (_, ranges) = through(Type::Double, Type::Byte, Type::Byte, &value.to_ne_bytes());
            assert_eq!(ranges.written == 0, fits, "{value}");
        }
        let edge = 9_223_372_036_854_775_808.0f64;
        let (out, ranges) = through(Type::Double, Type::Int64, Type::Int64, &edge.to_ne_bytes());
        assert_eq!((out, ranges.written), (Type::Int64.fill().to_vec(), 1));
        let (_, ranges) =
            through(Type::Double, Type::Float, Type::Double, &f64::INFINITY.to_ne_bytes());
        assert_eq!(ranges.written, 1);
        let (out, _) = through(Type::Double, Type::Float, Type::Double, &f64::NAN.to_ne_bytes());
        assert!(f64::from_ne_bytes(out.try_into().unwrap()).is_nan());
    }

    #[test]
    fn what_does_not_fit_on_the_way_out_is_told_apart() {
        let (out, ranges) = through(Type::Int, Type::Int, Type::UByte, &300i32.to_ne_bytes());
        assert_eq!((out, ranges), (vec![255], Ranges { written: 0, read: 1 }));
        let (_, ranges) = through(Type::Int, Type::UShort, Type::Int, &(-1i32).to_ne_bytes());
        assert_eq!(ranges, Ranges { written: 1, read: 0 });
    }

    #[test]
    fn unsigned_characters_are_free_in_bytes_of_old_formats_only() {
        for (format, outside) in [(Format::Classic, 0), (Format::Data64, 1)] {
            let conversion = Conversion::new(Type::UByte, Type::Byte, Type::UByte, format).unwrap();
            let mut out = [0];
            assert_eq!(conversion.apply(&[200], &mut out).written, outside);
            assert_eq!(out == [200], outside == 0);
        }
    }

    #[test]
    fn text_stays_text() {
        let wrong = Conversion::new(Type::Char, Type::Byte, Type::Byte, Format::Classic);
        assert_eq!(wrong, Err(TextWithNumbers { from: Type::Char, to: Type::Byte }));
        assert!(Conversion::new(Type::Int, Type::Int, Type::Char, Format::Classic).is_err());
        let text = Conversion::new(Type::Char, Type::Char, Type::Char, Format::Classic).unwrap();
        let mut out = [0; 3];
        assert_eq!(text.apply(b"abc", &mut out), Ranges::default());
        assert_eq!(&out, b"abc");
    }

    fn number() -> impl Strategy<Value = Type> {
        prop::sample::select(Type::ALL.to_vec()).prop_filter("numbers", |one| *one != Type::Char)
    }

    proptest! {
        /// What is called plain gives the bytes that the long way would.
        #[test]
        fn plain_is_what_changes_nothing(
            (from, by) in (number(), number()), source in prop::collection::vec(any::<[u8; 8]>(), 0..9)
        ) {
            let source: Vec<u8> = source.concat();
            let conversion = Conversion::new(from, by, from, Format::Data64).unwrap();
            let mut between = vec![0; source.len() / from.size_bytes() * by.size_bytes()];
            let mut long = vec![0; source.len()];
            let written = conversion.step(from, by, &source, &mut between);
            let read = conversion.step(by, from, &between, &mut long);
            let mut out = vec![0; source.len()];
            prop_assert_eq!(conversion.apply(&source, &mut out), Ranges { written, read });
            prop_assert_eq!(out, long);
        }

        /// Whole numbers stay what they are, or are out of range.
        #[test]
        fn whole_numbers_are_never_changed(value in any::<i64>(), shift in 0u32..64, to in number()) {
            let value = value >> shift;
            let (out, ranges) = through(Type::Int64, to, Type::Int64, &value.to_ne_bytes());
            let fits = match to {
                Type::Byte => i8::try_from(value).is_ok(),
                Type::Short => i16::try_from(value).is_ok(),
                Type::Int => i32::try_from(value).is_ok(),
                Type::UByte => u8::try_from(value).is_ok(),
                Type::UShort => u16::try_from(value).is_ok(),
                Type::UInt => u32::try_from(value).is_ok(),
                Type::UInt64 => u64::try_from(value).is_ok(),
                Type::Int64 | Type::Float | Type::Double | Type::Char => return Ok(()),
            };
            prop_assert_eq!(ranges == Ranges::default(), fits);
            prop_assert_eq!(out == value.to_ne_bytes(), fits);
        }
    }
}
