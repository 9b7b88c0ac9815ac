//! The daemon as a daemon: command line, pid file, signals, background, and Debian's own
//! configuration unchanged.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::Signal;
use nix::unistd::geteuid;

use bed::peer::{Frame, Peer, TERMINATE, director_session, key_of_password};
use bed::{
    Adopted, Bed, BedError, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, Finished, PATIENCE, Plugins, Process,
    Result, Root, argv, build_plugin, children, fd_argv, is_listening, our_program, run, wait_for,
};

/// The exit status after SIGTERM is the signal's number (reference 06 §5.5).
const AFTER_SIGTERM: i32 = 15;

/// A configured File Daemon that does not run yet.
fn configured(label: &str) -> Result<Bed> {
    Bed::prepare(BedOptions::new(label, [ClientOptions::new(Fd::under_test()?).named("test")])?)
}

/// The command line of the daemon under test with the bed's configuration.
fn command(bed: &mut Bed, more: &[&str]) -> Result<Vec<OsString>> {
    let config = bed.client("test")?.config.clone();
    let args = [OsStr::new("-c"), config.as_os_str()].into_iter().chain(more.iter().map(OsStr::new));
    fd_argv(bed.root(), Fd::under_test()?, args)
}

fn pid_file(bed: &mut Bed) -> Result<PathBuf> {
    let client = bed.client("test")?;
    Ok(client.work.join(format!("bacula-fd.{}.pid", client.port())))
}

/// The daemon answers `Ping`.
fn assert_pings(port: u16) -> Result<()> {
    let mut peer = Peer::connect("FD", port)?;
    peer.send(b"Ping")?;
    peer.expect("2000 Ping OK\n").map(drop)
}

#[test]
fn a_good_configuration_passes_the_test_without_a_word() -> Result<()> {
    let mut bed = configured("t-good")?;
    let done = run(&command(&mut bed, &["-t"])?, b"")?;
    assert_eq!((done.status.code(), done.text().as_str()), (Some(0), ""));
    assert!(!pid_file(&mut bed)?.exists(), "-t makes no pid file");
    Ok(())
}

#[test]
fn a_broken_configuration_fails_the_test_and_names_file_and_line() -> Result<()> {
    let mut bed = configured("t-bad")?;
    let config = bed.client("test")?.config.clone();
    let good = fs::read_to_string(&config).unwrap();
    let line = good.lines().position(|line| line.starts_with("WorkingDirectory")).unwrap() + 1;
    fs::write(&config, good.replace("WorkingDirectory", "WorkingDyrectory")).unwrap();
    let done = run(&command(&mut bed, &["-t"])?, b"")?;
    assert_eq!(done.status.code(), Some(1), "{}", done.text());
    for wanted in ["WorkingDyrectory", &format!("line {line}"), &config.display().to_string()] {
        assert!(done.text().contains(wanted), "expected {wanted:?} in {:?}", done.text());
    }
    Ok(())
}

#[test]
fn what_lets_in_more_than_it_seems_is_told_by_ours_only() -> Result<()> {
    let mut bed = configured("t-open")?;
    let config = bed.client("test")?.config.clone();
    let good = fs::read_to_string(&config).unwrap();
    fs::write(&config, good.replace(FD_PASSWORD, "").replace("FDAddress = 127.0.0.1", "FDAddress = ::1")).unwrap();
    let done = run(&command(&mut bed, &["-t"])?, b"")?;
    assert_eq!(done.status.code(), Some(0), "{}", done.text());
    let is_ours = Fd::under_test()? == Fd::Ours;
    for wanted in ["has an empty password", "FdAddress takes no address of IPv6 such as ::1"] {
        assert_eq!(done.text().contains(wanted), is_ours, "{wanted:?} in {:?}", done.text());
    }
    Ok(())
}

#[test]
fn debug_messages_of_ours_are_on_standard_error() -> Result<()> {
    let mut bed = configured("t-debug")?;
    let config = bed.client("test")?.config.clone();
    let good = fs::read_to_string(&config).unwrap();
    // Ours says nothing about a good one.
    fs::write(&config, good.replace(FD_PASSWORD, "")).unwrap();
    let done = run(&command(&mut bed, &["-t", "-d", "200"])?, b"")?;
    let (empty, full) = match Fd::under_test()? {
        Fd::Ours => (&done.stdout, &done.stderr),
        Fd::Stock => (&done.stderr, &done.stdout),
    };
    assert!(empty.is_empty() && !full.is_empty(), "{}", done.text());
    Ok(())
}

