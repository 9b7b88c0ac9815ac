//! Jobs whose connection to the Storage Daemon ends in the middle (`setdebug … hangup=N`), and that
//! go on: accurate ones, which the Director runs again by itself, and a base job and a Full on it,
//! which wait for the operator. What they leave is whole, and that of the stock daemon. Where they
//! are cut off among the names of an inode, what the stock daemon leaves is not whole.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use bed::{
    Bed, BedOptions, Fd, FileRow, JobResult, JobRow, Noise, Result, Times, TreeRules, below, compare_trees,
    job_resource, line_differences,
};

const CLIENTS: [&str; 2] = ["refer", "under"];
const DIRECTORIES: u64 = 16;
const FILES: u64 = 42;

/// Names of an inode.
const NAMES: usize = 30;
const OLD: &[u8] = b"before the job was cut off";
const NEW: &[u8] = b"before it was resumed";

/// A restore of several jobs leaves the access times of the tree behind, and with the stock daemon
/// the times of directories that are made before their files.
const RULES: TreeRules = TreeRules { times: Times::Ignored, access_times: false, holes: false, ..TreeRules::EXACT };

/// What a restore has made of names.
struct Names {
    restored: JobResult,
    /// Those that have not the expected content.
    wrong: Vec<PathBuf>,
    inodes: BTreeSet<u64>,
}

struct Stage {
    bed: Bed,
    source: PathBuf,
}

impl Stage {
    /// Besides `backup-CLIENT` there is `base-CLIENT`, and `on-base-CLIENT`, a Full on that.
    fn set(label: &str) -> Result<Self> {
        Self::with(label, "yes")
    }

    /// The same, with this `Reschedule Incomplete Jobs`.
    fn with(label: &str, by_themselves: &str) -> Result<Self> {
        let mut options = BedOptions::side_by_side(label)?;
        let by_themselves = format!("Reschedule Incomplete Jobs = {by_themselves}");
        let again = ["Accurate = yes", &by_themselves, "Reschedule Interval = 1"];
        for (client, name) in options.clients.iter_mut().zip(CLIENTS) {
            name.clone_into(&mut client.name);
            client.job = again.map(str::to_owned).to_vec();
            for (job, level) in [("base", "Level = Base".to_owned()), ("on-base", format!("Base = base-{name}"))] {
                let more = format!("Type = Backup\nLevel = Full\n{level}\n{}", again.join("\n"));
                options.director_resources.push(job_resource(&format!("{job}-{name}"), name, "Source", &more));
            }
        }
        let source = options.source()?;
        Ok(Self { bed: Bed::start(options)?, source })
    }

    fn file(&self, directory: u64, file: u64) -> PathBuf {
        self.source.join(format!("directory {directory:02}/file {file:02}"))
    }

    /// Writes the files of these directories anew.
    fn write(&self, directories: Range<u64>, seed: u64) {
        for directory in directories {
            fs::create_dir_all(self.file(directory, 0).parent().unwrap()).unwrap();
            for file in 0..FILES {
                let mut noise = Noise::new(seed + directory * FILES + file);
                let length = 500 + noise.below(3000);
                fs::write(self.file(directory, file), noise.bytes(length)).unwrap();
            }
        }
    }

    /// A job that is cut off by this setting, and goes on by itself or by the operator's command.
    fn run(&self, client: &str, command: &str, setting: &str, by_itself: bool) -> Result<JobResult> {
        let job = self.begin(client, command, setting)?;
        if !by_itself {
            self.bed.wait(job)?.must_be('I')?;
            self.resume(job)?;
        }
        let ended = self.bed.wait_again(job, 1)?.must_be('T')?;
        for (told, times) in [("Debug hangup requested", 1), ("Rescheduled Job", usize::from(by_itself))] {
            assert_eq!(ended.log.matches(told).count(), times, "{told}: {}", ended.log);
        }
        Ok(ended)
    }

