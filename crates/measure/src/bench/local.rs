//! The library on a local file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::Advice;
use sieve::{Access, FileView, Profile, Request, Warmth};
use transfer::{Engine, FileMap, LocalFile, Locking, Planner, Target};

use super::{Cell, Clock, Lane, Turn, Work};
use crate::error::{Error, Result};
use crate::price;
use crate::way::Way;

/// A file to measure on; it is removed when this goes.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// As of a program that keeps the file open.
    map: FileMap,
}

impl Scratch {
    /// Makes a file of `bytes` in a directory. All of it is written, so that no block of it is
    /// missing when it is measured; `tell` is called now and then with how much is there, and stops
    /// it by answering false.
    ///
    /// # Errors
    /// [`Error::File`]; [`Error::Interrupted`].
    pub fn new(directory: &Path, bytes: u64, mut tell: impl FnMut(u64) -> bool) -> Result<Self> {
        let path = directory.join(format!(".sluice-sieve-{}", std::process::id()));
        let failed = |source| Error::File { what: "write", path: path.clone(), source };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        // From here on it is removed, whatever happens.
        let mut scratch =
            Self { file: file.map_err(failed)?, path: path.clone(), bytes, map: FileMap::new() };
        let mut block = vec![0; 4 << 20];
        let mut done = 0;
        while done < bytes {
            let len = (bytes - done).min(block.len() as u64);
            fill(&mut block, done);
            scratch.file.write_all(&block[..len as usize]).map_err(failed)?;
            done += len;
            if !tell(done) {
                return Err(Error::Interrupted);
            }
        }
        Ok(scratch)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The file, kept mapped where that pays.
    #[must_use]
    pub fn target(&self) -> LocalFile<'_> {
        LocalFile::new(self.file.as_fd()).keeping(&self.map)
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the file out of the page cache, after what was written has reached the device.
    /// Answers whether it is out: memory file systems keep what they have.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn drop_cache(&self) -> Result<bool> {
        self.file.sync_data().map_err(Error::file("sync", &self.path))?;
        rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)
            .map_err(|errno| Error::file("drop the cache of", &self.path)(errno.into()))?;
        Ok(LocalFile::new(self.file.as_fd()).warmth(0..self.bytes) == Warmth::Cold)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The byte at an offset of a fresh scratch file.
fn expected_byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn fill(block: &mut [u8], offset: u64) {
    for (at, byte) in (offset..).zip(block.iter_mut()) {
        *byte = expected_byte(at);
    }
}

/// What is being measured: a cell, its view, and the engine that learns from it.
struct Stage {
    cell: Cell,
    work: Work,
    view: FileView,
    engine: Engine,
    expected_byte_s: f64,
    is_checked: bool,
}

/// One way of access on a scratch file.
pub struct LocalLane {
    way: Way,
    profile: Profile,
    scratch: Rc<Scratch>,
    buffer: Vec<u8>,
    memory: Vec<u8>,
    stage: Option<Stage>,
}

impl LocalLane {
    /// A way on a file, planned with the parameters of its place.
    #[must_use]
    pub fn new(way: Way, profile: Profile, scratch: Rc<Scratch>) -> Self {
        Self { way, profile, scratch, buffer: Vec::new(), memory: Vec::new(), stage: None }
    }

    fn failed(&self, what: impl ToString) -> Error {
        Error::Lane { lane: self.way.name().to_owned(), what: what.to_string() }
    }

    /// Whether what a call read or wrote is what it should be.
    fn check(&self, stage: &Stage, start: u64, len: u64) -> Result<()> {
        let mut there = Vec::new();
        for block in stage.view.blocks(start, len)? {
            let at = (block.data - start) as usize;
            let here = &self.memory[at..at + block.len as usize];
            there.resize(here.len(), 0);
            let read = self.scratch.file.read_exact_at(&mut there, block.file);
            read.map_err(Error::file("read", self.scratch.path()))?;
            if here != there {
                let access = crate::explain::access_word(stage.cell.access);
                return Err(self.failed(format_args!("wrong data: {access} of {block:?}")));
            }
        }
        Ok(())
    }
}

impl Lane for LocalLane {
    fn name(&self) -> &str {
        self.way.name()
    }

