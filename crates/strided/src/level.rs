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

/// The size of the last cache, as the processor tells it.
///
/// # Source
/// AMD64 Architecture Programmer's Manual 3, CPUID Fn8000_001D; Intel 64 and IA-32 Architectures
/// Software Developer's Manual 2A, CPUID leaf 04H: both describe one cache in each subleaf.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // newer compilers know that it is safe
pub(crate) fn last_cache_bytes() -> Option<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    // SAFETY: every processor of 64 bits has the instruction.
    let (leaf, subleaf) =
        unsafe { (|leaf| __cpuid(leaf), |leaf, subleaf| __cpuid_count(leaf, subleaf)) };
    let told = |leaf: u32| {
        let caches = (0..8).map(|number| subleaf(leaf, number));
        let caches = caches.take_while(|cache| cache.eax & 0x1f != 0);
        let size = |ways: u32, sets: u32| {
            let field = |shift: u32, bits: u32| ((ways >> shift) & ((1 << bits) - 1)) as usize + 1;
            field(22, 10) * field(12, 10) * field(0, 12) * (sets as usize + 1)
        };
        caches.map(|cache| size(cache.ebx, cache.ecx)).max()
    };
    let (basic, extended) = (leaf(0).eax, leaf(0x8000_0000).eax);
    let intel = (basic >= 4).then(|| told(4)).flatten();
    intel.or_else(|| (extended >= 0x8000_001d).then(|| told(0x8000_001d)).flatten())
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
