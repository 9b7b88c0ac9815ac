//! What an Incremental, and a Full on a base, leave out.

use std::fs;

use bed::{Bed, BedOptions, Fd, FileSet, Restore, Result, job_resource};

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

/// The base job takes everything.
#[test]
fn a_full_on_a_base_restores_nothing_that_its_options_leave_out() -> Result<()> {
    let mut options = BedOptions::side_by_side("less")?;
    let source = options.source()?;
    fs::create_dir(source.join("left")).unwrap();
    for name in ["kept", "left.iso", "left/file"] {
        fs::write(source.join(name), "data").unwrap();
    }
    let less = [
        "Include {",
        "Options {\nExclude = yes\nWildFile = \"*.iso\"\nWildDir = \"*/left\"\n}",
        "Options {\nSignature = MD5\n}",
        &format!("File = \"{}\"", source.display()),
        "}",
    ];
    options.file_sets = vec![
        FileSet::new("Source", &["Signature = MD5"], &[&source]),
        FileSet { name: "Less".to_owned(), lines: less.map(str::to_owned).to_vec() },
    ];
    for client in ["reference", "test"] {
        let (base, full) = (format!("base-{client}"), format!("on-base-{client}"));
        let on_base = format!("Type = Backup\nLevel = Full\nAccurate = yes\nBase = {base}");
        options.director_resources.push(job_resource(&base, client, "Source", "Type = Backup\nLevel = Base"));
        options.director_resources.push(job_resource(&full, client, "Less", &on_base));
    }
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        let is_ours = bed.client(client)?.options.fd == Fd::Ours;
        bed.run(&format!("run job=base-{client} yes"))?.must_be_good()?;
        let full = bed.run(&format!("run job=on-base-{client} yes"))?.must_be_good()?;
        let to = bed.folder().join(format!("restored-{client}"));
        let restore = Restore { job: full.row.id, from: client, onto: client, to: &to, replace: "always" };
        bed.restore(&restore)?.must_be_good()?;
        let top = to.join(source.strip_prefix("/").unwrap());
        let came = ["kept", "left.iso", "left"].map(|name| top.join(name).exists());
        assert_eq!(came, [true, !is_ours, !is_ours], "{client}: {}", full.log);
    }
    Ok(())
}
