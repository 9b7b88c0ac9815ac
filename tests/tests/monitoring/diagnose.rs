//! `bacula-fd --diagnose`: what it says of a good configuration, and of one with each fault.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use serde_json::Value;

use crate::metrics::root;
use bed::{
    Authority, Bed, BedOptions, ClientOptions, FD_PASSWORD, Fd, PATIENCE, Process, ReservedPort, Result, SlowStorage,
    argv, fd_argv, run,
};

/// A bed whose File Daemon runs, and a copy of its configuration for a daemon that does not.
struct Stage {
    bed: Bed,
    folder: PathBuf,
    /// With another port and other directories.
    good: String,
    /// The port in that copy.
    port: ReservedPort,
}

/// What a diagnosis has said.
struct Said {
    status: Option<i32>,
    checks: Vec<Value>,
    text: String,
}

impl Said {
    /// Whether one of its findings has this check, state, and words.
    #[track_caller]
    fn must_have(&self, check: &str, state: &str, words: &str) {
        let is_it = |found: &&Value| found["check"] == check && found["state"] == state;
        let found: Vec<_> = self.checks.iter().filter(is_it).collect();
        let has_words = |found: &&Value| found["finding"].as_str().is_some_and(|text| text.contains(words));
        assert!(found.iter().any(has_words), "no {state} of {check} with {words:?} in:\n{}", self.text);
        let bare = found.iter().find(|found| (found["hint"] == "") != (state == "ok"));
        assert!(bare.is_none(), "a hint is missing, or one too many: {bare:?}");
    }

    fn is_fault(&self) -> bool {
        self.checks.iter().any(|found| found["state"] == "fault")
    }
}

