//! Accurate jobs: what the list decides, and the records after the last file (reference 04 §13).

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_fileset::EffectiveOptions;
use fd_messages::{MessageType, Pressure};
use fd_records::{ContentCipher, DigestKind, FileType, LStat, Stat, Stream};
use fd_walk::{Candidate, Compared, Comparison, Flow, WalkEvent, WalkHost, WalkSettings};

use super::protect::protection;
use super::support::{self, Bed, Log, Outcome, fileset, hex};
use crate::exchange::idle;
use crate::file::prepare::Preparer;
use crate::file::save::Saver;
use crate::manners::budget::Manners;
use crate::manners::courtesy::Courtesy;
use crate::manners::governor::Decision;
use crate::shared::job::Job;
use crate::{AccurateLevel, AccurateList, BackupPlan, MemoryBudget};

pub(super) const CHANGES: AccurateLevel = AccurateLevel { full: false, rerun: false };
pub(super) const BASE: AccurateLevel = AccurateLevel { full: true, rerun: false };

pub(super) fn stat_of(path: &Path) -> Stat {
    let found = fs::symlink_metadata(path).unwrap();
    Stat {
        dev: found.dev(),
        ino: found.ino(),
        mode: found.mode(),
        nlink: found.nlink(),
        uid: found.uid(),
        gid: found.gid(),
        rdev: found.rdev(),
        size: i64::try_from(found.size()).unwrap(),
        blksize: i64::try_from(found.blksize()).unwrap(),
        blocks: i64::try_from(found.blocks()).unwrap(),
        atime: found.atime(),
        mtime: found.mtime(),
        ctime: found.ctime(),
    }
}

/// A message of the Director.
pub(super) fn listed(name: &str, stat: Stat, digest: &str, delta: u16) -> Vec<u8> {
    listed_link(name, stat, 0, digest, delta)
}

/// The same of a hard link to the file of a FileIndex; 0 is none.
fn listed_link(name: &str, stat: Stat, link_fi: i32, digest: &str, delta: u16) -> Vec<u8> {
    let mut message = name.as_bytes().to_vec();
    message.push(0);
    LStat { stat, link_fi, flags: 0, data_stream: Stream::FILE_DATA }.encode(&mut message);
    message.extend_from_slice(format!("\0{digest}\0{delta}").as_bytes());
    message
}

/// A bed whose FileSet has these option letters, and the list that goes with it.
pub(super) struct Accurate {
    pub(super) bed: Bed,
    pub(super) list: AccurateList,
}

impl Accurate {
    pub(super) fn new(letters: &str, level: AccurateLevel, announced: u64) -> Self {
        let mut bed = Bed::new(letters);
        bed.plan.walk.incremental = !level.full;
        // Times must not matter.
        bed.plan.walk.since = i64::MAX;
        fs::create_dir(bed.path("d")).unwrap();
        let fileset = fileset(bed.directory.path(), &["I", &format!("O {letters}"), "N", "F @", "N", "N"]);
        let list = AccurateList::new(level, announced, &fileset);
        Self { bed, list }
    }

    /// Adds the file on the disk to the list.
    pub(super) fn list(&mut self, name: &str, digest: &str) {
        let path = self.bed.path(name.trim_end_matches('/'));
        self.list_as(name, stat_of(&path), digest, 0);
    }

    fn list_as(&mut self, name: &str, stat: Stat, digest: &str, delta: u16) {
        let name = self.bed.name(name);
        self.list.add(&listed(&name, stat, digest, delta));
    }

    fn run(mut self) -> (Bed, Outcome) {
        self.list.complete();
        self.bed.plan.accurate = Some(Arc::new(self.list));
        let outcome = self.bed.run();
        (self.bed, outcome)
    }
}

pub(super) const HELLO: &[u8] = b"Hello, Bacula!\n";
/// Its MD5 in base 64.
pub(super) const HELLO_DIGEST: &str = "nWGq0wC1abvWwPrD+9ENdA";
const HELLO_HEX: &str = "9d61aad300b569bbd6c0fac3fbd10d74";

/// Names of the entries that have a record, without the directory of the bed, and their types.
fn saved(bed: &Bed, outcome: &Outcome) -> Vec<(String, u16)> {
    let root = format!("{}/", bed.directory.path().display());
    let records = outcome.records();
    let attributes = records.iter().filter(|record| [1, 37].contains(&record.stream));
    attributes.map(|record| (record.name().replacen(&root, "", 1), record.attributes().type_code)).collect()
}

#[test]
fn a_hard_link_whose_name_was_not_stripped_is_found() {
    let mut accurate = Accurate::new("MP1:", CHANGES, 4);
    accurate.bed.file("d/first", HELLO);
    fs::hard_link(accurate.bed.path("d/first"), accurate.bed.path("d/link")).unwrap();
    let (root, stat) = (accurate.bed.name(""), stat_of(&accurate.bed.path("d/link")));
    let top = format!("/{}", root.trim_start_matches('/').split('/').next().unwrap());
    for (name, stripped) in [("d/first", true), ("d/link", false)] {
        let name = accurate.bed.name(name);
        let name = if stripped { name.replacen(&top, "", 1) } else { name };
        accurate.list.add(&listed_link(&name, stat, i32::from(!stripped), "", 0));
    }
    let (_bed, outcome) = accurate.run();
    let records = outcome.records();
    let mut attributes = records.iter().filter(|record| record.stream == 1);
    assert!(attributes.all(|record| record.name().ends_with('/')), "only directories, which are not in the list");
}

/// The stock daemon takes the link's target for one more name of the entry behind it.
#[test]
fn what_is_stripped_behind_a_changed_link_is_not_recorded_as_deleted() {
    let mut accurate = Accurate::new("MP1:", CHANGES, 3);
    let bed = &accurate.bed;
    let stat = stat_of(&bed.path("d"));
    symlink("target", bed.path("d/a")).unwrap();
    fs::create_dir(bed.path("d/b")).unwrap();
    let root = bed.name("");
    let top = format!("/{}", root.trim_start_matches('/').split('/').next().unwrap());
    let stripped = |name: &str| bed.name(name).replacen(&top, "", 1);
    let (a, b) = (stripped("d/a/"), stripped("d/b/"));
    for name in [&a, &b, &stripped("d/")] {
        accurate.list.add(&listed(name, Stat { ctime: 1, ..stat }, "", 0));
    }
    let (_bed, outcome) = accurate.run();
    let records = outcome.records();
    let attributes: Vec<_> = records.iter().filter(|record| record.stream == 1).collect();
    let types_of = |name: &str| {
        let of_name = attributes.iter().filter(|record| record.name() == name);
        of_name.map(|record| record.attributes().type_code).collect::<Vec<_>>()
    };
    assert_eq!((types_of(a.trim_end_matches('/')), types_of(&b)), (vec![4], vec![5]));
    let deleted: Vec<_> = attributes.iter().filter(|record| record.attributes().type_code == 23).collect();
    assert!(deleted.len() == 1 && deleted[0].name() == a, "{deleted:?}");
}

