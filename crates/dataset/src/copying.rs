//! Whole replicas: making one from others, and comparing them.

use std::sync::Arc;

use drepl::definition::Update;
use layout::Conversion;

use crate::dataset::Shared;
use crate::error::{Error, Result};
use crate::flow;
use crate::plan::Plan;
use crate::replica::Files;
use crate::upkeep::{brings_data, steps};

/// Makes a replica anew from all others that are up to date, and puts it in its place. Says from
/// which. `progress` is told the bytes done and the bytes in all, and says whether to go on.
pub(crate) fn make(
    shared: &Shared,
    plan: &Plan,
    index: usize,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Vec<usize>> {
    let place = &shared.members[index].place;
    let sizes = plan.sizes(index);
    let made = place.begin(&sizes, &shared.around).and_then(|files| {
        let from = fill(shared, plan, index, &files, &sizes, progress)?;
        Ok((place.finish(files, &shared.around)?, from))
    });
    match made {
        Ok((files, from)) => {
            shared.members[index].set_files(Some(Arc::new(files)));
            Ok(from)
        }
        Err(error) => {
            // What is left does no harm: it is removed before the next one is begun.
            let _ = place.discard(&shared.around);
            Err(error)
        }
    }
}

/// Fills files of zeros.
fn fill(
    shared: &Shared,
    plan: &Plan,
    index: usize,
    files: &Files,
    sizes: &[u64],
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Vec<usize>> {
    let sources: Vec<_> =
        shared.primaries().into_iter().filter(|(source, _)| *source != index).collect();
    let numbers: Vec<usize> = sources.iter().map(|(source, _)| *source).collect();
    let conversion = plan.copy(index, &numbers)?;
    let (mut done, all) = (0, sizes.iter().sum());
    let mut buffer = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        for step in steps(0..*size) {
            if !progress(done, all) {
                return Err(Error::Interrupted);
            }
            buffer.clear();
            buffer.resize((step.end - step.start) as usize, 0);
            let slabs = conversion.clip_file(number, step.clone());
            let file = |source: usize, file| sources[source].1.get(file);
            flow::gather(slabs, file, &mut buffer, step.start).map_err(|failed| failed.error)?;
            // It is zeros already, and so takes no room where it stays so.
            if buffer.iter().any(|byte| *byte != 0) {
                files.get(number).write_at(&buffer, step.start)?;
            }
            done += step.end - step.start;
        }
    }
    let mut used: Vec<usize> = conversion
        .served()
        .iter()
        .flat_map(|served| &served.sources)
        .map(|n| numbers[*n])
        .collect();
    used.sort_unstable();
    used.dedup();
    Ok(used)
}

/// How a replica is made from those before it; one that is written later, from all that are written
/// at once.
fn from_before(shared: &Shared, plan: &Plan, index: usize) -> Result<(Conversion, Sources)> {
    let later = shared.members[index].update != Update::Sync;
    let mut sources = shared.primaries();
    sources.retain(|(source, _)| *source < index || later);
    let numbers: Vec<usize> = sources.iter().map(|(source, _)| *source).collect();
    Ok((plan.copy(index, &numbers)?, sources))
}

type Sources = Vec<(usize, Arc<Files>)>;

/// Compares what a replica holds with what replicas declared before it hold.
pub(crate) fn verify(shared: &Shared, plan: &Plan, index: usize) -> Result<()> {
    let Some(files) = shared.members[index].files() else { return Ok(()) };
    let (conversion, sources) = from_before(shared, plan, index)?;
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
                let name = |(n, _): &(usize, Arc<Files>)| shared.members[*n].place.name.clone();
                let names = sources.iter().map(name);
                return Err(Error::Differs {
                    replica: shared.members[index].place.name.clone(),
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
    range: std::ops::Range<u64>,
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
