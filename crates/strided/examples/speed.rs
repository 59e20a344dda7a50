//! Copies per second, beside memcpy and beside loops written by hand for one layout each: what the
//! compiler makes of them for the widest registers of this processor, and the same with stores that
//! pass the caches by.
//!
//! `cargo run --release -p strided --example speed [MEGABYTES]`
//!
//! All are timed in turn, several rounds; the best of each counts, in gigabytes written per second of
//! processor time.

use strided::{Dim, Run, copy};

type Job<'a> = (&'static str, Box<dyn FnMut(&mut [u8], &[u8]) + 'a>);

fn main() {
    let megabytes = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(96_usize);
    // No multiple of a page: the arrays of real data seldom begin at the same place of one.
    let points = megabytes * (1 << 20) / 12 / 4096 * 4096 + 336;
    let bytes = points * 12;
    let src: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
    let mut dst = vec![1_u8; bytes];
    println!("{bytes} bytes");
    let run = |dst, src, bytes, unit| Run { dst, src, bytes, unit };
    let fields_aos: Vec<Run> = (0..3).map(|k| run(k * points * 4, k * 4, 4, 1)).collect();
    let fields_soa: Vec<Run> = (0..3).map(|k| run(k * 4, k * points * 4, 4, 1)).collect();
    let line = |count, dst, src| [Dim { count, dst, src }];

    group(
        "all",
        bytes,
        &mut dst,
        &src,
        vec![
            ("memcpy", Box::new(|d, s| d.copy_from_slice(s))),
            ("swap 4", Box::new(|d, s| copy(d, s, &[], &[run(0, 0, bytes, 4)]))),
        ],
    );
    group(
        "structs to arrays",
        bytes,
        &mut dst,
        &src,
        vec![
            ("copy", Box::new(|d, s| copy(d, s, &line(points, 4, 12), &fields_aos))),
            ("by hand", Box::new(|d, s| hand::aos_to_soa(d, s, points))),
        ],
    );
    group(
        "arrays to structs",
        bytes,
        &mut dst,
        &src,
        vec![
            ("copy", Box::new(|d, s| copy(d, s, &line(points, 12, 4), &fields_soa))),
            ("by hand", Box::new(|d, s| hand::soa_to_aos(d, s, points))),
        ],
    );
    for (name, stride) in
        [("every 2nd", 8_isize), ("every 3rd", 12), ("every 5th", 20), ("every 11th", 44)]
    {
        let count = bytes / stride as usize;
        let dims = line(count, 4, stride);
        group(
            name,
            count * 4,
            &mut dst,
            &src,
            vec![
                (
                    "copy",
                    Box::new(move |d: &mut [u8], s: &[u8]| copy(d, s, &dims, &[run(0, 0, 4, 1)])),
                ),
                (
                    "by hand",
                    Box::new(move |d: &mut [u8], s: &[u8]| {
                        hand::every(d, s, count, stride as usize / 4)
                    }),
                ),
            ],
        );
    }
    let n = ((bytes / 8) as f64).sqrt() as usize / 64 * 64 + 8;
    let n = if n * n * 8 > bytes { n - 64 } else { n };
    let dims = [
        Dim { count: n, dst: 8 * n as isize, src: 8 },
        Dim { count: n, dst: 8, src: 8 * n as isize },
    ];
    group(
        "transpose of 8",
        n * n * 8,
        &mut dst,
        &src,
        vec![
            ("copy", Box::new(|d, s| copy(d, s, &dims, &[run(0, 0, 8, 1)]))),
            ("blocked by hand", Box::new(|d, s| hand::transpose(d, s, n))),
            ("naive", Box::new(|d, s| hand::naive(d, s, n))),
        ],
    );
    let m = n;
    let dims = [
        Dim { count: m, dst: 4 * m as isize, src: 4 },
        Dim { count: m, dst: 4, src: 4 * m as isize },
    ];
    group(
        "transpose of 4",
        m * m * 4,
        &mut dst,
        &src,
        vec![("copy", Box::new(|d, s| copy(d, s, &dims, &[run(0, 0, 4, 1)])))],
    );
}

