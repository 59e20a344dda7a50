//! A simulated striped file system, in virtual time.
//!
//! A parallel file system spreads a file over servers, a stripe each, and moves data in RPCs of a
//! bounded size. How fast a non-contiguous access is there depends on how it falls on stripes and
//! servers, on read-ahead and on seeks. Where no such system is at hand, this room stands for one:
//! deterministic, without I/O and without waiting, so that access methods can be compared on
//! clusters of any shape.
//!
//! The way of one read through [`Simulation`]:
//!
//! 1. The caller asks for a range of the file. What the client's read-ahead holds already costs a
//!    copy, and waiting if it is still on its way.
//! 2. The rest is cut at stripe boundaries ([`Cluster::pieces`]): each piece belongs to one server
//!    and to a place in that server's object. Pieces that follow each other in an object join, up
//!    to the size of an RPC.
//! 3. Each RPC takes the network's latency, waits for its server's turn, moves the disk's head if
//!    it must, and its data passes the server's and then the client's link.
//! 4. The read ends when its last piece is there. When reads follow each other closely, more than
//!    was asked for is fetched.
//!
//! Writes go the other way and are not waited for, until more RPCs are under way than the client
//! may have ([`Cluster::rpcs_in_flight`]); [`Simulation::flush`] waits for all of them.
//!
//! [`expected`] is the thesis's closed formula for the same systems, to be drawn beside what is
//! measured.
//!
//! # Source
//! Zickler, "Optimization of non-contiguous MPI-I/O Operations" (2015): the clusters of §5.2, the
//! expected performance of §5.3.2, and the effects observed in §5.3.3, which the tests of this
//! crate look for. The numbers that the thesis does not print (seek times are given as 1 to 15 ms in
//! §2.1.2) are those of disks and networks of its time.
#![forbid(unsafe_code)]

mod cluster;
pub mod expected;
mod simulation;

pub use cluster::{Cluster, Disk, Network, Piece};
pub use simulation::{Simulation, Traffic};
