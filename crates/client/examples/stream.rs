//! How fast remote files are: cost of tiny calls, and streaming against bare sockets.
//!
//! `cargo run --release -p client --example stream [MIB]`

#[path = "../tests/memory/mod.rs"]
mod memory;

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use client::RemoteFile;
use memory::{Memory, open};
use p9::OpenFlags;

const MIB: usize = 1 << 20;

fn main() {
    let mib: usize = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(256);
    let total = mib * MIB;
    let memory = Memory::default();
    memory.put("data", &vec![7; total]);
    memory.put("out", &vec![0; total]);
    let session = memory.session(|_| {});

    let file = open(&session, "data", OpenFlags::empty());
    let mut byte = [0];
    let calls = (32 * MIB).min(total);
    per_call("read, 1 byte", calls, || {
        for offset in 0..calls {
            file.read_at(black_box(&mut byte), offset as u64).expect("read");
        }
    });
    let file = open(&session, "out", OpenFlags::READ_WRITE);
    per_call("write, 1 byte", calls, || {
        for offset in 0..calls {
            file.write_at(black_box(&byte), offset as u64).expect("write");
        }
        file.flush().expect("flush");
    });

    let raw = raw_sockets(total);
    println!("{:24} {:7.2} GB/s", "bare socket, 1 MiB", raw);
    for len in [8 << 10, 128 << 10, 256 << 10, MIB, 4 * MIB] {
        let file = open(&session, "data", OpenFlags::empty());
        let rate = rate(total, || read_all(&file, total, len));
        println!("{:24} {rate:7.2} GB/s {:5.2} x bare", format!("read, {} KiB", len >> 10), rate / raw);
    }
    for len in [8 << 10, 128 << 10, 256 << 10, MIB, 4 * MIB] {
        let file = open(&session, "out", OpenFlags::WRITE_ONLY);
        let data = vec![9; len];
        let rate = rate(total, || {
            for offset in (0..total).step_by(len) {
                file.write_at(&data, offset as u64).expect("write");
            }
            file.close().expect("close");
        });
        println!("{:24} {rate:7.2} GB/s {:5.2} x bare", format!("write, {} KiB", len >> 10), rate / raw);
    }
}

fn per_call(what: &str, calls: usize, work: impl FnOnce()) {
    let begin = Instant::now();
    work();
    println!("{what:24} {:7.1} ns", begin.elapsed().as_nanos() as f64 / calls as f64);
}

/// The best of a few runs, in GB/s.
fn rate(bytes: usize, mut work: impl FnMut()) -> f64 {
    let mut best = 0.0_f64;
    for _ in 0..3 {
        let begin = Instant::now();
        work();
        best = best.max(bytes as f64 / 1e9 / begin.elapsed().as_secs_f64());
    }
    best
}

fn read_all(file: &RemoteFile, total: usize, len: usize) {
    let mut buffer = vec![0; len];
    let mut offset = 0;
    file.invalidate();
    while offset < total {
        let count = file.read_at(&mut buffer, offset as u64).expect("read");
        assert_ne!(count, 0, "the file ends early");
        offset += count;
    }
}

/// What a pair of connected sockets of the same kind carries from one thread to another.
fn raw_sockets(total: usize) -> f64 {
    rate(total, || {
        let (mut ours, mut theirs) = UnixStream::pair().expect("a socket pair");
        for socket in [&ours, &theirs] {
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(socket, 4 << 20);
        }
        let sender = std::thread::spawn(move || {
            let data = vec![1; MIB];
            for _ in 0..total / MIB {
                theirs.write_all(&data).expect("send");
            }
        });
        let mut buffer = vec![0; MIB];
        for _ in 0..total / MIB {
            ours.read_exact(&mut buffer).expect("receive");
        }
        sender.join().expect("the sender");
    })
}
