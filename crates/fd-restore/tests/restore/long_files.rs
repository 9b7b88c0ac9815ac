//! Long files, whose digests are made together once they are restored.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Mutex;

use fd_crypto::Digester;
use fd_crypto::multi_buffer::SideBySide;
use fd_crypto::processor::Processor;
use fd_messages::{CancelToken, MessageType, Progress};
use fd_records::{DigestKind, Stream};
use fd_restore::{End, LinkRule, RecordSource, RestoreState, SequenceError, SourceError};

use crate::volume::{ATIME, Frame, Job, Log, MTIME, Place, Saved, Volume};

/// More than is kept in memory.
const LENGTH: usize = 600_000;

fn md5(data: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(DigestKind::Md5).unwrap();
    digester.update(data);
    digester.finish().unwrap().as_bytes().to_vec()
}

fn data(number: usize) -> Vec<u8> {
    (0..LENGTH + number * 1000).map(|at| (at / 11 + number).to_le_bytes()[0]).collect()
}

fn put_data(volume: &mut Volume, data: &[u8]) {
    for piece in data.chunks(65_536) {
        volume.record(Stream::FILE_DATA, piece);
    }
}

/// The job of a place, whose digests may use this.
fn job(place: &Place, processor: Processor) -> Job {
    let mut job = place.job();
    job.plan.processor = processor;
    job
}

/// Puts a file with its digest, which is wrong or not, onto the volume.
fn put(volume: &mut Volume, name: &str, data: &[u8], is_wrong: bool) {
    let mut saved = Saved::file(name);
    saved.stat.size = i64::try_from(data.len()).unwrap();
    volume.put(&saved);
    put_data(volume, data);
    let mut digest = md5(data);
    digest[5] ^= u8::from(is_wrong);
    volume.record(Stream::MD5, &digest);
}

/// Returns the frames of a volume, and does something before a certain one.
struct Meddler<'a> {
    frames: std::slice::Iter<'a, Frame>,
    /// How many frames are left then.
    before: usize,
    deed: &'a dyn Fn(),
}

impl RecordSource for Meddler<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        if self.frames.len() == self.before {
            (self.deed)();
        }
        match self.frames.next() {
            Some(Frame::Data(data)) => Ok(Some(data)),
            _ => Ok(None),
        }
    }
}

/// The messages of a job when something is done before the last file comes.
fn told_with(place: &Place, processor: Processor, volume: &mut Volume, deed: &dyn Fn()) -> Vec<(MessageType, String)> {
    let before = volume.frames.len();
    volume.file("/last", b"x");
    let log = Log { messages: Mutex::default(), restored: false };
    let mut source = Meddler { frames: volume.frames.iter(), before: volume.frames.len() - before - 2, deed };
    let plan = job(place, processor).plan;
    let (progress, cancel) = (Progress::default(), CancelToken::new());
    let outcome = fd_restore::run(
        &plan,
        &mut RestoreState::new(&plan, LinkRule::from_now()),
        &progress,
        &log,
        &cancel,
        &mut source,
    );
    assert_eq!(outcome.unwrap().queued, []);
    assert_eq!(place.read("last"), b"x");
    log.messages.into_inner().unwrap()
}

