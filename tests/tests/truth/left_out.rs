//! What an Incremental, and a Full on a base, leave out.

use std::fs;

use bed::{Bed, BedOptions, Fd, FileSet, Restore, Result, below, job_resource};

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

/// Of three names of an inode, the Full saves the second as a file, too, because of its Options.
/// The catalog doesn't say which of the two the third one is a link to. (The stock daemon makes the
/// second a link and the third a file, and loses the second.)
#[test]
fn a_hard_link_is_whole_though_only_a_name_stands_that_was_saved_as_a_file() -> Result<()> {
    let mut options = BedOptions::side_by_side("mixed")?;
    let source = options.source()?;
    let directories = ["1", "2", "3"].map(|name| source.join(name));
    let [old, new] = ["old", "new"].map(|name| directories[0].join(name));
    let names = [new.join("first"), directories[1].join("second.iso"), directories[2].join("third")];
    directories[1..].iter().chain([&directories[0], &old]).for_each(|path| fs::create_dir(path).unwrap());
    fs::write(old.join("first"), "data").unwrap();
    names[1..].iter().for_each(|name| fs::hard_link(old.join("first"), name).unwrap());
    let paths = directories.map(|path| format!("File = \"{}\"", path.display())).join("\n");
    let lines = [
        "Include {",
        "Options {\nWildFile = \"*.iso\"\nHardLinks = no\nSignature = MD5\n}",
        "Options {\nSignature = MD5\n}",
        &paths,
        "}",
    ];
    options.file_sets = vec![FileSet { name: "Source".to_owned(), lines: lines.map(str::to_owned).to_vec() }];
    options.clients.iter_mut().for_each(|client| client.job.push("Accurate = yes".to_owned()));
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        bed.backup(client, "level=Full")?.must_be_good()?;
    }
    fs::rename(&old, &new).unwrap();
    for client in ["reference", "test"] {
        let is_ours = bed.client(client)?.options.fd == Fd::Ours;
        // The second one sends nothing again.
        for (sent, more) in [(true, is_ours), (false, false)] {
            let job = bed.backup(client, "level=Incremental")?.must_be_good()?;
            let saved: Vec<_> = bed.catalog().files(job.row.id)?.into_iter().filter(|row| row.file_index > 0).collect();
            let has = |end: &[u8]| saved.iter().any(|row| row.path.ends_with(end));
            assert_eq!([has(b"first"), has(b"second.iso"), has(b"third")], [sent, false, more], "{client}");
        }
        let to = bed.folder().join(format!("restored-{client}"));
        let restored = bed.run(&format!(
            "restore client={client}-fd fileset=Source where={} replace=always select current all done yes",
            to.display()
        ))?;
        let came = names.each_ref().map(|name| fs::read(below(&to, name)).is_ok_and(|data| data == b"data"));
        assert_eq!(came, [true, is_ours, true], "{client}: {}", restored.log);
        assert_eq!(restored.row.errors > 0, !is_ours, "{client}: {}", restored.log);
    }
    Ok(())
}
