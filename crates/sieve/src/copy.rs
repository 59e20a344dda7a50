//! Copying blocks between a buffer that mirrors a part of the file and packed data.
//!
//! Small blocks of one size are copied by loops that know the size: a call of `memcpy` for 8 bytes
//! costs several times what the 8 bytes cost.

use crate::view::Run;

/// Calls `$body` with a constant `$size` if the length is one of those that records often have.
macro_rules! for_common_sizes {
    ($len:expr, $size:ident => $body:expr, else $other:expr) => {
        match $len {
            1 => {
                const $size: usize = 1;
                $body
            }
            2 => {
                const $size: usize = 2;
                $body
            }
            4 => {
                const $size: usize = 4;
                $body
            }
            8 => {
                const $size: usize = 8;
                $body
            }
            12 => {
                const $size: usize = 12;
                $body
            }
            16 => {
                const $size: usize = 16;
                $body
            }
            24 => {
                const $size: usize = 24;
                $body
            }
            32 => {
                const $size: usize = 32;
                $body
            }
            48 => {
                const $size: usize = 48;
                $body
            }
            64 => {
                const $size: usize = 64;
                $body
            }
            128 => {
                const $size: usize = 128;
                $body
            }
            _ => $other,
        }
    };
}

/// Copies the blocks of `run` out of `window`, which holds the file from offset `window_start` on,
/// and packs them into `out`.
///
/// # Panics
/// If the run does not lie within the window, or `out` is shorter than its data.
pub fn scatter(run: &Run, window: &[u8], window_start: u64, out: &mut [u8]) {
    let start = (run.file - window_start) as usize;
    let window = &window[start..(run.end() - window_start) as usize];
    let (len, stride) = (run.len as usize, run.stride.max(run.len) as usize);
    let out = &mut out[..run.data() as usize];
    if run.count == 1 {
        out.copy_from_slice(window);
        return;
    }
    let blocks = window.chunks(stride);
    for_common_sizes!(len, SIZE => {
        for (to, from) in out.as_chunks_mut::<SIZE>().0.iter_mut().zip(blocks) {
            if let Some(from) = from.first_chunk::<SIZE>() {
                *to = *from;
            }
        }
    }, else {
        for (to, from) in out.chunks_exact_mut(len).zip(blocks) {
            to.copy_from_slice(&from[..len]);
        }
    });
}

/// Copies packed `data` into the blocks of `run` in `window`, which mirrors the file from offset
/// `window_start` on. What lies between the blocks stays as it is.
///
/// # Panics
/// If the run does not lie within the window, or `data` is shorter than the run's.
pub fn gather(run: &Run, data: &[u8], window: &mut [u8], window_start: u64) {
    let start = (run.file - window_start) as usize;
    let window = &mut window[start..(run.end() - window_start) as usize];
    let (len, stride) = (run.len as usize, run.stride.max(run.len) as usize);
    let data = &data[..run.data() as usize];
    if run.count == 1 {
        window.copy_from_slice(data);
        return;
    }
    let blocks = window.chunks_mut(stride);
    for_common_sizes!(len, SIZE => {
        for (from, to) in data.as_chunks::<SIZE>().0.iter().zip(blocks) {
            if let Some(to) = to.first_chunk_mut::<SIZE>() {
                *to = *from;
            }
        }
    }, else {
        for (from, to) in data.chunks_exact(len).zip(blocks) {
            to[..len].copy_from_slice(from);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_copied_to_its_place_and_nowhere_else() {
        for len in 1..=140u64 {
            for hole in [1, 3, 64] {
                let run = Run { file: 1000 + len, len, stride: len + hole, count: 5 };
                let (start, end) = (1000, run.end() + 7);
                let file: Vec<u8> = (start..end).map(|at| (at % 251) as u8).collect();
                let mut out = vec![0; run.data() as usize];
                scatter(&run, &file, start, &mut out);
                let wanted: Vec<u8> = (0..5)
                    .flat_map(|block| {
                        let at = run.file + block * run.stride;
                        (at..at + len).map(|at| (at % 251) as u8)
                    })
                    .collect();
                assert_eq!(out, wanted, "len {len} hole {hole}");

                let mut copy = file.clone();
                gather(&run, &vec![255; out.len()], &mut copy, start);
                for (at, byte) in (start..end).zip(&copy) {
                    let inside =
                        at >= run.file && at < run.end() && (at - run.file) % run.stride < run.len;
                    let expected = if inside { 255 } else { (at % 251) as u8 };
                    assert_eq!(*byte, expected, "len {len} hole {hole} at {at}");
                }
            }
        }
    }
}