    fn begin(&self, client: &str, command: &str, setting: &str) -> Result<u32> {
        self.bed.console(&[&format!("setdebug client={client}-fd level=0 {setting}")])?;
        self.bed.queue(&format!("run {command} yes"))
    }

    fn resume(&self, job: u32) -> Result<()> {
        self.bed.console(&[&format!("resume incomplete jobid={job} yes")]).map(drop)
    }

    /// A job that has been cut off among the names of an inode.
    fn cut(&self, client: &str, command: &str) -> Result<JobResult> {
        let job = self.begin(client, command, "hangup=12")?;
        let cut = self.bed.wait(job)?.must_be('I')?;
        let sent = self.bed.catalog().files(job)?.len();
        assert!((2..NAMES).contains(&sent), "{sent} files");
        Ok(cut)
    }

    /// A directory with these names of one inode, whose content is [`OLD`].
    fn make_names(&self, directory: &str) -> Vec<PathBuf> {
        let directory = self.source.join(directory);
        fs::create_dir(&directory).unwrap();
        let names: Vec<_> = (0..NAMES).map(|number| directory.join(format!("name {number:02}"))).collect();
        let (first, others) = names.split_first().unwrap();
        fs::write(first, OLD).unwrap();
        for name in others {
            fs::hard_link(first, name).unwrap();
        }
        names
    }

    /// Restores these names as this command chooses.
    fn restore_names(&self, chosen: &str, names: &[PathBuf], content: &[u8]) -> Result<Names> {
        let to = self.bed.folder().join("restored");
        let restored = self.bed.run(&format!("restore {chosen} where={} replace=always all done yes", to.display()))?;
        let is_wrong = |name: &&PathBuf| fs::read(below(&to, name)).ok().as_deref() != Some(content);
        let wrong = names.iter().filter(is_wrong).cloned().collect();
        let inodes = names.iter().filter_map(|name| Some(fs::metadata(below(&to, name)).ok()?.ino())).collect();
        if to.exists() {
            fs::remove_dir_all(&to).unwrap();
        }
        Ok(Names { restored, wrong, inodes })
    }

    /// What is compared of a job.
    fn seen(&self, job: &JobResult) -> Result<Vec<String>> {
        let JobRow { id, files, bytes, read_bytes, errors, .. } = job.row;
        let rows = self.bed.catalog().files(id)?;
        let line =
            |row: &FileRow| format!("{} {} {}", row.file_index, row.path.escape_ascii(), row.digest.escape_ascii());
        let of_base = self.bed.catalog().rows(&["FileIndex"], &format!("FROM BaseFiles WHERE JobId = {id}"))?.len();
        let counts = format!("{files} files, {bytes} of {read_bytes} bytes, {errors} errors, {of_base} of the base");
        Ok([counts].into_iter().chain(rows.iter().map(line)).collect())
    }

    /// How often each name is in the catalog's list of what a job has saved.
    fn names_of(&self, job: &JobResult) -> Result<BTreeMap<PathBuf, usize>> {
        let mut names = BTreeMap::new();
        for row in self.bed.catalog().files(job.row.id)?.into_iter().filter(|row| row.file_index > 0) {
            *names.entry(PathBuf::from(OsString::from_vec(row.path))).or_default() += 1;
        }
        Ok(names)
    }

    /// The files of the tree from this directory on.
    fn tree(&self, first: u64) -> impl Iterator<Item = PathBuf> {
        let files = (first..DIRECTORIES).flat_map(|directory| (0..FILES).map(move |file| (directory, file)));
        files.map(|(directory, file)| self.file(directory, file)).filter(|path| path.exists())
    }