impl Stage {
    fn new() -> Result<Self> {
        let mut options = BedOptions::new("diagnose", [ClientOptions::new(Fd::Ours).named("test")])?;
        let keys = options.folder.make("keys")?;
        let authority = Authority::new(&keys, "authority")?;
        for (name, days) in [("good", 30), ("other", 30), ("soon", 3), ("ended", -1)] {
            authority.sign_for(name, &["localhost"], days)?;
            fs::set_permissions(keys.join(format!("{name}.key")), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let tls = |line: String| [line, "TLS Enable = yes".to_owned()];
        let lines: Vec<String> = tls(authority.trusted()).into_iter().chain(authority.identity("good")).collect();
        options.clients.iter_mut().for_each(|client| client.fd_director.clone_from(&lines));
        let mut bed = Bed::start(options)?;
        let client = bed.client("test")?;
        let (config, port, work) = (client.config.clone(), client.port(), client.work.clone());
        fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();
        let folder = bed.folder().to_owned();
        let idle = folder.join("work/idle");
        fs::create_dir(&idle).unwrap();
        let reserved = ReservedPort::new()?;
        let free = reserved.number().to_string();
        let good = fs::read_to_string(&config).unwrap();
        let good = good.replace(&port.to_string(), &free).replace(work.to_str().unwrap(), idle.to_str().unwrap());
        Ok(Self { bed, folder, good, port: reserved })
    }

    /// Diagnoses a configuration of this text, as text and as JSON.
    fn says(&self, config: &str, permissions: u32, more: &[&str]) -> Result<Said> {
        let path = self.folder.join("etc/diagnosed.conf");
        fs::write(&path, config).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(permissions)).unwrap();
        self.says_of(&path, more)
    }

    fn says_of(&self, path: &Path, more: &[&str]) -> Result<Said> {
        let diagnose = |json: &[&str]| {
            let words = ["--diagnose", "-c"].iter().map(OsStr::new).chain([path.as_os_str()]);
            let words = words.chain(json.iter().chain(more).map(OsStr::new));
            run(&fd_argv(self.bed.root(), Fd::Ours, words)?, b"")
        };
        // Both at once: storage that does not answer takes its time.
        let (shown, done) = std::thread::scope(|scope| {
            let shown = scope.spawn(|| diagnose(&[]));
            let done = diagnose(&["--json"]);
            (shown.join(), done)
        });
        let (shown, done) = (shown.unwrap()?, done?);
        let (text, json) = (shown.text(), done.text());
        // One screen, even of a bad host; and never a password or what is made of it.
        assert!(text.lines().count() <= 40, "{text}");
        assert!(!format!("{text}{json}").contains(FD_PASSWORD), "{text}");
        assert_eq!(shown.status.code(), done.status.code());
        let whole: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
        let checks = whole["checks"].as_array().unwrap().clone();
        let said = Said { status: done.status.code(), checks, text };
        assert_eq!(said.status, Some(i32::from(said.is_fault())), "{}", said.text);
        Ok(said)
    }
}

#[test]
fn a_diagnosis_finds_each_fault_and_none_in_a_good_configuration() -> Result<()> {
    skip::when!(!geteuid().is_root(), "only root's daemon is without a finding");
    let mut stage = Stage::new()?;
    the_running_daemon_is_well(&mut stage)?;
    faults_of_files(&stage)?;
    faults_of_certificates(&stage)?;
    faults_of_directories(&stage)?;
    a_daemon_of_another_user_is_asked_about_as_that_user(&stage)?;
    storage_that_does_not_answer(&stage)?;
    faults_of_the_process_and_the_network(&stage)
}

fn the_running_daemon_is_well(stage: &mut Stage) -> Result<()> {
    let (config, pid) = (stage.bed.client("test")?.config.clone(), stage.bed.client("test")?.pid()?);
    let storage = format!("127.0.0.1:{}", stage.bed.storage().port());
    let said = stage.says_of(&config, &["--storage", &storage])?;
    assert_eq!(said.status, Some(0), "{}", said.text);
    said.must_have("configuration", "ok", "File Daemon test-fd, 1 Director");
    said.must_have("permissions", "ok", "in 2 files");
    said.must_have("tls", "ok", "good.pem fits its key and is valid until");
    said.must_have("working directory", "ok", "can be written to");
    said.must_have("plugin directory", "ok", "bpipe-fd.so");
    said.must_have("daemon", "ok", &format!("process {pid} answers on 127.0.0.1:"));
    said.must_have("capabilities", "ok", &format!("the daemon (process {pid}, user 0)"));
    said.must_have("director", "ok", "1 Director calls this client");
    said.must_have("storage daemon", "ok", &format!("{storage} accepts a connection"));
    for area in ["page cache", "clock"] {
        assert!(said.checks.iter().any(|found| found["check"] == area), "{}", said.text);
    }
    the_page_shows_the_same_checks(&said);
    // A daemon of a unit has no pid file (`-P`): it is found by its port.
    let pid_files = fs::read_dir(&stage.bed.client("test")?.work).unwrap().flatten().map(|entry| entry.path());
    let pid_files: Vec<_> = pid_files.filter(|path| path.extension().is_some_and(|end| end == "pid")).collect();
    assert_eq!(pid_files.len(), 1, "{pid_files:?}");
    fs::remove_file(&pid_files[0]).unwrap();
    let said = stage.says_of(&config, &[])?;
    said.must_have("daemon", "ok", &format!("process {pid} answers on 127.0.0.1:"));
    said.must_have("capabilities", "ok", &format!("the daemon (process {pid}, user 0)"));
    Ok(())
}

/// The sample of the manual has every check that a good host has, in its order, and the metrics.
fn the_page_shows_the_same_checks(said: &Said) {
    let page = fs::read_to_string(root().join("docs/monitoring.md")).unwrap();
    let sample = page.split("```").find(|block| block.contains("# bacula-fd --diagnose")).unwrap();
    let found = sample.lines().filter(|line| ["ok ", "WARNING ", "FAULT "].iter().any(|state| line.starts_with(state)));
    let areas = found.map(|line| line.split_at(9).1.split("  ").next().unwrap().to_owned());
    let shown: Vec<_> = areas.filter(|area| area != "metrics").collect();
    let mut printed: Vec<_> = said.checks.iter().map(|check| check["check"].as_str().unwrap().to_owned()).collect();
    printed.dedup();
    assert_eq!(shown, printed, "the page on the left, the program on the right");
}

fn faults_of_files(stage: &Stage) -> Result<()> {
    let good = &stage.good;
    let line = good.lines().position(|line| line.starts_with("WorkingDirectory")).unwrap() + 1;
    let said = stage.says(&good.replace("WorkingDirectory", "WorkingDyrectory"), 0o640, &[])?;
    said.must_have("configuration", "fault", &format!("etc/diagnosed.conf:{line}:"));
    said.must_have("configuration", "fault", "WorkingDyrectory");
    // What needs no configuration is looked at all the same.
    assert!(said.checks.iter().any(|found| found["check"] == "clock"), "{}", said.text);
    let said = stage.says(&good.replace("Password = ", "Password = { "), 0o640, &[])?;
    said.must_have("configuration", "fault", "expected a string, got T_BOB: (hidden)");
    let said = stage.says(&good.replace("\nMessages {", "\nConsole {\nPassword = x\n"), 0o640, &[])?;
    said.must_have("configuration", "fault", "not permitted in this resource");
    let other = good.replace("Director = bed-dir = ", "Director = other-dir = ");
    let said = stage.says(&other, 0o640, &[])?;
    said.must_have("configuration", "warning", "Messages \"Standard\" has a Director \"other-dir\"");
    let said = stage.says_of(&stage.folder.join("etc/absent.conf"), &[])?;
    said.must_have("configuration", "fault", "No such file");
    assert!(said.text.contains("name the daemon's own file with -c"), "{}", said.text);
    stage.says(good, 0o644, &[])?.must_have("permissions", "warning", "every user can read the secret");
    stage.says(good, 0o660, &[])?.must_have("permissions", "fault", "other users can change");
    let folder = stage.folder.join("etc");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    stage.says(good, 0o640, &[])?.must_have("permissions", "fault", "etc has the mode 777: other users can change");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = stage.folder.join("etc/bacula-fd.toml");
    fs::write(&settings, "[job]\nworkerz = 1\n").unwrap();
    stage.says(good, 0o640, &[])?.must_have("settings", "fault", "workerz");
    fs::remove_file(&settings).unwrap();
    Ok(())
}

fn faults_of_certificates(stage: &Stage) -> Result<()> {
    let with = |from: &str, to: &str| {
        assert!(stage.good.contains(from), "{from}");
        stage.says(&stage.good.replace(from, to), 0o640, &[])
    };
    with("good.pem", "none.pem")?.must_have("tls", "fault", "No such file");
    with("good.key", "other.key")?.must_have("tls", "fault", "other.key is not the key of");
    with("keys/good.", "keys/ended.")?.must_have("tls", "fault", "ended.pem ended on");
    with("keys/good.", "keys/soon.")?.must_have("tls", "warning", "soon.pem ends on");
    with("authority.pem", "good.key")?.must_have("tls", "fault", "Director bed-dir");
    let keys = stage.folder.join("keys");
    let open = keys.join("good.key");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    stage.says(&stage.good, 0o640, &[])?.must_have("permissions", "warning", "good.key");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o600)).unwrap();
    let pair = format!("PKI Signatures = yes\nPKI Keypair = \"{}\"\nFDAddress", keys.join("good.pem").display());
    with("FDAddress", &pair)?.must_have("pki", "fault", "good.pem");
    Ok(())
}

