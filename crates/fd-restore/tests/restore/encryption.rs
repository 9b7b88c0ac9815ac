//! Encrypted and signed files: damage loses one file and is reported in one message, and leaves the
//! next file alone.

use std::fs;
use std::sync::Arc;

use fd_crypto::Digester;
use fd_crypto::pki::{Certificate, Encryptor, KeyPair, KeyRing, PrivateKey, Session, Signer};
use fd_messages::MessageType;
use fd_records::{ContentCipher, DigestKind, DigestValue, Stream};

use crate::fake_plugin::{Answers, access};
use crate::metadata::metadata;
use crate::mixed::put_of;
use crate::volume::{Finished, Job, Place, Saved, Volume, let_it_be_old};

pub(crate) const OWN: &[u8] = include_bytes!("../../../fd-crypto/testdata/own.pem");
const OTHER: &[u8] = include_bytes!("../../../fd-crypto/testdata/other.pem");
const DATA: &[u8] = b"what stands in the file";

pub(crate) fn keys(pem: &[u8]) -> KeyRing {
    let own = KeyPair { certificate: Certificate::from_pem(pem).unwrap(), private: PrivateKey::from_pem(pem).unwrap() };
    KeyRing { own, signers: Vec::new(), masters: Vec::new() }
}

fn digest(kind: DigestKind) -> DigestValue {
    digest_of(kind, DATA)
}

fn digest_of(kind: DigestKind, data: &[u8]) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap()
}

/// The records of a file with [`DATA`].
#[derive(Clone)]
pub(crate) struct Sealed {
    session: Vec<u8>,
    data: Vec<Vec<u8>>,
    signature: Vec<u8>,
}

impl Sealed {
    pub(crate) fn new(keys: &KeyRing) -> Self {
        Self::of(keys, &[DATA])
    }

    /// Those of a file with these blocks, whose signature is over [`DATA`].
    fn of(keys: &KeyRing, blocks: &[&[u8]]) -> Self {
        let session = Session::new(ContentCipher::Aes256, keys.recipients()).unwrap();
        let iv = session.new_iv().unwrap();
        let mut record = Vec::new();
        session.record(&iv, &mut record);
        let mut encryptor = Encryptor::new().unwrap();
        encryptor.begin(&session.file_key(&iv)).unwrap();
        let mut data: Vec<_> = blocks.iter().map(|block| encryptor.block(block).unwrap().to_vec()).collect();
        data.push(encryptor.finish().unwrap().to_vec());
        // Nothing is sent for a block that is shorter than the cipher's.
        data.retain(|record| !record.is_empty());
        let mut signature = Vec::new();
        Signer::new(&keys.own, DigestKind::Sha256)
            .unwrap()
            .record(&digest(DigestKind::Sha256), &mut signature)
            .unwrap();
        Self { session: record, data, signature }
    }

    pub(crate) fn put(&self, volume: &mut Volume, name: &str) {
        put_attributes(volume, name);
        volume.record(Stream::ENCRYPTED_SESSION_DATA, &self.session);
        self.put_data(volume);
        volume.record(Stream::SIGNED_DIGEST, &self.signature);
        volume.record(Stream::MD5, digest(DigestKind::Md5).as_bytes());
    }

    fn put_data(&self, volume: &mut Volume) {
        for record in &self.data {
            volume.record(Stream::ENCRYPTED_FILE_DATA, record);
        }
    }
}

fn put_attributes(volume: &mut Volume, name: &str) {
    let mut saved = Saved { data_stream: Stream::ENCRYPTED_FILE_DATA, ..Saved::file(name) };
    saved.stat.size = i64::try_from(DATA.len()).unwrap();
    volume.put(&saved);
}

fn job(place: &Place, keys: KeyRing) -> Job {
    let mut job = place.job();
    job.plan.keys = Some(Arc::new(keys));
    job
}

