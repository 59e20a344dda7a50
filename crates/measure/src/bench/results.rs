//! What was measured, in SQLite: every turn, so that any figure can be made of it later.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Row, params};
use sieve::{Access, Warmth};

use super::{Cell, Turn};
use crate::error::{Error, Result};
use crate::explain::{access_word, warmth_word};

/// Number of the schema, kept as SQLite's `user_version`.
const SCHEMA_NUMBER: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    started INTEGER NOT NULL,          -- seconds since 1970, UTC
    finished INTEGER,                  -- NULL while cells are missing
    config TEXT NOT NULL,              -- what was asked for, as JSON
    place TEXT NOT NULL);              -- file system or simulated cluster
CREATE TABLE cell (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    access TEXT NOT NULL CHECK (access IN ('read', 'write')),
    warmth TEXT NOT NULL CHECK (warmth IN ('warm', 'cold')),
    data INTEGER NOT NULL, hole INTEGER NOT NULL, displacement INTEGER NOT NULL,
    buffer INTEGER NOT NULL, servers INTEGER NOT NULL, stripe INTEGER NOT NULL,
    UNIQUE (run, access, warmth, data, hole, displacement, buffer, servers, stripe));
CREATE TABLE turn (
    cell INTEGER NOT NULL REFERENCES cell(id) ON DELETE CASCADE,
    method TEXT NOT NULL, round INTEGER NOT NULL,
    bytes INTEGER NOT NULL, seconds REAL NOT NULL,
    outlier INTEGER NOT NULL,          -- 1: measured again, does not count
    PRIMARY KEY (cell, method, round)) WITHOUT ROWID;
CREATE TABLE expected (
    cell INTEGER NOT NULL REFERENCES cell(id) ON DELETE CASCADE,
    method TEXT NOT NULL, byte_seconds REAL NOT NULL,
    PRIMARY KEY (cell, method)) WITHOUT ROWID;
CREATE TABLE skipped (
    cell INTEGER NOT NULL REFERENCES cell(id) ON DELETE CASCADE,
    method TEXT NOT NULL, why TEXT NOT NULL);
";

/// Number of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RunId(pub i64);

/// What is known of a run besides its cells.
#[derive(Debug, Clone, PartialEq)]
pub struct RunInfo {
    /// Its number.
    pub id: RunId,
    /// When it began.
    pub started: SystemTime,
    /// Whether all cells were measured.
    pub is_finished: bool,
    /// What was asked for, as JSON.
    pub config: String,
    /// File system or simulated cluster.
    pub place: String,
}

/// A measured turn.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    round: u32,
    turn: Turn,
    is_outlier: bool,
}

/// All that was measured in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRow {
    /// Which cell.
    pub cell: Cell,
    samples: BTreeMap<String, Vec<Sample>>,
    expected: BTreeMap<String, f64>,
    /// Lanes that could not do it, and why.
    pub skipped: Vec<(String, String)>,
}

impl CellRow {
    /// A cell in which nothing was measured yet.
    #[must_use]
    pub fn new(cell: Cell) -> Self {
        Self { cell, samples: BTreeMap::new(), expected: BTreeMap::new(), skipped: Vec::new() }
    }

    /// Notes a turn.
    pub fn add(&mut self, method: &str, round: u32, turn: Turn) {
        let sample = Sample { round, turn, is_outlier: false };
        self.samples.entry(method.to_owned()).or_default().push(sample);
    }

    /// Notes what a lane is expected to take, in seconds for each byte.
    pub fn expect(&mut self, method: &str, byte_s: Option<f64>) {
        if let Some(byte_s) = byte_s {
            self.expected.insert(method.to_owned(), byte_s);
        }
    }

    /// Notes that a lane could not do it.
    pub fn skip(&mut self, method: &str, why: &Error) {
        self.skipped.push((method.to_owned(), why.to_string()));
    }

    /// Takes out the turns of a round.
    pub fn forget_round(&mut self, round: u32) -> Vec<(String, Turn)> {
        let mut taken = Vec::new();
        for (name, samples) in &mut self.samples {
            taken.extend(
                samples
                    .extract_if(.., |sample| sample.round == round)
                    .map(|sample| (name.clone(), sample.turn)),
            );
        }
        self.samples.retain(|_, samples| !samples.is_empty());
        taken
    }

