//! Elements of a known size.

/// An element that is moved as one.
pub(crate) trait Word: Copy {
    /// Its size.
    const BYTES: usize;
    /// Its bytes.
    type Bytes: Copy;
    /// A slice as elements; what is left over at its end is left out.
    fn elements(bytes: &[u8]) -> &[Self::Bytes];
    /// The same of a slice that is written.
    fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    /// From the first bytes of a slice.
    fn load(bytes: &[u8]) -> Self;
    /// To the first bytes of a slice.
    fn store(self, bytes: &mut [u8]);
    /// From its bytes.
    fn from(bytes: Self::Bytes) -> Self;
    /// To its bytes.
    fn into(self) -> Self::Bytes;
    /// With its bytes in the other order.
    fn reversed(self) -> Self;
    /// With its bytes in the other order, or as it is.
    #[inline(always)]
    fn turned<const SWAP: bool>(self) -> Self {
        if SWAP { self.reversed() } else { self }
    }
}

macro_rules! word {
    ($($number:ty: $bytes:literal),*) => {$(
        impl Word for $number {
            const BYTES: usize = $bytes;
            type Bytes = [u8; $bytes];
            #[inline(always)]
            fn elements(bytes: &[u8]) -> &[[u8; $bytes]] {
                bytes.as_chunks().0
            }
            #[inline(always)]
            fn elements_mut(bytes: &mut [u8]) -> &mut [[u8; $bytes]] {
                bytes.as_chunks_mut().0
            }
            #[inline(always)]
            fn load(bytes: &[u8]) -> Self {
                let mut own = [0; $bytes];
                own.copy_from_slice(&bytes[..$bytes]);
                <$number>::from_ne_bytes(own)
            }
            #[inline(always)]
            fn store(self, bytes: &mut [u8]) {
                bytes[..$bytes].copy_from_slice(&self.to_ne_bytes());
            }
            #[inline(always)]
            fn from(bytes: [u8; $bytes]) -> Self {
                <$number>::from_ne_bytes(bytes)
            }
            #[inline(always)]
            fn into(self) -> [u8; $bytes] {
                self.to_ne_bytes()
            }
            #[inline(always)]
            fn reversed(self) -> Self {
                self.swap_bytes()
            }
        }
    )*};
}

word!(u8: 1, u16: 2, u32: 4, u64: 8, u128: 16);

/// Elements that are no numbers: structs, or what of one is moved.
#[derive(Clone, Copy)]
pub(crate) struct Block<const N: usize>([u8; N]);

impl<const N: usize> Word for Block<N> {
    const BYTES: usize = N;
    type Bytes = [u8; N];
    #[inline(always)]
    fn elements(bytes: &[u8]) -> &[[u8; N]] {
        bytes.as_chunks().0
    }
    #[inline(always)]
    fn elements_mut(bytes: &mut [u8]) -> &mut [[u8; N]] {
        bytes.as_chunks_mut().0
    }
    #[inline(always)]
    fn load(bytes: &[u8]) -> Self {
        let mut own = [0; N];
        own.copy_from_slice(&bytes[..N]);
        Self(own)
    }
    #[inline(always)]
    fn store(self, bytes: &mut [u8]) {
        bytes[..N].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn from(bytes: [u8; N]) -> Self {
        Self(bytes)
    }
    #[inline(always)]
    fn into(self) -> [u8; N] {
        self.0
    }
    #[inline(always)]
    fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }
}

/// Calls `$number::<Word, SWAP>` for a number of `$bytes` bytes whose order is reversed or not,
/// `$block` for a struct of some common sizes, or else does what stands last.
macro_rules! by_size {
    ($bytes:expr, $swap:expr, $number:ident $args:tt, $block:ident $same:tt, $else:expr) => {
        match ($bytes, $swap) {
            (1, _) => $number::<u8, false> $args,
            (2, false) => $number::<u16, false> $args,
            (4, false) => $number::<u32, false> $args,
            (8, false) => $number::<u64, false> $args,
            (2, true) => $number::<u16, true> $args,
            (4, true) => $number::<u32, true> $args,
            (8, true) => $number::<u64, true> $args,
            (12, false) => $block::<crate::word::Block<12>, false> $same,
            (16, false) => $block::<u128, false> $same,
            (20, false) => $block::<crate::word::Block<20>, false> $same,
            (24, false) => $block::<crate::word::Block<24>, false> $same,
            (32, false) => $block::<crate::word::Block<32>, false> $same,
            _ => $else,
        }
    };
}
pub(crate) use by_size;
