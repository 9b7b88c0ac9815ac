//! A bed with the daemon under test and the test plugins.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Folder, JobResult, Plugins, Result, StockRecord, build_plugin,
    in_order_of_names, job_resource, line_differences, mount_memory, set_fixed_times,
};

use crate::rows::{Restore, Row};
use crate::told;

/// The client under test, and the stock daemon beside it where each restores what the other saved;
/// as long as each other, so that lengths are the same. With `-opt` behind they are those of
/// clients that have only the option plugin, with `-bare` those without any.
pub(crate) const NAME: &str = "under";
pub(crate) const OTHER: &str = "refer";

/// What is compared of a job, part by part.
type Parts = Vec<(&'static str, Vec<String>)>;

pub(crate) struct Stage {
    pub(crate) bed: Bed,
    rows: Vec<Row>,
}

impl Stage {
    /// Builds the plugins and raises the bed with these daemons.
    pub(crate) fn set(rows: &[Row], daemons: &[(Fd, &str)]) -> Result<Self> {
        let clients = ["", "-opt", "-bare"]
            .map(|end| daemons.iter().map(move |(fd, name)| ClientOptions::new(*fd).named(&format!("{name}{end}"))));
        let mut options = BedOptions::new("test-plugins", clients.into_iter().flatten())?;
        options.every_message = true;
        let plugins = plugins_in(&options.folder)?;
        let (only_opt, bare) = (options.folder.make("plugins-opt")?, options.folder.make("plugins-bare")?);
        fs::copy(plugins.join("opt-fd.so"), only_opt.join("opt-fd.so")).unwrap();
        for client in &mut options.clients {
            let directory = match client.name.rsplit('-').next() {
                Some("opt") => &only_opt,
                Some("bare") => &bare,
                _ => &plugins,
            };
            client.plugins = Plugins::In(directory.clone());
            client.settings.push("plugins.bpipe = \"off\"".to_owned());
            options.folder.make(&format!("work/{}/trace", client.name))?;
        }
        let tree = options.source()?;
        plant(&tree)?;
        let here = |line: &String| line.replace("TREE", &tree.to_string_lossy());
        let set = |row: &Row| FileSet { name: row.name.to_owned(), lines: row.lines.iter().map(here).collect() };
        options.file_sets = rows.iter().map(set).collect();
        for (row, (_, name)) in rows.iter().flat_map(|row| daemons.iter().map(move |daemon| (row, daemon))) {
            let accurate = if row.is_accurate { "yes" } else { "no" };
            let (job, set) = (format!("{name}-{}", row.name), row.name);
            let more = format!("Type = Backup\nLevel = Full\nAccurate = {accurate}\nMaximum Concurrent Jobs = 10");
            options.director_resources.push(job_resource(&job, name, set, &more));
            options.director_resources.extend(row.verify.map(|option| {
                let more =
                    format!("Type = Verify\nLevel = Data\nVerify Job = \"{job}\"\nPlugin Options = \"{option}\"");
                job_resource(&format!("verify-{job}"), name, set, &more)
            }));
        }
        Ok(Self { bed: Bed::start(options)?, rows: rows.to_vec() })
    }

    /// Has a daemon run all rows that have this level, all at once.
    pub(crate) fn run_all(&self, name: &str, level: &str) -> Result<Vec<(&Row, JobResult)>> {
        let rows: Vec<_> = self.rows.iter().filter(|row| row.levels.contains(&level)).collect();
        let command = |row: &&Row| format!("run job={name}-{} level={level} yes", row.name);
        let jobs = self.bed.run_all(&rows.iter().map(command).collect::<Vec<_>>())?;
        rows.into_iter().zip(jobs).map(|(row, job)| Ok((row, self.bed.result(job)?))).collect()
    }

    /// Restores what a daemon has saved with a daemon, and says what came of it.
    pub(crate) fn restore(&self, restore: &Restore, backup: &JobResult, from: &str, onto: &str) -> Result<Parts> {
        let name = format!("{onto}{}", restore.onto);
        let place = self.bed.folder().join(format!("restored-{}-{from}-{onto}", restore.label()));
        let trace = self.bed.folder().join("work").join(&name).join("trace");
        let switches: Vec<_> = restore.switches.iter().map(|switch| trace.join(switch)).collect();
        for switch in &switches {
            fs::write(switch, "").unwrap();
        }
        let saved = backup.row.id;
        let command = bed::Restore { job: saved, from, onto: &name, to: &place, replace: "always" }.command();
        // The name of the job is recorded.
        let job = self.bed.run(&command.replacen("restore ", "restore restorejob=restore ", 1))?;
        for switch in &switches {
            fs::remove_file(switch).unwrap();
        }
        let shown = |lines: Vec<String>| {
            let plain = |line: String| {
                line.replace(&*place.to_string_lossy(), "WHERE").replace(&format!("job={saved} "), "job=SAVED ")
            };
            lines.into_iter().map(plain).collect::<Vec<_>>()
        };
        let mut trace = told::plain_trace(&self.trace(&name, job.row.id), job.row.id, &name);
        if restore.row == "restored-metadata" {
            // The stock daemon ends the file between two plugins' event 6.
            trace.sort();
        }
        Ok(vec![
            ("messages", shown(told::messages(&job, &name))),
            ("trace", shown(trace)),
            ("tree", self.tree(&place)),
            ("report", told::report_of_restore(&job)),
        ])
    }

    /// Saves the only row at two levels, restores what both have, and says what came of it: what is
    /// told of files and what they are.
    pub(crate) fn restore_chain(&self, name: &str) -> Result<(Vec<String>, Vec<String>)> {
        let mut saved = Vec::new();
        for level in ["Full", "Incremental"] {
            saved.extend(self.run_all(name, level)?.into_iter().map(|(_, job)| job.row.id.to_string()));
        }
        let place = self.bed.folder().join(format!("chain-{name}"));
        let (to, jobs) = (place.display(), saved.join(","));
        let how = "replace=always restorejob=restore all done yes";
        let job = self.bed.run(&format!("restore jobid={jobs} client={name}-fd where={to} {how}"))?;
        let messages = told::messages(&job, name).into_iter().filter(|line| line.contains("/@r/"));
        let messages = messages.map(|line| line.replace(&*place.to_string_lossy(), "WHERE"));
        Ok((messages.collect(), told::tree(&place)))
    }

    /// What was restored to a place, without the directories that only lead to the tree.
    fn tree(&self, place: &Path) -> Vec<String> {
        let tree = self.bed.folder().join("source");
        let tree = tree.strip_prefix("/").unwrap_or(&tree);
        let leads =
            |line: &String| tree.ancestors().skip(1).any(|above| line.starts_with(&format!("{} ", above.display())));
        let lines = told::tree(place).into_iter().filter(|line| !leads(line));
        lines.map(|line| line.replace(&tree.display().to_string(), "TREE")).collect()
    }

    /// Verifies the data of each row that wants it.
    pub(crate) fn verify_all(&self) -> Result<Vec<(&Row, Parts)>> {
        let verify = |row| {
            let row: &Row = row;
            let job = self.bed.run(&format!("run job=verify-{NAME}-{} yes", row.name))?;
            let trace = told::plain_trace(&self.trace(NAME, job.row.id), job.row.id, NAME);
            let catalog = told::catalog(self.bed.catalog(), job.row.id, told::numbers)?;
            let (messages, report) = (told::messages(&job, NAME), told::report_of_verify(&job));
            Ok((row, vec![("messages", messages), ("trace", trace), ("catalog", catalog), ("report", report)]))
        };
        self.rows.iter().filter(|row| row.verify.is_some()).map(verify).collect()
    }

    /// The trace of a job's plugins.
    fn trace(&self, name: &str, job: u32) -> Vec<String> {
        let path: PathBuf = self.bed.folder().join("work").join(name).join(format!("trace/job-{job}"));
        let text = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(ToOwned::to_owned).collect()
    }

    /// What a backup left.
    pub(crate) fn parts(&self, row: &Row, job: &JobResult) -> Result<Parts> {
        let mut messages = told::messages(job, NAME);
        let mut trace = told::plain_trace(&self.trace(NAME, job.row.id), job.row.id, NAME);
        let mut records = told::records(self.bed.records(&job.row, NAME))?;
        // Of a job that failed it is chance what the Storage Daemon still wrote, and how far a
        // plugin had come: ours calls it ahead of what is sent, and not again after a failure.
        if job.row.status != 'T' {
            messages.sort();
            let late = [" startBackupFile ", " checkStream ", " endBackupFile "];
            trace.retain(|line| !late.iter().any(|call| line.contains(call)));
            records.clear();
        }
        let mut parts = vec![("messages", messages)];
        // A documented difference: here the files go on.
        if row.name != "metadata-refused" {
            let catalog = told::catalog(self.bed.catalog(), job.row.id, told::numbers)?;
            parts.extend([("trace", trace), ("records", records), ("catalog", catalog), ("report", told::report(job))]);
        }
        Ok(parts)
    }

    /// What differs from the stock daemon in the parts of one job.
    pub(crate) fn differences(&self, record: &StockRecord, what: &str, row: &Row, parts: Parts) -> Result<Vec<String>> {
        record.differences_of_parts(self.bed.folder(), what, &row.lines.join("\n"), parts)
    }

    pub(crate) fn row(&self, name: &str) -> &Row {
        self.rows.iter().find(|row| row.name == name).unwrap()
    }
}

/// What differs between two restores, whichever daemon has saved and restored.
pub(crate) fn between(what: &str, stock: &Parts, ours: &Parts) -> Vec<String> {
    let plain = |lines: &[String]| -> Vec<_> {
        lines.iter().map(|line| line.replace(NAME, "client").replace(OTHER, "client")).collect()
    };
    let pairs = stock.iter().zip(ours);
    let told = pairs
        .map(|((part, stock), (_, ours))| line_differences(&format!("{what}: {part}"), &plain(stock), &plain(ours)));
    told.flatten().collect()
}

/// Builds the plugins, and says where they are: where they are loaded in the same order everywhere.
pub(crate) fn plugins_in(folder: &Folder) -> Result<PathBuf> {
    let plugins = folder.make("plugins")?;
    mount_memory(&plugins)?;
    for name in ["tp", "opt", "ver", "inc"] {
        build_plugin(name, &[], &plugins.join(format!("{name}-fd.so")))?;
    }
    in_order_of_names(&plugins)?;
    Ok(plugins)
}

/// The files of the bed, all with fixed times, and read in the same order everywhere.
pub(crate) fn plant(tree: &Path) -> Result<()> {
    mount_memory(tree)?;
    let files = [
        ("opt/a.ok", "Hello Option"),
        ("opt/b.skip", "skipped"),
        ("opt/c.core", "left to the core"),
        ("opt/d.error", "also"),
        ("opt/e.more", "also"),
        ("opt/empty.ok", ""),
        ("opt/f.offsets", "offsets"),
        ("opt/g.sparse", "sparse"),
        ("opt/h.lies", "lies"),
        ("opt/i.noopen", "not opened"),
        ("digests/a", "a"),
        ("digests/z", "z"),
        ("verify/plain", "plain"),
        ("verify/empty", ""),
        ("verify/v.virus", "virus"),
        ("inc/plain", "plain"),
        ("inc/excluded", "excluded"),
        ("inc/a.wild", "wild"),
        ("inc/b.regex", "regex"),
        ("inc/base.x", "base"),
        ("inc/sub/below", "below"),
        ("commands", "tp:reg=/@tp/by-file,data=x\n\ntp:reg=/@tp/last,data=x\n"),
    ];
    for (name, text) in files {
        let path = tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    std::os::unix::fs::symlink("a.ok", tree.join("opt/link.ok")).unwrap();
    for (name, _) in files {
        let path = tree.join(name);
        set_fixed_times(&path)?;
        set_fixed_times(path.parent().unwrap())?;
    }
    set_fixed_times(&tree.join("opt/link.ok"))?;
    in_order_of_names(tree)?;
    Ok(())
}