fn texts(finished: &Finished) -> Vec<String> {
    let lines = finished.told().into_iter().filter(|(_, text)| !text.starts_with("openssl.c:108 "));
    lines.map(|(_, text)| text.trim_end().to_owned()).collect()
}

/// One file as `change` makes it, between two good ones; the messages about it, and whether its
/// data is there.
fn damaged(change: impl FnOnce(&mut Volume, &Sealed)) -> (Vec<String>, bool) {
    let place = Place::new();
    let keys = keys(OWN);
    let sealed = Sealed::new(&keys);
    let mut volume = Volume::new();
    sealed.put(&mut volume, "/before");
    change(&mut volume, &sealed);
    sealed.put(&mut volume, "/after");
    let finished = job(&place, keys).run(&volume);
    for good in ["before", "after"] {
        assert_eq!(place.read(good), DATA, "{good}: {:?}", finished.told());
    }
    let below = format!("{}/", place.root().display());
    let said = texts(&finished).into_iter().map(|text| text.replace(&below, ""));
    assert!(!finished.told().iter().any(|(kind, _)| *kind == MessageType::Fatal));
    (said.collect(), place.exists("file") && place.read("file") == DATA)
}

#[test]
fn a_good_file_is_restored_without_a_message() {
    assert_eq!(damaged(|volume, sealed| sealed.put(volume, "/file")), (Vec::new(), true));
}

/// Reference 05 §11.1: after each of these the stock daemon refuses every encrypted file that
/// follows.
#[test]
fn a_damaged_session_record_loses_one_file_only() {
    let with_session = |records: &[&[u8]]| {
        damaged(|volume, sealed| {
            put_attributes(volume, "/file");
            for record in records {
                volume.record(Stream::ENCRYPTED_SESSION_DATA, record);
            }
            sealed.put_data(volume);
            volume.record(Stream::SIGNED_DIGEST, &sealed.signature);
        })
    };
    let good = Sealed::new(&keys(OWN)).session;
    let (said, whole) = with_session(&[&good, &good]);
    assert_eq!((said, whole), (vec!["restore.c:656 Unexpected cryptographic session data stream.".to_owned()], false));
    let (said, whole) = with_session(&[b"no session"]);
    let text = "restore.c:705 An error=7 occurred while decoding encrypted session data stream: ERR=Internal error";
    assert_eq!((said, whole), (vec![text.to_owned()], false));
    let (said, whole) = with_session(&[&Sealed::new(&keys(OTHER)).session]);
    let text = "Missing private key required to decrypt encrypted backup data.";
    assert_eq!((said, whole), (vec![text.to_owned()], false));
    let (said, whole) = with_session(&[]);
    assert_eq!(
        (said, whole),
        (vec!["restore.c:785 Missing encryption session data stream for file".to_owned()], false)
    );
    // The session of another file opens, but its data makes no sense with it.
    let (said, whole) = with_session(&[&good]);
    assert!(!whole && !said.is_empty(), "{said:?}");
}

/// The stock daemon makes an empty file in its place.
#[test]
fn a_file_with_another_key_replaces_none() {
    let place = Place::new();
    for name in ["file", "next"] {
        fs::write(place.path(name), b"old").unwrap();
    }
    let mut volume = Volume::new();
    Sealed::new(&keys(OTHER)).put(&mut volume, "/file");
    Sealed::new(&keys(OWN)).put(&mut volume, "/next");
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    let kept = format!("File {} is kept as it is. There is no data to replace it with.", place.text("file"));
    assert_eq!(said, ["Missing private key required to decrypt encrypted backup data.", kept.as_str()]);
    assert_eq!((place.read("file"), place.read("next")), (b"old".to_vec(), DATA.to_vec()));
}