    /// Every turn of a method, outliers too.
    pub fn turns(&self, method: &str) -> impl Iterator<Item = Turn> + '_ {
        self.samples.get(method).into_iter().flatten().map(|sample| sample.turn)
    }

    /// The turns of a method that count.
    pub fn kept(&self, method: &str) -> impl Iterator<Item = Turn> + '_ {
        let samples = self.samples.get(method).into_iter().flatten();
        samples.filter(|sample| !sample.is_outlier).map(|sample| sample.turn)
    }

    /// The methods that were measured.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.samples.keys().map(String::as_str)
    }

    /// Seconds for each byte of data, the median of the turns that count.
    #[must_use]
    pub fn median(&self, method: &str) -> Option<f64> {
        median(self.kept(method).map(|turn| turn.byte_s()))
    }

    /// The medians of all methods.
    pub fn medians(&self) -> impl Iterator<Item = (&str, f64)> {
        self.methods().filter_map(|method| Some((method, self.median(method)?)))
    }

    /// What a method was expected to take, in seconds for each byte.
    #[must_use]
    pub fn expected(&self, method: &str) -> Option<f64> {
        self.expected.get(method).copied()
    }

    /// How many times as long `above` takes as `below`: the median of pairs measured in the same
    /// round, or of the medians where they had no round together.
    #[must_use]
    pub fn ratio(&self, above: &str, below: &str) -> Option<f64> {
        let (above_all, below_all) = (self.samples.get(above)?, self.samples.get(below)?);
        let pairs = above_all.iter().filter_map(|a| {
            let same = |b: &&Sample| b.round == a.round;
            below_all.iter().find(same).map(|b| a.turn.byte_s() / b.turn.byte_s())
        });
        median(pairs).or_else(|| Some(self.median(above)? / self.median(below)?))
    }

    /// Marks the turns that differ from their median by more than `share`, and says of which
    /// methods; each is named as often as it has such turns. What is marked does not count.
    pub fn outliers(&mut self, share: f64) -> Vec<String> {
        let mut found = Vec::new();
        for (name, samples) in &mut self.samples {
            let kept = samples.iter().filter(|sample| !sample.is_outlier);
            let Some(middle) = median(kept.map(|sample| sample.turn.byte_s())) else { continue };
            let count = samples.len();
            for sample in samples.iter_mut().filter(|sample| !sample.is_outlier) {
                // Two that differ do not say which of them is wrong.
                if count > 2 && (sample.turn.byte_s() - middle).abs() > share * middle {
                    sample.is_outlier = true;
                    found.push(name.clone());
                }
            }
        }
        found
    }
}

/// The value in the middle, or between the two there.
#[must_use]
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    })
}

/// A database of runs.
#[derive(Debug)]
pub struct Results {
    path: PathBuf,
    base: Connection,
}

