//! A number that tells texts apart.

/// FNV-1a of 128 bits.
///
/// # Source
/// Fowler, Noll, Vo, Eastlake: "The FNV Non-Cryptographic Hash Algorithm", RFC 9923, §5.
pub(crate) fn fnv1a(bytes: &[u8]) -> u128 {
    const OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The number of a file of a dataset, of 48 bits: where names differ in their last letter only, the lower half of the hash
/// hardly does.
pub(crate) fn file_number(identity: u64, name: &[u8]) -> u64 {
    let mut text = identity.to_le_bytes().to_vec();
    text.extend(name);
    (fnv1a(&text) >> 80) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_letter_have_numbers_of_their_own() {
        for identity in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
            let numbers = (b' '..=b'~').map(|letter| file_number(identity, &[letter]));
            let numbers: std::collections::HashSet<u64> = numbers.collect();
            assert_eq!(numbers.len(), usize::from(b'~' - b' ') + 1);
        }
    }

    #[test]
    fn published_values() {
        assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
