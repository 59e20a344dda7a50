//! Reading and writing files: bytes go to the log, and come from there or from the target.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hostlog::{Change, Member, Operation, Sequence, Write};
use p9::Errno;

use crate::content::{Content, Edit, Source};
use crate::error::{Refused, Tried, logged, refusal, refuse};
use crate::inode::{Body, Inode};
use crate::tree::{RACES_MAX, Tree, guard, reading, writing};

/// The largest size of a file, as everywhere on Linux.
const SIZE_MAX: u64 = i64::MAX as u64;

/// How often a writer that waits for space looks whether there will ever be any.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Tree {
    /// Fills `buffer` from `offset`, short at the end of the file.
    pub(crate) fn read(
        &self,
        inode: &Inode,
        buffer: &mut [u8],
        offset: u64,
    ) -> store::Result<usize> {
        let Body::File(content) = &inode.body else {
            return Err(refusal("read", Errno::EISDIR));
        };
        if offset > SIZE_MAX {
            return Err(refusal("read", Errno::EINVAL));
        }
        for _ in 0..RACES_MAX {
            if inode.is_broken.load(Ordering::Acquire) {
                return Err(refusal("read", Errno::EIO));
            }
            let sources = {
                let content = reading(content);
                content.as_ref().map(|content| content.sources(offset, buffer.len() as u64))
            };
            let Some(sources) = sources else {
                return match inode.reader()? {
                    Some(reader) => reader.read_at(buffer, offset),
                    None => Ok(0),
                };
            };
            match self.fill(inode, buffer, offset, &sources) {
                Ok(len) => return Ok(len),
                // The target has it by now.
                Err(hostlog::Error::Recycled { .. }) => {}
                Err(error) => return Err(told("read", error)),
            }
        }
        Err(refusal("read", Errno::EIO))
    }

    fn fill(
        &self,
        inode: &Inode,
        buffer: &mut [u8],
        offset: u64,
        sources: &[(extent::ByteRange, Source)],
    ) -> hostlog::Result<usize> {
        let mut len = 0;
        for (range, source) in sources {
            let start = (range.start() - offset) as usize;
            let part = &mut buffer[start..start + range.len() as usize];
            match source {
                Source::Log(at) => self.log.read(*at, part)?,
                Source::Zeros => part.fill(0),
                Source::Base => {
                    let got = match inode.reader() {
                        Ok(Some(reader)) => reader.read_at(part, range.start()),
                        Ok(None) => Ok(0),
                        Err(error) => Err(error),
                    };
                    match got {
                        Ok(got) => part[got..].fill(0),
                        Err(error) => return Err(from_target(&error)),
                    }
                }
            }
            len = start + range.len() as usize;
        }
        Ok(len)
    }

    /// Appends bytes to the log, and has them in the file: at an offset, or at the end.
    pub(crate) fn write(
        &self,
        stream: u32,
        inode: &Arc<Inode>,
        data: &[u8],
        offset: Option<u64>,
    ) -> Tried<usize> {
        let file = self.bind("write", stream, inode)?;
        let Body::File(content) = &inode.body else {
            return refuse("write", Errno::EBADF);
        };
        let mut content = writing(content);
        if inode.is_broken.load(Ordering::Acquire) {
            return refuse("write", Errno::EIO);
        }
        let Some(content) = content.as_mut() else { return refuse("write", Errno::EIO) };
        let offset = offset.unwrap_or(content.size());
        if offset > SIZE_MAX {
            return refuse("write", Errno::EINVAL);
        }
        let left = usize::try_from(SIZE_MAX - offset).unwrap_or(usize::MAX);
        let bytes = &data[..data.len().min(left)];
        if bytes.is_empty() {
            return if data.is_empty() { Ok(0) } else { refuse("write", Errno::EFBIG) };
        }
        self.hold_written(inode);
        let member = guard(&inode.sharing).write(stream);
        // The order of the log is that of the overlay: the content stays locked.
        let placed = self
            .log
            .write(&Write { stream, file, member, offset, bytes })
            .map_err(logged("write"))?;
        for piece in placed.iter() {
            let edit = Edit::Data { offset: piece.offset, len: piece.len, at: piece.at };
            content.apply_pending(piece.sequence, member, edit);
            inode.touched_by(piece.sequence);
        }
        inode.touch_content(self.user.uid);
        Ok(placed.len() as usize)
    }

    /// Cuts a file off, or extends it with zeros.
    pub(crate) fn resize(&self, stream: u32, inode: &Arc<Inode>, size: u64) -> Tried<()> {
        let Body::File(content) = &inode.body else {
            let errno = if inode.is_directory() { Errno::EISDIR } else { Errno::EINVAL };
            return refuse("truncate", errno);
        };
        if size > SIZE_MAX {
            return refuse("truncate", Errno::EFBIG);
        }
        let file = self.bind("truncate", stream, inode)?;
        let mut content = writing(content);
        let Some(content) = content.as_mut() else { return refuse("truncate", Errno::EIO) };
        self.hold_written(inode);
        let member = guard(&inode.sharing).write(stream);
        let change = Change { stream, file, member, namespace: false };
        let sequence =
            self.log.change(&change, &Operation::Truncate { size }).map_err(logged("truncate"))?;
        content.apply_pending(sequence, member, Edit::Size(size));
        inode.touched_by(sequence);
        inode.touch_content(self.user.uid);
        Ok(())
    }

    // Consistency points.

    /// Commits what a file has so far that belongs to no group, and the namespace.
    pub(crate) fn commit(&self, stream: u32, inode: &Arc<Inode>) -> hostlog::Result<()> {
        let Some(file) = inode.file_id() else { return self.log.sync() };
        let through = self.log.commit(stream, file)?;
        if let Body::File(content) = &inode.body
            && let Some(content) = writing(content).as_mut()
        {
            content.settle_plain(through);
        }
        self.settle_names(through);
        Ok(())
    }

    /// Commits the namespace alone.
    pub(crate) fn commit_names(&self) -> hostlog::Result<()> {
        if self.pending_names().0.is_none() {
            return self.log.sync();
        }
        let through = self.log.commit(0, hostlog::FileId::NONE)?;
        self.settle_names(through);
        Ok(())
    }

    /// Commits what plain files have so far that have anything uncommitted up to `behind`, with one sync for all.
    pub(crate) fn commit_plain(&self, behind: Sequence) -> hostlog::Result<()> {
        let mut begun = Vec::new();
        for inode in self.held() {
            let (Some(file), Body::File(content)) = (inode.file_id(), &inode.body) else {
                continue;
            };
            let oldest = reading(content).as_ref().and_then(Content::oldest_plain_pending);
            if oldest.is_some_and(|at| at <= behind) && !guard(&inode.sharing).is_by_groups() {
                begun.push((self.log.begin_commit(0, file)?, inode));
            }
        }
        let Some(last) = begun.iter().map(|(through, _)| *through).max() else {
            return self.commit_names();
        };
        self.log.sync_through(last)?;
        for (through, inode) in begun {
            if let Body::File(content) = &inode.body
                && let Some(content) = writing(content).as_mut()
            {
                content.settle_plain(through);
            }
        }
        self.settle_names(last);
        Ok(())
    }

    /// Commits what has been written, where it is not a group that decides on that.
    pub(crate) fn commit_if_plain(&self, stream: u32, inode: &Arc<Inode>) -> hostlog::Result<()> {
        if guard(&inode.sharing).is_by_groups() {
            return Ok(());
        }
        let Body::File(content) = &inode.body else { return Ok(()) };
        let has_some = reading(content).as_ref().is_some_and(Content::has_plain_pending);
        if has_some { self.commit(stream, inode) } else { Ok(()) }
    }

    /// Drops what programs that are gone have written to a file since its last consistency point; says how many
    /// bytes that were.
    pub(crate) fn drop_unfinished(&self, inode: &Arc<Inode>) -> hostlog::Result<u64> {
        let (Some(file), Body::File(content)) = (inode.file_id(), &inode.body) else {
            return Ok(0);
        };
        let mut content = writing(content);
        let Some(content) = content.as_mut() else { return Ok(0) };
        let bytes = content.plain_pending_bytes();
        let is_in_use = || {
            let sharing = guard(&inode.sharing);
            sharing.is_being_written() || sharing.is_by_groups()
        };
        // Who opens it meanwhile writes behind this, because the content is locked.
        if !content.has_plain_pending() || is_in_use() {
            return Ok(0);
        }
        self.log.abort(file)?;
        self.restore_content(inode, content, |member| member.is_none())?;
        Ok(bytes)
    }

    /// Drops a group's edits that do not count from the live view too.
    pub(crate) fn restore(&self, inode: &Arc<Inode>, group: hostlog::Group) -> hostlog::Result<()> {
        let Body::File(content) = &inode.body else { return Ok(()) };
        let mut content = writing(content);
        let Some(content) = content.as_mut() else { return Ok(()) };
        let is_its = |member: Option<Member>| member.is_some_and(|member| member.group == group);
        self.restore_content(inode, content, is_its)
    }

    fn restore_content(
        &self,
        inode: &Arc<Inode>,
        content: &mut Content,
        is_void: impl Fn(Option<Member>) -> bool,
    ) -> hostlog::Result<()> {
        let size = match inode.base_node("stat") {
            Ok(Some(base)) => base.attributes().map(|found| found.size),
            Ok(None) => Ok(0),
            Err(error) => Err(error),
        };
        let size = size.map_err(|error| from_target(&error))?;
        let forgotten = hostlog::Sequence(self.forgotten.load(Ordering::Acquire));
        let mut records = Vec::new();
        for record in self.log.replay() {
            let record = record?;
            if Some(record.file) != inode.file_id() || record.sequence <= forgotten {
                continue;
            }
            let edit = match record.what {
                hostlog::What::Data { offset, len, at } => Edit::Data { offset, len, at },
                hostlog::What::Operation(Operation::Truncate { size }) => Edit::Size(size),
                hostlog::What::Operation(_) => continue,
            };
            records.push((record.sequence, edit));
        }
        content.restart_without(is_void, size, records);
        inode.touch_content(0);
        Ok(())
    }

    /// Takes notice that an epoch counts.
    pub(crate) fn settle_epoch(&self, inode: &Inode, member: Member, through: hostlog::Sequence) {
        if let Body::File(content) = &inode.body
            && let Some(content) = writing(content).as_mut()
        {
            content.settle_group(member, through);
        }
        self.settle_names(through);
    }

    // A full log.

    /// Does something that appends to the log, and waits where that is full.
    pub(crate) fn patiently<T>(
        &self,
        operation: &'static str,
        mut attempt: impl FnMut() -> Tried<T>,
    ) -> store::Result<T> {
        let mut since = None;
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(Refused::For(error)) => return Err(error),
                Err(Refused::Full) => {
                    let since = *since.get_or_insert_with(Instant::now);
                    self.wait_for_space(operation, since)?;
                }
            }
        }
    }

    /// Waits until something was drained.
    fn wait_for_space(&self, operation: &'static str, since: Instant) -> store::Result<()> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let waited = self.wait_counted(operation, since);
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        waited
    }

    fn wait_counted(&self, operation: &'static str, since: Instant) -> store::Result<()> {
        self.commit_for_space().map_err(|error| told(operation, error))?;
        let drained = self.log.status().drained;
        if self.log.wait_for_space(LOOK_EVERY) {
            if since.elapsed() > LOOK_EVERY {
                // There was space and it was not enough, or the disk is full.
                std::thread::sleep(LOOK_EVERY);
            }
            return self.log_failure(operation);
        }
        let is_late = since.elapsed() > self.options.full_wait;
        if is_late || self.log.status().drained == drained && self.is_stuck(operation)? {
            return Err(refusal(operation, Errno::ENOSPC));
        }
        Ok(())
    }

    /// What nobody has committed cannot be drained, and holds back the space of all that lies behind it. A kernel short of
    /// memory writes back, too; here a program that is killed later has what counts by then, so that no file is committed
    /// which does not hold back the oldest segment.
    fn commit_for_space(&self) -> hostlog::Result<()> {
        self.commit_names()?;
        let oldest = self.log.oldest_segment();
        if oldest.is_some_and(|oldest| oldest <= self.drainable()) {
            return Ok(());
        }
        self.commit_plain(oldest.unwrap_or(Sequence(u64::MAX)))
    }

    fn log_failure(&self, operation: &'static str) -> store::Result<()> {
        if self.log.status().failed { Err(refusal(operation, Errno::EIO)) } else { Ok(()) }
    }

    /// Whether nothing is left to drain: all that fills the log waits for ranks to commit it.
    fn is_stuck(&self, operation: &'static str) -> store::Result<bool> {
        let limit = self.drainable();
        if self.log.status().drained < limit.min(self.log.status().durable) {
            return Ok(false);
        }
        match self.log.replay().next() {
            Some(Ok(record)) => Ok(record.sequence > limit),
            Some(Err(error)) => Err(told(operation, error)),
            None => Ok(true),
        }
    }
}

/// What a client is told of the log's refusal.
pub(crate) fn told(operation: &'static str, error: hostlog::Error) -> store::Error {
    refusal(operation, Errno::from_raw(error.to_errno().raw_os_error()))
}

/// The target's refusal, where the log's are told.
fn from_target(error: &store::Error) -> hostlog::Error {
    hostlog::Error::System {
        operation: "reading the target of",
        path: std::path::PathBuf::new(),
        source: std::io::Error::from_raw_os_error(error.to_errno().raw()),
    }
}