/// Time that this thread was given: the machine may be busy with something else.
fn seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn group(name: &str, bytes: usize, dst: &mut [u8], src: &[u8], mut jobs: Vec<Job<'_>>) {
    let mut best = vec![f64::MAX; jobs.len()];
    let rounds = (800_000_000 / bytes).clamp(5, 4000);
    for _ in 0..rounds {
        for (best, (_, job)) in best.iter_mut().zip(&mut jobs) {
            let begin = seconds();
            job(dst, src);
            *best = best.min(seconds() - begin);
        }
    }
    for (best, (job, _)) in best.iter().zip(&jobs) {
        println!("{name:20} {job:16} {:6.2} GB/s", bytes as f64 / best / 1e9);
    }
}

/// Loops for one layout each.
mod hand {
    fn words(bytes: &[u8]) -> &[u32] {
        // SAFETY: every u32 is valid; what is not aligned is cut off.
        unsafe { bytes.align_to().1 }
    }

    fn words_mut(bytes: &mut [u8]) -> &mut [u32] {
        // SAFETY: as above.
        unsafe { bytes.align_to_mut().1 }
    }

    macro_rules! wide {
        ($(fn $name:ident($dst:ident, $src:ident $(, $arg:ident)*) $body:block)*) => {$(
            pub(crate) fn $name($dst: &mut [u8], $src: &[u8] $(, $arg: usize)*) {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
                fn avx512($dst: &mut [u8], $src: &[u8] $(, $arg: usize)*) $body
                #[target_feature(enable = "avx2")]
                fn avx2($dst: &mut [u8], $src: &[u8] $(, $arg: usize)*) $body
                // SAFETY: the processor has been asked.
                unsafe {
                    if std::arch::is_x86_feature_detected!("avx512vbmi") {
                        avx512($dst, $src $(, $arg)*)
                    } else {
                        avx2($dst, $src $(, $arg)*)
                    }
                }
            }
        )*};
    }

    wide! {
        fn aos_to_soa(dst, src, n) {
            let (a, rest) = words_mut(dst).split_at_mut(n);
            let (b, c) = rest.split_at_mut(n);
            let src = words(src);
            let (a, b, c, src) = (&mut a[..n], &mut b[..n], &mut c[..n], &src[..3 * n]);
            for i in 0..n {
                a[i] = src[3 * i];
                b[i] = src[3 * i + 1];
                c[i] = src[3 * i + 2];
            }
        }
        fn soa_to_aos(dst, src, n) {
            let (a, rest) = words(src).split_at(n);
            let (b, c) = rest.split_at(n);
            let (a, b, c, dst) = (&a[..n], &b[..n], &c[..n], &mut words_mut(dst)[..3 * n]);
            for i in 0..n {
                dst[3 * i] = a[i];
                dst[3 * i + 1] = b[i];
                dst[3 * i + 2] = c[i];
            }
        }
        fn every(dst, src, n, k) {
            let (dst, src) = (&mut words_mut(dst)[..n], words(src));
            match k {
                3 => for (d, s) in dst.iter_mut().zip(src.chunks_exact(3)) { *d = s[0] },
                5 => for (d, s) in dst.iter_mut().zip(src.chunks_exact(5)) { *d = s[0] },
                _ => for (d, s) in dst.iter_mut().zip(src.chunks_exact(k)) { *d = s[0] },
            }
        }
        fn transpose(dst, src, n) {
            // SAFETY: as above.
            let (dst, src) = unsafe { (dst.align_to_mut::<u64>().1, src.align_to::<u64>().1) };
            let (dst, src) = (&mut dst[..n * n], &src[..n * n]);
            for i in (0..n).step_by(32) {
                for j in (0..n).step_by(32) {
                    for k in i..n.min(i + 32) {
                        for l in j..n.min(j + 32) {
                            dst[k * n + l] = src[l * n + k];
                        }
                    }
                }
            }
        }
        fn naive(dst, src, n) {
            // SAFETY: as above.
            let (dst, src) = unsafe { (dst.align_to_mut::<u64>().1, src.align_to::<u64>().1) };
            let (dst, src) = (&mut dst[..n * n], &src[..n * n]);
            for i in 0..n {
                for j in 0..n {
                    dst[i * n + j] = src[j * n + i];
                }
            }
        }
    }
}