#[test]
fn an_unknown_option_shows_the_usage_and_fails() -> Result<()> {
    let mut bed = configured("usage")?;
    for option in ["-?", "-Z", "--help"] {
        let done = run(&command(&mut bed, &[option])?, b"")?;
        assert_eq!(done.status.code(), Some(1), "{option}");
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(text.contains("Usage: bacula-fd [-f -s] [-c config_file]"), "{option}: {text}");
    }
    Ok(())
}

#[test]
fn the_pid_file_lives_as_long_as_the_daemon_and_guards_against_a_second() -> Result<()> {
    let mut bed = configured("pid")?;
    let file = pid_file(&mut bed)?;
    bed.client("test")?.daemon().start()?;
    let pid = bed.client("test")?.pid()?;
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{pid}\n"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

    let second = run(&command(&mut bed, &["-f"])?, b"")?;
    assert_eq!(second.status.code(), Some(1), "{}", second.text());
    let wanted = format!("bacula-fd is already running. pid={pid}, check file {}", file.display());
    assert!(second.text().contains(&wanted), "expected {wanted:?} in {:?}", second.text());
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{pid}\n"), "the second one left the file alone");

    // SIGHUP ends nothing: ours reads certificates again, of which there are none.
    bed.client("test")?.daemon().process()?.signal(Signal::SIGHUP)?;
    assert_pings(bed.client("test")?.port())?;

    let status = bed.client("test")?.daemon().stop()?;
    assert_eq!(status.code(), Some(AFTER_SIGTERM), "{status}");
    assert!(!file.exists(), "the pid file stays behind after an orderly end");
    Ok(())
}

#[test]
fn a_stale_pid_file_is_taken_over() -> Result<()> {
    let mut bed = configured("stale")?;
    let file = pid_file(&mut bed)?;
    bed.client("test")?.daemon().start()?;
    bed.client("test")?.daemon().kill()?;
    assert!(file.exists(), "killed without a chance to clean up");
    bed.client("test")?.daemon().start()?;
    let pid = bed.client("test")?.pid()?;
    assert_eq!(fs::read_to_string(&file).unwrap().lines().next(), Some(pid.to_string().as_str()));
    let status = bed.client("test")?.daemon().stop()?;
    assert_eq!(status.code(), Some(AFTER_SIGTERM), "{status}");
    Ok(())
}

#[test]
fn no_pid_file_is_written_with_the_option_for_none() -> Result<()> {
    let mut bed = configured("no-pid")?;
    let (file, port) = (pid_file(&mut bed)?, bed.client("test")?.port());
    let output = bed.folder().join("log/fd.out");
    let mut process = Process::start("bacula-fd", &command(&mut bed, &["-fP"])?, &output)?;
    process.must_listen(port)?;
    assert_pings(port)?;
    assert!(!file.exists());
    assert_eq!(process.stop(PATIENCE)?.code(), Some(AFTER_SIGTERM));
    Ok(())
}

/// The process may read every file, and nothing that it starts may.
fn must_only_read(pid: u32) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    // CAP_DAC_READ_SEARCH, and none that a program would inherit.
    assert_eq!((field("CapEff:"), field("CapPrm:")), ("0000000000000004", "0000000000000004"), "{status}");
    assert_eq!((field("CapInh:"), field("CapAmb:")), ("0000000000000000", "0000000000000000"), "{status}");
    assert!(!field("Uid:").contains("\t0"), "{status}");
}

/// Whether a process has not ended, waited for or not.
fn lives(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("State:\tZ"))
}

/// The one plugin host of a daemon.
fn plugin_host(daemon: u32) -> Result<u32> {
    let mut hosts = children(daemon)?;
    hosts.retain(|pid| lives(*pid));
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    Ok(hosts.remove(0))
}

#[test]
fn a_daemon_that_may_read_everything_may_do_nothing_else() -> Result<()> {
    skip::when!(!geteuid().is_root(), "only root can become another user");
    let client = ClientOptions::new(Fd::under_test()?).named("test").as_user("nobody");
    let mut options = BedOptions::new("read-all", [client])?.in_clear();
    let plugins = options.folder.make("plugins")?;
    fs::set_permissions(&plugins, fs::Permissions::from_mode(0o755)).unwrap();
    build_plugin("bulk", &[], &plugins.join("bulk-fd.so"))?;
    options.clients.iter_mut().for_each(|client| client.plugins = Plugins::In(plugins.clone()));
    let mut bed = Bed::prepare(options)?;
    let (output, port) = (bed.folder().join("log/fd.out"), bed.client("test")?.port());
    let mut process = Process::start("bacula-fd", &command(&mut bed, &["-f", "-u", "nobody", "-k"])?, &output)?;
    process.must_listen(port)?;
    must_only_read(process.pid());
    if Fd::under_test()? == Fd::Ours {
        // The plugin host of the start, and the one that takes its place.
        let first = plugin_host(process.pid())?;
        must_only_read(first);
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(first.cast_signed()), Signal::SIGKILL).unwrap();
        wait_for("its end", PATIENCE, || Ok(if lives(first) { Err(format!("{first}")) } else { Ok(()) }))?;
        let mut peer = director_session(port, 7)?;
        let second = plugin_host(process.pid())?;
        assert_ne!(first, second);
        must_only_read(second);
        peer.finish()?;
    }
    assert_eq!(process.stop(PATIENCE)?.code(), Some(AFTER_SIGTERM));
    Ok(())
}

