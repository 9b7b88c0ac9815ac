//! Files that change, vanish or are replaced while they are saved.

use std::fs::{self, FileTimes, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use super::support::{self, Bed, Collector, Outcome, noise};
use crate::BackupPlan;
use crate::file::fate::HELD;
use fd_messages::MessageType;
use fd_os::page_cache::resident_pages;
use rustix::fs::{Advice, fadvise};

/// A backup that stops before its first data until the walk is complete: with one worker, it waits
/// for a fifo that comes first. `change` modifies the tree then, before the fifo gets a writer.
fn change_during_backup(letters: &str, plant: impl FnOnce(&Bed), change: impl FnOnce(&Bed) + Send) -> Outcome {
    let mut bed = Bed::with_lines(&["I", &format!("O r{letters}"), "N", "F @/gate", "F @/tree", "N", "N"]);
    support::fifo(&bed.path("gate"));
    fs::create_dir(bed.path("tree")).unwrap();
    plant(&bed);
    let expected = 1 + count_entries(&bed.path("tree"));
    run_behind_gate(&mut bed, expected, change)
}

/// Runs such a backup, whose walk finds so many entries.
fn run_behind_gate(bed: &mut Bed, expected: u64, change: impl FnOnce(&Bed) + Send) -> Outcome {
    bed.plan.workers = 1;
    let progress = Arc::clone(&bed.progress);
    thread::scope(|scope| {
        let bed = &*bed;
        scope.spawn(move || {
            while progress.files_examined() < expected {
                thread::yield_now();
            }
            change(bed);
            drop(OpenOptions::new().write(true).open(bed.path("gate")).unwrap());
        });
        bed.run()
    })
}

fn count_entries(path: &std::path::Path) -> u64 {
    let below: u64 = if path.is_dir() {
        fs::read_dir(path).unwrap().map(|entry| count_entries(&entry.unwrap().path())).sum()
    } else {
        0
    };
    below + 1
}

fn data_of(outcome: &Outcome, end_of_name: &str) -> Vec<u8> {
    let records = outcome.records();
    let attributes = records.iter().find(|record| record.stream == 1 && record.name().ends_with(end_of_name)).unwrap();
    records.iter().find(|record| record.file_index == attributes.file_index && record.stream == 2).unwrap().data()
}

fn streams_of(outcome: &Outcome, end_of_name: &str) -> Vec<u32> {
    let records = outcome.records();
    let attributes = records.iter().find(|record| record.stream == 1 && record.name().ends_with(end_of_name)).unwrap();
    records.iter().filter(|record| record.file_index == attributes.file_index).map(|record| record.stream).collect()
}

fn attributes_of(outcome: &Outcome, end_of_name: &str) -> (u16, fd_records::Stat) {
    let records = outcome.records();
    let record = records.iter().find(|record| record.stream == 1 && record.name().ends_with(end_of_name)).unwrap();
    (record.attributes().type_code, record.attributes().lstat.stat)
}

#[test]
fn a_file_that_changes_before_it_is_opened_has_its_new_attributes() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            bed.file("tree/grows", &[1; 1000]);
            bed.file("tree/grows over a block", &vec![1; 65_536]);
            bed.file("tree/shrinks", &vec![2; 100_000]);
            bed.file("tree/is emptied", &[3; 1000]);
            bed.file("tree/is replaced", &[5; 1000]);
        },
        |bed| {
            OpenOptions::new().append(true).open(bed.path("tree/grows")).unwrap().write_all(&vec![4; 70_000]).unwrap();
            OpenOptions::new()
                .append(true)
                .open(bed.path("tree/grows over a block"))
                .unwrap()
                .write_all(&[4; 5])
                .unwrap();
            OpenOptions::new().write(true).open(bed.path("tree/shrinks")).unwrap().set_len(70_000).unwrap();
            fs::write(bed.path("tree/is emptied"), b"").unwrap();
            let other = bed.file("other", &[6; 777]);
            fs::set_permissions(&other, fs::Permissions::from_mode(0o741)).unwrap();
            fs::rename(other, bed.path("tree/is replaced")).unwrap();
        },
    );
    for (name, size) in
        [("/grows", 71_000), ("/grows over a block", 65_541), ("/shrinks", 70_000), ("/is replaced", 777)]
    {
        let (kind, stat) = attributes_of(&outcome, name);
        assert_eq!((kind, stat.size), (3, size), "{name}");
        assert_eq!(data_of(&outcome, name).len(), usize::try_from(size).unwrap(), "{name}");
    }
    let (_, replaced) = attributes_of(&outcome, "/is replaced");
    assert_eq!(replaced.mode & 0o777, 0o741);
    assert_eq!(data_of(&outcome, "/is replaced"), [6; 777]);
    let (kind, emptied) = attributes_of(&outcome, "/is emptied");
    assert_eq!((kind, emptied.size), (2, 0));
    assert!(!streams_of(&outcome, "/is emptied").contains(&2));
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