#[test]
fn a_directory_where_a_file_was_not_stripped_leaves_that_deleted() {
    for link_fi in [0, 1] {
        let mut accurate = Accurate::new("MP1:", CHANGES, 4);
        fs::create_dir(accurate.bed.path("d/x")).unwrap();
        accurate.bed.file("d/x/f", HELLO);
        let stat = Stat { mode: Stat::MODE_REGULAR | 0o644, ..stat_of(&accurate.bed.path("d/x")) };
        accurate.list.add(&listed_link(&accurate.bed.name("d/x"), stat, link_fi, "", 0));
        let (bed, outcome) = accurate.run();
        let names = saved(&bed, &outcome);
        assert!(names.contains(&("d/x".to_owned(), FileType::Deleted.code())), "{names:?}");
    }
}

#[test]
fn what_could_not_be_examined_does_not_count_as_deleted() {
    for (stripped, hidden) in [("", "d/hidden"), ("", "d/hidden/"), ("P1:", "d/hidden")] {
        let mut accurate = Accurate::new(&format!("M{stripped}"), CHANGES, 4);
        accurate.bed.file("d/same", HELLO);
        let stat = stat_of(&accurate.bed.path("d/same"));
        let root = accurate.bed.name("");
        let top = root.trim_start_matches('/').split('/').next().unwrap().to_owned();
        for name in ["d/hidden/", "d/hidden/a", "d/hidden/b/c", "d/hidden.not", "d/gone"] {
            let name = accurate.bed.name(name);
            let name = if stripped.is_empty() { name } else { name.replacen(&format!("/{top}"), "", 1) };
            accurate.list.add(&listed(&name, stat, "", 0));
        }
        accurate.list.not_examined(accurate.bed.name(hidden).as_bytes(), u32::from(!stripped.is_empty()));
        accurate.list.complete();
        let gone = || {
            let mut gone = Vec::new();
            accurate.list.unseen(|name| gone.push(String::from_utf8(name.to_vec()).unwrap()));
            gone.sort();
            gone
        };
        let told = gone();
        assert!(told.len() == 2 && told[0].ends_with("d/gone") && told[1].ends_with("d/hidden.not"), "{told:?}");
        assert_eq!(accurate.list.unknown_directories(), None);
        for number in 0..2000 {
            accurate.list.not_examined(format!("/elsewhere/{number}").as_bytes(), 0);
        }
        assert_eq!(gone(), told, "what one directory is full of says nothing about others");
        assert_eq!(accurate.list.unknown_directories(), Some((b"/elsewhere/".to_vec(), 0)));
        for number in 0..2000 {
            accurate.list.not_examined(format!("/{number}").as_bytes(), 0);
        }
        assert_eq!(gone(), [""; 0]);
        assert_eq!(accurate.list.unknown_directories(), Some((b"/".to_vec(), 0)));
    }
}

/// Only its own Include strips a path.
#[test]
fn what_could_not_be_examined_is_not_stripped_as_another_include_does() {
    for (stripped, count) in [(0, 1), (2, 0)] {
        let include = ["I", "O P2:", "N", "F @", "N", "I", "F /home", "N", "N"];
        let fileset = fileset(Path::new("/srv/x"), &include);
        let mut list = AccurateList::new(CHANGES, 1, &fileset);
        list.add(&listed("/etc/x", Stat::default(), "", 0));
        list.not_examined(b"/home/m/etc", stripped);
        list.complete();
        let mut gone = 0;
        list.unseen(|_| gone += 1);
        assert_eq!(gone, count, "{stripped}");
    }
}

#[test]
fn an_accurate_job_sends_changes_and_names_deleted_files() {
    let mut accurate = Accurate::new("M", CHANGES, 4);
    for name in ["d/same", "d/grown", "d/new"] {
        accurate.bed.file(name, HELLO);
    }
    accurate.list("d/same", "");
    let grown = stat_of(&accurate.bed.path("d/grown"));
    accurate.list_as("d/grown", Stat { size: 3, ..grown }, "", 7);
    accurate.list_as("d/gone", Stat { mtime: 1_700_000_000, ctime: 1_795_226_234, size: 9, ino: 5, ..grown }, "", 0);
    accurate.list("d/", "");
    accurate.list("", "");
    let (bed, outcome) = accurate.run();
    let mut names = saved(&bed, &outcome);
    assert_eq!(names.pop(), Some(("d/gone".to_owned(), FileType::Deleted.code())));
    names.sort();
    assert_eq!(names, [("d/grown".to_owned(), 3), ("d/new".to_owned(), 3)]);

    let records = outcome.of(&bed.name("d/gone"));
    assert_eq!(records.len(), 1);
    let text = String::from_utf8(records[0].attributes().lstat_text.to_vec()).unwrap();
    assert_eq!(text, "A A A A A A A A A A A BlU/EA BrAPp6 A A C");
    for name in ["d/grown", "d/new"] {
        // A whole record: with a higher number, its data would be restored over the file of the job
        // before.
        assert_eq!(outcome.of(&bed.name(name))[0].attributes().delta_seq, 0);
    }
    assert_eq!(outcome.progress.files(), 3);
    let skipped = outcome.texts(MessageType::Skipped);
    assert!(skipped.contains(&format!("     Unchanged file skipped: {}\n", bed.name("d/same")).as_str()));
}

#[test]
fn with_an_empty_list_each_file_is_new() {
    let accurate = Accurate::new("M", CHANGES, 0);
    accurate.bed.file("d/f", HELLO);
    let (bed, outcome) = accurate.run();
    assert_eq!(saved(&bed, &outcome).len(), 3);
}