#[test]
fn a_start_in_the_background_returns_and_the_daemon_serves() -> Result<()> {
    let mut bed = configured("background")?;
    let (file, port) = (pid_file(&mut bed)?, bed.client("test")?.port());
    Adopted::become_heir()?;
    let Finished { status, .. } = run(&command(&mut bed, &[])?, b"")?;
    assert_eq!(status.code(), Some(0));
    let daemon = wait_for("the pid file", PATIENCE, || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        // Written at once, but read perhaps before that.
        Ok(text
            .strip_suffix('\n')
            .and_then(|pid| pid.parse().ok())
            .map_or(Err(text), |pid: u32| Ok(Adopted::take(pid))))
    })??;
    wait_for("the daemon to listen", PATIENCE, || Ok(if is_listening(port)? { Ok(()) } else { Err(String::new()) }))?;
    assert_pings(port)?;
    assert_eq!(daemon.stop(PATIENCE)?, AFTER_SIGTERM);
    assert!(!file.exists(), "the pid file stays behind after an orderly end");
    Ok(())
}

#[test]
fn the_nagios_plugin_reports_both_daemons_alike() -> Result<()> {
    let mut said = Vec::new();
    for fd in [Fd::Stock, Fd::under_test()?] {
        let mut bed = Bed::prepare(BedOptions::new("nagios", [ClientOptions::new(fd).named("test")])?)?;
        bed.client("test")?.daemon().start()?;
        let port = bed.client("test")?.port().to_string();
        for password in [FD_PASSWORD, "wrong"] {
            let args = ["-H", "127.0.0.1", "-D", "fd", "-M", DIRECTOR, "-K", password, "-P", &port];
            let done = run(&bed.root().argv("/usr/lib/nagios/plugins/check_bacula", args)?, b"")?;
            said.push((done.status.code(), done.text()));
        }
    }
    let (stock, ours) = said.split_at(2);
    assert!(matches!(stock, [(Some(0), good), (Some(2), _)] if good.contains("BACULA OK")), "{stock:?}");
    assert_eq!(stock, ours);
    Ok(())
}

#[test]
fn systemd_is_notified_of_ready_alive_and_ending() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon tells systemd nothing");
    let mut bed = configured("notify")?;
    let socket = bed.folder().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut words = argv(["env", "WATCHDOG_USEC=100000"]);
    words.push(format!("NOTIFY_SOCKET={}", socket.display()).into());
    words.extend(command(&mut bed, &["-fP"])?);
    let process = Process::start("bacula-fd", &words, &bed.folder().join("log/fd.out"))?;
    let hear = || {
        let mut state = [0; 100];
        let length = manager.recv(&mut state).unwrap();
        String::from_utf8_lossy(state.get(..length).unwrap_or_default()).into_owned()
    };
    // However quick the start is, systemd is asked for time first.
    assert_eq!([hear(), hear()], ["EXTEND_TIMEOUT_USEC=60000000\n", "READY=1\n"]);
    assert_pings(bed.client("test")?.port())?;
    assert_eq!([hear(), hear()], ["WATCHDOG=1\n", "WATCHDOG=1\n"]);
    assert_eq!(process.stop(PATIENCE)?.code(), Some(AFTER_SIGTERM));
    let last = std::iter::repeat_with(hear).find(|state| state != "WATCHDOG=1\n");
    assert_eq!(last.as_deref(), Some("STOPPING=1\nEXTEND_TIMEOUT_USEC=150000000\n"));
    Ok(())
}

