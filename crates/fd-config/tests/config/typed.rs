//! From text to typed values: every directive, and its default.

use std::path::Path;
use std::time::Duration;

use fd_config::{CalendarHour, Config, DestinationKind, PasswordKey, StatisticsKind, Tls};
use fd_records::{ContentCipher, DigestKind};

use crate::world::{DIRECTORY, World};

fn loaded(text: &str) -> Config {
    let mut world = World::default();
    world.files.insert(b"fd.conf".to_vec(), text.as_bytes().to_vec());
    fd_config::load(b"fd.conf", &mut world, &mut World::default()).unwrap()
}

fn corpus_text(name: &str) -> String {
    let inputs: toml::Table = toml::from_str(include_str!("../corpus/inputs.toml")).unwrap();
    let cases = inputs["case"].as_array().unwrap();
    let case = cases.iter().find(|case| case["name"].as_str() == Some(name)).unwrap();
    case["text"].as_str().unwrap().to_owned()
}

#[test]
fn the_file_that_debian_installs() {
    let config = loaded(&corpus_text("the file that Debian installs"));
    let daemon = &config.file_daemon;
    assert_eq!(daemon.name, "vm-fd");
    assert_eq!(daemon.addresses, ["127.0.0.1:9102".parse().unwrap()]);
    assert_eq!(daemon.port(), 9102);
    assert_eq!(daemon.pid_directory, Path::new("/run/bacula"));
    assert_eq!(daemon.plugin_directory.as_deref(), Some(Path::new("/usr/lib/bacula")));
    assert_eq!(daemon.max_concurrent_jobs, 20);
    let names: Vec<(&str, bool)> =
        config.directors.iter().map(|director| (director.name.as_str(), director.monitor)).collect();
    assert_eq!(names, [("vm-dir", false), ("vm-mon", true)]);
    assert_eq!(daemon.messages.destinations.len(), 1);
    let destination = &daemon.messages.destinations[0];
    assert_eq!((destination.kind, destination.place.as_slice()), (DestinationKind::Director, b"vm-dir".as_slice()));
    let types: Vec<u8> = (1..=18).filter(|number| destination.types.contains(*number)).collect();
    assert_eq!(types, [1, 4, 5, 6, 7, 9, 11, 12, 13, 15, 16, 17]);
    // Negation does not remove from the union (reference 06 §7.3).
    assert!(daemon.messages.wants(10) && !daemon.messages.wants(8));
}

#[test]
fn an_ipv6_address_of_the_old_style_is_noted() {
    let noted = |lines: &str| {
        let config = loaded(&format!(
            "Director {{ Name = d; Password = p }}\n\
             Client {{ Name = f; WorkingDirectory = {DIRECTORY}/work; PidDirectory = {DIRECTORY}/run\n{lines}\n}}\n\
             Messages {{ Name = m }}\n"
        ));
        let noted = config.file_daemon.not_ipv4.iter().map(|(name, address)| format!("{name} {address}"));
        (noted.collect::<Vec<_>>().join(", "), config.file_daemon.addresses[0].to_string())
    };
    let everywhere = || "0.0.0.0:9102".to_owned();
    assert_eq!(noted("FD Address = ::1"), ("FdAddress ::1".to_owned(), everywhere()));
    assert_eq!(noted("fdsourceaddress = fd00::5"), ("FdSourceAddress fd00::5".to_owned(), everywhere()));
    // The last one counts.
    assert_eq!(noted("FDAddress = ::1\nFDAddress = 127.0.0.1"), (String::new(), "127.0.0.1:9102".to_owned()));
    assert_eq!(noted("FDAddresses = { ipv6 = { addr = ::1; } }"), (String::new(), "[::1]:9102".to_owned()));
}

#[test]
fn defaults_apply_without_a_directive() {
    let config = loaded(&format!(
        "Director {{ Name = d; Password = \"fdpw\" }}\n\
         Client {{ Name = f; WorkingDirectory = {DIRECTORY}/work; PidDirectory = {DIRECTORY}/run }}\n\
         Messages {{ Name = first; stdout = all }}\nMessages {{ Name = second }}\n"
    ));
    let daemon = &config.file_daemon;
    assert_eq!(daemon.addresses, ["0.0.0.0:9102".parse().unwrap()]);
    assert_eq!(daemon.messages.name, "first");
    assert_eq!(daemon.sd_connect_timeout, Duration::from_secs(1800));
    assert_eq!(daemon.heartbeat_interval, Duration::from_secs(300));
    assert_eq!((daemon.max_network_buffer_size, daemon.max_bandwidth_per_job, daemon.sd_packet_check), (0, 0, 0));
    assert_eq!((daemon.max_job_error_count, daemon.comm_compression), (1000, true));
    assert_eq!((daemon.pki.cipher, daemon.pki.digest), (ContentCipher::Aes128, DigestKind::Sha256));
    assert!(!daemon.pki.signatures && !daemon.pki.encryption);
    assert_eq!(daemon.tls, Tls::default());
    assert!(daemon.disabled_commands.is_empty());
    let director = config.director(b"d").unwrap();
    assert_eq!(director.password.as_str(), "af2904ba21987b283d3f14cb9cfb5579");
    assert_eq!((director.port, director.address.as_deref()), (9101, None));
    assert_eq!(director.reconnection_time, Duration::from_secs(2700));
    assert_eq!((director.tls.enable, director.tls.psk_enable, director.tls.require), (false, true, false));
    assert!(config.director(b"D").is_none());
}