/// Thirty deletions, several of them in the same bucket of the stock daemon's table.
#[test]
fn deleted_files_come_in_the_order_of_the_stock_daemon_s_table() {
    let mut accurate = Accurate::new("M", CHANGES, 31);
    for n in 0..30 {
        accurate.list_as(&format!("d/gone{n}"), Stat::default(), "", 0);
    }
    let root = accurate.bed.directory.path().to_str().unwrap().to_owned();
    let (bed, outcome) = accurate.run();
    let names: Vec<String> =
        saved(&bed, &outcome).into_iter().filter(|(_, code)| *code == 23).map(|(name, _)| name).collect();
    // Eight buckets, the latest entry of each first.
    let bucket = |name: &str| {
        let hash = format!("{root}/{name}")
            .bytes()
            .fold(0_u64, |hash, byte| hash.wrapping_add(hash.rotate_left(5)).wrapping_add(u64::from(byte)));
        hash.wrapping_mul(1_103_515_249) >> 27 & 7
    };
    let mut expected: Vec<String> = (0..30).rev().map(|n| format!("d/gone{n}")).collect();
    expected.sort_by_key(|name| bucket(name));
    assert_eq!(names, expected);
}

/// Compares what is found with a list.
struct Listening<'l>(&'l AccurateList, &'l WalkSettings);

impl WalkHost for Listening<'_> {
    fn is_canceled(&self) -> bool {
        false
    }

    fn compare(&self, candidate: &Candidate<'_>) -> Comparison {
        self.0.compare(candidate, self.1)
    }
}

/// Such a job reads most: all data, each night.
#[test]
fn a_thread_gives_way_while_it_compares_the_data_of_a_file() {
    let bed = Bed::new("MCs5:");
    let path = bed.file("f", b"");
    // Its digest takes some 50 ms.
    fs::File::options().write(true).open(&path).unwrap().set_len(32 << 20).unwrap();
    let mut list = AccurateList::new(CHANGES, 1, &bed.plan.fileset);
    list.add(&listed(&bed.name("f"), stat_of(&path), HELLO_DIGEST, 0));
    list.complete();
    let mut found = None;
    fd_walk::walk(&bed.plan.fileset, &bed.plan.walk, &Listening(&list, &bed.plan.walk), &mut |event| {
        if let WalkEvent::Entry(entry) = event
            && entry.token.is_some()
        {
            found = Some(entry);
        }
        Flow::Continue
    });
    let mut entry = found.unwrap();
    let courtesy = Courtesy::new(Manners::Generous);
    let plan = BackupPlan { accurate: Some(Arc::new(list)), courtesy: Some(courtesy), ..bed.plan.clone() };
    let log = Log::new(Arc::default());
    let job = Job::new(plan, Arc::clone(&bed.progress), bed.cancel.clone(), &log).unwrap();
    let busy = Decision { rest: 500, reason: Some(Pressure::Io), cpu_is_wanted: false };
    job.courtesy.as_ref().unwrap().take(busy, Duration::ZERO, Instant::now());
    let mut saver = Saver::new(&job).unwrap();
    let before = idle::total().times;
    let mut preparer = Preparer {
        job: &job,
        digesters: &mut saver.digests.digesters,
        block: &mut saver.buffers.block,
        pace: &mut saver.pace,
        meter: &mut saver.meter,
    };
    let found = preparer.compare(&mut entry).unwrap();
    assert_eq!(found.read_bytes, 32 << 20, "{found:?}");
    assert!(idle::total().times > before, "it has rested");
}

#[test]
fn digests_find_changes_that_attributes_do_not_show() {
    let mut accurate = Accurate::new("MCmcs5:", CHANGES, 4);
    for name in ["d/same", "d/altered", "d/unknown", "d/empty"] {
        accurate.bed.file(name, if name == "d/empty" { b"" } else { HELLO });
    }
    accurate.list("d/same", HELLO_DIGEST);
    accurate.list("d/altered", "nWGq0wC1abvWwPrD+9ENdB");
    accurate.list("d/unknown", "");
    accurate.list("d/empty", "1B2M2Y8AsgTpgAmY7PhCfg");
    accurate.list("d/", "");
    accurate.list("", "");
    let (bed, outcome) = accurate.run();
    let mut names = saved(&bed, &outcome);
    names.sort();
    assert_eq!(names, [("d/altered".to_owned(), 3), ("d/unknown".to_owned(), 3)]);
    let warning = format!("Cannot verify checksum for {}\n", bed.name("d/unknown"));
    assert_eq!(outcome.texts(MessageType::Warning), [warning]);
    let skipped = outcome.texts(MessageType::Skipped);
    for name in ["d/same", "d/empty"] {
        assert!(skipped.contains(&format!("     Unchanged file skipped: {}\n", bed.name(name)).as_str()), "{name}");
    }
    // Two files are read for comparison, two to be saved.
    assert_eq!((outcome.progress.read_bytes(), outcome.progress.job_bytes()), (4 * 15, 2 * 15));
}

/// Of two files of one length that are `made`, the catalog knows one with older times: which of
/// them are sent, of all that have this type?
fn sent_of_two(letters: &str, level: AccurateLevel, made: impl Fn(&Bed, &str), code: u16) -> Vec<String> {
    let mut accurate = Accurate::new(letters, level, 4);
    for name in ["d/same", "d/altered"] {
        made(&accurate.bed, name);
    }
    accurate.list("d/same", "");
    let altered = stat_of(&accurate.bed.path("d/altered"));
    accurate.list_as("d/altered", Stat { ctime: altered.ctime - 9, mtime: altered.mtime - 9, ..altered }, "", 0);
    accurate.list("d/", "");
    accurate.list("", "");
    let (bed, outcome) = accurate.run();
    saved(&bed, &outcome).into_iter().filter(|(_, found)| *found == code).map(|(name, _)| name).collect()
}

/// The default letters of base jobs are `spug5`: without a signature nothing would tell new content
/// of the same length.
#[test]
fn where_no_digest_can_be_compared_the_change_time_decides() {
    let file = |bed: &Bed, name: &str| drop(bed.file(name, HELLO));
    for (letters, level) in [("Cspug5:", CHANGES), ("Jspug5:", BASE)] {
        assert_eq!(sent_of_two(letters, level, file, 3), ["d/altered"], "{letters}");
    }
}

/// A link has no digest, and its length may be as before.
#[test]
fn a_link_that_leads_elsewhere_is_sent_where_digests_are_compared() {
    let link = |bed: &Bed, name: &str| symlink("here", bed.path(name)).unwrap();
    for (letters, level) in [("MCspug5:", CHANGES), ("MJspug5:", BASE)] {
        assert_eq!(sent_of_two(letters, level, link, 4), ["d/altered"], "{letters}");
    }
}

