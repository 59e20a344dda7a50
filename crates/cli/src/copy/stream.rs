//! Copies from standard input, to standard output, and into pipes and devices.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};

use anyhow::{Context, Result, anyhow, bail};

use super::part::{self, Leftovers};
use super::progress::Progress;
use super::transfer::{CopyError, create_anew};
use crate::place::{Meta, Moment, Place, Places, Reader, Trouble, umask};

const BUFFER_BYTES: usize = 1 << 20;
/// What `-` means, in messages.
const INPUT: &str = "standard input";
const OUTPUT: &str = "standard output";

/// `sluice cp - PLACE` and `sluice cp PLACE… -`.
pub(super) fn standard(
    places: &Places,
    sources: &[OsString],
    destination: &OsStr,
    progress: &Progress,
) -> Result<()> {
    if destination != "-" {
        if sources.len() > 1 {
            bail!("standard input cannot be copied together with files: give it a name of its own");
        }
        return from_input(places, destination, progress);
    }
    let mut out = io::stdout().lock();
    for source in sources {
        if source == "-" {
            crate::report::standard_output(io::copy(&mut io::stdin().lock(), &mut out).map(drop))?;
            continue;
        }
        let from = places.find(source)?;
        let outcome = from
            .open()
            .map_err(CopyError::source("read"))
            .and_then(|reader| drain(&reader, &mut out, progress));
        match outcome {
            Ok(count) => progress.file_done(&from, &OUTPUT, count),
            // A reader that has seen enough.
            Err(CopyError::Destination(_, Trouble::Local(error)))
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                return Ok(());
            }
            Err(CopyError::Destination(_, trouble)) => bail!("cannot write to {OUTPUT}: {trouble}"),
            Err(error) => progress.failed(&from, &OUTPUT, error.explain(&from, &from)),
        }
    }
    crate::report::standard_output(out.flush())
}

/// Standard input into a file, by way of a part file as with any other source.
fn from_input(places: &Places, destination: &OsStr, progress: &Progress) -> Result<()> {
    let to = places.find(destination)?;
    let fail = |trouble: Trouble| anyhow!("cannot write {to}: {}", to.explain(&trouble));
    match to.stat(true) {
        Ok(there) if there.is_directory() => {
            bail!("{to} is a directory: standard input needs a file's name")
        }
        Ok(there) if !there.is_regular() => {
            let mut out = open_special(&to).map_err(fail)?;
            let count = io::copy(&mut io::stdin().lock(), &mut out)
                .with_context(|| format!("cannot write {to}"))?;
            progress.file_done(&INPUT, &to, count);
            return Ok(());
        }
        _ => {}
    }
    let (Some(directory), Some(name)) = (to.parent(), to.file_name()) else {
        bail!("{to} is a root and not a file's name; append a name")
    };
    // Never resumed, so that the name must only differ from every other copy's: the process tells them apart.
    let unique = Meta { size: std::process::id().into(), ..nothing() };
    let leftovers = Leftovers::of(&directory);
    let part_place = directory.child(&part::name(&name, &unique));
    let written = (|| {
        let mut part = if to.is_object() { create_anew(&to) } else { part_place.create(0o600) }
            .map_err(fail)?;
        if part.is_stored_at_close() && !to.is_object() {
            let _ = part_place.remove_file();
            part.give_up();
            part = create_anew(&to).map_err(fail)?;
        }
        part.cut_at(0).map_err(fail)?;
        let read = (|| {
            let mut buffer = vec![0; BUFFER_BYTES];
            let mut offset = 0;
            loop {
                let count = match io::stdin().lock().read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error).context("cannot read standard input"),
                };
                part.write_all_at(&buffer[..count], offset).map_err(fail)?;
                offset += count as u64;
                progress.advance(count as u64);
            }
            Ok(offset)
        })();
        let offset = match read {
            Ok(offset) => offset,
            Err(error) => {
                part.give_up();
                return Err(error);
            }
        };
        if part.is_stored_at_close() {
            part.finish().map_err(fail)?;
            return Ok(offset);
        }
        part.sync().map_err(fail)?;
        part.set_meta(0o666 & !umask(), None).map_err(fail)?;
        part_place.rename(&to).map_err(fail)?;
        match directory.sync_directory() {
            Err(trouble) if !trouble.is_unsupported() => Err(fail(trouble)),
            _ => Ok(offset),
        }
    })();
    match written {
        Ok(count) => {
            progress.file_done(&INPUT, &to, count);
            leftovers.sweep(&to);
            Ok(())
        }
        Err(error) => {
            // Standard input cannot be read again: the part is of no use.
            let _ = part_place.remove_file();
            Err(error)
        }
    }
}

fn nothing() -> Meta {
    let never = Moment { seconds: 0, nanoseconds: 0 };
    Meta {
        mode: 0,
        size: 0,
        mtime: never,
        atime: never,
        ctime: never,
        uid: 0,
        gid: 0,
        links: 0,
        inode: 0,
        blocks: 0,
    }
}

/// Copies a file into a pipe or device.
pub(super) fn into_special(
    reader: &Reader,
    to: &Place,
    progress: &Progress,
) -> Result<u64, CopyError> {
    let mut out = open_special(to).map_err(CopyError::destination("write"))?;
    drain(reader, &mut out, progress)
}

fn open_special(to: &Place) -> Result<std::fs::File, Trouble> {
    match to {
        Place::Local(path) => Ok(OpenOptions::new().write(true).open(path)?),
        Place::Remote(_) => Err(Trouble::Local(io::ErrorKind::Unsupported.into())),
    }
}

fn drain(reader: &Reader, out: &mut dyn Write, progress: &Progress) -> Result<u64, CopyError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut offset = 0;
    loop {
        let count = reader.read_at(&mut buffer, offset).map_err(CopyError::source("read"))?;
        if count == 0 {
            return Ok(offset);
        }
        let written = out.write_all(&buffer[..count]);
        written.map_err(|error| CopyError::Destination("write", error.into()))?;
        offset += count as u64;
        progress.advance(count as u64);
    }
}
