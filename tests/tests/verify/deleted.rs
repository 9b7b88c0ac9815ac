//! An accurate Verify of the data of a job that has recorded a file as deleted, which the Director
//! does not list.

use std::fs;

use bed::{Bed, BedOptions, ClientOptions, Fd, Result, next_second, verify_job};

#[test]
fn a_verify_of_a_job_with_deleted_files_is_good() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::new("verify-deleted", [ClientOptions::new(fd).named("test")])?;
    options.clients[0].job = vec!["Accurate = yes".to_owned()];
    options.director_resources = vec![verify_job("test", "Source", "Accurate = yes")];
    let source = options.source()?;
    for name in ["stays", "goes"] {
        fs::write(source.join(name), name).unwrap();
    }
    let bed = Bed::start(options)?;
    bed.backup("test", "level=Full")?.must_be_good()?;
    next_second()?;
    fs::remove_file(source.join("goes")).unwrap();
    let job = bed.backup("test", "level=Incremental")?.must_be_good()?;
    assert_eq!(job.row.files, 2, "the directory, and what is deleted: {}", job.log);
    let verified = bed.run(&format!("run job=verify-test level=Data jobid={} yes", job.row.id))?;
    let expected = if fd == Fd::Stock { 'D' } else { 'T' };
    assert_eq!(verified.row.status, expected, "{}", verified.log);
    assert!(!verified.log.contains("Not in the Catalog"), "{}", verified.log);
    Ok(())
}
