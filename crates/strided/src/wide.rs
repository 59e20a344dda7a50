//! The loops that a compiler does not find: numbers of 4 and 8 bytes in registers of 64 bytes.
//!
//! All of them consist of one step: a register is put together from lanes of several others, by a
//! row of permutations of two registers each. Which lanes they are stands in tables that are
//! computed when the program is compiled.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_loadu_si512, _mm512_permutex2var_epi32,
    _mm512_shuffle_epi8, _mm512_storeu_si512, _mm512_stream_si512,
};

use crate::level::has_avx512;
use crate::split::Array;
use crate::stores::Stores;

/// Bytes of a register.
const REGISTER: usize = 64;
/// Lanes of 4 bytes in a register.
const LANES: usize = 16;
/// Which lane of the registers so far, or with 16 added of the next one, each lane becomes.
type Lanes = [u32; LANES];

/// Makes structs of `M` numbers of `WIDTH` times 4 bytes from as many arrays. Returns how many were
/// made; what is left are fewer than a register's.
pub(crate) fn weave<const M: usize, const WIDTH: usize>(
    dst: &mut [u8],
    src: [&[u8]; M],
    swap: bool,
    stores: Stores,
) -> usize {
    if !has_avx512() {
        return 0;
    }
    // SAFETY: the processor has every feature that the function was compiled for.
    unsafe {
        match (swap, stores.streams_to(dst)) {
            (false, false) => weave_all::<M, WIDTH, false, false>(dst, src),
            (true, false) => weave_all::<M, WIDTH, true, false>(dst, src),
            (false, true) => weave_all::<M, WIDTH, false, true>(dst, src),
            (true, true) => weave_all::<M, WIDTH, true, true>(dst, src),
        }
    }
}

/// Takes the first of every `K` numbers. Returns how many were taken; what is left are fewer than a
/// register's.
pub(crate) fn gather<const K: usize, const WIDTH: usize>(
    dst: &mut [u8],
    src: &[u8],
    swap: bool,
    stores: Stores,
) -> usize {
    if !has_avx512() {
        return 0;
    }
    // SAFETY: as above.
    unsafe {
        match (swap, stores.streams_to(dst)) {
            (false, false) => gather_all::<K, WIDTH, false, false>(dst, src),
            (true, false) => gather_all::<K, WIDTH, true, false>(dst, src),
            (false, true) => gather_all::<K, WIDTH, false, true>(dst, src),
            (true, true) => gather_all::<K, WIDTH, true, true>(dst, src),
        }
    }
}

