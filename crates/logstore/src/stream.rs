//! One attach: what a connection's nodes have in common, and what happens when the last of them is gone.

use std::sync::{Arc, Mutex};

use crate::tree::{Tree, guard};

/// Who writes: a connection, as a rule one process.
pub(crate) struct Stream {
    pub(crate) tree: Arc<Tree>,
    pub(crate) number: u32,
    /// The groups that it has joined, and as which rank.
    pub(crate) joined: Mutex<Vec<(epochs::Group, u32)>>,
}

impl Stream {
    pub(crate) fn new(tree: &Arc<Tree>) -> Arc<Self> {
        let number = tree.new_stream();
        Arc::new(Self { tree: Arc::clone(tree), number, joined: Mutex::default() })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        for (group, rank) in guard(&self.joined).drain(..) {
            self.tree.lost(self.number, group, rank);
        }
    }
}
