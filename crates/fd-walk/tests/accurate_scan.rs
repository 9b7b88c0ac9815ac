//! Walks of accurate jobs with an inode scan find what they find without one, and count the same
//! names as seen, whatever has changed.
//!
//! `SCAN_ROUNDS=500` does so many rounds of changes on each kind of file system.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that can't go on fails, like one that finds something wrong"
)]
#![expect(dead_code, reason = "not all that helps the other programs is needed here")]

#[path = "scan/lists.rs"]
mod lists;
#[path = "scan/mutation.rs"]
mod mutation;
#[path = "scan/volume.rs"]
mod volume;
#[path = "scan/walks.rs"]
mod walks;

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fd_walk::InodeScan;

use lists::{Accurate, LETTERS, List, full, without_scan};
use mutation::{ALL, Mapper, Mutator, PLAIN, Random, populate};
use volume::{KINDS, Kind, Volume};
use walks::{events, fileset, next_second, now, seconds, settings};

/// Makes the list wrong about a file.
type Change = fn(&mut fd_records::Stat);

/// The `FileSet`s that are walked.
const OPTIONS: [&[&str]; 3] = [&["I"], &["I", "O e", "W *5", "N", "O f", "N"], &["I", "O P1:", "N"]];

/// The first state of a tree, with owners and a size that an inode has in two parts.
fn populate_all(top: &Path) {
    populate(top);
    for number in 1..6 {
        chown(top.join(format!("d5/f{number}")), Some(3_000_000_000 + number), Some(70_000)).expect("a file");
    }
    fs::File::create(top.join("d4/large")).and_then(|file| file.set_len(5 << 30)).expect("a large file");
}

/// Files that are old, and not as the list has them; and names that it does not have.
fn falsify(list: &mut List, random: &mut Random) {
    for stat in list.values_mut() {
        match random.below(60) {
            0 => stat.size += 1,
            1 => stat.size -= 1,
            2 => stat.mode ^= 0o20,
            3 => stat.nlink += 1,
            4 => stat.uid += 1,
            5 => stat.gid += 1,
            6 => stat.ino += 1,
            7 => stat.mtime -= 1,
            8 => stat.ctime -= 1,
            _ => {}
        }
    }
    list.retain(|_, _| random.below(60) != 0);
}

/// The list as a `FileSet` that strips names has it, and as it is: other names may lead to both.
fn stripped_too(list: &List) -> List {
    let stripped = |name: &[u8]| fd_fileset::strip_path(name, 1);
    let more = list.iter().filter_map(|(name, stat)| Some((stripped(name)?, *stat)));
    more.chain(list.clone()).collect()
}

/// So many rounds of changes on one kind of file system, whose files are older than `since`.
fn rounds_on(kind: Kind, volume: &Volume, since: i64, rounds: usize, seed: u64) {
    let top = volume.top();
    let other = volume.beside().join("other");
    fs::write(&other, "on another file system").expect("a file");
    let mut mapper = Mapper::new();
    let mut mutator = Mutator { random: Random(seed), top: &top, other, mapper: &mut mapper, mounts: Vec::new() };
    let whole = full(&top);
    let mut not_looked_up = 0;
    for round in 0..rounds {
        let what = format!("{}, seed {seed}, round {round}", kind.name);
        let changes: Vec<String> = (0..=mutator.random.below(3)).map(|_| mutator.change(ALL)).collect();
        let fileset = fileset(OPTIONS[mutator.random.below(OPTIONS.len())], &[&top]);
        let mut list = stripped_too(&whole);
        if round % 2 == 1 {
            falsify(&mut list, &mut mutator.random);
        }
        let letters = LETTERS[mutator.random.below(LETTERS.len())];
        let settings = settings(since, InodeScan::Always, [1, 2, 8][mutator.random.below(3)]);
        // How many blocks a file has is settled then.
        rustix::fs::syncfs(fs::File::open(&top).expect("a directory")).expect("syncfs");
        let [without, with] = [without_scan(&settings), settings].map(|settings| {
            let host = Accurate::new(&list, letters);
            let (events, summary) = events(&fileset, &settings, &host);
            ((events, host.seen.into_inner()), host.scans.get(), summary.not_looked_up)
        });
        assert_eq!(with.1 > 0, volume.has_scan() && letters.1.is_some(), "{what}: {letters:?}");
        assert_eq!((without.1, without.2), (0, 0), "{what}");
        if without.0 != with.0 {
            let differ = without.0.0.iter().zip(&with.0.0).find(|(one, other)| one != other);
            let differ_in: Vec<_> = without.0.1.symmetric_difference(&with.0.1).collect();
            panic!("{what}: {letters:?} {differ:#?} {differ_in:?}\n{changes:#?}");
        }
        not_looked_up += with.2;
        mutator.unmount();
        if round % 4 == 3 {
            beside_changes(&mut mutator, &whole, since, &what);
        }
    }
    assert!(!volume.has_scan() || not_looked_up > 0 || rounds < 8, "{}: everything was looked up", kind.name);
    mutator.mapper.close();
}

