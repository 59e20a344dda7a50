//! Random histories on a simulated disk whose power fails anywhere: what is replayed is exactly what the
//! last commit that returned left, or what the one in flight would have.
//!
//! `HOSTLOG_SEED=N` repeats one history, `HOSTLOG_HISTORIES=N` runs so many.

use std::sync::Arc;

use hostlog::media::simulated::{Dice, SimulatedDisk, Syncs};
use hostlog::{
    Change, Description, Error, FileId, Group, Log, Member, Operation, Options, Prepare, Sequence,
    What, Write, verify,
};

#[path = "support/oracle.rs"]
mod oracle;

use oracle::Oracle;

/// What one call would do to the records' marks if it takes effect.
#[derive(Debug, Clone, Copy)]
enum Effect {
    Commit(FileId),
    Abort(FileId),
    Prepare(Member),
    Decide(Member, bool),
    Drained(u64),
}

struct Run {
    disk: SimulatedDisk,
    dice: Dice,
    oracle: Oracle,
    drained: u64,
    next_id: u64,
    epochs: [u32; 2],
    lying: bool,
    /// Whether one sync was made to fail.
    failing: bool,
    /// The last record before the call in flight.
    last: u64,
    opened: u64,
}

type Outcome = Result<(), String>;

fn payload(id: u64, len: usize) -> Vec<u8> {
    let mut dice = Dice::new(id);
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend((8..len).map(|_| dice.roll() as u8));
    bytes
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what()) }
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            disk: SimulatedDisk::new(dice.roll()),
            dice,
            oracle: Oracle::default(),
            drained: 0,
            next_id: 1,
            epochs: [1; 2],
            lying: false,
            failing: false,
            last: 0,
            opened: 0,
        }
    }

    fn options(&mut self) -> Options {
        Options { segment_bytes: 12 << 10, size_max_bytes: 72 << 10, ready_segments: 2 }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Commit(file) => self.oracle.commit(file),
            Effect::Abort(file) => self.oracle.abort(file),
            Effect::Prepare(member) => self.oracle.prepare(member),
            Effect::Decide(member, committed) => self.oracle.decide(member, committed),
            Effect::Drained(through) => self.drained = through,
        }
    }

    /// The ids of what a log replays, with every payload looked at.
    fn replayed(log: &Log) -> Result<Vec<u64>, String> {
        let mut ids = Vec::new();
        for record in log.replay() {
            let record = record.map_err(|error| format!("replay: {error}"))?;
            match record.what {
                What::Data { len, at, offset } => {
                    let mut bytes = vec![0; len as usize];
                    log.read(at, &mut bytes).map_err(|error| format!("read: {error}"))?;
                    check(bytes == payload(offset, bytes.len()), || {
                        format!("record {} has other bytes than were written", record.sequence)
                    })?;
                    ids.push(offset);
                }
                What::Operation(Operation::Note { bytes, .. }) => {
                    ids.push(u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
                }
                What::Operation(other) => return Err(format!("nobody wrote {other:?}")),
            }
        }
        Ok(ids)
    }

    /// Appends some data or operation.
    fn append(&mut self, log: &Log) -> hostlog::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        let file = FileId(1 + self.dice.below(3));
        let group = self.dice.below(2) as usize;
        let member = self
            .dice
            .one_in(3)
            .then(|| Member { group: Group(group as u32 + 1), epoch: self.epochs[group] });
        if self.dice.one_in(4) {
            let namespace = member.is_none() && self.dice.one_in(2);
            let change = Change { stream: 1, file, member, namespace };
            let note = Operation::Note { tag: 5, bytes: id.to_le_bytes().to_vec() };
            let sequence = log.change(&change, &note)?;
            self.oracle.append(id, sequence.0, file, member, namespace);
        } else {
            // The offset is the id, by which the record is known again; so no write may be cut.
            let long = [200, 200, 200, 2000, 6000][self.dice.below(5) as usize];
            let bytes = payload(id, 8 + self.dice.below(long) as usize);
            let write = Write { stream: 1, file, member, offset: id, bytes: &bytes };
            let placements = log.write(&write)?;
            let placed: Vec<_> = placements.iter().collect();
            assert_eq!(placed.len(), 1, "segments are too small to cut");
            self.oracle.append(id, placed[0].sequence.0, file, member, false);
        }
        Ok(())
    }

    /// One call that decides something, with what it does if it takes effect.
    fn decide(&mut self, log: &Log) -> (Effect, hostlog::Result<()>) {
        let group = self.dice.below(2) as usize;
        let member = Member { group: Group(group as u32 + 1), epoch: self.epochs[group] };
        match self.dice.below(11) {
            0..=4 => {
                let file = FileId(self.dice.below(4));
                (Effect::Commit(file), log.commit(1, file).map(drop))
            }
            5..=6 => {
                let file = FileId(1);
                let (rank, ranks) = (self.dice.below(2) as u32, 2);
                let prepare = Prepare { stream: 1, file, member, rank, ranks, name: b"a job" };
                (Effect::Prepare(member), log.prepare(&prepare).map(drop))
            }
            7 => {
                self.epochs[group] += 1;
                (Effect::Decide(member, true), log.commit_group(member).map(drop))
            }
            8 => {
                self.epochs[group] += 1;
                (Effect::Decide(member, false), log.abort_group(member).map(drop))
            }
            9 => {
                let file = FileId(1 + self.dice.below(3));
                (Effect::Abort(file), log.abort(file).map(drop))
            }
            _ => {
                let through = self.oracle.decided().min(log.status().durable.0);
                let through = through - self.dice.below(5).min(through);
                let through = through.max(self.drained);
                let state = through.to_le_bytes();
                (Effect::Drained(through), log.drained(Sequence(through), &state))
            }
        }
    }

    /// Some calls, until the power fails or there were enough of them. Returns what was in flight.
    fn work(&mut self, log: &Log) -> Result<Option<Effect>, String> {
        // What the first record brings with it comes first, so that each further call appends one record.
        match log.begin_commit(1, FileId::NONE) {
            Err(_) if self.disk.is_dead() || self.failing => return Ok(None),
            Err(error) => return Err(format!("the first record: {error}")),
            Ok(_) => {}
        }
        let calls = self.dice.below(60);
        let failing = self.dice.below(calls);
        for call in 0..calls {
            if self.failing && call == failing {
                self.disk.set_syncs(Syncs::FailOnce);
            }
            self.last = log.status().last.0;
            let (effect, result) = match self.dice.below(10) {
                0..=5 => (None, self.append(log)),
                6 => (None, log.prepare_ahead().map(drop)),
                7 if self.dice.one_in(2) => (None, log.sync()),
                _ => {
                    let (effect, result) = self.decide(log);
                    (Some(effect), result)
                }
            };
            match result {
                Ok(()) => {
                    if let Some(effect) = effect {
                        self.apply(effect);
                    }
                }
                Err(_) if self.disk.is_dead() => return Ok(effect),
                Err(Error::Failed { .. }) if self.failing => return Ok(effect),
                Err(Error::Full { .. }) => {}
                Err(error) => return Err(format!("{effect:?}: {error}")),
            }
            if self.dice.one_in(20) {
                let counts = self.oracle.counts(self.drained);
                let replayed = Self::replayed(log);
                check(self.disk.is_dead() || replayed.as_ref() == Ok(&counts), || {
                    format!("while open: {replayed:?} instead of {counts:?}")
                })?;
            }
        }
        Ok(None)
    }

    /// Opens the log, however often the power fails on the way.
    fn open(&mut self, in_flight: Option<Effect>) -> Result<Log, String> {
        let mut attempts = self.dice.below(3);
        loop {
            if attempts > 0 {
                attempts -= 1;
                self.disk.fail_power_after(1 + self.dice.below(6));
            }
            let options = self.options();
            match Log::open(Arc::new(self.disk.clone()), options) {
                Ok((log, recovery)) if !self.disk.is_dead() => {
                    self.disk.fail_power_after(u64::MAX >> 1);
                    self.found(&log, &recovery, in_flight)?;
                    self.opened += 1;
                    return Ok(log);
                }
                Ok(_) => {}
                Err(_) if self.disk.is_dead() => {}
                Err(error) => return Err(format!("open: {error}")),
            }
            self.disk.crash();
        }
    }

    /// Compares what an opened log says with what it should.
    fn found(
        &mut self,
        log: &Log,
        recovery: &hostlog::Recovery,
        in_flight: Option<Effect>,
    ) -> Outcome {
        let replayed = Self::replayed(log)?;
        let took_effect = recovery.last.0 > self.last;
        if let Some(effect) = in_flight.filter(|_| took_effect) {
            self.apply(effect);
        }
        let expected = self.oracle.counts(self.drained);
        check(recovery.drained.0 == self.drained && expected == replayed, || {
            format!(
                "in flight {in_flight:?}, there: {took_effect}: drained {} and {replayed:?} instead of \
                 {} and {expected:?}",
                recovery.drained, self.drained
            )
        })?;
        let drained = self.drained;
        check(drained == 0 || recovery.drained_state == drained.to_le_bytes(), || {
            format!("drained {drained} with state {:?}", recovery.drained_state)
        })?;
        self.oracle.restart();
        Ok(())
    }

    fn history(&mut self) -> Outcome {
        let description = Description { target: "t".into(), run: "r".into(), created: 1 };
        if self.dice.one_in(8) {
            // The power may fail while the log is made: then there is one, or none.
            self.disk.fail_power_after(1 + self.dice.below(8));
        }
        let options = self.options();
        let mut log = match Log::create(Arc::new(self.disk.clone()), &description, options) {
            Ok(log) if !self.disk.is_dead() => log,
            _ => {
                self.disk.crash();
                match Log::open(Arc::new(self.disk.clone()), options) {
                    Ok((log, _)) => log,
                    Err(Error::Missing { .. }) => {
                        Log::create(Arc::new(self.disk.clone()), &description, options)
                            .map_err(|error| format!("create after a crash: {error}"))?
                    }
                    Err(error) => return Err(format!("open after a crash of create: {error}")),
                }
            }
        };
        self.disk.fail_power_after(u64::MAX >> 1);
        if self.lying {
            self.disk.set_syncs(Syncs::Lie);
        }
        for _ in 0..2 + self.dice.below(5) {
            if !self.dice.one_in(4) {
                self.disk.fail_power_after(1 + self.dice.below(120));
            }
            self.failing = !self.lying && self.dice.one_in(6);
            let in_flight = self.work(&log)?;
            let failed = log.status().failed;
            if !self.lying {
                self.disk.set_syncs(Syncs::Work);
            }
            if self.disk.is_dead() {
                drop(log);
                self.disk.crash();
            } else if failed {
                // The system goes on, and shows what is not on the disk.
                drop(log);
                self.disk.kill();
            } else if self.dice.one_in(3) {
                let closed = log.close();
                check(self.disk.is_dead() || closed.is_ok(), || format!("close: {closed:?}"))?;
                if self.disk.is_dead() || self.dice.one_in(2) {
                    self.disk.crash();
                }
            } else {
                drop(log);
                self.disk.kill();
                if self.dice.one_in(2) {
                    self.disk.crash();
                }
            }
            if self.dice.one_in(3) {
                let verified = verify(&self.disk).map_err(|error| format!("verify: {error}"))?;
                check(verified.damage.is_none(), || format!("{:?}", verified.damage))?;
            }
            log = self.open(in_flight)?;
        }
        Ok(())
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn after_a_crash_it_is_what_the_last_commit_left_or_the_one_in_flight() {
    let seeds = match number("HOSTLOG_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HOSTLOG_HISTORIES").unwrap_or(1500),
    };
    let mut opened = 0;
    for seed in seeds {
        let mut run = Run::new(seed);
        if let Err(what) = run.history() {
            panic!("HOSTLOG_SEED={seed}: {what}");
        }
        opened += run.opened;
    }
    println!("{opened} logs were opened after something had happened to them");
}

#[test]
fn the_simulation_notices_syncs_that_do_nothing() {
    let noticed = (0..40).filter(|seed| {
        let mut run = Run::new(*seed);
        run.lying = true;
        run.history().is_err()
    });
    assert!(noticed.count() > 20);
}
