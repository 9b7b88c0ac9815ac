//! Jobs of the client that has plugins that misbehave.

use bed::{Bed, FileSet, JobResult, Result};

/// The client.
pub(crate) const CLIENT: &str = "ours";

/// A FileSet of these plugin commands.
pub(crate) fn set(name: &str, commands: &[String]) -> FileSet {
    let set = FileSet::new(name, &["Signature = MD5"], &[]);
    commands.iter().fold(set, |set, command| set.with(format!("Plugin = \"{command}\"")))
}

/// The lines that name a plugin.
pub(crate) fn about(job: &JobResult, name: &str) -> Vec<String> {
    job.log.lines().filter(|line| line.contains("JobId") && line.contains(name)).map(ToOwned::to_owned).collect()
}

/// Runs a Full of each FileSet, all at once.
pub(crate) fn run_all(bed: &Bed, sets: &[String]) -> Result<Vec<JobResult>> {
    let commands: Vec<_> =
        sets.iter().map(|set| format!("run job=backup-{CLIENT} fileset={set} level=Full yes")).collect();
    let jobs = bed.run_all(&commands)?;
    jobs.into_iter().map(|job| bed.result(job)).collect()
}
