//! The instructions that a processor has.
#![allow(unsafe_code)]

/// A loop that may be compiled for several sets of instructions. [`run`](Kernel::run) must be
/// `#[inline(always)]`, and so must be what it calls in the loop.
pub(crate) trait Kernel {
    /// Carries it out.
    fn run(self);
}

/// Runs a loop with the widest registers there are.
#[inline]
pub(crate) fn with<K: Kernel>(kernel: K) {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor has every feature that the function was compiled for, as has
            // been asked just now.
            return unsafe { avx512(kernel) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(kernel) };
        }
    }
    kernel.run();
}

/// Whether there are 64-byte registers and all that is used of them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vl")
        && std::arch::is_x86_feature_detected!("avx512vbmi")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
fn avx512<K: Kernel>(kernel: K) {
    kernel.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<K: Kernel>(kernel: K) {
    kernel.run();
}