/// Three that hang are waited for together, and not at all by a signal.
#[test]
fn a_start_whose_plugins_hang_is_ended_by_a_signal() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    let mut options = BedOptions::new("load-hangs", [ClientOptions::new(Fd::Ours).named("test")])?;
    let (plugins, trace) = (options.folder.make("plugins")?, options.folder.make("trace")?);
    for name in ["a", "b", "c"] {
        let macros = ["HANGS", &format!("MARK=\"{name}\"")];
        build_plugin("bad", &macros, &plugins.join(format!("{name}-fd.so")))?;
    }
    options.clients.iter_mut().for_each(|client| client.plugins = Plugins::In(plugins.clone()));
    let mut bed = Bed::prepare(options)?;
    let file = pid_file(&mut bed)?;
    let socket = bed.folder().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut words = argv(["env"]);
    words.push(format!("NOTIFY_SOCKET={}", socket.display()).into());
    words.push(format!("PLUGIN_TRACE={}", trace.display()).into());
    words.extend(command(&mut bed, &["-f"])?);
    let mut process = Process::start("bacula-fd", &words, &bed.folder().join("log/fd.out"))?;
    wait_for("all plugins to hang", PATIENCE, || {
        process.must_run()?;
        let hanging = fs::read_dir(&trace).unwrap().count();
        Ok(if hanging == 3 { Ok(()) } else { Err(format!("{hanging}")) })
    })?;
    let mut state = [0; 100];
    let length = manager.recv(&mut state).unwrap();
    let state = String::from_utf8_lossy(state.get(..length).unwrap_or_default());
    assert!(state.starts_with("EXTEND_TIMEOUT_USEC="), "{state}");
    assert!(file.exists());
    assert_eq!(process.stop(PATIENCE)?.code(), Some(AFTER_SIGTERM));
    assert!(!file.exists(), "the pid file stays behind");
    Ok(())
}

/// A FIFO as state file held up the start of the stock daemon, one as trace file every login; links
/// led its writes away.
#[test]
fn foreign_files_in_the_working_directory_block_nothing() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits for ever");
    for trap in ["fifo", "link"] {
        let options = BedOptions::new("traps", [ClientOptions::new(Fd::Ours).named("test")])?.in_clear();
        let mut bed = Bed::prepare(options)?;
        let (work, port) = (bed.client("test")?.work.clone(), bed.client("test")?.port());
        let victim = bed.folder().join("victim");
        fs::write(&victim, "precious").unwrap();
        let own = ["state", "pid", "digest"].map(|kind| format!("bacula-fd.{port}.{kind}"));
        for name in own.iter().map(String::as_str).chain(["test-fd.trace"]) {
            let path = work.join(name);
            if trap == "link" {
                symlink(&victim, path).unwrap();
            } else {
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            }
        }
        let words = command(&mut bed, &["-f"])?;
        let mut process = Process::start("bacula-fd", &words, &bed.folder().join("log/fd.out"))?;
        process.must_listen(port)?;
        let mut director = bed::peer::director_session(port, 0)?;
        director.send(b"setdebug=100 trace=1 hangup=-1 blowup=-1 options= tags=\n")?;
        director.expect("2000 OK setdebug=100 trace=1 ")?;
        drop(director);
        for _ in 0..2 {
            drop(bed::peer::director_session(port, 0)?);
        }
        assert!(fs::symlink_metadata(work.join("test-fd.trace")).unwrap().is_file(), "{trap}");
        assert!(process.stop(PATIENCE)?.code().is_some(), "{trap}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{trap}");
    }
    Ok(())
}

/// Debian's package as installed, in a world of its own: a private copy of the root (over a memory
/// file system) and a private loopback, so that port 9102 and `/run/bacula` belong to it.
/// Arguments: root, mount point, daemon or nothing.
const INSTALLED: &str = r#"
set -e
mount -t tmpfs bed "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" bed "$2/root"
mount --bind /proc "$2/root/proc"
mkdir -p "$2/root/run/bacula" "$2/root/var/lib/bacula"
if [ -n "$3" ]; then cp "$3" "$2/root/usr/sbin/bacula-fd"; fi
ip link set lo up
exec chroot "$2/root" /usr/sbin/bacula-fd -f -c /etc/bacula/bacula-fd.conf
"#;

#[test]
fn debian_s_default_configuration_works_unchanged() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let root = Root::find()?;
    let folder = bed::Folder::new("debian")?;
    let mount = folder.make("mount")?;
    let ours = match Fd::under_test()? {
        Fd::Stock => PathBuf::new(),
        Fd::Ours => our_program()?,
    };
    let mut words = argv(["unshare", "--mount", "--net"]);
    words.extend(argv(["sh", "-c", INSTALLED, "sh"]));
    words.extend([root.path().into(), mount.into_os_string(), ours.into_os_string()]);
    let mut process = Process::start("bacula-fd as installed", &words, &folder.path().join("out"))?;
    let place = PathBuf::from(format!("/proc/{}", process.pid()));

    // 0x238E is 9102, 0100007F is 127.0.0.1, 0A is LISTEN.
    wait_for("port 9102 of its own loopback", PATIENCE, || {
        process.must_run()?;
        let table = fs::read_to_string(place.join("net/tcp")).unwrap_or_default();
        let listens = table.lines().any(|line| line.contains(" 0100007F:238E ") && line.contains(" 0A "));
        Ok(if listens { Ok(()) } else { Err(process.output()) })
    })?;
    assert!(place.join("root/run/bacula/bacula-fd.9102.pid").exists());

    let config = fs::read_to_string(root.inside("etc/bacula/bacula-fd.conf")).unwrap();
    let directors = directors_of(&config);
    let names: Vec<_> = directors.iter().map(|(name, _)| name.rsplit('-').next().unwrap_or_default()).collect();
    assert_eq!(names, ["dir", "mon"], "in {config}");
    let said = std::thread::scope(|scope| {
        // The thread that enters the daemon's network stays there, so it is one that ends.
        scope.spawn(|| talk_to_installed(&place, &directors)).join().unwrap()
    })?;
    for status in &said {
        assert!(status.contains("-fd Version: 15.0.3 ") && status.contains("No Jobs running."), "{status}");
    }
    assert_eq!(process.stop(PATIENCE)?.code(), Some(AFTER_SIGTERM));
    Ok(())
}

