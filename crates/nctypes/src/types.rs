//! The types.

/// A type of a variable, and of a program's memory likewise: C's `signed char` is [`Byte`](Self::Byte), `unsigned char` is
/// [`UByte`](Self::UByte), `long` on this machine is [`Int64`](Self::Int64).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Type {
    /// `NC_BYTE`: a signed byte.
    Byte = 1,
    /// `NC_CHAR`: a character.
    Char = 2,
    /// `NC_SHORT`: 16 bits, signed.
    Short = 3,
    /// `NC_INT`: 32 bits, signed.
    Int = 4,
    /// `NC_FLOAT`: IEEE 754, 32 bits.
    Float = 5,
    /// `NC_DOUBLE`: IEEE 754, 64 bits.
    Double = 6,
    /// `NC_UBYTE`: an unsigned byte; CDF-5.
    UByte = 7,
    /// `NC_USHORT`: 16 bits, unsigned; CDF-5.
    UShort = 8,
    /// `NC_UINT`: 32 bits, unsigned; CDF-5.
    UInt = 9,
    /// `NC_INT64`: 64 bits, signed; CDF-5.
    Int64 = 10,
    /// `NC_UINT64`: 64 bits, unsigned; CDF-5.
    UInt64 = 11,
}

/// A file format, as far as types differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// CDF-1 and CDF-2.
    Classic,
    /// CDF-5.
    Data64,
}

impl Type {
    /// All of them, by their numbers.
    pub const ALL: [Self; 11] = [
        Self::Byte,
        Self::Char,
        Self::Short,
        Self::Int,
        Self::Float,
        Self::Double,
        Self::UByte,
        Self::UShort,
        Self::UInt,
        Self::Int64,
        Self::UInt64,
    ];

    /// The type of a number.
    ///
    /// # Source
    /// `NC_BYTE` … `NC_UINT64` of pnetcdf.h.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.number() == number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }

    /// As CDL writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char => "char",
            Self::Short => "short",
            Self::Int => "int",
            Self::Float => "float",
            Self::Double => "double",
            Self::UByte => "ubyte",
            Self::UShort => "ushort",
            Self::UInt => "uint",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
        }
    }

    /// Bytes of a value.
    #[must_use]
    pub fn size_bytes(self) -> usize {
        match self {
            Self::Byte | Self::Char | Self::UByte => 1,
            Self::Short | Self::UShort => 2,
            Self::Int | Self::Float | Self::UInt => 4,
            Self::Double | Self::Int64 | Self::UInt64 => 8,
        }
    }

    /// Whether variables of a format can have this type.
    #[must_use]
    pub fn is_in(self, format: Format) -> bool {
        format == Format::Data64 || self <= Self::Double
    }

    /// What stands where nobody wrote, unless the variable says otherwise: the first [`size_bytes`](Self::size_bytes) of it.
    ///
    /// # Source
    /// `NC_FILL_BYTE` … `NC_FILL_UINT64` of pnetcdf.h.
    #[must_use]
    pub fn fill(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        let mut put = |value: &[u8]| bytes[..value.len()].copy_from_slice(value);
        match self {
            Self::Byte => put(&(-127i8).to_ne_bytes()),
            Self::Char => put(&[0]),
            Self::Short => put(&(-32767i16).to_ne_bytes()),
            Self::Int => put(&(-2_147_483_647i32).to_ne_bytes()),
            Self::Float => put(&9.969_21e36_f32.to_ne_bytes()),
            Self::Double => put(&9.969_209_968_386_869e36_f64.to_ne_bytes()),
            Self::UByte => put(&[255]),
            Self::UShort => put(&65535u16.to_ne_bytes()),
            Self::UInt => put(&4_294_967_295u32.to_ne_bytes()),
            Self::Int64 => put(&(-9_223_372_036_854_775_806i64).to_ne_bytes()),
            Self::UInt64 => put(&18_446_744_073_709_551_614u64.to_ne_bytes()),
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_one_to_one() {
        for (at, one) in Type::ALL.into_iter().enumerate() {
            assert_eq!(one.number(), at as i32 + 1);
            assert_eq!(Type::from_number(one.number()), Some(one));
            assert!(one.is_in(Format::Data64));
        }
        assert_eq!((Type::from_number(0), Type::from_number(12)), (None, None));
        assert!(Type::Double.is_in(Format::Classic) && !Type::UByte.is_in(Format::Classic));
    }

    #[test]
    fn fill_values_of_float_and_double_are_the_same_number() {
        let float = f32::from_ne_bytes(Type::Float.fill()[..4].try_into().unwrap());
        let double = f64::from_ne_bytes(Type::Double.fill());
        // 0x7c f0 00 00 of the format's specification.
        assert_eq!(float.to_bits(), 0x7cf0_0000);
        assert_eq!(f64::from(float), double);
    }
}