    /// Restores these jobs of a client, and says what the tree lacks.
    fn differences_of_restore(&self, client: &str, jobs: &[JobResult]) -> Result<Vec<String>> {
        let jobs: Vec<_> = jobs.iter().map(|job| job.row.id.to_string()).collect();
        let to = self.bed.folder().join(format!("restored-{}", jobs.join("-")));
        let restored = self.bed.run(&format!(
            "restore jobid={} client={client}-fd restoreclient={client}-fd where={} replace=always all done yes",
            jobs.join(","),
            to.display()
        ))?;
        restored.must_be_good()?;
        compare_trees(&self.source, &below(&to, &self.source), RULES)
    }
}

#[test]
fn accurate_jobs_that_are_run_again_are_whole() -> Result<()> {
    let stage = Stage::set("reruns")?;
    let mut jobs = [vec![], vec![]];
    for (level, setting) in [("Full", "hangup=300"), ("Incremental", "hangup=-500")] {
        stage.write(0..DIRECTORIES, jobs[0].len() as u64 * 1000);
        if level == "Incremental" {
            (0..FILES / 2).for_each(|file| fs::remove_file(stage.file(5, file)).unwrap());
        }
        let mut seen = Vec::new();
        for (jobs, client) in jobs.iter_mut().zip(CLIENTS) {
            let job = stage.run(client, &format!("job=backup-{client} level={level}"), setting, true)?;
            seen.push(stage.seen(&job)?);
            let names = stage.names_of(&job)?;
            assert!(stage.tree(0).all(|path| names.get(&path) == Some(&1)), "{level}: {names:?}");
            jobs.push(job);
            assert_eq!(stage.differences_of_restore(client, jobs)?, [""; 0], "{client} {level}");
        }
        assert_eq!(line_differences(level, &seen[0], &seen[1]), [""; 0]);
    }
    Ok(())
}

/// The Director gives a base job no list of what it has sent already: that is sent again. And it
/// gets no records of the files that a Full leaves to its base, if that Full was resumed; a restore
/// has to name both jobs (reference 02 §9.6).
#[test]
fn a_base_job_and_a_full_on_it_that_are_resumed_are_whole() -> Result<()> {
    let stage = Stage::set("reruns-base")?;
    let mut jobs = [vec![], vec![]];
    for (job, setting, first, sent_twice) in [("base", "hangup=300", 0, 300), ("on-base", "hangup=250", 1, 0)] {
        stage.write(first..DIRECTORIES, first * 1000);
        let mut seen = Vec::new();
        for (jobs, client) in jobs.iter_mut().zip(CLIENTS) {
            let ended = stage.run(client, &format!("job={job}-{client}"), setting, false)?;
            seen.push(stage.seen(&ended)?);
            let names = stage.names_of(&ended)?;
            assert!(stage.tree(first).all(|path| names.contains_key(&path)), "{job}: {names:?}");
            assert_eq!(names.values().filter(|times| **times == 2).count(), sent_twice, "{job}: {names:?}");
            assert_eq!(names.values().max(), Some(if sent_twice == 0 { &1 } else { &2 }), "{job}: {names:?}");
            jobs.push(ended);
            assert_eq!(stage.differences_of_restore(client, jobs)?, [""; 0], "{client} {job}");
        }
        assert_eq!(line_differences(job, &seen[0], &seen[1]), [""; 0]);
    }
    Ok(())
}