fn faults_of_directories(stage: &Stage) -> Result<()> {
    let idle = stage.folder.join("work/idle");
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&idle, 0o777);
    stage.says(&stage.good, 0o640, &[])?.must_have("working directory", "warning", "other users can change");
    mode(&idle, 0o755);
    let gone = stage.good.replace("work/idle", "work/gone");
    stage.says(&gone, 0o640, &[])?.must_have("working directory", "fault", "work/gone: No such file or directory");
    // As the daemon's user, which finds the same files readable as the root that starts it.
    mode(&stage.folder, 0o755);
    let said = stage.says(&stage.good, 0o640, &["-u", "nobody"])?;
    said.must_have("working directory", "fault", "can't be written to: Permission denied");
    said.must_have("capabilities", "fault", "can't read files of other users");
    let said = stage.says(&stage.good, 0o640, &["-u", "nobody", "-k"])?;
    said.must_have("capabilities", "ok", "restore only its own");
    stage.says(&stage.good, 0o640, &["-u", "no-such-user"])?.must_have("daemon", "fault", "no-such-user");

    let plugins = stage.folder.join("plugins");
    fs::create_dir(&plugins).unwrap();
    fs::write(plugins.join("x-fd.so"), "").unwrap();
    let directory = |path: &Path| {
        let (before, rest) = stage.good.split_once("Plugin Directory = ").unwrap();
        let (_, after) = rest.split_once('\n').unwrap();
        format!("{before}Plugin Directory = \"{}\"\n{after}", path.display())
    };
    mode(&plugins.join("x-fd.so"), 0o666);
    stage.says(&directory(&plugins), 0o640, &[])?.must_have("plugin directory", "fault", "x-fd.so has the mode 666");
    let gone = stage.folder.join("no-plugins");
    stage.says(&directory(&gone), 0o640, &[])?.must_have("plugin directory", "fault", "No such file");
    Ok(())
}

