//! Plugins that look at the data of a volume's files (reference 07 §9).

use fd_messages::MessageType;
use fd_plugins::{FileEvent, IoDone, Offers, Status};
use fd_records::Stream;
use fd_restore::verify::{Checks, VerifyError};

use crate::fake_plugin::{Answers, access};
use crate::plugin_volumes::COMMAND;
use crate::verify::{MD5, Verified, md5, verify_with_plugins};
use crate::volume::{Saved, Volume};

fn scanner() -> Answers {
    Answers { verifies: true, ..Answers::default() }
}

fn scan(answers: Answers, volume: &Volume, checks: Checks) -> (Verified, Vec<String>, Vec<u8>) {
    let (access, noted) = access(answers);
    let verified = verify_with_plugins(volume, checks, &access);
    let noted = std::mem::take(&mut *noted.lock().unwrap());
    (verified, noted.calls, noted.data)
}

fn told(verified: &Verified) -> Vec<&str> {
    let real = |(kind, _): &&(MessageType, String)| *kind != MessageType::Verified;
    verified.told.iter().filter(real).map(|(_, text)| text.as_str()).collect()
}

/// Two regular files and what plugins don't get: a directory, an empty file, a link.
fn volume() -> Volume {
    let mut volume = Volume::new();
    volume.directory("/d/").file("/a", b"hello").record(Stream::MD5, &md5(b"hello"));
    volume.start(COMMAND).file("/@tp/b", b"world").record(Stream::MD5, &md5(b"world")).stop();
    volume.symlink("/l", "a");
    volume
}

#[test]
fn a_scanner_gets_the_data_of_regular_files() {
    for checks in [MD5, Checks::default()] {
        let mut volume = volume();
        volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..Saved::file("/updated") });
        let (verified, calls, data) = scan(scanner(), &volume, checks);
        let file = |name: &str| {
            let open = format!("open {name} 0 1");
            ["start verify", &open, "write 5", "close", "end verify"].map(str::to_owned)
        };
        assert_eq!(calls, [file("/a"), file("/@tp/b")].concat());
        assert_eq!(data, b"helloworld");
        assert_eq!(told(&verified), [""; 0]);
        assert!(verified.outcome.is_ok() && verified.packets.is_empty());
    }
}

#[test]
fn objects_of_plugins_count_as_files() {
    let mut volume = volume();
    volume.record(Stream::RESTORE_OBJECT, b"1 27 0 1 1 0 tp\0name\0xx").record(Stream::PLUGIN_OBJECT, b"object");
    let (verified, calls, _data) = scan(scanner(), &volume, MD5);
    assert_eq!((verified.files, calls.len()), (6, 10));
}

/// `bpipe` doesn't know how long its data will be.
#[test]
fn a_plugin_s_file_without_a_length_is_compared_by_its_digest_only() {
    let file = |name: &str, size, data: &[u8]| {
        let mut saved = Saved::file(name);
        saved.stat.size = size;
        let mut volume = Volume::new();
        volume.start(COMMAND).put(&saved).record(Stream::FILE_DATA, data).record(Stream::MD5, &md5(b"dump")).stop();
        scan(Answers::default(), &volume, MD5).0
    };
    for size in [-1, 0] {
        let verified = file("/dump", size, b"dump");
        assert_eq!(told(&verified), [""; 0], "{size}");
        assert!(!verified.differs(), "{size}");
    }
    let verified = file("/dump", 5, b"dump");
    assert_eq!(told(&verified), ["   st_size  differs on \"/dump\". Vol: 4 File: 5\n"]);
    assert!(file("/dump", -1, b"other").differs());
}

#[test]
fn what_does_not_take_part_is_not_called() {
    let offers = scanner().offers;
    for answers in [
        Answers::default(),
        Answers { begin: Status::Error, ..scanner() },
        Answers { offers: Offers { start_verify: false, ..offers }, ..scanner() },
    ] {
        assert_eq!(scan(answers, &volume(), MD5).1, [""; 0]);
    }
    let refusing = scan(Answers { start_verify: Status::Skip, ..scanner() }, &volume(), MD5);
    assert_eq!(refusing.1, ["start verify"; 2]);
    let failing = scan(Answers { open: IoDone::error(13), ..scanner() }, &volume(), MD5);
    assert_eq!(failing.1.len(), 4);
    assert!(failing.0.outcome.is_ok());
}

#[test]
fn encrypted_data_is_not_handed_over() {
    let mut volume = Volume::new();
    volume.put(&Saved::file("/secret")).record(Stream::ENCRYPTED_FILE_DATA, b"xxxx");
    let (verified, calls, data) = scan(scanner(), &volume, MD5);
    assert_eq!(calls, ["start verify", "open /secret 0 1", "close", "end verify"]);
    assert_eq!(data, b"");
    assert_eq!(told(&verified), ["Verification of encrypted file data is not supported.\n"]);
}

#[test]
fn a_failing_status_ends_the_job() {
    let failed = |code: i32| format!("Plugin tp-fd.so has ended the Verify job at /a: status {code}\n");
    for (answers, code) in [
        (Answers { write: Some(IoDone::error(5)), ..scanner() }, -1),
        (Answers { close: IoDone::bytes(7), ..scanner() }, 7),
        (Answers { end_verify: Status::Error, ..scanner() }, 2),
    ] {
        let (verified, calls, _data) = scan(answers, &volume(), MD5);
        assert_eq!(verified.outcome.as_ref().unwrap_err(), &VerifyError::Plugin("/a".to_owned()));
        assert_eq!(told(&verified), [failed(code)]);
        assert_eq!(calls.iter().filter(|call| *call == "start verify").count(), 1);
    }
}

#[test]
fn findings_go_to_the_director_at_the_end() {
    let finds = FileEvent {
        file_index: 3,
        kind: b'a',
        severity: 100,
        source: b"Clam av".to_vec(),
        description: b"a virus".to_vec(),
    };
    let packet = b"CatReq JobId=9 FileEvent 3 0 0 a 100 Clam\x01av a\x01virus 0".to_vec();
    let (verified, ..) = scan(Answers { finds: Some(finds.clone()), ..scanner() }, &volume(), MD5);
    assert_eq!(verified.packets, [packet.clone(), packet.clone()]);
    // Also of a job that ends early.
    let answers = Answers { finds: Some(finds), end_verify: Status::Error, ..scanner() };
    assert_eq!(scan(answers, &volume(), MD5).0.packets, [packet]);
}

#[test]
fn findings_without_end_are_bounded() {
    let finds = FileEvent { file_index: 1, kind: b'a', severity: 1, source: b"s".to_vec(), description: b"d".to_vec() };
    let mut volume = Volume::new();
    for _ in 0..10_002 {
        volume.file("/a", b"");
    }
    let (verified, ..) = scan(Answers { finds: Some(finds), ..scanner() }, &volume, Checks::default());
    assert_eq!(verified.packets.len(), 10_000);
    let text = "Plugins have found more than 10000 things; the rest is not sent to the Director.\n";
    assert_eq!(told(&verified), [text]);
}

#[test]
fn a_scanner_that_dies_is_an_error_and_the_rest_is_verified() {
    for call in ["start verify", "open", "write", "close", "end verify"] {
        let (verified, ..) = scan(Answers { dies_in: Some(call), ..scanner() }, &volume(), MD5);
        assert_eq!(told(&verified), [format!("plugin tp died in {call}\n")]);
        assert!(verified.outcome.is_ok());
        assert_eq!(verified.files, 4);
    }
}
