//! What tests of datasets share.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

/// A directory that goes when the test does.
pub(crate) struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        // In memory, where there is such a place: what is tested does not depend on the disk, and
        // a busy one takes minutes for what is synced here.
        let memory = Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { directory: directory.unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a definition.
    pub(crate) fn definition(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap()
    }
}

/// Little-endian numbers.
pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

/// Numbers that look random and are the same again: splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `n - 1`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// How many cases; more with `SLUICE_DATASET_CASES`, which multiplies.
pub(crate) fn cases(usual: u32) -> u32 {
    let times = std::env::var("SLUICE_DATASET_CASES").ok().and_then(|text| text.parse().ok());
    usual * times.unwrap_or(1)
}

/// Where randomness begins; always the same unless `SLUICE_DATASET_SEED` says otherwise.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("SLUICE_DATASET_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(20261120);
    println!("SLUICE_DATASET_SEED={seed}");
    seed
}
