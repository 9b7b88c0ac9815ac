//! What the operator reads, and in which order.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use fd_crypto::Digester;
use fd_messages::{CancelToken, MessageType, Progress};
use fd_records::{DigestKind, FileType, Replace, Stream};
use fd_restore::{End, LinkRule, RecordSource, RestoreState, SourceError};

use crate::volume::{Frame, Log, Place, Saved, Volume, is_root, job_below};

#[test]
fn every_restored_file_has_its_line() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    let mut job = place.job();
    job.restored_lines = true;
    let mut file = Saved::file("/f");
    (file.stat.uid, file.stat.gid, file.stat.mode, file.stat.size) = (61001, 61002, 0o104_755, 10);
    let mut volume = Volume::new();
    volume.directory("/d/").symlink("/l", "reg.txt").put(&file).put(&Saved::hard_link("/h", "/f"));
    volume.put(&Saved::new("/s", FileType::Special, 0o140_755));
    let finished = job.run(&volume);
    let lines: Vec<String> = finished
        .messages
        .iter()
        .filter(|(kind, _)| *kind == MessageType::Restored)
        // The time depends on the zone.
        .map(|(_, line)| format!("{}{}", line.get(..52).unwrap(), line.get(71..).unwrap()))
        .collect();
    assert_eq!(
        lines,
        [
            format!("drwxr-x---   1 root     root                      0   {}/\n", place.text("d")),
            format!("lrwxrwxrwx   1 root     root                      0   {} -> reg.txt\n", place.text("l")),
            format!("-rwsr-xr-x   1 61001    61002                    10   {}\n", place.text("f")),
            format!("-rw-r--r--   1 root     root                      0   {}\n", place.text("h")),
            format!("srwxr-xr-x   1 root     root                      0   {}\n", place.text("s")),
        ]
    );
}

#[test]
fn queued_messages_wait_for_the_next_direct_one() {
    let place = Place::new();
    fs::write(place.path("old"), b"").unwrap();
    let mut job = place.job_with(Replace::Never);
    job.restored_lines = true;
    let mut volume = Volume::new();
    volume.file("/old", b"x").file("/new", b"x").file("/old", b"y");
    let finished = job.run(&volume);
    let kinds: Vec<MessageType> = finished.messages.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [MessageType::Skipped, MessageType::Restored]);
    assert_eq!(finished.queued.len(), 1);
    assert_eq!(finished.queued[0].0, MessageType::Skipped);
}

/// The status of a job is settled before the last ones are delivered, so each round has to hand
/// them on.
#[test]
fn queued_messages_of_a_round_are_delivered_with_the_next() {
    let place = Place::new();
    let job = place.job();
    let mut state = RestoreState::new(&job.plan, LinkRule::from_now());
    let first = job.run_round(&mut state, Volume::new().put(&Saved::hard_link("/x", "/gone")));
    let [(MessageType::Error, text)] = first.queued.as_slice() else { panic!("{first:?}") };
    assert!(first.messages.is_empty());
    // This round has no messages.
    state.wait_with(vec![(MessageType::Error, text.clone().into_bytes())]);
    let second = job.run_round(&mut state, Volume::new().file("/f", b"x"));
    assert_eq!((second.messages, &second.queued), (Vec::new(), &first.queued));
    state.wait_with(vec![(MessageType::Error, text.clone().into_bytes())]);
    let third = job.run_round(&mut state, Volume::new().record(Stream::new(999), b"?"));
    let kinds: Vec<_> = third.messages.iter().map(|(kind, _)| *kind).collect();
    assert_eq!((kinds, third.queued), (vec![MessageType::Error, MessageType::Warning], Vec::new()));
}

#[test]
fn the_queue_is_bounded() {
    let place = Place::new();
    fs::write(place.path("old"), b"").unwrap();
    let mut volume = Volume::new();
    for _ in 0..2500 {
        volume.put(&Saved::file("/old"));
    }
    let finished = place.job_with(Replace::Never).run(&volume);
    assert_eq!((finished.messages.len(), finished.queued.len()), (2000, 500));
}