/// Makes several arrays of structs of `M` numbers. Returns how many structs
/// were split; what is left are fewer than two registers'.
pub(crate) fn split<const M: usize, const WIDTH: usize>(
    arrays: &mut [Array<'_>],
    src: &[u8],
    swap: bool,
    stores: Stores,
) -> usize {
    let number = 4 * WIDTH;
    let fits = |array: &Array<'_>| array.bytes.as_ptr().addr().is_multiple_of(number);
    if !has_avx512() || arrays.len() > ARRAYS_MAX {
        return 0;
    }
    let streams = stores == Stores::Streaming && arrays.iter().all(fits);
    // SAFETY: as above.
    unsafe {
        match (swap, streams) {
            (false, false) => split_all::<M, WIDTH, false, false>(arrays, src),
            (true, false) => split_all::<M, WIDTH, true, false>(arrays, src),
            (false, true) => split_all::<M, WIDTH, false, true>(arrays, src),
            (true, true) => split_all::<M, WIDTH, true, true>(arrays, src),
        }
    }
}

/// Transposes a square of `64 / (4 * WIDTH)` numbers a side, whose lines are `ds` and `ss` bytes
/// apart, as often as `squares` says: along the lines of the destination, and from one line of the
/// source to the next. (Stores suffer more than loads from another page each time.)
///
/// # Panics
/// When a slice does not hold that much, or there is no AVX-512.
pub(crate) fn squares<const WIDTH: usize>(
    dst: &mut [u8],
    src: &[u8],
    (ds, ss): (usize, usize),
    squares: usize,
    swap: bool,
    stores: Stores,
) {
    assert!(has_avx512());
    let streams = ds.is_multiple_of(REGISTER) && stores.streams_to(dst);
    // SAFETY: as above.
    unsafe {
        match (WIDTH, swap, streams) {
            (1, false, false) => squares_all::<16, 1, false, false>(dst, ds, src, ss, squares),
            (1, true, false) => squares_all::<16, 1, true, false>(dst, ds, src, ss, squares),
            (_, false, false) => squares_all::<8, 2, false, false>(dst, ds, src, ss, squares),
            (_, true, false) => squares_all::<8, 2, true, false>(dst, ds, src, ss, squares),
            (1, false, true) => squares_all::<16, 1, false, true>(dst, ds, src, ss, squares),
            (1, true, true) => squares_all::<16, 1, true, true>(dst, ds, src, ss, squares),
            (_, false, true) => squares_all::<8, 2, false, true>(dst, ds, src, ss, squares),
            (_, true, true) => squares_all::<8, 2, true, true>(dst, ds, src, ss, squares),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn weave_all<const M: usize, const WIDTH: usize, const SWAP: bool, const STREAM: bool>(
    dst: &mut [u8],
    src: [&[u8]; M],
) -> usize {
    let src: [&[[u8; REGISTER]]; M] = src.map(|src| src.as_chunks().0);
    let (dst, _) = dst.as_chunks_mut::<REGISTER>();
    let (dst, _) = dst.as_chunks_mut::<M>();
    let count = src.iter().map(|src| src.len()).fold(dst.len(), usize::min);
    let src = src.map(|src| &src[..count]);
    for (i, out) in dst[..count].iter_mut().enumerate() {
        let mut registers = [load(&src[0][i]); M];
        for field in 1..M {
            registers[field] = load(&src[field][i]);
        }
        for (lanes, out) in Tables::<M, WIDTH>::WEAVE.iter().zip(out) {
            store::<WIDTH, SWAP, STREAM>(out, chosen(&registers, lanes));
        }
    }
    fence::<STREAM>();
    count * LANES / WIDTH
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn gather_all<const K: usize, const WIDTH: usize, const SWAP: bool, const STREAM: bool>(
    dst: &mut [u8],
    src: &[u8],
) -> usize {
    let (src, _) = src.as_chunks::<REGISTER>();
    let (src, _) = src.as_chunks::<K>();
    let (dst, _) = dst.as_chunks_mut::<REGISTER>();
    let count = dst.len().min(src.len());
    for (out, from) in dst.iter_mut().zip(src) {
        let registers = loads(from);
        store::<WIDTH, SWAP, STREAM>(out, chosen(&registers, &Tables::<K, WIDTH>::GATHER));
    }
    fence::<STREAM>();
    count * LANES / WIDTH
}

/// The most arrays that structs are split into at once: as many as there are numbers in a struct.
const ARRAYS_MAX: usize = 8;

/// Where arrays are streamed, each is aligned in its own way: then a register is put together from
/// the end of the one before and the begin of this one.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn split_all<const M: usize, const WIDTH: usize, const SWAP: bool, const STREAM: bool>(
    arrays: &mut [Array<'_>],
    src: &[u8],
) -> usize {
    let (src, _) = src.as_chunks::<REGISTER>();
    let (src, _) = src.as_chunks::<M>();
    let lengths = arrays.iter().map(|array| array.bytes.len() / REGISTER);
    let count = lengths.fold(src.len(), usize::min);
    if count < 2 {
        return 0;
    }
    if !STREAM {
        for (i, from) in src[..count].iter().enumerate() {
            let registers = loads(from);
            for array in arrays.iter_mut() {
                let register = chosen(&registers, &Tables::<M, WIDTH>::SPLIT[array.number]);
                let (out, _) = array.bytes.as_chunks_mut();
                store::<WIDTH, SWAP, false>(&mut out[i], register);
            }
        }
        return count * LANES / WIDTH;
    }
    // For each array: bytes before the first aligned one, the lanes that are stored next, and the
    // register before.
    let mut heads = [0; ARRAYS_MAX];
    let mut lanes = [[0; LANES]; ARRAYS_MAX];
    let mut before = [load(&[0; REGISTER]); ARRAYS_MAX];
    let registers = loads(&src[0]);
    for (k, array) in arrays.iter_mut().enumerate() {
        heads[k] = array.bytes.as_ptr().align_offset(REGISTER);
        lanes[k] = std::array::from_fn(|lane| (heads[k] / 4 + lane) as u32);
        before[k] = chosen(&registers, &Tables::<M, WIDTH>::SPLIT[array.number]);
        if let Some(place) = array.bytes.first_chunk_mut() {
            // Beyond the first aligned place it is stored again.
            store::<WIDTH, SWAP, false>(place, before[k]);
        }
    }
    for (i, from) in src[1..count].iter().enumerate() {
        let registers = loads(from);
        for (k, array) in arrays.iter_mut().enumerate() {
            let next = chosen(&registers, &Tables::<M, WIDTH>::SPLIT[array.number]);
            let register = _mm512_permutex2var_epi32(before[k], index(&lanes[k]), next);
            if let Some(place) = array.bytes[heads[k] + i * REGISTER..].first_chunk_mut() {
                store::<WIDTH, SWAP, true>(place, register);
            }
            before[k] = next;
        }
    }
    fence::<true>();
    for (k, array) in arrays.iter_mut().enumerate() {
        let (out, _) = array.bytes.as_chunks_mut();
        store::<WIDTH, SWAP, false>(&mut out[count - 1], before[k]);
    }
    count * LANES / WIDTH
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn squares_all<const N: usize, const WIDTH: usize, const SWAP: bool, const STREAM: bool>(
    dst: &mut [u8],
    ds: usize,
    src: &[u8],
    ss: usize,
    squares: usize,
) {
    if squares == 0 {
        return;
    }
    assert!((squares * N - 1) * ss + REGISTER <= src.len(), "lines of the source");
    assert!((N - 1) * ds + squares * REGISTER <= dst.len(), "lines of the destination");
    for square in 0..squares {
        let line_at = |line: usize| {
            // SAFETY: line `squares * N - 1` has 64 bytes in the source, as was asserted.
            unsafe { src.as_ptr().add((square * N + line) * ss) }
        };
        // SAFETY: as there.
        let mut lines = unsafe { [load_from(line_at(0)); N] };
        for (line, register) in lines.iter_mut().enumerate().skip(1) {
            // SAFETY: as there.
            *register = unsafe { load_from(line_at(line)) };
        }
        for line in 0..N {
            // Whoever asks for these squares asks for those beside them next.
            ahead(line_at(line), REGISTER);
        }
        // Blocks of half the size are exchanged across the diagonal, then of a quarter, and so on.
        let mut half = N / 2;
        while half > 0 {
            let lanes = &Tables::<N, WIDTH>::EXCHANGE[half.ilog2() as usize];
            let mut line = 0;
            while line < N {
                if line & half == 0 {
                    let (upper, lower) = (lines[line], lines[line + half]);
                    lines[line] = _mm512_permutex2var_epi32(upper, index(&lanes[0]), lower);
                    lines[line + half] = _mm512_permutex2var_epi32(upper, index(&lanes[1]), lower);
                }
                line += 1;
            }
            half /= 2;
        }
        for (line, register) in lines.into_iter().enumerate() {
            // SAFETY: square `squares - 1` of line `N - 1` ends within the destination, as was
            // asserted.
            let place = unsafe { &mut *dst.as_mut_ptr().add(line * ds + square * REGISTER).cast() };
            store::<WIDTH, SWAP, STREAM>(place, register);
        }
    }
    fence::<STREAM>();
}

/// Asks for memory `bytes` behind a place, which need not be anybody's, to be brought to the cache.
#[inline(always)]
fn ahead(place: *const u8, bytes: usize) {
    // SAFETY: a hint to the processor, which ignores addresses of nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.wrapping_add(bytes).cast()) };
}

/// How far ahead lines are asked for that are read one after the other, in bytes.
const AHEAD: usize = 1 << 10;

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn loads<const M: usize>(from: &[[u8; REGISTER]; M]) -> [__m512i; M] {
    let mut registers = [load(&from[0]); M];
    for field in 1..M {
        registers[field] = load(&from[field]);
    }
    for field in from {
        ahead(field.as_ptr(), AHEAD);
    }
    registers
}

/// # Safety
/// 64 bytes may be read there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn load_from(from: *const u8) -> __m512i {
    // SAFETY: as our caller promises; they need not be aligned.
    unsafe { _mm512_loadu_si512(from.cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn load(from: &[u8; REGISTER]) -> __m512i {
    // SAFETY: 64 bytes are read, which the reference has; they need not be aligned.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn index(lanes: &Lanes) -> __m512i {
    // SAFETY: 16 lanes of 4 bytes are 64 bytes.
    unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
}

/// Streaming stores are in no order with others, until this.
#[inline(always)]
fn fence<const STREAM: bool>() {
    if STREAM {
        // SAFETY: every processor of 64 bits has the instruction.
        unsafe { _mm_sfence() };
    }
}

/// Stores a register, with the bytes of its numbers reversed or not.
///
/// # Panics
/// When it is to be streamed to what is not aligned.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn store<const WIDTH: usize, const SWAP: bool, const STREAM: bool>(
    to: &mut [u8; REGISTER],
    register: __m512i,
) {
    let register = if SWAP {
        let order = if WIDTH == 1 { &REVERSED_4 } else { &REVERSED_8 };
        _mm512_shuffle_epi8(register, load(order))
    } else {
        register
    };
    if STREAM {
        debug_assert!(to.as_ptr().addr().is_multiple_of(REGISTER));
        // SAFETY: 64 bytes are written, which the reference has. They are aligned: whoever chose to
        // stream has looked at the first address, and all others are multiples of 64 behind it.
        unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), register) }
    } else {
        // SAFETY: 64 bytes are written, which the reference has; they need not be aligned.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), register) }
    }
}

/// Lanes of several registers in one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn chosen<const M: usize>(registers: &[__m512i; M], lanes: &[Lanes; M]) -> __m512i {
    let mut all = registers[0];
    for next in 1..M {
        all = _mm512_permutex2var_epi32(all, index(&lanes[next]), registers[next]);
    }
    all
}

const REVERSED_4: [u8; REGISTER] = reversed(4);
const REVERSED_8: [u8; REGISTER] = reversed(8);

/// Within 16 bytes, which byte each becomes.
const fn reversed(bytes: usize) -> [u8; REGISTER] {
    let mut order = [0; REGISTER];
    let mut i = 0;
    while i < REGISTER {
        order[i] = (i % 16 / bytes * bytes + bytes - 1 - i % bytes) as u8;
        i += 1;
    }
    order
}

/// Tables for `M` fields, or squares of `M` numbers a side, of `WIDTH` lanes each.
struct Tables<const M: usize, const WIDTH: usize>;

impl<const M: usize, const WIDTH: usize> Tables<M, WIDTH> {
    /// For each register of structs, how it is put together from one register of each field.
    const WEAVE: [[Lanes; M]; M] = {
        let mut tables = [[[0; LANES]; M]; M];
        let mut out = 0;
        while out < M {
            let mut from = [(0, 0); LANES];
            let mut lane = 0;
            while lane < LANES {
                let number = (out * LANES + lane) / WIDTH;
                from[lane] = (number % M, number / M * WIDTH + lane % WIDTH);
                lane += 1;
            }
            tables[out] = steps(&from);
            out += 1;
        }
        tables
    };

    /// How the first of every `M` numbers in as many registers become one register.
    const GATHER: [Lanes; M] = Self::SPLIT[0];

    /// The same for each of the `M`.
    const SPLIT: [[Lanes; M]; M] = {
        let mut tables = [[[0; LANES]; M]; M];
        let mut number = 0;
        while number < M {
            let mut from = [(0, 0); LANES];
            let mut lane = 0;
            while lane < LANES {
                let place = (lane / WIDTH * M + number) * WIDTH + lane % WIDTH;
                from[lane] = (place / LANES, place % LANES);
                lane += 1;
            }
            tables[number] = steps(&from);
            number += 1;
        }
        tables
    };

    /// For blocks of 1, 2, 4 and 8 numbers, what two lines become when they exchange them.
    const EXCHANGE: [[Lanes; 2]; 4] = {
        let mut tables = [[[0; LANES]; 2]; 4];
        let mut power = 0;
        while power < 4 {
            let half = (1 << power) * WIDTH;
            let mut lane = 0;
            while lane < LANES {
                let low = lane & half == 0;
                tables[power][0][lane] =
                    if low { lane } else { LANES + lane.wrapping_sub(half) } as u32;
                tables[power][1][lane] =
                    if low { lane + half } else { LANES + lane } as u32 % (2 * LANES as u32);
                lane += 1;
            }
            power += 1;
        }
        tables
    };
}

/// From the register and lane that each lane comes from, the permutations one after the other.
const fn steps<const M: usize>(from: &[(usize, usize); LANES]) -> [Lanes; M] {
    let mut tables = [[0; LANES]; M];
    let mut next = 1;
    while next < M {
        let mut lane = 0;
        while lane < LANES {
            let (register, place) = from[lane];
            tables[next][lane] = if register == next {
                LANES + place
            } else if next == 1 && register == 0 {
                place
            } else {
                lane
            } as u32;
            lane += 1;
        }
        next += 1;
    }
    tables
}
