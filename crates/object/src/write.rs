//! A file that is being written: it becomes an object as a whole, when its last opening is closed or at an fsync.
//!
//! - As long as it fits one part, all of it stays in memory, may be changed anywhere, and is stored by one request. More may
//!   be written after that: then it is stored once more.
//! - When it grows beyond, parts are sent while it is written, some at a time. What is sent cannot be changed any more,
//!   and when the object is complete, nothing can be added.
//! - A writer that goes away without closing (it was killed, its connection broke) leaves nothing. What it has
//!   written is kept for a while, as a program that becomes another one opens its files anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::MultipartUpload;
use p9::{Errno, Time};
use store::Result;
use tokio::task::JoinHandle;

use crate::bucket::{Bucket, Meta};
use crate::error::refusal;
use crate::runtime::{spawn, wait};
use crate::window::{Refused, Window};

/// How far behind the bytes that lie together a write may be: more than clients have under way.
pub(crate) const REACH_BYTES: u64 = 64 << 20;

/// Parts that are on their way together, for each file.
const PARTS_TOGETHER: usize = 4;

/// Parts that an object may have, in S3 and what is compatible with it.
const PARTS_MAX: u64 = 10_000;

/// So many parts have the first size; then they become larger, so that 10,000 of them are enough for more than 1 TB.
const PARTS_OF_ONE_SIZE: u64 = 250;

/// What has become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing of what is in the window is stored.
    Dirty,
    /// All of it is, and is in the window, too.
    Stored,
    /// It was sent in parts and is complete.
    Complete,
    /// It could not be stored, for this reason.
    Failed(Errno),
    /// Its name was removed: what is written is for those who have it open.
    Removed,
}

struct State {
    window: Window,
    stage: Stage,
    upload: Option<Box<dyn MultipartUpload>>,
    parts: u64,
    under_way: Vec<JoinHandle<std::result::Result<(), object_store::Error>>>,
    /// Openings through which it is written.
    openings: usize,
    /// Counts those that have been.
    generation: u64,
    mtime: Time,
    changes: u32,
}

pub(crate) struct Writing {
    bucket: Arc<Bucket>,
    key: String,
    part_bytes: u64,
    /// What was there before.
    former: Option<Meta>,
    state: Mutex<State>,
}

