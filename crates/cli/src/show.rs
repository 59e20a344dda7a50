//! `sluice cat` and `sluice stat`.

use std::io::{self, BufWriter, Read, Write};
use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Cat, Stat};
use crate::format::{kind_text, mode_text, time_text};
use crate::list::Entry;
use crate::place::{Meta, Place, Places, Reader};
use crate::report::{Failures, standard_output};

/// Read at a time: enough that read-ahead has something to widen.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes what was asked for of each file to standard output.
pub(crate) fn cat(args: &Cat, places: &Places) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let mut failures = Failures::new("read");
    let mut buffer = vec![0; BUFFER_BYTES];
    for text in &args.places {
        if text == "-" {
            standard_output(pass(args, &mut io::stdin().lock(), &mut out))?;
            continue;
        }
        let place = match places.find(text) {
            Ok(place) => place,
            Err(error) => {
                failures.add_error(&error);
                continue;
            }
        };
        let reader = match place.open() {
            Ok(reader) => reader,
            Err(trouble) => {
                failures.add(&place, &trouble);
                continue;
            }
        };
        let written = match special(&place, &reader) {
            Some(mut stream) => pass(args, &mut stream, &mut out),
            None => copy_out(args, &place, &reader, &mut out, &mut buffer, &mut failures),
        };
        let gone = matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
        standard_output(written)?;
        if gone {
            break;
        }
    }
    Ok(failures.exit_code())
}

/// A local file that has no offsets: a pipe, a terminal, a file of /proc with no size.
fn special(place: &Place, reader: &Reader) -> Option<std::fs::File> {
    match (place, reader, reader.stat()) {
        (Place::Local(_), Reader::Local(file), Ok(meta))
            if !meta.is_regular() && !meta.is_directory() =>
        {
            file.try_clone().ok()
        }
        _ => None,
    }
}

fn pass(args: &Cat, from: &mut dyn Read, out: &mut dyn Write) -> io::Result<()> {
    io::copy(&mut from.take(args.offset), &mut io::sink())?;
    io::copy(&mut from.take(args.length.unwrap_or(u64::MAX)), out)?;
    out.flush()
}

fn copy_out(
    args: &Cat,
    place: &Place,
    reader: &Reader,
    out: &mut dyn Write,
    buffer: &mut [u8],
    failures: &mut Failures,
) -> io::Result<()> {
    let mut offset = args.offset;
    let end = args.length.map_or(u64::MAX, |length| offset.saturating_add(length));
    while offset < end {
        let wanted = (end - offset).min(buffer.len() as u64) as usize;
        match reader.read_at(&mut buffer[..wanted], offset) {
            Ok(0) => break,
            Ok(count) => {
                out.write_all(&buffer[..count])?;
                offset += count as u64;
            }
            Err(trouble) => {
                failures.add(place, &trouble);
                break;
            }
        }
    }
    out.flush()
}

/// Says what is known of each file.
pub(crate) fn stat(args: &Stat, places: &Places) -> Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut failures = Failures::new("stat");
    for text in &args.places {
        let place = match places.find(text) {
            Ok(place) => place,
            Err(error) => {
                failures.add_error(&error);
                continue;
            }
        };
        match place.stat(args.dereference) {
            Ok(meta) if args.json => {
                let entry = serde_json::to_string(&Entry::new(&place, &meta))?;
                standard_output(writeln!(out, "{entry}"))?;
            }
            Ok(meta) => standard_output(describe(&mut out, &place, &meta))?,
            Err(trouble) => failures.add(&place, &trouble),
        }
    }
    standard_output(out.flush())?;
    Ok(failures.exit_code())
}

fn describe(out: &mut dyn Write, place: &Place, meta: &Meta) -> io::Result<()> {
    writeln!(out, "  File: {place}")?;
    // A mapped path says nothing of where it leads.
    if let Place::Remote(remote) = place
        && remote.uri().to_bytes() != place.to_bytes()
    {
        writeln!(out, "    At: {}", remote.uri())?;
    }
    let blocks = meta.blocks;
    writeln!(
        out,
        "  Size: {} bytes in {blocks} blocks of 512, {}",
        meta.size,
        kind_text(meta.mode)
    )?;
    let permission = meta.mode & p9::mode::PERMISSIONS;
    writeln!(
        out,
        "  Mode: {permission:04o} {}  Uid: {}  Gid: {}",
        mode_text(meta.mode),
        meta.uid,
        meta.gid
    )?;
    writeln!(out, " Links: {}  Inode: {}", meta.links, meta.inode)?;
    for (label, moment) in [("Access", meta.atime), ("Modify", meta.mtime), ("Change", meta.ctime)]
    {
        let time = time_text(moment.seconds);
        writeln!(out, "{label}: {}.{:09}Z", time.trim_end_matches('Z'), moment.nanoseconds)?;
    }
    Ok(())
}