#[test]
fn a_wrong_digest_of_a_long_file_is_reported_in_order() {
    for processor in Processor::variants() {
        let place = Place::new();
        let mut job = job(&place, processor);
        job.restored_lines = true;
        let mut volume = Volume::new();
        let mut expected = Vec::new();
        for number in 0..40 {
            let name = format!("f{number}");
            let (path, data) = (place.text(&name), data(number));
            expected.push((MessageType::Restored, path.clone()));
            put(&mut volume, &format!("/{name}"), &data, number % 7 == 3);
            if number % 7 == 3 {
                expected
                    .push((MessageType::Error, format!("MD5 digest of restored file {path} differs from the backup.")));
            }
            match number % 7 {
                // A small one in between, whose digest waits too.
                2 | 4 => {
                    expected.push((MessageType::Restored, place.text(&format!("small{number}"))));
                    volume.file(&format!("/small{number}"), b"small").record(Stream::MD5, &md5(b"other"));
                    expected.push((MessageType::Error, format!("small{number} differs from the backup.")));
                }
                5 => {
                    volume.record(Stream::new(999), b"?");
                    expected.push((MessageType::Warning, "999".to_owned()));
                }
                _ => {}
            }
        }
        let finished = job.run(&volume);
        assert_eq!(finished.outcome, Ok(End::EndOfData));
        assert_eq!(finished.messages.len(), expected.len());
        for ((kind, text), (wanted_kind, wanted)) in finished.messages.iter().zip(&expected) {
            assert!(kind == wanted_kind && text.contains(wanted.as_str()), "{kind:?} {text}, expected {wanted}");
        }
        for number in 0..40 {
            let name = format!("f{number}");
            assert!(place.read(&name) == data(number));
            let stat = place.stat(&name);
            assert_eq!((stat.mtime(), stat.mode()), (MTIME, 0o100_644), "{name}");
        }
    }
}

#[test]
fn reading_a_long_file_back_keeps_its_times() {
    for processor in Processor::variants() {
        let place = Place::new();
        let mut volume = Volume::new();
        put(&mut volume, "/f", &data(0), false);
        job(&place, processor).run(&volume).assert_quiet();
        let stat = place.stat("f");
        assert_eq!((stat.atime(), stat.mtime()), (ATIME, MTIME));
    }
}

/// Changes a long file while the job runs: that causes a warning, and no error.
fn assert_change_causes_a_warning(change: fn(&Path)) {
    for processor in Processor::variants() {
        let has_kernels = SideBySide::suits(DigestKind::Md5, processor);
        let place = Place::new();
        let mut volume = Volume::new();
        put(&mut volume, "/mine", &data(1), false);
        put(&mut volume, "/theirs", &data(2), false);
        let told = told_with(&place, processor, &mut volume, &|| change(&place.path("theirs")));
        // Without the processor's kernels it was digested while it came.
        if told.is_empty() && !has_kernels {
            continue;
        }
        let text = format!("Restored file {} was changed before its digest", place.text("theirs"));
        assert!(told.len() == 1 && told[0].0 == MessageType::Warning && told[0].1.starts_with(&text), "{told:?}");
    }
}

#[test]
fn a_long_file_changed_meanwhile_causes_a_warning() {
    assert_change_causes_a_warning(|path| {
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all(b"changed").unwrap();
    });
}

/// The time of a file's last write can be set, which may hide a write, but for the change of its
/// status.
#[test]
fn a_long_file_changed_meanwhile_with_its_time_reset_causes_a_warning() {
    assert_change_causes_a_warning(|path| {
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        let was = file.metadata().unwrap().modified().unwrap();
        file.write_all(b"changed").unwrap();
        file.set_modified(was).unwrap();
    });
}

/// What the job itself does to a file once more is no change by another process.
#[test]
fn a_damaged_long_file_that_the_job_changes_again_is_reported() {
    for (processor, again) in Processor::variants().flat_map(|one| (0..4).map(move |again| (one, again))) {
        let place = Place::new();
        let mut volume = Volume::new();
        put(&mut volume, "/f", &data(again), true);
        let mut saved = Saved::file("/f");
        saved.stat.mode = 0o100_600;
        match again {
            0 => volume.put(&Saved::hard_link("/second", "/f")),
            1 => volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..saved }),
            2 => volume.patch(&saved).stop(),
            // Another file of this name: the damaged one is gone, and has been restored all the
            // same.
            _ => volume.put(&saved),
        };
        volume.file("/last", b"x");
        let finished = job(&place, processor).run(&volume);
        let (kind, text) = finished.told()[0];
        assert!(kind == MessageType::Error && text.contains("differs from the backup"), "{again}: {text}");
    }
}

