//! The daemon is killed at each call about a file that it writes, and the host may lose power then.
//! `RACES=20000` takes all calls instead of a selection; with `RACES_FIRST=76` it begins at that
//! number, so that several runs can share them.
//!
//! The next daemon is started at once, and killed as well; the one after it must be as good as new.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bed::{
    Acted, Bed, BedOptions, ClientOptions, Counted, Fd, FileSet, PATIENCE, Racer, Restore, Result, Rule, WRITING, below,
};
use bed::{ONLY_OURS, wait_for};
use nix::sys::signal::Signal;

use crate::faults::judge_restore;
use crate::scene::{Scene, remove, spread, wanted};

/// Folders of the tree.
const UNITS: usize = 3;
/// Kills in `make test`.
const USUALLY: usize = 4;
/// Jobs in the state file.
const KEPT: usize = 10;

/// Makes snapshots: files in `made`, which is what is left over.
const HELPER: &str = r#"#!/bin/sh
here=@HERE@
case $SNAPSHOT_ACTION in
support)
    case $SNAPSHOT_MOUNTPOINT in
    $here/data) echo "status=1 type=fake device=\"$SNAPSHOT_DEVICE\"" ;;
    *) echo 'status=0 error="not here"'; exit 1 ;;
    esac ;;
create) : > "$here/made/$SNAPSHOT_NAME"; echo "status=1 volume=\"$here/made/$SNAPSHOT_NAME\" createtdate=1700000000 type=fake" ;;
mount) echo "status=1 snapmountpoint=$here/tree snapdirectory=$here/data/.snapshots/" ;;
unmount) echo status=1 ;;
delete) rm -f "$here/made/$SNAPSHOT_NAME"; echo status=1 ;;
list)
    for volume in "$here"/made/*; do
        test ! -e "$volume" ||
            echo "volume=\"$volume\" name=\"${volume##*/}\" device=\"$SNAPSHOT_DEVICE\" createtdate=1700000000 status=1 error=\"\" type=\"fake\""
    done ;;
esac
"#;

/// What the daemon does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It starts.
    Start,
    /// It saves.
    Backup,
    /// It restores.
    Restore,
    /// It ends.
    Stop,
}

const PHASES: [Phase; 4] = [Phase::Backup, Phase::Restore, Phase::Stop, Phase::Start];

/// What a power loss leaves of what was written and not synchronized.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// There is none: only the process has died.
    All,
    Nothing,
    Half,
    Zeros,
}

const LOSSES: [Left; 4] = [Left::All, Left::Nothing, Left::Half, Left::Zeros];

struct Stage {
    bed: Bed,
    scene: Scene,
    folder: PathBuf,
    /// The daemon's working directory.
    work: PathBuf,
    /// While it exists, a daemon stops before it begins.
    mark: PathBuf,
    /// The job that is restored.
    good: u32,
    problems: Vec<String>,
    /// The calls that were noted.
    seen: BTreeSet<String>,
}

/// A daemon that uses all the files that it has.
fn stage() -> Result<Stage> {
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    let mut options = BedOptions::new("own-files", [])?;
    let folder = options.folder.path().to_owned();
    for name in ["data", "empty", "made"] {
        options.folder.make(name)?;
    }
    let scene = Scene::lay(&folder, folder.join("tree"));
    (0..UNITS).for_each(|number| scene.lay_unit(number, true));
    let helper = folder.join("helper");
    scripts::write(&helper, &HELPER.replace("@HERE@", &folder.to_string_lossy())).unwrap();
    let (here, mark) = (folder.display(), folder.join("mark"));
    let script = format!(
        "mount -t overlay bed-tree -o lowerdir={here}/tree:{here}/empty {here}/data || exit 1\n\
         test ! -e {} || kill -STOP $$\nexec \"$@\"",
        mark.display()
    );
    client.wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(ToOwned::to_owned).to_vec();
    let work = folder.join("work/test");
    client.messages = ["Mail Command = /bin/true", "Mail = root@here = all", "Append = @WORK@/messages = all"]
        .map(ToOwned::to_owned)
        .to_vec();
    let collector = |kind: &str| format!("Statistics {{\nName = {kind}\nInterval = 1\nType = {kind}");
    client.file_daemon = vec![
        format!("Snapshot Command = \"{}\"\n}}", helper.display()),
        format!("{}\nFile = {}/csv\n}}", collector("CSV"), work.display()),
        // There is no server; the bed closes the last resource.
        format!("{}\nHost = 127.0.0.1\nPort = 1", collector("Graphite")),
    ];
    let all = ["Signature = MD5", "aclsupport = yes", "xattrsupport = yes"];
    let mut set = FileSet::new("Data", &all, &[&folder.join("data")]);
    set.lines.push("Enable Snapshot = yes".to_owned());
    options.file_sets = vec![set];
    options.clients = vec![client];
    let bed = Bed::start(options)?;
    let good = bed.backup("test", "level=Full")?.must_be_good()?.row.id;
    Ok(Stage { bed, scene, folder, work, mark, good, problems: Vec::new(), seen: BTreeSet::new() })
}

