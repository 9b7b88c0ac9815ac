//! What checks say of worlds that a test bed can't make.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use fd_config::{KeyProblem, PluginHostSettings, Tls};
use openssl::asn1::Asn1Time;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::x509::X509;
use zeroize::Zeroizing;

use super::case::{Case, Read};
use super::*;
use crate::daemon::host::Host;
use crate::daemon::plugins::confinement;
use crate::diagnose::finding::State;
use crate::diagnose::patience::Patience;
use crate::diagnose::rights::Rights;
use crate::diagnose::world::{About, Answer, Process, Whose};

const DAY: i64 = 86_400;
const EVERY_CAPABILITY: u64 = 0x1ff_ffff_ffff;
const ROOT: Rights = Rights { uid: 0, gid: None, capabilities: EVERY_CAPABILITY, in_user_namespace: false };

/// A host on which all is well, but for what a test changes.
struct Fake {
    now: i64,
    about: About,
    /// That of the directories with the configuration and its keys.
    folder: About,
    /// This path is not there.
    absent: &'static str,
    /// Those of each directory.
    files: Vec<&'static str>,
    free: u64,
    process: Process,
    is_told_of_any_page: bool,
    clock: Option<bool>,
    pem: Vec<u8>,
    has_key: bool,
    ping: Answer,
    metrics: Answer,
    questions: Cell<u32>,
}

impl Fake {
    fn well() -> Self {
        Self {
            now: 100 * DAY,
            about: About { is_directory: true, mode: 0o750, uid: 0 },
            folder: About { is_directory: true, mode: 0o755, uid: 0 },
            absent: "",
            files: vec!["x-fd.so", "other"],
            free: 1 << 30,
            process: Process { whose: Whose::Daemon(7), rights: ROOT },
            is_told_of_any_page: false,
            clock: Some(true),
            pem: Vec::new(),
            has_key: false,
            ping: Answer::Pong,
            metrics: Answer::Pong,
            questions: Cell::new(0),
        }
    }
}

impl World for Fake {
    fn now(&self) -> i64 {
        self.now
    }

    fn about(&self, path: &Path) -> io::Result<About> {
        if path == Path::new(self.absent) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // Those of the daemon have names of one letter, and are not there.
        Ok(if path.is_dir() { self.folder } else { self.about })
    }

    fn read(&self, _: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
        Ok(Zeroizing::new(self.pem.clone()))
    }

    fn files(&self, _: &Path) -> io::Result<Vec<Vec<u8>>> {
        Ok(self.files.iter().map(|name| name.as_bytes().to_vec()).collect())
    }