#[test]
fn a_long_file_removed_or_linked_meanwhile_is_still_compared() {
    for processor in Processor::variants() {
        let place = Place::new();
        let mut volume = Volume::new();
        for name in ["right", "wrong", "linked"] {
            put(&mut volume, &format!("/{name}"), &data(name.len()), name != "right");
        }
        volume.put(&Saved::hard_link("/second", "/linked"));
        let remove = || ["right", "wrong"].iter().for_each(|name| fs::remove_file(place.path(name)).unwrap());
        let told = told_with(&place, processor, &mut volume, &remove);
        let about: Vec<_> = told.iter().map(|(kind, text)| (*kind, text.contains("differs from the backup"))).collect();
        assert_eq!(about, [(MessageType::Error, true); 2], "{told:?}");
        assert!(told[0].1.contains("/wrong ") && told[1].1.contains("/linked "), "{told:?}");
        assert_eq!(place.stat("second").nlink(), 2);
    }
}

#[test]
fn a_canceled_job_does_not_read_its_long_files_back() {
    for processor in Processor::variants() {
        let has_kernels = SideBySide::suits(DigestKind::Md5, processor);
        let place = Place::new();
        let mut volume = Volume::new();
        for number in 0..5 {
            put(&mut volume, &format!("/f{number}"), &data(number), true);
        }
        volume.directory("/d/");
        volume.frames.push(Frame::Cancel);
        let finished = job(&place, processor).run(&volume);
        assert_eq!(finished.outcome, Ok(End::Canceled));
        // Without kernels they were digested while they came.
        if has_kernels {
            assert_eq!(finished.told(), []);
        }
        assert!((0..5).all(|number| place.read(&format!("f{number}")) == data(number)));
    }
}

#[test]
fn findings_of_long_files_precede_a_sequence_error() {
    for processor in Processor::variants() {
        for incomplete in [false, true] {
            let place = Place::new();
            let mut volume = Volume::new();
            put(&mut volume, "/good", &data(0), false);
            put(&mut volume, "/wrong", &data(1), true);
            if !incomplete {
                volume.directory("/d/");
            }
            volume.frames.push(Frame::Data(b"no header".to_vec()));
            let finished = job(&place, processor).run(&volume);
            assert!(matches!(finished.outcome, Err(SequenceError::Header(_))));
            let told = finished.told();
            assert!(
                told[0].0 == MessageType::Error && told[0].1.contains("/wrong differs from the backup."),
                "{told:?}"
            );
            assert!(told[1].0 == MessageType::Fatal && told.len() == 2, "{told:?}");
        }
    }
}

/// Data with addresses follows data without. No backup is like that.
#[test]
fn a_long_file_whose_stream_changes_is_compared() {
    for processor in Processor::variants() {
        for is_wrong in [false, true] {
            let place = Place::new();
            let mut volume = Volume::new();
            let data = data(3);
            for (name, cut) in [("/plain", data.len()), ("/both", 400_000), ("/sparse", 0)] {
                let mut saved = Saved::file(name);
                saved.stat.size = i64::try_from(data.len()).unwrap();
                let (first, second) = data.split_at(cut);
                volume.put(&saved);
                put_data(&mut volume, first);
                if !second.is_empty() {
                    // What follows an ignored record is taken.
                    volume.record(Stream::new(35), b"");
                    let address = u64::try_from(cut).unwrap().to_be_bytes();
                    volume.record(Stream::SPARSE_DATA, &[&address[..], second].concat());
                }
                let mut digest = md5(&data);
                digest[0] ^= u8::from(is_wrong);
                volume.record(Stream::MD5, &digest);
            }
            let finished = job(&place, processor).run(&volume);
            let names: Vec<bool> =
                finished.told().iter().map(|(_, text)| text.contains("differs from the backup")).collect();
            assert_eq!(names, if is_wrong { vec![true; 3] } else { vec![] });
            assert!(["plain", "both", "sparse"].iter().all(|name| place.read(name) == data));
        }
    }
}
