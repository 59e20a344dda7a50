//! Many ranges in one go, past read-ahead and write-behind: whoever asks for them has planned which
//! bytes are worth a request.

use p9::Errno;

use super::core::Core;
use crate::batch::{ReadPart, WritePart};
use crate::error::{Error, Result};
use crate::session::Repeat;

impl Core {
    pub(super) fn read_parts(&self, parts: &mut [ReadPart<'_>]) -> Result<()> {
        if !self.flags.reads() {
            return Err(Error::Refused(Errno::EBADF));
        }
        // The service must have what this process wrote, through whatever file. What fails of it is told
        // to the next writer.
        let mut state = self.enter();
        self.settle_locked(&mut state);
        drop(state);
        self.handle().read_batch(parts)
    }

    pub(super) fn write_parts(&self, parts: &mut [WritePart<'_>]) -> Result<()> {
        if !self.flags.writes() {
            return Err(Error::Refused(Errno::EBADF));
        }
        if self.appends() {
            return Err(Error::Refused(Errno::EINVAL));
        }
        let mut state = self.enter();
        self.settle_locked(&mut state);
        if let Some(error) = state.delayed.take() {
            return Err(error);
        }
        self.note_write(&mut state);
        // The lock is held meanwhile: who forks waits, and the child finds nothing on its way.
        let outcome = self.handle().write_batch(Repeat::Safe, parts);
        state.forget_reads();
        if outcome.is_ok() && parts.iter().all(|part| part.refusal.is_none()) {
            state.strict = false;
        }
        outcome
    }
}
