//! Whether writes may be reported as done before they are. Pure.
//!
//! A write behind that fails is reported by a later call, but many programs look at the result of
//! write(2) only: a shell's `echo` into a full disk would go unnoticed. So the first write to a
//! file waits, which finds a full disk, a used-up quota or a store that refuses, and asks along
//! with it how much room there is; and writes wait again for as long as there is little.

use p9::StatFs;

/// Room that must be left for others' writes and for those on their way, in bytes.
const RESERVE: u64 = 64 * 1024 * 1024;

/// What was learned is good for so long, in milliseconds,
const GOOD_FOR_MS: u64 = 5000;

/// and for so many bytes at most.
const LEFT_MAX: u64 = 1 << 30;

/// The trust in one file's writes.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// Bytes that may be written before it must be asked again.
    left: u64,
    learned_ms: u64,
}

impl Space {
    /// Whether the next write must wait and ask; looks at the bytes only.
    #[inline]
    pub(crate) fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// Whether the next write must wait and ask.
    pub(crate) fn must_ask(&self, now_ms: u64) -> bool {
        self.left == 0 || now_ms.saturating_sub(self.learned_ms) >= GOOD_FOR_MS
    }

    /// So many bytes were sent.
    pub(crate) fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// What the service answered; `None`: it does not know.
    pub(crate) fn learn(&mut self, room: Option<&StatFs>, now_ms: u64) {
        let free = match room {
            Some(room) if room.blocks > 0 => {
                room.blocks_available.saturating_mul(u64::from(room.block_size.max(1)))
            }
            _ => u64::MAX,
        };
        // Half of it: this is not the only writer.
        self.left = (free.saturating_sub(RESERVE) / 2).min(LEFT_MAX);
        self.learned_ms = now_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(bytes: u64) -> StatFs {
        let blocks_available = bytes / 4096;
        StatFs { block_size: 4096, blocks: 1 << 40, blocks_available, ..StatFs::default() }
    }

    #[test]
    fn the_first_write_asks_and_later_ones_do_when_it_is_used_up_or_old() {
        let mut space = Space::default();
        assert!(space.must_ask(1) && space.is_used_up());
        space.learn(Some(&room(RESERVE + 8 * 4096)), 1);
        assert!(!space.must_ask(1000));
        space.spend(3 * 4096);
        assert!(!space.must_ask(1000));
        space.spend(4096);
        assert!(space.must_ask(1000) && space.is_used_up());
        space.learn(Some(&room(1 << 50)), 1000);
        space.spend(LEFT_MAX - 1);
        assert!(!space.must_ask(GOOD_FOR_MS));
        assert!(space.must_ask(GOOD_FOR_MS + 1000));
    }

    #[test]
    fn little_room_is_no_trust_and_not_knowing_is() {
        let mut space = Space::default();
        space.learn(Some(&room(RESERVE)), 1);
        assert!(space.must_ask(1));
        space.learn(Some(&StatFs::default()), 1);
        assert!(!space.must_ask(1));
        space.learn(None, 1);
        assert!(!space.must_ask(1));
    }
}
