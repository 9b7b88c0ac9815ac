//! The program from outside: command line, `-t`, background, signals, pid file (reference 06 §4,
//! §5, §15).

#![expect(clippy::unwrap_used, reason = "tests, with their helpers")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ports::ReservedPort;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bacula-fd");
/// It decides no result.
const PATIENCE: Duration = Duration::from_secs(120);

/// A directory with a configuration, removed at the end.
struct Place {
    directory: PathBuf,
    port: ReservedPort,
}

impl Place {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("ferrofd-start-{name}-{}", std::process::id()));
        fs::create_dir_all(directory.join("work")).unwrap();
        fs::create_dir_all(directory.join("run")).unwrap();
        let place = Self { directory, port: ReservedPort::new().unwrap() };
        place.configure("");
        place
    }

    fn configure(&self, more: &str) {
        let text = format!(
            "Director {{\n  Name = d-dir\n  Password = \"pw\"\n}}\nFileDaemon {{\n  Name = x-fd\n  FDport = {}\n  \
             FDAddress = 127.0.0.1\n  WorkingDirectory = {1}/work\n  Pid Directory = {1}/run\n{more}}}\n\
             Messages {{\n  Name = Standard\n  director = d-dir = all\n}}\n",
            self.port.number(),
            self.directory.display()
        );
        fs::write(self.config(), text).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.directory.join("fd.conf")
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.join(format!("run/bacula-fd.{}.pid", self.port.number()))
    }

    fn run(&self, options: &[&str]) -> Output {
        Command::new(PROGRAM).args(options).arg(self.config()).stdin(Stdio::null()).output().unwrap()
    }

    /// A daemon in the foreground, with its log.
    fn foreground(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["-f", "-d", "1", "-c"]).arg(self.config()).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// A daemon in the foreground that listens already.
    fn daemon(&self) -> Child {
        Self::listening(&mut self.foreground())
    }

    fn listening(daemon: &mut Command) -> Child {
        let mut child = daemon.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening")), "the daemon ended instead of listening");
        // Somebody must read on, or the daemon would block or break at its next line.
        std::thread::spawn(move || lines.for_each(drop));
        child
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Rubbish in the temporary directory is no reason to fail.
        let _left = fs::remove_dir_all(&self.directory);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_good_file_prints_nothing() {
    let place = Place::new("good");
    let output = place.run(&["-t", "-c"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout), text(&output.stderr)),
        (Some(0), String::new(), String::new())
    );
    assert_eq!(place.run(&["-t"]).status.code(), Some(0));
    assert_eq!(place.run(&["-t", "-c", "/nope"]).status.code(), Some(0));
    assert_eq!(place.run(&["-t", "-u", "nosuch", "-g", "nosuch", "-c"]).status.code(), Some(0));
    assert!(!place.pid_file().exists());
}

#[test]
fn encryption_that_is_required_and_impossible_keeps_the_daemon_from_starting() {
    let place = Place::new("requirement");
    let settings = place.directory.join("bacula-fd.toml");
    fs::write(&settings, "tls.require = true\n").unwrap();
    assert_eq!(place.run(&["-t", "-c"]).status.code(), Some(0), "the pre-shared key is on unless somebody says no");
    place.configure("  TLS Require = yes\n");
    assert_eq!(place.run(&["-t", "-c"]).status.code(), Some(0));
    place.configure("  TLS PSK Enable = no\n");
    let output = place.run(&["-t", "-c"]);
    let said = text(&output.stderr);
    let wanted = "bacula-fd.toml: tls.require is set, but FileDaemon \"x-fd\" in the configuration";
    assert!(output.status.code() == Some(1) && said.contains(wanted), "{said}");
    fs::write(&settings, "tls.require = false\n").unwrap();
    assert_eq!(place.run(&["-t", "-c"]).status.code(), Some(0));
}

