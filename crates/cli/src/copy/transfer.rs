//! Copying one file so that its final name never shows half of it.

use super::part;
use super::progress::Progress;
use crate::place::{Meta, Outcome, Place, Reader, Trouble, Writer};

/// Moved at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// Permission bits that a copy keeps: it may have another owner, so set-user-id and its like are dropped.
pub(super) const MODE_KEPT: u32 = 0o777;

/// Why something was not copied.
#[derive(Debug)]
pub(super) enum CopyError {
    /// The source could not be read.
    Source(&'static str, Trouble),
    /// The destination could not be written.
    Destination(&'static str, Trouble),
    /// Source and destination are one.
    SameFile,
    /// A directory without `-r`.
    Directory,
    /// A directory into itself.
    IntoItself,
    /// A directory onto something that is none.
    NotADirectory,
    /// A file onto a directory.
    OntoDirectory,
    /// A pipe, a socket, a device.
    Special(&'static str),
    /// The destination has no name.
    NoName,
    /// The source changed meanwhile.
    Changed,
    /// Another copy of another source to the same name was faster, and has removed this one's part.
    Overtaken,
}

impl CopyError {
    pub(super) fn source(what: &'static str) -> impl Fn(Trouble) -> Self {
        move |trouble| Self::Source(what, trouble)
    }

    pub(super) fn destination(what: &'static str) -> impl Fn(Trouble) -> Self {
        move |trouble| Self::Destination(what, trouble)
    }

    /// The sentence for users.
    pub(super) fn explain(&self, from: &Place, to: &Place) -> String {
        match self {
            Self::Source(what, trouble) => {
                format!("cannot {what} {from}: {}", from.explain(trouble))
            }
            Self::Destination(what, trouble) => {
                format!("cannot {what} {to}: {}", to.explain(trouble))
            }
            Self::SameFile => format!("cannot copy {from}: the destination is the same file"),
            Self::Directory => {
                format!("cannot copy {from}: Is a directory; use -r for directories")
            }
            Self::IntoItself => format!("cannot copy {from} into itself, {to}"),
            Self::NotADirectory => {
                format!("cannot copy the directory {from}: {to} is no directory; remove it first")
            }
            Self::OntoDirectory => {
                format!("cannot copy {from}: {to} is a directory; remove it first")
            }
            Self::Special(kind) => format!(
                "cannot copy {from}: it is a {kind}; only files, directories and links are copied"
            ),
            Self::NoName => {
                format!("cannot copy {from}: {to} is a root and not a file's name; append a name")
            }
            Self::Changed => format!(
                "cannot copy {from}: it changed while it was copied; repeat when nobody writes it"
            ),
            Self::Overtaken => format!(
                "cannot copy {from}: something else was copied to {to} meanwhile; repeat if this one shall stay"
            ),
        }
    }
}

/// Copies one regular file.
pub(super) fn file(
    from: &Place,
    to: &Place,
    source: &Meta,
    resume: bool,
    progress: &Progress,
) -> Result<(), CopyError> {
    progress.expect(source.size);
    match to.stat(false) {
        Ok(there) if there.is_directory() => return Err(CopyError::OntoDirectory),
        Ok(_) if resume && is_same(to, source) => {
            progress.advance(source.size);
            progress.skipped();
            return Ok(());
        }
        Ok(there) if !there.is_regular() && !there.is_symlink() => {
            // A device or pipe takes bytes, not a new file in its place.
            let reader = from.open().map_err(CopyError::source("read"))?;
            let count = super::stream::into_special(&reader, to, progress)?;
            progress.file_done(from, to, count);
            return Ok(());
        }
        _ => {}
    }
    let (Some(directory), Some(name)) = (to.parent(), to.file_name()) else {
        return Err(CopyError::NoName);
    };
    let reader = from.open().map_err(CopyError::source("read"))?;
    if to.is_object() {
        return whole(from, to, source, &reader, progress);
    }
    let part_place = directory.child(&part::name(&name, source));
    // Two copies of one source at a time may meet in one part file: both write the same bytes at the same places, so it is
    // never emptied, only overwritten.
    let part_file = part_place.create(0o600).map_err(CopyError::destination("write"))?;
    if part_file.is_stored_at_close() {
        let _ = part_place.remove_file();
        part_file.give_up();
        return whole(from, to, source, &reader, progress);
    }
    let start = match resume {
        true => part::resume_at(&reader, &part_file, source.size)
            .map_err(CopyError::destination("check the part of"))?,
        false => 0,
    };
    if start > 0 {
        progress.resumed(to, start);
    }
    progress.advance(start);

    let mut offset = start;
    // Small files need no large buffer.
    let room = source.size.saturating_add(1).min(BUFFER_BYTES as u64) as usize;
    let mut buffer = vec![0; room];
    let mut watch = progress.watch(from, source.size);
    loop {
        let count = reader.read_at(&mut buffer, offset).map_err(CopyError::source("read"))?;
        if count == 0 {
            break;
        }
        part_file
            .write_all_at(&buffer[..count], offset)
            .map_err(CopyError::destination("write"))?;
        offset += count as u64;
        progress.advance(count as u64);
        watch.at(offset);
    }
    part_file
        .cut_at(offset)
        .and_then(|()| part_file.sync())
        .map_err(CopyError::destination("write"))?;
    let now = from.stat(true).map_err(CopyError::source("look at"))?;
    if offset != source.size || (now.size, now.mtime) != (source.size, source.mtime) {
        // Best effort: it is of no use to a later attempt.
        let _ = part_place.remove_file();
        return Err(CopyError::Changed);
    }
    part_file
        .set_meta(source.mode & MODE_KEPT, Some((source.atime, source.mtime)))
        .map_err(CopyError::destination("set the mode and times of"))?;
    match part_place.rename(to) {
        // Another copy finished first: of the same source, with the same part, or of another.
        Err(trouble) if trouble.is_missing() && is_same(to, source) => {}
        Err(trouble) if trouble.is_missing() => return Err(CopyError::Overtaken),
        other => other.map_err(CopyError::destination("finish"))?,
    }
    progress.file_done(from, to, offset);
    Ok(())
}

/// Copies to where a file appears as a whole only when it is closed: it needs no part file, and has no mode or times to set.
fn whole(
    from: &Place,
    to: &Place,
    source: &Meta,
    reader: &Reader,
    progress: &Progress,
) -> Result<(), CopyError> {
    let writer = create_anew(to).map_err(CopyError::destination("write"))?;
    let copied = (|| {
        let mut buffer = vec![0; source.size.saturating_add(1).min(BUFFER_BYTES as u64) as usize];
        let mut watch = progress.watch(from, source.size);
        let mut offset = 0;
        loop {
            let count = reader.read_at(&mut buffer, offset).map_err(CopyError::source("read"))?;
            if count == 0 {
                break;
            }
            let written = writer.write_all_at(&buffer[..count], offset);
            written.map_err(CopyError::destination("write"))?;
            offset += count as u64;
            progress.advance(count as u64);
            watch.at(offset);
        }
        let now = from.stat(true).map_err(CopyError::source("look at"))?;
        if offset != source.size || (now.size, now.mtime) != (source.size, source.mtime) {
            return Err(CopyError::Changed);
        }
        Ok(offset)
    })();
    match copied {
        Ok(count) => {
            writer.finish().map_err(CopyError::destination("finish"))?;
            progress.file_done(from, to, count);
            Ok(())
        }
        Err(error) => {
            writer.give_up();
            Err(error)
        }
    }
}

/// Opens a file for writing from nothing. In a bucket a key needs nothing above it, so directories that are missing are made.
pub(super) fn create_anew(to: &Place) -> Outcome<Writer> {
    fn make(directory: &Place) -> Outcome<()> {
        match directory.make_directory(0o777) {
            Err(trouble) if trouble.is_missing() => {
                let above = directory.parent().ok_or(trouble)?;
                make(&above)?;
                directory.make_directory(0o777)
            }
            Err(trouble) if trouble.is_there_already() => Ok(()),
            other => other,
        }
    }
    match (to.create_anew(0o666), to.parent()) {
        (Err(trouble), Some(above)) if to.is_object() && trouble.is_missing() => {
            make(&above)?;
            to.create_anew(0o666)
        }
        (other, _) => other,
    }
}

/// True if a regular file of the source's size and age has the name already.
fn is_same(to: &Place, source: &Meta) -> bool {
    let alike = |there: &Meta| {
        there.is_regular() && (there.size, there.mtime) == (source.size, source.mtime)
    };
    to.stat(false).is_ok_and(|there| alike(&there))
}
