//! Whole replicas: making one from others, and comparing them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use drepl::definition::Update;
use layout::Conversion;

use crate::dataset::Shared;
use crate::error::{Error, Result};
use crate::flow;
use crate::plan::Plan;
use crate::replica::Files;
use crate::upkeep::{brings_data, steps};

/// Makes a replica from all others that are up to date, while nobody writes, and puts it in its
/// place. Says from which.
pub(crate) fn make(shared: &Shared, plan: &Plan, index: usize) -> Result<Vec<usize>> {
    let member = &plan.members[index];
    let place = &member.place;
    let sizes = plan.sizes(index);
    let made = place.begin(&sizes, &shared.around).and_then(|files| {
        let from = fill(plan, index, &files)?;
        Ok((place.finish(files, &shared.around)?, from))
    });
    match made {
        Ok((files, from)) => {
            member.set_files(Some(Arc::new(files)));
            Ok(from)
        }
        Err(error) => {
            // What is left does no harm: it is removed before the next one is begun.
            let _ = place.discard(&shared.around);
            Err(error)
        }
    }
}

/// Fills files of zeros, while nobody writes.
fn fill(plan: &Plan, index: usize, files: &Files) -> Result<Vec<usize>> {
    let mut copy = Copy::new(index);
    for (number, file) in files.iter().enumerate() {
        for step in steps(0..plan.sizes(index)[number]) {
            let data = copy.read(plan, number, step.clone()).map_err(|(_, error)| error)?;
            // It is zeros already, and so takes no room where it stays so.
            if data.iter().any(|byte| *byte != 0) {
                file.write_at(data, step.start)?;
            }
        }
    }
    Ok(copy.used.into_iter().collect())
}

/// What the files of a replica should have, as others that are up to date tell.
pub(crate) struct Copy {
    index: usize,
    conversion: Option<(Vec<usize>, Conversion)>,
    buffer: Vec<u8>,
    /// The replicas that the data is from.
    pub(crate) used: BTreeSet<usize>,
}

impl Copy {
    pub(crate) fn new(index: usize) -> Self {
        Self { index, conversion: None, buffer: Vec::new(), used: BTreeSet::new() }
    }

    /// The bytes of a range of one of its files; else tells which replica cannot be read.
    pub(crate) fn read(
        &mut self,
        plan: &Plan,
        number: usize,
        range: Range<u64>,
    ) -> Result<&[u8], (usize, Error)> {
        let sources = plan.primaries();
        let numbers: Vec<usize> = sources.iter().map(|(source, _)| *source).collect();
        let conversion = match self.conversion.take().filter(|(known, _)| *known == numbers) {
            Some((_, conversion)) => conversion,
            None => {
                let conversion =
                    plan.copy(self.index, &numbers).map_err(|error| (usize::MAX, error))?;
                let served = conversion.served().iter().flat_map(|served| &served.sources);
                self.used.extend(served.map(|source| numbers[*source]));
                conversion
            }
        };
        self.buffer.clear();
        self.buffer.resize((range.end - range.start) as usize, 0);
        let slabs = conversion.clip_file(number, range.clone());
        let file = |source: usize, file| sources[source].1.get(file);
        let read = flow::gather(slabs, file, &mut self.buffer, range.start);
        read.map_err(|failed| (numbers[failed.source], failed.error))?;
        self.conversion = Some((numbers, conversion));
        Ok(&self.buffer)
    }
}

/// How a replica is made from those before it; one that is written later, from all that are written
/// at once.
fn from_before(plan: &Plan, index: usize) -> Result<(Conversion, Sources)> {
    let later = plan.members[index].update != Update::Sync;
    let mut sources = plan.primaries();
    sources.retain(|(source, _)| *source < index || later);
    let numbers: Vec<usize> = sources.iter().map(|(source, _)| *source).collect();
    Ok((plan.copy(index, &numbers)?, sources))
}

type Sources = Vec<(usize, Arc<Files>)>;

/// Compares what a replica holds with what replicas declared before it hold.
pub(crate) fn verify(plan: &Plan, index: usize) -> Result<()> {
    let Some(files) = plan.members[index].files() else { return Ok(()) };
    let (conversion, sources) = from_before(plan, index)?;
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for (number, file) in files.iter().enumerate() {
        for step in steps(0..plan.sizes(index)[number]) {
            own.resize((step.end - step.start) as usize, 0);
            file.read_at(&mut own, step.start)?;
            others.clone_from(&own);
            let slabs = conversion.clip_file(number, step.clone()).filter(brings_data);
            let from = |source: usize, file| sources[source].1.get(file);
            flow::gather(slabs, from, &mut others, step.start).map_err(|failed| failed.error)?;
            let different = own.iter().zip(&others).position(|(own, other)| own != other);
            if let Some(at) = different {
                let name = |(n, _): &(usize, Arc<Files>)| plan.members[*n].place.name.clone();
                let names = sources.iter().map(name);
                return Err(Error::Differs {
                    replica: plan.members[index].place.name.clone(),
                    path: file.path().to_path_buf(),
                    offset: step.start + at as u64,
                    others: names.collect::<Vec<_>>().join(", "),
                });
            }
        }
    }
    Ok(())
}

/// Writes what stands in a file of a replica where no data is: zeros and markers.
pub(crate) fn write_blanks(
    plan: &Plan,
    index: usize,
    files: &Files,
    number: usize,
    range: Range<u64>,
) -> Result<()> {
    let blanks = plan.blanks(index);
    let file = files.get(number);
    let mut buffer = Vec::new();
    for step in steps(range) {
        let mut blanks = blanks.clip_file(number, step.clone()).peekable();
        if blanks.peek().is_none() {
            continue;
        }
        buffer.resize((step.end - step.start) as usize, 0);
        file.read_at(&mut buffer, step.start)?;
        for blank in blanks {
            blank.read(&[], 0, &mut buffer, step.start);
        }
        file.write_at(&buffer, step.start)?;
    }
    Ok(())
}
