//! What a test may choose about its bed before it is raised.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{BedError, Result};
use crate::folder::Folder;

/// Why a test is skipped that can't judge the stock daemon.
pub const ONLY_OURS: &str = "of the stock daemon it is known";

/// Which File Daemon a client of the bed is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Fd {
    /// The unmodified `bacula-fd` 15.0.3.
    Stock,
    /// ferrofd.
    #[default]
    Ours,
}

impl Fd {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::Stock, Self::Ours];

    /// The daemon that this run of a suite judges: `FD_UNDER_TEST=stock|ours`, ours when unset.
    pub fn under_test() -> Result<Self> {
        match env::var("FD_UNDER_TEST").as_deref() {
            Err(env::VarError::NotPresent) | Ok("ours" | "") => Ok(Self::Ours),
            Ok("stock") => Ok(Self::Stock),
            other => Err(BedError::Usage(format!("FD_UNDER_TEST must be stock or ours, got {other:?}"))),
        }
    }

    /// `stock` or `ours`, also the usual name of a client of the bed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::Ours => "ours",
        }
    }
}

/// The program under development: `FERROFD_BIN`, else the `bacula-fd` of the target directory; the
/// newest one of tests, and the optimized one of what is optimized itself, because that measures.
pub fn our_program() -> Result<PathBuf> {
    if let Some(path) = env::var_os("FERROFD_BIN").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target"), PathBuf::from);
    let built = |profile: &str| {
        let path = target.join(profile).join("bacula-fd");
        path.metadata().and_then(|meta| meta.modified()).ok().map(|time| (time, path))
    };
    let debug = if cfg!(debug_assertions) { built("debug") } else { None };
    built("release").max(debug).map(|(_, path)| path).ok_or_else(|| {
        BedError::Usage(format!(
            "no bacula-fd in {}/release or debug: build it (cargo build -p bacula-fd), or set FERROFD_BIN",
            target.display()
        ))
    })
}

/// The `Plugin Directory` of a client.
#[derive(Debug, Clone, Default)]
pub enum Plugins {
    /// The stock packages' one, which holds a plugin.
    #[default]
    OfThePackages,
    /// Another directory.
    In(PathBuf),
    /// The directive is left out.
    NoDirectory,
}

impl Plugins {
    /// A directory in this folder that holds our plugin for buckets, which is built beside
    /// [`our_program`].
    pub fn s3(folder: &Folder) -> Result<Self> {
        let built = our_program()?.with_file_name("libfd_s3.so");
        let directory = folder.make("plugins")?;
        fs::copy(&built, directory.join("s3-fd.so")).map_err(|error| {
            BedError::Usage(format!("{}: {error}: build it (cargo build -p fd-s3, as the program)", built.display()))
        })?;
        Ok(Self::In(directory))
    }
}

/// One File Daemon of the bed, with a storage device, a pool and a backup job of its own.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Resource name; `<name>-fd` is the daemon's name, `backup-<name>` its job.
    pub name: String,
    /// Which program it runs.
    pub fd: Fd,
    /// More directives for its `FileDaemon` resource, one a line.
    pub file_daemon: Vec<String>,
    /// More directives for the `Director` resource of its configuration. `@director-port@` becomes
    /// the Director's port.
    pub fd_director: Vec<String>,
    /// More directives for its `Client` resource in the Director.
    pub dir_client: Vec<String>,
    /// More directives for its backup job in the Director.
    pub job: Vec<String>,
    /// Lines of `bacula-fd.toml`; without any there is no such file. The stock daemon ignores it.
    pub settings: Vec<String>,
    /// More directives for its `Messages` resource; `@WORK@` becomes its working directory.
    pub messages: Vec<String>,
    /// The port of 127.0.0.1 that the Director uses for it, if not its own: that of a proxy.
    pub director_port: Option<u16>,
    /// Words before the daemon's command line: a program that runs it in surroundings of its own.
    pub wrapper: Vec<String>,
    /// Whether it runs with the libraries of the stock daemon's Debian; the stock one always does.
    pub in_root: bool,
    /// Environment variables of the daemon, beside those of the test.
    pub environment: Vec<(String, String)>,
    /// The user that it becomes (`-u`), if it does not stay what it is.
    pub user: Option<String>,
    /// Its `Plugin Directory`.
    pub plugins: Plugins,
}

impl ClientOptions {
    /// A client with default settings, named after its daemon.
    pub fn new(fd: Fd) -> Self {
        Self { name: fd.name().to_owned(), fd, ..Self::default() }
    }

    /// The same with so many threads that read files (ferrofd only).
    #[must_use]
    pub fn with_workers(mut self, workers: u16) -> Self {
        self.settings.push(format!("job.workers = {workers}"));
        self
    }

    /// The same with so many lookups at a time (ferrofd only).
    #[must_use]
    pub fn with_depth(mut self, depth: u16) -> Self {
        self.settings.push(format!("job.depth = {depth}"));
        self
    }

    /// Its `bacula-fd.toml`. With `FERROFD_DEPTH` the number of files that it works on at a time is
    /// fixed, whatever the test says.
    pub(crate) fn settings_file(&self) -> String {
        let depth = env::var("FERROFD_DEPTH").ok().filter(|depth| !depth.is_empty());
        let keys = ["job.workers", "job.depth"];
        let fixed = depth.iter().flat_map(|depth| keys.map(|key| format!("{key} = {depth}")));
        let is_fixed = |line: &str| depth.is_some() && keys.iter().any(|key| line.starts_with(key));
        let others = self.settings.iter().filter(|line| !is_fixed(line)).cloned();
        fixed.chain(others).collect::<Vec<_>>().join("\n")
    }

