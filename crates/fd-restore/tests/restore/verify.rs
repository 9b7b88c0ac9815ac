//! The verify levels that read a volume (reference 05 §19, §20).

use std::collections::BTreeMap;
use std::sync::Mutex;

use fd_crypto::Digester;
use fd_messages::{CancelToken, MessageType, PacketSink, Progress, SendError};
use fd_records::{DigestKind, FileType, Stream, digest_text};
use fd_restore::End;
use fd_restore::PluginAccess;
use fd_restore::verify::{self, CatalogFile, CatalogList, Checks, VerifyError, VerifyJob, VerifyOutcome};

use crate::volume::{Frame, Log, Reader, Saved, Volume};

/// What a verify did.
pub(crate) struct Verified {
    pub(crate) outcome: Result<VerifyOutcome, VerifyError>,
    pub(crate) told: Vec<(MessageType, String)>,
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) files: u32,
    job_bytes: u64,
}

impl Verified {
    /// Messages but the line of each file.
    pub(crate) fn findings(&self) -> Vec<(MessageType, &str)> {
        let told = self.told.iter().filter(|(kind, _)| *kind != MessageType::Verified);
        told.map(|(kind, text)| (*kind, text.as_str())).collect()
    }

    pub(crate) fn differs(&self) -> bool {
        self.outcome.as_ref().unwrap().differs
    }
}

#[derive(Default)]
struct Director {
    packets: Vec<Vec<u8>>,
    fails_after: Option<usize>,
}

impl PacketSink for Director {
    fn send(&mut self, packet: Vec<u8>) -> Result<(), SendError> {
        if self.fails_after == Some(self.packets.len()) {
            return Err(SendError("Broken pipe".to_owned()));
        }
        self.packets.push(packet);
        Ok(())
    }
}