/// A walk beside changes: what it leaves out is as the list has it, or is left for the next job,
/// be that accurate or not.
fn beside_changes(mutator: &mut Mutator<'_>, list: &List, since: i64, what: &str) {
    let fileset = fileset(OPTIONS[0], &[mutator.top]);
    // A file's time is that of the last tick.
    let begun = seconds(now().saturating_sub(Duration::from_millis(20)));
    let is_over = AtomicBool::new(false);
    let ready = std::sync::Barrier::new(2);
    let mut walked = Vec::new();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let host = Accurate::new(list, LETTERS[0]);
            ready.wait();
            walked = events(&fileset, &settings(since, InodeScan::Always, 2), &host).0;
            is_over.store(true, Ordering::Relaxed);
        });
        ready.wait();
        // More would leave little that is as the list has it.
        for _ in (0..12).take_while(|_| !is_over.load(Ordering::Relaxed)) {
            mutator.change(PLAIN);
        }
    });
    let saved: HashSet<&str> =
        walked.iter().filter_map(|event| event.split(' ').next().filter(|word| word.starts_with('/'))).collect();
    for directory in fs::read_dir(mutator.top).expect("a directory").flatten() {
        for entry in fs::read_dir(directory.path()).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            let path = entry.path();
            let name = path.to_str().expect("a plain name");
            let is_listed = list.get(name.as_bytes()).is_some_and(|known| {
                (known.mtime, known.ctime, known.size) == (found.mtime(), found.ctime(), found.size().cast_signed())
            });
            let is_socket = std::os::unix::fs::FileTypeExt::is_socket(&found.file_type());
            let is_fine = is_listed || found.ctime() >= begun || saved.contains(name);
            assert!(found.is_dir() || is_socket || is_fine, "{what}: {name} {found:?} is lost\n{walked:#?}");
        }
    }
}

#[test]
fn accurate_walks_with_a_scan_find_what_walks_without_one_find() {
    let rounds: usize = std::env::var("SCAN_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8);
    let first = std::env::var("SCAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    // Each image has so many rounds: then little is left that has not changed.
    let (parts, rounds) = (rounds.div_ceil(20), rounds.min(20));
    for part in (0..).take(parts) {
        let mut volumes = Vec::new();
        for (kind, seed) in KINDS.into_iter().zip(first..) {
            match Volume::make(kind) {
                Ok(volume) => {
                    populate_all(&volume.top());
                    volumes.push((kind, volume, seed * 1_000_033 + part * 7907));
                }
                Err("the file system can't be made" | "the file system can't be mounted") => {
                    skip::part(&format!("no {}", kind.name));
                }
                Err(why) => return skip::test(why),
            }
        }
        assert!(!volumes.is_empty(), "no kind of file system could be made");
        let since = next_second();
        for (kind, volume, seed) in volumes {
            rounds_on(kind, &volume, since, rounds, seed);
        }
    }
}

#[test]
fn an_old_file_that_is_not_as_the_list_has_it_is_saved() {
    let volume = match Volume::make(KINDS[0]) {
        Ok(volume) => volume,
        Err(why) => return skip::test(why),
    };
    populate_all(&volume.top());
    let (since, list) = (next_second(), full(&volume.top()));
    let name = volume.top().join("d1/f1").into_os_string().into_encoded_bytes();
    let fileset = fileset(OPTIONS[0], &[&volume.top()]);
    let saved = |list: &List, letters: usize| {
        let host = Accurate::new(list, LETTERS[letters]);
        let (events, summary) = events(&fileset, &settings(since, InodeScan::Always, 1), &host);
        assert!(host.scans.get() == 1 && summary.not_looked_up > 200, "{summary:?}");
        assert!(host.seen.borrow().len() >= host.list.len() - 1);
        (events.iter().filter(|event| event.starts_with('/')).count(), summary.entries)
    };
    assert_eq!(saved(&list, 2), (0, 0));
    let changes: [(Change, [usize; 2]); 7] = [
        (|stat| stat.size += 1, [1, 1]),
        (|stat| stat.mtime -= 1, [1, 1]),
        (|stat| stat.ctime -= 1, [1, 1]),
        (|stat| stat.uid += 1, [0, 1]),
        (|stat| stat.mode ^= 1, [0, 1]),
        (|stat| stat.nlink += 1, [0, 1]),
        (|stat| stat.ino += 1, [0, 1]),
    ];
    for (change, wanted) in changes {
        let mut list = list.clone();
        change(list.get_mut(&name).expect("its name"));
        assert_eq!([saved(&list, 0).0, saved(&list, 2).0], wanted);
    }
    let mut list = list;
    list.remove(&name);
    assert_eq!(saved(&list, 4).0, 1);
}

/// The owners that lookups tell are not those of the disk then.
#[test]
fn a_file_system_that_is_mounted_with_half_of_each_owner_has_no_scan() {
    for (mount, wanted) in [("nouid32", 0), ("", 1)] {
        let volume = match Volume::make(Kind { mount, ..KINDS[0] }) {
            Ok(volume) => volume,
            Err(why) => return skip::test(why),
        };
        populate_all(&volume.top());
        let host = Accurate::new(&full(&volume.top()), LETTERS[2]);
        let fileset = fileset(OPTIONS[0], &[&volume.top()]);
        let (_, summary) = events(&fileset, &settings(next_second(), InodeScan::Always, 1), &host);
        assert_eq!((host.scans.get(), summary.not_looked_up > 0), (wanted, wanted > 0), "{mount}");
    }
}
