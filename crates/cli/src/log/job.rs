//! Which run this process belongs to: the ranks of one job on a node share a log's agent.

use std::fs;

/// What names a job to all of its processes, by the variables that launchers set.
const VARIABLES: [(&str, &str); 5] = [
    ("PMIX_NAMESPACE", "pmix"),
    ("OMPI_MCA_ess_base_jobid", "orte"),
    ("PMI_JOBID", "pmi"),
    ("FLUX_JOB_ID", "flux"),
    ("PALS_APID", "pals"),
];

/// Programs that start the ranks of a node.
const DAEMONS: [&str; 8] = [
    "hydra_pmi_proxy",
    "hydra_bstrap_proxy",
    "prted",
    "orted",
    "slurmstepd",
    "mpirun",
    "mpiexec",
    "mpiexec.hydra",
];

/// Set for the program: what it starts belongs to the same run.
pub(crate) const RUN_VARIABLE: &str = "SLUICE_LOG_RUN";

/// The run's name: the same for all ranks of a job on this node, and for what they start; else this process's own.
pub(crate) fn run() -> String {
    run_of(&|name| std::env::var(name).ok(), || ancestors(std::process::id()))
}

fn run_of(
    variable: &dyn Fn(&str) -> Option<String>,
    ancestors: impl FnOnce() -> Vec<(u32, String, u64)>,
) -> String {
    if let Some(run) = variable(RUN_VARIABLE) {
        return run;
    }
    if let (Some(job), Some(step)) = (variable("SLURM_JOB_ID"), variable("SLURM_STEP_ID"))
        && variable("SLURM_PROCID").is_some()
    {
        return format!("slurm {job}.{step}");
    }
    for (name, kind) in VARIABLES {
        if let Some(job) = variable(name) {
            return format!("{kind} {job}");
        }
    }
    let ancestors = ancestors();
    let is_rank = ["PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"];
    if is_rank.iter().any(|name| variable(name).is_some()) {
        // MPICH's launcher tells the ranks no name of the job, but all of a node have it as their ancestor.
        let daemon = ancestors.iter().find(|(_, name, _)| DAEMONS.contains(&&name[..]));
        if let Some((pid, name, since)) = daemon {
            return format!("{name} {pid}-{since}");
        }
    }
    let own = ancestors.first().map_or((std::process::id(), 0), |(pid, _, since)| (*pid, *since));
    format!("process {}-{}", own.0, own.1)
}

/// This process and its ancestors: number, name, and the time when each was started, in clock ticks since boot.
fn ancestors(mut pid: u32) -> Vec<(u32, String, u64)> {
    let mut found = Vec::new();
    while pid > 1 && found.len() < 32 {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { break };
        // proc_pid_stat(5): the name stands in parentheses and may hold some itself.
        let Some((head, fields)) = stat.rsplit_once(')') else { break };
        let name = head.split_once('(').map_or("", |(_, name)| name).to_owned();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
        let (Some(parent), Some(since)) = (number(1), number(19)) else { break };
        found.push((pid, name, since));
        pid = u32::try_from(parent).unwrap_or(0);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_job_have_one_name_and_other_processes_their_own() {
        let chain =
            |first: u32| vec![(first, "sluice".into(), 7), (40, "hydra_pmi_proxy".into(), 5)];
        let with = |set: &'static [(&'static str, &'static str)], first: u32| {
            let variable = move |name: &str| {
                set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
            };
            run_of(&variable, || chain(first))
        };
        assert_eq!(with(&[("PMIX_NAMESPACE", "prterun-1@1")], 3), "pmix prterun-1@1");
        assert_eq!(with(&[("PMI_RANK", "0")], 3), "hydra_pmi_proxy 40-5");
        assert_eq!(with(&[("PMI_RANK", "1")], 4), "hydra_pmi_proxy 40-5");
        assert_eq!(with(&[], 3), "process 3-7");
        assert_ne!(with(&[], 3), with(&[], 4));
        let slurm = [("SLURM_JOB_ID", "9"), ("SLURM_STEP_ID", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(with(Box::leak(Box::new(slurm)), 3), "slurm 9.1");
        assert_eq!(with(&[(RUN_VARIABLE, "x")], 3), "x");
        // In a batch script, which is no rank, two runs are two.
        assert_eq!(with(&[("SLURM_JOB_ID", "9")], 3), "process 3-7");
    }

    #[test]
    fn this_process_is_its_own_first_ancestor() {
        let found = ancestors(std::process::id());
        assert_eq!(found[0].0, std::process::id());
        assert!(found.len() > 1 && found[0].2 > 0);
    }
}
