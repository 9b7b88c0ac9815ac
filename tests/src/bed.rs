//! The bed: one Director, one Storage Daemon, a console and any number of File Daemons on ports of
//! their own, in a folder of their own.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::User;
use ports::{PortError, ReservedPort, is_listening};

use crate::catalog::{Catalog, JobRow};
use crate::config::{Plan, restore_job};
use crate::error::{BedError, Result};
use crate::job::JobResult;
use crate::options::{BedOptions, ClientOptions, Fd, our_program};
use crate::patience::{PATIENCE, wait_for};
use crate::process::{Finished, Process, argv, run};
use crate::reports::{REPORTS, Reports};
use crate::root::Root;
use crate::volume::{Record, Records, Session};

/// A running bed. Dropping it kills its daemons and removes its folder.
#[derive(Debug)]
pub struct Bed {
    // Dropped in this order: the daemons before the folder that they write to.
    director: Daemon,
    storage: Daemon,
    clients: Vec<Client>,
    catalog: Catalog,
    reports: Reports,
    root: Root,
    options: BedOptions,
}

/// No job of the bed lasts longer.
const LONGEST_JOB: Duration = Duration::from_secs(600);

/// The last line of a job's report begins with it.
const REPORT_END: &str = "  Termination: ";

/// So often the catalog is asked for reports that the Director's file lacks.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// Whether it is time to ask again.
fn is_due(asked: &mut Instant) -> bool {
    let is_due = asked.elapsed() >= SECOND_LOOK;
    if is_due {
        *asked = Instant::now();
    }
    is_due
}

/// One daemon of the bed, running or not.
#[derive(Debug)]
pub struct Daemon {
    process: Option<Process>,
    name: String,
    argv: Vec<OsString>,
    output: PathBuf,
    port: ReservedPort,
}

/// A File Daemon of the bed.
#[derive(Debug)]
pub struct Client {
    /// How it was asked for.
    pub options: ClientOptions,
    /// Its configuration file.
    pub config: PathBuf,
    /// Its working directory (also for the pid file).
    pub work: PathBuf,
    daemon: Daemon,
}

/// A restore to be run.
#[derive(Debug, Clone)]
pub struct Restore<'a> {
    /// The backup's `JobId`.
    pub job: u32,
    /// The client that saved it.
    pub from: &'a str,
    /// The client that restores it.
    pub onto: &'a str,
    /// Where to.
    pub to: &'a Path,
    /// `always`, `ifnewer`, `ifolder` or `never`.
    pub replace: &'a str,
}

impl Restore<'_> {
    /// The console's command for it.
    pub fn command(&self) -> String {
        let Self { job, from, onto, to, replace } = self;
        format!(
            "restore jobid={job} client={from}-fd restoreclient={onto}-fd where={} replace={replace} all done yes",
            to.display()
        )
    }
}

impl Daemon {
    /// Starts it and waits until it listens.
    pub fn start(&mut self) -> Result<()> {
        self.begin()?;
        let port = self.port.number();
        let ready = self.process()?.must_listen(port);
        if ready.is_err() {
            self.process = None;
        }
        ready
    }

    /// Starts it, and does not wait until it listens; the process id.
    pub fn begin(&mut self) -> Result<u32> {
        if self.process.is_some() {
            return Err(BedError::Usage(format!("{} runs already", self.name)));
        }
        let process = Process::start(&self.name, &self.argv, &self.output)?;
        Ok(self.process.insert(process).pid())
    }

    /// Waits until it listens, or has ended; whether it listens.
    pub fn listens(&mut self) -> Result<bool> {
        let port = self.port.number();
        wait_for(&format!("{} to listen or to end", self.name), PATIENCE, || {
            if self.process()?.try_exit()?.is_some() {
                return Ok(Ok(false));
            }
            Ok(if is_listening(port)? { Ok(true) } else { Err(self.process()?.output()) })
        })
    }

    /// Waits for the end that something else brings about.
    pub fn ended(&mut self) -> Result<ExitStatus> {
        let status = self.process()?.wait_exit(PATIENCE)?;
        self.process = None;
        Ok(status)
    }

    /// Whether its process has not ended yet.
    fn runs(&self) -> bool {
        self.process.as_ref().is_some_and(Process::runs)
    }

