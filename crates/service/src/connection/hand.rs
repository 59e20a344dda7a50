//! Reads of files of another machine whose bytes have arrived already: they are sent from where they lie, by the
//! receiving thread. Nobody needs to be woken for them, and nothing is copied but by the kernel.

use std::io::IoSlice;

use p9::{Fid, QidType, Tag};

use super::socket::{self, Broken};
use super::{GATHER_BYTES, Receiver};
use crate::session::guarded;

/// Up to here bytes are gathered with other answers.
const COPIED_BYTES: usize = 16 << 10;

impl Receiver<'_> {
    /// Answers a read whose bytes are at hand. False: read it the ordinary way.
    pub(super) fn read_at_hand(
        &mut self,
        tag: Tag,
        fid: Fid,
        offset: u64,
        count: u32,
    ) -> Result<bool, Broken> {
        let session = self.session();
        let room = session.data_room(count);
        let Ok(entry) = session.entry(fid) else { return Ok(false) };
        if room == 0 || entry.node.qid().kind.contains(QidType::DIR) {
            return Ok(false);
        }
        let found = guarded(|| Ok(entry.opened()?.readable()?.at_hand(offset, room)));
        let Ok(Some(pieces)) = found else { return Ok(false) };
        let count = pieces.iter().map(|piece| (**piece).as_ref().len()).sum();
        if count > room {
            return Ok(false);
        }
        socket::read_head(tag, count, &mut self.out);
        if count <= COPIED_BYTES {
            pieces.iter().for_each(|piece| self.out.extend_from_slice((**piece).as_ref()));
            // Unlike what waits for the pool these may be many in a row.
            return if self.out.len() >= GATHER_BYTES { self.flush_out() } else { Ok(()) }
                .map(|()| true);
        }
        let mut parts = vec![IoSlice::new(&self.out)];
        parts.extend(pieces.iter().map(|piece| IoSlice::new((**piece).as_ref())));
        let sent = self.socket().send_parts(&mut parts);
        self.out.clear();
        sent.map(|()| true)
    }
}
