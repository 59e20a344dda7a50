//! Serves one directory: `serve DIR [unix:PATH | tcp:HOST:PORT]...`
//!
//! Prints each address on a line of its own and serves until its standard input ends, so that
//! whoever started it can end it, or simply end.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use service::{Listen, Service};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: serve DIR [unix:PATH | tcp:HOST:PORT]...")?;
    let store = store::fs::FsStore::new(Path::new(&directory))?;
    let mut builder = Service::builder(Arc::new(store));
    for listen in arguments {
        builder = builder.listen(match listen.split_once(':') {
            Some(("unix", path)) => Listen::Unix(path.into()),
            Some(("tcp", address)) => Listen::Tcp(address.to_owned()),
            _ => return Err(format!("{listen}: neither unix:PATH nor tcp:HOST:PORT").into()),
        });
    }
    let running = builder.start()?;
    for address in running.addresses() {
        println!("{address}");
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let counters = running.counters();
    running.stop();
    eprintln!("{} connections, {} requests", counters.accepted, counters.requests);
    Ok(())
}