    fn may_write(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_space(&self, _: &Path) -> io::Result<u64> {
        Ok(self.free)
    }

    fn tls_context(&self, _: &Tls) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn certificate(&self, _: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn private_key(&self, _: &Path) -> Result<(), KeyProblem> {
        Ok(())
    }

    fn plugin_user(&self, settings: &PluginHostSettings) -> Result<(), String> {
        confinement(settings.clone()).map(drop)
    }

    fn mentions_private_key(&self, _: &Path) -> bool {
        self.has_key
    }

    fn process(&self) -> Process {
        self.process
    }

    fn is_told_of_any_page(&self, _: &Path) -> bool {
        self.is_told_of_any_page
    }

    fn clock(&self) -> io::Result<bool> {
        self.clock.ok_or_else(|| io::ErrorKind::PermissionDenied.into())
    }

    fn ping(&self, _: SocketAddr) -> Answer {
        self.ping.clone()
    }

    fn metrics(&self, _: SocketAddr) -> Answer {
        self.metrics.clone()
    }

    fn reach(&self, places: &[(String, u16)]) -> Vec<Result<Duration, String>> {
        self.questions.set(self.questions.get() + 1);
        places.iter().map(|_| Err("No route to host".to_owned())).collect()
    }
}

/// What a check finds with this in the Director's resource.
fn found(check: fn(&Case<'_>) -> Vec<Finding>, director: &str, world: &Fake) -> Vec<Finding> {
    found_with(check, director, "", world)
}

/// The same with settings.
fn found_with(check: fn(&Case<'_>) -> Vec<Finding>, director: &str, settings: &str, world: &Fake) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bacula-fd.conf");
    let text = format!(
        "Director {{ Name = d; Password = secret\n{director}\n}}\n\
         FileDaemon {{ Name = x-fd; WorkingDirectory = /w; PidDirectory = /r; Plugin Directory = /p }}\n\
         Messages {{ Name = m; director = d = all }}\n"
    );
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.path().join("bacula-fd.toml"), settings).unwrap();
    let (_, read) = configuration::read(file.as_os_str(), &Patience::new());
    let read: Read = read.unwrap();
    check(&Case { read: &read, world, storages: &[("s".to_owned(), 9103)] })
}

fn states(findings: &[Finding]) -> Vec<State> {
    findings.iter().map(|finding| finding.state).collect()
}

/// A certificate with its key that is valid in these days.
fn pem(from: i64, until: i64) -> Vec<u8> {
    let key = PKey::from_rsa(Rsa::generate(1024).unwrap()).unwrap();
    let mut builder = X509::builder().unwrap();
    builder.set_pubkey(&key).unwrap();
    builder.set_not_before(&Asn1Time::from_unix(from * DAY).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::from_unix(until * DAY).unwrap()).unwrap();
    builder.sign(&key, MessageDigest::sha256()).unwrap();
    builder.build().to_pem().unwrap()
}

#[test]
fn the_days_of_a_certificate_decide() {
    let tls = "TLS Enable = yes; TLS Certificate = /c; TLS Key = /k; TLS CA Certificate File = /a";
    let with = |from, until| found(certificates::check, tls, &Fake { pem: pem(from, until), ..Fake::well() });
    assert_eq!(states(&with(1, 200)), [State::Good]);
    assert_eq!(states(&with(1, 114)), [State::Good]);
    // The certificate, and the authority that the same file stands for.
    for (from, until, state) in [(1, 113, State::Warning), (1, 100, State::Fault), (101, 200, State::Fault)] {
        let findings = with(from, until);
        assert!(findings.iter().all(|finding| finding.state == state), "{from} {until}: {findings:?}");
        assert!(findings.iter().all(|finding| !finding.hint.is_empty()), "{findings:?}");
    }
    let none = found(certificates::check, tls, &Fake { pem: b"none".to_vec(), ..Fake::well() });
    assert!(states(&none).contains(&State::Fault), "{none:?}");
    assert_eq!(states(&found(certificates::check, "", &Fake::well())), [State::Good]);
    assert_eq!(states(&found(certificates::check, "TLS PSK Enable = no", &Fake::well())), [State::Warning]);
}

#[test]
fn a_password_that_is_enough_beside_certificates_is_a_warning() {
    let tls = "TLS Enable = yes; TLS Certificate = /c; TLS Key = /k; TLS CA Certificate File = /a";
    for (more, state) in [
        ("TLS Require = yes", Some(State::Warning)),
        ("TLS Allowed CN = d.example.org", Some(State::Warning)),
        ("TLS Allowed CN = d.example.org; TLS PSK Enable = no", None),
        ("TLS Require = yes; TLS PSK Enable = no", None),
        ("TLS Require = yes; TLS Verify Peer = no", None),
    ] {
        let world = Fake { pem: pem(1, 200), ..Fake::well() };
        let findings = found(certificates::check, &format!("{tls}; {more}"), &world);
        let expected: Vec<_> = std::iter::once(State::Good).chain(state).collect();
        assert_eq!(states(&findings), expected, "{more}: {findings:?}");
    }
}

#[test]
fn capabilities_say_what_can_be_saved_and_restored() {
    let with = |capabilities, in_user_namespace| {
        let rights = Rights { capabilities, in_user_namespace, ..ROOT };
        let process = Process { rights, ..Fake::well().process };
        found(process::check, "", &Fake { process, ..Fake::well() }).pop().unwrap()
    };
    let only_read = with(1 << 2, false);
    assert!(only_read.state == State::Good && only_read.text.contains("restore only its own"), "{only_read:?}");
    let without_devices = with(EVERY_CAPABILITY & !(1 << 27), false);
    assert!(without_devices.state == State::Warning && without_devices.text.contains("lacks MKNOD"));
    assert_eq!(with(0, false).state, State::Fault);
    assert_eq!(with(EVERY_CAPABILITY, true).state, State::Warning);
    assert_eq!(with(EVERY_CAPABILITY, false).state, State::Good);
}

#[test]
fn capabilities_are_those_of_the_daemon_or_of_its_unit() {
    let nothing = || Answer::Nothing("Connection refused".to_owned());
    let with = |whose, ping, capabilities| {
        let process = Process { whose, rights: Rights { uid: 113, capabilities, ..ROOT } };
        found(process::check, "", &Fake { process, ping, ..Fake::well() }).pop().unwrap().text
    };
    let unit = with(Whose::Unit, nothing(), 1 << 2);
    assert!(unit.starts_with("the daemon that bacula-fd.service starts (user 113) can save every file, and"), "{unit}");
    let unseen = with(Whose::This, Answer::Pong, EVERY_CAPABILITY);
    assert!(unseen.contains("root can see what the daemon may do") && !unseen.contains("no daemon runs"), "{unseen}");
    assert!(with(Whose::This, nothing(), EVERY_CAPABILITY).contains("no daemon runs"));
}

#[test]
fn metrics_are_answered_by_the_daemon_on_a_port_of_their_own() {
    let nothing = || Answer::Nothing("Connection refused".to_owned());
    let with = |port: u16, ping, metrics| {
        let settings = format!("[metrics]\naddress = \"127.0.0.1:{port}\"\n");
        let world = Fake { ping, metrics, ..Fake::well() };
        let found = found_with(process::check, "", &settings, &world).pop().unwrap();
        assert_eq!(found.area, "metrics");
        found.state
    };
    assert_eq!(with(19102, Answer::Pong, Answer::Pong), State::Good);
    assert_eq!(with(19102, nothing(), nothing()), State::Good);
    for (ping, metrics) in [
        (Answer::Pong, nothing()),
        (nothing(), Answer::Pong),
        (Answer::Pong, Answer::Silence),
        (nothing(), Answer::Silence),
    ] {
        assert_eq!(with(19102, ping, metrics), State::Warning);
    }
    assert_eq!(with(9101, Answer::Pong, Answer::Pong), State::Warning);
    assert_eq!(with(9103, Answer::Pong, Answer::Pong), State::Warning);
}

#[test]
fn the_page_cache_is_left_alone_by_root_or_a_new_kernel() {
    let with = |uid, is_told_of_any_page| {
        let process = Process { rights: Rights { uid, ..ROOT }, ..Fake::well().process };
        states(&found(host::page_cache, "", &Fake { process, is_told_of_any_page, ..Fake::well() }))
    };
    assert_eq!(with(0, false), [State::Good]);
    assert_eq!(with(9, true), [State::Good]);
    assert_eq!(with(9, false), [State::Warning]);
}

#[test]
fn a_clock_is_well_if_it_is_synchronized_or_the_kernel_does_not_tell() {
    for (clock, state) in [(Some(true), State::Good), (Some(false), State::Warning), (None, State::Good)] {
        assert_eq!(states(&host::clock(&Fake { clock, ..Fake::well() })), [state], "{clock:?}");
    }
}

#[test]
fn directories_need_space_and_no_other_writers() {
    let well = found(directories::check, "", &Fake::well());
    assert_eq!(states(&well), [State::Good, State::Good]);
    assert!(well[1].text.ends_with("x-fd.so"), "{well:?}");
    let full = found(directories::check, "", &Fake { free: 1 << 20, ..Fake::well() });
    assert_eq!(states(&full), [State::Warning, State::Good]);
    let open = About { mode: 0o777, ..Fake::well().about };
    let open = found(directories::check, "", &Fake { about: open, ..Fake::well() });
    assert_eq!(states(&open), [State::Warning, State::Warning, State::Fault]);
    // Root's code, if a group or another user puts it there; not if the daemon is that user.
    let of = |mode, uid, of_daemon| {
        let about = About { mode, uid, ..Fake::well().about };
        let process = Process { rights: Rights { uid: of_daemon, ..ROOT }, ..Fake::well().process };
        found(directories::check, "", &Fake { about, process, ..Fake::well() }).pop().unwrap().state
    };
    for (mode, uid, of_daemon, state) in [
        (0o775, 0, 0, State::Fault),
        (0o755, 1000, 0, State::Fault),
        (0o755, 1000, 113, State::Fault),
        (0o755, 113, 113, State::Good),
        (0o755, 0, 113, State::Good),
    ] {
        assert_eq!(of(mode, uid, of_daemon), state, "{mode:o} {uid} {of_daemon}");
    }
    let file = About { is_directory: false, ..Fake::well().about };
    assert_eq!(found(directories::check, "", &Fake { about: file, ..Fake::well() })[0].state, State::Fault);
}

#[test]
fn a_pid_directory_that_no_daemon_needs_is_no_fault() {
    for (whose, state) in
        [(Whose::Daemon(7), State::Warning), (Whose::Unit, State::Warning), (Whose::This, State::Fault)]
    {
        let process = Process { whose, rights: ROOT };
        let findings = found(directories::check, "", &Fake { absent: "/r", process, ..Fake::well() });
        assert_eq!(states(&findings), [State::Good, state, State::Good], "{findings:?}");
        assert!(findings[1].text.starts_with("/r: "), "{findings:?}");
        let gone = found(directories::check, "", &Fake { absent: "/w", process, ..Fake::well() });
        assert_eq!(states(&gone), [State::Fault, State::Good], "{gone:?}");
    }
}

#[test]
fn files_of_another_user_or_with_an_open_mode_are_told() {
    let with = |mode, uid| {
        let about = About { is_directory: false, mode, uid };
        states(&found(files::check, "", &Fake { about, ..Fake::well() }))
    };
    assert_eq!(with(0o640, 0), [State::Good]);
    // The configuration and, without a secret, the settings.
    assert_eq!(with(0o640, 9), [State::Fault, State::Fault]);
    assert_eq!(with(0o660, 0), [State::Fault, State::Fault]);
    assert_eq!(with(0o644, 0), [State::Warning]);
}

/// The settings are in `/etc/bacula` then, where the start finds them.
#[test]
fn the_settings_of_a_configuration_that_a_program_prints_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bacula-fd.conf");
    let text = "Director { Name = d; Password = secret }\n\
                FileDaemon { Name = x-fd; WorkingDirectory = /w; PidDirectory = /r }\n\
                Messages { Name = m; director = d = all }\n";
    std::fs::write(&file, text).unwrap();
    let printed = format!("|cat {}", file.display());
    let read: Read = configuration::read(printed.as_ref(), &Patience::new()).1.unwrap();
    let about = About { is_directory: false, mode: 0o666, uid: 0 };
    let found = files::check(&Case { read: &read, world: &Fake { about, ..Fake::well() }, storages: &[] });
    assert!(matches!(&found[..], [finding] if finding.text.contains("/etc/bacula/bacula-fd.toml")), "{found:?}");
}

#[test]
fn a_directory_in_which_others_can_exchange_the_configuration_is_told() {
    let with = |mode, uid, of_daemon| {
        let about = About { is_directory: false, mode: 0o640, uid: 0 };
        let process = Process { rights: Rights { uid: of_daemon, ..ROOT }, ..Fake::well().process };
        let folder = About { is_directory: true, mode, uid };
        states(&found(files::check, "", &Fake { about, folder, process, ..Fake::well() }))
    };
    for (mode, uid, of_daemon, state) in [
        (0o755, 0, 0, State::Good),
        (0o755, 113, 113, State::Good),
        (0o1777, 0, 0, State::Good),
        (0o757, 0, 0, State::Fault),
        (0o775, 0, 0, State::Fault),
        (0o755, 113, 0, State::Fault),
    ] {
        assert_eq!(with(mode, uid, of_daemon), [state], "{mode:o} {uid} {of_daemon}");
    }
}

#[test]
fn a_director_that_must_be_called_and_a_named_storage_daemon_are_faults() {
    let world = Fake::well();
    let called = found(network::check, "Address = d.example; Connect To Director = yes", &world);
    assert_eq!((states(&called), world.questions.get()), (vec![State::Fault, State::Fault], 1));
    assert!(called[0].text.starts_with("d on d.example:9101 can't be reached: No route"), "{called:?}");
    assert!(called[1].text.starts_with("s:9103 can't be reached"), "{called:?}");
    assert_eq!(states(&found(network::check, "Address = d.example", &world)), [State::Warning, State::Fault]);
    assert_eq!(states(&found(network::check, "", &world)), [State::Good, State::Fault]);
}

/// Of such jobs neither metrics nor the Director tell anything else.
#[test]
fn messages_without_a_place_for_trouble_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bacula-fd.conf");
    for (destinations, told) in [
        ("director = d = info", Some("takes fatal, error, warning: ")),
        ("director = d = all, !saved", None),
        ("director = d = fatal, error\n append = /var/log/x = warning", None),
        ("director = d = all\n }\nMessages { Name = other; director = d = fatal, error", None),
        ("director = d = fatal, error\n }\nMessages { Name = other; director = d = all", Some("takes warning: ")),
        // What is taken out again still counts.
        ("director = d = all, !fatal", None),
    ] {
        let text = format!(
            "Director {{ Name = d; Password = p }}\n\
             FileDaemon {{ Name = x-fd; WorkingDirectory = /w; PidDirectory = /w }}\n\
             Messages {{ Name = m; {destinations}\n}}\n"
        );
        std::fs::write(&file, text).unwrap();
        let found = configuration::read(file.as_os_str(), &Patience::new()).0;
        let expected: Vec<_> = std::iter::once(State::Good).chain(told.map(|_| State::Warning)).collect();
        assert_eq!(states(&found), expected, "{destinations}: {found:?}");
        let text = &found[found.len() - 1].text;
        assert!(told.is_none_or(|told| text.contains("\"m\"") && text.contains(told)), "{destinations}: {text}");
    }
}

#[test]
fn a_configuration_that_lets_in_more_than_it_seems_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bacula-fd.conf");
    let read = |password: &str, daemon: &str| {
        let text = format!(
            "Director {{ Name = d; Password = \"{password}\" }}\n\
             FileDaemon {{ Name = x-fd; WorkingDirectory = /w; PidDirectory = /w\n{daemon}\n}}\n\
             Messages {{ Name = m; director = d = all }}\n"
        );
        std::fs::write(&file, text).unwrap();
        configuration::read(file.as_os_str(), &Patience::new())
    };
    let found = |password: &str, daemon: &str| read(password, daemon).0;
    assert_eq!(states(&found("p", "FDAddress = 127.0.0.1")), [State::Good]);
    let empty = found("", "");
    assert!(states(&empty) == [State::Good, State::Fault] && empty[1].text.contains("\"d\""), "{empty:?}");
    for directive in ["FDAddress", "FD Source Address"] {
        let listens = found("p", &format!("{directive} = fd00::5"));
        assert!(states(&listens) == [State::Good, State::Warning], "{listens:?}");
        assert!(listens[1].text.contains("fd00::5"), "{listens:?}");
    }
    // Who does what the hint says has a daemon that listens there, and with its port.
    let hint = found("p", "FDPort = 9112\nFDAddress = ::1").pop().unwrap().hint;
    let line = hint.split_once("FDPort: ").unwrap().1;
    let config = read("p", line).1.unwrap().config;
    assert_eq!(config.file_daemon.addresses, ["[::1]:9112".parse().unwrap()], "{hint}");
    let hint = found("p", "FD Source Address = ::1").pop().unwrap().hint;
    assert!(hint.contains("IPv4") && !hint.contains("FDAddresses"), "{hint}");
}