/// There is a key, but it is not that of this data: it has another length, or what comes out makes
/// no sense.
#[test]
fn a_file_whose_key_does_not_open_its_data_replaces_none() {
    type Change = fn(&mut [u8]);
    // The name of the cipher in the record, and the initialization vector behind it.
    let aes = [0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1];
    let changes: [(&str, Change); 2] = [
        ("restore.c:793 Failed to initialize decryption context for ", |behind| behind[0] = 2),
        ("Decryption error on file ", |behind| behind[3] ^= 0x80),
    ];
    for (why, change) in changes {
        let place = Place::new();
        for name in ["file", "next"] {
            fs::write(place.path(name), b"old").unwrap();
        }
        let mut sealed = Sealed::new(&keys(OWN));
        let at = sealed.session.windows(aes.len()).position(|bytes| bytes == aes).unwrap();
        change(&mut sealed.session[at + aes.len()..]);
        // Of a record's last block the next one decides.
        sealed.data = vec![sealed.data.concat()];
        let mut volume = Volume::new();
        sealed.put(&mut volume, "/file");
        Sealed::new(&keys(OWN)).put(&mut volume, "/next");
        let said = texts(&job(&place, keys(OWN)).run(&volume));
        assert!(said.len() == 2 && said[0].starts_with(why), "{said:?}");
        assert!(said[1].ends_with("/file is kept as it is. There is no data to replace it with."), "{said:?}");
        assert_eq!((place.read("file"), place.read("next")), (b"old".to_vec(), DATA.to_vec()), "{why}");
    }
}

/// A file that is emptied while it is saved has the cipher's last block and no data.
#[test]
fn an_encrypted_file_of_which_no_data_was_saved_replaces_none() {
    let place = Place::new();
    fs::write(place.path("file"), b"old").unwrap();
    let mut volume = Volume::new();
    let sealed = Sealed::of(&keys(OWN), &[]);
    assert_eq!(sealed.data.len(), 1);
    sealed.put(&mut volume, "/file");
    Sealed::new(&keys(OWN)).put(&mut volume, "/next");
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    let kept = format!("File {} is kept as it is. There is no data to replace it with.", place.text("file"));
    assert_eq!(said, [kept]);
    assert_eq!((place.read("file"), place.read("next")), (b"old".to_vec(), DATA.to_vec()));
}

/// All of its data may be in that block, so whether it is right is known only at its end.
#[test]
fn an_encrypted_file_of_one_short_record_replaces_one_if_that_is_whole() {
    let put = |change: fn(&mut Vec<u8>), records: &[Stream]| {
        let place = Place::new();
        fs::write(place.path("file"), b"old").unwrap();
        let mut sealed = Sealed::of(&keys(OWN), &[b"short"]);
        assert_eq!(sealed.data.len(), 1);
        change(&mut sealed.data[0]);
        let mut saved = Saved { data_stream: Stream::ENCRYPTED_FILE_DATA, ..Saved::file("/file") };
        saved.stat.size = 5;
        let mut volume = Volume::new();
        volume.put(&saved).record(Stream::ENCRYPTED_SESSION_DATA, &sealed.session);
        sealed.put_data(&mut volume);
        let mut signature = Vec::new();
        let kind = DigestKind::Sha256;
        let signed = digest_of(kind, b"short");
        Signer::new(&keys(OWN).own, kind).unwrap().record(&signed, &mut signature).unwrap();
        for stream in records {
            match *stream {
                Stream::SIGNED_DIGEST => volume.record(Stream::SIGNED_DIGEST, &signature),
                other => volume.record(other, digest_of(DigestKind::Md5, b"short").as_bytes()),
            };
        }
        let finished = job(&place, keys(OWN)).run(&volume);
        (texts(&finished), place.read("file"), finished.read_bytes)
    };
    for records in
        [&[Stream::SIGNED_DIGEST, Stream::MD5][..], &[Stream::MD5, Stream::SIGNED_DIGEST], &[Stream::SIGNED_DIGEST]]
    {
        assert_eq!(put(|_| {}, records), (Vec::new(), b"short".to_vec(), 16), "{records:?}");
        let (said, content, _) = put(|record| record[15] ^= 1, records);
        assert!(said.len() == 2 && said[1].ends_with("There is no data to replace it with."), "{said:?}");
        assert_eq!(content, b"old");
    }
}