impl Stage {
    /// Watches a process of the daemon; every call about its files is noted.
    fn watch(&self, pid: u32, phase: Phase, nth: usize) -> Result<Racer> {
        let below = if phase == Phase::Restore { self.to() } else { self.work.clone() };
        let rule = Rule { below: Some(below), nth: nth as u64, calls: WRITING.to_owned(), action: "kill".to_owned() };
        let arguments = ["--log".into(), self.log().into()];
        Racer::attach(Path::new(env!("CARGO_BIN_EXE_racer")), &arguments, pid, &[rule], &self.folder)
    }

    fn to(&self) -> PathBuf {
        self.folder.join("to")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("calls")
    }

    /// Lets the daemon do something and kills it at a call. What became of that, and the job that
    /// may have been under way.
    fn run(&mut self, phase: Phase, nth: usize) -> Result<(Option<Acted>, u64, Option<u32>)> {
        let mut job = None;
        let racer = match phase {
            Phase::Start => self.start(nth)?,
            Phase::Backup | Phase::Restore => {
                let pid = self.pid()?;
                let racer = self.watch(pid, phase, nth)?;
                let begun = self.queue(phase)?;
                self.finish(begun)?;
                job = Some(begun);
                racer
            }
            Phase::Stop => {
                let pid = self.pid()?;
                let racer = self.watch(pid, phase, nth)?;
                let process = self.bed.client("test")?.daemon().process()?;
                process.signal(Signal::SIGTERM)?;
                process.wait_exit(PATIENCE)?;
                racer
            }
        };
        let counted = racer.finish()?;
        let Some(Counted { calls, acted }) = counted.into_iter().next() else { return Ok((None, 0, job)) };
        if acted.is_some() || phase == Phase::Stop {
            self.bed.client("test")?.daemon().ended()?;
        }
        let log = fs::read_to_string(self.log()).unwrap();
        self.seen.extend(log.lines().filter_map(|line| Some(line.split(' ').nth(1)?.to_owned())));
        let undurable = undurable(&log, acted.is_some());
        self.problems.extend(undurable.into_iter().map(|what| format!("{phase:?}: {what}")));
        Ok((acted, calls, job))
    }

    /// Starts the daemon, which is watched before its first call.
    fn start(&mut self, nth: usize) -> Result<Racer> {
        fs::write(&self.mark, "").unwrap();
        let pid = self.bed.client("test")?.daemon().begin()?;
        wait_for("the daemon to wait", PATIENCE, || {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            Ok(if state.contains(") T ") { Ok(()) } else { Err(state) })
        })?;
        fs::remove_file(&self.mark).unwrap();
        let racer = self.watch(pid, Phase::Start, nth)?;
        let process = self.bed.client("test")?.daemon().process()?;
        // The racer may have let it go on already, and killed it.
        if let Err(error) = process.signal(Signal::SIGCONT)
            && process.try_exit()?.is_none()
        {
            return Err(error);
        }
        if self.bed.client("test")?.daemon().listens()? {
            self.settle()?;
        }
        Ok(racer)
    }

    /// Begins a job.
    fn queue(&self, phase: Phase) -> Result<u32> {
        if phase == Phase::Backup {
            self.bed.console(&["setdebug level=50 trace=1 client=test-fd"])?;
            return self.bed.queue("run job=backup-test level=Full yes");
        }
        let to = self.to();
        self.bed.queue_restore(&Restore { job: self.good, from: "test", onto: "test", to: &to, replace: "always" })
    }

    /// Until the job is over, or the daemon is dead.
    fn finish(&mut self, job: u32) -> Result<()> {
        wait_for("the end of the job or of the daemon", PATIENCE, || {
            let has_died = self.has_died()?;
            let status = self.bed.catalog().job(job)?.status;
            Ok(if has_died || "TEfA".contains(status) { Ok(()) } else { Err(format!("{status}")) })
        })?;
        if self.has_died()? { Ok(()) } else { self.settle() }
    }

    fn pid(&mut self) -> Result<u32> {
        self.bed.client("test")?.pid()
    }

    fn has_died(&mut self) -> Result<bool> {
        Ok(self.bed.client("test")?.daemon().process()?.try_exit()?.is_some())
    }