fn with_job(
    volume: &Volume,
    plugins: Option<&PluginAccess>,
    director: &mut Director,
    work: impl FnOnce(&mut VerifyJob<'_>, &mut Director) -> Result<VerifyOutcome, VerifyError>,
) -> Verified {
    let log = Log { messages: Mutex::default(), restored: true };
    let (progress, cancel) = (Progress::default(), CancelToken::new());
    let mut source = Reader { frames: volume.frames.iter(), cancel: &cancel };
    let mut job = VerifyJob { progress: &progress, log: &log, cancel: &cancel, source: &mut source, plugins };
    let outcome = work(&mut job, director);
    Verified {
        outcome,
        told: log.messages.into_inner().unwrap(),
        packets: std::mem::take(&mut director.packets),
        files: progress.files(),
        job_bytes: progress.job_bytes(),
    }
}

pub(crate) fn verify_volume(volume: &Volume) -> Verified {
    with_job(volume, None, &mut Director::default(), |job, director| verify::volume(job, Checks::default(), director))
}

pub(crate) fn verify_data(volume: &Volume, checks: Checks, catalog: Option<&mut dyn CatalogList>) -> Verified {
    with_job(volume, None, &mut Director::default(), |job, director| verify::data(job, checks, catalog, director))
}

pub(crate) fn verify_with_plugins(volume: &Volume, checks: Checks, plugins: &PluginAccess) -> Verified {
    let director = &mut Director::default();
    with_job(volume, Some(plugins), director, |job, director| verify::data(job, checks, None, director))
}

pub(crate) const MD5: Checks = Checks { size: true, digest: Some(DigestKind::Md5), unsigned: false };

pub(crate) fn md5(data: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(DigestKind::Md5).unwrap();
    digester.update(data);
    digester.finish().unwrap().as_bytes().to_vec()
}

#[test]
fn the_director_gets_attributes_and_digests() {
    let mut volume = Volume::new();
    volume.record(
        Stream::ATTRIBUTES,
        b"7 5 /data1/emptydir/\0P4A m+Qf EP/ C A A A BAA BAA I BrAPp2 BrAPp2 BrAPp2 A A C\0\0\x000\0",
    );
    volume.file("/f", b"x").record(Stream::MD5, &[0xac; 20]).record(Stream::LINUX_XATTR, b"?");
    let link = b"8 1 /data1/sub/hard3\0P4A m+Qg IG0 D A A A M BAA Q BrAPqP 7msoA BrAPp2 D A C\0/data1/hard2\0\x000\0";
    volume.record(Stream::ATTRIBUTES, link).record(Stream::XXH64, &[1; 8]);
    volume.put(&Saved::new("/gone", FileType::Deleted, 0)).record(Stream::RESTORE_OBJECT, b"?");
    volume.symlink("/l", "target");
    let verified = verify_volume(&volume);
    assert_eq!(verified.outcome.as_ref().unwrap().end, End::EndOfData);
    let packets: Vec<String> =
        verified.packets.iter().map(|packet| String::from_utf8_lossy(packet).replace('\0', "|")).collect();
    assert_eq!(packets[0], "1 1 pinsug5 /data1/emptydir/|P4A m+Qf EP/ C A A A BAA BAA I BrAPp2 BrAPp2 BrAPp2 A A C||");
    assert!(packets[1].starts_with("2 1 pinsug5 /f|") && packets[1].ends_with(" C||"), "{}", packets[1]);
    assert_eq!(packets[2], "2 3 rKysrKysrKysrKysrKysrA *MD5-2*");
    assert_eq!(
        packets[3],
        "3 1 pinsug5 /data1/sub/hard3|P4A m+Qg IG0 D A A A M BAA Q BrAPqP 7msoA BrAPp2 D A C|/data1/hard2|"
    );
    assert_eq!(packets[4], "3 39 AQEBAQEBAQE *XXHASH64-3*");
    assert!(packets[5].starts_with("0 1 pinsug5 /gone|"), "{}", packets[5]);
    assert!(packets[6].starts_with("6 1 pinsug5 /l|") && packets[6].ends_with(" C|target|"), "{}", packets[6]);
    assert_eq!((packets.len(), verified.files, verified.job_bytes), (7, 6, 0));
    assert_eq!(verified.told[0], (MessageType::Verified, "Veryfying: /data1/emptydir/\n".to_owned()));
}

/// An accurate job sends it where only attributes have changed, with the digest that the catalog
/// has.
#[test]
fn an_update_of_attributes_is_a_file_without_data() {
    let mut volume = Volume::new();
    volume.file("/f", b"x").record(Stream::MD5, &md5(b"x"));
    volume.put(&Saved { stream: Stream::ATTRIBUTES_UPDATE, ..Saved::file("/updated") });
    volume.record(Stream::MD5, &md5(b"in an earlier job"));
    let verified = verify_volume(&volume);
    let heads: Vec<_> = verified.packets.iter().map(|packet| packet[..3].escape_ascii().to_string()).collect();
    assert_eq!((heads, verified.files), (["1 1", "1 3", "2 1", "2 3"].map(str::to_owned).to_vec(), 2));
    let verified = verify_data(&volume, MD5, None);
    assert!(!verified.outcome.as_ref().unwrap().differs, "{:?}", verified.findings());
    assert_eq!(verified.files, 2);
}

/// What was not read neither differs nor is missing.
#[test]
fn a_canceled_verify_of_data_finds_nothing_in_what_it_has_not_read() {
    let mut volume = Volume::new();
    volume.file("/f", b"x").record(Stream::MD5, &md5(b"x"));
    let mut half = Saved::file("/half");
    half.stat.size = 100;
    volume.put(&half).record(Stream::FILE_DATA, b"half");
    volume.frames.push(Frame::Cancel);
    let verified = verify_data(&volume, MD5, None);
    assert_eq!(verified.outcome.as_ref().unwrap().end, End::Canceled);
    assert_eq!(verified.findings(), []);
}

#[test]
fn a_lost_director_ends_the_verify() {
    let mut director = Director { fails_after: Some(1), ..Director::default() };
    let volume = Volume::new().file("/a", b"x").file("/b", b"x").clone();
    let verified =
        with_job(&volume, None, &mut director, |job, director| verify::volume(job, Checks::default(), director));
    assert!(matches!(verified.outcome, Err(VerifyError::Director(_))));
    let text = "Network error in send to Director: ERR=Broken pipe\n";
    assert_eq!(verified.findings(), [(MessageType::Fatal, text)]);
}

#[test]
fn a_broken_sequence_ends_both_levels() {
    let mut volume = Volume::new();
    volume.frames.push(Frame::Data(b"rechdr 1 1 1 2 5".to_vec()));
    volume.frames.push(Frame::Data(b"x".to_vec()));
    for verified in [verify_volume(&volume), verify_data(&volume, MD5, None)] {
        assert!(matches!(verified.outcome, Err(VerifyError::Sequence(_))));
        let text = "verify_vol.c:397 Actual data size 1 not same as header 5\n";
        assert_eq!(verified.findings(), [(MessageType::Fatal, text)]);
    }
}

#[test]
fn data_is_compared_with_its_digest_and_size() {
    let mut volume = Volume::new();
    volume.file("/good", b"data").record(Stream::MD5, &md5(b"data"));
    volume.file("/badmd5", b"data").record(Stream::MD5, &md5(b"other"));
    let mut short = Saved::file("/badsize");
    short.stat.size = 9;
    volume.put(&short).record(Stream::FILE_DATA, b"12345").record(Stream::MD5, &md5(b"12345"));
    volume.put(&Saved::new("/empty", FileType::EmptyFile, 0o100_644)).record(Stream::MD5, &md5(b""));
    volume.put(&Saved::hard_link("/hard", "/good")).record(Stream::MD5, &md5(b"data"));
    volume.file("/unsigned", b"data").directory("/d/");
    let verified = verify_data(&volume, MD5, None);
    let mut texts = Vec::new();
    for data in [&b"data"[..], b"other"] {
        let text = digest_text::of(&md5(data));
        texts.push(String::from_utf8(text).unwrap());
    }
    assert_eq!(
        verified.findings(),
        [
            (
                MessageType::Info,
                format!("   MD5 digest differs on \"/badmd5\". File={} Vol={}\n", texts[0], texts[1]).as_str()
            ),
            (MessageType::Info, "   st_size  differs on \"/badsize\". Vol: 5 File: 9\n"),
        ]
    );
    assert!(verified.differs());
    assert_eq!((verified.files, verified.job_bytes), (7, 17));
    // No message where no check was asked for.
    let verified = verify_data(&volume, Checks::default(), None);
    assert_eq!(verified.findings(), []);
    assert!(!verified.differs());
}

#[test]
fn sparse_and_compressed_data_is_unpacked_first() {
    let mut volume = Volume::new();
    let mut sparse = Saved::file("/sparse");
    sparse.stat.size = 1003;
    sparse.data_stream = Stream::SPARSE_DATA;
    volume.put(&sparse).record(Stream::SPARSE_DATA, &[&1000_u64.to_be_bytes()[..], b"end"].concat());
    volume.record(Stream::MD5, &md5(b"end"));
    let mut gzip = Saved::file("/gzip");
    gzip.stat.size = 12;
    let packed =
        [0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0x28, 0xcf, 0x2f, 0xca, 0x49, 0xe1, 2, 0, 0x1e, 0x72, 4, 0x67];
    volume.put(&gzip).record(Stream::GZIP_DATA, &packed).record(Stream::MD5, &md5(b"hello world\n"));
    let verified = verify_data(&volume, MD5, None);
    assert_eq!(verified.findings(), []);
    assert!(!verified.differs());

    volume.put(&gzip).record(Stream::GZIP_DATA, b"rubbish").file("/never", b"x");
    let verified = verify_data(&volume, MD5, None);
    assert_eq!(verified.outcome.as_ref().unwrap_err(), &VerifyError::Data("/gzip".to_owned()));
    let text = "Uncompression error on file /gzip. ERR=Zlib data error\n";
    assert_eq!(verified.findings(), [(MessageType::Error, text)]);
}

#[test]
fn files_that_cannot_be_compared_are_not_reported_as_different() {
    let mut volume = Volume::new();
    for name in ["/a", "/b"] {
        volume.put(&Saved::file(name)).record(Stream::ENCRYPTED_FILE_DATA, &[0; 16]).record(Stream::MD5, &md5(b"x"));
        volume.file(name, b"x").record(Stream::SHA1, &[0; 20]);
    }
    let verified = verify_data(&volume, MD5, None);
    assert_eq!(
        verified.findings(),
        [
            (MessageType::Warning, "Verification of encrypted file data is not supported.\n"),
            (
                MessageType::Warning,
                "The digest of /a is a SHA1 digest, the FileSet has MD5: such files are not compared.\n"
            ),
        ]
    );
    assert!(!verified.differs());
}

struct Catalog(BTreeMap<Vec<u8>, (CatalogFile, bool)>);

impl CatalogList for Catalog {
    fn find(&mut self, name: &[u8]) -> Option<CatalogFile> {
        let (file, found) = self.0.get_mut(name)?;
        *found = true;
        Some(file.clone())
    }

    fn missing(&mut self, tell: &mut dyn FnMut(&[u8])) {
        for (name, _) in self.0.iter().filter(|(_, (_, found))| !found) {
            tell(name);
        }
    }
}

#[test]
fn the_catalog_is_compared_too() {
    let digest = digest_text::of(&md5(b"data"));
    let known = |size: i64, digest: &[u8]| (CatalogFile { size, digest: Some(digest.to_vec()) }, false);
    let entries = [
        (&b"/good"[..], known(4, &digest)),
        (b"/size", known(5, &digest)),
        (b"/sum", known(4, b"1B2M2Y8AsgTpgAmY7PhCfg")),
        (b"/unreadable", known(4, b"")),
        (b"/unknown", (CatalogFile { size: 4, digest: None }, false)),
        (b"/hard", known(0, &digest)),
        (b"/gone", known(4, b"")),
    ];
    let mut catalog = Catalog(entries.into_iter().map(|(name, file)| (name.to_vec(), file)).collect());
    let mut volume = Volume::new();
    for name in ["/good", "/size", "/sum", "/unreadable", "/unknown", "/extra"] {
        volume.file(name, b"data").record(Stream::MD5, &md5(b"data"));
    }
    volume.put(&Saved::hard_link("/hard", "/good")).record(Stream::MD5, &md5(b"data"));
    let verified = verify_data(&volume, MD5, Some(&mut catalog));
    assert_eq!(
        verified.findings(),
        [
            (MessageType::Info, "Cat st_size differs: /size\n"),
            (MessageType::Info, "Cat checksum differs: /sum\n"),
            (MessageType::Info, "Cat checksum differs: /unreadable\n"),
            (MessageType::Info, "Not in the Catalog: /extra\n"),
            (MessageType::Info, "The following files were in the Catalog, but not in the Job data:\n"),
            (MessageType::Info, "    /gone\n"),
        ]
    );
    let outcome = verified.outcome.unwrap();
    assert!(outcome.differs && outcome.missing);
}

/// The Director does not list what an accurate job has recorded as deleted.
#[test]
fn a_deleted_file_that_the_catalog_does_not_list_differs_from_nothing() {
    let known = (CatalogFile { size: 4, digest: None }, false);
    let mut catalog = Catalog([(b"/there".to_vec(), known)].into());
    let mut volume = Volume::new();
    volume.put(&Saved::new("/gone", FileType::Deleted, 0)).file("/there", b"data");
    let verified = verify_data(&volume, MD5, Some(&mut catalog));
    assert_eq!(verified.findings(), []);
    let outcome = verified.outcome.unwrap();
    assert!(!outcome.differs && !outcome.missing);
}

/// Its digest in the catalog is of the other kind as well.
#[test]
fn a_file_whose_digest_is_of_another_kind_differs_from_the_catalog_in_its_size_only() {
    let digest = |kind| {
        let mut digester = Digester::new(kind).unwrap();
        digester.update(b"data");
        digester.finish().unwrap().as_bytes().to_vec()
    };
    let sha1 = digest(DigestKind::Sha1);
    let known = |size: i64| (CatalogFile { size, digest: Some(digest_text::of(&sha1)) }, false);
    let mut catalog = Catalog([(b"/other".to_vec(), known(4)), (b"/size".to_vec(), known(5))].into());
    let mut volume = Volume::new();
    for name in ["/other", "/size"] {
        volume.file(name, b"data").record(Stream::SHA1, &sha1);
    }
    let verified = verify_data(&volume, MD5, Some(&mut catalog));
    let findings = verified.findings();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(findings[0].1.ends_with("such files are not compared.\n"), "{findings:?}");
    assert_eq!(findings[1], (MessageType::Info, "Cat st_size differs: /size\n"));
}

/// The Director finds files by their number, so the lost record must not shift the numbers of later
/// ones.
#[test]
fn an_unreadable_attribute_record_is_an_error() {
    let mut volume = Volume::new();
    volume.file("/a", b"x").record(Stream::MD5, &md5(b"x"));
    volume.record(Stream::ATTRIBUTES, b"rubbish").record(Stream::FILE_DATA, b"y").record(Stream::MD5, &md5(b"y"));
    volume.file("/c", b"z").record(Stream::MD5, &md5(b"z"));
    let text = "Error scanning attributes: rubbish\n";
    let told = verify_volume(&volume);
    assert_eq!(told.findings(), [(MessageType::Error, text)]);
    assert!(told.outcome.as_ref().unwrap().damaged);
    assert!(told.packets.iter().any(|packet| packet.starts_with(b"3 1 pinsug5 /c\0")), "{:?}", told.packets);
    let data = verify_data(&volume, MD5, None);
    assert_eq!(data.findings(), [(MessageType::Error, text)]);
    assert!(data.outcome.as_ref().unwrap().damaged && !data.differs());
    assert_eq!((told.files, data.files), (3, 3));
}

#[test]
fn a_verify_without_a_digest_in_the_file_set_warns() {
    let checks = Checks { unsigned: true, ..Checks::default() };
    let verified = verify_data(&Volume::new(), checks, None);
    let text = "Checksum verification required in Verify FileSet option, but no Signature found in the FileSet\n";
    assert_eq!(verified.findings(), [(MessageType::Warning, text)]);
}

/// What was not read is neither good nor missing, and the file at which it broke off is not wrong.
#[test]
fn a_verify_whose_records_end_too_early_says_so_and_fails() {
    struct Later;
    impl CatalogList for Later {
        fn find(&mut self, _name: &[u8]) -> Option<CatalogFile> {
            None
        }
        fn missing(&mut self, tell: &mut dyn FnMut(&[u8])) {
            tell(b"/later");
        }
    }
    let mut image = Saved::file("/image");
    image.stat.size = 1 << 30;
    let mut volume = Volume::new();
    volume.put(&image).record(Stream::FILE_DATA, b"the beginning").frames.push(Frame::Lost);
    let lost = "The records ended before the end of the data. ERR=Connection reset by peer\n";
    let files = verify_volume(&volume);
    let data = verify_data(&volume, MD5, Some(&mut Later));
    for verified in [files, data] {
        assert_eq!(verified.findings(), [(MessageType::Error, lost)]);
        let outcome = verified.outcome.unwrap();
        assert!(outcome.damaged && !outcome.differs && !outcome.missing, "{outcome:?}");
    }
}
