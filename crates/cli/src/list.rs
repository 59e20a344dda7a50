//! `sluice ls`.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use crate::args::Ls;
use crate::format::{kind_text, mode_text, name_text, time_text};
use crate::place::{Meta, Place, Places, stat_all};
use crate::report::{Failures, JsonName};

/// One line of `--json`.
#[derive(Serialize)]
pub(crate) struct Entry {
    /// Path or URI.
    #[serde(flatten)]
    place: JsonName,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Permission in octal.
    mode: String,
    size_bytes: u64,
    blocks_512: u64,
    mtime: String,
    mtime_seconds: i64,
    mtime_nanoseconds: u32,
    uid: u32,
    gid: u32,
    links: u64,
    /// As text: the upper byte tells stores apart, and a number beyond 2^53 is rounded by readers that hold
    /// numbers as doubles (RFC 8259, section 6).
    inode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
}

impl Entry {
    pub(crate) fn new(place: &Place, meta: &Meta) -> Self {
        let target = meta.is_symlink().then(|| place.read_link().ok()).flatten();
        Self {
            place: JsonName::new(&place.to_bytes()),
            kind: kind_text(meta.mode),
            mode: format!("{:04o}", meta.mode & p9::mode::PERMISSIONS),
            size_bytes: meta.size,
            blocks_512: meta.blocks,
            mtime: time_text(meta.mtime.seconds),
            mtime_seconds: meta.mtime.seconds,
            mtime_nanoseconds: meta.mtime.nanoseconds,
            uid: meta.uid,
            gid: meta.gid,
            links: meta.links,
            inode: meta.inode.to_string(),
            target: target.map(|target| String::from_utf8_lossy(&target).into_owned()),
        }
    }
}

/// Lists everything that was asked for.
pub(crate) fn ls(args: &Ls, places: &Places) -> Result<ExitCode> {
    let mut listing = Listing {
        args,
        out: BufWriter::new(io::stdout().lock()),
        failures: Failures::new("list"),
        sections: 0,
    };
    let several = args.places.len() > 1 || args.recursive;
    let mut directories = Vec::new();
    let mut files = Vec::new();
    for text in &args.places {
        let place = match places.find(text) {
            Ok(place) => place,
            Err(error) => {
                listing.failures.add_error(&error);
                continue;
            }
        };
        // As ls(1): a symbolic link to a directory is listed as a link only with -l.
        match place.stat(!args.long).or_else(|_| place.stat(false)) {
            Ok(meta) if meta.is_directory() => directories.push(place),
            Ok(meta) => files.push((place, meta)),
            Err(trouble) => listing.failures.add(&place, &trouble),
        }
    }
    let done = listing.files(files).and_then(|()| {
        directories.iter().try_for_each(|directory| listing.directory(directory, several))
    });
    let flushed = done.and_then(|()| listing.out.flush());
    crate::report::standard_output(flushed)?;
    Ok(listing.failures.exit_code())
}

struct Listing<'a, W: Write> {
    args: &'a Ls,
    out: W,
    failures: Failures,
    /// Directories listed so far.
    sections: usize,
}

impl<W: Write> Listing<'_, W> {
    /// Files that were named one by one, under the names given.
    fn files(&mut self, files: Vec<(Place, Meta)>) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        self.sections += 1;
        let rows =
            files.into_iter().map(|(place, meta)| (place.to_bytes(), place, Some(meta))).collect();
        self.rows(rows)
    }

    fn directory(&mut self, directory: &Place, titled: bool) -> io::Result<()> {
        let names = match directory.list() {
            Ok(names) => names,
            Err(trouble) => {
                self.failures.add(directory, &trouble);
                return Ok(());
            }
        };
        if titled && !self.args.json {
            let gap = if self.sections > 0 { "\n" } else { "" };
            writeln!(self.out, "{gap}{directory}:")?;
        }
        self.sections += 1;
        let needs_meta = self.args.long || self.args.json || self.args.recursive;
        let shown = |name: &Vec<u8>| self.args.all || !name.starts_with(b".");
        let names: Vec<Vec<u8>> = names.into_iter().filter(shown).collect();
        let places: Vec<Place> = names.iter().map(|name| directory.child(name)).collect();
        let metas = if needs_meta { stat_all(&places) } else { Vec::new() };
        let mut metas = metas.into_iter();
        let mut rows = Vec::with_capacity(names.len());
        let mut below = Vec::new();
        for (name, place) in names.into_iter().zip(places) {
            let meta = match metas.next().transpose() {
                Ok(meta) => meta,
                // Removed since it was listed.
                Err(trouble) if trouble.is_missing() => continue,
                Err(trouble) => {
                    self.failures.add(&place, &trouble);
                    None
                }
            };
            if self.args.recursive && meta.is_some_and(|meta| meta.is_directory()) {
                below.push(place.clone());
            }
            rows.push((name, place, meta));
        }
        self.rows(rows)?;
        below.iter().try_for_each(|directory| self.directory(directory, titled))
    }

    fn rows(&mut self, rows: Vec<(Vec<u8>, Place, Option<Meta>)>) -> io::Result<()> {
        let width = |count: fn(&Meta) -> u64| {
            rows.iter()
                .filter_map(|(_, _, meta)| meta.as_ref())
                .map(|meta| count(meta).to_string().len())
                .max()
                .unwrap_or(1)
        };
        let (links, uid, gid) = (
            width(|meta| meta.links),
            width(|meta| meta.uid.into()),
            width(|meta| meta.gid.into()),
        );
        let size = width(|meta| meta.size);
        for (name, place, meta) in &rows {
            match meta {
                Some(meta) if self.args.json => {
                    serde_json::to_writer(&mut self.out, &Entry::new(place, meta))?;
                    writeln!(self.out)?;
                }
                Some(meta) if self.args.long => {
                    write!(
                        self.out,
                        "{} {:links$} {:uid$} {:gid$} {:size$} {} {}",
                        mode_text(meta.mode),
                        meta.links,
                        meta.uid,
                        meta.gid,
                        meta.size,
                        time_text(meta.mtime.seconds),
                        name_text(name)
                    )?;
                    match meta.is_symlink().then(|| place.read_link()) {
                        Some(Ok(target)) => writeln!(self.out, " -> {}", name_text(&target))?,
                        _ => writeln!(self.out)?,
                    }
                }
                // What could not be looked at was told; an object without facts would mislead.
                None if self.args.json => {}
                _ => writeln!(self.out, "{}", name_text(name))?,
            }
        }
        Ok(())
    }
}