/// With `o` the attributes decide whether data is compared, and none that a letter here names shows
/// that it is another.
#[test]
fn with_the_letter_o_data_is_compared_if_the_change_time_is_another() {
    for letters in ["MCso5:", "mMCso5:", "MCpugsmo5:"] {
        let mut accurate = Accurate::new(letters, CHANGES, 4);
        for name in ["d/same", "d/touched", "d/altered"] {
            accurate.bed.file(name, HELLO);
        }
        let stat = stat_of(&accurate.bed.path("d/altered"));
        let mtime = if letters.contains("mo5") { stat.mtime } else { stat.mtime - 9 };
        let earlier = Stat { ctime: stat.ctime - 9, mtime, ..stat };
        let other = "AAAAAAAAAAAAAAAAAAAAAA";
        accurate.list("d/same", other);
        accurate.list_as("d/touched", earlier, HELLO_DIGEST, 0);
        accurate.list_as("d/altered", earlier, other, 0);
        accurate.list("d/", "");
        accurate.list("", "");
        let (bed, outcome) = accurate.run();
        assert_eq!(saved(&bed, &outcome), [("d/altered".to_owned(), 3)], "{letters}");
        assert_eq!(outcome.streams(&bed.name("d/altered")), [1, 2, 3], "{letters}");
    }
}

/// Encrypted data has no addresses, so its digest is that of all of it.
#[test]
fn an_encrypted_file_of_zeros_is_compared_as_it_was_saved() {
    let mut accurate = Accurate::new("MsCs5:", CHANGES, 1);
    accurate.bed.file("d/zeros", &vec![0; 71_411]);
    accurate.list("d/zeros", "FTpJlRLWVLoJBQ00dwtsbA");
    accurate.list("d/", "");
    accurate.list("", "");
    accurate.bed.plan.protection = Some(protection(DigestKind::Md5, Some(ContentCipher::Aes128)));
    let (bed, outcome) = accurate.run();
    assert_eq!(saved(&bed, &outcome), []);
    assert_eq!(outcome.progress.read_bytes(), 71_411);
}

/// The first FileIndex of later batches depends on the results of comparisons.
#[test]
fn many_comparisons_give_the_same_stream_with_any_number_of_workers() {
    let mut expected: Option<Vec<u8>> = None;
    let mut accurate = Accurate::new("MKCmcs5:", CHANGES, 600);
    for n in 0..600 {
        accurate.bed.file(&format!("d/f{n}"), HELLO);
        let digest = if n % 3 == 0 { "other" } else { HELLO_DIGEST };
        if n % 5 != 0 {
            accurate.list(&format!("d/f{n}"), digest);
        }
    }
    accurate.list.complete();
    let mut bed = accurate.bed;
    bed.plan.accurate = Some(Arc::new(accurate.list));
    assert!(bed.run().result.is_ok());
    for (workers, memory_budget) in [(1, 1 << 24), (2, 1 << 24), (8, 1)] {
        bed.plan.workers = workers;
        bed.plan.memory_budget = memory_budget;
        let outcome = bed.again();
        assert_eq!(outcome.records().iter().filter(|record| record.stream == 2).count(), 280);
        assert!(expected.as_ref().is_none_or(|expected| *expected == outcome.sink.wire), "{workers}");
        expected = Some(outcome.sink.wire);
    }
}

/// Reference 04 §6.8 and §13.5. Such a file must not affect the next one (defect 18.1).
#[test]
fn equal_data_with_other_attributes_is_sent_as_an_update() {
    let mut accurate = Accurate::new("MCmcspo5:", CHANGES, 4);
    for name in ["d/a", "d/b", "d/c", "d/new"] {
        accurate.bed.file(name, HELLO);
    }
    let stat = stat_of(&accurate.bed.path("d/a"));
    accurate.list_as("d/a", Stat { mode: 0o100_600, ..stat }, HELLO_DIGEST, 0);
    accurate.list_as("d/b", Stat { mtime: 5, ..stat_of(&accurate.bed.path("d/b")) }, "AAAAAAAAAAAAAAAAAAAAAA", 0);
    accurate.list("d/c", HELLO_DIGEST);
    accurate.list("d/", "");
    accurate.list("", "");
    let (bed, outcome) = accurate.run();
    let update = outcome.of(&bed.name("d/a"));
    assert_eq!(update.iter().map(|record| record.stream).collect::<Vec<_>>(), [37, 3]);
    let attributes = update[0].attributes();
    assert_eq!((attributes.attr_ex, attributes.delta_seq, attributes.type_code), (&b"<NULL>"[..], 1, 3));
    assert_eq!(hex(&update[1].data()), HELLO_HEX);
    for name in ["d/b", "d/new"] {
        assert_eq!(outcome.streams(&bed.name(name)), [1, 2, 3], "{name}");
    }
    assert_eq!(saved(&bed, &outcome).len(), 3);
}

/// The MD5 of nothing in base 64.
const EMPTY_DIGEST: &str = "1B2M2Y8AsgTpgAmY7PhCfg";

/// An update adds to the record of an earlier job. If that has no data, a restore would make
/// nothing.
#[test]
fn entries_without_data_are_never_updates() {
    let mut accurate = Accurate::new("MCmcspo5:", CHANGES, 6);
    accurate.bed.file("d/private", b"");
    fs::set_permissions(accurate.bed.path("d/private"), fs::Permissions::from_mode(0o600)).unwrap();
    accurate.bed.file("d/readable", b"");
    accurate.bed.file("d/first", HELLO);
    fs::hard_link(accurate.bed.path("d/first"), accurate.bed.path("d/second")).unwrap();
    for (name, digest) in [("private", EMPTY_DIGEST), ("readable", EMPTY_DIGEST), ("first", HELLO_DIGEST)] {
        let name = format!("d/{name}");
        let stat = stat_of(&accurate.bed.path(&name));
        accurate.list_as(&name, Stat { mtime: 5, ..stat }, digest, 1);
    }
    let stat = stat_of(&accurate.bed.path("d/second"));
    accurate.list_as("d/second", Stat { mtime: 5, ..stat }, HELLO_DIGEST, 1);
    let (bed, outcome) = accurate.run();
    for name in ["d/private", "d/readable"] {
        let records = outcome.of(&bed.name(name));
        assert_eq!((records[0].stream, records[0].attributes().delta_seq), (1, 0), "{name}");
    }
    let mut names = ["d/first", "d/second"].map(|name| {
        let records = outcome.of(&bed.name(name));
        (records[0].stream, records[0].attributes().type_code, records[0].attributes().delta_seq)
    });
    names.sort_unstable();
    assert_eq!(names, [(1, FileType::HardLink.code(), 0), (37, FileType::Regular.code(), 1)]);
}

