//! Counting the 9P messages in a stream of bytes, to know whether an answer is awaited.

/// Bytes of the number that begins a message: its length, these included (intro(5) of Plan 9).
const LENGTH_BYTES: usize = 4;

/// One direction of a stream.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Messages that have begun.
    begun: u64,
    /// The length of the current message, as far as it has come.
    length: [u8; LENGTH_BYTES],
    have: usize,
    /// Bytes of the current message that are still to come behind its length.
    missing: usize,
}

impl Frames {
    /// Goes over further bytes.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.missing > 0 {
                let part = self.missing.min(bytes.len());
                self.missing -= part;
                bytes = &bytes[part..];
                continue;
            }
            if self.have == 0 {
                self.begun += 1;
            }
            self.length[self.have] = bytes[0];
            self.have += 1;
            bytes = &bytes[1..];
            if self.have == LENGTH_BYTES {
                self.have = 0;
                self.missing =
                    (u32::from_le_bytes(self.length) as usize).saturating_sub(LENGTH_BYTES);
            }
        }
    }

    /// Messages that have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Messages that have come to their end.
    pub(crate) fn complete(&self) -> u64 {
        self.begun - u64::from(self.missing > 0 || self.have > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_however_they_are_cut() {
        let message =
            |length: u32| [&length.to_le_bytes()[..], &vec![7; length as usize - 4]].concat();
        let all = [message(4), message(300), message(11)].concat();
        for cut in 1..all.len() {
            let mut frames = Frames::default();
            frames.pass(&all[..cut]);
            assert_eq!(
                frames.complete(),
                [4, 304, 315].iter().filter(|end| cut >= **end).count() as u64
            );
            all[cut..].chunks(cut).for_each(|part| frames.pass(part));
            assert_eq!((frames.begun(), frames.complete()), (3, 3), "{cut}");
        }
    }
}