/// Name and password of each Director resource, in order.
fn directors_of(config: &str) -> Vec<(String, String)> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap_or_default();
        line.trim_start_matches([' ', '=']).trim_matches('"').to_owned()
    };
    config.split("\nDirector {").skip(1).map(|block| (value(block, "Name"), value(block, "Password"))).collect()
}

/// The status as both of Debian's Directors see it; the one that only monitors may do nothing else.
fn talk_to_installed(place: &Path, directors: &[(String, String)]) -> Result<Vec<String>> {
    let network = File::open(place.join("ns/net")).unwrap();
    setns(network, CloneFlags::CLONE_NEWNET).map_err(|source| BedError::System { what: "setns", source })?;
    let mut said = Vec::new();
    for (name, password) in directors {
        let mut peer = Peer::connect("FD", 9102)?;
        peer.send(format!("Hello Director {name} calling 10002 tlspsk=0\n").as_bytes())?;
        peer.log_in(&key_of_password(password), name)?;
        peer.expect("2000 OK Hello 15\n")?;
        if name.ends_with("-mon") {
            peer.send(b"estimate listing=0")?;
            peer.expect("2997 Invalid command for a Director with Monitor directive enabled.\n")?;
        }
        peer.send(b"status")?;
        peer.signal(TERMINATE)?;
        let text = |frame: Frame| if let Frame::Data(bytes) = frame { bytes } else { Vec::new() };
        let frames: Vec<_> = peer.rest()?.into_iter().flat_map(text).collect();
        said.push(String::from_utf8_lossy(&frames).into_owned());
    }
    Ok(said)
}

#[test]
fn the_configuration_may_be_reached_through_a_link_and_by_a_relative_name() -> Result<()> {
    let mut bed = configured("names")?;
    let config = bed.client("test")?.config.clone();
    let link = bed.folder().join("linked.conf");
    symlink(&config, &link).unwrap();
    let program = fd_argv(bed.root(), Fd::under_test()?, ["-t".as_ref(), "-c".as_ref(), OsStr::new("./linked.conf")])?;
    let mut words = argv([OsStr::new("env"), OsStr::new("-C"), bed.folder().as_os_str()]);
    words.extend(program);
    let done = run(&words, b"")?;
    assert_eq!((done.status.code(), done.text().as_str()), (Some(0), ""));
    Ok(())
}

/// Both daemons say at once that their port is taken, and end when they are told to.
#[test]
fn a_port_that_is_taken_is_told_at_once_and_a_signal_ends_the_wait() -> Result<()> {
    let mut bed = configured("port-taken")?;
    let port = bed.client("test")?.port();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let file = pid_file(&mut bed)?;
    let process = Process::start("bacula-fd", &command(&mut bed, &["-f"])?, &bed.folder().join("log/fd.out"))?;
    let wanted = format!("test-fd: Warning: Cannot bind port {port}: ERR=Address already in use: Retrying ...\n");
    wait_for("the message about the port", PATIENCE, || {
        let said = process.output();
        Ok(if said.contains(&wanted) { Ok(()) } else { Err(said) })
    })?;
    assert!(file.exists());
    assert_eq!(process.stop(PATIENCE)?.code(), Some(AFTER_SIGTERM));
    assert!(!file.exists(), "the pid file stays behind after an orderly end");
    Ok(())
}