/// Its attributes come before it is known whether it is made.
#[test]
fn a_directory_in_place_of_an_encrypted_file_gets_none_of_its_attributes() {
    let place = Place::new();
    fs::create_dir(place.path("file")).unwrap();
    let mut attributes = Vec::new();
    fd_records::xattr::push(&mut attributes, b"user.of", b"file");
    let sealed = Sealed::new(&keys(OWN));
    let mut volume = Volume::new();
    put_attributes(&mut volume, "/file");
    volume.record(Stream::ENCRYPTED_SESSION_DATA, &sealed.session);
    sealed.put_data(&mut volume);
    volume.record(Stream::LINUX_XATTR, &attributes).record(Stream::SIGNED_DIGEST, &sealed.signature);
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    assert!(said.len() == 1 && said[0].contains("ERR=Is a directory"), "{said:?}");
    assert!(metadata(&place, "file").xattrs.is_empty());
}

#[test]
fn an_encrypted_file_of_which_records_are_missing_replaces_none() {
    let place = Place::new();
    fs::write(place.path("file"), b"old").unwrap();
    let sealed = Sealed::of(&keys(OWN), &[b"short"]);
    let mut volume = Volume::new();
    put_attributes(&mut volume, "/file");
    volume.record(Stream::ENCRYPTED_SESSION_DATA, &sealed.session);
    sealed.put_data(&mut volume);
    put_of(&mut volume, "2 1795226230 2", Stream::MD5, b"0123456789abcdef");
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    assert!(said[0].ends_with("There is no data to replace it with."), "{said:?}");
    assert_eq!(place.read("file"), b"old");
}

/// The Storage Daemon goes on behind a block that it can't read.
#[test]
fn a_file_without_its_session_data_replaces_none() {
    let place = Place::new();
    fs::write(place.path("file"), b"old").unwrap();
    let mut volume = Volume::new();
    put_attributes(&mut volume, "/file");
    let sealed = Sealed::new(&keys(OWN));
    sealed.put_data(&mut volume);
    sealed.put(&mut volume, "/next");
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    let missing = format!("restore.c:785 Missing encryption session data stream for {}", place.text("file"));
    let kept = format!("File {} is kept as it is. There is no data to replace it with.", place.text("file"));
    assert_eq!(said, [missing, kept]);
    assert_eq!((place.read("file"), place.read("next")), (b"old".to_vec(), DATA.to_vec()));
}

/// The cipher keeps the last block until it is known that no more comes. A record of a digest says
/// so, which is not there without `Signature`.
#[test]
fn the_last_file_of_the_records_is_whole_without_a_digest() {
    let place = Place::new();
    let mut sealed = Sealed::new(&keys(OWN));
    let mut volume = Volume::new();
    put_attributes(&mut volume, "/file");
    volume.record(Stream::ENCRYPTED_SESSION_DATA, &sealed.session);
    sealed.put_data(&mut volume);
    volume.record(Stream::SIGNED_DIGEST, &sealed.signature);
    job(&place, keys(OWN)).run(&volume).assert_quiet();
    assert_eq!(place.read("file"), DATA);
    // What is not there is missed all the same.
    sealed.data.pop();
    let mut volume = Volume::new();
    put_attributes(&mut volume, "/torn");
    volume.record(Stream::ENCRYPTED_SESSION_DATA, &sealed.session);
    sealed.put_data(&mut volume);
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    assert!(said.len() == 1 && said[0].starts_with("restore.c:1733 Decryption error. buf_len="), "{said:?}");
    assert_eq!(place.mode("torn"), 0o101_600);
}