impl Results {
    /// Opens a database, made if it is missing.
    ///
    /// # Errors
    /// [`Error::Results`]; [`Error::Schema`] when it is of another age.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::Results { path: path.to_path_buf(), source };
        let base = Connection::open(path).map_err(failed)?;
        base.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        base.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        let number = |row: &Row<'_>| row.get(0);
        let found: i64 = base.query_row("PRAGMA user_version", [], number).map_err(failed)?;
        let tables: i64 =
            base.query_row("SELECT count(*) FROM sqlite_schema", [], number).map_err(failed)?;
        if found == 0 && tables == 0 {
            base.execute_batch(&format!(
                "BEGIN; {SCHEMA} PRAGMA user_version = {SCHEMA_NUMBER}; COMMIT;"
            ))
            .map_err(failed)?;
        } else if found != SCHEMA_NUMBER {
            let (path, expected) = (path.to_path_buf(), SCHEMA_NUMBER);
            return Err(Error::Schema { path, found, expected });
        }
        Ok(Self { path: path.to_path_buf(), base })
    }

    /// Opens a database that must be there.
    ///
    /// # Errors
    /// [`Error::File`] when it is not; else as [`Results::open`].
    pub fn open_existing(path: &Path) -> Result<Self> {
        std::fs::metadata(path).map_err(Error::file("read", path))?;
        Self::open(path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn wrap<T>(&self, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|source| Error::Results { path: self.path.clone(), source })
    }

    /// Begins a run.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn begin(&mut self, config: &str, place: &str) -> Result<RunId> {
        let sql = "INSERT INTO run (started, config, place) VALUES (?1, ?2, ?3)";
        self.wrap(self.base.execute(sql, params![seconds_now(), config, place]))?;
        Ok(RunId(self.base.last_insert_rowid()))
    }

    /// The newest run with this configuration and place that has cells missing.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn unfinished(&self, config: &str, place: &str) -> Result<Option<RunId>> {
        let sql = "SELECT id FROM run WHERE config = ?1 AND place = ?2 AND finished IS NULL \
                   ORDER BY id DESC LIMIT 1";
        let found = self.base.query_row(sql, params![config, place], |row| row.get(0)).optional();
        Ok(self.wrap(found)?.map(RunId))
    }

    /// Marks a run as complete.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn finish(&mut self, id: RunId) -> Result<()> {
        let sql = "UPDATE run SET finished = ?1 WHERE id = ?2";
        self.wrap(self.base.execute(sql, params![seconds_now(), id.0])).map(|_| ())
    }

    /// All runs, the newest first.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn runs(&self) -> Result<Vec<RunInfo>> {
        let sql = "SELECT id, started, finished IS NOT NULL, config, place FROM run \
                   ORDER BY id DESC";
        let read = || {
            let mut statement = self.base.prepare(sql)?;
            let rows = statement.query_map([], |row| {
                let started = row.get::<_, i64>(1)?.max(0) as u64;
                Ok(RunInfo {
                    id: RunId(row.get(0)?),
                    started: UNIX_EPOCH + Duration::from_secs(started),
                    is_finished: row.get(2)?,
                    config: row.get(3)?,
                    place: row.get(4)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.wrap(read())
    }

    /// The cells of a run that are measured.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn done(&self, id: RunId) -> Result<HashSet<Cell>> {
        Ok(self.cells(id)?.into_iter().map(|(_, cell)| cell).collect())
    }

    /// Keeps a cell: all of it or nothing.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn keep(&mut self, id: RunId, row: &CellRow) -> Result<()> {
        let path = self.path.clone();
        let write = || -> rusqlite::Result<()> {
            let all = self.base.transaction()?;
            let cell = &row.cell;
            all.execute(
                "INSERT INTO cell (run, access, warmth, data, hole, displacement, buffer, servers, \
                 stripe) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    id.0,
                    access_word(cell.access),
                    warmth_word(cell.warmth),
                    cell.data as i64,
                    cell.hole as i64,
                    cell.displacement as i64,
                    cell.buffer_bytes as i64,
                    cell.servers,
                    cell.stripe_bytes as i64,
                ],
            )?;
            let number = all.last_insert_rowid();
            for (method, samples) in &row.samples {
                for Sample { round, turn, is_outlier } in samples {
                    all.execute(
                        "INSERT INTO turn VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        params![number, method, round, turn.bytes as i64, turn.seconds, is_outlier],
                    )?;
                }
            }
            for (method, byte_s) in &row.expected {
                let values = params![number, method, byte_s];
                all.execute("INSERT INTO expected VALUES (?1, ?2, ?3)", values)?;
            }
            for (method, why) in &row.skipped {
                let values = params![number, method, why];
                all.execute("INSERT INTO skipped VALUES (?1, ?2, ?3)", values)?;
            }
            all.commit()
        };
        write_result(write, path)
    }

    fn cells(&self, id: RunId) -> Result<Vec<(i64, Cell)>> {
        let sql = "SELECT id, access, warmth, data, hole, displacement, buffer, servers, stripe \
                   FROM cell WHERE run = ?1 ORDER BY id";
        let read = || {
            let mut statement = self.base.prepare(sql)?;
            let cells = statement.query_map([id.0], |row| {
                let bytes = |column: usize| row.get::<_, i64>(column).map(|value| value as u64);
                let access: String = row.get(1)?;
                let warmth: String = row.get(2)?;
                let cell = Cell {
                    access: if access == "write" { Access::Write } else { Access::Read },
                    warmth: if warmth == "cold" { Warmth::Cold } else { Warmth::Warm },
                    data: bytes(3)?,
                    hole: bytes(4)?,
                    displacement: bytes(5)?,
                    buffer_bytes: bytes(6)?,
                    servers: row.get(7)?,
                    stripe_bytes: bytes(8)?,
                };
                Ok((row.get(0)?, cell))
            })?;
            cells.collect::<rusqlite::Result<Vec<_>>>()
        };
        self.wrap(read())
    }

    /// All that a run measured.
    ///
    /// # Errors
    /// [`Error::Results`].
    pub fn rows(&self, id: RunId) -> Result<Vec<CellRow>> {
        let mut rows = Vec::new();
        for (number, cell) in self.cells(id)? {
            let mut row = CellRow::new(cell);
            self.wrap(self.fill(number, &mut row))?;
            rows.push(row);
        }
        Ok(rows)
    }

    fn fill(&self, number: i64, row: &mut CellRow) -> rusqlite::Result<()> {
        let mut turns = self.base.prepare_cached(
            "SELECT method, round, bytes, seconds, outlier FROM turn WHERE cell = ?1 ORDER BY round",
        )?;
        let mut found = turns.query([number])?;
        while let Some(at) = found.next()? {
            let bytes = at.get::<_, i64>(2)? as u64;
            let turn = Turn::new(bytes, at.get(3)?);
            let sample = Sample { round: at.get(1)?, turn, is_outlier: at.get(4)? };
            row.samples.entry(at.get(0)?).or_default().push(sample);
        }
        let mut expected = self
            .base
            .prepare_cached("SELECT method, byte_seconds FROM expected WHERE cell = ?1")?;
        let mut found = expected.query([number])?;
        while let Some(at) = found.next()? {
            row.expected.insert(at.get(0)?, at.get(1)?);
        }
        let mut skipped =
            self.base.prepare_cached("SELECT method, why FROM skipped WHERE cell = ?1")?;
        let mut found = skipped.query([number])?;
        while let Some(at) = found.next()? {
            row.skipped.push((at.get(0)?, at.get(1)?));
        }
        Ok(())
    }
}

