//! Ranks on two nodes: the bytes of one are in its own log, and their order is in the other's.

use std::io;
use std::sync::Arc;

use epochs::{ELSEWHERE, Epoch, Group, NOTICE, Notice, Standing};
use hostlog::media::simulated::SimulatedDisk;
use hostlog::{Description, Elsewhere, Fetch, Log};
use logstore::{MemberStore, Needed};
use p9::{Errno, OpenFlags};
use store::mem::MemStore;
use store::{Node, OpenNode, Store};

mod house;

use house::{Attach, BOTH, Scene, at, content_at, small};

/// What the home calls the member's log.
const NUMBER: u64 = 0xfeed;

/// Another node's log, in reach.
struct Other(Arc<Log>);

impl Fetch for Other {
    fn fetch(&self, from: Elsewhere, buffer: &mut [u8]) -> io::Result<()> {
        assert_eq!(from.log, NUMBER);
        self.0.read(from.at, buffer).map_err(|error| match error {
            hostlog::Error::Recycled { .. } => io::ErrorKind::NotFound.into(),
            error => io::Error::other(error),
        })
    }
}

/// The home, with a file of eight dots, and a member.
struct Nodes {
    home: Scene,
    disk: Arc<SimulatedDisk>,
    log: Arc<Log>,
    member: MemberStore,
}

impl Nodes {
    fn new(options: hostlog::Options) -> Self {
        Self::with(options, 2)
    }

    /// `seed` says what a crash leaves of what the member had not synced.
    fn with(options: hostlog::Options, seed: u64) -> Self {
        let home = Scene::new(Arc::new(MemStore::new()));
        let (_, open) = home.root().create(b"file", BOTH, 0o644).unwrap();
        open.write_at(b"........", 0).unwrap();
        open.sync(false).unwrap();
        let disk = Arc::new(SimulatedDisk::new(seed));
        let media = Arc::clone(&disk);
        let log = Arc::new(Log::create(media, &Description::default(), options).unwrap());
        home.log.fetch_by(Arc::new(Other(Arc::clone(&log))));
        let order = Arc::new(Attach(Arc::clone(&home.store)));
        let member = MemberStore::new(order, Arc::clone(&log), NUMBER, 2);
        Self { home, disk, log, member }
    }

    /// The ranks 0, at the home, and 1, at the member.
    fn ranks(&self) -> (Rank, Rank) {
        let home = Rank::join(&self.home.root(), 0);
        (home, Rank::join(&self.member.root().unwrap(), 1))
    }

    fn look_after(&self) -> Needed {
        self.member.look_after(&*self.home.root()).unwrap()
    }

    fn standing(&self) -> Standing {
        Standing::parse(&self.home.root().xattr(ELSEWHERE).unwrap()).unwrap()
    }

    /// The power fails on both nodes, and comes back; says what the file holds then.
    fn after_a_crash(self) -> (Scene, Arc<Log>, String) {
        let Self { home, disk, log, member } = self;
        drop(member);
        home.log.fetch_by(Arc::new(Nobody));
        drop(log);
        disk.crash();
        let log = Arc::new(Log::open(disk, small()).unwrap().0);
        let home = home.restart(|disk| disk.crash());
        home.log.fetch_by(Arc::new(Other(Arc::clone(&log))));
        let found = String::from_utf8(content_at(&home.root(), "file")).unwrap();
        (home, log, found)
    }
}

/// No other log is in reach.
struct Nobody;

