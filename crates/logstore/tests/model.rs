//! Whatever is done, drained and started again, the files are as a model says that is too simple to be
//! wrong.

use std::sync::Arc;

use p9::Errno;
use proptest::collection::vec;
use proptest::prelude::*;
use store::Store;
use store::conformance::model::{Model, Op, Outcome, Player, SLOTS};
use store::fs::FsStore;
use store::mem::MemStore;

mod house;

use house::Scene;

/// What is done between operations.
#[derive(Debug, Clone)]
enum Step {
    Op(Op),
    /// Some records are brought to the target, and some more that the log is not told of.
    Drain {
        records: usize,
        ahead: usize,
    },
    /// Everything is committed, and the agent starts again. It has what the target has not.
    Restart {
        ahead: usize,
    },
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(0..3_u8, 1), 3 => vec(0..3_u8, 2), 1 => vec(0..3_u8, 3)]
}

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
        3 => path().prop_map(|path| Op::MakeDirectory { path }),
        1 => path().prop_map(|path| Op::MakeSymlink { path }),
        3 => (path(), any::<bool>()).prop_map(|(path, directory)| Op::Remove { path, directory }),
        4 => (path(), path()).prop_map(|(from, to)| Op::Rename { from, to }),
        2 => (path(), path()).prop_map(|(from, to)| Op::Link { from, to }),
        2 => path().prop_map(|path| Op::List { path }),
        2 => path().prop_map(|path| Op::Stat { path }),
        1 => slot.prop_map(|slot| Op::StatOpen { slot }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => op().prop_map(Step::Op),
        2 => (0..30_usize, prop_oneof![3 => Just(0), 1 => 0..10_usize])
            .prop_map(|(records, ahead)| Step::Drain { records, ahead }),
        1 => Just(Step::Drain { records: usize::MAX, ahead: 0 }),
        1 => (0..10_usize).prop_map(|ahead| Step::Restart { ahead }),
    ]
}

/// Everything that can be seen from the root.
fn looks() -> Vec<Op> {
    let mut paths: Vec<Vec<u8>> = Vec::new();
    for a in 0..3 {
        paths.push(vec![a]);
        for b in 0..3 {
            paths.push(vec![a, b]);
            paths.extend((0..3).map(|c| vec![a, b, c]));
        }
    }
    let both = |path: Vec<u8>| {
        let open = Op::Open { path: path.clone(), append: false, slot: 0 };
        let read = Op::Read { slot: 0, offset: 0, len: u16::MAX };
        let more = Op::Read { slot: 0, offset: u16::MAX.into(), len: u16::MAX };
        let close = Op::Close { slot: 0 };
        [Op::List { path: path.clone() }, Op::Stat { path }, open, read, more, close]
    };
    paths.into_iter().flat_map(both).collect()
}

fn close_all() -> impl Iterator<Item = Op> {
    (0..SLOTS).map(|slot| Op::Close { slot })
}

struct Pair {
    player: Player,
    model: Model,
}

impl Pair {
    fn play(&mut self, op: &Op) -> Result<Outcome, TestCaseError> {
        let (here, expected) = (self.player.play(op), self.model.play(op));
        prop_assert_eq!(&here, &expected, "{:?}", op);
        Ok(here)
    }
}

fn compare(target: &Arc<dyn Store>, steps: &[Step]) -> Result<usize, TestCaseError> {
    let mut scene = Scene::new(Arc::clone(target));
    let mut pair = Pair { player: Player::new(scene.root()), model: Model::default() };
    let (mut done, mut has_links) = (0, false);
    for step in steps {
        match step {
            Step::Op(op) => {
                let (here, expected) = (pair.player.play(op), pair.model.play(op));
                // A file of the target that has lost the only name that the store knew of, and has another
                // there: what is written to it is refused.
                let is_astray =
                    has_links && matches!(op, Op::Write { .. } | Op::SetOpenSize { .. });
                if is_astray && here == Outcome::Refused(Errno::EIO) {
                    return Ok(done);
                }
                prop_assert_eq!(&here, &expected, "{:?}", op);
                let outcome = here;
                has_links |= matches!((op, &outcome), (Op::Link { .. }, Outcome::Done));
                done += usize::from(!matches!(outcome, Outcome::Refused(_) | Outcome::Nothing));
            }
            Step::Drain { records, ahead } => {
                scene.store.commit_names().unwrap();
                scene.drain(*records, *ahead);
            }
            Step::Restart { ahead } => {
                for op in close_all() {
                    pair.play(&op)?;
                }
                let Pair { player, model } = pair;
                drop(player);
                scene.store.commit_all().unwrap();
                scene.drain(0, *ahead);
                scene = scene.restart(|disk| disk.crash());
                pair = Pair { player: Player::new(scene.root()), model };
            }
        }
    }
    for op in looks() {
        pair.play(&op)?;
    }
    // What is left in the target is the same without the log.
    for op in close_all() {
        pair.play(&op)?;
    }
    scene.store.commit_all().unwrap();
    scene.drain_all();
    let status = scene.store.status();
    prop_assert_eq!((status.logged_bytes, status.uncommitted_records), (0, 0));
    for op in looks() {
        pair.play(&op)?;
    }
    pair.player = Player::new(target.root().unwrap());
    for op in looks() {
        pair.play(&op)?;
    }
    Ok(done)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_over_memory_behaves_as_the_model(steps in vec(step(), 1..120)) {
        compare(&(Arc::new(MemStore::new()) as Arc<dyn Store>), &steps)?;
    }

    #[test]
    fn a_log_over_a_directory_behaves_as_the_model(steps in vec(step(), 1..120)) {
        let dir = tempfile::tempdir().unwrap();
        let target: Arc<dyn Store> = Arc::new(FsStore::new(dir.path()).unwrap());
        compare(&target, &steps)?;
    }
}

/// The random operations would prove nothing if nearly all of them failed.
#[test]
fn a_good_part_of_the_random_operations_does_something() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut done, mut all) = (0, 0);
    for _ in 0..20 {
        let steps = vec(step(), 100).new_tree(&mut runner).unwrap().current();
        all += steps.len();
        done += compare(&(Arc::new(MemStore::new()) as Arc<dyn Store>), &steps).unwrap();
    }
    assert!(done * 6 > all, "only {done} of {all} operations succeeded");
}