/// Jobs that build on earlier ones read the first byte before they take the attributes.
#[test]
fn a_file_is_saved_with_its_last_access_before_the_job() {
    const ACCESSED: u64 = 1_000_000_000;
    for incremental in [false, true] {
        let mut bed = Bed::new("");
        bed.plan.walk.incremental = incremental;
        let path = bed.file("file", &[1; 1000]);
        // So mostly the kernel notes the next access.
        let [accessed, modified] = [ACCESSED, ACCESSED + 1].map(|time| UNIX_EPOCH + Duration::from_secs(time));
        let times = FileTimes::new().set_accessed(accessed).set_modified(modified);
        OpenOptions::new().write(true).open(path).unwrap().set_times(times).unwrap();
        let (_, stat) = attributes_of(&bed.run(), "/file");
        assert_eq!(stat.atime.cast_unsigned(), ACCESSED, "{incremental}");
    }
}

/// A backup of one file that is larger than the memory of the job, so that it is still being read
/// when `change` is called.
fn change_while_it_is_read(letters: &str, change: impl Fn(&std::path::Path) + 'static) -> Outcome {
    let mut bed = Bed::new(letters);
    let path = bed.file("file", &noise(1, 3_000_000));
    bed.plan = BackupPlan { workers: 1, memory_budget: 1, ..bed.plan.clone() };
    bed.run_with(Collector::with_hook(move |call| {
        if call == 2 {
            change(&path);
        }
        true
    }))
}

#[test]
fn data_appended_while_a_file_is_read_is_not_sent() {
    for letters in ["M", "Ms", "Z1M"] {
        let outcome = change_while_it_is_read(letters, |path| {
            OpenOptions::new().append(true).open(path).unwrap().write_all(&noise(2, 200_000)).unwrap();
        });
        let (_, stat) = attributes_of(&outcome, "/file");
        assert_eq!((stat.size, outcome.progress.read_bytes()), (3_000_000, 3_000_000), "{letters}");
    }
}

#[test]
fn changes_during_the_backup_are_reported_on_request() {
    let modified = change_while_it_is_read("Mc", |path| {
        let past = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000);
        OpenOptions::new().append(true).open(path).unwrap().set_modified(past).unwrap();
    });
    let chmod = change_while_it_is_read("Mc", |path| {
        // The record has whole seconds: the next change time must differ.
        let before = fs::metadata(path).unwrap().ctime();
        while fs::metadata(path).unwrap().ctime() == before {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
            thread::yield_now();
        }
    });
    for (outcome, text) in
        [(modified, "/file mtime changed during backup.\n"), (chmod, "/file ctime changed during backup.\n")]
    {
        let errors = outcome.texts(MessageType::Error);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].ends_with(text), "{errors:?}");
        assert_eq!(outcome.progress.errors(), 1);
    }
}