#[test]
fn unsupported_streams_are_reported_once_and_counted() {
    let place = Place::new();
    let mut volume = Volume::new();
    for name in ["/a", "/b"] {
        let mut saved = Saved::file(name);
        saved.data_stream = Stream::ENCRYPTED_MACOS_FORK_DATA;
        volume.put(&saved).record(Stream::FILE_DATA, b"x").record(Stream::MACOS_FORK_DATA, b"x");
    }
    volume.record(Stream::HFSPLUS_ATTRIBUTES, b"x");
    let finished = place.job().run(&volume);
    assert_eq!(
        finished.told(),
        [
            (MessageType::Warning, "Encrypted MacOS fork data stream not supported on this Client.\n"),
            (MessageType::Warning, "2 non-supported data streams and 0 non-supported attrib streams ignored.\n"),
            (MessageType::Info, "2 non-supported resource fork streams ignored.\n"),
            (MessageType::Info, "1 non-supported Finder Info streams ignored.\n"),
        ]
    );
    assert_eq!(finished.files, 0);
}

#[test]
fn records_behind_an_unsupported_file_do_not_hit_the_one_before() {
    let place = Place::new();
    let mut unsupported = Saved::file("/x");
    unsupported.data_stream = Stream::ENCRYPTED_MACOS_FORK_DATA;
    let mut volume = Volume::new();
    volume.directory("/d/").put(&unsupported);
    volume.record(Stream::LINUX_ACCESS_ACL, b"user::---\ngroup::---\nother::---\n\0");
    place.job().run(&volume);
    assert_eq!(place.mode("d"), 0o040_750);
}

#[test]
fn a_wrong_size_is_reported_and_the_attributes_are_set() {
    let place = Place::new();
    let mut saved = Saved::file("/f");
    saved.stat.size = 100;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::FILE_DATA, b"short");
    volume.put(&Saved { name: b"/g".to_vec(), ..saved }).file("/last", b"whole");
    let finished = place.job().run(&volume);
    let texts = [("f", 5), ("g", 0)].map(|(name, restored)| {
        let name = place.text(name);
        format!("attribs.c:603 File size of restored file {name} not correct. Original 100, restored {restored}.\n")
    });
    assert_eq!(finished.told(), texts.each_ref().map(|text| (MessageType::Error, text.as_str())));
    assert_eq!((place.mode("f"), place.mode("g")), (0o100_644, 0o100_644));
}

/// Returns the frames of a volume; one that is marked takes long, and the messages by then are
/// counted.
struct Slow<'a> {
    frames: std::slice::Iter<'a, Frame>,
    log: &'a Log,
    pause: usize,
    told: Option<usize>,
}

impl RecordSource for Slow<'_> {
    fn next_frame(&mut self) -> Result<Option<&[u8]>, SourceError> {
        if self.frames.len() == self.pause {
            self.told = Some(self.log.messages.lock().unwrap().len());
        }
        match self.frames.next() {
            Some(Frame::Data(data)) => Ok(Some(data)),
            _ => Ok(None),
        }
    }

    fn is_near(&mut self, _patience: Duration) -> bool {
        self.frames.len() != self.pause
    }
}

fn is_attributes(frame: &Frame) -> bool {
    matches!(frame, Frame::Data(header) if header.starts_with(b"rechdr ") && header.split(|byte| *byte == b' ').nth(4) == Some(b"1"))
}

fn md5(data: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(DigestKind::Md5).unwrap();
    digester.update(data);
    digester.finish().unwrap().as_bytes().to_vec()
}

