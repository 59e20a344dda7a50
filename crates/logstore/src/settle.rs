//! Epochs that a crash left in doubt. All ranks of a group write to one log, so it can tell by itself.

use std::collections::BTreeMap;

use hostlog::{Group, Log, Member};

use crate::error::{Error, Result};

/// Decides on every epoch that ranks prepared and nobody decided on: it counts if all ranks had come to it.
/// What a group wrote behind its last consistency point counts no more.
///
/// It is called when a log has been opened, before anything is replayed.
///
/// # Errors
/// When the log cannot be written.
pub fn settle(log: &Log) -> Result<()> {
    let mut groups: BTreeMap<Group, (u32, BTreeMap<u32, u32>)> = BTreeMap::new();
    for doubt in log.in_doubt() {
        let (ranks, reached) = groups.entry(doubt.member.group).or_default();
        *ranks = doubt.ranks;
        for rank in doubt.prepared {
            let epoch = reached.entry(rank).or_default();
            *epoch = doubt.member.epoch.max(*epoch);
        }
    }
    for (group, (ranks, reached)) in groups {
        let all = reached.len() == ranks as usize;
        if let Some(epoch) = reached.values().min().filter(|_| all) {
            let member = Member { group, epoch: *epoch };
            log.commit_group(member).map_err(Error::log("committing an epoch of"))?;
        }
        let rest = Member { group, epoch: u32::MAX };
        log.abort_group(rest).map_err(Error::log("aborting an epoch of"))?;
    }
    Ok(())
}