/// Also of a file system that only the daemon sees read-only, as its unit may have it.
fn a_daemon_of_another_user_is_asked_about_as_that_user(stage: &Stage) -> Result<()> {
    let (idle, path) = (stage.folder.join("work/idle"), stage.folder.join("etc/diagnosed.conf"));
    let owner = |uid| chown(&idle, Some(uid), Some(uid)).unwrap();
    for (mounts, is_read_only) in
        [(":", false), ("mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"", true)]
    {
        owner(65534);
        stage.says(&stage.good, 0o640, &[])?.must_have("daemon", "warning", "no daemon runs");
        let script = format!("{mounts} && exec \"$@\"");
        let mut words = argv(["unshare", "--mount", "sh", "-c", &script]);
        let options = ["-fP", "-u", "nobody", "-k", "-c"].map(OsStr::new);
        words.push(idle.clone().into());
        words.extend(fd_argv(stage.bed.root(), Fd::Ours, options.into_iter().chain([path.as_os_str()]))?);
        let mut daemon = Process::start("bacula-fd", &words, &stage.folder.join("log/other-user.out"))?;
        daemon.must_listen(stage.port.number())?;
        let said = stage.says_of(&path, &[])?;
        said.must_have("capabilities", "ok", &format!("the daemon (process {}, user 65534)", daemon.pid()));
        if is_read_only {
            said.must_have("working directory", "fault", "can't be written to: Read-only file system");
        } else {
            said.must_have("working directory", "ok", "can be written to");
            owner(0);
            let said = stage.says_of(&path, &[])?;
            said.must_have("working directory", "fault", "can't be written to: Permission denied");
        }
        daemon.stop(PATIENCE)?;
    }
    owner(0);
    Ok(())
}

/// The keys and the working directory lie on it.
fn storage_that_does_not_answer(stage: &Stage) -> Result<()> {
    if let Some(missing) = SlowStorage::missing() {
        skip::part(missing);
        return Ok(());
    }
    let [tree, mount] = ["tree", "mount"].map(|name| stage.folder.join(name));
    fs::create_dir_all(tree.join("work")).unwrap();
    fs::create_dir(&mount).unwrap();
    for name in ["good.key", "good.pem"] {
        fs::copy(stage.folder.join("keys").join(name), tree.join(name)).unwrap();
    }
    let there = |config: &str, from: &str, to: &str| {
        let (from, to) = (stage.folder.join(from), mount.join(to));
        config.replace(from.to_str().unwrap(), to.to_str().unwrap())
    };
    let config = there(&there(&stage.good, "keys/good.", "good."), "work/idle", "work");
    let mut storage = SlowStorage::mount(Path::new(env!("CARGO_BIN_EXE_slowfs")), &[], &tree, &mount)?;
    let said = stage.says(&config, 0o640, &[])?;
    said.must_have("tls", "ok", "mount/good.pem fits its key");
    said.must_have("working directory", "ok", "mount/work can be written to");
    storage.order("fault stop:")?;
    // At once with a configuration that lies there itself.
    let (said, without) = std::thread::scope(|scope| {
        let without = scope.spawn(|| stage.says_of(&mount.join("diagnosed.conf"), &[]));
        let said = stage.says(&config, 0o640, &["-u", "nobody"]);
        (said, without.join().unwrap())
    });
    without?.must_have("configuration", "fault", "its storage does not answer");
    let said = said?;
    said.must_have("permissions", "fault", "mount/good.key: its storage does not answer");
    said.must_have("tls", "fault", "certificate or key does not answer");
    said.must_have("daemon", "fault", "not looked at as the daemon's user");
    said.must_have("working directory", "fault", "mount/work: its storage does not answer");
    Ok(())
}

fn faults_of_the_process_and_the_network(stage: &Stage) -> Result<()> {
    let said = stage.says(&stage.good, 0o640, &[])?;
    said.must_have("daemon", "warning", "no daemon runs");
    said.must_have("storage daemon", "ok", "--storage HOST tries one");

    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = other.local_addr().unwrap().port();
    let port = stage.good.lines().find(|line| line.starts_with("FDPort")).unwrap();
    std::thread::spawn(move || {
        // Closed at once, without an answer.
        while other.accept().is_ok() {}
    });
    let said = stage.says(&stage.good.replace(port, &format!("FDPort = {taken}")), 0o640, &[])?;
    said.must_have("daemon", "fault", "another program than a File Daemon listens");

    let reserved = ReservedPort::new()?;
    let closed = reserved.number();
    let call = format!("Address = 127.0.0.1\nDIRPort = {closed}\nConnect To Director = yes\nPassword = ");
    let calls = stage.good.replacen("Password = ", &call, 1);
    let place = format!("127.0.0.1:{closed}");
    let said = stage.says(&calls, 0o640, &["--storage", &place])?;
    said.must_have("director", "fault", &format!("bed-dir on {place} can't be reached: Connection refused"));
    said.must_have("storage daemon", "fault", &format!("{place} can't be reached: Connection refused"));
    let said = stage.says(&calls.replace(&closed.to_string(), &taken.to_string()), 0o640, &[])?;
    said.must_have("director", "ok", "accepts a connection");
    let said = stage.says(&stage.good, 0o640, &["--storage", "host.invalid"])?;
    said.must_have("storage daemon", "fault", "host.invalid:9103 can't be reached: ");
    Ok(())
}
