//! What is done to the daemons, and what must come of it for both alike.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bed::{BedError, JobResult, Noise, Restore, Result, faketime, fifo_writer};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use walkdir::{DirEntryExt as _, WalkDir};

use crate::compare::shown;
use crate::counts::Count;
use crate::course::Course;
use crate::plan::{HELD, Pair, Trouble};

/// How long a daemon may take to end.
const END: Duration = Duration::from_secs(4);
/// What a job is given of the file in which it is interrupted.
const HELD_BYTES: usize = 20 << 16;

/// A job of each daemon in the middle of a file.
pub(crate) struct Held {
    jobs: [u32; 2],
    writers: Vec<File>,
}

impl Course<'_> {
    /// What must be done before the jobs of a generation are begun, or changes nothing for them.
    pub(crate) fn trouble(&mut self, trouble: Trouble) -> Result<()> {
        // The Director's end would end them otherwise.
        if matches!(trouble, Trouble::RestartDirector | Trouble::KillDirector | Trouble::RestartStorage) {
            self.judge_interrupted()?;
        }
        self.note(&format!("{trouble:?}"));
        match trouble {
            Trouble::RestartClients => {
                for client in Pair::ALL.iter().flat_map(|pair| pair.clients()) {
                    self.end(client)?;
                    self.stage.bed.client(client)?.daemon().start()?;
                    self.count(Count::Restarts, 1);
                }
                Ok(())
            }
            Trouble::RestartStorage => {
                self.stage.bed.storage().end_within(END)?;
                self.count(Count::Restarts, 1);
                self.stage.bed.storage().start()
            }
            Trouble::RestartDirector => {
                self.stage.bed.director().end_within(END)?;
                self.count(Count::Restarts, 1);
                self.stage.bed.director().start()
            }
            Trouble::Clock(seconds) => {
                if let Some(clock) = &self.stage.clock {
                    faketime::set(clock, &format!("{seconds:+}"))?;
                    self.count(Count::ClockSteps, 1);
                }
                Ok(())
            }
            Trouble::FullDisk(kilobytes) => self.fill_a_disk(kilobytes),
            // Done while the jobs of the generation run.
            Trouble::Cancel => Ok(()),
            Trouble::StopClient | Trouble::KillClient | Trouble::KillStorage | Trouble::KillDirector => {
                self.interrupt(trouble)
            }
        }
    }

    /// Begins a job of each daemon, and waits until both are in the middle of a file.
    pub(crate) fn hold(&mut self) -> Result<Held> {
        let commands = HELD.map(|client| format!("run job=held-{client} yes"));
        let jobs = self.stage.bed.queue_all(&commands)?;
        let [stock, ours] = jobs[..] else { return Err(BedError::Usage("two jobs".to_owned())) };
        let mut writers = Vec::new();
        for client in HELD {
            let gate = self.stage.gate(client);
            let mut writer = fifo_writer(&gate)?;
            // More than pipe and daemon keep: what is before it has left the daemon.
            writer.write_all(&Noise::new(1).bytes(HELD_BYTES)).map_err(BedError::file("write", &gate))?;
            writers.push(writer);
        }
        for client in HELD {
            let file = self.stage.gate(client).display().to_string();
            self.stage.bed.wait_for_status(client, &format!("Processing file: {file}"))?;
        }
        self.count(Count::Jobs, 2);
        Ok(Held { jobs: [stock, ours], writers })
    }

    /// Cancels both jobs; neither may end otherwise.
    pub(crate) fn cancel(&mut self, held: Held) -> Result<()> {
        let Held { jobs, writers } = held;
        for job in jobs {
            self.stage.bed.console(&[&format!("cancel jobid={job} yes")])?;
            self.count(Count::Cancels, 1);
        }
        self.stage.bed.wait_for_reports(&jobs)?;
        drop(writers);
        let [mut stock, ours] = self.results(jobs)?;
        // Sometimes the Storage Daemon notices the end of the stock daemon's connection before the
        // Director's word, and the job counts as incomplete.
        if stock.row.status == 'I' {
            stock.row.status = 'A';
        }
        self.judge("a canceled job", &[stock, ours], 'A');
        self.must_be_idle()
    }

    /// Ends a daemon in the middle of both jobs.
    fn interrupt(&mut self, trouble: Trouble) -> Result<()> {
        let Held { jobs, writers } = self.hold()?;
        match trouble {
            Trouble::StopClient | Trouble::KillClient => {
                for client in HELD {
                    if trouble == Trouble::KillClient {
                        self.stage.bed.client(client)?.daemon().kill()?;
                    } else {
                        self.end(client)?;
                    }
                    self.count(Count::Kills, 1);
                }
            }
            Trouble::KillStorage => {
                self.stage.bed.storage().kill()?;
                self.count(Count::Kills, 1);
            }
            _ => {
                self.stage.bed.director().kill()?;
                self.count(Count::Kills, 1);
            }
        }
        drop(writers);
        match trouble {
            Trouble::StopClient | Trouble::KillClient => {
                for client in HELD {
                    self.stage.bed.client(client)?.daemon().start()?;
                }
            }
            Trouble::KillStorage => self.stage.bed.storage().start()?,
            _ => self.stage.bed.director().start()?,
        }
        self.interrupted.push((trouble, jobs));
        self.must_be_idle()?;
        // And the next job is as if nothing had been.
        let Held { jobs, writers } = self.hold()?;
        drop(writers);
        self.stage.bed.wait_for_reports(&jobs)?;
        let [stock, ours] = self.results(jobs)?;
        self.judge("the job after", &[stock, ours], 'T');
        Ok(())
    }

    /// Jobs that were interrupted must have ended alike.
    pub(crate) fn judge_interrupted(&mut self) -> Result<()> {
        for (trouble, jobs) in std::mem::take(&mut self.interrupted) {
            // A Director that begins anew writes no reports of jobs that the last one had begun.
            if trouble != Trouble::KillDirector {
                self.stage.bed.wait_for_reports(&jobs)?;
            }
            let [stock, ours] = self.results(jobs)?;
            // Whether the File Daemon's own word or the Director's is the last is chance.
            let kind = |job: &JobResult| if job.row.status == 'f' { 'E' } else { job.row.status };
            if kind(&stock) != kind(&ours) {
                let told = |job: &JobResult| format!("{}:\n{}", job.row.status, job.log);
                self.differ(&format!("{trouble:?}: stock {}\nours {}", told(&stock), told(&ours)));
            }
            self.count(Count::Pairs, 1);
        }
        Ok(())
    }

    /// Ends a File Daemon. The stock one sometimes doesn't.
    fn end(&mut self, client: &str) -> Result<()> {
        let is_ended = self.stage.bed.client(client)?.daemon().end_within(END)?;
        if is_ended {
            return Ok(());
        }
        self.count(Count::StockHangs, u64::from(client.starts_with("ref")));
        if client.starts_with("und") {
            self.differ(&format!("{client} has not ended in {END:?}"));
        }
        Ok(())
    }

    /// Neither daemon may have a job left.
    fn must_be_idle(&mut self) -> Result<()> {
        for client in HELD {
            self.stage.bed.wait_for_status(client, "No Jobs running.")?;
        }
        Ok(())
    }

    /// Both restore the first lane onto a file system that is too small. What is there must be
    /// right, or named in a message of ours.
    fn fill_a_disk(&mut self, kilobytes: u32) -> Result<()> {
        let Some((lane, jobs)) = self.last_backup(Pair::Plain) else { return Ok(()) };
        let whole = self.stage.bed.folder().join("restored/whole");
        self.restore_job(jobs[1], Pair::Plain.clients()[1], &whole)?;
        let mut results = Vec::new();
        for (client, job) in Pair::Plain.clients().into_iter().zip(jobs) {
            let place = Full::mount(&self.stage.bed.folder().join(format!("full-{client}")), kilobytes)?;
            let result = self.restore_job(job, client, &place.0)?;
            if client == Pair::Plain.clients()[1] {
                self.each_is_right_or_named(&place.0, &whole, &result)?;
            }
            results.push(result);
            self.count(Count::FullDisks, 1);
        }
        fs::remove_dir_all(&whole).map_err(BedError::file("remove", &whole))?;
        self.count(Count::Pairs, 1);
        if let [stock, ours] = &results[..]
            && stock.row.status != ours.row.status
        {
            let told = |job: &JobResult| format!("{}:\n{}", job.row.status, job.log);
            self.differ(&format!("{lane} on a disk of {kilobytes} KiB: stock {}\nours {}", told(stock), told(ours)));
        }
        Ok(())
    }

    /// A client restores its own job.
    fn restore_job(&mut self, job: u32, client: &str, to: &Path) -> Result<JobResult> {
        let restore = Restore { job, from: client, onto: client, to, replace: "always" };
        let id = self.stage.bed.queue_restore(&restore)?;
        self.stage.bed.wait_for_reports(&[id])?;
        self.count(Count::Jobs, 1);
        self.stage.bed.result(id)
    }

    /// Of all names of a file one is named.
    fn each_is_right_or_named(&mut self, place: &Path, whole: &Path, job: &JobResult) -> Result<()> {
        let files = || {
            let entries = WalkDir::new(place).into_iter().filter_map(std::result::Result::ok);
            entries.filter(|entry| entry.file_type().is_file())
        };
        let is_named = |path: &Path| job.log.contains(&format!("{}: ERR=", shown(path.as_os_str().as_bytes())));
        let named: Vec<u64> = files().filter(|entry| is_named(entry.path())).map(|entry| entry.ino()).collect();
        let mut wrong = String::new();
        for entry in files().filter(|entry| !named.contains(&entry.ino())) {
            let inside = entry.path().strip_prefix(place).unwrap_or(entry.path());
            // A writer of `bpipe` is a program of its own.
            if inside == Path::new("from-bpipe") {
                continue;
            }
            let read = |path: &Path| fs::read(path).map_err(BedError::file("read", path));
            if read(entry.path())? != read(&whole.join(inside))? {
                let _ = writeln!(wrong, "{} is neither right nor named", entry.path().display());
            }
        }
        if !wrong.is_empty() {
            self.differ(&format!("full disk: {wrong}\n{}", job.log));
        }
        Ok(())
    }
}

/// A small file system, unmounted when dropped.
struct Full(PathBuf);

impl Full {
    fn mount(place: &Path, kilobytes: u32) -> Result<Self> {
        fs::create_dir_all(place).map_err(BedError::file("create", place))?;
        let size = format!("size={kilobytes}k");
        mount(Some("soak"), place, Some("tmpfs"), MsFlags::empty(), Some(size.as_str()))
            .map_err(BedError::file_errno("mount", place))?;
        Ok(Self(place.to_owned()))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        // Else the mount goes with this process's name space.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}