    /// Until the daemon has removed the snapshots of the daemon before it.
    fn settle(&mut self) -> Result<()> {
        wait_for("the snapshots to be removed", PATIENCE, || {
            let has_died = self.has_died()?;
            let left = names(&self.folder.join("made"));
            Ok(if has_died || left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) })
        })
    }

    /// The jobs that the daemon shows as ended.
    fn shown(&self) -> Result<Vec<u32>> {
        let status = self.bed.console(&["status client=test-fd"])?;
        let Some((_, ended)) = status.split_once("Terminated Jobs:") else {
            return Err(bed::BedError::Usage(format!("no status: {status}")));
        };
        Ok(ended.lines().filter_map(|line| line.split_ascii_whitespace().next()?.parse().ok()).collect())
    }

    /// The files that the daemon has written lose what was not synchronized.
    fn lose(&self, left: Left) {
        for name in names(&self.work) {
            let path = self.work.join(&name);
            // Synchronized before it is in its place; see `undurable`.
            if name.ends_with(".snapshots") {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            match left {
                Left::All => {}
                Left::Nothing => fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap(),
                Left::Half => {
                    fs::File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
                }
                Left::Zeros => fs::write(&path, vec![0; bytes.len()]).unwrap(),
            }
        }
    }

    /// A kill, and a second one when the next daemon starts. Whether the first one has happened.
    fn round(&mut self, phase: Phase, nth: usize, second: usize, left: Left) -> Result<bool> {
        let before = self.shown()?;
        if phase == Phase::Start {
            self.bed.client("test")?.daemon().stop()?;
        }
        let (acted, _, job) = self.run(phase, nth)?;
        let Some(acted) = acted else {
            if phase == Phase::Stop {
                self.bed.client("test")?.daemon().start()?;
            }
            return Ok(false);
        };
        self.lose(left);
        let (again, _, _) = self.run(Phase::Start, second)?;
        if again.is_some() {
            self.bed.client("test")?.daemon().start()?;
        }
        let what = format!("killed while it does {phase:?} at {acted:?}, then at {again:?}; left: {left:?}");
        let found = self.judge(before, job)?;
        self.problems.extend(found.into_iter().map(|problem| format!("{problem} ({what})")));
        Ok(true)
    }

    /// What is wrong with a daemon that has started after a kill.
    fn judge(&mut self, mut before: Vec<u32>, job: Option<u32>) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let shown = self.shown()?;
        let tail = |jobs: &[u32]| jobs.get(jobs.len().saturating_sub(KEPT)..).unwrap_or_default().to_vec();
        let mut good = vec![tail(&before)];
        before.extend(job);
        good.push(tail(&before));
        let output = self.bed.client("test")?.daemon().output();
        let is_told = output.contains("the state file is damaged");
        if !(good.contains(&shown) || shown.is_empty() && is_told) {
            problems.push(format!("it shows the jobs {shown:?}, not one of {good:?}"));
        }
        if let Some(job) = job {
            let ended = self.bed.wait(job)?;
            if !"TEf".contains(ended.row.status) {
                problems.push(format!("the job ended with {}", ended.row.status));
            }
        }
        let to = self.to();
        let restored = self.bed.restore_own("test", self.good, &to)?;
        if restored.row.status != 'T' || restored.row.errors != 0 {
            problems.push(format!("a restore after it is not good: {}", restored.log));
        }
        let place = below(&to, &self.folder.join("data"));
        problems.extend(judge_restore(&self.scene.tree, &place, ""));
        // The other way round: nothing that is not in the source.
        problems.extend(judge_restore(&place, &self.scene.tree, ""));
        remove(&to);
        let saved = self.bed.backup("test", "level=Full")?;
        if saved.row.status != 'T' || saved.row.errors != 0 {
            problems.push(format!("a backup after it is not good: {}", saved.log));
        }
        self.settle()?;
        let port = self.bed.client("test")?.port();
        let own = ["state", "pid", "digest"].map(|kind| format!("bacula-fd.{port}.{kind}"));
        let own = own.iter().map(String::as_str).chain(["test-fd.trace", "csv", "messages", SPOOL]);
        let own: BTreeSet<_> = own.map(str::to_owned).collect();
        let journal = format!("bacula-fd.{port}.snapshots");
        let may_stay = |work: &Path, name: &String| {
            own.contains(name)
                || *name == journal && waits_for_snapshots(&fs::read(work.join(name)).unwrap_or_default())
        };
        let over = |work: &Path| names(work).into_iter().filter(|name| !may_stay(work, name)).collect::<Vec<_>>();
        // Mail is on its way.
        let gone = wait_for("nothing to be left over", PATIENCE, || {
            let over = over(&self.work);
            Ok(if over.is_empty() { Ok(()) } else { Err(format!("{over:?}")) })
        });
        if gone.is_err() {
            problems.push(format!("left over: {:?}", over(&self.work)));
        }
        let pid = fs::read_to_string(self.work.join(format!("bacula-fd.{port}.pid"))).unwrap_or_default();
        if pid != format!("{}\n", self.bed.client("test")?.pid()?) {
            problems.push(format!("the pid file says {pid:?}"));
        }
        Ok(problems)
    }
}