/// After a start in the background nothing else is left of it.
#[test]
fn a_configuration_that_aborts_the_start_is_told_in_the_host_s_log() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut bed = configured("aborts")?;
    let config = bed.client("test")?.config.clone();
    let open = fs::read_to_string(&config).unwrap() + "Director { Name = x; TLS Allowed CN = \"never closed\n";
    fs::write(&config, open).unwrap();
    let place = bed.folder().join("log.socket");
    let log = UnixDatagram::bind(&place).unwrap();
    log.set_nonblocking(true).unwrap();
    let words = argv(bed::with_log(bed.folder(), &place)).into_iter().chain(command(&mut bed, &["-t"])?);
    let done = run(&words.collect::<Vec<_>>(), b"")?;
    assert_eq!(done.status.code(), Some(11), "{}", done.text());
    let mut line = [0; 4096];
    let length = log.recv(&mut line).unwrap();
    let logged = String::from_utf8_lossy(&line[..length]).into_owned();
    let message = " bacula-fd: ABORTING via segfault due to ERROR in lex.c:296";
    assert!(logged.starts_with("<27>") && logged.contains(message), "{logged}");
    Ok(())
}

/// The program that an upgrade restarts is the service's, and no other user's copy of it.
#[test]
fn only_the_service_s_own_process_counts_after_an_upgrade() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let folder = bed::Folder::new("upgrade")?;
    let place = folder.make("sbin")?;
    fs::copy("/bin/sleep", place.join("bacula-fd")).unwrap();
    let restart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/files/restart-when-idle");
    // Its exit status says whether the service runs: with a stranger's process, one of root's, and
    // that of the pid file.
    let script = format!(
        "mount --bind '{place}' /usr/sbin && mount -t tmpfs none /run && mkdir /run/bacula || exit 9\n\
         says() {{ sh '{restart}' --running; echo $?; }}\n\
         setpriv --reuid=65534 --regid=65534 --clear-groups /usr/sbin/bacula-fd 1000 & stranger=$!\n\
         /usr/sbin/bacula-fd 1000 & root=$!\n\
         while ! readlink /proc/$stranger/exe /proc/$root/exe | grep -c bacula-fd | grep -q 2; do kill -0 $stranger $root || exit 9; done\n\
         says; echo $stranger >/run/bacula/bacula-fd.9102.pid; says\n\
         echo $root >/run/bacula/bacula-fd.9102.pid; says\n\
         kill $stranger $root\n",
        place = place.display(),
        restart = restart.display(),
    );
    let done = run(&argv(["unshare", "--mount", "sh", "-c", &script]), b"")?;
    assert_eq!(done.text(), "1\n1\n0\n");
    Ok(())
}

/// Between two jobs of a Director's queue there is no connection for up to two seconds. What
/// replaces the stock daemon on many hosts must not take that for the end.
#[test]
fn a_roll_out_looks_again_before_it_takes_a_host_for_idle() -> Result<()> {
    const CONNECTED: &str = "   0: 0100007F:238E 0100007F:A0A0 01 00000000:00000000 00:00000000 00000000 0 0 1";
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    // The command of a line, in double quotes.
    let command = |file: &str| {
        let text = fs::read_to_string(packaging.join(file)).unwrap();
        let line = text.lines().find(|line| line.contains("/proc/net/tcp")).unwrap();
        let (_, quoted) = line.split_once('"').unwrap();
        let (quoted, _) = quoted.rsplit_once('"').unwrap();
        let filled = quoted.replace("${hex}", "238E").replace("{{ port }}", "238E");
        filled.replace("\\$", "$").replace("\\\"", "\"")
    };
    // Each ends with 0 if the host is idle.
    let busy = packaging.join("ansible/roles/ferrofd/files/busy");
    let commands = [
        ("Ansible", format!("! sh '{}' 9102", busy.display())),
        ("Puppet", command("puppet/manifests/init.pp")),
        ("Salt", command("salt/ferrofd/init.sls")),
    ];
    let folder = bed::Folder::new("looks")?;
    let (looks, played) = (folder.path().join("looks"), folder.make("played")?);
    scripts::write(&played.join("sleep"), "").unwrap();
    for (tool, command) in &commands {
        for (connected_at, idle) in [(1, false), (2, false), (3, false), (4, true)] {
            let cat = format!(
                "echo >>'{looks}'\n[ $(wc -l <'{looks}') != {connected_at} ] || echo '{CONNECTED}'\n",
                looks = looks.display()
            );
            scripts::write(&played.join("cat"), &cat).unwrap();
            fs::write(&looks, "").unwrap();
            let path = format!("PATH={}:/usr/bin:/bin", played.display());
            let done = run(&argv(["env", &path, "sh", "-c", command]), b"")?;
            assert_eq!(done.status.success(), idle, "{tool}, connected at look {connected_at}: {}", done.text());
        }
    }
    Ok(())
}