#[test]
fn messages_keep_their_order_while_digests_are_made_together() {
    const FILES: usize = 700;
    let place = Place::new();
    fs::write(place.path("old"), b"").unwrap();
    let mut job = place.job_with(Replace::Never);
    job.restored_lines = true;
    let mut volume = Volume::new();
    let mut expected = Vec::new();
    for number in 0..FILES {
        let mut saved = Saved::file(&format!("/f{number}"));
        let data = vec![number.to_le_bytes()[0]; 100 + number];
        let mut digest = md5(&data);
        saved.stat.size = i64::try_from(data.len()).unwrap();
        let path = place.text(&format!("f{number}"));
        expected.push((MessageType::Restored, path.clone()));
        match number % 7 {
            1 => digest[0] ^= 1,
            2 => saved.stat.size += 1,
            _ => {}
        }
        volume.put(&saved).record(Stream::FILE_DATA, &data).record(Stream::MD5, &digest);
        match number % 7 {
            1 => expected.push((MessageType::Error, format!("MD5 digest of restored file {path} differs"))),
            2 => expected.push((MessageType::Error, format!("File size of restored file {path} not correct"))),
            // A queued one, which waits for the next.
            3 => {
                volume.file("/old", b"x");
                expected.push((MessageType::Skipped, place.text("old")));
            }
            4 => {
                volume.record(Stream::new(999), b"?");
                expected.push((MessageType::Warning, "999".to_owned()));
            }
            _ => {}
        }
    }
    let run = |pause| {
        let log = Log { messages: Mutex::default(), restored: true };
        let mut source = Slow { frames: volume.frames.iter(), log: &log, pause, told: None };
        let (progress, cancel) = (Progress::default(), CancelToken::new());
        let outcome = fd_restore::run(
            &job.plan,
            &mut RestoreState::new(&job.plan, LinkRule::from_now()),
            &progress,
            &log,
            &cancel,
            &mut source,
        );
        assert_eq!(outcome.unwrap().queued, []);
        let told = source.told;
        (log.messages.into_inner().unwrap(), told)
    };
    // While the job waits for a record, no message is held.
    for pause in [0, volume.frames.len() / 2 / 2 * 2] {
        let (messages, told) = run(pause);
        assert_eq!(messages.len(), expected.len());
        for ((kind, text), (wanted_kind, wanted)) in messages.iter().zip(&expected) {
            assert!(kind == wanted_kind && text.contains(wanted.as_str()), "{kind:?} {text}, expected {wanted}");
        }
        for number in 0..FILES {
            fs::remove_file(place.path(&format!("f{number}"))).unwrap();
        }
        let restored_before = messages.iter().take(told.unwrap()).filter(|(kind, _)| *kind == MessageType::Restored);
        let before = &volume.frames[..volume.frames.len() - pause];
        let attributes_before = before.iter().filter(|frame| is_attributes(frame)).count();
        let skipped_before = messages.iter().take(told.unwrap()).filter(|(kind, _)| *kind == MessageType::Skipped);
        assert!(attributes_before - restored_before.count() - skipped_before.count() <= 1);
    }
}

#[test]
fn a_full_disk_is_reported_with_file_and_reason_and_the_job_goes_on() {
    if !is_root() {
        return skip::test("needs root");
    }
    let place = Place::new();
    fs::create_dir(place.path("w")).unwrap();
    let target = place.path("w");
    let mounted =
        nix::mount::mount(Some("tmpfs"), &target, Some("tmpfs"), nix::mount::MsFlags::empty(), Some("size=65536"));
    if let Err(errno) = mounted {
        return skip::test(&format!("no tmpfs can be mounted: {errno}"));
    }
    let mut volume = Volume::new();
    volume.file("/big", &vec![1; 100_000]).file("/small", b"x");
    let finished = job_below(&place.text("w")).run(&volume);
    let small = fs::metadata(target.join("small"));
    nix::mount::umount(&target).unwrap();
    let told = finished.told();
    let expected = "write_len=100000 lerror=0 on ";
    assert!(told[0].1.starts_with("restore.c:1524 Write error at byte="), "{told:?}");
    assert!(told[0].1.contains(expected) && told[0].1.ends_with("/w/big: ERR=No space left on device\n"), "{told:?}");
    assert_eq!(finished.files, 2);
    assert!(small.is_ok());
    assert_eq!(finished.outcome, Ok(End::EndOfData));
}
