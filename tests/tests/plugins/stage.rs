//! A bed with both daemons and the test plugins.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, Folder, JobResult, Plugins, Result, build_plugin, line_differences,
    set_fixed_times,
};

use crate::rows::{Restore, Row};
use crate::told;

/// The clients' names: as long as each other, so that lengths are the same. With `-opt` behind they
/// are those of clients that have only the option plugin, with `-bare` those without any.
pub(crate) const NAMES: [&str; 2] = ["refer", "under"];

pub(crate) struct Stage {
    pub(crate) bed: Bed,
    rows: Vec<Row>,
}

impl Stage {
    /// Builds the plugins and raises the bed.
    pub(crate) fn set(rows: &[Row]) -> Result<Self> {
        let daemons = [Fd::Stock, Fd::under_test()?];
        let clients = ["", "-opt", "-bare"].map(|end| {
            daemons.into_iter().zip(NAMES).map(move |(fd, name)| ClientOptions::new(fd).named(&format!("{name}{end}")))
        });
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
        for (row, name) in rows.iter().flat_map(|row| NAMES.map(|name| (row, name))) {
            let accurate = if row.is_accurate { "yes" } else { "no" };
            options.director_resources.push(format!(
                "Job {{\nName = \"{name}-{row}\"\nType = Backup\nLevel = Full\nClient = {name}-fd\nFileSet = \"{row}\"\n\
                 Storage = {name}\nPool = {name}\nMessages = Standard\nAccurate = {accurate}\n\
                 Maximum Concurrent Jobs = 10\n}}",
                row = row.name
            ));
            options.director_resources.extend(row.verify.map(|option| {
                format!(
                    "Job {{\nName = \"verify-{name}-{row}\"\nType = Verify\nLevel = Data\nClient = {name}-fd\n\
                     FileSet = \"{row}\"\nStorage = {name}\nPool = {name}\nMessages = Standard\n\
                     Verify Job = \"{name}-{row}\"\nPlugin Options = \"{option}\"\n}}",
                    row = row.name
                )
            }));
        }
        Ok(Self { bed: Bed::start(options)?, rows: rows.to_vec() })
    }

    /// Runs all rows that have this level with both daemons, all at once.
    pub(crate) fn run_all(&self, level: &str) -> Result<Vec<(&Row, [JobResult; 2])>> {
        let rows: Vec<_> = self.rows.iter().filter(|row| row.levels.contains(&level)).collect();
        let command = |row: &&Row| NAMES.map(|name| format!("run job={name}-{} level={level} yes", row.name));
        let jobs = self.bed.queue_all(&rows.iter().flat_map(command).collect::<Vec<_>>())?;
        self.bed.wait_for_reports(&jobs)?;
        let pairs = rows.into_iter().zip(jobs.chunks(2));
        pairs.map(|(row, pair)| Ok((row, [self.bed.result(pair[0])?, self.bed.result(pair[1])?]))).collect()
    }

    /// Restores what both daemons saved in these jobs, and says by which client and where to.
    fn restore(&self, restore: &Restore, backups: &[JobResult; 2]) -> Result<[(String, JobResult, PathBuf); 2]> {
        let label = restore.label();
        let clients = NAMES.map(|name| format!("{name}{}", restore.onto));
        let places = [0, 1].map(|side| self.bed.folder().join(format!("restored-{label}-{side}")));
        let command = |side: usize| {
            let saved = side ^ usize::from(restore.is_crossed);
            bed::Restore {
                job: backups[saved].row.id,
                from: NAMES[saved],
                onto: &clients[side],
                to: &places[side],
                replace: "always",
            }
            .command()
        };
        let switches = || {
            let each = restore.switches.iter().flat_map(|switch| clients.iter().map(move |client| (client, switch)));
            each.map(|(client, switch)| self.bed.folder().join("work").join(client).join("trace").join(switch))
        };
        switches().for_each(|switch| fs::write(switch, "").unwrap());
        let jobs = self.bed.queue_all(&[command(0), command(1)])?;
        self.bed.wait_for_reports(&jobs)?;
        switches().for_each(|switch| fs::remove_file(switch).unwrap());
        let ran = [self.bed.result(jobs[0])?, self.bed.result(jobs[1])?];
        let mut sides = clients.into_iter().zip(ran).zip(places).map(|((client, job), place)| (client, job, place));
        Ok([sides.next().unwrap(), sides.next().unwrap()])
    }

