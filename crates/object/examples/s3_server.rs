//! An S3 server on loopback, for tests that start programs: `s3_server DIRECTORY [PORT]` serves the directories in it as
//! buckets until its standard input ends, and says where.

#[path = "../tests/support/server.rs"]
mod server;

use std::io::Read;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("s3_server DIRECTORY [PORT]");
    let port = arguments.next().map_or(0, |port| port.parse().expect("a port is a number"));
    let server = server::Server::start(directory.as_ref(), port);
    for (name, value) in server.variables() {
        println!("{name}={value}");
    }
    println!();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