impl Fetch for Nobody {
    fn fetch(&self, _from: Elsewhere, _buffer: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

struct Rank {
    node: Arc<dyn Node>,
    open: Arc<dyn OpenNode>,
    rank: u32,
}

impl Rank {
    fn join(root: &Arc<dyn Node>, rank: u32) -> Self {
        let node = at(root, b"file").unwrap();
        let open = node.open(BOTH).unwrap();
        let this = Self { node, open, rank };
        this.tell(Notice::Join { group: Group(7), rank, ranks: 2 });
        this
    }

    fn tell(&self, notice: Notice) {
        self.node.set_xattr(NOTICE, notice.to_string().as_bytes(), 0).unwrap();
    }

    fn write(&self, offset: u64, text: &str) {
        assert_eq!(self.open.write_at(text.as_bytes(), offset).unwrap(), text.len());
    }

    fn prepare(&self, epoch: u64) {
        self.tell(Notice::Prepare { group: Group(7), rank: self.rank, epoch: Epoch(epoch) });
    }

    fn leave(&self, epoch: u64) {
        self.tell(Notice::Leave { group: Group(7), rank: self.rank, epoch: Epoch(epoch) });
    }

    fn read(&self) -> String {
        String::from_utf8(house::content(&self.node)).unwrap()
    }
}

#[test]
fn bytes_stay_on_their_node_and_all_read_them() {
    let mut nodes = Nodes::new(small());
    let (a, b) = nodes.ranks();
    let before = nodes.log.status().last;
    b.write(0, "bbbb");
    assert!(nodes.log.status().last > before, "the member's log has them");
    a.write(2, "aa");
    assert_eq!((a.read(), b.read()), ("bbaa....".into(), "bbaa....".into()));
    // One byte is too few to be kept, and comes between what is.
    let before = nodes.log.status().last;
    b.write(3, "x");
    assert_eq!(nodes.log.status().last, before);
    b.write(6, "BB");
    assert_eq!(a.read(), "bbax..BB");
    a.prepare(1);
    b.prepare(1);
    nodes.home.drain_all();
    assert_eq!(content_at(&nodes.home.target.root().unwrap(), "file"), b"bbax..BB");
}

#[test]
fn an_epoch_is_durable_on_all_nodes_when_it_counts() {
    for (seed, is_left) in (0..40).flat_map(|seed| [(seed, false), (seed, true)]) {
        let nodes = Nodes::with(small(), seed);
        let (a, b) = nodes.ranks();
        b.write(0, "bb");
        a.write(4, "aa");
        // The home is the last, and does not ask the member.
        if is_left {
            b.leave(1);
            a.leave(1);
        } else {
            b.prepare(1);
            a.prepare(1);
            b.write(0, "BB");
            a.write(4, "AA");
        }
        drop((a, b));
        let (mut home, _log, found) = nodes.after_a_crash();
        assert_eq!(found, "bb..aa..");
        home.drain_all();
        assert_eq!(content_at(&home.target.root().unwrap(), "file"), b"bb..aa..");
    }
}

#[test]
fn an_epoch_that_one_node_had_not_come_to_never_was() {
    for early in [0, 1] {
        let nodes = Nodes::new(small());
        let (a, b) = nodes.ranks();
        b.write(0, "bb");
        a.write(4, "aa");
        if early == 0 {
            a.prepare(1)
        } else {
            b.prepare(1)
        }
        drop((a, b));
        let (_, _, found) = nodes.after_a_crash();
        assert_eq!(found, "........");
    }
}

#[test]
fn a_prepared_epoch_of_all_nodes_counts_though_the_home_did_not_live_to_say_so() {
    let nodes = Nodes::new(small());
    let (a, b) = nodes.ranks();
    b.write(0, "bb");
    a.write(4, "aa");
    a.prepare(1);
    // The commit of the home is behind what the member is told.
    b.prepare(1);
    drop((a, b));
    assert_eq!(nodes.after_a_crash().2, "bb..aa..");
}

#[test]
fn space_is_given_back_when_the_target_has_the_bytes_and_not_before() {
    let mut nodes = Nodes::new(small());
    assert_eq!(nodes.look_after(), Needed::No);
    let (a, b) = nodes.ranks();
    let much = "b".repeat(100 << 10);
    for round in 1..20 {
        b.write(0, &much);
        for _ in 0..3 {
            assert_eq!(nodes.look_after(), Needed::Yes, "it does not even count");
        }
        a.prepare(round);
        b.prepare(round);
        assert_eq!(nodes.look_after(), Needed::Yes);
        nodes.home.drain_all();
        assert_eq!(b.read(), much);
        while nodes.look_after() == Needed::Yes {}
        assert_eq!(b.read(), much);
    }
    assert!(nodes.standing().is_idle);
    let status = nodes.log.status();
    assert!(status.segment_files < 10, "{} segments of 64 KiB", status.segment_files);
}

#[test]
fn a_member_whose_log_is_full_has_the_home_take_the_bytes() {
    let options = hostlog::Options { size_max_bytes: 256 << 10, ..small() };
    let nodes = Nodes::new(options);
    let (a, b) = nodes.ranks();
    let much = "b".repeat(1 << 20);
    // Short where it becomes full on the way, as everywhere.
    let mut done = 0;
    while done < much.len() {
        done += b.open.write_at(&much.as_bytes()[done..], done as u64).unwrap();
    }
    assert_eq!(a.read(), much);
    assert!(nodes.log.status().segment_files <= 4);
}

#[test]
fn bytes_that_are_no_ranks_or_go_to_the_end_are_the_homes() {
    let nodes = Nodes::new(small());
    let before = nodes.log.status().last;
    let root = nodes.member.root().unwrap();
    let node = at(&root, b"file").unwrap();
    let open = node.open(BOTH).unwrap();
    open.write_at(b"plain", 0).unwrap();
    let text = b"0 5 1 1 4160";
    assert_eq!(node.set_xattr(ELSEWHERE, text, 0).unwrap_err().to_errno(), Errno::EPERM);
    let home = at(&nodes.home.root(), b"file").unwrap();
    assert_eq!(home.set_xattr(ELSEWHERE, text, 0).unwrap_err().to_errno(), Errno::EINVAL);
    let (_a, b) = nodes.ranks();
    let end = b.node.open(OpenFlags::WRITE_ONLY | OpenFlags::APPEND).unwrap();
    end.write_at(b"end", 0).unwrap();
    assert_eq!(nodes.log.status().last, before);
    assert_eq!(b.read(), "plain...end");
}

#[test]
fn bytes_of_a_node_that_is_gone_are_an_error_and_not_others() {
    let nodes = Nodes::new(small());
    let (a, b) = nodes.ranks();
    b.write(0, "bb");
    nodes.home.log.fetch_by(Arc::new(Nobody));
    let mut bytes = [0; 8];
    assert_eq!(a.open.read_at(&mut bytes, 0).unwrap_err().to_errno(), Errno::EIO);
    assert_eq!(a.open.read_at(&mut bytes[..6], 2).unwrap(), 6);
}
