//! What `bacula-fd.toml` may say, and what is refused.

use super::*;

fn parse(text: &str) -> Result<Settings, String> {
    Settings::parse(Path::new("/etc/bacula/bacula-fd.toml"), text).map_err(|error| error.to_string())
}

#[test]
fn an_empty_file_means_the_defaults() {
    let settings = parse("").unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!((settings.job.workers, settings.job.memory), (None, None));
    assert_eq!(settings.job.depth, None);
    assert_eq!(settings.connection.login, 15);
    assert!(!settings.tls.require);
    assert!(settings.restore.check_digests);
    assert_eq!((settings.log.format, settings.log.level), (LogFormat::Text, LogLevel::Warn));
}

#[test]
fn the_sample_of_the_manual_is_the_defaults_but_for_its_first_two_settings() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md")).unwrap();
    let sample = page.split("```").find_map(|block| block.strip_prefix("toml\n")).unwrap();
    let mut settings = parse(sample).unwrap();
    assert!(std::mem::take(&mut settings.tls).require && settings.metrics.address.take().is_some());
    assert_eq!(settings, Settings::default());
}

#[test]
fn everything_can_be_set() {
    let text = "[job]\nworkers = 4\nmemory = \"64 MiB\"\n[log]\nformat = \"json\"\nlevel = \"debug\"\n";
    let settings = parse(text).unwrap();
    assert_eq!(settings.job.workers.map(NonZeroU16::get), Some(4));
    assert_eq!(settings.job.memory, Some(64 << 20));
    assert_eq!((settings.log.format, settings.log.level), (LogFormat::Json, LogLevel::Debug));
    let metrics = parse("metrics.address = \"[::1]:19102\"").unwrap().metrics;
    assert_eq!(metrics.address, Some(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 19102))));
    assert_eq!(parse("connection.login = 3600").unwrap().connection.login, 3600);
    assert!(parse("tls.require = true").unwrap().tls.require);
    assert_eq!(parse("job.memory = 8388608").unwrap().job.memory, Some(8 << 20));
    assert_eq!(parse("job.memory = \"1gb\"").unwrap().job.memory, Some(1_000_000_000));
    assert!(parse("job.stage_times = true").unwrap().job.stage_times);
    for (text, bytes) in [("0", 0), ("\"1 MiB\"", 1 << 20), ("\"1 GiB\"", 1 << 30)] {
        let job = parse(&format!("job.kept_signatures = {text}")).unwrap().job;
        assert_eq!(job.kept_signatures, Some(bytes));
    }
    for (text, manners) in [
        ("", JobManners::Auto),
        ("manners = \"auto\"", JobManners::Auto),
        ("manners = \"off\"", JobManners::Off),
        ("manners = \"generous\"", JobManners::Generous),
    ] {
        assert_eq!(parse(&format!("[job]\n{text}")).unwrap().job.manners, manners);
    }
    for (text, inode_scan) in [
        ("", JobInodeScan::Auto),
        ("inode_scan = \"auto\"", JobInodeScan::Auto),
        ("inode_scan = \"off\"", JobInodeScan::Off),
        ("inode_scan = \"always\"", JobInodeScan::Always),
    ] {
        assert_eq!(parse(&format!("[job]\n{text}")).unwrap().job.inode_scan, inode_scan);
    }
    for (text, checks) in [("\"yes\"", true), ("\"no\"", false), ("true", true), ("false", false)] {
        let settings = parse(&format!("restore.check_digests = {text}")).unwrap();
        assert_eq!(settings.restore.check_digests, checks);
    }
    assert_eq!(parse("job.depth = 256").unwrap().job.depth.map(NonZeroU16::get), Some(256));
}

#[test]
fn a_plugin_has_settings_of_its_own_or_the_defaults() {
    let plugins = parse("").unwrap().plugins;
    assert_eq!((plugins.bpipe, plugins.of(b"bpipe")), (Bpipe::Builtin, PluginHostSettings::default()));
    assert_eq!(plugins.restore_commands, RestoreCommands::Known);
    for (text, commands) in
        [("any", RestoreCommands::Any), ("known", RestoreCommands::Known), ("none", RestoreCommands::None)]
    {
        let settings = parse(&format!("plugins.restore_commands = \"{text}\"")).unwrap();
        assert_eq!(settings.plugins.restore_commands, commands);
    }
    assert!(parse("plugins.restore_commands = \"all\"").is_err());
    for (text, bpipe) in [("library", Bpipe::Library), ("off", Bpipe::Off), ("builtin", Bpipe::Builtin)] {
        assert_eq!(parse(&format!("plugins.bpipe = \"{text}\"")).unwrap().plugins.bpipe, bpipe);
    }
    let text = "[plugins.settings.tp]\nuser = \"nobody\"\ngroup = \"nogroup\"\nmemory = \"1 GiB\"\nnetwork = false\n\
                start_timeout = 5\ncall_timeout = 600\n";
    let plugins = parse(text).unwrap().plugins;
    let (user, group) = (Some("nobody".to_owned()), Some("nogroup".to_owned()));
    let tp = PluginHostSettings {
        user,
        group,
        memory: Some(1 << 30),
        network: false,
        start_timeout: 5,
        call_timeout: Some(600),
    };
    assert_eq!((plugins.of(b"tp"), plugins.of(b"tp2")), (tp, PluginHostSettings::default()));
}