/// Where the Director expects whole files, no file of a base or of the job itself may be missing.
#[test]
fn a_full_job_on_a_base_makes_no_updates() {
    for level in [BASE, AccurateLevel { full: true, rerun: true }, AccurateLevel { full: false, rerun: true }] {
        let mut accurate = Accurate::new("MCmcspo5:Jmcspo5:", level, 1);
        accurate.bed.file("d/a", HELLO);
        let stat = stat_of(&accurate.bed.path("d/a"));
        accurate.list_as("d/a", Stat { mtime: 5, ..stat }, HELLO_DIGEST, 0);
        let (bed, outcome) = accurate.run();
        assert_eq!(outcome.streams(&bed.name("d/a")), [1, 2, 3], "{level:?}");
    }
}

#[test]
fn a_list_takes_no_more_than_the_memory_for_lists() {
    let budget = MemoryBudget::of(8 << 20);
    let list = || AccurateList::for_verify(0).within(budget.list());
    let fill = |list: &mut AccurateList| {
        (0..1_000_000).find(|number| !list.add(&listed(&format!("/d/{number:07}"), Stat::default(), "", 0))).unwrap()
    };
    let mut first = list();
    let held = fill(&mut first);
    assert!((100_000..400_000).contains(&held), "{held} files in 4 MiB");
    assert_eq!(fill(&mut list()), 0, "the first one has all of it");
    drop(first);
    assert_eq!(fill(&mut list()), held);
}

/// If the first name is gone or is another file now, the link is sent as a file. A new name of a
/// directory on the way to the first one doesn't show in the change time.
#[test]
fn a_hard_link_without_its_first_name_is_sent_whole() {
    for (stands, replaced, is_changed) in
        [(true, false, true), (false, false, true), (true, true, true), (true, false, false), (false, false, false)]
    {
        let mut accurate = Accurate::new("MCs5:", CHANGES, 3);
        accurate.bed.file("d/later", HELLO);
        let found = stat_of(&accurate.bed.path("d/later"));
        let stat = Stat { ctime: if is_changed { 5 } else { found.ctime }, nlink: 2, ..found };
        let name = accurate.bed.name("d/later");
        let mut message = name.into_bytes();
        message.push(0);
        LStat { stat, link_fi: 7, flags: 0, data_stream: Stream::FILE_DATA }.encode(&mut message);
        message.extend_from_slice(format!("\0{HELLO_DIGEST}\x000").as_bytes());
        accurate.list.add(&message);
        let first = if replaced { Stat { ino: stat.ino + 1, ..stat } } else { stat };
        accurate.list_as("d/first", first, HELLO_DIGEST, 0);
        accurate.list.complete();
        if stands {
            let path = accurate.bed.path("d/first");
            let options = EffectiveOptions { accurate: Arc::from(*b"Cs5"), ..EffectiveOptions::default() };
            let options = Arc::new(options);
            let found = if replaced { Stat { ino: stat.ino + 2, ..stat } } else { stat };
            let path = path.into_os_string().into_vec();
            let walk = WalkSettings { incremental: true, ..WalkSettings::default() };
            let candidate = Candidate { path: &path, stat: &found, options: &options, accepted: true };
            assert_eq!(accurate.list.compare(&candidate, &walk), Comparison::Unchanged);
        }
        let (bed, outcome) = accurate.run();
        let is_sent = saved(&bed, &outcome).contains(&("d/later".to_owned(), FileType::Regular.code()));
        assert_eq!(is_sent, !stands || replaced, "{stands} {replaced} {is_changed}");
    }
}

/// A record of a file that could not be opened has no change time (see `Worker::work_entry`). No
/// letter need compare that.
#[test]
fn a_file_without_a_change_time_in_the_list_is_sent() {
    for letters in ["MCms:", "MCs:", "m"] {
        let mut accurate = Accurate::new(letters, CHANGES, 4);
        for name in ["d/same", "d/not opened"] {
            accurate.bed.file(name, HELLO);
        }
        accurate.list("d/same", "");
        let found = stat_of(&accurate.bed.path("d/not opened"));
        accurate.list_as("d/not opened", Stat { ctime: 0, ..found }, "", 0);
        let (bed, outcome) = accurate.run();
        assert!(saved(&bed, &outcome).contains(&("d/not opened".to_owned(), 3)), "{letters}");
        assert!(!saved(&bed, &outcome).contains(&("d/same".to_owned(), 3)), "{letters}");
    }
}

/// A name in the list: with a device, an inode number, a change time, and the FileIndex of the name
/// that it links to.
type Listed<'n> = (&'n str, u64, u64, i64, i32);

/// Which of these names, in the order of list and walk, an accurate job sends again, though nothing
/// has changed.
fn links_sent_again(names: &[Listed<'_>]) -> Vec<String> {
    sent_again_of(names, names)
}

/// The same of a walk that finds these.
fn sent_again_of(names: &[Listed<'_>], found: &[Listed<'_>]) -> Vec<String> {
    let mut accurate = Accurate::new("MCmcs:", CHANGES, 4);
    let stat = |dev, ino, ctime| Stat { dev, ino, nlink: 3, mode: 0o100_644, ctime, ..Stat::default() };
    for &(name, dev, ino, ctime, link_fi) in names {
        assert!(accurate.list.add(&listed_link(name, stat(dev, ino, ctime), link_fi, "", 0)));
    }
    accurate.list.complete();
    let options = Arc::new(EffectiveOptions::default());
    let walk = WalkSettings { incremental: true, ..WalkSettings::default() };
    let is_sent = |&&(name, dev, ino, ctime, _): &&Listed<'_>| {
        let stat = stat(dev, ino, ctime);
        let candidate = Candidate { path: name.as_bytes(), stat: &stat, options: &options, accepted: true };
        accurate.list.compare(&candidate, &walk) != Comparison::Unchanged
    };
    found.iter().filter(is_sent).map(|(name, ..)| (*name).to_owned()).collect()
}