#[test]
fn a_vanished_entry_has_no_record() {
    let outcome = change_during_backup(
        "MAX",
        |bed| {
            bed.file("tree/vanishes", &[1; 1000]);
            bed.file("tree/large and gone", &vec![1; 1_000_000]);
            bed.file("tree/stays", &[1; 1000]);
        },
        |bed| {
            fs::remove_file(bed.path("tree/vanishes")).unwrap();
            fs::remove_file(bed.path("tree/large and gone")).unwrap();
        },
    );
    let records = outcome.records();
    let names: Vec<_> = records.iter().filter(|record| record.stream == 1).map(support::Record::name).collect();
    assert_eq!(names.len(), 3, "the gate, a file and its directory: {names:?}");
    let texts = outcome.texts(MessageType::NotSaved);
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| text.starts_with("     Could not stat \"/")));
    assert!(texts.iter().any(|text| text.ends_with("/tree/vanishes\": ERR=No such file or directory\n")));
    assert_eq!((outcome.progress.files(), outcome.progress.errors()), (3, 2));
}

/// Creates a file that only root may read beside the tree.
fn plant_secret(bed: &Bed) -> std::path::PathBuf {
    fs::create_dir(bed.path("secret")).unwrap();
    bed.file("secret/f", b"for root only");
    bed.path("secret")
}

fn has_secret(outcome: &Outcome) -> bool {
    outcome.sink.wire.windows(13).any(|bytes| bytes == b"for root only")
}

#[test]
fn a_file_replaced_by_a_link_is_saved_as_a_link() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            bed.file("tree/f", &[1; 1000]);
        },
        |bed| {
            let secret = plant_secret(bed);
            fs::remove_file(bed.path("tree/f")).unwrap();
            symlink(secret.join("f"), bed.path("tree/f")).unwrap();
        },
    );
    assert!(!has_secret(&outcome));
    assert_eq!((attributes_of(&outcome, "/tree/f").0, streams_of(&outcome, "/tree/f")), (4, vec![1]));
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn a_directory_replaced_by_a_link_is_not_followed() {
    let outcome = change_during_backup(
        "MAX",
        |bed| {
            fs::create_dir_all(bed.path("tree/d/below")).unwrap();
            bed.file("tree/d/f", &[1; 1000]);
            bed.file("tree/d/below/f", &[1; 1000]);
        },
        |bed| {
            let secret = plant_secret(bed);
            fs::create_dir(secret.join("below")).unwrap();
            bed.file("secret/below/f", b"for root only");
            fs::rename(bed.path("tree/d"), bed.path("tree/moved")).unwrap();
            symlink(secret, bed.path("tree/d")).unwrap();
        },
    );
    assert!(!has_secret(&outcome));
    let texts = outcome.texts(MessageType::NotSaved);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts.iter().all(|text| text.contains("/tree/d/") && text.contains("/f\": ERR=No such file")), "{texts:?}");
}

#[test]
fn extended_attributes_are_never_those_of_a_replacement() {
    let outcome = change_during_backup(
        "MAX",
        |bed| {
            for name in ["empty", "other empty"] {
                let path = bed.file(&format!("tree/{name}"), b"");
                rustix::fs::setxattr(&path, "user.own", b"its own", rustix::fs::XattrFlags::empty()).unwrap();
            }
        },
        |bed| {
            let secret = plant_secret(bed).join("f");
            rustix::fs::setxattr(&secret, "user.own", b"for root only", rustix::fs::XattrFlags::empty()).unwrap();
            fs::remove_file(bed.path("tree/empty")).unwrap();
            symlink(secret, bed.path("tree/empty")).unwrap();
        },
    );
    assert!(!has_secret(&outcome));
    assert_eq!(streams_of(&outcome, "tree/empty"), [1, 3]);
    assert_eq!(streams_of(&outcome, "tree/other empty"), [1, 1998, 3]);
}