/// Its session record has been taken by then.
#[test]
fn a_file_that_cannot_be_replaced_leaves_the_next_one_its_session() {
    let place = Place::new();
    fs::create_dir(place.path("file")).unwrap();
    fs::write(place.path("next"), b"old").unwrap();
    let mut volume = Volume::new();
    let sealed = Sealed::new(&keys(OWN));
    for name in ["/file", "/next"] {
        sealed.put(&mut volume, name);
    }
    let said = texts(&job(&place, keys(OWN)).run(&volume));
    assert!(said.len() == 1 && said[0].contains("already exists and could not be replaced"), "{said:?}");
    assert_eq!(place.read("next"), DATA);
}

/// It has been decrypted by then. The next files may be made at the same time.
#[test]
fn a_file_that_cannot_be_replaced_leaves_none_of_its_data_to_the_next_one() {
    for is_there in [false, true] {
        let place = Place::new();
        fs::create_dir(place.path("file")).unwrap();
        if is_there {
            fs::write(place.path("next"), b"old").unwrap();
        }
        let mut volume = Volume::new();
        Sealed::new(&keys(OWN)).put(&mut volume, "/file");
        volume.file("/next", b"plain").record(Stream::MD5, digest_of(DigestKind::Md5, b"plain").as_bytes());
        volume.file("/last", b"plain");
        let finished = job(&place, keys(OWN)).run(&volume);
        let said = texts(&finished);
        assert!(said.len() == 3 && said[0].contains("already exists and could not be replaced"), "{said:?}");
        assert!(said[1..].iter().all(|text| text.contains("Missing cryptographic signature")), "{said:?}");
        assert_eq!((place.read("next"), finished.job_bytes), (b"plain".to_vec(), 10));
    }
}

/// What the last block shows comes when the data has been written: the file is not whole then.
#[test]
fn encrypted_data_without_its_end_leaves_the_file_private() {
    let cuts: [fn(&mut Sealed); 4] = [
        |sealed| drop(sealed.data.pop()),
        |sealed| sealed.data[1].truncate(15),
        |sealed| sealed.data[1].clear(),
        |sealed| *sealed.data[1].last_mut().unwrap() ^= 0x40,
    ];
    for (number, cut) in cuts.into_iter().enumerate() {
        let place = Place::new();
        let keys = keys(OWN);
        let mut sealed = Sealed::new(&keys);
        cut(&mut sealed);
        let mut volume = Volume::new();
        sealed.put(&mut volume, "/file");
        let finished = job(&place, keys).run(&volume);
        assert!(!texts(&finished).is_empty(), "{number}");
        assert_eq!(place.mode("file"), 0o101_600, "{number}: {:?}", finished.told());
    }
}

/// Reference 05 §11.2: damage in the last block ends the stock daemon.
#[test]
fn damaged_data_loses_one_file_and_is_reported() {
    let lengths: Vec<usize> = Sealed::new(&keys(OWN)).data.iter().map(Vec::len).collect();
    for (record, length) in lengths.iter().enumerate() {
        for place in 0..*length {
            let (said, whole) = damaged(|volume, sealed| {
                let mut sealed = sealed.clone();
                sealed.data[record][place] ^= 0x40;
                sealed.put(volume, "/file");
            });
            assert!(!whole && !said.is_empty(), "record {record} byte {place}: {said:?}");
        }
    }
    let (said, whole) = damaged(|volume, sealed| {
        let mut sealed = sealed.clone();
        sealed.data.pop();
        sealed.put(volume, "/file");
    });
    assert!(!whole && said[0].starts_with("restore.c:1733 Decryption error. buf_len="), "{said:?}");
}

