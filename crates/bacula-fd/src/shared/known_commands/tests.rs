//! Which commands are known, and to which daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::*;
use crate::alone::alone;
use crate::shared::snapshot_journal::{Snapshot, SnapshotJournal};

const COMMAND: &[u8] = b"bpipe:/x:cat /etc/x:psql shop";

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ferrofd-commands-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_next_daemon_has_the_very_commands_of_the_same_director_only() {
    let folder = folder("next");
    let known = KnownCommands::new(&folder, 9102);
    assert!(!known.has(b"dir", COMMAND));
    known.note(b"dir", std::iter::empty());
    assert!(fs::read_dir(&folder).unwrap().next().is_none());
    known.note(b"dir", [COMMAND, b"s3:/b:shop"].into_iter());
    let path = folder.join("bacula-fd.9102.commands");
    let about = fs::metadata(&path).unwrap();
    assert_eq!((about.permissions().mode() & 0o7777, about.len()), (0o600, MAGIC.len() as u64 + 64));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    for known in [known, KnownCommands::new(&folder, 9102)] {
        assert!(known.has(b"dir", COMMAND) && known.has(b"dir", b"s3:/b:shop"));
        assert!(!known.has(b"other", COMMAND));
        let (prefix, upper) = (&COMMAND[..COMMAND.len() - 1], COMMAND.to_ascii_uppercase());
        let (line, nul) = ([COMMAND, b"\n"].concat(), [COMMAND, b"\0"].concat());
        for other in [prefix, &upper, &line, &nul, b"bpipe:/x:true:psql shop", b"bpipe:/x:cat /etc/x:sh", b""] {
            assert!(!known.has(b"dir", other), "{}", other.escape_ascii());
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn commands_that_could_not_be_written_are_written_with_the_next_fileset() {
    let folder = folder("full");
    let path = folder.join("missing");
    let known = KnownCommands::new(&path, 1);
    known.note(b"dir", [COMMAND].into_iter());
    assert!(known.has(b"dir", COMMAND) && !KnownCommands::new(&path, 1).has(b"dir", COMMAND));
    fs::create_dir(&path).unwrap();
    known.note(b"dir", [COMMAND].into_iter());
    assert!(KnownCommands::new(&path, 1).has(b"dir", COMMAND));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_was_not_sent_for_the_longest_time_is_forgotten() {
    let folder = folder("most");
    let known = KnownCommands::new(&folder, 1);
    let names: Vec<Vec<u8>> = (0..MOST + 2).map(|number| format!("bpipe:/{number}:r:w").into_bytes()).collect();
    known.note(b"dir", names[..MOST].iter().map(Vec::as_slice));
    known.note(b"dir", [&names[0][..]].into_iter());
    known.note(b"dir", names[MOST..].iter().map(Vec::as_slice));
    for known in [known, KnownCommands::new(&folder, 1)] {
        let lost: Vec<_> = (0..names.len()).filter(|number| !known.has(b"dir", &names[*number])).collect();
        assert_eq!(lost, [1, 2]);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_that_others_can_write_or_that_is_damaged_is_not_used() {
    let folder = folder("damaged");
    let path = folder.join("bacula-fd.1.commands");
    let has = || KnownCommands::new(&folder, 1).has(b"dir", COMMAND);
    KnownCommands::new(&folder, 1).note(b"dir", [COMMAND].into_iter());
    assert!(has());
    for mode in [0o660, 0o602, 0o644] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(!has(), "{mode:o}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let whole = fs::read(&path).unwrap();
    let long = [&whole[..], &vec![0; MOST * LENGTH]].concat();
    for bytes in [&whole[..whole.len() - 1], &whole[1..], &[&whole[..], b"x"].concat(), &long] {
        fs::write(&path, bytes).unwrap();
        assert!(!has(), "{} bytes", bytes.len());
    }
    fs::write(&path, &whole).unwrap();
    assert!(has());
    fs::remove_dir_all(&folder).unwrap();
}

/// The limit belongs to the process, so there is one for this.
#[test]
fn for_want_of_a_descriptor_no_file_is_replaced_and_nothing_forgotten() {
    const NAME: &str =
        "shared::known_commands::tests::for_want_of_a_descriptor_no_file_is_replaced_and_nothing_forgotten";
    alone(NAME, |_, _| {}, without_descriptors);
}

fn without_descriptors(folder: &Path) {
    let own = folder.join("own");
    fs::write(&own, "kept").unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o600)).unwrap();
    let snapshot = |name: &[u8]| Snapshot { name: name.to_vec(), ..Snapshot::default() };
    let names_left = || -> Vec<Vec<u8>> {
        let left = SnapshotJournal::new(folder, 1).load();
        left.into_iter().map(|(_, snapshot)| snapshot.name).collect()
    };
    SnapshotJournal::new(folder, 1).add(&snapshot(b"left"));
    let journal = SnapshotJournal::new(folder, 1);
    KnownCommands::new(folder, 1).note(b"dir", [COMMAND].into_iter());
    let (known, (soft, hard)) = (KnownCommands::new(folder, 1), getrlimit(Resource::RLIMIT_NOFILE).unwrap());
    setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
    let opened = [own_file::open, own_file::open_any_mode, own_file::open_to_append].map(|open| open(&own, 0o600));
    let is_known = known.has(b"dir", COMMAND);
    known.note(b"dir", [&b"bpipe:/x:other"[..]].into_iter());
    assert!(journal.load().is_empty());
    journal.forget(journal.add(&snapshot(b"first")));
    let second = journal.add(&snapshot(b"second"));
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    assert!(opened.iter().all(Result::is_err) && !is_known);
    assert_eq!(fs::read_to_string(&own).unwrap(), "kept");
    assert_eq!(names_left(), [b"left"]);
    journal.note(second, &snapshot(b"second"));
    assert_eq!(names_left(), [&b"second"[..], b"left"]);
    journal.forget(second);
    assert_eq!(names_left(), [b"left"]);
    known.note(b"dir", [&b"bpipe:/x:next"[..]].into_iter());
    for known in [known, KnownCommands::new(folder, 1)] {
        assert!(known.has(b"dir", COMMAND) && known.has(b"dir", b"bpipe:/x:next"));
    }
}
