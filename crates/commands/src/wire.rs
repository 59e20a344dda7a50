//! The messages in a control file: two streams of bytes, one that is written and one that is read.
//!
//! Up go `COMMAND` messages, each followed, where the service wants it, by `INPUT` messages; down come, for each
//! command, any number of `WANT` messages, a `RESULT`, and `OUTPUT` messages until one says that there is no more.
//! The service makes a message only when it is read, so that a read after a write is one round trip, and whoever does not
//! read is not sent anything. See docs/COMMANDS.md; the two must agree.

use crate::error::{Error, Result};
use crate::stream::{Output, Shape};

/// The control file's name in each directory of a hook store.
pub(crate) const NAME: &[u8] = b".command";

/// Reads begin at this offset, far from all writes, so that the order of the two is the order of their requests alone.
pub(crate) const READ_BASE: u64 = 1 << 62;

/// The most bytes of a command line, of the text of a result, and of a dataset's state.
pub(crate) const TEXT_MAX: usize = 64 << 10;

/// The most bytes of data in one message.
pub(crate) const DATA_MAX: usize = 1 << 20;

pub(crate) const HEAD_LEN: usize = 40;

pub(crate) const COMMAND: u8 = 1;
pub(crate) const INPUT: u8 = 2;
pub(crate) const WANT: u8 = 3;
pub(crate) const RESULT: u8 = 4;
pub(crate) const OUTPUT: u8 = 5;

/// Flags of a message.
pub(crate) const MORE: u8 = 1;
pub(crate) const SUCCESS: u8 = 2;
pub(crate) const HAS_INPUT: u8 = 4;
pub(crate) const WANTS_OUTPUT: u8 = 8;
/// The state that follows is one: the dataset is to be resumed by it, or was suspended to it.
pub(crate) const STATE: u8 = 16;
/// The input has failed at the client.
pub(crate) const BROKEN: u8 = 32;

/// One message. `text` is a command line, or what a result says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) shape: Shape,
    pub(crate) text: Vec<u8>,
    pub(crate) state: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Message {
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// A piece of output; what is longer than a message may be is cut off by the caller.
    pub(crate) fn output(output: Output) -> Self {
        let Output { shape, data, more } = output;
        Self { kind: OUTPUT, flags: if more { MORE } else { 0 }, shape, data, ..Self::default() }
    }

    /// The bytes: kind, flags, how the total is given, 0; lengths of text, state, data (4 each); total (8); format (16);
    /// then the three. Numbers are little-endian, as all of 9P is.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(HEAD_LEN + self.text.len() + self.state.len() + self.data.len());
        out.extend_from_slice(&[self.kind, self.flags, self.shape.given, 0]);
        for part in [&self.text, &self.state, &self.data] {
            out.extend_from_slice(&(part.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(&self.shape.total.to_le_bytes());
        out.extend_from_slice(&self.shape.format);
        for part in [&self.text, &self.state, &self.data] {
            out.extend_from_slice(part);
        }
    }

    /// How many bytes the message that begins here has; `None`: not enough of it is here to tell.
    ///
    /// # Errors
    /// When a length is more than there can be.
    pub(crate) fn length(bytes: &[u8]) -> Result<Option<usize>> {
        let Some(head) = bytes.first_chunk::<HEAD_LEN>() else { return Ok(None) };
        let [text, state, data] = lengths(head);
        if text > TEXT_MAX || state > TEXT_MAX || data > DATA_MAX {
            return Err(Error::Malformed { what: "a length is out of range" });
        }
        Ok(Some(HEAD_LEN + text + state + data))
    }

    /// The message that `bytes` are, which are as long as [`Message::length`] says.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let short = Error::Malformed { what: "a message is cut off" };
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LEN>() else { return Err(short) };
        let [text, state, data] = lengths(head);
        if rest.len() != text + state + data {
            return Err(short);
        }
        let mut total = [0; 8];
        total.copy_from_slice(&head[16..24]);
        let mut format = [0; 16];
        format.copy_from_slice(&head[24..40]);
        let shape = Shape { format, total: i64::from_le_bytes(total), given: head[2] };
        let (text, rest) = rest.split_at(text);
        let (state, data) = rest.split_at(state);
        let [text, state, data] = [text, state, data].map(<[u8]>::to_vec);
        Ok(Self { kind: head[0], flags: head[1], shape, text, state, data })
    }
}

fn lengths(head: &[u8; HEAD_LEN]) -> [usize; 3] {
    [4, 8, 12]
        .map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_what_is_cut_off_is_refused() {
        let message = Message {
            kind: RESULT,
            flags: SUCCESS | MORE,
            shape: Shape { format: *b"text\0\0\0\0\0\0\0\0\0\0\0\0", total: -3, given: b'x' },
            text: b"done".to_vec(),
            state: b"here".to_vec(),
            data: vec![7; 1000],
        };
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        assert_eq!(Message::length(&bytes).expect("good"), Some(bytes.len()));
        assert_eq!(Message::decode(&bytes).expect("good"), message);
        for short in 0..bytes.len() {
            assert!(Message::decode(&bytes[..short]).is_err(), "{short}");
        }
        assert_eq!(Message::length(&bytes[..HEAD_LEN - 1]).expect("good"), None);
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Message::length(&bytes).is_err());
    }
}