/// What systemd says of the unit counts, whatever slice it is in and whichever of its two names the
/// folder of the program has. A unit of another program is left alone.
#[test]
fn an_upgrade_asks_systemd_for_the_unit_s_processes_and_waits_for_their_jobs() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    for place in ["/usr/sbin", "/usr/bin"] {
        let upgrade = Upgrade { place, ..Upgrade::default() };
        let session = Upgrade { daemon: IN_A_JOB, ..upgrade }.told()?;
        assert!(session.contains("a job is running"), "{place}: {session}");
        assert!(session.contains("--unit=ferrofd-restart") && !session.contains("restart bacula-fd"), "{session}");
        let idle = upgrade.told()?;
        assert_eq!(idle, "try-restart bacula-fd.service\n", "{place}");
        let other = Upgrade { daemon: IN_A_JOB, group: "/other.slice/bacula-fd.service", ..upgrade }.told()?;
        assert!(other.contains("is not /usr/sbin/bacula-fd") && !other.contains("restart"), "{place}: {other}");
    }
    Ok(())
}

/// While the new program looks at the configuration, the next job of the Director's queue begins.
#[test]
fn a_job_that_begins_while_an_upgrade_looks_at_the_configuration_is_waited_for() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let configuration = "BEGIN { kill USR1 => $ENV{DAEMON}; my $is = q(); \
        until ($is =~ /^session/) { open(my $file, q(<), qq(/proc/$ENV{DAEMON}/comm)) or exit 1; $is = <$file> } }\n";
    let told = Upgrade { configuration, ..Upgrade::default() }.told()?;
    assert!(told.contains("a job is running") && told.contains("--unit=ferrofd-restart"), "{told}");
    assert!(!told.contains("try-restart"), "{told}");
    Ok(())
}

/// Between two jobs of the Director's queue nobody is connected for a moment.
#[test]
fn an_upgrade_waits_for_the_next_job_of_the_queue_too() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    // The first job ends in the first pause, the second one has the second pause.
    let pause = "echo pause; echo >>$TOP/pauses\nturn() { kill -$1 $DAEMON; until grep -q \"$2\" /proc/$DAEMON/comm; do :; done; }\n\
                 case $(wc -l <$TOP/pauses) in 1 | 3) turn USR2 idle ;; 2) turn USR1 session ;; esac";
    let told = Upgrade { daemon: IN_A_JOB, pause, argument: "--wait", ..Upgrade::default() }.told()?;
    assert_eq!(told, "pause\n".repeat(6) + "try-restart bacula-fd.service\n");
    Ok(())
}

/// What is verified after an upgrade must be the new program.
#[test]
fn an_upgrade_says_whether_the_program_from_before_is_still_in_use() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let upgrade = Upgrade { argument: "--pending; echo $?", ..Upgrade::default() };
    assert_eq!(upgrade.told()?, "1\n");
    assert_eq!(Upgrade { daemon: "unlink(q(/usr/sbin/bacula-fd));", ..upgrade }.told()?, "0\n");
    assert_eq!(Upgrade { says: "*is-active*ferrofd-restart*) ;;\n", ..upgrade }.told()?, "0\n");
    // Without systemd a process waits.
    let waits = "--pending; rmdir /run/systemd/system; ask() { /usr/libexec/ferrofd/restart-when-idle $1; }\n\
                 ask --pending; echo $?; ask --wait &\n\
                 until [ -e $TOP/paused ]; do kill -0 $! || exit 9; done; ask --pending; echo $?";
    let upgrade = Upgrade { argument: waits, pause: ": >$TOP/paused; exec perl -e 'sleep 1000'", ..upgrade };
    assert_eq!(upgrade.told()?, "1\n0\n");
    Ok(())
}

/// A unit of the administrator's goes before the package's: a restart alone would change nothing.
#[test]
fn an_upgrade_names_the_unit_that_runs_another_program() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let says = "*ExecStart*) echo 'ExecStart={ path=/opt/sbin/bacula-fd ; argv[]=/opt/sbin/bacula-fd -f ; }' ;;\n\
                *FragmentPath*) echo ExecStart=/opt/sbin/bacula-fd -f >$TOP/unit; echo FragmentPath=$TOP/unit ;;\n";
    for argument in ["", "--started"] {
        let upgrade = Upgrade { says, argument, ..Upgrade::default() };
        let told = Upgrade { group: "/other.slice/bacula-fd.service", ..upgrade }.told()?;
        assert!(told.contains("but /opt/sbin/bacula-fd, as /") && told.contains("/unit says"), "{told}");
        assert!(told.contains("ferrofd is not in use"), "{told}");
        // A wrapper that becomes the daemon.
        let in_use = upgrade.told()?;
        assert!(!in_use.contains("not in use"), "{in_use}");
    }
    Ok(())
}

