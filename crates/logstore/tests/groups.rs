//! Files that ranks have open together.

use std::sync::Arc;

use epochs::{Epoch, Group, LOG, NOTICE, Notice};
use p9::{Errno, SetAttributes, SetattrMask};
use store::mem::MemStore;
use store::{Node, OpenNode, Store};

mod house;

use house::{BOTH, Scene, at, content_at};

/// One rank: a stream with the file open.
struct Rank {
    node: Arc<dyn Node>,
    open: Arc<dyn OpenNode>,
    group: Group,
    rank: u32,
}

impl Rank {
    fn join(scene: &Scene, group: u64, rank: u32, ranks: u32) -> Self {
        let node = at(&scene.root(), b"file").unwrap();
        let open = node.open(BOTH).unwrap();
        let group = Group(group);
        let this = Self { node, open, group, rank };
        this.tell(Notice::Join { group, rank, ranks }).unwrap();
        this
    }

    fn tell(&self, notice: Notice) -> store::Result<()> {
        self.node.set_xattr(NOTICE, notice.to_string().as_bytes(), 0)
    }

    fn write(&self, offset: u64, text: &str) {
        assert_eq!(self.open.write_at(text.as_bytes(), offset).unwrap(), text.len());
    }

    fn prepare(&self, epoch: u64) {
        let (group, rank) = (self.group, self.rank);
        self.tell(Notice::Prepare { group, rank, epoch: Epoch(epoch) }).unwrap();
    }

    fn leave(self, epoch: u64) {
        let (group, rank) = (self.group, self.rank);
        self.tell(Notice::Leave { group, rank, epoch: Epoch(epoch) }).unwrap();
    }

    fn read(&self) -> String {
        text(&self.node)
    }
}

fn text(node: &Arc<dyn Node>) -> String {
    String::from_utf8(house::content(node)).unwrap()
}

/// A file of eight dots, in the target or in the log.
fn scene(is_drained: bool) -> Scene {
    let target = MemStore::new();
    if is_drained {
        let (_, open) = target.root().unwrap().create(b"file", BOTH, 0o644).unwrap();
        open.write_at(b"........", 0).unwrap();
    }
    let scene = Scene::new(Arc::new(target));
    if !is_drained {
        let (_, open) = scene.root().create(b"file", BOTH, 0o644).unwrap();
        open.write_at(b"........", 0).unwrap();
    }
    scene
}

/// What the file holds after the agent was killed, or the power has failed.
fn after_a_crash(scene: Scene) -> (Scene, String) {
    let scene = scene.restart(|disk| disk.crash());
    let found = content_at(&scene.root(), "file");
    (scene, String::from_utf8(found).unwrap())
}

#[test]
fn an_epoch_counts_when_all_ranks_have_come_to_it() {
    for is_drained in [false, true] {
        let scene = scene(is_drained);
        let (a, b) = (Rank::join(&scene, 7, 0, 2), Rank::join(&scene, 7, 1, 2));
        a.write(0, "aa");
        b.write(4, "bb");
        // Everybody sees at once what anybody writes.
        assert_eq!((a.read(), b.read()), ("aa..bb..".into(), "aa..bb..".into()));
        a.open.sync(false).unwrap();
        b.prepare(1);
        let status = scene.store.status();
        assert_eq!(status.groups.len(), 1);
        assert_eq!((status.groups[0].committed, &status.groups[0].waiting_for[..]), (0, &[0][..]));
        assert_eq!(status.groups[0].path.as_deref(), Some(&b"file"[..]));
        assert_eq!(status.uncommitted_bytes, 4);
        a.prepare(1);
        let status = scene.store.status();
        assert_eq!((status.groups[0].committed, status.uncommitted_bytes), (1, 0));
        assert!(status.groups[0].waiting_for.is_empty());
        a.write(0, "AA");
        b.write(4, "BB");
        a.prepare(2);
        assert_eq!(b.read(), "AA..BB..");
        drop((a, b));
        let (_, found) = after_a_crash(scene);
        assert_eq!(found, "aa..bb..");
    }
}

#[test]
fn a_rank_may_be_two_epochs_ahead() {
    let scene = scene(true);
    let (a, b) = (Rank::join(&scene, 7, 0, 2), Rank::join(&scene, 7, 1, 2));
    a.write(0, "1");
    a.prepare(1);
    a.write(0, "2");
    a.write(1, "2");
    a.prepare(2);
    a.write(2, "3");
    b.write(4, "1");
    b.prepare(1);
    let committed = |scene: &Scene| scene.store.status().groups[0].committed;
    assert_eq!(committed(&scene), 1);
    // What the drain may bring to the target is the first epoch of both, and no more.
    let mut scene = scene;
    scene.drain_all();
    let in_target = |scene: &Scene| content_at(&scene.target.root().unwrap(), "file");
    assert_eq!(in_target(&scene), b"1.......");
    assert_eq!(a.read(), "223.1...");
    b.write(5, "2");
    b.prepare(2);
    assert_eq!(committed(&scene), 2);
    scene.drain_all();
    // This drain stops where something is pending: the third epoch of the first rank.
    assert_eq!(in_target(&scene), b"22......");
    assert_eq!(a.read(), "223.12..");
    a.leave(3);
    b.leave(3);
    assert!(scene.store.status().groups.is_empty());
    let (mut scene, found) = after_a_crash(scene);
    assert_eq!(found, "223.12..");
    scene.drain_all();
    assert_eq!(in_target(&scene), b"223.12..");
}