/// File systems count their inodes from the same number on, as subvolumes and datasets do.
#[test]
fn hard_links_of_two_file_systems_with_one_number_are_unchanged() {
    let links = [("/x", 1, 7, 9, 0), ("/s/w", 2, 7, 9, 0), ("/y", 1, 7, 9, 3), ("/s/v", 2, 7, 9, 5)];
    assert_eq!(links_sent_again(&links), [""; 0]);
}

/// A list is of several jobs. Between two of them a file system may get another device number, and
/// another one the number that it had: a snapshot of btrfs has a new one each time.
#[test]
fn hard_links_of_two_file_systems_that_had_one_device_number_in_two_jobs_are_unchanged() {
    let links = [("/home/a", 1, 7, 9, 0), ("/home/b", 1, 7, 9, 3), ("/srv/x", 1, 7, 5, 0), ("/srv/y", 1, 7, 5, 5)];
    assert_eq!(links_sent_again(&links), [""; 0]);
}

/// A name that was sent as a file later than the others is one more first name of the inode.
#[test]
fn hard_links_of_an_inode_with_several_first_names_are_unchanged() {
    let links = [("/x", 1, 7, 9, 0), ("/y", 1, 7, 9, 0), ("/z", 1, 7, 9, 3)];
    assert_eq!(links_sent_again(&links), [""; 0]);
    // The Director may name a file twice.
    let twice = [("/x", 1, 7, 9, 0), ("/x", 1, 7, 9, 0), ("/z", 1, 7, 9, 3)];
    assert_eq!(links_sent_again(&twice), [""; 0]);
}

/// The list of a job that was resumed among the names of an inode (reference 02 §9.6).
#[test]
fn a_hard_link_leads_to_a_first_name_before_it() {
    let [x, y, m, n] = [("/x", 1, 7, 9, 0), ("/y", 1, 7, 9, 2), ("/m", 1, 7, 9, 0), ("/n", 1, 7, 9, 5)];
    assert_eq!(links_sent_again(&[x, y, m, n]), [""; 0]);
    assert_eq!(sent_again_of(&[x, y, m, n], &[x, y, n]), ["/n"]);
    // Which of the two the last link leads to isn't known.
    assert_eq!(sent_again_of(&[x, y, m, n], &[y, m, n]), ["/y", "/n"]);
    // What the first link has shown of the names before it, holds for the next one.
    let other = ("/z", 1, 7, 9, 5);
    assert_eq!(sent_again_of(&[x, m, n, other], &[m, n, other]), ["/n", "/z"]);
    assert_eq!(sent_again_of(&[x, m, n, other], &[m, n, x, other]), ["/n"]);
    assert_eq!(links_sent_again(&[x, m, n, other]), [""; 0]);
    // The resumed job has saved the first name again: the list has both records, of which the first
    // one counts.
    assert_eq!(sent_again_of(&[x, y, x, n], &[x, y, n]), [""; 0]);
    assert_eq!(sent_again_of(&[x, y, x, n], &[y, n]), ["/y", "/n"]);
    let (old_x, old_y) = (("/x", 1, 7, 8, 0), ("/y", 1, 7, 8, 2));
    assert_eq!(sent_again_of(&[old_x, old_y, x, n], &[x, y, n]), ["/x", "/y", "/n"]);
}

/// As with `HardLinks = no` in the Options of some names.
#[test]
fn a_name_that_was_saved_as_a_file_need_not_be_the_one_that_a_link_leads_to() {
    let [a, b, c] = [("/a", 1, 7, 9, 0), ("/b.iso", 1, 7, 9, 0), ("/c", 1, 7, 9, 1)];
    assert_eq!(links_sent_again(&[a, b, c]), [""; 0]);
    assert_eq!(sent_again_of(&[a, b, c], &[b, c]), ["/c"]);
    assert_eq!(sent_again_of(&[b, a, c], &[b, c]), ["/c"]);
    // Behind the link, it is none that counts.
    assert_eq!(sent_again_of(&[a, c, b], &[a, c]), [""; 0]);
}

/// A later job has saved the first name again.
#[test]
fn a_hard_link_without_a_first_name_before_it_leads_to_one_behind_it() {
    let [x, y, m, n] = [("/x", 1, 7, 9, 0), ("/y", 1, 7, 9, 1), ("/m", 1, 7, 9, 0), ("/n", 1, 7, 9, 5)];
    assert_eq!(sent_again_of(&[y, n, x], &[x, y, n]), [""; 0]);
    assert_eq!(sent_again_of(&[y, n, x], &[y, n]), ["/y", "/n"]);
    // All of them have to stand.
    assert_eq!(sent_again_of(&[y, n, x, m], &[x, m, y, n]), [""; 0]);
    assert_eq!(sent_again_of(&[y, n, x, m], &[x, y, n]), ["/y", "/n"]);
    assert_eq!(sent_again_of(&[y, n, x, m], &[m, y, n]), ["/y", "/n"]);
}

/// The Director takes the later record of a name from a job that has two only if that is no link
/// (reference 02 §9.6). What the list has, this job or an earlier one has sent.
#[test]
fn a_resumed_job_sends_what_it_may_have_sent_before_as_files() {
    let names = ["d/1", "d/2", "d/3", "d/4"];
    // How many records it has sent, the names of the list, and how many of them are no links.
    for (files, listed, as_files) in [(0, 4, 0), (1, 4, 4), (20, 4, 4), (20, 2, 2), (20, 0, 0)] {
        let mut accurate = Accurate::new("MCmcs:", AccurateLevel { full: true, rerun: true }, 4);
        accurate.bed.file(names[0], HELLO);
        for name in &names[1..] {
            fs::hard_link(accurate.bed.path(names[0]), accurate.bed.path(name)).unwrap();
        }
        for name in &names[..listed] {
            let stat = stat_of(&accurate.bed.path(name));
            accurate.list_as(name, Stat { ctime: 5, ..stat }, "", 0);
        }
        accurate.bed.plan.files_before = files;
        let (bed, outcome) = accurate.run();
        let mut sent = saved(&bed, &outcome).into_iter().filter(|(_, code)| *code != FileType::Directory.code());
        assert_eq!(sent.next().map(|(_, code)| code), Some(FileType::Regular.code()));
        for (name, code) in sent {
            let is_file = names[..as_files].contains(&&*name);
            let wanted = if is_file { FileType::Regular } else { FileType::HardLink };
            assert_eq!(code, wanted.code(), "{files} {listed} {name}");
            assert_eq!(outcome.streams(&bed.name(&name)).contains(&2), is_file, "{files} {listed} {name}");
        }
    }
}

