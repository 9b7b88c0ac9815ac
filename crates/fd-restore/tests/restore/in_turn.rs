//! What depends on the moment when a record is restored: while the next one is awaited.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::sync::Mutex;

use fd_messages::{CancelToken, MessageType, Progress};
use fd_records::Stream;
use fd_restore::{End, LinkRule, RestoreState};

use crate::attacks::{scene, victim};
use crate::verify::md5;
use crate::volume::{Frame, Log, MTIME, Place, Saved, Volume, job_below};

#[test]
fn a_canceled_job_closes_its_file() {
    for between in [false, true] {
        let place = Place::new();
        let mut saved = Saved::file("/f");
        saved.stat.size = 100;
        let mut volume = Volume::new();
        volume.put(&saved).record(Stream::FILE_DATA, b"half");
        if between {
            volume.frames.push(Frame::Data(b"rechdr 1 1 1 2 4".to_vec()));
        }
        volume.frames.push(Frame::Cancel);
        let finished = place.job().run(&volume);
        assert_eq!(finished.outcome, Ok(End::Canceled));
        assert!(finished.only().1.starts_with("attribs.c:603 File size of restored file "));
        assert_eq!((place.read("f"), place.mode("f")), (b"half".to_vec(), 0o101_600));
    }
}

/// A source after whose frames the job is over, and its thread is left behind.
struct Abandoning<'a> {
    frames: std::slice::Iter<'a, Frame>,
    cancel: &'a CancelToken,
}

impl fd_restore::RecordSource for Abandoning<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, fd_restore::SourceError> {
        let Some(Frame::Data(data)) = self.frames.next() else {
            self.cancel.abandon();
            return Ok(None);
        };
        Ok(Some(data))
    }
}

#[test]
fn a_thread_that_was_left_behind_changes_and_says_nothing_more() {
    let place = Place::new();
    let mut saved = Saved::file("/d/f");
    saved.stat.size = 100;
    let mut volume = Volume::new();
    volume.directory("/d/").put(&saved).record(Stream::FILE_DATA, b"half");
    let log = Log { messages: Mutex::default(), restored: false };
    let (job, progress, cancel) = (place.job(), Progress::default(), CancelToken::new());
    let mut source = Abandoning { frames: volume.frames.iter(), cancel: &cancel };
    let outcome = fd_restore::run(
        &job.plan,
        &mut RestoreState::new(&job.plan, LinkRule::from_now()),
        &progress,
        &log,
        &cancel,
        &mut source,
    );
    assert_eq!(outcome.unwrap().end, End::Canceled);
    assert_eq!(log.messages.into_inner().unwrap(), []);
    assert_eq!((place.read("d/f"), place.mode("d/f") & 0o777), (b"half".to_vec(), 0o600));
    assert_ne!(place.stat("d").mtime(), MTIME);
}

/// A source that notes how much the log has when each frame is asked for.
struct Looking<'a> {
    frames: std::slice::Iter<'a, Frame>,
    log: &'a Log,
    told: Vec<usize>,
}

impl fd_restore::RecordSource for Looking<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, fd_restore::SourceError> {
        self.told.push(self.log.messages.lock().unwrap().len());
        let Some(Frame::Data(data)) = self.frames.next() else { return Ok(None) };
        Ok(Some(data))
    }
}

/// Until then the log waits for digests that are made together.
#[test]
fn the_log_has_what_is_restored_before_a_plugin_may_wait() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/f", b"x").record(Stream::MD5, &md5(b"x")).file("/g", b"y");
    let until = volume.frames.len();
    volume.start("bpipe:/h:cat:cat").file("/h", b"z");
    let log = Log { messages: Mutex::default(), restored: true };
    let (job, progress, cancel) = (place.job(), Progress::default(), CancelToken::new());
    let mut source = Looking { frames: volume.frames.iter(), log: &log, told: Vec::new() };
    fd_restore::run(
        &job.plan,
        &mut RestoreState::new(&job.plan, LinkRule::from_now()),
        &progress,
        &log,
        &cancel,
        &mut source,
    )
    .unwrap();
    let told = source.told;
    assert_eq!((told[until], told[until + 2]), (1, 2), "{told:?}");
}

/// A source that swaps the directory while the job is in it.
struct Swapping<'a> {
    place: &'a Place,
    frames: std::slice::Iter<'a, Frame>,
    calls: u32,
}
impl fd_restore::RecordSource for Swapping<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, fd_restore::SourceError> {
        self.calls += 1;
        if self.calls == 5 {
            fs::rename(self.place.path("w/d"), self.place.path("w/moved")).unwrap();
            symlink("../victim", self.place.path("w/d")).unwrap();
        }
        Ok(self.frames.next().map(|frame| match frame {
            Frame::Data(data) => data.as_slice(),
            _ => b"",
        }))
    }
}

/// Takes no messages.
struct Silent;
impl fd_messages::JobLog for Silent {
    fn message(&self, _kind: MessageType, _text: &[u8]) {}
    fn wants(&self, _kind: MessageType) -> bool {
        false
    }
}

#[test]
fn a_swapped_directory_does_not_redirect_a_held_one() {
    let place = scene();
    let before = victim(&place);
    let mut volume = Volume::new();
    volume.file("/d/one", b"1").file("/d/two", b"2").file("/other", b"3").file("/d/three", b"3").directory("/d/");
    let job = job_below(&place.text("w"));
    let mut state = RestoreState::new(&job.plan, LinkRule::from_now());
    let mut source = Swapping { place: &place, frames: volume.frames.iter(), calls: 0 };
    let (progress, cancel) = (fd_messages::Progress::default(), fd_messages::CancelToken::new());
    fd_restore::run(&job.plan, &mut state, &progress, &Silent, &cancel, &mut source).unwrap();
    assert_eq!(victim(&place), before);
    assert_eq!(place.read("w/moved/two"), b"2");
}