impl Writing {
    pub(crate) fn new(
        bucket: &Arc<Bucket>,
        key: &str,
        part_bytes: u64,
        former: Option<Meta>,
        is_new: bool,
    ) -> Self {
        let state = State {
            window: Window::default(),
            stage: if is_new { Stage::Dirty } else { Stage::Stored },
            upload: None,
            parts: 0,
            under_way: Vec::new(),
            openings: 0,
            generation: 0,
            mtime: now(),
            changes: 1,
        };
        Self {
            bucket: Arc::clone(bucket),
            key: key.to_owned(),
            part_bytes,
            former,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn size(&self) -> u64 {
        self.lock().window.size()
    }

    pub(crate) fn mtime(&self) -> Time {
        self.lock().mtime
    }

    /// Changes with each write.
    pub(crate) fn version(&self) -> u32 {
        self.lock().changes
    }

    /// Whether something is in the bucket that it will replace.
    pub(crate) fn replaces(&self) -> bool {
        self.former.is_some()
    }

    /// One more opening writes.
    pub(crate) fn join(&self) {
        let mut state = self.lock();
        state.openings += 1;
        state.generation += 1;
    }

    /// How many openings write.
    pub(crate) fn openers(&self) -> usize {
        self.lock().openings
    }

    /// One fewer does. Says which generation was the last, if nobody is left.
    pub(crate) fn leave(&self) -> Option<u64> {
        let mut state = self.lock();
        state.openings = state.openings.saturating_sub(1);
        (state.openings == 0).then_some(state.generation)
    }

    /// Whether nobody has opened it since.
    pub(crate) fn is_left(&self, generation: u64) -> bool {
        let state = self.lock();
        state.openings == 0 && state.generation == generation
    }

    /// Whether all that was written is in the bucket.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.lock().stage, Stage::Stored | Stage::Complete | Stage::Removed)
    }

    pub(crate) fn write_at(&self, data: &[u8], offset: Option<u64>) -> Result<usize> {
        let mut state = self.lock();
        self.check_open(&state)?;
        let offset = offset.unwrap_or_else(|| state.window.size());
        let done = state.window.write(data, offset, REACH_BYTES);
        done.map_err(|refused| self.refuse(&mut state, refused))?;
        if !data.is_empty() {
            state.touch();
        }
        if state.window.held_back() > REACH_BYTES {
            // Nobody has that much under way: what is missing will not come.
            let part = self.part_len(&state);
            state.window.fill(part + 1);
        }
        if state.stage == Stage::Removed {
            // Nobody will ever have it: it may fill the memory that it has, and no more.
            let fits = state.window.ready() <= REACH_BYTES;
            return if fits { Ok(data.len()) } else { Err(refusal("write", Errno::ENOSPC)) };
        }
        while state.window.ready() > self.part_len(&state) {
            self.send(&mut state)?;
        }
        Ok(data.len())
    }

    pub(crate) fn resize(&self, size: u64) -> Result<()> {
        let mut state = self.lock();
        if size == 0 {
            self.abort(&mut state);
            state.window = Window::default();
            state.touch();
            return Ok(());
        }
        if size == state.window.size() {
            return Ok(());
        }
        self.check_open(&state)?;
        let done = state.window.resize(size, REACH_BYTES);
        done.map_err(|refused| self.refuse(&mut state, refused))?;
        state.touch();
        Ok(())
    }

    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let found = self.lock().window.read(buffer, offset);
        found.ok_or_else(|| {
            self.say("it is being sent to the bucket, and can be read when it has been closed");
            refusal("read", Errno::EOPNOTSUPP)
        })
    }

    /// Makes an object of what was written, so that it outlives everything.
    pub(crate) fn store(&self) -> Result<()> {
        let mut state = self.lock();
        match state.stage {
            Stage::Stored | Stage::Complete | Stage::Removed => return Ok(()),
            Stage::Failed(errno) => return Err(refusal("write", errno)),
            Stage::Dirty => {}
        }
        if state.upload.is_none() {
            let whole = Bytes::copy_from_slice(state.window.whole());
            let put = self.bucket.put("write", &self.key, whole);
            // Should it fail it is still all here: who repeats it may have better luck, and who does not has been told.
            put?;
            state.stage = Stage::Stored;
            return Ok(());
        }
        while state.window.base() < state.window.size() {
            let part = self.part_len(&state);
            state.window.fill(part);
            self.send(&mut state)?;
        }
        self.wait_for_parts(&mut state, 0)?;
        let size = state.window.size();
        let Some(upload) = &mut state.upload else { return Ok(()) };
        if let Err(error) = wait(upload.complete())
            && !self.is_there(size)
        {
            return Err(self.failed(&mut state, &error));
        }
        state.upload = None;
        state.stage = Stage::Complete;
        Ok(())
    }

    /// Whether the object is in the bucket although completing it was answered by an error: services answer so when
    /// a request arrives twice.
    fn is_there(&self, size: u64) -> bool {
        let found = self.bucket.head("write", &self.key).ok().flatten();
        let former = self.former.as_ref().and_then(|former| former.etag.as_ref());
        found.is_some_and(|found| {
            found.size == size && found.etag.is_some() && found.etag.as_ref() != former
        })
    }

    /// Leaves nothing in the bucket of what is not complete.
    pub(crate) fn abandon(&self) {
        self.abort(&mut self.lock());
    }

