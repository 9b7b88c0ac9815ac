//! What an Incremental leaves out.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;

use bed::{Bed, BedOptions, Fd, FileSet, Result, job_resource};

/// The Director names the job before in the command that has the level.
#[test]
fn a_job_with_accurate_in_its_name_is_none() -> Result<()> {
    let mut options = BedOptions::side_by_side("names")?;
    let source = options.source()?;
    fs::write(source.join("file"), "data").unwrap();
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5"], &[&source])];
    for client in ["reference", "test"] {
        let job = format!("not-accurate-{client}");
        options.director_resources.push(job_resource(&job, client, "Source", "Type = Backup\nLevel = Full"));
    }
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        let job = format!("job=not-accurate-{client}");
        let files = if bed.client(client)?.options.fd == Fd::Ours { 0 } else { 2 };
        assert_eq!(bed.run(&format!("run {job} level=Full yes"))?.must_be_good()?.row.files, 2);
        let answer = bed.console(&[&format!("estimate {job} level=Incremental")])?;
        assert!(answer.contains(&format!("2000 OK estimate files={files} ")), "{client}: {answer}");
        let incremental = bed.run(&format!("run {job} level=Incremental yes"))?.must_be_good()?;
        assert_eq!(incremental.row.files, files, "{client}: {}", incremental.log);
    }
    Ok(())
}