/// Reference 05 §11.3.
#[test]
fn bad_signatures_are_reported_and_the_file_stays() {
    let with_signatures = |records: &[&[u8]]| {
        damaged(|volume, sealed| {
            put_attributes(volume, "/file");
            volume.record(Stream::ENCRYPTED_SESSION_DATA, &sealed.session);
            sealed.put_data(volume);
            for record in records {
                volume.record(Stream::SIGNED_DIGEST, record);
            }
        })
    };
    let good = Sealed::new(&keys(OWN)).signature;
    assert_eq!(with_signatures(&[&good]), (Vec::new(), true));
    let missing = "restore.c:1858 Missing cryptographic signature for file".to_owned();
    assert_eq!(with_signatures(&[]), (vec![missing.clone()], true));
    let second = "restore.c:1025 Unexpected cryptographic signature data stream.".to_owned();
    assert_eq!(with_signatures(&[&good, &good]), (vec![second, missing.clone()], true));
    let unreadable = "restore.c:1031 Failed to decode message signature for file".to_owned();
    assert_eq!(with_signatures(&[b"none"]), (vec![unreadable, missing], true));
    let mut wrong = good.clone();
    *wrong.last_mut().unwrap() ^= 1;
    let invalid = "restore.c:1888 Signature validation failed for file file: ERR=Signature is invalid".to_owned();
    assert_eq!(with_signatures(&[&wrong]), (vec![invalid], true));
}

/// Long files are digested together once they are restored, for their signatures, too. What has one
/// that is checked needs no digest record.
#[test]
fn signatures_are_checked_after_any_file_and_reported_in_order() {
    // One that is digested while it comes, and one that is not.
    for length in [100_000, 600_000] {
        told_of_signatures(length);
    }
}