#[test]
fn mistakes_end_with_status_1() {
    let place = Place::new("mistakes");
    let output = place.run(&["-z"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(text(&output.stderr).starts_with(&format!("{PROGRAM}: invalid option -- 'z'\nferrofd ")));
    place.configure("  Foo = bar\n");
    let output = place.run(&["-t", "-c"]);
    assert_eq!(output.status.code(), Some(1));
    let block = format!(
        "bacula-fd: ERROR TERMINATION at parse_conf.c:1698\nConfig error: Keyword \"Foo\" not permitted in this \
         resource.\nPerhaps you left the trailing brace off of the previous resource.\n            \
         : line 11, col 6 of file {}\n  Foo = bar\n\n",
        place.config().display()
    );
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with(&block), "{stdout}");
    assert!(stdout.ends_with(&block) && stdout.len() == 2 * block.len() + "21-Nov 01:46 ".len(), "{stdout}");
    assert_eq!(place.run(&["-t", "-k", "-c"]).status.code(), Some(1));
    // In the background nobody hears of it.
    assert_eq!(place.run(&["-c"]).status.code(), Some(0));
}

#[test]
fn settings_beside_the_configuration_are_read_and_a_mistake_names_file_and_line() {
    let place = Place::new("settings");
    let settings = place.directory.join("bacula-fd.toml");
    fs::write(&settings, "[job]\nworkers = 2\nmemory = \"8 MiB\"\n[log]\nformat = \"json\"\nlevel = \"info\"\n")
        .unwrap();
    assert_eq!(place.run(&["-t", "-c"]).status.code(), Some(0));
    let mut daemon = place.daemon();
    signal(&daemon, Signal::SIGTERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(15));
    let name = settings.display();
    let wrong = [
        ("[job]\nworkers = 0\n", format!("{name}: TOML parse error at line 2, column 11")),
        ("[job]\nwokers = 2\n", "unknown field `wokers`".to_owned()),
        ("[log]\nlevel = \"loud\"\n", format!("{name}: TOML parse error at line 2")),
    ];
    for (content, said) in wrong {
        fs::write(&settings, content).unwrap();
        for options in [&["-t", "-c"][..], &["-f", "-c"]] {
            let output = place.run(options);
            assert_eq!(output.status.code(), Some(1));
            let told = text(&output.stderr);
            assert!(told.contains(&said), "{said:?} in {told}");
        }
    }
    fs::remove_file(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    let output = place.run(&["-t", "-c"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains(&format!("{name}: cannot be read: Is a directory")),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn settings_to_which_a_link_leads_in_vain_end_the_start() {
    let place = Place::new("dangling");
    let settings = place.directory.join("bacula-fd.toml");
    std::os::unix::fs::symlink(place.directory.join("not mounted"), &settings).unwrap();
    let said = format!("{}: cannot be read: No such file or directory", settings.display());
    for options in [&["-t", "-c"][..], &["-f", "-c"]] {
        let output = place.run(options);
        assert_eq!(output.status.code(), Some(1), "{options:?}");
        assert!(text(&output.stderr).contains(&said), "{}", text(&output.stderr));
    }
}

#[test]
fn a_start_that_fails_is_told_in_the_form_of_the_log() {
    let place = Place::new("json");
    let json = "[log]\nformat = \"json\"\n";
    let required = format!("{json}[tls]\nrequire = true\n");
    for (line, settings, said) in [
        ("Plugin Directory = /no/such/directory", json, "/no/such/directory"),
        ("No Such Directive = 1", json, "^"),
        ("Messages = nobody", json, "nobody"),
        ("TLS PSK Enable = no", &required, "tls.require is set"),
        ("PKI Signatures = yes; PKI Keypair = /no/such/file", json, "/no/such/file"),
    ] {
        place.configure(&format!("  {line}\n"));
        fs::write(place.directory.join("bacula-fd.toml"), settings).unwrap();
        let output = place.run(&["-f", "-c"]);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{line}");
        let told = text(&output.stderr);
        assert!(told.contains(said) && told.lines().all(|line| line.starts_with('{')), "{line}: {told}");
    }
}

/// Also what is said where a message can't be delivered, and what a list of tags does.
#[test]
fn everything_that_a_daemon_prints_is_json_where_its_log_is() {
    let place = Place::new("all-json");
    place.configure("");
    let config = fs::read_to_string(place.config()).unwrap();
    let nowhere = "  append = \"/no/such/directory/log\" = all, events\n  director =";
    fs::write(place.config(), config.replace("  director =", nowhere)).unwrap();
    fs::write(place.directory.join("bacula-fd.toml"), "[log]\nformat = \"json\"\n").unwrap();
    let (out, err) = (place.directory.join("out"), place.directory.join("err"));
    let mut daemon = Command::new(PROGRAM)
        .args(["-f", "-d", "10,network", "-c"])
        .arg(place.config())
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let said = || text(&[fs::read(&out).unwrap(), fs::read(&err).unwrap()].concat());
    wait_until("it listens", || said().contains("listening"));
    wait_until("it can't deliver", || said().contains("Message delivery ERROR: "));
    signal(&daemon, Signal::SIGTERM);
    daemon.wait().unwrap();
    let said = said();
    assert!(said.contains("tag=network") && said.contains("Shutting down"), "{said}");
    assert_eq!(said.lines().find(|line| !line.starts_with('{')), None, "{said}");
    assert_eq!(fs::read(&out).unwrap(), b"");
}

#[test]
fn signals_end_the_daemon_with_their_number() {
    let place = Place::new("signals");
    let settings = place.directory.join("bacula-fd.toml");
    // A setting that is gone is the first thing that the log tells, before anything else is done.
    for early in ["", "[job]\nnice = 5\n"] {
        fs::write(&settings, early).unwrap();
        for (end, status) in [(Signal::SIGTERM, 15), (Signal::SIGINT, 2), (Signal::SIGUSR1, 10)] {
            let mut daemon = place.daemon();
            assert_eq!(fs::read_to_string(place.pid_file()).unwrap(), format!("{}\n", daemon.id()));
            for ignored in [Signal::SIGHUP, Signal::SIGUSR2, Signal::SIGPIPE, Signal::SIGWINCH] {
                signal(&daemon, ignored);
            }
            signal(&daemon, end);
            let ended = daemon.wait().unwrap();
            assert_eq!((ended.code(), ended.signal()), (Some(status), None), "{early}");
            assert!(!place.pid_file().exists());
            let state = place.directory.join(format!("work/bacula-fd.{}.state", place.port.number()));
            assert_eq!(fs::read(state).unwrap().len(), 196);
        }
    }
}

/// The default of each is the end of the process, at once. The stock daemon catches and ignores
/// none of them, either (reference 06 §5.5).
#[test]
fn real_time_signals_have_their_default() {
    // Two numbers below these are the C library's own.
    const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;
    let place = Place::new("real-time");
    for number in REAL_TIME {
        let mut daemon = place.daemon();
        let sent = Command::new("kill").args([format!("-{number}"), daemon.id().to_string()]).status().unwrap();
        assert!(sent.success(), "{number}");
        assert_eq!(daemon.wait().unwrap().signal(), Some(number));
        // The next one takes over what this one has left.
        assert!(place.pid_file().exists(), "{number}");
    }
}

#[test]
fn a_second_daemon_is_refused() {
    let place = Place::new("second");
    let mut daemon = place.daemon();
    let output = place.run(&["-f", "-c"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "x-fd: ERROR TERMINATION at bsys.c:705\nbacula-fd is already running. pid={}, check file {}\n",
        daemon.id(),
        place.pid_file().display()
    );
    assert!(text(&output.stdout).starts_with(&expected), "{}", text(&output.stdout));
    signal(&daemon, Signal::SIGTERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(15));
}

/// While an address is not free, another daemon may serve: its files are its own.
#[test]
fn nothing_is_begun_until_every_address_is_free() {
    let place = Place::new("bound");
    let other = ReservedPort::new().unwrap();
    let free = format!("ip = {{ addr = 127.0.0.1; port = {} }}", place.port.number());
    let taken = format!("ip = {{ addr = 127.0.0.1; port = {} }}", other.number());
    let config = fs::read_to_string(place.config()).unwrap();
    let one = format!("FDport = {}\n  FDAddress = 127.0.0.1\n", place.port.number());
    assert!(config.contains(&one), "{config}");
    fs::write(place.config(), config.replace(&one, &format!("FDAddresses = {{ {free} {taken} }}\n"))).unwrap();
    // What a daemon that was killed while it wrote has left, or one that is writing.
    let journal = place.directory.join(format!("work/bacula-fd.{}.snapshots.new", place.port.number()));
    fs::write(&journal, "").unwrap();
    let holder = TcpListener::bind(other.address()).unwrap();
    let mut daemon = place.foreground().stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(daemon.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("Cannot bind port")), "it can bind the port");
    assert!(journal.exists(), "the other's journal was read");
    let names = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    let names: Vec<_> = names.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with("listener")), "{names:?}");
    drop(holder);
    let mut log = BufReader::new(daemon.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("listening")), "it can't bind the port that is free now");
    assert!(!journal.exists());
    signal(&daemon, Signal::SIGTERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(15));
}

#[test]
fn a_daemon_that_ends_takes_no_calls_while_a_mail_program_hangs() {
    let place = Place::new("ends");
    let config = fs::read_to_string(place.config()).unwrap();
    let mails = place.directory.join("mails");
    let command = place.directory.join("mail");
    scripts::write(&command, &format!(": > {}\nexec sleep 1000", mails.display())).unwrap();
    let mail = format!("  mailcommand = \"{}\"\n  mail = root = all, events\n  director =", command.display());
    fs::write(place.config(), config.replace("  director =", &mail)).unwrap();
    let mut daemon = place.daemon();
    signal(&daemon, Signal::SIGTERM);
    wait_until("no mail", || mails.exists());
    let called = TcpStream::connect(place.port.address()).map(drop).map_err(|error| error.kind());
    assert_eq!(called, Err(std::io::ErrorKind::ConnectionRefused));
    // Its last words have two minutes; the second signal takes them.
    signal(&daemon, Signal::SIGTERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(1));
}

/// Jobs of many threads need more than the 1,024 that a process has as a rule; programs that wait
/// with `select` must not have more.
#[test]
fn it_may_open_more_files_than_the_programs_that_it_starts() {
    let place = Place::new("files");
    let config = fs::read_to_string(place.config()).unwrap();
    let limit = place.directory.join("limit");
    let command = place.directory.join("mail");
    scripts::write(&command, &format!("ulimit -S -n > {0}.new; mv {0}.new {0}", limit.display())).unwrap();
    let mail = format!("  mailcommand = \"{}\"\n  mail = root = all, events\n  director =", command.display());
    fs::write(place.config(), config.replace("  director =", &mail)).unwrap();
    let mut few = Command::new("sh");
    few.args(["-c", "ulimit -S -n 256 && ulimit -H -n 4096 && exec \"$@\"", "sh", PROGRAM, "-f", "-d", "1", "-c"]);
    few.arg(place.config()).stdin(Stdio::null()).stderr(Stdio::piped());
    let mut daemon = Place::listening(&mut few);
    let limits = fs::read_to_string(format!("/proc/{}/limits", daemon.id())).unwrap();
    signal(&daemon, Signal::SIGTERM);
    assert_eq!(daemon.wait().unwrap().code(), Some(15));
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().take(2).collect::<Vec<_>>(), ["4096", "4096"]);
    assert_eq!(fs::read_to_string(limit).unwrap(), "256\n");
}

/// What is behind would be missing, as `TLS Require` or the list of a Director.
#[test]
fn a_configuration_of_which_a_part_would_be_left_out_is_refused() {
    let place = Place::new("large");
    let whole = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), format!("{whole}@|\"yes #\"\n")).unwrap();
    let output = place.run(&["-t", "-c"]);
    let said = text(&output.stdout);
    assert!(output.status.code() == Some(1) && said.contains("|yes #: File too large"), "{:?}: {said}", output.status);
}

