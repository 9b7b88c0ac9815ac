//! The demonstration: ferrofd in the place of the stock File Daemon, under an unmodified Director,
//! Storage Daemon and console. Every claim is checked, and the exit status says whether all of them
//! held.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, JobResult, RecordRules, Restore, Result, TreeOptions,
    TreeRules, Usage, build_every_type, build_many_files, compare_records, compare_trees, measure_tree, read_once,
    reset_peak, set_fixed_times, usage,
};

use crate::say;

/// A real tree has at least this many entries.
const REAL_TREE: u64 = 20_000;
/// How often a long step reports its progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// The demonstration's command line.
pub(crate) struct Choice {
    pub(crate) short: bool,
    pub(crate) tree: Option<PathBuf>,
}

/// The demonstration in progress.
struct Demo {
    bed: Bed,
    trees: Vec<PathBuf>,
    interrupted: Arc<AtomicBool>,
    step: u32,
    /// What did not hold.
    differences: Vec<String>,
}

/// One daemon's job and what it took.
struct Measured {
    result: JobResult,
    used: Usage,
    seconds: f64,
}

/// Runs it; `true` if nothing differed.
pub(crate) fn run(choice: Choice) -> Result<bool> {
    let interrupted = bed::interrupted()?;
    bed::setup::root(&mut |step| say(step))?;
    let mut options = BedOptions::new("demo", [Fd::Ours, Fd::Stock].map(ClientOptions::new))?;
    let trees = choose_trees(choice, &options)?;
    let paths: Vec<_> = trees.iter().map(PathBuf::as_path).collect();
    let directives = ["Signature = MD5", "AclSupport = yes", "XattrSupport = yes"];
    options.file_sets = vec![FileSet::new("Demo", &directives, &paths)];
    let bed = Bed::start(options)?;
    say(
        "A Director, a Storage Daemon and a console of Bacula 15.0.3, unmodified, run on loopback with default TLS-PSK.",
    );
    let mut demo = Demo { bed, trees, interrupted, step: 0, differences: Vec::new() };
    demo.show()?;
    for difference in &demo.differences {
        say(&format!("DIFFERENT: {difference}"));
    }
    let equal = demo.differences.is_empty();
    say(if equal { "\nEverything is equal." } else { "\nNot everything is equal." });
    Ok(equal)
}

/// A real tree, and a small one with every type of file.
fn choose_trees(choice: Choice, options: &BedOptions) -> Result<Vec<PathBuf>> {
    let source = options.source()?;
    let types = source.join("every-type");
    build_every_type(&types, &TreeOptions::default())?;
    let real = if let Some(tree) = choice.tree {
        tree.canonicalize().map_err(BedError::file("find", &tree))?
    } else if choice.short {
        let many = source.join("many");
        build_many_files(&many, 7, 2000, 30_000)?;
        many
    } else {
        say("Looking for a real tree.");
        largest_tree()?
    };
    for tree in [&real, &types] {
        let (entries, bytes) = measure_tree(tree)?;
        say(&format!("To be saved: {}, {} entries, {} bytes.", tree.display(), grouped(entries), grouped(bytes)));
        // A first reading sets the access times that this host notes; from here on they stay.
        read_once(tree)?;
    }
    set_fixed_times(&source)?;
    Ok(vec![real, types])
}

/// `/usr/share` if it is large enough, else the largest of some others.
fn largest_tree() -> Result<PathBuf> {
    let mut best = (0, PathBuf::from("/usr/share"));
    for tree in ["/usr/share", "/usr/lib", "/usr", "/etc"] {
        let Ok((entries, _)) = measure_tree(Path::new(tree)) else { continue };
        if entries > best.0 {
            best = (entries, PathBuf::from(tree));
        }
        if best.0 >= REAL_TREE {
            break;
        }
    }
    if best.0 == 0 { Err(BedError::Usage("no tree to save; name one with --tree".to_owned())) } else { Ok(best.1) }
}

