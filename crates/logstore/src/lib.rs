//! A log laid over another store: what programs write is in the log at once, and in the target later.
//!
//! [`LogStore`] is a [`store::Store`]. It reads from its target what the log does not have, and changes
//! nothing there: that is the drain's work, which tells when it has done some.
//!
//! 1. [`store::Store::root`] is a stream: the writes of one process are told from those of others.
//! 2. A node of the tree is an name with an inode: names that the log has over
//!    names that the target has, attributes, and a content that knows for each range of the file
//!    where the newest bytes are.
//! 3. A write appends to the log and notes the place in the content. Changes of names are
//!    checked as the target would, appended as records and done in memory.
//! 4. A sync, and the last close of a stream's openings for writing, make what the file has count. A stream that
//!    ends without closing them does not. In a file that ranks have open together an epoch counts when all
//!    have come to it, and nothing else.
//! 5. What the target has caught up with leaves the overlay. After a start the overlay is
//!    made again from what counts in the log.
//!
//! Where ranks run on several nodes, the [`LogStore`] of one is that of all, and the others have a [`MemberStore`].
#![forbid(unsafe_code)]

mod changes;
mod content;
mod drained;
mod elsewhere;
mod error;
mod files;
mod groups;
mod inode;
mod member;
mod names;
mod node;
mod open;
mod rebuild;
mod settle;
mod sharing;
mod state;
mod store;
mod stream;
mod tree;

pub use self::store::{LogStore, Options, Status, Unfinished};
pub use drained::{Find, Kept};
pub use error::{Error, Result};
pub use groups::GroupStatus;
pub use member::{MemberStore, Needed};
pub use settle::settle;
pub use state::{Bound, IDENTITY_TAG, State};
