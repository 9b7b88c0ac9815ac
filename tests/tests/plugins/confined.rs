//! A plugin that runs as another user gets the daemon to do nothing that this user may not.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use bed::{Bed, BedOptions, ClientOptions, Fd, ONLY_OURS, Plugins, Result, build_plugin};

use crate::jobs::{CLIENT, set};

/// What the plugin adds to the FileSet, when its command comes or later, and whether that runs a
/// program or reads a list as the daemon.
const ADDED: [(&str, &str, bool); 7] = [
    ("a program's command", "plugin=bpipe:/@x:id -u >PROOF:cat", true),
    ("the same, later", "late-plugin=bpipe:/@x:id -u >PROOF:cat", true),
    ("a program that prints names", "include=|sh -c 'id -u >PROOF'", true),
    ("one that prints names to be left out", "exclude=|sh -c 'id -u >PROOF'", true),
    ("the same in an Include of its own", "late-newinclude;late-include=|sh -c 'id -u >PROOF'", true),
    ("a list", "include=<SECRET", true),
    ("a name", "include=PLAIN", false),
];

#[test]
fn a_plugin_with_a_user_of_its_own_has_nothing_run_by_the_daemon() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root");
    let mut options = BedOptions::new("confined-plugin", [ClientOptions::new(Fd::Ours).named(CLIENT)])?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("inc", &[], &plugins.join("inc-fd.so"))?;
    let folder = options.folder.path().to_owned();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (proof, secret, plain) = (folder.join("proof"), folder.join("secret"), folder.join("plain"));
    fs::write(&secret, "/the-secret\n").unwrap();
    fs::write(&plain, "plain").unwrap();
    options.clients[0].plugins = Plugins::In(plugins);
    options.clients[0].settings.push("plugins.settings.inc.user = \"nobody\"".to_owned());
    let filled_in = |change: &str| {
        let places = [("PROOF", &proof), ("SECRET", &secret), ("PLAIN", &plain)];
        places.iter().fold(change.to_owned(), |text, (name, path)| text.replace(name, &path.to_string_lossy()))
    };
    let sets = ADDED.iter().enumerate();
    options.file_sets = sets
        .map(|(number, (_, change, _))| set(&format!("set{number}"), &[format!("inc:{}", filled_in(change))]))
        .collect();
    let bed = Bed::start(options)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let mut wrong = String::new();
    for (number, (what, _, is_refused)) in ADDED.iter().enumerate() {
        let job = bed.backup(CLIENT, &format!("level=Full fileset=set{number}"))?;
        let by = fs::read_to_string(&proof).ok();
        let _none = fs::remove_file(&proof);
        let is_told = job.log.contains("Plugin inc-fd.so: ") && job.log.contains("user of its own");
        let is_secret = job.log.contains("the-secret");
        println!("{what}: {} by {by:?}", job.row.status);
        if by.is_some() || is_secret || is_told != *is_refused || (job.row.errors > 0) != *is_refused {
            writeln!(wrong, "{what}: {} by {by:?}\n{}", job.row.status, job.log).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