    /// The same, but it becomes this user when it has started as root.
    #[must_use]
    pub fn as_user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// The same under another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// These commands run before the daemon, in a namespace of mounts of its own. Needs root.
    pub fn mount_first(&mut self, commands: &str) {
        let script = format!("{commands} && exec \"$@\"");
        self.wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    }

    /// The name of the daemon's resource, `<name>-fd`.
    pub fn daemon_name(&self) -> String {
        format!("{}-fd", self.name)
    }
}

/// A `FileSet` resource of the Director.
#[derive(Debug, Clone)]
pub struct FileSet {
    /// Resource name.
    pub name: String,
    /// The lines between the resource's braces but its name, one directive (or brace) a line.
    pub lines: Vec<String>,
}

impl FileSet {
    /// One Include with one Options block (directives such as `"Signature = MD5"`) and the given
    /// paths.
    pub fn new(name: &str, options: &[&str], paths: &[&Path]) -> Self {
        let mut lines = vec!["Include {".to_owned(), "Options {".to_owned()];
        lines.extend(options.iter().map(|&line| line.to_owned()));
        lines.push("}".to_owned());
        lines.extend(paths.iter().map(|path| format!("File = {}", quoted(&path.to_string_lossy()))));
        lines.push("}".to_owned());
        Self { name: name.to_owned(), lines }
    }

    /// The same with another directive at the end of the Include.
    #[must_use]
    pub fn with(mut self, line: impl Into<String>) -> Self {
        self.lines.insert(self.lines.len().saturating_sub(1), line.into());
        self
    }
}

/// `"text"` in the syntax of Bacula's configuration.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A `Job` resource of a client's `FileSet`; what else it says are directives, one a line.
pub fn job_resource(name: &str, client: &str, file_set: &str, more: &str) -> String {
    format!(
        "Job {{\nName = \"{name}\"\nClient = {client}-fd\nFileSet = \"{file_set}\"\nStorage = {client}\n\
         Pool = {client}\nMessages = Standard\n{more}\n}}"
    )
}

/// The job `verify-CLIENT`, for any level. `file_set` must be the bed's first: a Verify job of the
/// disk takes that of the backup job's resource, whatever it has itself.
pub fn verify_job(client: &str, file_set: &str, more: &str) -> String {
    let more = format!("Type = Verify\nLevel = DiskToCatalog\nVerify Job = backup-{client}\n{more}");
    job_resource(&format!("verify-{client}"), client, file_set, &more)
}

/// Everything about a bed that is not the same for all. Making it makes the bed's folder, so that a
/// test can lay its trees there before the daemons start.
#[derive(Debug)]
pub struct BedOptions {
    /// The bed's folder.
    pub folder: Folder,
    /// Its File Daemons.
    pub clients: Vec<ClientOptions>,
    /// `FileSets`; the first is that of all backup jobs unless a run says otherwise. Without any,
    /// there is one named `Source` that takes the directory `source` of the folder with MD5, ACLs
    /// and extended attributes.
    pub file_sets: Vec<FileSet>,
    /// More directives for the Director's own resource.
    pub director: Vec<String>,
    /// Whole resources for the Director's configuration, one directive a line. `@port-of-NAME@`
    /// becomes the port of that client, for a second way to reach it.
    pub director_resources: Vec<String>,
    /// More directives for the Storage Daemon's own resource.
    pub storage: Vec<String>,
    /// More directives for every device.
    pub device: Vec<String>,
    /// More directives for every pool.
    pub pool: Vec<String>,
    /// The port of 127.0.0.1 that Director and File Daemons use for the Storage Daemon, if not its
    /// own: that of a relay.
    pub storage_port: Option<u16>,
    /// TLS-PSK between all daemons, as Bacula 15 does when nothing is said. `false` says
    /// `TLS PSK Enable = no`.
    pub tls_psk: bool,
    /// The File Daemons also report each file that is saved or skipped, and the catalog's log keeps
    /// it.
    pub every_message: bool,
}

impl BedOptions {
    /// A bed with the given clients; `label` is part of the folder's name.
    pub fn new(label: &str, clients: impl IntoIterator<Item = ClientOptions>) -> Result<Self> {
        Ok(Self {
            folder: Folder::new(label)?,
            clients: clients.into_iter().collect(),
            file_sets: Vec::new(),
            director: Vec::new(),
            director_resources: Vec::new(),
            storage: Vec::new(),
            device: Vec::new(),
            pool: Vec::new(),
            storage_port: None,
            tls_psk: true,
            every_message: false,
        })
    }

    /// A bed with the stock daemon as client `reference` and the daemon under test as client
    /// `test`.
    pub fn side_by_side(label: &str) -> Result<Self> {
        let reference = ClientOptions::new(Fd::Stock).named("reference");
        Self::new(label, [reference, ClientOptions::new(Fd::under_test()?).named("test")])
    }

    /// The same without TLS between its daemons, so that scripts can talk to them.
    #[must_use]
    pub fn in_clear(mut self) -> Self {
        self.tls_psk = false;
        self
    }

    /// The directory `source` of the folder, made when missing.
    pub fn source(&self) -> Result<PathBuf> {
        self.folder.make("source")
    }
}
