//! A bed with both daemons and the test plugins.

use std::fs;
use std::path::PathBuf;

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, Plugins, Result, build_plugin, line_differences,
    set_fixed_times,
};

use crate::rows::Row;
use crate::told;

/// The clients' names: as long as each other, so that lengths are the same.
pub const NAMES: [&str; 2] = ["refer", "under"];

pub struct Stage {
    pub bed: Bed,
    rows: Vec<Row>,
}

impl Stage {
    /// Builds the plugins and raises the bed.
    pub fn set(rows: &[Row]) -> Result<Self> {
        let daemons = [Fd::Stock, Fd::under_test()?];
        let clients = daemons.into_iter().zip(NAMES).map(|(fd, name)| ClientOptions::new(fd).named(name));
        let mut options = BedOptions::new("plugins", clients)?;
        options.every_message = true;
        let plugins = options.folder.make("plugins")?;
        build_plugin("tp", &[], &plugins.join("tp-fd.so"))?;
        for (client, name) in options.clients.iter_mut().zip(NAMES) {
            client.plugins = Plugins::In(plugins.clone());
            options.folder.make(&format!("work/{name}/trace"))?;
        }
        let tree = options.source()?;
        for name in ["one.txt", "two.dat", "three.txt"] {
            fs::write(tree.join(name), name).unwrap();
        }
        set_fixed_times(&tree)?;
        let here = |line: &String| line.replace("TREE", &tree.to_string_lossy());
        let set = |row: &Row| {
            let inside = row.lines.iter().map(here);
            let lines = ["Include {".to_owned()].into_iter().chain(inside).chain(["}".to_owned()]);
            FileSet { name: row.name.to_owned(), lines: lines.collect() }
        };
        options.file_sets = rows.iter().map(set).collect();
        for (row, name) in rows.iter().flat_map(|row| NAMES.map(|name| (row, name))) {
            let accurate = if row.is_accurate { "yes" } else { "no" };
            options.director_resources.push(format!(
                "Job {{\nName = \"{name}-{row}\"\nType = Backup\nLevel = Full\nClient = {name}-fd\nFileSet = \"{row}\"\n\
                 Storage = {name}\nPool = {name}\nMessages = Standard\nAccurate = {accurate}\n\
                 Maximum Concurrent Jobs = 10\n}}",
                row = row.name
            ));
        }
        Ok(Self { bed: Bed::start(options)?, rows: rows.to_vec() })
    }

    /// Runs all rows at one level with both daemons, all at once.
    pub fn run_all(&self, level: &str) -> Result<Vec<(&Row, [JobResult; 2])>> {
        let command = |row: &Row| NAMES.map(|name| format!("run job={name}-{} level={level} yes", row.name));
        let jobs = self.bed.queue_all(&self.rows.iter().flat_map(command).collect::<Vec<_>>())?;
        self.bed.wait_for_reports(&jobs)?;
        let pairs = self.rows.iter().zip(jobs.chunks(2));
        pairs.map(|(row, pair)| Ok((row, [self.bed.result(pair[0])?, self.bed.result(pair[1])?]))).collect()
    }

    /// The trace of a job's plugins.
    pub fn trace(&self, name: &str, job: u32) -> Vec<String> {
        let path: PathBuf = self.bed.folder().join("work").join(name).join(format!("trace/job-{job}"));
        let text = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(ToOwned::to_owned).collect()
    }

    /// What differs between a backup by the stock daemon and the same one by the other.
    pub fn differences(&self, what: &str, jobs: &[JobResult; 2]) -> Result<Vec<String>> {
        let mut sides = Vec::new();
        for (name, job) in NAMES.iter().zip(jobs) {
            let trace = told::plain_trace(&self.trace(name, job.row.id), job, name);
            let records = told::records(self.bed.records(&job.row, name))?;
            let rows = told::catalog(self.bed.catalog(), job.row.id)?;
            sides.push([job.plain_messages(name), trace, records, rows, told::report(job)]);
        }
        if std::env::var_os("PLUGIN_LOGS").is_some() {
            for part in &sides[0] {
                println!("{what}\n{}", part.join("\n"));
            }
        }
        let names = ["messages", "trace", "records", "catalog", "report"];
        let parts = names.iter().zip(sides[0].iter().zip(&sides[1]));
        Ok(parts.flat_map(|(part, (stock, ours))| line_differences(&format!("{what}: {part}"), stock, ours)).collect())
    }
}