#[test]
fn settings_of_no_plugin_are_told() {
    let with = |name: &str| {
        let settings = format!("[plugins.settings.{name}]\nuser = \"nobody\"\n");
        found_with(directories::check, "", &settings, &Fake::well()).split_off(1)
    };
    assert_eq!(states(&with("x")), [State::Good]);
    assert_eq!(states(&with("bpipe")), [State::Good]);
    for name in ["x-fd", "\"x-fd.so\"", "y"] {
        let findings = with(name);
        assert!(states(&findings) == [State::Good, State::Warning], "{findings:?}");
        assert!(findings[1].text.contains(name.trim_matches('"')), "{findings:?}");
    }
}

#[test]
fn bpipe_is_where_the_setting_says() {
    let with = |bpipe: &str, files: Vec<&'static str>| {
        let settings = format!("plugins.bpipe = \"{bpipe}\"\n");
        found_with(directories::check, "", &settings, &Fake { files, ..Fake::well() }).split_off(1)
    };
    for (bpipe, files, text, more) in [
        ("builtin", vec![], "/p: no files of plugins; bpipe is built in", vec![]),
        ("builtin", vec!["bpipe-fd.so"], "/p: bpipe-fd.so", vec![]),
        ("off", vec![], "/p: no files of plugins; bpipe is off", vec![]),
        ("off", vec!["bpipe-fd.so", "x-fd.so"], "/p: x-fd.so; bpipe is off", vec![]),
        ("library", vec!["bpipe-fd.so"], "/p: bpipe-fd.so", vec![]),
        ("library", vec!["x-fd.so"], "/p: x-fd.so", vec![State::Warning]),
    ] {
        let findings = with(bpipe, files);
        assert_eq!(states(&findings), [vec![State::Good], more].concat(), "{findings:?}");
        assert_eq!(findings[0].text, text);
    }
}