/// A name of the FileSet may lead through links of the operator. The files that are read are in the
/// directory of the walk.
#[test]
fn a_name_of_the_fileset_still_means_the_directory_of_the_walk() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/gate", "F @/link/f", "N", "N"]);
    support::fifo(&bed.path("gate"));
    fs::create_dir(bed.path("own")).unwrap();
    bed.file("own/f", b"its own");
    symlink(bed.path("own"), bed.path("link")).unwrap();
    let outcome = run_behind_gate(&mut bed, 2, |bed| {
        let secret = plant_secret(bed);
        fs::remove_file(bed.path("link")).unwrap();
        symlink(secret, bed.path("link")).unwrap();
    });
    assert!(!has_secret(&outcome));
    assert_eq!(data_of(&outcome, "/link/f"), b"its own");
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
    bed.plan.fifo_timeout = Duration::ZERO;
    assert_eq!(bed.again().of(&bed.name("link/f")).last().unwrap().stream, 3, "afterwards it is what it is");
}

/// Files that the FileSet names are replaced by programs as others are.
#[test]
fn a_replaced_name_of_the_fileset_is_saved_as_its_replacement() {
    let mut bed = Bed::with_lines(&["I", "O rM", "N", "F @/gate", "F @/a", "F @/b", "N", "N"]);
    support::fifo(&bed.path("gate"));
    bed.file("a", b"old");
    bed.file("b", b"old");
    let outcome = run_behind_gate(&mut bed, 3, |bed| {
        for name in ["a", "b"] {
            fs::rename(bed.file("new", b"and new"), bed.path(name)).unwrap();
        }
    });
    for name in ["/a", "/b"] {
        assert_eq!((attributes_of(&outcome, name).1.size, data_of(&outcome, name)), (7, b"and new".to_vec()));
    }
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn a_file_replaced_by_a_fifo_or_device_is_not_read() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            for name in ["fifo", "directory", "socket"] {
                bed.file(&format!("tree/{name}"), &[1; 1000]);
            }
        },
        |bed| {
            for name in ["fifo", "directory", "socket"] {
                fs::remove_file(bed.path(&format!("tree/{name}"))).unwrap();
            }
            support::fifo(&bed.path("tree/fifo"));
            fs::create_dir(bed.path("tree/directory")).unwrap();
            drop(std::os::unix::net::UnixListener::bind(bed.path("tree/socket")).unwrap());
        },
    );
    assert_eq!((attributes_of(&outcome, "/fifo").0, streams_of(&outcome, "/fifo")), (6, vec![1]));
    assert_eq!((attributes_of(&outcome, "/directory/").0, streams_of(&outcome, "/directory/")), (5, vec![1]));
    let texts = outcome.texts(MessageType::NotSaved);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("/tree/directory\" became a directory during the backup")));
    assert!(texts.iter().any(|text| text.contains("/tree/socket\": ERR=No such file or directory")));
}

/// Whether files can be held until their turn, which is counted for the whole process: for one test
/// at a time, as long as this value lives.
struct Room {
    taken: usize,
    _one: MutexGuard<'static, ()>,
}

