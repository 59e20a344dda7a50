//! Files of which other nodes have some of the bytes: they tell this log where, and it keeps the order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use epochs::{Extent, Standing};
use hostlog::{Elsewhere, Position, Refer};
use p9::Errno;

use crate::content::{Content, Edit};
use crate::error::{Tried, logged, refuse};
use crate::inode::{Body, Inode};
use crate::tree::{Tree, guard, reading, writing};

impl Tree {
    /// Has bytes of another log in a file. Only a rank's: they are durable there before it has prepared, and what is no
    /// rank's is committed without asking.
    ///
    /// # Errors
    /// `EINVAL` where the stream writes for no rank: then the bytes have to be written here.
    pub(crate) fn refer(&self, stream: u32, inode: &Arc<Inode>, extent: &Extent) -> Tried<()> {
        let file = self.bind("write", stream, inode)?;
        let Body::File(content) = &inode.body else {
            return refuse("write", Errno::EBADF);
        };
        let mut content = writing(content);
        if inode.is_broken.load(Ordering::Acquire) {
            return refuse("write", Errno::EIO);
        }
        let Some(content) = content.as_mut() else { return refuse("write", Errno::EIO) };
        let Some(member) = guard(&inode.sharing).write(stream) else {
            return refuse("write", Errno::EINVAL);
        };
        self.hold_written(inode);
        let Extent { offset, len, log, segment, at } = *extent;
        let from = Elsewhere { log, at: Position { segment, offset: at } };
        // The order of the log is that of the overlay: the content stays locked.
        let placed = self
            .log
            .refer(&Refer { stream, file, member, offset, len, from })
            .map_err(logged("write"))?;
        let edit = Edit::Data { offset, len, at: placed.at };
        content.apply_pending(placed.sequence, Some(member), edit);
        inode.touched_by(placed.sequence);
        inode.touch_content(self.user.uid);
        Ok(())
    }

    /// How far the log is, for those who have bytes of it.
    pub(crate) fn standing(&self) -> Standing {
        let status = self.log.status();
        let is_pending = |inode: &Arc<Inode>| match &inode.body {
            Body::File(content) => {
                reading(content).as_ref().is_some_and(|content| Content::pending(content).0 > 0)
            }
            Body::Directory(_) | Body::Symlink(_) => false,
        };
        // In this order: what comes to count meanwhile is found behind.
        let is_idle = !self.held().iter().any(is_pending) && self.log.replay().next().is_none();
        Standing { drained: status.drained.0, last: status.last.0, is_idle }
    }
}
