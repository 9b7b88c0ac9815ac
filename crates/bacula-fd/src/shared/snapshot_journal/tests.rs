//! What the next daemon finds.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn some(name: &str) -> Snapshot {
    let text = |text: &str| text.as_bytes().to_vec();
    Snapshot { name: text(name), mount_point: text("/a\nb"), is_mounted: true, ..Snapshot::default() }
}

#[test]
fn the_next_daemon_finds_what_was_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SnapshotJournal::new(folder.path(), 9102);
    assert!(journal.load().is_empty());
    let numbers = ["one", "two", "three"].map(|name| journal.add(&some(name)));
    journal.forget(numbers[1]);
    let known = Snapshot { volume: b"/v".to_vec(), stays: true, ..some("three") };
    journal.note(numbers[2], &known);
    let path = folder.path().join("bacula-fd.9102.snapshots");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let next = SnapshotJournal::new(folder.path(), 9102);
    let left = next.load();
    assert_eq!(left.iter().map(|(_, snapshot)| snapshot.clone()).collect::<Vec<_>>(), [some("one"), known]);
    for (number, _) in left {
        next.forget(number);
    }
    assert!(!path.exists());
}

#[test]
fn the_places_of_all_snapshots_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SnapshotJournal::new(folder.path(), 9102);
    assert!(journal.places().is_empty());
    let text = |text: &str| text.as_bytes().to_vec();
    let number = journal.add(&some("one"));
    journal.note(number, &Snapshot { snap_mount_point: text("/run/bsnapshot//one/"), ..some("one") });
    journal.add(&Snapshot { snap_mount_point: text("/"), ..some("two") });
    assert_eq!(journal.places(), [text("/run/bsnapshot/one")]);
    journal.forget(number);
    assert!(journal.places().is_empty());
}

#[test]
fn a_job_reads_its_snapshots_until_it_has_left_them() {
    let folder = tempfile::tempdir().unwrap();
    let journal = SnapshotJournal::new(folder.path(), 9102);
    let known = Snapshot { volume: b"/v".to_vec(), ..some("one") };
    let number = journal.add(&known);
    assert!(journal.is_read_by_a_job(b"/v") && !journal.is_read_by_a_job(b"/w"));
    journal.leave(number);
    assert!(!journal.is_read_by_a_job(b"/v"));
    let next = SnapshotJournal::new(folder.path(), 9102);
    assert_eq!(next.load().len(), 1);
    assert!(!next.is_read_by_a_job(b"/v"));
}

#[test]
fn what_a_killed_daemon_was_writing_is_removed_by_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    SnapshotJournal::new(folder.path(), 9102).add(&some("one"));
    let new = folder.path().join("bacula-fd.9102.snapshots.new");
    fs::write(&new, "half a journal").unwrap();
    let next = SnapshotJournal::new(folder.path(), 9102);
    assert_eq!(next.load().len(), 1);
    assert!(!new.exists());
}

#[test]
fn a_file_that_others_can_write_or_that_is_damaged_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bacula-fd.1.snapshots");
    let load = || SnapshotJournal::new(folder.path(), 1).load().len();
    SnapshotJournal::new(folder.path(), 1).add(&some("one"));
    assert_eq!(load(), 1);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
    assert_eq!(load(), 0);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let whole = fs::read(&path).unwrap();
    // Behind what is in it there may be blanks.
    let too_long = [&whole[..], &vec![b' '; MOST_BYTES]].concat();
    for bytes in [&whole[..whole.len() - 1], b"other", &[&whole[..], b"x\0"].concat(), &too_long] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(load(), 0, "{} bytes", bytes.len());
    }
    let later = String::from_utf8(whole).unwrap().replacen("[1,", "[2,", 1);
    assert!(decode(later.as_bytes()).is_err() && decode(b"[1,[]]").unwrap().is_empty());
}
