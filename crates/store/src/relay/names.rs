//! Where nodes are, as far as renames go through this store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A path from the root of the store.
pub(super) type Way = Vec<Vec<u8>>;

/// Where one node is; `None` once its name is gone.
pub(super) struct Whereabouts(Mutex<Option<Way>>);

impl Whereabouts {
    pub(super) fn get(&self) -> Option<Way> {
        lock(&self.0).clone()
    }
}

/// All nodes that are in use, by their ways: a directory comes right before what is below it.
#[derive(Default)]
pub(super) struct Names(Mutex<BTreeMap<Way, Vec<Weak<Whereabouts>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Names {
    /// Writes down a node.
    pub(super) fn add(&self, way: Way) -> Arc<Whereabouts> {
        let whereabouts = Arc::new(Whereabouts(Mutex::new(Some(way.clone()))));
        let mut all = lock(&self.0);
        all.entry(way).or_default().push(Arc::downgrade(&whereabouts));
        whereabouts
    }

    /// Forgets a node that is about to be dropped.
    pub(super) fn drop_one(&self, whereabouts: &Arc<Whereabouts>) {
        let mut all = lock(&self.0);
        let Some(way) = whereabouts.get() else { return };
        if let Some(nodes) = all.get_mut(&way) {
            nodes.retain(|node| {
                node.strong_count() > 0 && !std::ptr::eq(node.as_ptr(), Arc::as_ptr(whereabouts))
            });
            if nodes.is_empty() {
                all.remove(&way);
            }
        }
    }

    /// Takes in that `from` is called `to` now, and so all below it; what was at `to` has lost its
    /// name.
    pub(super) fn renamed(&self, from: &Way, to: &Way) {
        if from == to {
            return;
        }
        let mut all = lock(&self.0);
        lose(&mut all, to);
        for way in at_and_below(&all, from) {
            let Some(nodes) = all.remove(&way) else { continue };
            let moved: Way = to.iter().chain(&way[from.len()..]).cloned().collect();
            for node in nodes.iter().filter_map(Weak::upgrade) {
                *lock(&node.0) = Some(moved.clone());
            }
            all.entry(moved).or_default().extend(nodes);
        }
    }

    /// Whether a node in use is at `way`.
    pub(super) fn is_known(&self, way: &Way) -> bool {
        lock(&self.0).contains_key(way)
    }

    /// Takes in that `way` is gone.
    pub(super) fn removed(&self, way: &Way) {
        lose(&mut lock(&self.0), way);
    }
}

fn lose(all: &mut BTreeMap<Way, Vec<Weak<Whereabouts>>>, way: &Way) {
    for way in at_and_below(all, way) {
        for node in all.remove(&way).iter().flatten().filter_map(Weak::upgrade) {
            *lock(&node.0) = None;
        }
    }
}

fn at_and_below(all: &BTreeMap<Way, Vec<Weak<Whereabouts>>>, way: &Way) -> Vec<Way> {
    all.range((Bound::Included(way.clone()), Bound::Unbounded))
        .map(|(found, _)| found)
        .take_while(|found| found.starts_with(way))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(path: &str) -> Way {
        path.split('/').map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_rename_takes_everything_below_along_and_nothing_beside() {
        let names = Names::default();
        let [dir, below, beside, replaced] =
            ["a/d", "a/d/x/y", "a/d0", "b/e"].map(|path| names.add(way(path)));
        names.renamed(&way("a/d"), &way("b/e"));
        assert_eq!(dir.get(), Some(way("b/e")));
        assert_eq!(below.get(), Some(way("b/e/x/y")));
        assert_eq!(beside.get(), Some(way("a/d0")));
        assert_eq!(replaced.get(), None);
        names.removed(&way("b/e/x/y"));
        assert_eq!(below.get(), None);
        for node in [&dir, &below, &beside, &replaced] {
            names.drop_one(node);
        }
        assert!(names.0.lock().expect("whole").is_empty());
    }
}