    fn begin(&mut self, cell: &Cell, work: &Work) -> Result<()> {
        let planner = match self.way.function(&self.profile, cell.warmth) {
            Some(function) => Planner::Function(function),
            None => Planner::Adaptive(Box::new(sieve::Adaptive::new(self.profile)?)),
        };
        // As a program does that has the file for itself, and as ROMIO does: windows are locked.
        let engine = Engine::new(planner).locking(Locking::Windows);
        self.buffer.resize(cell.buffer_bytes as usize, 0);
        let view = cell.view()?;
        let (count, of) = work.calls(cell);
        let len = if count == 0 { 0 } else { of(0).1 };
        // Touched beforehand: faults of fresh memory are nobody's business here.
        self.memory.clear();
        self.memory.resize(len as usize, 0xa5);
        let mut expected_byte_s = f64::NAN;
        if len > 0 {
            let mut request = Request::new(cell.access, 0..len, cell.buffer_bytes);
            request.warmth = cell.warmth;
            let price = price::price(self.way, &self.profile, &view, &request)?;
            expected_byte_s = price.total_ns() * 1e-9 / len as f64;
        }
        let (cell, work) = (*cell, *work);
        self.stage = Some(Stage { cell, work, view, engine, expected_byte_s, is_checked: false });
        Ok(())
    }

    fn turn(&mut self, first_call: u64) -> Result<Turn> {
        let Some(mut stage) = self.stage.take() else {
            return Err(self.failed("no cell was begun"));
        };
        let (count, of) = stage.work.calls(&stage.cell);
        if count == 0 {
            return Err(self.failed("the file has no room for a block"));
        }
        if stage.cell.warmth == Warmth::Cold && !self.scratch.drop_cache()? {
            return Err(self.failed("this file system keeps its files in memory: nothing is cold"));
        }
        let file = self.scratch.target();
        let mut turn = Turn::new(0, 0.0);
        let mut call = first_call % count;
        let clock = stage.work.clock;
        let (began_s, ran_s) = (clock.now_s(), Clock::Processor.now_s());
        let mut last;
        loop {
            let (start, len) = of(call);
            let memory = &mut self.memory[..len as usize];
            let (engine, view, buffer) = (&mut stage.engine, &stage.view, &mut self.buffer[..]);
            let done = match stage.cell.access {
                Access::Read => engine.read(&file, view, buffer, start, memory),
                Access::Write => engine.write(&file, view, buffer, start, memory),
            };
            let done = done.map_err(|error| self.failed(error))?;
            if done != len {
                return Err(self.failed(format_args!("{done} of {len} bytes")));
            }
            turn.bytes += len;
            turn.seconds = clock.now_s() - began_s;
            last = (start, len);
            call = (call + 1) % count;
            // What was read once is no longer cold.
            let at_end = stage.cell.warmth == Warmth::Cold && call == first_call % count;
            if turn.seconds >= stage.work.seconds || at_end {
                break;
            }
        }
        turn.away_s = (turn.seconds - (Clock::Processor.now_s() - ran_s)).max(0.0);
        if !stage.is_checked {
            self.check(&stage, last.0, last.1)?;
            stage.is_checked = true;
        }
        self.stage = Some(stage);
        Ok(turn)
    }

    fn expected_byte_s(&self) -> Option<f64> {
        self.stage.as_ref().map(|stage| stage.expected_byte_s).filter(|time| time.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::cell;

    #[test]
    fn every_way_reads_and_writes_what_it_should() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Rc::new(Scratch::new(dir.path(), 300_000, |_| true).unwrap());
        let work = Work::new(300_000, 7000, 0.0005);
        for way in Way::ALL {
            let mut lane = LocalLane::new(way, Profile::default(), Rc::clone(&scratch));
            for access in [Access::Read, Access::Write] {
                for (data, hole) in [(8, 92), (100, 0), (1000, 40_000)] {
                    let cell = Cell { access, buffer_bytes: 10_000, ..cell(data, hole) };
                    lane.begin(&cell, &work).unwrap();
                    let turn = lane.turn(3).unwrap();
                    assert!(turn.bytes > 0 && turn.seconds >= 0.0005, "{way} {turn:?}");
                    assert!(lane.expected_byte_s().unwrap() > 0.0);
                }
            }
        }
        drop(scratch);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn wrong_data_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Rc::new(Scratch::new(dir.path(), 10_000, |_| true).unwrap());
        let work = Work::new(10_000, 800, 0.0);
        let mut lane = LocalLane::new(Way::Naive, Profile::default(), Rc::clone(&scratch));
        lane.begin(&cell(8, 92), &work).unwrap();
        let stage = lane.stage.take().unwrap();
        // Memory that no read has filled.
        let error = lane.check(&stage, 0, 800).unwrap_err();
        assert!(error.to_string().contains("wrong data"), "{error}");
    }

    #[test]
    fn a_scratch_file_that_is_not_wanted_any_more_goes() {
        let dir = tempfile::tempdir().unwrap();
        let error = Scratch::new(dir.path(), 100 << 20, |done| done < 1 << 20).unwrap_err();
        assert!(matches!(error, Error::Interrupted));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
