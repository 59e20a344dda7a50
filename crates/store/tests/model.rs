//! Random operations have the same outcome in every store as in a model that is too simple to be
//! wrong.

use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

use store::conformance::model::{Model, Op, Outcome, Player};
use store::fs::FsStore;
use store::mem::MemStore;
use store::{Exports, Store};

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(0..3_u8, 1), 3 => vec(0..3_u8, 2), 1 => vec(0..3_u8, 3)]
}

/// Offsets and sizes around the borders of pages and of memory's blocks.
fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![0..300_u32, 4090..4100_u32, 65_500..65_600_u32, 0..200_000_u32]
}

fn op() -> impl Strategy<Value = Op> {
    let slot = 0..3_u8;
    prop_oneof![
        4 => (path(), any::<bool>(), any::<bool>(), slot.clone()).prop_map(
            |(path, exclusive, truncate, slot)| Op::Create { path, exclusive, truncate, slot }
        ),
        2 => (path(), any::<bool>(), slot.clone())
            .prop_map(|(path, append, slot)| Op::Open { path, append, slot }),
        1 => slot.clone().prop_map(|slot| Op::Close { slot }),
        4 => (slot.clone(), offset(), 0..9000_u16, 1..255_u8)
            .prop_map(|(slot, offset, len, byte)| Op::Write { slot, offset, len, byte }),
        4 => (slot.clone(), offset(), 0..20_000_u16)
            .prop_map(|(slot, offset, len)| Op::Read { slot, offset, len }),
        1 => (path(), offset()).prop_map(|(path, size)| Op::SetSize { path, size }),
        1 => (slot.clone(), offset()).prop_map(|(slot, size)| Op::SetOpenSize { slot, size }),
        4 => path().prop_map(|path| Op::MakeDirectory { path }),
        1 => path().prop_map(|path| Op::MakeSymlink { path }),
        3 => (path(), any::<bool>()).prop_map(|(path, directory)| Op::Remove { path, directory }),
        4 => (path(), path()).prop_map(|(from, to)| Op::Rename { from, to }),
        2 => (path(), path()).prop_map(|(from, to)| Op::Link { from, to }),
        2 => path().prop_map(|path| Op::List { path }),
        2 => path().prop_map(|path| Op::Stat { path }),
        1 => slot.prop_map(|slot| Op::StatOpen { slot }),
    ]
}

/// Plays in a store and in the model, and says at which operation they part.
fn compare(store: &dyn Store, ops: &[Op]) -> Result<usize, TestCaseError> {
    let (mut player, mut model) = (Player::new(store.root().unwrap()), Model::default());
    let mut done = 0;
    for (n, op) in ops.iter().enumerate() {
        let (here, expected) = (player.play(op), model.play(op));
        done += usize::from(!matches!(expected, Outcome::Refused(_) | Outcome::Nothing));
        prop_assert_eq!(here, expected, "operation {}: {:?}", n, op);
    }
    Ok(done)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_behaves_as_the_model(ops in vec(op(), 1..120)) {
        compare(&MemStore::new(), &ops)?;
    }

    #[test]
    fn a_directory_behaves_as_the_model(ops in vec(op(), 1..120)) {
        let dir = tempfile::tempdir().unwrap();
        compare(&FsStore::new(dir.path()).unwrap(), &ops)?;
    }

    /// Not only the model's outcomes: whatever either store says, the other says too.
    #[test]
    fn memory_and_a_directory_behave_alike(ops in vec(op(), 1..120)) {
        let dir = tempfile::tempdir().unwrap();
        let fs = FsStore::new(dir.path()).unwrap();
        let mem: Arc<dyn Store> = Arc::new(MemStore::new());
        let list = Exports::new([(b"member".to_vec(), mem)]).unwrap();
        let member = list.root().unwrap().walk(&[b"member"]).unwrap().end.unwrap();
        let (mut one, mut two) = (Player::new(fs.root().unwrap()), Player::new(member));
        for (n, op) in ops.iter().enumerate() {
            prop_assert_eq!(one.play(op), two.play(op), "operation {}: {:?}", n, op);
        }
    }
}

/// The random operations would prove nothing if nearly all of them failed.
#[test]
fn a_good_part_of_the_random_operations_does_something() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut done, mut all) = (0, 0);
    for _ in 0..50 {
        let ops = vec(op(), 100).new_tree(&mut runner).unwrap().current();
        all += ops.len();
        done += compare(&MemStore::new(), &ops).unwrap();
    }
    assert!(done * 4 > all, "only {done} of {all} operations succeeded");
}
