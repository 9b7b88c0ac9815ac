//! Volumes that are of no use any more.

use std::fs;

use bed::{Bed, BedError, JobResult, Result};

/// Removes the volumes of a job of this client, which makes room for the next job.
pub(crate) fn remove_volumes(bed: &Bed, job: &JobResult, name: &str) -> Result<()> {
    let folder = bed.folder().join("volumes").join(name);
    for volume in bed.catalog().volumes(job.row.id)? {
        bed.console(&[&format!("delete volume={volume} yes")])?;
        let path = folder.join(volume);
        fs::remove_file(&path).map_err(BedError::file("remove", &path))?;
    }
    Ok(())
}
