//! A Verify that is canceled in the middle of a file: ours ends at once and goes on with the next
//! job. The stock daemon reads the file to its end first.
//!
//! The file is a hole of a tebibyte: no daemon reads it to its end while a test waits.

use std::fs::File;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, PATIENCE, Result, job_resource, wait_for};

const HOLE: u64 = 1 << 40;

/// The stock daemon: the job is canceled, and runs all the same.
fn still_reads(bed: &Bed) -> Result<()> {
    let read = |status: &str| {
        let digits: String = status.split("ReadBytes=").nth(1)?.split_whitespace().next()?.replace(',', "");
        digits.parse::<u64>().ok()
    };
    let first = read(&bed.console(&["status client=test-fd"])?).unwrap();
    wait_for("the canceled job to read more", PATIENCE, || {
        let status = bed.console(&["status client=test-fd"])?;
        Ok(if read(&status).is_some_and(|now| now > first + 100_000_000) { Ok(()) } else { Err(status) })
    })
}

#[test]
fn a_verify_of_a_huge_file_can_be_canceled() -> Result<()> {
    let mut options = BedOptions::new("verify-cancel", [ClientOptions::new(Fd::under_test()?).named("test")])?;
    let source = options.source()?;
    File::create(source.join("hole")).unwrap().set_len(HOLE).unwrap();
    let small = options.folder.path().join("small");
    std::fs::write(&small, b"small\n").unwrap();
    options.file_sets = vec![
        FileSet::new("huge", &["Signature = MD5", "Verify = s5"], &[&source]),
        FileSet::new("small", &["Signature = MD5", "Verify = s5"], &[&small]),
    ];
    for set in ["huge", "small"] {
        let verify = job_resource(&format!("verify-{set}"), "test", set, "Type = Verify\nLevel = InitCatalog");
        options.director_resources.push(verify);
    }
    let bed = Bed::start(options)?;
    let job = bed.queue("run job=verify-huge yes")?;
    let processing = format!("Processing file: {}", source.join("hole").display());
    let running = wait_for(&processing, PATIENCE, || {
        let status = bed.console(&["status client=test-fd"])?;
        let reads = status.contains(&processing) && !status.contains("ReadBytes=0");
        Ok(if reads { Ok(status) } else { Err(status) })
    })?;
    assert!(running.contains("Verify Init Catalog Verify Job started"), "{running}");
    bed.console(&[&format!("cancel jobid={job} yes")])?;
    if Fd::under_test()? == Fd::Stock {
        return still_reads(&bed);
    }
    let ended = bed.wait_for_status("test", "No Jobs running.")?;
    let history = ended.rsplit("Terminated Jobs:").next().unwrap_or_default();
    let row = history.lines().find(|line| line.split_ascii_whitespace().next() == Some(&job.to_string()));
    assert!(row.is_some_and(|row| row.contains("Cancel")), "{ended}");
    assert_eq!(bed.wait(job)?.row.status, 'A');
    let next = bed.run("run job=verify-small level=InitCatalog yes")?.must_be('T')?;
    assert_eq!(next.row.files, 1);
    Ok(())
}