/// A Base job gets no list of what it has sent before it was resumed.
#[test]
fn a_resumed_job_without_a_list_sends_no_hard_links() {
    for (files, second) in [(0, FileType::HardLink), (2, FileType::Regular)] {
        let mut bed = Bed::new("M");
        bed.file("1", HELLO);
        fs::hard_link(bed.path("1"), bed.path("2")).unwrap();
        bed.plan.files_before = files;
        let outcome = bed.run();
        let codes: Vec<u16> = saved(&bed, &outcome).into_iter().map(|(_, code)| code).collect();
        assert_eq!(codes[..2], [FileType::Regular.code(), second.code()], "{files}");
    }
}

/// A file of another file system that has the number of its inode is no first name.
#[test]
fn a_hard_link_does_not_lead_to_another_file_system() {
    assert_eq!(links_sent_again(&[("/s/w", 2, 7, 9, 0), ("/y", 1, 7, 9, 3)]), ["/y"]);
}

/// What a walk does that has an inode scan: it finds what the list has, and compares that.
#[test]
fn an_entry_with_the_listed_attributes_of_a_scan_is_unchanged() {
    type Change = fn(&mut Stat);
    let stat = Stat {
        ino: 7,
        nlink: 2,
        mode: 0o100_644,
        uid: 5,
        gid: 6,
        size: 100,
        mtime: 600,
        ctime: 700,
        ..Stat::default()
    };
    let changes: [Change; 10] = [
        |_| {},
        |stat| stat.ino += 1,
        |stat| stat.nlink += 1,
        |stat| stat.mode ^= 1,
        |stat| stat.uid += 1,
        |stat| stat.gid += 1,
        |stat| stat.size -= 1,
        |stat| stat.mtime += 1,
        |stat| stat.ctime += 1,
        |stat| stat.ctime = 0,
    ];
    let walk = WalkSettings { incremental: true, since: 10_000, ..WalkSettings::default() };
    let (mut equal, mut in_all) = (0, 0);
    for letters in ["", "MCs:", "Cpnug:", "MCipnugsmcd:", "MCd:P1:", "MCmcso:P1:", "m"] {
        let lines = ["I", &format!("O {letters}"), "N", "F @", "N", "N"];
        let fileset = fileset(Path::new("/srv"), &lines);
        for (change, stands) in changes.into_iter().flat_map(|change| [(change, false), (change, true)]) {
            let mut known = stat;
            change(&mut known);
            let mut list = AccurateList::new(CHANGES, 3, &fileset);
            assert_eq!(list.compared(&fileset), None, "it is empty");
            for (name, link_fi) in [("/srv/first", 0), ("/srv/link", 3), ("/first", 0), ("/whole", 3)] {
                list.add(&listed_link(name, known, link_fi, "", 0));
            }
            list.complete();
            let compared = list.compared(&fileset).unwrap();
            let options = fileset.includes()[0].top_level();
            let compare =
                |path: &[u8], stat: &Stat| list.compare(&Candidate { path, stat, options, accepted: false }, &walk);
            if stands {
                let _compared = compare(b"/srv/first", &known);
            }
            for path in [&b"/srv/first"[..], b"/srv/link", b"/x/whole", b"/srv/gone"] {
                in_all += 1;
                let own = Stat { ino: stat.ino, ..Stat::default() };
                let Some(listed) = list.listed(&Candidate { path, stat: &own, options, accepted: false }) else {
                    continue;
                };
                let class = |stat: &Stat| compared.class.then_some((stat.mode, stat.nlink, stat.uid, stat.gid));
                let is_equal = (listed.mtime, listed.ctime) == (stat.mtime, stat.ctime)
                    && (!compared.size || listed.size == stat.size)
                    && (!compared.inode || listed.ino == stat.ino)
                    && class(&listed) == class(&stat);
                if is_equal {
                    equal += 1;
                    // Both what the walk passes, and what a lookup would have found.
                    for stat in [Stat { ino: stat.ino, ..listed }, stat] {
                        assert_eq!(compare(path, &stat), Comparison::Unchanged, "{letters} {known:?} {path:?}");
                        let names = [0, 2, 4].map(|from| path.get(from..).unwrap_or_default());
                        assert!(names.iter().any(|name| list.attributes(name).is_some_and(|known| known.seen)));
                    }
                }
            }
        }
    }
    assert!(equal > 50 && equal < in_all / 2, "{equal} of {in_all}");
}

#[test]
fn a_job_whose_letters_ask_for_more_than_attributes_has_no_inode_scan() {
    let stat = Stat { ctime: 700, ..Stat::default() };
    let with = |level, letters: &[&str]| {
        let includes = letters.iter().flat_map(|letters| {
            let lines = ["I".to_owned(), format!("O {letters}"), "N".to_owned(), "F @".to_owned()];
            lines.into_iter().chain(["N".to_owned(), "N".to_owned()])
        });
        let lines: Vec<String> = includes.collect();
        let fileset = fileset(Path::new("/srv"), &lines.iter().map(String::as_str).collect::<Vec<_>>());
        let mut list = AccurateList::new(level, 1, &fileset);
        list.add(&listed("/srv/a", stat, "", 0));
        list.complete();
        list.compared(&fileset)
    };
    let compared = |inode, size, class| Some(Compared { inode, size, class });
    for (letters, wanted) in [
        (&["M"][..], compared(false, true, false)),
        (&["MCpins:"], compared(true, true, true)),
        (&["MCs:", "MCi:"], compared(true, true, false)),
        (&["MCs:", "MCu:"], compared(false, true, true)),
        (&["MCmc:"], compared(false, false, false)),
        (&["MCmcs5:"], None),
        (&["MCpins1:"], None),
        (&["MCmcso5:"], None),
        (&["M", "MCmcs5:"], None),
        (&["MCmcsa:"], None),
        (&["MCA:"], None),
        (&["MCM:"], None),
    ] {
        assert_eq!(with(CHANGES, letters), wanted, "{letters:?}");
        assert_eq!(with(BASE, letters), None, "{letters:?}");
    }
}