    /// Its process; an error if it does not run.
    pub fn process(&mut self) -> Result<&mut Process> {
        self.process.as_mut().ok_or_else(|| BedError::Usage(format!("{} does not run", self.name)))
    }

    /// `SIGTERM`, and its exit status.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process()?;
        match self.process.take() {
            Some(process) => process.stop(PATIENCE),
            None => Err(BedError::Usage(format!("{} does not run", self.name))),
        }
    }

    /// `SIGTERM`, and `SIGKILL` if that has not ended it within the limit; whether it has.
    pub fn end_within(&mut self, limit: Duration) -> Result<bool> {
        self.process()?.signal(Signal::SIGTERM)?;
        let ended = self.process()?.wait_exit(limit).is_ok();
        // What runs still is killed.
        self.process = None;
        Ok(ended)
    }

    /// `SIGKILL`.
    pub fn kill(&mut self) -> Result<()> {
        self.process()?;
        self.process.take().map_or(Ok(()), Process::kill)
    }

    /// The port of 127.0.0.1 that it listens on.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// Everything that it has printed.
    pub fn output(&self) -> String {
        fs::read(&self.output).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl Client {
    /// The daemon.
    pub fn daemon(&mut self) -> &mut Daemon {
        &mut self.daemon
    }

    /// The port of 127.0.0.1 that it listens on.
    pub fn port(&self) -> u16 {
        self.daemon.port()
    }

    /// The process id; an error if it does not run.
    pub fn pid(&self) -> Result<u32> {
        let process = self.daemon.process.as_ref();
        process.map(Process::pid).ok_or_else(|| BedError::Usage(format!("{} does not run", self.daemon.name)))
    }
}

impl Bed {
    /// Raises the bed: catalog, configuration, daemons; returns when all of them listen.
    pub fn start(options: BedOptions) -> Result<Self> {
        let mut bed = Self::prepare(options)?;
        bed.storage.start()?;
        bed.director.start()?;
        for client in &mut bed.clients {
            client.daemon.start()?;
        }
        Ok(bed)
    }

    /// Everything but starting the daemons.
    pub fn prepare(options: BedOptions) -> Result<Self> {
        let root = Root::find()?;
        let folder = &options.folder;
        for name in ["etc", "log", "work/sd", "restored", "source"] {
            folder.make(name)?;
        }
        let director_port = ReservedPort::new()?;
        let storage_port = ReservedPort::new()?;
        let reserved: Vec<_> =
            options.clients.iter().map(|_| ReservedPort::new()).collect::<std::result::Result<_, PortError>>()?;
        let client_ports: Vec<_> = reserved.iter().map(ReservedPort::number).collect();
        let plan = Plan {
            options: &options,
            root: &root,
            director_port: director_port.number(),
            storage_port: storage_port.number(),
            client_ports: &client_ports,
        };
        let write = |name: &str, text: String| -> Result<PathBuf> {
            let path = folder.path().join("etc").join(name);
            fs::write(&path, text).map_err(BedError::file("write", &path))?;
            Ok(path)
        };
        write("bconsole.conf", plan.console())?;
        let director = write("bacula-dir.conf", plan.director())?;
        let storage = write("bacula-sd.conf", plan.storage())?;
        let daemon = |name: &str, argv, port| Daemon {
            process: None,
            name: name.to_owned(),
            argv,
            output: folder.path().join("log").join(format!("{name}.out")),
            port,
        };
        let mut clients = Vec::new();
        for (client, port) in options.clients.iter().zip(reserved) {
            let name = client.daemon_name();
            // A directory of its own, because the settings of ferrofd are beside the configuration.
            folder.make(&format!("etc/{}", client.name))?;
            let config = write(&format!("{}/bacula-fd.conf", client.name), plan.file_daemon(client, port.number()))?;
            let settings = client.settings_file();
            if !settings.is_empty() {
                write(&format!("{}/bacula-fd.toml", client.name), settings)?;
            }
            folder.make(&format!("volumes/{}", client.name))?;
            let work = folder.make(&format!("work/{}", client.name))?;
            let mut words: Vec<&OsStr> = vec!["-c".as_ref(), config.as_os_str(), "-f".as_ref()];
            if let Some(user) = &client.user {
                open_to(folder.path(), &work, user)?;
                words.push("-u".as_ref());
                words.push(user.as_ref());
            }
            let program = fd_argv(&root, client.fd, words)?;
            let variables = client.environment.iter().map(|(name, value)| format!("{name}={value}").into());
            let words = client.wrapper.iter().map(Into::into).chain(std::iter::once("env".into()));
            let argv = words.chain(variables).chain(loader_of(&root, client)?).chain(program).collect();
            clients.push(Client { options: client.clone(), config, work, daemon: daemon(&name, argv, port) });
        }
        let reports = Reports::new(folder.path().join(REPORTS));
        let catalog = Catalog::create(&root, &folder.path().join("work/dir"))?;
        let foreground = |path: PathBuf| ["-c".into(), path.into_os_string(), "-f".into()];
        Ok(Self {
            director: daemon("bed-dir", root.argv("/usr/sbin/bacula-dir", foreground(director))?, director_port),
            storage: daemon("bed-sd", root.argv("/usr/sbin/bacula-sd", foreground(storage))?, storage_port),
            clients,
            catalog,
            reports,
            root,
            options,
        })
    }

    /// The Director.
    pub fn director(&mut self) -> &mut Daemon {
        &mut self.director
    }

    /// The Storage Daemon.
    pub fn storage(&mut self) -> &mut Daemon {
        &mut self.storage
    }

    /// A client by its name.
    pub fn client(&mut self, name: &str) -> Result<&mut Client> {
        let client = self.clients.iter_mut().find(|client| client.options.name == name);
        client.ok_or_else(|| BedError::Usage(format!("the bed has no client {name}")))
    }

    /// The bed's folder.
    pub fn folder(&self) -> &Path {
        self.options.folder.path()
    }

    /// The Bacula that it runs.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The command line of the console, for the operator of `bed up`.
    pub fn console_argv(&self) -> Result<Vec<OsString>> {
        let config = self.folder().join("etc/bconsole.conf");
        self.root.argv("/usr/sbin/bconsole", ["-n".into(), "-c".into(), config.into_os_string()])
    }

    /// Gives the console commands, one a line, and returns what it printed. A `restore` without a
    /// job gets that of the client that has saved.
    pub fn console(&self, commands: &[&str]) -> Result<String> {
        let lines: Vec<_> = commands.iter().map(|command| self.with_restore_job(command)).collect();
        let input = format!("{}\nquit\n", lines.join("\n"));
        let Finished { status, stdout, stderr } = run(&self.console_argv()?, input.as_bytes())?;
        let answer = String::from_utf8_lossy(&stdout).into_owned();
        // What comes before the prompt's hint is about the console's own login.
        match answer.split_once("Enter a period to cancel a command.\n") {
            Some((_, rest)) => {
                Ok(rest.strip_suffix("quit\n").or_else(|| rest.strip_suffix("quit")).unwrap_or(rest).to_owned())
            }
            None => Err(BedError::Console {
                command: commands.join("; "),
                problem: format!("no login, {status}"),
                answer: format!("{answer}{}", String::from_utf8_lossy(&stderr)),
            }),
        }
    }

    fn with_restore_job(&self, command: &str) -> String {
        let from = command.split(' ').find_map(|word| word.strip_prefix("client=")?.strip_suffix("-fd"));
        match (command.strip_prefix("restore "), from) {
            (Some(rest), Some(from)) if self.clients.len() > 1 && !rest.contains("restorejob=") => {
                format!("restore restorejob={} {rest}", restore_job(from))
            }
            _ => command.to_owned(),
        }
    }

    /// Asks for a client's status until it contains this text.
    pub fn wait_for_status(&self, client: &str, text: &str) -> Result<String> {
        wait_for(&format!("{text:?} in the status of {client}"), PATIENCE, || {
            let status = self.console(&[&format!("status client={client}-fd")])?;
            Ok(if status.contains(text) { Ok(status) } else { Err(status) })
        })
    }

    /// Queues a job with a console command such as `run job=backup-stock yes` and returns its
    /// `JobId`.
    pub fn queue(&self, command: &str) -> Result<u32> {
        let answer = self.console(&[command])?;
        let id = answer.rsplit_once("JobId=").and_then(|(_, rest)| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        id.ok_or_else(|| BedError::Console { command: command.to_owned(), problem: "no job queued".to_owned(), answer })
    }

    /// Queues many jobs at once and returns their numbers in the same order.
    pub fn queue_all(&self, commands: &[String]) -> Result<Vec<u32>> {
        let words: Vec<_> = commands.iter().map(String::as_str).collect();
        let answer = self.console(&words)?;
        let number = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
        let ids: Vec<_> = answer.split("Job queued. JobId=").skip(1).filter_map(number).collect();
        if ids.len() == commands.len() {
            return Ok(ids);
        }
        let problem = format!("{} of {} jobs queued", ids.len(), commands.len());
        Err(BedError::Console { command: commands.join("; "), problem, answer })
    }

    /// Runs these jobs, all at once; their numbers in the same order.
    pub fn run_all(&self, commands: &[String]) -> Result<Vec<u32>> {
        let jobs = self.queue_all(commands)?;
        self.wait_for_reports(&jobs)?;
        Ok(jobs)
    }

    /// Waits until the reports of all these jobs are in the catalog. A question to it takes the
    /// Director's lock there, so it is asked when the Director's file has them, and now and then:
    /// where jobs end together, the file has lines of one within the report of another.
    pub fn wait_for_reports(&self, jobs: &[u32]) -> Result<()> {
        let mut asked = Instant::now();
        wait_for(&format!("the reports of {jobs:?}"), LONGEST_JOB, || {
            let does_run = self.director.runs();
            let told = jobs.iter().map(|job| self.reports.has(*job)).collect::<Result<Vec<_>>>()?;
            match told.iter().filter(|is_told| !**is_told).count() {
                0 => Ok(Ok(())),
                _ if !does_run => Err(BedError::Usage(format!("{} has ended", self.director.name))),
                _ if is_due(&mut asked) && self.with_message(jobs, REPORT_END)? == jobs.len() => Ok(Ok(())),
                missing => Ok(Err(format!("{missing} of {} are missing", jobs.len()))),
            }
        })?;
        self.wait_for_messages(jobs, REPORT_END)
    }

    /// Waits until a message with this text is in the catalog for each of these jobs. The Director
    /// writes the end of its file late.
    pub fn wait_for_messages(&self, jobs: &[u32], text: &str) -> Result<()> {
        wait_for(&format!("{text:?} in the log of {jobs:?}"), PATIENCE, || {
            let seen = self.with_message(jobs, text)?;
            Ok(if seen == jobs.len() { Ok(()) } else { Err(format!("{seen} of {}", jobs.len())) })
        })
    }

    /// How many of these jobs have a message with this text in the catalog.
    fn with_message(&self, jobs: &[u32], text: &str) -> Result<usize> {
        let list = jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let rest = format!("FROM Log WHERE JobId IN ({list}) AND LogText LIKE '%{text}%'");
        Ok(self.catalog.rows(&["DISTINCT JobId"], &rest)?.len())
    }

    /// The row and the log of a job that has ended.
    pub fn result(&self, job: u32) -> Result<JobResult> {
        Ok(JobResult { log: self.catalog.log(job)?, row: self.catalog.job(job)? })
    }

    /// Waits for the end of a job.
    pub fn wait(&self, job: u32) -> Result<JobResult> {
        self.wait_for_reports(&[job])?;
        self.ended(job)
    }

    /// How many reports a job has: one more each time that it is resumed.
    pub fn reports_of(&self, job: u32) -> Result<usize> {
        let rest = format!("FROM Log WHERE JobId = {job} AND LogText LIKE '%{REPORT_END}%'");
        Ok(self.catalog.rows(&["LogId"], &rest)?.len())
    }

    /// Waits for the end of a job that had so many reports when it was resumed.
    pub fn wait_again(&self, job: u32, reports: usize) -> Result<JobResult> {
        let mut asked = Instant::now();
        wait_for(&format!("another report of job {job}"), LONGEST_JOB, || {
            let is_told = self.reports.count(job)? > reports;
            let is_there = is_told || (is_due(&mut asked) && self.reports_of(job)? > reports);
            Ok(if is_there { Ok(()) } else { Err(format!("{reports} until now")) })
        })?;
        wait_for(&format!("another report in the log of job {job}"), PATIENCE, || {
            let rows = self.reports_of(job)?;
            Ok(if rows > reports { Ok(()) } else { Err(format!("{rows} until now")) })
        })?;
        self.ended(job)
    }

    /// The result of a job that has written its report.
    pub(crate) fn ended(&self, job: u32) -> Result<JobResult> {
        let result = self.result(job)?;
        if "CRBMSmsjcdtplLi".contains(result.row.status) {
            return Err(BedError::Usage(format!("job {job} has a report in state {}", result.row.status)));
        }
        Ok(result)
    }

    /// Queues a job and waits for its end.
    pub fn run(&self, command: &str) -> Result<JobResult> {
        self.wait(self.queue(command)?)
    }

    /// A full backup by a client's own job; `more` may name another `fileset=` or `level=`.
    pub fn backup(&self, client: &str, more: &str) -> Result<JobResult> {
        self.run(&format!("run job=backup-{client} {more} yes"))
    }

    /// Restores everything that a job saved, and waits for the end.
    pub fn restore(&self, restore: &Restore<'_>) -> Result<JobResult> {
        self.wait(self.queue_restore(restore)?)
    }

    /// The same by the client that saved it, over what is there.
    pub fn restore_own(&self, client: &str, job: u32, to: &Path) -> Result<JobResult> {
        self.restore(&Restore { job, from: client, onto: client, to, replace: "always" })
    }

    /// Queues a restore of everything that a job saved.
    pub fn queue_restore(&self, restore: &Restore<'_>) -> Result<u32> {
        self.queue(&restore.command())
    }

    /// The records of a job on its volumes, labels left out.
    pub fn records(&self, job: &JobRow, client: &str) -> Result<Records> {
        let folder = self.folder().join("volumes").join(client);
        let volumes = self.catalog.volumes(job.id)?.into_iter().map(|name| folder.join(name)).collect();
        Records::new(volumes, Some(job.session))
    }

    /// All records on a client's volumes, read once, by session.
    pub fn sessions(&self, client: &str) -> Result<HashMap<Session, Vec<Record>>> {
        let folder = self.folder().join("volumes").join(client);
        let entries = fs::read_dir(&folder).map_err(BedError::file("read", &folder))?;
        let mut volumes: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        volumes.sort();
        let mut sessions = HashMap::new();
        if volumes.is_empty() {
            return Ok(sessions);
        }
        for record in Records::new(volumes, None)? {
            let record = record?;
            sessions.entry(record.session).or_insert_with(Vec::new).push(record);
        }
        Ok(sessions)
    }
}

/// What stands before a client's program. The stock one brings its root's loader itself.
fn loader_of(root: &Root, client: &ClientOptions) -> Result<Vec<OsString>> {
    if client.in_root && client.fd == Fd::Ours { root.before_a_program("bacula-fd".as_ref()) } else { Ok(Vec::new()) }
}

/// Where a path lands when it is restored with `where=`.
pub fn below(to: &Path, path: &Path) -> PathBuf {
    to.join(path.strip_prefix("/").unwrap_or(path))
}

/// Opens the bed's folder to a user and gives a daemon's working directory to it.
fn open_to(folder: &Path, work: &Path, user: &str) -> Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).map_err(BedError::file("open", folder))?;
    let user = User::from_name(user).map_err(BedError::system("getpwnam"))?;
    let ids = user.map(|user| (user.uid.as_raw(), user.gid.as_raw())).unwrap_or_default();
    std::os::unix::fs::chown(work, Some(ids.0), Some(ids.1)).map_err(BedError::file("give away", work))
}

/// The command line of a File Daemon.
pub fn fd_argv<'a>(root: &Root, fd: Fd, args: impl IntoIterator<Item = &'a std::ffi::OsStr>) -> Result<Vec<OsString>> {
    match fd {
        Fd::Stock => root.argv("/usr/sbin/bacula-fd", args),
        Fd::Ours => {
            let mut words = argv([our_program()?]);
            words.extend(args.into_iter().map(ToOwned::to_owned));
            Ok(words)
        }
    }
}