/// A daemon that isn't root gets `NoNewPrivileges` from older systemd, whatever is configured.
#[test]
fn it_is_said_that_scripts_can_t_use_sudo_unless_that_is_wanted() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let says = |wanted| format!("*MainPID*) echo MainPID=$DAEMON ;;\n*NoNewPriv*) echo NoNewPrivileges={wanted} ;;\n");
    let started = Upgrade { argument: "--started", ..Upgrade::default() };
    let told = |by, wanted| Upgrade { by, says: &says(wanted), ..started }.told();
    assert!(told("setpriv --no-new-privs", "no")?.contains("sudo refuses to run"));
    assert_eq!(told("setpriv --no-new-privs", "yes")?, "");
    assert_eq!(told("", "no")?, "");
    Ok(())
}

/// Perl of a daemon that serves a Director.
const IN_A_JOB: &str = "name(q(session played));";

/// `restart-when-idle` where what plays the daemon is Perl.
#[derive(Debug, Clone, Copy)]
struct Upgrade<'a> {
    /// The folder of the program.
    place: &'a str,
    /// What starts the daemon, if it isn't the shell.
    by: &'a str,
    /// What the daemon does before it waits. `USR1` begins a session, and `USR2` ends it.
    daemon: &'a str,
    /// The configuration that it was started with: good if it is good Perl.
    configuration: &'a str,
    /// What systemd says of the active unit's control group.
    group: &'a str,
    /// What else systemd says: cases of `sh`.
    says: &'a str,
    /// What a pause of the script is, for `sh`: in `TOP` is a folder, in `DAEMON` a process.
    pause: &'a str,
    argument: &'a str,
}

impl Default for Upgrade<'_> {
    fn default() -> Self {
        let group = "$(tail -n 1 /proc/self/cgroup | cut -d: -f3-)";
        Self {
            place: "/usr/sbin",
            by: "",
            daemon: "",
            configuration: "",
            group,
            says: "",
            pause: "exit 1",
            argument: "",
        }
    }
}

impl Upgrade<'_> {
    /// What the script prints, and orders of systemd.
    fn told(&self) -> Result<String> {
        let folder = bed::Folder::new("upgrade")?;
        let (there, played) = (folder.make("there")?, folder.make("played")?);
        fs::copy("/usr/bin/perl", there.join("bacula-fd")).unwrap();
        fs::write(folder.path().join("configuration"), self.configuration).unwrap();
        let daemon = format!(
            "sub name {{ open(my $comm, q(>), q(/proc/self/comm)); print $comm @_ }}\n\
             $SIG{{USR1}} = sub {{ name(q(session played)) }}; $SIG{{USR2}} = sub {{ name(q(idle)) }};\n\
             {}\n\
             open(my $file, q(>), qq($ENV{{TOP}}/plays)); sleep 1000 while 1",
            self.daemon
        );
        fs::write(folder.path().join("daemon"), daemon).unwrap();
        let systemctl = format!(
            "case $* in\n{}*is-active*ferrofd-restart*) exit 3 ;;\n*is-active*) ;;\n\
             *ControlGroup*) echo ControlGroup=$GROUP ;;\nshow*) ;;\n*) echo \"$@\" ;;\nesac",
            self.says
        );
        for (program, text) in
            [("systemctl", systemctl.as_str()), ("systemd-run", "echo \"$@\""), ("sleep", self.pause)]
        {
            scripts::write(&played.join(program), text).unwrap();
        }
        let restart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/files/restart-when-idle");
        // The programs of the host stay where their scripts look for their interpreters.
        let script = format!(
            "mkdir '{top}/usr' && mount --rbind /usr '{top}/usr' || exit 9\n\
             export TOP='{top}' PATH='{top}/played:{top}/usr/bin:{top}/usr/sbin' GROUP={group}\n\
             for program in sh perl; do ln -s '{top}'/usr/bin/$program '{top}'/there/ || exit 9; done\n\
             mount --bind '{top}/there' /usr/sbin && mount --bind '{top}/there' {place} || exit 9\n\
             mount -t tmpfs none /run && mkdir -p /run/systemd/system || exit 9\n\
             mount -t tmpfs none /usr/libexec && mkdir /usr/libexec/ferrofd || exit 9\n\
             ln -s '{restart}' /usr/libexec/ferrofd/ || exit 9\n\
             {by} {place}/bacula-fd '{top}/daemon' -c '{top}/configuration' & export DAEMON=$!\n\
             until [ -e '{top}/plays' ]; do kill -0 $DAEMON || exit 9; done\n\
             sh '{restart}' {argument} 2>&1\n\
             kill $DAEMON\n",
            top = folder.path().display(),
            group = self.group,
            place = self.place,
            by = self.by,
            restart = restart.display(),
            argument = self.argument,
        );
        // Among its own processes only: those of other tests are in the same control group.
        let alone = ["unshare", "--mount-proc", "--pid", "--fork", "--kill-child", "sh", "-c", &script];
        Ok(run(&argv(alone), b"")?.text())
    }
}