#[test]
fn files_of_a_base_job_have_a_base_record() {
    let mut accurate = Accurate::new("MJpug5s:", BASE, 4);
    let path = accurate.bed.file("d/base", HELLO);
    fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    accurate.bed.file("d/changed", HELLO);
    symlink("target", accurate.bed.path("d/link")).unwrap();
    accurate.list("d/base", HELLO_DIGEST);
    accurate.list("d/changed", "other");
    accurate.list("d/link", "");
    accurate.list_as("d/not in this job", Stat::default(), "", 0);
    let stats = (stat_of(&accurate.bed.path("d/base")), stat_of(&accurate.bed.path("d/link")));
    let (bed, outcome) = accurate.run();
    let base = outcome.of(&bed.name("d/base"));
    assert_eq!(base.len(), 1);
    assert_eq!(base[0].attributes().type_code, 24);
    assert_eq!(
        base[0].attributes().lstat,
        LStat { stat: stats.0, link_fi: 0, flags: 0, data_stream: Stream::FILE_DATA }
    );
    let link = outcome.of(&bed.name("d/link"));
    assert_eq!((link[0].attributes().type_code, link[0].attributes().link), (24, &b""[..]));
    assert_eq!(link[0].attributes().lstat.stat, stats.1);
    assert_eq!(outcome.streams(&bed.name("d/changed")), [1, 2, 3]);
    assert_eq!(saved(&bed, &outcome).len(), 5);
    assert_eq!(outcome.texts(MessageType::Info), ["Space saved with Base jobs: 0 MB\n"]);
}

/// A restore would bring what the job was told to leave out. In an Incremental it is not gone.
#[test]
fn what_the_options_leave_out_has_no_base_record() {
    for (level, tail) in [(BASE, vec![("d/base", 24), ("d/out/", 24)]), (CHANGES, vec![("d/gone", 23)])] {
        let mut accurate = Accurate::new("MJpug5s:", level, 5);
        let walk = accurate.bed.plan.walk.clone();
        let lines = ["I", "O e", "WF *.iso", "O e", "WD */left", "O MJpug5s:Cs:", "N", "F @", "N", "N"];
        accurate.bed = Bed::with_lines(&lines);
        accurate.bed.plan.walk = walk;
        for directory in ["d", "d/out", "d/left"] {
            fs::create_dir(accurate.bed.path(directory)).unwrap();
        }
        for name in ["d/base", "d/left.iso"] {
            accurate.bed.file(name, HELLO);
            accurate.list(name, HELLO_DIGEST);
        }
        for directory in ["d/out/", "d/left/"] {
            accurate.list(directory, "");
        }
        // A link to what was left out has its data: else there would be one more in `tail`.
        accurate.bed.file("d/first.iso", HELLO);
        fs::hard_link(accurate.bed.path("d/first.iso"), accurate.bed.path("d/link")).unwrap();
        let stat = stat_of(&accurate.bed.path("d/link"));
        for (name, link_fi) in [("d/first.iso", 0), ("d/link", 4)] {
            let name = accurate.bed.name(name);
            accurate.list.add(&listed_link(&name, stat, link_fi, HELLO_DIGEST, 0));
        }
        if level == CHANGES {
            accurate.list_as("d/gone", Stat::default(), "", 0);
        }
        let (bed, outcome) = accurate.run();
        let mut told: Vec<_> = saved(&bed, &outcome).into_iter().filter(|(_, code)| [23, 24].contains(code)).collect();
        told.sort();
        let wanted: Vec<_> = tail.into_iter().map(|(name, code)| (name.to_owned(), code)).collect();
        assert_eq!(told, wanted, "{level:?}");
    }
}

#[test]
fn a_hard_link_to_a_record_without_data_is_sent_again() {
    // Whichever the walk finds first.
    for [first, later] in [["d/a", "d/b"], ["d/b", "d/a"]] {
        let mut accurate = Accurate::new("M", CHANGES, 2);
        let path = accurate.bed.file(first, HELLO);
        fs::hard_link(path, accurate.bed.path(later)).unwrap();
        let stat = stat_of(&accurate.bed.path(first));
        for (name, ctime, link_fi) in [(first, 0, 0), (later, stat.ctime, 1)] {
            let name = accurate.bed.name(name);
            accurate.list.add(&listed_link(&name, Stat { ctime, ..stat }, link_fi, "", 0));
        }
        let (bed, outcome) = accurate.run();
        let mut names: Vec<_> = saved(&bed, &outcome).into_iter().map(|(name, _)| name).collect();
        names.retain(|name| [first, later].contains(&&**name));
        assert_eq!(names.len(), 2, "{first}: {names:?}");
    }
}

/// What the list has need not be read, so that is no job without data.
#[test]
fn an_accurate_job_in_which_all_that_is_new_fails_to_be_read_ends_with_its_tail() {
    const UNREADABLE: &str = "F /sys/devices/virtual/net/lo/speed";
    for (level, file, listed_too, kind) in [
        (BASE, UNREADABLE, "d/same", FileType::Base),
        (CHANGES, UNREADABLE, "d/gone", FileType::Deleted),
        (CHANGES, "F @/fifo", "d/gone", FileType::Deleted),
    ] {
        let mut accurate = Accurate::new("rMJs:", level, 2);
        let incremental = accurate.bed.plan.walk.clone();
        accurate.bed = Bed::with_lines(&["I", "O rMJs:", "N", "F @/d", file, "N", "N"]);
        accurate.bed.plan.walk = incremental;
        accurate.bed.plan.fifo_timeout = std::time::Duration::ZERO;
        support::fifo(&accurate.bed.path("fifo"));
        fs::create_dir(accurate.bed.path("d")).unwrap();
        accurate.bed.file("d/same", HELLO);
        accurate.list("d/same", "");
        accurate.list_as("d/gone", Stat::default(), "", 0);
        let (bed, outcome) = accurate.run();
        assert!(outcome.result.is_ok(), "{level:?} {file}: {:?}", outcome.result);
        let tail = saved(&bed, &outcome).pop();
        assert_eq!(tail, Some((listed_too.to_owned(), kind.code())), "{level:?} {file}");
        // The next accurate job tries it again.
        let records = outcome.records();
        let mut unread = records.iter().filter(|record| record.stream == 1 && record.name().ends_with("/speed"));
        assert!(unread.all(|record| record.attributes().lstat.stat.ctime == 0), "{level:?} {file}");
        assert!(outcome.progress.errors() > 0, "{level:?} {file}");
    }
}

#[test]
fn a_canceled_job_names_no_deleted_files() {
    let mut accurate = Accurate::new("M", CHANGES, 1);
    accurate.list_as("d/gone", Stat::default(), "", 0);
    accurate.bed.cancel.cancel();
    let (_, outcome) = accurate.run();
    assert!(outcome.result.is_err());
    assert!(outcome.sink.wire.is_empty());
}