    /// Restores what both daemons saved in these jobs, and says what differs.
    pub(crate) fn differences_of_restores(&self, restore: &Restore, backups: &[JobResult; 2]) -> Result<Vec<String>> {
        let mut sides = Vec::new();
        for (side, (name, job, place)) in self.restore(restore, backups)?.into_iter().enumerate() {
            let saved = backups[side ^ usize::from(restore.is_crossed)].row.id;
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
            sides.push(vec![
                shown(told::messages(&job, &name)),
                shown(trace),
                told::tree(&place),
                told::report_of_restore(&job),
            ]);
        }
        let what = format!("restore {}", restore.label());
        Ok(differences(&what, &["messages", "trace", "tree", "report"], &sides))
    }

    /// Verifies the data of each row that wants it, and says what differs.
    pub(crate) fn differences_of_verifies(&self) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for row in self.rows.iter().filter(|row| row.verify.is_some()) {
            let commands = NAMES.map(|name| format!("run job=verify-{name}-{} yes", row.name));
            let jobs = self.bed.queue_all(&commands)?;
            self.bed.wait_for_reports(&jobs)?;
            let mut sides = Vec::new();
            for (name, job) in NAMES.iter().zip(jobs) {
                let job = self.bed.result(job)?;
                let trace = told::plain_trace(&self.trace(name, job.row.id), job.row.id, name);
                let rows = told::catalog(self.bed.catalog(), job.row.id)?;
                sides.push(vec![told::messages(&job, name), trace, rows, told::report_of_verify(&job)]);
            }
            let parts = ["messages", "trace", "catalog", "report"];
            wrong.extend(differences(&format!("verify {}", row.name), &parts, &sides));
        }
        Ok(wrong)
    }

    /// The trace of a job's plugins.
    pub(crate) fn trace(&self, name: &str, job: u32) -> Vec<String> {
        let path: PathBuf = self.bed.folder().join("work").join(name).join(format!("trace/job-{job}"));
        let text = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(ToOwned::to_owned).collect()
    }

    /// What differs between a backup by the stock daemon and the same one by the other.
    pub(crate) fn differences(&self, what: &str, jobs: &[JobResult; 2]) -> Result<Vec<String>> {
        let mut sides = Vec::new();
        for (name, job) in NAMES.iter().zip(jobs) {
            let trace = told::plain_trace(&self.trace(name, job.row.id), job.row.id, name);
            let records = told::records(self.bed.records(&job.row, name))?;
            let rows = told::catalog(self.bed.catalog(), job.row.id)?;
            sides.push(vec![told::messages(job, name), trace, records, rows, told::report(job)]);
        }
        // Of a job that failed it is chance what the Storage Daemon still wrote, and how far a
        // plugin had come: ours calls it ahead of what is sent, and not again after a failure.
        if jobs.iter().any(|job| job.row.status != 'T') {
            let has_none = sides.iter().any(|side| side[2] == ["no records"]);
            for side in &mut sides {
                side[0].sort();
                let late = [" startBackupFile ", " checkStream ", " endBackupFile "];
                side[1].retain(|line| !late.iter().any(|call| line.contains(call)));
                if has_none {
                    side[2].clear();
                }
            }
        }
        let names = ["messages", "trace", "records", "catalog", "report"];
        // A documented difference: here the files go on.
        let compared = if what.starts_with("metadata-refused ") { 1 } else { names.len() };
        Ok(differences(what, &names[..compared], &sides))
    }
}

/// Writes what both sides said to the folder that `PLUGIN_LOGS` names.
pub(crate) fn keep(what: &str, sides: &[&Vec<String>; 2]) {
    if let Some(folder) = std::env::var_os("PLUGIN_LOGS") {
        for (name, lines) in NAMES.iter().zip(sides) {
            fs::write(Path::new(&folder).join(format!("{what}.{name}")), lines.join("\n")).unwrap();
        }
    }
}

/// What differs in any part.
pub(crate) fn differences(what: &str, parts: &[&str], sides: &[Vec<Vec<String>>]) -> Vec<String> {
    let whole = [0, 1].map(|side: usize| sides[side].join(&"----".to_owned()));
    keep(what, &[&whole[0], &whole[1]]);
    let pairs = parts.iter().zip(sides[0].iter().zip(&sides[1]));
    pairs.flat_map(|(part, (stock, ours))| line_differences(&format!("{what}: {part}"), stock, ours)).collect()
}

/// Builds the plugins, and says where they are.
pub(crate) fn plugins_in(folder: &Folder) -> Result<PathBuf> {
    let plugins = folder.make("plugins")?;
    for name in ["tp", "opt", "ver", "inc"] {
        build_plugin(name, &[], &plugins.join(format!("{name}-fd.so")))?;
    }
    Ok(plugins)
}

/// The files of the bed, all with fixed times.
pub(crate) fn plant(tree: &Path) -> Result<()> {
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
    set_fixed_times(&tree.join("opt/link.ok"))
}