/// A supervisor may have it start so; the kernel then keeps no child's status.
#[test]
fn it_learns_how_programs_end_where_its_parent_ignores_that() {
    let place = Place::new("ignored");
    let whole = place.directory.join("whole.conf");
    fs::rename(place.config(), &whole).unwrap();
    fs::write(place.config(), format!("@|\"cat {}\"\n", whole.display())).unwrap();
    let ignoring = ["--ignore-signal=CHLD", PROGRAM, "-t", "-c"];
    let output = Command::new("env").args(ignoring).arg(place.config()).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
}

#[test]
fn in_the_background_it_has_a_session_of_its_own() {
    let place = Place::new("background");
    let started = Command::new(PROGRAM).arg("-c").arg(place.config()).current_dir(&place.directory).output().unwrap();
    assert_eq!((started.status.code(), text(&started.stdout)), (Some(0), String::new()));
    wait_until("nobody listens", || TcpStream::connect(place.port.address()).is_ok());
    let pid: i32 = fs::read_to_string(place.pid_file()).unwrap().trim().parse().unwrap();
    let about = |what: &str| PathBuf::from(format!("/proc/{pid}/{what}"));
    assert_eq!(nix::unistd::getsid(Some(Pid::from_raw(pid))).unwrap().as_raw(), pid);
    for descriptor in ["fd/0", "fd/1", "fd/2"] {
        assert_eq!(fs::read_link(about(descriptor)).unwrap(), Path::new("/dev/null"));
    }
    assert_eq!(fs::read_link(about("cwd")).unwrap(), fs::canonicalize(&place.directory).unwrap());
    let status = fs::read_to_string(about("status")).unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim();
    assert_eq!(u32::from_str_radix(umask, 8).unwrap() & 0o026, 0o026, "{umask}");
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    wait_until("the pid file stays", || !place.pid_file().exists());
}
