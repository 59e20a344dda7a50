//! Both sides against each other, with queues for MPI.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::*;
use crate::ServiceName;
use crate::stream::WINDOW_BYTES;

type Mail = (u32, Vec<u8>, usize);

/// One rank's post: queues to the others.
struct Queues {
    rank: u32,
    others: BTreeMap<u32, Sender<Mail>>,
    inbox: Receiver<Mail>,
}

impl Post for Queues {
    fn send(&mut self, to: u32, header: Header, mut buffer: Vec<u8>, payload: usize) -> Result<()> {
        buffer[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        // Nobody there: as when a rank is gone.
        let _ = self.others[&to].send((self.rank, buffer, HEADER_BYTES + payload));
        Ok(())
    }

    fn turn(&mut self, arrived: &mut Vec<Arrived>) -> Result<bool> {
        let before = arrived.len();
        arrived.extend(self.inbox.try_iter().map(|(from, buffer, length)| Arrived {
            from,
            header: Header::parse(&buffer[..length]).unwrap(),
            buffer,
            length,
        }));
        Ok(arrived.len() > before)
    }

    fn is_idle(&self) -> bool {
        true
    }
}

/// Queues among `count` ranks.
fn ranks(count: u32) -> Vec<Queues> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    let others = |_| (0..).zip(senders.iter().cloned()).collect();
    let each = inboxes.into_iter().zip(0..);
    each.map(|(inbox, rank)| Queues { rank, others: others(rank), inbox }).collect()
}

fn service_of_rank_0() -> [Member; 1] {
    [Member { rank: 0, name: ServiceName::new("echo").unwrap() }]
}

fn sockets(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

fn connect(sockets: &str, service: &str) -> std::io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(socket_name(sockets, service))?)
}

/// What counts as a message of 9P: its length and bytes that depend on `what`.
fn message(what: usize, length: u32) -> Vec<u8> {
    let rest = (4..length as usize).map(|at| (what + at / 7) as u8);
    length.to_le_bytes().into_iter().chain(rest).collect()
}

/// A service that sends back what it gets, until its clients have left.
fn echo(post: Queues, clients: &[u32], control: Control) -> thread::JoinHandle<()> {
    let clients: BTreeSet<u32> = clients.iter().copied().collect();
    thread::spawn(move || {
        let mut adopt = |socket: OwnedFd| {
            let mut socket = UnixStream::from(socket);
            thread::spawn(move || {
                let mut bytes = vec![0; 100_000];
                while let Ok(count @ 1..) = socket.read(&mut bytes) {
                    if socket.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
            });
            true
        };
        let side = Services { adopt: &mut adopt, clients: clients.clone(), remaining: clients };
        Relay::new(post, &control).serve(side).unwrap();
    })
}

/// A client's rank, once its sockets listen.
fn attend(post: Queues, sockets: &str, control: Control) -> thread::JoinHandle<Parting> {
    let side = Clients::listen(sockets, &service_of_rank_0()).unwrap();
    thread::spawn(move || Relay::new(post, &control).attend(side).unwrap())
}

#[test]
fn bytes_come_back_in_order_and_all_leave_together() {
    let mut posts = ranks(3).into_iter();
    let serving = echo(posts.next().unwrap(), &[1, 2], Control::new().unwrap());
    let mut leaving = Vec::new();
    for (rank, post) in posts.enumerate() {
        let (sockets, control) = (sockets(&format!("order{rank}")), Control::new().unwrap());
        let attending = attend(post, &sockets, control.clone());
        // More than the windows of both directions, by name and by number.
        let sent: Vec<u8> =
            (0..3 * WINDOW_BYTES / 4096).flat_map(|at| message(at + rank, 4096)).collect();
        let mut one = connect(&sockets, "echo").unwrap();
        let mut other = connect(&sockets, "0").unwrap();
        other.write_all(&message(9, 6)).unwrap();
        let mut writing = one.try_clone().unwrap();
        let copy = sent.clone();
        let writer = thread::spawn(move || writing.write_all(&copy).unwrap());
        let mut got = vec![0; sent.len()];
        one.read_exact(&mut got).unwrap();
        assert!(got == sent);
        writer.join().unwrap();
        let mut beside = [0; 6];
        other.read_exact(&mut beside).unwrap();
        assert_eq!(beside, *message(9, 6));
        leaving.push((attending, control));
    }
    // One client that has left waits for the other.
    leaving[0].1.end();
    thread::sleep(Duration::from_millis(50));
    assert!(!leaving[0].0.is_finished() && !serving.is_finished());
    leaving[1].1.end();
    for (attending, _) in leaving {
        assert_eq!(attending.join().unwrap(), Parting::Orderly);
    }
    serving.join().unwrap();
}

#[test]
fn a_service_that_ends_ends_connections_and_takes_none() {
    let mut posts = ranks(2).into_iter();
    let (ending, control) = (Control::new().unwrap(), Control::new().unwrap());
    let serving = echo(posts.next().unwrap(), &[1], ending.clone());
    let sockets = sockets("ending");
    let attending = attend(posts.next().unwrap(), &sockets, control.clone());
    let mut connection = connect(&sockets, "echo").unwrap();
    connection.write_all(&message(1, 4)).unwrap();
    connection.read_exact(&mut [0; 4]).unwrap();
    ending.end();
    // Noticed when something is asked.
    connection.write_all(&message(1, 4)).unwrap();
    assert!(matches!(connection.read(&mut [0]), Ok(0) | Err(_)));
    assert!(connect(&sockets, "echo").is_err());
    assert!(!serving.is_finished());
    control.end();
    assert_eq!(attending.join().unwrap(), Parting::Orderly);
    serving.join().unwrap();
    assert!(connect(&sockets, "echo").is_err());
}

#[test]
fn a_name_that_nobody_has_is_refused_and_one_is_not_bound_twice() {
    let sockets = sockets("names");
    let clients = Clients::listen(&sockets, &service_of_rank_0()).unwrap();
    assert!(connect(&sockets, "other").is_err());
    assert!(matches!(Clients::listen(&sockets, &service_of_rank_0()), Err(Error::SocketsTaken)));
    drop(clients);
    assert!(connect(&sockets, "echo").is_err());
}

#[test]
fn what_a_program_leaves_unread_holds_up_nobody_else() {
    let mut posts = ranks(2).into_iter();
    let serving = echo(posts.next().unwrap(), &[1], Control::new().unwrap());
    let (sockets, control) = (sockets("unread"), Control::new().unwrap());
    let attending = attend(posts.next().unwrap(), &sockets, control.clone());
    let mut lazy = connect(&sockets, "echo").unwrap();
    lazy.set_nonblocking(true).unwrap();
    // Until nothing more goes in: all windows are full.
    let (bytes, mut refused) = (message(1, 1 << 20), 0);
    while refused < 20 {
        // How much went in does not matter, only that some did.
        if lazy.write(&bytes).is_ok_and(|written| written > 0) {
            refused = 0;
        } else {
            refused += 1;
            thread::sleep(Duration::from_millis(5));
        }
    }
    let mut eager = connect(&sockets, "echo").unwrap();
    eager.write_all(&message(2, 5)).unwrap();
    let mut now = [0; 5];
    eager.read_exact(&mut now).unwrap();
    assert_eq!(now, *message(2, 5));
    control.end();
    assert_eq!(attending.join().unwrap(), Parting::Orderly);
    serving.join().unwrap();
}