impl Demo {
    fn show(&mut self) -> Result<()> {
        let mut ours = self.back_up(Fd::Ours)?;
        say(&report(&ours.result));
        self.begin("The console asks ferrofd for its status.");
        say(&self.bed.console(&["status client=ours-fd"])?);
        let mut restores = vec![self.restore(&ours, Fd::Ours, Fd::Ours)?];
        let mut stock = self.back_up(Fd::Stock)?;
        self.compare_volumes(&mut ours, &mut stock)?;
        self.compare_catalog(&ours, &stock)?;
        restores.push(self.restore(&stock, Fd::Stock, Fd::Ours)?);
        restores.push(self.restore(&ours, Fd::Ours, Fd::Stock)?);
        self.begin("What it took");
        say(&table(&ours, &stock, &restores));
        Ok(())
    }

    fn begin(&mut self, what: &str) {
        self.step += 1;
        say(&format!("\n[{}] {what}", self.step));
    }

    fn back_up(&mut self, fd: Fd) -> Result<Measured> {
        self.begin(&format!("{} saves the trees.", title(fd)));
        self.measured(fd, &format!("run job=backup-{} yes", fd.name()))
    }

    /// Runs a job of one client and measures its daemon.
    fn measured(&mut self, fd: Fd, command: &str) -> Result<Measured> {
        let pid = self.bed.client(fd.name())?.pid()?;
        reset_peak(pid)?;
        let before = usage(pid)?;
        let job = self.bed.queue(command)?;
        let result = self.wait(job, fd)?.must_be_good()?;
        let after = usage(pid)?;
        let used = Usage {
            user: after.user.saturating_sub(before.user),
            system: after.system.saturating_sub(before.system),
            peak_memory: after.peak_memory,
            moved: after.moved - before.moved,
        };
        say(&format!("    done: {} files, {} bytes", grouped(result.row.files), grouped(result.row.bytes)));
        Ok(Measured { result, used, seconds: 0.0 })
    }