fn write_result(write: impl FnOnce() -> rusqlite::Result<()>, path: PathBuf) -> Result<()> {
    write().map_err(|source| Error::Results { path, source })
}

fn seconds_now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::cell;

    fn row() -> CellRow {
        let mut row = CellRow::new(cell(8, 92));
        for (round, seconds) in [(1, 1.0), (2, 1.1), (3, 5.0), (4, 0.95)] {
            row.add("adaptive", round, Turn::new(10, seconds));
            row.add("naive", round, Turn::new(10, seconds * 2.0));
        }
        row.expect("adaptive", Some(0.25));
        row.skip("romio", &Error::Lane { lane: "romio".into(), what: "no".into() });
        row
    }

    #[test]
    fn what_is_kept_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.sqlite");
        let mut results = Results::open(&path).unwrap();
        let id = results.begin("{\"a\":1}", "ext4 at /").unwrap();
        let mut row = row();
        row.outliers(0.2);
        results.keep(id, &row).unwrap();
        // A cell is measured once in a run.
        assert!(results.keep(id, &row).is_err());
        drop(results);
        let results = Results::open_existing(&path).unwrap();
        assert_eq!(results.rows(id).unwrap(), [row]);
        let runs = results.runs().unwrap();
        assert_eq!((runs.len(), runs[0].is_finished), (1, false));
        assert_eq!(results.unfinished("{\"a\":1}", "ext4 at /").unwrap(), Some(id));
        assert_eq!(results.unfinished("{\"a\":2}", "ext4 at /").unwrap(), None);
    }

    #[test]
    fn what_is_no_database_of_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.sqlite");
        let other = Connection::open(&path).unwrap();
        other.execute_batch("CREATE TABLE mine (x)").unwrap();
        assert!(matches!(Results::open(&path), Err(Error::Schema { found: 0, .. })));
        std::fs::write(dir.path().join("text"), "no database at all, but long enough to look")
            .unwrap();
        assert!(matches!(Results::open(&dir.path().join("text")), Err(Error::Results { .. })));
        assert!(matches!(
            Results::open_existing(&dir.path().join("none")),
            Err(Error::File { .. })
        ));
    }

    #[test]
    fn medians_and_ratios_do_without_outliers() {
        let mut row = row();
        assert_eq!(row.outliers(0.2), ["adaptive", "naive"]);
        assert_eq!(row.outliers(0.2), Vec::<String>::new());
        assert_eq!(row.median("adaptive"), Some(0.1));
        assert_eq!(row.ratio("naive", "adaptive"), Some(2.0));
        assert_eq!(row.ratio("naive", "romio"), None);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0].into_iter()), Some(2.5));
    }
}