fn told_of_signatures(length: usize) {
    let place = Place::new();
    let (own, other) = (keys(OWN), keys(OTHER));
    let mut volume = Volume::new();
    let mut put = |name: &str, signer: Option<(&KeyRing, DigestKind)>, signs: usize, records: usize| {
        let data = vec![7; length];
        let mut saved = Saved::file(&format!("/{name}"));
        saved.stat.size = i64::try_from(length).unwrap();
        volume.put(&saved);
        data.chunks(65_536).for_each(|piece| {
            volume.record(Stream::FILE_DATA, piece);
        });
        if let Some((keys, kind)) = signer {
            let mut record = Vec::new();
            Signer::new(&keys.own, kind).unwrap().record(&digest_of(kind, &data[..signs]), &mut record).unwrap();
            volume.record(Stream::SIGNED_DIGEST, &record);
        }
        volume.record(Stream::MD5, digest_of(DigestKind::Md5, &data[..records]).as_bytes());
    };
    let (all, less) = (length, length - 1);
    let mut expected = Vec::new();
    for (number, kind) in [DigestKind::Sha256, DigestKind::Md5, DigestKind::Sha1].into_iter().enumerate() {
        put(&format!("good-{number}"), Some((&own, kind)), all, all);
        put(&format!("bad-{number}"), Some((&own, kind)), less, all);
        expected.push(format!("Signature validation failed for file bad-{number}: ERR=Signature is invalid"));
        put(&format!("spared-{number}"), Some((&own, kind)), all, less);
        // Also after one without a signature that counts.
        put(&format!("unsigned-{number}"), None, 0, less);
        expected.push(format!("digest of restored file unsigned-{number} differs"));
        expected.push(format!("Missing cryptographic signature for unsigned-{number}"));
        put(&format!("again-{number}"), Some((&own, kind)), less, all);
        expected.push(format!("Signature validation failed for file again-{number}: ERR=Signature is invalid"));
    }
    put("unknown", Some((&other, DigestKind::Sha256)), all, less);
    expected.push("digest of restored file unknown differs".to_owned());
    expected.push("unknown was made with a key that no PKI Keypair".to_owned());
    let finished = job(&place, own).run(&volume);
    let below = format!("{}/", place.root().display());
    let said: Vec<_> = texts(&finished).into_iter().map(|text| text.replace(&below, "")).collect();
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(&expected) {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

/// Whoever can change a volume can change the kind, too: it would be a way around the check.
#[test]
fn data_that_cannot_be_read_again_is_checked_with_a_signature_over_any_kind_of_digest() {
    const LENGTH: usize = 600_000;
    let place = Place::new();
    let own = keys(OWN);
    let data = vec![7; LENGTH];
    let put = |volume: &mut Volume, name: &str, kind: DigestKind, signs: usize| {
        let mut saved = Saved { data_stream: Stream::SPARSE_DATA, ..Saved::file(name) };
        saved.stat.size = i64::try_from(LENGTH).unwrap();
        volume.put(&saved);
        for (address, piece) in (0_u64..).step_by(65_536).zip(data.chunks(65_536)) {
            volume.record(Stream::SPARSE_DATA, &[&address.to_be_bytes()[..], piece].concat());
        }
        let mut record = Vec::new();
        Signer::new(&own.own, kind).unwrap().record(&digest_of(kind, &data[..signs]), &mut record).unwrap();
        volume.record(Stream::SIGNED_DIGEST, &record);
    };
    let mut volume = Volume::new();
    let mut expected = Vec::new();
    for kind in [DigestKind::Sha256, DigestKind::Md5, DigestKind::Sha1, DigestKind::Sha256] {
        put(&mut volume, &format!("/first-{kind}"), kind, LENGTH - 1);
        expected.push(format!("/first-{kind}: ERR=Signature is invalid"));
        put(&mut volume, &format!("/good-{kind}"), kind, LENGTH);
    }
    // Behind files without a digest nothing would be prepared for one.
    volume.file("/unsigned", b"x").record(Stream::MD5, digest_of(DigestKind::Md5, b"x").as_bytes());
    for number in 0..40 {
        volume.file(&format!("/unsigned-{number}"), b"x");
    }
    put(&mut volume, "/last", DigestKind::Md5, LENGTH - 1);
    expected.push("/last: ERR=Signature is invalid".to_owned());
    let mut said = texts(&job(&place, keys(OWN)).run(&volume));
    said.retain(|text| !text.contains("Missing cryptographic signature"));
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(&expected) {
        assert!(said.ends_with(expected), "{expected}: {said}");
    }
}

/// The stock daemon accepts such signatures without a message.
#[test]
fn unknown_signers_are_reported_once_a_job() {
    let place = Place::new();
    let own = keys(OWN);
    let mut signed = Sealed::new(&own);
    signed.signature = Sealed::new(&keys(OTHER)).signature;
    let mut volume = Volume::new();
    signed.put(&mut volume, "/one");
    let finished = job(&place, own).run(&volume);
    let (kind, text) = finished.only();
    assert_eq!(kind, MessageType::Warning);
    assert!(text.contains("/one was made with a key that no PKI Keypair or PKI Signer names"), "{text}");
    // The others are counted.
    for name in ["/two", "/three"] {
        signed.put(&mut volume, name);
    }
    let place = Place::new();
    let told = texts(&job(&place, keys(OWN)).run(&volume));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("/one was made with a key"), "{told:?}");
    assert_eq!(
        told[1],
        "The signatures of 3 files so far were made with keys that no PKI Keypair or PKI Signer names, and were not checked"
    );
}

/// The stock daemon checks the second file with the digest of the first (reference 05 §11.3).
#[test]
fn a_signed_file_behind_an_encrypted_one_is_checked_by_its_own_digest() {
    let place = Place::new();
    let own = keys(OWN);
    let sealed = Sealed::new(&own);
    let mut volume = Volume::new();
    sealed.put(&mut volume, "/encrypted");
    volume.file("/plain", DATA).record(Stream::SIGNED_DIGEST, &sealed.signature);
    volume.file("/changed", b"something else").record(Stream::SIGNED_DIGEST, &sealed.signature);
    let finished = job(&place, own).run(&volume);
    let said = texts(&finished);
    assert!(said.len() == 1 && said[0].contains("/changed: ERR=Signature is invalid"), "{said:?}");
}

#[test]
fn a_restore_without_keys_ignores_signatures_and_cannot_decrypt() {
    let place = Place::new();
    let sealed = Sealed::new(&keys(OWN));
    let mut volume = Volume::new();
    volume.file("/signed", DATA).record(Stream::SIGNED_DIGEST, &sealed.signature);
    sealed.put(&mut volume, "/encrypted");
    let finished = place.job().run(&volume);
    assert_eq!(texts(&finished), ["No private decryption keys have been defined to decrypt encrypted backup data."]);
    assert_eq!(place.read("signed"), DATA);
}

/// What it would be replaced by can't be had.
#[test]
fn a_file_stays_when_there_is_no_key_for_its_data() {
    let place = Place::new();
    fs::write(place.path("there"), b"the only copy").unwrap();
    let_it_be_old();
    let sealed = Sealed::new(&keys(OWN));
    let mut volume = Volume::new();
    sealed.put(&mut volume, "/there");
    let finished = place.job().run(&volume);
    assert!(finished.only().1.contains("/there is kept as it is. No private decryption keys"), "{:?}", finished.told());
    assert_eq!(place.read("there"), b"the only copy");
}

/// No backup signs what comes out of a fifo, so such data is always reported as unsigned where
/// signatures are needed.
#[test]
fn data_of_a_fifo_needs_a_good_signature_too() {
    let place = Place::new();
    let keys = keys(OWN);
    let good = Sealed::new(&keys).signature;
    let mut job = job(&place, keys);
    job.plan.output = fd_restore::OutputNames::Original;
    let name = place.text("fifo");
    nix::unistd::mkfifo(name.as_str(), nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).unwrap();
    crate::volume::let_it_be_old();
    // A reader that stays, so that the job need not wait for one.
    let reader = std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let missing = format!("restore.c:1858 Missing cryptographic signature for {name}");
    let invalid = format!("restore.c:1888 Signature validation failed for file {name}: ERR=Signature is invalid");
    let cases = [(DATA, Some(&good), None), (DATA, None, Some(missing)), (b"evil", Some(&good), Some(invalid))];
    for (data, signature, expected) in cases {
        let mut volume = Volume::new();
        volume.put(&Saved::new(&name, fd_records::FileType::Fifo, 0o010_600)).record(Stream::FILE_DATA, data);
        if let Some(signature) = signature {
            volume.record(Stream::SIGNED_DIGEST, signature);
        }
        // As with programs that use a fifo, another process writes while the job runs.
        assert_eq!(texts(&job.run(&volume)), Vec::from_iter(expected));
    }
    drop(reader);
}

#[test]
fn a_plugin_gets_its_data_decrypted_and_its_signature_is_checked() {
    let keys = keys(OWN);
    let sealed = Sealed::new(&keys);
    let mut other = sealed.clone();
    let mut bad = Signer::new(&keys.own, DigestKind::Sha256).unwrap();
    other.signature.clear();
    bad.record(&digest_of(DigestKind::Sha256, b"other data"), &mut other.signature).unwrap();
    let place = Place::new();
    let mut job = job(&place, keys);
    let (access, noted) = access(Answers::default());
    job.plan.plugins = Some(access);
    let mut volume = Volume::new();
    for (sealed, name) in [(&sealed, "/@tp/good"), (&other, "/@tp/forged"), (&sealed, "/@tp/next")] {
        volume.start("tp:x");
        sealed.put(&mut volume, name);
        volume.stop();
    }
    let finished = job.run(&volume);
    assert_eq!(noted.lock().unwrap().data, [DATA; 3].concat());
    let said = texts(&finished);
    assert_eq!((said.len(), said[0].as_str()), (2, "The volume asks plugin tp to restore: tp:x"), "{said:?}");
    assert!(said[1].ends_with("/@tp/forged: ERR=Signature is invalid"), "{said:?}");
}
