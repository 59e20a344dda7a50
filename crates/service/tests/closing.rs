//! A file that is closed, and one whose client is lost: the store is told which, here and behind relays.

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};

use client::{Options, Place, Session, SocketDial};
use common::fault::FaultStore;
use common::{Client, ROOT, connect, start, until, walk};
use p9::{Errno, Fid, OpenFlags, Request};
use service::{Limits, Listen, Running, Service};
use store::Store;
use store::relay::RelayStore;

const F: Fid = Fid(1);
const G: Fid = Fid(2);

fn count(log: &Mutex<Vec<String>>, what: &str) -> usize {
    log.lock().unwrap().iter().filter(|entry| *entry == what).count()
}

/// A service whose store notes what it is asked.
struct Scene {
    running: Running,
    log: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn client(&self, version: &str) -> Client {
        let mut client = connect(&self.running);
        client.begin(version, 1 << 16);
        client
    }

    fn count(&self, what: &str) -> usize {
        count(&self.log, what)
    }
}

/// Both ways that the service does requests: at once, and in its pool of threads.
fn both_ways(test: impl Fn(&Scene)) {
    for blocks in [false, true] {
        let store = FaultStore::new(blocks);
        let log = Arc::clone(&store.log);
        test(&Scene { running: start(Arc::new(store), Limits::default()), log });
    }
}

#[test]
fn a_clunk_closes_and_its_answer_says_whether_that_went_well() {
    both_ways(|scene| {
        let mut client = scene.client("9P2000.L");
        client.open(F, "file", OpenFlags::READ_WRITE);
        client.open(G, "unsafe", OpenFlags::READ_WRITE);
        client.done(&Request::Clunk { fid: F });
        assert_eq!(client.refused(&Request::Clunk { fid: G }), Errno::ENOSPC);
        assert_eq!((scene.count("close file"), scene.count("close unsafe")), (1, 1));
        // Both fids are gone.
        for fid in [F, G] {
            assert_eq!(client.refused(&Request::Clunk { fid }), Errno::EBADF);
        }
        drop(client);
        until(|| scene.running.counters().connections == 0);
        assert_eq!((scene.count("lose file"), scene.count("lose unsafe")), (0, 0));
    });
}

#[test]
fn a_connection_that_ends_closes_nothing() {
    both_ways(|scene| {
        for version in ["9P2000.L", "9P2000.L.sluice"] {
            let mut client = scene.client(version);
            client.open(F, "file", OpenFlags::READ_WRITE);
            let before = scene.count("lose file");
            drop(client);
            until(|| scene.count("lose file") > before);
        }
        let mut client = scene.client("9P2000");
        client.walk(ROOT, F, &["file"]);
        client.done(&Request::Open { fid: F, mode: p9::LegacyMode(1) });
        drop(client);
        until(|| scene.count("lose file") == 3);
        assert_eq!(scene.count("close file"), 0);
    });
}

#[test]
fn a_new_version_ends_the_session_and_closes_nothing() {
    both_ways(|scene| {
        let mut client = scene.client("9P2000.L");
        client.open(F, "file", OpenFlags::READ_WRITE);
        client.begin("9P2000.L", 1 << 16);
        assert_eq!((scene.count("lose file"), scene.count("close file")), (1, 0));
    });
}

#[test]
fn a_walk_of_an_open_fid_to_itself_gives_it_up_between_sluices_only() {
    both_ways(|scene| {
        let mut client = scene.client("9P2000.L");
        client.open(F, "file", OpenFlags::READ_WRITE);
        client.done(&walk(F, F, &[]));
        client.done(&Request::Clunk { fid: F });
        assert_eq!((scene.count("lose file"), scene.count("close file")), (0, 1));
        let mut client = scene.client("9P2000.L.sluice");
        client.open(F, "file", OpenFlags::READ_WRITE);
        client.done(&walk(F, F, &[]));
        assert_eq!(scene.count("lose file"), 1);
        // It is not open any more.
        assert_eq!(client.refused(&Request::Read { fid: F, offset: 0, count: 1 }), Errno::EBADF);
        client.done(&Request::Clunk { fid: F });
        assert_eq!(scene.count("close file"), 1);
    });
}

fn serve(store: Arc<dyn Store>, socket: &Path) -> Running {
    Service::builder(store).listen(Listen::Unix(socket.to_owned())).start().unwrap()
}

/// A relay of the service at `socket`.
fn relay(socket: &Path) -> Arc<dyn Store> {
    let dial = SocketDial::new(Place::Unix(socket.to_owned()));
    Arc::new(RelayStore::new(Session::new(Box::new(dial), Options::default()), b""))
}

#[test]
fn relays_pass_on_which_of_their_clients_have_closed() {
    for relays in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let store = FaultStore::new(false);
        let log = Arc::clone(&store.log);
        let mut running = vec![serve(Arc::new(store), &directory.path().join("0"))];
        for number in 1..=relays {
            let before = directory.path().join((number - 1).to_string());
            let here = directory.path().join(number.to_string());
            running.push(serve(relay(&before), &here));
        }
        let client = || {
            let mut client = connect(running.last().unwrap());
            client.begin("9P2000.L", 1 << 16);
            client
        };
        let (mut killed, mut other) = (client(), client());
        killed.open(F, "file", OpenFlags::READ_WRITE);
        other.open(F, "file", OpenFlags::READ_WRITE);
        other.open(G, "unsafe", OpenFlags::READ_WRITE);
        assert_eq!(other.refused(&Request::Clunk { fid: G }), Errno::ENOSPC, "{relays} relays");
        drop(killed);
        until(|| count(&log, "lose file") == 1);
        assert_eq!(count(&log, "close file"), 0);
        // The connections between the services are the same, and so is what others have open.
        assert_eq!(other.read(F, 0, 4).len(), 4);
        other.done(&Request::Clunk { fid: F });
        assert_eq!((count(&log, "lose file"), count(&log, "close file")), (1, 1));
    }
}
