//! Who has a log while it is drained: a store that shows it, or nobody.

use std::sync::Arc;

use drain::{Bound, Kept, Owner};
use hostlog::{FileId, Recovery, Sequence};
use logstore::{LogStore, State};
use store::Node;

fn bound(state: &State) -> Vec<Bound> {
    let one = |bound: &logstore::Bound| Bound {
        file: bound.file,
        identity: bound.identity,
        path: bound.path.clone(),
    };
    state.files.iter().map(one).collect()
}

fn encoded(kept: &Kept, bound: &[Bound]) -> Vec<u8> {
    let one = |bound: &Bound| logstore::Bound {
        file: bound.file,
        identity: bound.identity,
        path: bound.path.clone(),
    };
    State { next_file: kept.next_file, files: bound.iter().map(one).collect() }.encode()
}

/// What the log's state said when it was opened.
pub(crate) fn state_of(recovery: Option<&Recovery>) -> State {
    let state = recovery.and_then(|recovery| State::decode(&recovery.drained_state));
    state.unwrap_or(State { next_file: 1, files: Vec::new() })
}

/// A store that shows the log as files.
pub(crate) struct Shown {
    pub(crate) store: Arc<LogStore>,
    pub(crate) state: State,
}

impl Owner for Shown {
    fn bound(&self) -> Vec<Bound> {
        bound(&self.state)
    }

    fn drainable(&self) -> Option<Sequence> {
        Some(self.store.drainable())
    }

    fn drained(
        &self,
        through: Sequence,
        node: &dyn Fn(FileId) -> Option<Arc<dyn Node>>,
    ) -> drain::Result<Kept> {
        let kept = self.store.drained(through, node);
        let kept = kept.map_err(|source| drain::Error::Owner { source: Box::new(source) })?;
        Ok(Kept { next_file: kept.next_file, files: kept.files.into_iter().collect() })
    }

    fn state(&self, kept: &Kept, bound: &[Bound]) -> Vec<u8> {
        encoded(kept, bound)
    }
}

/// Nobody: the log was left.
pub(crate) struct Nobody {
    pub(crate) state: State,
}

impl Owner for Nobody {
    fn bound(&self) -> Vec<Bound> {
        bound(&self.state)
    }

    fn drainable(&self) -> Option<Sequence> {
        None
    }

    fn drained(
        &self,
        _through: Sequence,
        _node: &dyn Fn(FileId) -> Option<Arc<dyn Node>>,
    ) -> drain::Result<Kept> {
        Ok(Kept { next_file: self.state.next_file, ..Kept::default() })
    }

    fn state(&self, kept: &Kept, bound: &[Bound]) -> Vec<u8> {
        encoded(kept, bound)
    }
}