#[test]
fn a_plugin_that_is_not_loaded_with_its_settings_is_told() {
    let with = |setting: &str, whose, uid| {
        let settings = format!("[plugins.settings.x]\n{setting}\n");
        let process = Process { whose, rights: Rights { uid, ..ROOT } };
        found_with(directories::check, "", &settings, &Fake { process, ..Fake::well() }).split_off(2)
    };
    for (setting, name) in [("user = \"no-such\"", "user \"no-such\""), ("group = \"no-such\"", "group \"no-such\"")] {
        let findings = with(setting, Whose::Daemon(7), 0);
        assert!(states(&findings) == [State::Fault] && findings[0].text.contains(name), "{findings:?}");
    }
    for setting in ["user = \"root\"", "group = \"root\"", "network = false"] {
        assert_eq!(states(&with(setting, Whose::Unit, 0)), []);
        assert_eq!(states(&with(setting, Whose::Unit, 113)), [State::Fault]);
        // Either may have been started by root, or will be.
        assert_eq!(states(&with(setting, Whose::Daemon(7), 113)), []);
        assert_eq!(states(&with(setting, Whose::This, 113)), []);
    }
    assert_eq!(states(&with("memory = \"64 MiB\"", Whose::Unit, 113)), []);
}

#[test]
fn files_with_the_keys_of_others_are_looked_at_too() {
    let found = |directives: &str, mode, has_key| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bacula-fd.conf");
        let text = format!(
            "Director {{ Name = d; Password = secret }}\n\
             FileDaemon {{ Name = x-fd; WorkingDirectory = /w; PidDirectory = /w; PKI Signatures = yes\n\
             PKI Keypair = /k\n{directives}\n}}\nMessages {{ Name = m; director = d = all }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let read: Read = configuration::read(file.as_os_str(), &Patience::new()).1.unwrap();
        let about = About { is_directory: false, mode, uid: 0 };
        let world = Fake { about, has_key, ..Fake::well() };
        states(&files::check(&Case { read: &read, world: &world, storages: &[] }))
    };
    let (signer, master) = ("PKI Signer = /s", "PKI Encryption = yes\nPKI Master Key = /m");
    // The configuration, the keys and, of a signer, the key that may be in it.
    assert_eq!(found(signer, 0o644, false), [State::Warning; 2]);
    assert_eq!(found(signer, 0o644, true), [State::Warning; 3]);
    assert_eq!(found(master, 0o644, true), [State::Warning; 2]);
    // Without a word about the settings, which may be changed by others, too.
    for directives in [signer, master] {
        assert_eq!(found(directives, 0o666, false).len(), 4, "{directives}");
    }
}