    /// Waits for a job and reports its progress.
    fn wait(&self, job: u32, fd: Fd) -> Result<JobResult> {
        let start = Instant::now();
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let bed = &self.bed;
            scope.spawn(move || sender.send(bed.wait(job)));
            loop {
                match receiver.recv_timeout(PROGRESS) {
                    Ok(result) => return result,
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(BedError::Usage("the wait has ended".to_owned()));
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let bytes = self.job_bytes(fd).map_or(0, |bytes| bytes >> 20);
                        say(&format!("    {:3} s, {bytes} MiB so far", start.elapsed().as_secs()));
                        self.check_interrupted(job)?;
                    }
                }
            }
        })
    }

    /// What the daemon's running job has saved or restored, in bytes: the number that is in its
    /// report at the end. What the process moves is more, as each byte is received and written.
    fn job_bytes(&self, fd: Fd) -> Option<u64> {
        let status = self.bed.console(&[&format!(".status client={}-fd running", fd.name())]).ok()?;
        status.lines().find_map(|line| line.strip_prefix("JobBytes=")?.parse().ok())
    }

    /// An interrupt cancels the job, so that no daemon waits for it.
    fn check_interrupted(&self, job: u32) -> Result<()> {
        if self.interrupted.load(Ordering::Relaxed) {
            self.bed.console(&[&format!("cancel jobid={job} yes")])?;
            return Err(BedError::Usage("interrupted".to_owned()));
        }
        Ok(())
    }

    fn restore(&mut self, saved: &Measured, from: Fd, onto: Fd) -> Result<(Fd, Fd, Measured)> {
        self.begin(&format!("{} restores what {} saved.", title(onto), title(from)));
        let to = self.bed.folder().join("restored").join(format!("{}-by-{}", from.name(), onto.name()));
        let restore =
            Restore { job: saved.result.row.id, from: from.name(), onto: onto.name(), to: &to, replace: "always" };
        let mut measured = self.measured(onto, &restore.command())?;
        let elapsed = measured.result.report().get("Elapsed time").cloned().unwrap_or_default();
        measured.seconds = elapsed.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
        say("    comparing content, modes, owners, times, links, devices, ACLs and attributes of everything");
        let mut differences = Vec::new();
        for tree in &self.trees {
            let restored = to.join(tree.strip_prefix("/").unwrap_or(tree));
            differences.extend(compare_trees(tree, &restored, TreeRules::restored())?);
        }
        self.judge("the restored trees and the originals", differences);
        fs::remove_dir_all(&to).map_err(BedError::file("remove", &to))?;
        Ok((from, onto, measured))
    }

    fn compare_volumes(&mut self, ours: &mut Measured, stock: &mut Measured) -> Result<()> {
        self.begin("The two volumes, record by record");
        let mut left = self.bed.records(&ours.result.row, Fd::Ours.name())?;
        let mut right = self.bed.records(&stock.result.row, Fd::Stock.name())?;
        let comparison = compare_records(&mut left, &mut right, RecordRules::default())?;
        // The Storage Daemon noted when each session began and ended.
        ours.seconds = left.elapsed().unwrap_or_default().as_secs_f64();
        stock.seconds = right.elapsed().unwrap_or_default().as_secs_f64();
        say(&format!("    {} records, {} bytes", grouped(comparison.records), grouped(comparison.bytes)));
        let differences = if comparison.is_equal() { Vec::new() } else { vec![comparison.text()] };
        self.judge("the volumes' records", differences);
        Ok(())
    }

    fn compare_catalog(&mut self, ours: &Measured, stock: &Measured) -> Result<()> {
        self.begin("The two jobs' files in the catalog: path, attributes, digest");
        let rows = |measured: &Measured| self.bed.catalog().files(measured.result.row.id);
        let (left, right) = (rows(ours)?, rows(stock)?);
        say(&format!("    {} rows", grouped(left.len() as u64)));
        let unequal = left.iter().zip(&right).filter(|(left, right)| left != right).take(5);
        let mut differences: Vec<_> = unequal.map(|(left, right)| format!("{left:?}\n    {right:?}")).collect();
        if left.len() != right.len() {
            differences.push(format!("{} against {} rows", left.len(), right.len()));
        }
        self.judge("the catalog's rows", differences);
        Ok(())
    }

    fn judge(&mut self, what: &str, differences: Vec<String>) {
        say(&format!("    {what}: {}", if differences.is_empty() { "equal" } else { "DIFFERENT" }));
        self.differences.extend(differences.into_iter().map(|difference| format!("{what}: {difference}")));
    }
}

fn title(fd: Fd) -> &'static str {
    match fd {
        Fd::Ours => "ferrofd",
        Fd::Stock => "the stock daemon",
    }
}

/// The Director's report in a job's log.
fn report(result: &JobResult) -> String {
    let start = result.log.rfind(": Bacula bed-dir ").map_or(0, |at| at + 2);
    format!("    The Director's report:\n{}", result.log.get(start..).unwrap_or_default().trim_end())
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Bytes as mebibytes with one decimal.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes * 10 / (1 << 20);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The one table.
fn table(ours: &Measured, stock: &Measured, restores: &[(Fd, Fd, Measured)]) -> String {
    let mut lines =
        vec![format!("    {:<34}{:>9}{:>16}{:>9}{:>9}{:>10}", "", "files", "bytes", "seconds", "CPU s", "peak MiB")];
    let mut row = |name: String, measured: &Measured| {
        let Measured { result, used, seconds } = measured;
        lines.push(format!(
            "    {name:<34}{:>9}{:>16}{seconds:>9.1}{:>9.2}{:>10}",
            grouped(result.row.files),
            grouped(result.row.bytes),
            used.cpu().as_secs_f64(),
            mebibytes(used.peak_memory)
        ));
    };
    row("backup by ferrofd".to_owned(), ours);
    row("backup by the stock daemon".to_owned(), stock);
    for (from, onto, measured) in restores {
        row(format!("restore {}'s by {}", from.name(), onto.name()), measured);
    }
    lines.push("    Seconds: as the Storage Daemon (backup) and the Director (restore) noted them. CPU, memory: of the File Daemon.".to_owned());
    lines.join("\n")
}
