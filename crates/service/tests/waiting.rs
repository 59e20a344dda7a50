//! Requests that wait: what overtakes them, what keeps its place, and flush.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::fault::{DATA, FaultStore, Gate, made_byte};
use common::{Client, ROOT, connect, start, walk};
use p9::{Data, Fid, GetattrMask, OpenFlags, Optional, Reply, Request, Tag};
use service::{Limits, Running};

const SLOW: Fid = Fid(1);
const OTHER: Fid = Fid(2);
const SYNC: Request<'static> = Request::Fsync { fid: SLOW, data_only: Optional(None) };
const LOOK: Request<'static> = Request::Getattr { fid: OTHER, mask: GetattrMask::BASIC };

struct Scene {
    running: Running,
    client: Client,
    gate: Arc<Gate>,
    log: Arc<std::sync::Mutex<Vec<String>>>,
}

impl Scene {
    fn new(blocks: bool, limits: Limits) -> Self {
        let store = FaultStore::new(blocks);
        let (gate, log) = (Arc::clone(&store.gate), Arc::clone(&store.log));
        let running = start(Arc::new(store), limits);
        let mut client = connect(&running);
        client.begin("9P2000.L", 1 << 20);
        client.open(SLOW, "slow", OpenFlags::READ_WRITE);
        client.open(OTHER, "other", OpenFlags::READ_WRITE);
        Self { running, client, gate, log }
    }