#[test]
fn every_directive_has_its_type() {
    let config = loaded(&corpus_text("every directive"));
    let daemon = &config.file_daemon;
    assert_eq!(daemon.addresses, ["127.0.0.1:9103".parse().unwrap()]);
    assert_eq!(daemon.source_address, Some([10, 0, 0, 1].into()));
    assert_eq!(daemon.subsys_directory.as_deref(), Some(Path::new("/sub")));
    assert_eq!(daemon.plugin_options, [b"a:b"]);
    assert_eq!(daemon.snapshot_command.as_deref(), Some(b"snap".as_slice()));
    assert_eq!((daemon.max_concurrent_jobs, daemon.max_network_buffer_size), (7, 32768));
    assert_eq!((daemon.sd_connect_timeout, daemon.heartbeat_interval), (Duration::from_secs(60), Duration::ZERO));
    assert_eq!(daemon.pki.signers, [Path::new("/s1"), Path::new("/s2")]);
    assert_eq!((daemon.pki.cipher, daemon.pki.digest), (ContentCipher::Blowfish, DigestKind::Md5));
    assert_eq!((daemon.max_bandwidth_per_job, daemon.comm_compression), (100_000, false));
    assert!(daemon.disabled_commands.contains(&"sm_dump"));
    assert_eq!((daemon.max_job_error_count, daemon.sd_packet_check), (5, 9));

    let director = &config.directors[0];
    assert_eq!(director.password, PasswordKey::of(b"p w"));
    assert_eq!((director.address.as_deref(), director.port, director.remote), (Some("host"), 9201, true));
    // TlsRequire with authorities only does not turn certificates on in a Director resource.
    assert_eq!((director.tls.enable, director.tls.psk_enable), (false, false));
    assert_eq!(director.tls.allowed_cn, [b"a".as_slice(), b"b c"]);
    assert!(!director.tls.verify_peer);
    assert!(director.disabled_commands.contains(&"RunBeforeNow"));
    assert_eq!(director.console.as_ref().map(|console| (console.name.as_str(), console.port)), Some(("c1", 9301)));
    assert_eq!(director.reconnection_time, Duration::from_secs(3600));
    assert_eq!(director.allowed_backup_directories, [b"/a", b"/b"]);
    assert_eq!(director.allowed_restore_directories, [b"/e*"]);
    let schedule = director.schedule.as_ref().unwrap();
    assert_eq!((schedule.name.as_str(), schedule.enabled, schedule.runs.len()), ("s1", false, 2));
    assert_eq!(schedule.runs[0].max_connect_time, Some(Duration::from_secs(7200)));
    let monday_at_22 = CalendarHour { hour: 22, day: 3, is_last_day: false, month: 4, week_day: 1, week_of_year: 18 };
    assert!(schedule.runs[0].is_due(monday_at_22));
    assert!(!schedule.runs[1].is_due(monday_at_22));

    let kinds: Vec<DestinationKind> = daemon.messages.destinations.iter().map(|destination| destination.kind).collect();
    assert_eq!(kinds.len(), 12);
    assert_eq!(daemon.messages.destinations_of(11).count(), 7);
    let mail = &daemon.messages.destinations[1];
    assert_eq!((mail.place.as_slice(), mail.command.as_deref()), (b"a@b c@d".as_slice(), Some(b"mc %r".as_slice())));
    let statistics = &config.statistics[0];
    assert_eq!((statistics.kind, statistics.port), (StatisticsKind::Graphite, 2003));
    assert!(!format!("{config:?}").contains("p w"));
}

#[test]
fn certificates_turn_on_what_require_asks_for() {
    let with = |tls: &str| {
        let text = format!(
            "Director {{ Name = d; Password = p; {tls} }}\n\
             FileDaemon {{ Name = f; WorkingDirectory = {DIRECTORY}/work; PidDirectory = /r }}\nMessages {{ Name = m }}\n"
        );
        let config = loaded(&text);
        let tls = &config.directors[0].tls;
        assert!(tls.require);
        (tls.enable, tls.psk_enable)
    };
    assert_eq!(with("TlsRequire = yes"), (false, true));
    assert_eq!(with("TlsRequire = yes; TlsCaCertificateFile = /ca"), (false, true));
    assert_eq!(with("TlsRequire = yes; TlsCertificate = /c; TlsKey = /k; TlsCaCertificateFile = /ca"), (true, true));
    assert_eq!(with("TlsPskEnable = no; TlsRequire = yes"), (false, false));
}

#[test]
fn what_can_be_read_only_once_is_complete() {
    let director = "Disable Command = cancel\nAllowed Backup Directories = /a\nAllowed Backup Directories = /b\n";
    let text = format!(
        "Director {{ Name = d; Password = p; Schedule = s; Console = c\n@\"|once director\"\n}}\n\
         Client {{ Name = f; WorkingDirectory = {DIRECTORY}/work; PidDirectory = /r }}\nMessages {{ Name = m }}\n\
         Console {{ Name = c; Password = p }}\nSchedule {{ Name = s\nConnect = at 1:00\n}}\n"
    );
    let mut world = World::default();
    world.once.insert(b"director".to_vec(), director.as_bytes().to_vec());
    world.once.insert(b"whole".to_vec(), text.into_bytes());
    let config = fd_config::load(b"|once whole", &mut world, &mut World::default()).unwrap();
    assert!(world.once.is_empty());
    let director = &config.directors[0];
    assert_eq!(director.allowed_backup_directories, [b"/a", b"/b"]);
    assert!(director.disabled_commands.contains(&"cancel"));
    assert_eq!(director.schedule.as_ref().map(|schedule| schedule.runs.len()), Some(1));
    assert!(director.console.is_some());
}
