//! What is written beside the watermark, so that later records can be understood: which file is which.

use hostlog::FileId;

/// The tag of the note behind each `Bind`: which file of the target it is, eight bytes, little endian.
pub const IDENTITY_TAG: u32 = 0x5155_4944;

/// The first word of the text, with the version of its form.
const MAGIC: u32 = 0x534c_5301;

/// A file of the target that the log knows by a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The number.
    pub file: FileId,
    /// Its identity there: the path of the qid of the target's node.
    pub identity: u64,
    /// One of its names, from the target's root, as of the watermark.
    pub path: Vec<u8>,
}

/// What a log is told when it is drained ([`hostlog::Log::drained`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// No file of the log had this number or a higher one.
    pub next_file: u64,
    /// The files that later records, or clients, may speak of. One that has several names comes
    /// several times.
    pub files: Vec<Bound>,
}

impl State {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        out.extend(self.next_file.to_le_bytes());
        for bound in &self.files {
            out.extend(bound.file.0.to_le_bytes());
            out.extend(bound.identity.to_le_bytes());
            out.extend((bound.path.len() as u32).to_le_bytes());
            out.extend(&bound.path);
        }
        out
    }

    /// The state whose bytes these are; nothing is the state of a log that was never drained.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::default());
        }
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (next_file, mut rest) = rest.split_first_chunk::<8>()?;
        if u32::from_le_bytes(*magic) != MAGIC {
            return None;
        }
        let mut files = Vec::new();
        while !rest.is_empty() {
            let (file, behind) = rest.split_first_chunk::<8>()?;
            let (identity, behind) = behind.split_first_chunk::<8>()?;
            let (len, behind) = behind.split_first_chunk::<4>()?;
            let (path, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            files.push(Bound {
                file: FileId(u64::from_le_bytes(*file)),
                identity: u64::from_le_bytes(*identity),
                path: path.to_vec(),
            });
            rest = behind;
        }
        Some(Self { next_file: u64::from_le_bytes(*next_file), files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_a_damaged_one_is_none() {
        let identity = 7 << 40;
        let bound = |file, path: &[u8]| Bound { file: FileId(file), identity, path: path.to_vec() };
        let state = State { next_file: 99, files: vec![bound(1, b"a/b"), bound(2, b"")] };
        let bytes = state.encode();
        assert_eq!(State::decode(&bytes), Some(state));
        assert_eq!(State::decode(b""), Some(State::default()));
        for len in [1, 4, 11, 13, bytes.len() - 1] {
            assert_eq!(State::decode(&bytes[..len]), None, "{len} bytes");
        }
        assert_eq!(State::decode(&bytes[1..]), None);
    }
}