    /// Waits until `count` requests are at the gate.
    fn wait_for(&self, count: usize) {
        for _ in 0..2000 {
            if self.gate.came() >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{} of {count} came", self.gate.came());
    }

    fn tags(&mut self, count: usize) -> Vec<u16> {
        (0..count).map(|_| self.client.receive().header.tag.0).collect()
    }
}

#[test]
fn others_overtake_an_fsync() {
    let mut scene = Scene::new(false, Limits::default());
    let client = &mut scene.client;
    client.send(10, &SYNC);
    client.send(11, &LOOK);
    client.send(12, &Request::Read { fid: SLOW, offset: 0, count: 5 });
    client.send(13, &Request::Write { fid: SLOW, offset: 0, data: Data(b"x") });
    assert_eq!(scene.tags(3), [11, 12, 13]);
    scene.gate.open();
    assert_eq!(scene.tags(1), [10]);
}

#[test]
fn a_clunk_keeps_its_place_behind_an_fsync() {
    let mut scene = Scene::new(false, Limits::default());
    scene.client.send(10, &SYNC);
    scene.client.send(11, &Request::Clunk { fid: SLOW });
    scene.client.send(12, &walk(ROOT, SLOW, &["new"]));
    scene.client.send(13, &LOOK);
    assert_eq!(scene.tags(1), [13]);
    scene.gate.open();
    let mut answers: Vec<_> = (0..3).map(|_| scene.client.receive()).collect();
    answers.sort_by_key(|answer| answer.header.tag);
    let kinds: Vec<u8> = answers.iter().map(|answer| answer.header.kind).collect();
    assert_eq!(kinds, [51, 121, 111]);
}

#[test]
fn a_large_write_behind_a_pending_fsync_goes_on() {
    let mut scene = Scene::new(false, Limits::default());
    let data = vec![7; 300_000];
    scene.client.send(10, &SYNC);
    scene.client.send(11, &Request::Write { fid: SLOW, offset: 0, data: Data(&data) });
    let answer = scene.client.receive();
    assert_eq!(answer.reply(), Reply::Write { count: 300_000 });
    scene.gate.open();
    assert_eq!(scene.tags(1), [10]);
}

#[test]
fn flush_of_a_waiting_request_cancels_it() {
    let mut scene = Scene::new(false, Limits::default());
    scene.client.send(10, &SYNC);
    scene.wait_for(1);
    scene.client.send(11, &Request::Clunk { fid: SLOW });
    scene.client.send(12, &Request::Flush { old_tag: Tag(11) });
    assert_eq!(scene.tags(1), [12]);
    scene.gate.open();
    assert_eq!(scene.tags(1), [10]);
    // The clunk never happened.
    assert_eq!(scene.client.read(SLOW, 0, 100), DATA);
}

#[test]
fn flush_of_a_running_request_is_answered_after_it() {
    let mut scene = Scene::new(false, Limits::default());
    scene.client.send(10, &SYNC);
    scene.wait_for(1);
    scene.client.send(11, &Request::Flush { old_tag: Tag(10) });
    scene.client.send(12, &Request::Flush { old_tag: Tag(11) });
    scene.client.send(13, &LOOK);
    assert_eq!(scene.tags(1), [13]);
    scene.gate.open();
    assert_eq!(scene.tags(3), [10, 11, 12]);
}

#[test]
fn flush_of_what_is_answered_or_never_was() {
    let mut scene = Scene::new(false, Limits::default());
    scene.client.send(10, &LOOK);
    scene.client.send(11, &Request::Flush { old_tag: Tag(10) });
    scene.client.send(12, &Request::Flush { old_tag: Tag(999) });
    assert_eq!(scene.tags(3), [10, 11, 12]);
}

#[test]
fn a_tag_in_use_is_refused() {
    let mut scene = Scene::new(false, Limits::default());
    scene.client.send(10, &SYNC);
    scene.wait_for(1);
    scene.client.send(10, &LOOK);
    let answer = scene.client.receive();
    assert_eq!(answer.errno(), Some(p9::Errno::EINVAL));
    scene.gate.open();
    assert_eq!(scene.client.receive().header.kind, 51);
}

#[test]
fn a_tag_may_be_used_again_as_soon_as_it_is_answered() {
    let mut scene = Scene::new(false, Limits::default());
    scene.gate.open();
    for _ in 0..500 {
        assert_eq!(scene.client.call(&SYNC).header.kind, 51);
    }
}

#[test]
fn version_waits_for_everything_and_begins_anew() {
    let mut scene = Scene::new(false, Limits::default());
    scene.client.send(10, &SYNC);
    scene.wait_for(1);
    scene.client.send(11, &Request::Version { msize: 8192, version: b"9P2000.L" });
    scene.client.send(12, &LOOK);
    std::thread::sleep(Duration::from_millis(20));
    scene.gate.open();
    assert_eq!(scene.tags(2), [10, 11]);
    let answer = scene.client.receive();
    assert_eq!((answer.header.tag.0, answer.errno()), (12, Some(p9::Errno::EBADF)));
}

#[test]
fn a_store_that_blocks_keeps_the_order_of_each_fid() {
    let mut scene = Scene::new(true, Limits::default());
    scene.log.lock().unwrap().clear();
    let far = Fid(7);
    scene.client.send(20, &walk(ROOT, far, &["far"]));
    scene.client.send(21, &Request::Lopen { fid: far, flags: OpenFlags::READ_WRITE });
    scene.client.send(22, &Request::Getattr { fid: far, mask: GetattrMask::BASIC });
    scene.client.send(23, &Request::Read { fid: far, offset: 0, count: 4 });
    scene.client.send(24, &Request::Read { fid: far, offset: 4, count: 4 });
    scene.client.send(25, &Request::Clunk { fid: far });
    scene.client.send(26, &LOOK);
    // Both reads are under way at the same time, and what concerns another fid is not held up.
    scene.wait_for(2);
    let mut early = scene.tags(4);
    early.sort_unstable();
    assert_eq!(early, [20, 21, 22, 26]);
    scene.gate.open();
    let mut late: Vec<_> = (0..3).map(|_| scene.client.receive()).collect();
    late.sort_by_key(|answer| answer.header.tag);
    let kinds: Vec<u8> = late.iter().map(|answer| answer.header.kind).collect();
    assert_eq!(kinds, [117, 117, 121]);
    let log = scene.log.lock().unwrap();
    let place = |what: &str| log.iter().position(|entry| entry == what).expect(what);
    assert!(place("open far") < place("attributes far"));
    assert!(place("attributes far") < place("read far"));
}

#[test]
fn waiting_requests_are_bounded_and_none_is_lost() {
    let limits = Limits { waiting: 8, workers: 3, ..Limits::default() };
    let mut scene = Scene::new(true, limits);
    scene.client.open(Fid(7), "far", OpenFlags::READ_WRITE);
    for tag in 0..100 {
        scene.client.send(100 + tag, &Request::Read { fid: Fid(7), offset: 0, count: 4 });
    }
    scene.wait_for(3);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(scene.gate.came(), 3, "no more workers than allowed");
    scene.gate.open();
    let mut tags = scene.tags(100);
    tags.sort_unstable();
    assert_eq!(tags, (100..200).collect::<Vec<_>>());
    assert!(scene.running.stop());
}

#[test]
fn a_client_that_leaves_while_requests_wait() {
    let scene = Scene::new(true, Limits::default());
    let Scene { running, mut client, gate, .. } = scene;
    client.open(Fid(7), "far", OpenFlags::READ_WRITE);
    for tag in 0..50 {
        client.send(tag, &Request::Read { fid: Fid(7), offset: 0, count: 4 });
    }
    drop(client);
    std::thread::sleep(Duration::from_millis(20));
    gate.open();
    assert!(running.stop());
}

#[test]
fn large_writes_and_reads_of_a_store_that_blocks() {
    let mut scene = Scene::new(true, Limits::default());
    let data = vec![7; 300_000];
    for tag in 0..40 {
        let offset = u64::from(tag) * 300_000;
        scene.client.send(tag, &Request::Write { fid: OTHER, offset, data: Data(&data) });
    }
    for _ in 0..40 {
        assert_eq!(scene.client.receive().reply(), Reply::Write { count: 300_000 });
    }
    assert_eq!(scene.client.read(OTHER, 2, 1 << 20), &DATA[2..]);
    let written = |entry: &&String| *entry == "write other";
    assert_eq!(scene.log.lock().unwrap().iter().filter(written).count(), 40);
}

#[test]
fn what_is_at_hand_is_sent_from_where_it_lies_and_overtakes_what_waits() {
    let mut scene = Scene::new(true, Limits::default());
    let client = &mut scene.client;
    let (far, hand) = (Fid(3), Fid(4));
    client.open(far, "far", OpenFlags::empty());
    client.open(hand, "hand", OpenFlags::empty());
    client.send(9, &Request::Read { fid: far, offset: 0, count: 5 });
    // Some of more pieces than one call sends from, one of a few bytes.
    for (offset, count) in [(0, 1_000_000), (3, 100_000), (1_900_000, 100_000), (70, 3), (9, 7)] {
        client.send(10, &Request::Read { fid: hand, offset, count });
        let answer = client.receive();
        assert_eq!(answer.header.tag.0, 10);
        let Reply::Read { data } = answer.reply() else { panic!("{:?}", answer.reply()) };
        assert_eq!(data.0.len() as u32, count);
        assert!((offset..).zip(data.0).all(|(at, byte)| *byte == made_byte(at)), "{offset}");
    }
    // What is not at hand is read, which this file cannot be.
    client.send(11, &Request::Read { fid: hand, offset: 1_999_000, count: 2000 });
    assert!(matches!(client.receive().reply(), Reply::Lerror { .. }));
    scene.gate.open();
    assert_eq!(scene.client.receive().header.tag.0, 9);
}
