//! Large reads of files whose bytes are made when they are read: piece by piece, from the store to the
//! socket.
//!
//! A piece is still in the processor's cache when it is sent, and the client takes it while the next
//! one is made. What is sent cannot be taken back: the answer says at its begin how many bytes it has,
//! which is known of files of a settled size. If a later piece cannot be had, the connection is ended;
//! the client connects again and repeats the read, and the store, which has lost its faith by then,
//! has it answered in the ordinary way.

use std::sync::Arc;

use p9::{Fid, QidType, Tag};
use store::OpenNode;

use super::Receiver;
use super::socket::{self, Broken};
use crate::session::guarded;

/// Bytes of a piece: a fourth of what a core's second cache has, since the store needs room in it too.
const PIECE_BYTES: usize = 256 << 10;

/// Bytes of a piece at most, where the store has larger ones.
const PIECE_MAX_BYTES: usize = 1 << 20;

impl Receiver<'_> {
    /// Answers a read of more than a piece, if the store knows how many bytes there are. False: read
    /// it the ordinary way.
    pub(super) fn read_in_pieces(
        &mut self,
        tag: Tag,
        fid: Fid,
        offset: u64,
        count: u32,
    ) -> Result<bool, Broken> {
        let session = self.session();
        let room = session.data_room(count);
        if room <= PIECE_BYTES {
            return Ok(false);
        }
        let Ok(entry) = session.entry(fid) else { return Ok(false) };
        if entry.node.qid().kind.contains(QidType::DIR) {
            return Ok(false);
        }
        let opened = || {
            let node = Arc::clone(entry.opened()?.readable()?);
            let most = node.piece_bytes().unwrap_or(0).clamp(PIECE_BYTES, PIECE_MAX_BYTES);
            Ok(node.settled_size().map(|size| (node, size, most)))
        };
        let Ok(Some((node, size, most))) = guarded(opened) else { return Ok(false) };
        let left = size.saturating_sub(offset);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(room);
        if count <= PIECE_BYTES {
            return Ok(false);
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(most.min(count), 0);
        let done = if fill(&*node, &mut piece, offset) {
            self.send_pieces(tag, &*node, offset, count, &mut piece).map(|()| true)
        } else {
            // Nothing was sent yet: the ordinary way says what is wrong.
            Ok(false)
        };
        self.piece = piece;
        done
    }

    /// Sends `count` bytes, the first of which are in `piece`.
    fn send_pieces(
        &mut self,
        tag: Tag,
        node: &dyn OpenNode,
        offset: u64,
        count: usize,
        piece: &mut [u8],
    ) -> Result<(), Broken> {
        socket::read_head(tag, count, &mut self.out);
        let turn = self.pool.worker().socket().turn();
        let sent = turn.send(&self.out, true);
        self.out.clear();
        sent?;
        let (mut done, mut at_hand) = (0, piece.len());
        loop {
            done += at_hand;
            turn.send(&piece[..at_hand], done < count)?;
            if done == count {
                return Ok(());
            }
            at_hand = piece.len().min(count - done);
            if !fill(node, &mut piece[..at_hand], offset + done as u64) {
                return turn.give_up();
            }
        }
    }
}

/// Fills a piece; false if that cannot be done completely.
fn fill(node: &dyn OpenNode, piece: &mut [u8], offset: u64) -> bool {
    matches!(guarded(|| Ok(node.read_at(piece, offset)?)), Ok(len) if len == piece.len())
}