fn clients() -> Result<[(&'static str, bool); 2]> {
    let [refer, under] = CLIENTS;
    Ok([(refer, true), (under, Fd::under_test()? == Fd::Stock)])
}

/// A resumed job leaves two names of an inode that were saved as files. Each link leads to one of
/// them, so that no later job has to send a link again.
#[test]
fn jobs_after_one_that_was_resumed_among_the_names_of_an_inode_send_nothing() -> Result<()> {
    let stage = Stage::with("reruns-names", "no")?;
    for level in ["Full", "Incremental"] {
        let names = stage.make_names(level);
        for client in CLIENTS {
            let cut = stage.cut(client, &format!("job=backup-{client} level={level}"))?;
            stage.resume(cut.row.id)?;
            stage.bed.wait_again(cut.row.id, 1)?.must_be_good()?;
            for _ in 0..2 {
                let next = stage.bed.backup(client, "level=Incremental")?.must_be_good()?;
                assert_eq!(stage.names_of(&next)?, BTreeMap::new(), "{client} {level}");
            }
            for onto in CLIENTS {
                let chosen = format!("client={client}-fd restoreclient={onto}-fd fileset=Source select current");
                let Names { restored, wrong, inodes } = stage.restore_names(&chosen, &names, OLD)?;
                restored.must_be_good()?;
                assert!(wrong.is_empty(), "{client} {level} {onto}: {wrong:?}");
                // One of what was sent before the job was cut off, and one of the rest.
                assert_eq!(inodes.len(), 2, "{client} {level} {onto}");
            }
        }
    }
    Ok(())
}

/// Of a name that a job has saved twice, the Director takes the later record only if that is no
/// hard link (reference 02 §9.6). A Differential is an Incremental to the daemon.
#[test]
fn names_of_an_inode_that_changes_before_a_job_is_resumed_have_its_new_data() -> Result<()> {
    let stage = Stage::with("reruns-links", "no")?;
    for level in ["Full", "Incremental"] {
        let mut names = stage.make_names(level);
        let mut cut = Vec::new();
        for client in CLIENTS {
            cut.push(stage.cut(client, &format!("job=backup-{client} level={level}"))?.row.id);
        }
        // The name that the others link to is gone, and they are written to.
        let rows = stage.bed.catalog().files(cut[0])?.into_iter().filter(|row| !row.path.ends_with(b"/"));
        let first = rows.filter(|row| row.file_index > 0).min_by_key(|row| row.file_index).unwrap();
        let first = PathBuf::from(OsString::from_vec(first.path));
        fs::remove_file(&first).unwrap();
        names.retain(|name| *name != first);
        assert_eq!(names.len(), NAMES - 1, "{first:?}");
        fs::write(&names[0], NEW).unwrap();
        for ((client, is_stock), job) in clients()?.into_iter().zip(cut) {
            stage.resume(job)?;
            stage.bed.wait_again(job, 1)?.must_be_good()?;
            let jobs = [format!("jobid={job}"), "fileset=Source select current".to_owned()];
            for (onto, chosen) in CLIENTS.into_iter().flat_map(|onto| jobs.iter().map(move |chosen| (onto, chosen))) {
                let chosen = format!("{chosen} client={client}-fd restoreclient={onto}-fd");
                let Names { restored, wrong, .. } = stage.restore_names(&chosen, &names, NEW)?;
                restored.must_be_good()?;
                assert_eq!(wrong.is_empty(), !is_stock, "{level} {chosen}: {wrong:?}");
            }
        }
        fs::remove_dir_all(names[0].parent().unwrap()).unwrap();
    }
    Ok(())
}

/// The Director gives it no list, so it sends all names again. A restore takes the later record of
/// the first name, and the earlier ones of the links.
#[test]
fn a_base_job_that_is_resumed_among_the_names_of_an_inode_is_whole() -> Result<()> {
    let stage = Stage::with("reruns-base-links", "no")?;
    let names = stage.make_names("names");
    for (client, is_stock) in clients()? {
        let cut = stage.cut(client, &format!("job=base-{client}"))?;
        stage.resume(cut.row.id)?;
        stage.bed.wait_again(cut.row.id, 1)?.must_be_good()?;
        let chosen = format!("jobid={} client={client}-fd restoreclient=refer-fd", cut.row.id);
        let Names { restored, wrong, .. } = stage.restore_names(&chosen, &names, OLD)?;
        assert_eq!(wrong.is_empty(), !is_stock, "{client}: {wrong:?}, {}", restored.log);
        assert_eq!(restored.row.errors > 0, is_stock, "{client}: {}", restored.log);
    }
    Ok(())
}