#[test]
fn what_a_dead_group_did_not_commit_is_dropped_from_the_live_view_too() {
    for is_drained in [false, true] {
        let mut scene = scene(is_drained);
        let (a, b) = (Rank::join(&scene, 7, 0, 2), Rank::join(&scene, 7, 1, 2));
        a.write(0, "11");
        b.write(4, "11");
        a.prepare(1);
        b.prepare(1);
        a.write(1, "2222");
        let valid = SetattrMask::SIZE;
        let longer = SetAttributes { valid, size: 20, ..SetAttributes::default() };
        b.open.set_attributes(&longer).unwrap();
        b.write(6, "2");
        a.prepare(2);
        scene.drain(3, 0);
        // The second dies before it is there; the first lives on for a while.
        drop(b);
        assert_eq!(&a.read()[..8], "1222212.");
        let watching = at(&scene.root(), b"file").unwrap();
        let before = watching.attributes().unwrap();
        assert_eq!(before.size, 20);
        drop(a);
        assert_eq!(text(&watching), "11..11..");
        let after = watching.attributes().unwrap();
        assert_eq!(after.size, 8);
        assert!(after.mtime >= before.mtime && after.qid.version != before.qid.version);
        assert!(scene.store.status().groups.is_empty());
        assert_eq!(scene.store.status().uncommitted_records, 0);
        scene.drain_all();
        assert_eq!(text(&watching), "11..11..");
        assert_eq!(content_at(&scene.target.root().unwrap(), "file"), b"11..11..");
        drop(watching);
        assert_eq!(after_a_crash(scene).1, "11..11..");
    }
}

#[test]
fn a_second_group_goes_on_where_the_first_has_left_it() {
    let scene = scene(true);
    let a = Rank::join(&scene, 7, 0, 1);
    a.write(0, "a");
    a.leave(1);
    let b = Rank::join(&scene, 8, 0, 1);
    assert_eq!(b.read(), "a.......");
    // A third at the same time: the epochs of one are none of the other.
    let c = Rank::join(&scene, 9, 0, 1);
    b.write(1, "bb");
    c.write(2, "cc");
    c.prepare(1);
    assert_eq!(b.read(), "abcc....");
    drop(b);
    assert_eq!(c.read(), "a.cc....");
    drop(c);
    assert_eq!(after_a_crash(scene).1, "a.cc....");
}

#[test]
fn what_others_write_to_a_groups_file_counts_when_the_group_ends() {
    for ends_well in [true, false] {
        let scene = scene(true);
        let a = Rank::join(&scene, 7, 0, 1);
        let other = at(&scene.root(), b"file").unwrap().open(BOTH).unwrap();
        other.write_at(b"x", 7).unwrap();
        other.sync(false).unwrap();
        drop(other);
        a.write(0, "a");
        assert_eq!(scene.store.status().uncommitted_bytes, 2);
        if ends_well {
            a.leave(1);
        } else {
            drop(a);
        }
        assert_eq!(scene.store.status().uncommitted_bytes, 0);
        let expected = if ends_well { "a......x" } else { ".......x" };
        assert_eq!(content_at(&scene.root(), "file"), expected.as_bytes());
        assert_eq!(after_a_crash(scene).1, expected);
    }
}

#[test]
fn an_epoch_that_all_had_prepared_when_the_agent_died_counts() {
    let scene = scene(true);
    let (a, b) = (Rank::join(&scene, 7, 0, 2), Rank::join(&scene, 7, 1, 2));
    a.write(0, "a");
    a.prepare(1);
    b.write(1, "b");
    // The agent dies after the second rank's notice is durable and before its commit is: this is what it
    // does, but for that.
    let member = hostlog::Member { group: hostlog::Group(1), epoch: 1 };
    let file = scene.log.in_doubt()[0].file;
    let (name, ranks) = (b"0000000000000007", 2);
    scene.log.prepare(&hostlog::Prepare { stream: 3, file, member, rank: 1, ranks, name }).unwrap();
    scene.disk.set_read_only(true);
    drop((a, b));
    scene.disk.set_read_only(false);
    let (_, found) = after_a_crash(scene);
    assert_eq!(found, "ab......");
}

#[test]
fn an_epoch_that_one_had_not_prepared_when_the_agent_died_does_not_count() {
    let scene = scene(true);
    let (a, b) = (Rank::join(&scene, 7, 0, 2), Rank::join(&scene, 7, 1, 2));
    a.write(0, "a");
    b.write(1, "b");
    a.prepare(1);
    scene.disk.set_read_only(true);
    drop((a, b));
    scene.disk.set_read_only(false);
    assert_eq!(after_a_crash(scene).1, "........");
}

#[test]
fn notices_that_make_no_sense_are_refused() {
    let scene = scene(true);
    let a = Rank::join(&scene, 7, 0, 2);
    let refused = |notice: &[u8]| a.node.set_xattr(NOTICE, notice, 0).unwrap_err().to_errno();
    for notice in [
        "nonsense",
        "join 0000000000000007 0 2",
        "join 0000000000000007 1 3",
        "prepare 0000000000000007 1 1",
        "prepare 0000000000000008 0 1",
        "prepare 0000000000000007 0 4294967295",
    ] {
        assert_eq!(refused(notice.as_bytes()), Errno::EINVAL, "{notice}");
    }
    a.prepare(1);
    assert_eq!(refused(b"prepare 0000000000000007 0 1"), Errno::EINVAL);
    assert_eq!(a.node.xattr(LOG).unwrap(), b"this log");
    let root = scene.root();
    let join = Notice::Join { group: Group(9), rank: 0, ranks: 1 }.to_string();
    assert!(root.set_xattr(NOTICE, join.as_bytes(), 0).is_err());
}