    /// What is stored is all there will be.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        if state.stage == Stage::Stored {
            state.stage = Stage::Complete;
        }
    }

    /// Its name is gone, or is another file's.
    pub(crate) fn remove(&self) {
        let mut state = self.lock();
        self.abort(&mut state);
        state.stage = Stage::Removed;
    }

    /// Whether it has lost its name.
    pub(crate) fn is_removed(&self) -> bool {
        self.lock().stage == Stage::Removed
    }

    fn abort(&self, state: &mut State) {
        for part in state.under_way.drain(..) {
            part.abort();
        }
        if let Some(mut upload) = state.upload.take() {
            // Parts that stay behind cost money, but harm nobody: buckets have a rule to expire them.
            if let Err(error) = wait(upload.abort()) {
                let _ = self.bucket.fail("write", &self.key, &error);
            }
        }
        state.parts = 0;
        if state.stage != Stage::Removed {
            state.stage = Stage::Dirty;
        }
    }

    fn part_len(&self, state: &State) -> u64 {
        self.part_bytes * (1 + state.parts / PARTS_OF_ONE_SIZE)
    }

    /// Sends what lies together at the beginning as the next part.
    fn send(&self, state: &mut State) -> Result<()> {
        if state.upload.is_none() {
            state.upload = Some(self.bucket.begin(&self.key)?);
        }
        if state.parts == PARTS_MAX {
            self.say("it has become larger than an object can be that is written in parts (10,000 of them)");
            return Err(refusal("write", Errno::EFBIG));
        }
        self.wait_for_parts(state, PARTS_TOGETHER - 1)?;
        let len = self.part_len(state);
        let data = state.window.take(len);
        let Some(upload) = &mut state.upload else { return Ok(()) };
        let part = upload.put_part(Bytes::from(data).into());
        state.under_way.push(spawn(part));
        state.parts += 1;
        Ok(())
    }

    /// Waits until no more than so many parts are under way.
    fn wait_for_parts(&self, state: &mut State, left: usize) -> Result<()> {
        while state.under_way.len() > left {
            let first = state.under_way.remove(0);
            let error = match wait(first) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error,
                Err(source) => object_store::Error::JoinError { source },
            };
            return Err(self.failed(state, &error));
        }
        Ok(())
    }

    /// A part is lost, and with it the object.
    fn failed(&self, state: &mut State, error: &object_store::Error) -> store::Error {
        let error = self.bucket.fail("write", &self.key, error);
        self.abort(state);
        state.stage = Stage::Failed(error.to_errno());
        error
    }

    fn check_open(&self, state: &State) -> Result<()> {
        match state.stage {
            Stage::Dirty | Stage::Stored | Stage::Removed => Ok(()),
            Stage::Failed(errno) => Err(refusal("write", errno)),
            Stage::Complete => {
                self.say(
                    "the object is complete, by an fsync after it was sent in parts, or by a rename, and nothing can be added \
                     to it; programs that go on writing need a log: sluice run --log",
                );
                Err(refusal("write", Errno::EOPNOTSUPP))
            }
        }
    }

    /// What lacks a write is not what its program means: it does not become an object.
    fn refuse(&self, state: &mut State, refused: Refused) -> store::Error {
        self.say(match refused {
            Refused::Sent => {
                "what was sent to the bucket already is to be changed, which objects do not allow; programs that do \
                 not write in order need a log: sluice run --log"
            }
            Refused::Far => "a hole of more than 64 MiB would have to be sent as zeros; write in order",
        });
        self.abort(state);
        state.stage = Stage::Failed(Errno::EOPNOTSUPP);
        refusal("write", Errno::EOPNOTSUPP)
    }

    fn say(&self, text: &str) {
        self.bucket.say(&format!("{}/{}: write: {text}", self.bucket.name(), self.key));
    }
}

impl State {
    fn touch(&mut self) {
        self.stage = match self.stage {
            Stage::Stored => Stage::Dirty,
            other => other,
        };
        self.mtime = now();
        self.changes = self.changes.wrapping_add(1).max(1);
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.upload.is_some() {
            self.abort(&mut state);
        }
    }
}

/// The time, as files have it.
pub(crate) fn now() -> Time {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    Time { seconds: now.as_secs(), nanoseconds: u64::from(now.subsec_nanos()) }
}