#[test]
fn mistakes_name_file_line_and_what_was_expected() {
    let cases = [
        ("[job]\nworker = 4", "unknown field `worker`"),
        ("[jobs]", "unknown field `jobs`"),
        ("[job]\nworkers = 0", "workers must be 1 to 512, not 0"),
        ("[job]\nworkers = 513", "workers must be 1 to 512, not 513"),
        ("[job]\nworkers = \"4\"", "invalid type"),
        ("[job]\ndepth = 0", "depth must be 1 to 256, not 0"),
        ("[job]\ndepth = 257", "depth must be 1 to 256, not 257"),
        ("[job]\nmemory = \"64 apples\"", "\"64 apples\": a number of bytes"),
        ("[connection]\nlogin = 0", "login must be 1 to 3600 seconds, not 0"),
        ("[connection]\nlogin = 3601", "login must be 1 to 3600 seconds, not 3601"),
        ("[tls]\nrequire = 1", "invalid type"),
        ("[plugins]\nbpipe = \"no\"", "unknown variant `no`"),
        ("[plugins.tp]\nuser = \"x\"", "unknown field `tp`"),
        ("[plugins.settings.tp]\nmemory = 1000", "must be at least 67108864 bytes"),
        ("[plugins.settings.tp]\ncall_timeout = 0", "call_timeout must be 1 to 604800 seconds, not 0"),
        ("[plugins.settings.tp]\ngroups = \"x\"", "unknown field `groups`"),
        ("[tls]\nrequired = true", "unknown field `required`"),
        ("[job]\nmemory = -1", "a number of bytes"),
        ("[job]\nmemory = \"1 MiB\"", "must be at least 4194304 bytes"),
        ("[job]\nkept_signatures = 1048575", "kept_signatures must be 0 or at least 1048576 bytes"),
        ("[job]\nstage_times = 1", "invalid type"),
        ("[job]\nmanners = \"bad\"", "unknown variant"),
        ("[job]\ninode_scan = \"bad\"", "unknown variant"),
        ("[restore]\ncheck_digests = \"off\"", "\"off\": \"yes\" or \"no\" is expected"),
        ("[restore]\ncheck_digests = 0", "expected \"yes\" or \"no\""),
        ("[metrics]\naddress = \"localhost\"", "\"localhost\": an address and its port are expected"),
        ("[log]\nformat = \"xml\"", "unknown variant `xml`, expected `text` or `json`"),
        ("[log\n", "line 1"),
    ];
    for (text, part) in cases {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with("/etc/bacula/bacula-fd.toml: "), "{error}");
        assert!(error.contains(part), "{text}: {error}");
        assert!(error.contains("line ") && error.contains('^'), "{error}");
    }
}

#[test]
fn the_file_stands_beside_the_configuration() {
    let beside = |file: &str| Settings::path_beside(OsStr::new(file));
    assert_eq!(beside("/etc/bacula/bacula-fd.conf"), Path::new("/etc/bacula/bacula-fd.toml"));
    assert_eq!(beside("fd.conf"), Path::new("bacula-fd.toml"));
    assert_eq!(beside("/dev/shm/x/fd.conf"), Path::new("/dev/shm/x/bacula-fd.toml"));
    // What has no place of its own.
    for printed in ["|gpg -d /root/fd.conf.gpg", "/dev/fd/63", "/dev/stdin", "/proc/thread-self/fd/3", ""] {
        assert_eq!(beside(printed), Path::new("/etc/bacula/bacula-fd.toml"), "{printed}");
    }
}

#[test]
fn a_mistake_gets_advice() {
    // What is wrong is found before the setting is looked up.
    let either = |word: &str| {
        format!("write true or false, without quotes; where the setting has words, \"{word}\" in double quotes")
    };
    for (text, advice) in [
        ("[tls]\nrequire = yes", either("yes").as_str()),
        ("[job]\nmanners = off", either("off").as_str()),
        ("[plugins]\nbpipe = off", either("off").as_str()),
        ("[tls]\nrequire = True", "write true or false, without quotes"),
        ("[tls]\nrequire = \"yes\"", "write true or false, without quotes"),
        ("[job]\nworkers = \"four\"", "write a whole number, without quotes"),
        ("[job]\nworkerz = 4", "did you mean \"workers\"?"),
        ("[jobs]\nworkers = 4", "did you mean \"job\"?"),
        ("[log]\nlevel = \"inf\"", "did you mean \"info\"?"),
        ("[log]\nlevel = warn", "a text must be in double quotes: \"warn\""),
        ("[metrics]\naddress = 9102", "write the value in double quotes"),
        ("[job]\nmanners = true", "write one of the words of this setting, in double quotes"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.ends_with(&format!("  hint: {advice}\n")), "{text}: {error}");
    }
}

#[test]
fn a_setting_that_is_no_more_is_taken_with_a_word_on_what_took_its_place() {
    assert_eq!(parse("").unwrap().removed().count(), 0);
    for (name, instead) in [
        ("connection.first_packet", "connection.login is for the whole login, its first packet included"),
        ("job.io_priority", "IOSchedulingClass= and IOSchedulingPriority= in the unit"),
        ("job.lookup_depth", "job.depth is for all three of lookups, reading and writing"),
        ("job.max_load", "job.manners watches what other programs need"),
        ("job.nice", "backups have the nice value 10 with job.manners; Nice= in the unit is for all jobs"),
        ("job.reading_depth", "job.depth is for all three of lookups, reading and writing"),
        ("job.writing_depth", "job.depth is for all three of lookups, reading and writing"),
        ("plugins.s3", "the plugin is there if the package ferrofd-s3 is installed"),
    ] {
        for value in ["\"off\"", "1", "[[1], 2]"] {
            let said: Vec<_> = parse(&format!("{name} = {value}")).unwrap().removed().collect();
            assert_eq!(said, [format!("the setting {name} is no more: {instead}")]);
        }
    }
}