/// Whether all snapshots in a journal are such as may still be in the making: they have no volume
/// yet. The daemon looks for them for ten minutes.
fn waits_for_snapshots(journal: &[u8]) -> bool {
    const FIELDS: usize = 10;
    let fields: Vec<_> = journal.split(|byte| *byte == 0).skip(1).collect();
    fields.chunks_exact(FIELDS).all(|snapshot| snapshot.get(1).is_some_and(|volume| volume.is_empty()))
}

const SPOOL: &str = "bacula-fd.collector.Graphite.spool";

fn names(folder: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// From a log of calls: the files that were renamed before their content was synchronized, and the
/// renames that were not synchronized themselves, with the directory. A daemon that was killed
/// behind a rename, or at it, has promised nothing yet.
fn undurable(log: &str, was_killed: bool) -> Vec<String> {
    let mut unsynced = BTreeSet::new();
    let mut problems = Vec::new();
    let mut renamed: Option<(&str, PathBuf)> = None;
    for line in log.lines() {
        let mut words = line.split(' ');
        let (Some(thread), Some(call)) = (words.next(), words.next()) else { continue };
        let paths: Vec<&str> = words.collect();
        let Some(path) = paths.first().copied() else { continue };
        // The directory has to be opened for that.
        let is_about = |directory: &Path| call.starts_with("open") && Path::new(path) == directory;
        if let Some((_, directory)) = renamed.take_if(|(whose, directory)| *whose == thread && !is_about(directory))
            && !(call.contains("sync") && Path::new(path) == directory)
        {
            problems.push(format!("after a rename in {} came {line}", directory.display()));
        }
        match call {
            "fsync" | "fdatasync" => _ = unsynced.remove(path),
            "rename" | "renameat" | "renameat2" => {
                if unsynced.contains(path) {
                    problems.push(format!("renamed before it was synchronized: {path}"));
                }
                renamed = paths.get(1).and_then(|path| Path::new(path).parent()).map(|path| (thread, path.to_owned()));
            }
            "write" | "pwrite64" | "writev" | "pwritev" | "ftruncate" => _ = unsynced.insert(path),
            _ => {}
        }
    }
    problems.extend(
        renamed
            .filter(|_| !was_killed)
            .map(|(_, directory)| format!("a rename in {} is the last call", directory.display())),
    );
    problems
}

#[test]
fn a_daemon_that_is_killed_at_any_call_about_its_files_starts_as_good_as_new() -> Result<()> {
    skip::lacks!(Racer::missing());
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let mut stage = stage()?;
    // Only counted.
    let mut calls = Vec::new();
    for phase in PHASES {
        let (_, count, _) = stage.run(phase, 0)?;
        calls.extend((1..=usize::try_from(count).unwrap()).map(|nth| (phase, nth)));
        if phase == Phase::Restore {
            remove(&stage.to());
        }
    }
    let starts = calls.iter().filter(|(phase, _)| *phase == Phase::Start).count();
    let (first, wanted) = (wanted("RACES_FIRST", 0), wanted("RACES", USUALLY).min(calls.len() * LOSSES.len()));
    let (mut killed, mut rounds) = (0, 0);
    // What writes by the clock may come to fewer calls in a round than when they were counted.
    while killed < wanted && rounds < 4 * wanted {
        let turn = first + rounds;
        rounds += 1;
        let (phase, nth) = calls[spread(turn, calls.len())];
        let left = LOSSES[turn % LOSSES.len()];
        killed += usize::from(stage.round(phase, nth, 1 + turn % starts.max(1), left)?);
    }
    eprintln!("of {rounds} rounds ({} calls, {starts} of a start): {killed} with a kill", calls.len());
    stage.problems.iter().take(60).for_each(|problem| eprintln!("{problem}"));
    assert!(stage.problems.is_empty(), "{} problems", stage.problems.len());
    assert_eq!(killed, wanted, "kills in {rounds} rounds");
    // Else the durability of no file has been looked at.
    let has_seen = |part: &str| stage.seen.iter().any(|call| call.contains(part));
    assert!(has_seen("rename") && has_seen("sync"), "{:?}", stage.seen);
    Ok(())
}