impl Room {
    fn of_process(has_room: bool) -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = if has_room { 0 } else { 1 << 40 };
        HELD.fetch_add(taken, Ordering::Relaxed);
        Self { taken, _one: one }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        HELD.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

/// What other programs have in memory stays there, also where the first byte of a file is read
/// before its turn.
#[test]
fn a_job_of_any_level_leaves_no_pages_of_a_cold_file_in_memory() {
    for (incremental, is_held) in [(false, true), (true, true), (true, false)] {
        let mut bed = Bed::new("M");
        let file = fs::File::open(bed.file("f", &noise(1, 4 << 20))).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let resident = || resident_pages(file.as_fd(), 0, 4 << 20).unwrap();
        if resident() != 0 {
            return skip::test("this file system keeps pages that it is asked to drop");
        }
        bed.plan.walk.incremental = incremental;
        // With no room for held files it is opened twice.
        let room = Room::of_process(is_held);
        let outcome = bed.run();
        drop(room);
        assert_eq!(data_of(&outcome, "/f").len(), 4 << 20, "{incremental} {is_held}");
        assert_eq!(resident(), 0, "{incremental} {is_held}");
    }
}

/// One inode has one set of attributes: those of the moment in which its data is read.
#[test]
fn all_names_of_an_inode_that_changes_before_it_is_read_have_its_new_attributes() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            let first = bed.file("tree/a", &[1; 1000]);
            fs::hard_link(first, bed.path("tree/b")).unwrap();
        },
        |bed| {
            let path = bed.path("tree/a");
            let before = fs::metadata(&path).unwrap().ctime();
            OpenOptions::new().append(true).open(&path).unwrap().write_all(&[2; 500]).unwrap();
            // The record has whole seconds: the next change time must differ.
            loop {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
                if fs::metadata(&path).unwrap().ctime() != before {
                    break;
                }
                thread::yield_now();
            }
        },
    );
    let [one, other] = ["/tree/a", "/tree/b"].map(|name| attributes_of(&outcome, name));
    let mut types = [one.0, other.0];
    types.sort_unstable();
    assert_eq!(types, [1, 3], "the first name with the data, and a link to it");
    assert_eq!((one.1.size, one.1.mode & 0o777), (1500, 0o600));
    assert_eq!(one.1, other.1);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn later_names_of_an_inode_do_not_link_to_a_replaced_first_name() {
    // Without room for held files each is opened in its turn.
    for has_room in [true, false] {
        let _room = Room::of_process(has_room);
        first_name_is_replaced();
    }
}

fn first_name_is_replaced() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            let first = bed.file("tree/a", b"data of three names");
            fs::hard_link(&first, bed.path("tree/b")).unwrap();
            fs::hard_link(&first, bed.path("tree/c")).unwrap();
        },
        |bed| {
            // The order in the directory varies.
            let first = fs::read_dir(bed.path("tree")).unwrap().next().unwrap().unwrap();
            fs::rename(bed.file("other", b"another"), first.path()).unwrap();
        },
    );
    let mut data: Vec<_> = ["/a", "/b", "/c"].map(|name| data_of(&outcome, name)).into();
    data.sort();
    assert_eq!(data, [&b"another"[..], b"data of three names", b"data of three names"]);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

/// A user holds a lease on a file and replaces the file by a fifo when it is opened.
#[test]
fn a_fifo_that_replaces_a_file_under_lease_does_not_block() {
    let bed = Bed::new("M");
    let path = bed.file("leased", &[1; 1000]);
    let holder = bed.path("holder");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lease.c");
    assert!(Command::new("cc").arg("-o").arg(&holder).arg(source).status().unwrap().success());
    let replacement = bed.path("replacement");
    support::fifo(&replacement);
    let mut child = Command::new(&holder).args([&path, &replacement]).stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    assert_eq!(&ready, b"ready\n");
    let outcome = bed.run();
    assert!(child.wait().unwrap().success());
    assert_eq!((attributes_of(&outcome, "/leased").0, streams_of(&outcome, "/leased")), (6, vec![1]));
}

#[test]
fn a_hard_link_with_a_vanished_first_name_has_its_data() {
    let outcome = change_during_backup(
        "M",
        |bed| {
            let first = bed.file("tree/a", b"data of three names");
            fs::hard_link(&first, bed.path("tree/b")).unwrap();
            fs::hard_link(&first, bed.path("tree/c")).unwrap();
        },
        |bed| {
            // The order in the directory varies.
            let first = fs::read_dir(bed.path("tree")).unwrap().next().unwrap().unwrap();
            fs::remove_file(first.path()).unwrap();
        },
    );
    let records = outcome.records();
    let data: Vec<_> = records.iter().filter(|record| record.stream == 2 && record.size > 0).collect();
    assert_eq!(data.len(), 2);
    assert!(data.iter().all(|record| record.data() == b"data of three names"));
    let attributes = |fi: i64| records.iter().find(|record| record.file_index == fi).unwrap().attributes();
    for record in data {
        assert_eq!(attributes(record.file_index).type_code, 3);
        assert_eq!((attributes(record.file_index).link, attributes(record.file_index).lstat.link_fi), (&b""[..], 0));
    }
    assert_eq!(outcome.progress.errors(), 1);
}