#[test]
fn no_finding_about_a_line_has_its_password() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bacula-fd.conf");
    for line in [
        "Password = \"s3cret\" x",
        "Password = s3cret = y",
        "Passwort = s3cret",
        "Password = \"s3cret",
        "Password \"s3cret\"",
        "Password s3cret",
        "pass WORD s3cret",
        "Password = @s3cret",
        "Password = {s3cret}",
        "Address = \"x; Password = s3cret",
        "Password = s3cret; Foo = x",
        "Password = \"s3cret\"; TLS Enable = s3cret",
        "Foo = x; Password = s3cret",
        "TLS Enable = maybe Password = s3cret",
    ] {
        std::fs::write(&file, format!("Director {{\n Name = d\n {line}\n}}\n")).unwrap();
        let (findings, read) = configuration::read(file.as_os_str(), &Patience::new());
        assert!(read.is_none() && states(&findings) == [State::Fault], "{line}: {findings:?}");
        assert!(!format!("{findings:?}").contains("s3cret"), "{line}: {findings:?}");
        if let Err(error) = fd_config::parse(file.as_os_str().as_encoded_bytes(), &mut Host) {
            assert!(!error.explanation().contains("s3cret"), "{line}: {}", error.explanation());
        }
    }
}

#[test]
fn settings_to_which_a_link_leads_in_vain_are_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let [file, settings] = ["bacula-fd.conf", "bacula-fd.toml"].map(|name| folder.path().join(name));
    let faults = || {
        let (findings, _) = configuration::read(file.as_os_str(), &Patience::new());
        findings.into_iter().map(|finding| finding.text).collect::<Vec<_>>()
    };
    let without = faults();
    std::os::unix::fs::symlink(folder.path().join("not mounted"), &settings).unwrap();
    let told = format!("{}: No such file or directory", settings.display());
    assert!(!without.contains(&told) && faults().contains(&told), "{without:?} {:?}", faults());
}
