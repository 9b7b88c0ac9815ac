//! Every type of entry becomes what it was.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use fd_compress::Compressor;
use fd_messages::MessageType;
use fd_records::{FileType, Stat, Stream};
use nix::sys::stat::Mode;

use crate::volume::{ATIME, MTIME, Place, Saved, Volume, is_root};

#[test]
fn a_regular_file_has_its_data_and_attributes() {
    let place = Place::new();
    let mut saved = Saved::file("/a/f");
    saved.stat.mode = 0o106_751;
    saved.stat.size = 10;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::FILE_DATA, b"01234").record(Stream::FILE_DATA, b"56789");
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    let found = place.stat("a/f");
    assert_eq!(place.read("a/f"), b"0123456789");
    assert_eq!((found.mode(), found.atime(), found.mtime()), (0o106_751, ATIME, MTIME));
    assert_eq!((found.atime_nsec(), found.mtime_nsec()), (0, 0));
    assert_eq!((finished.files, finished.read_bytes, finished.job_bytes), (1, 10, 10));
}

#[test]
fn names_are_bytes() {
    let place = Place::new();
    let mut saved = Saved::file("");
    saved.name = b"/a \n\xff'\"/\x01".to_vec();
    place.job().run(Volume::new().put(&saved).record(Stream::FILE_DATA, b"x")).assert_quiet();
    assert_eq!(fs::read(place.root().join(OsStr::from_bytes(b"a \n\xff'\"/\x01"))).unwrap(), b"x");
}

#[test]
fn empty_files_of_both_types_are_made() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.put(&Saved::new("/e", FileType::EmptyFile, 0o100_444)).put(&Saved::new("/g", FileType::Regular, 0o100_600));
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    for (name, mode) in [("e", 0o100_444), ("g", 0o100_600)] {
        assert_eq!((place.read(name).len(), place.mode(name), place.stat(name).mtime()), (0, mode, MTIME));
    }
    assert_eq!((finished.files, finished.job_bytes), (2, 0));
}

#[test]
fn links_of_both_kinds_are_made() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("/d/first", b"data");
    volume.put(&Saved::hard_link("/d/second", "/d/first"));
    volume.symlink("/d/rel", "first").symlink("/d/abs", "/d/first").symlink("/d/dangling", "nowhere");
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.read("d/second"), b"data");
    assert_eq!(place.stat("d/first").ino(), place.stat("d/second").ino());
    for (name, target) in [("rel", "first"), ("abs", "/d/first"), ("dangling", "nowhere")] {
        let found = place.stat(&format!("d/{name}"));
        assert_eq!((found.atime(), found.mtime()), (ATIME, MTIME), "{name}");
        let path = place.path("d").join(name);
        assert_eq!(fs::read_link(path).unwrap().to_str(), Some(target));
    }
}

#[test]
fn prelinks_change_absolute_targets() {
    let place = Place::new();
    let mut job = place.job();
    job.plan.prelinks = true;
    job.run(Volume::new().symlink("/rel", "first").symlink("/abs", "/d/first")).assert_quiet();
    assert_eq!(fs::read_link(place.path("rel")).unwrap().to_str(), Some("first"));
    assert_eq!(fs::read_link(place.path("abs")).unwrap(), place.path("d/first"));
}

#[test]
fn a_link_without_its_first_name_is_an_error() {
    let place = Place::new();
    let finished = place.job().run(Volume::new().put(&Saved::hard_link("/x", "/gone")));
    let text = format!(
        "create_file.c:360 Could not hard link {} -> {}: ERR=No such file or directory\n",
        place.text("x"),
        place.text("gone")
    );
    assert_eq!(finished.only(), (MessageType::Error, text.as_str()));
    assert_eq!(finished.files, 1);
}

/// As a FileSet with relative names has them.
#[test]
fn a_hard_link_to_a_relative_name_follows_it_below_where() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.file("relative/first", b"data").put(&Saved::hard_link("relative/second", "relative/first"));
    let finished = place.job().run(&volume);
    assert_eq!((finished.told(), finished.files), (Vec::new(), 2));
    assert_eq!(place.stat("relative/first").ino(), place.stat("relative/second").ino());
}

#[test]
fn fifos_devices_and_sockets() {
    let place = Place::new();
    let mut volume = Volume::new();
    volume.put(&Saved::new("/fifo", FileType::Special, 0o010_640));
    volume.put(&Saved::new("/socket", FileType::Special, 0o140_755));
    // A special file with the mode of a regular one is made by mknod too.
    volume.put(&Saved::new("/odd", FileType::Special, 0o100_640));
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    assert_eq!(finished.files, 3);
    let fifo = place.stat("fifo");
    assert!(fifo.file_type().is_fifo());
    assert_eq!((fifo.mode() & 0o7777, fifo.mtime()), (0o640, MTIME));
    assert!(!place.exists("socket"));
    assert!(place.stat("odd").is_file());

    if !is_root() {
        return skip::test("needs root");
    }
    let mut volume = Volume::new();
    for (name, mode, rdev) in [("/null", 0o020_666, 0x103), ("/blk", 0o060_600, 0x7c8)] {
        let mut saved = Saved::new(name, FileType::Special, mode);
        saved.stat.rdev = rdev;
        volume.put(&saved);
    }
    let finished = place.job().run(&volume);
    if finished.told().iter().any(|(_, text)| text.contains("Operation not permitted")) {
        return skip::test("root may not make devices here");
    }
    finished.assert_quiet();
    assert!(place.stat("null").file_type().is_char_device());
    assert!(place.stat("blk").file_type().is_block_device());
    assert_eq!((place.stat("null").rdev(), place.stat("blk").rdev()), (0x103, 0x7c8));
}

#[test]
fn a_fifo_with_data_needs_its_reader() {
    let place = Place::new();
    nix::unistd::mkfifo(&place.path("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
    let path = place.path("fifo");
    let reader = std::thread::spawn(move || {
        let mut data = Vec::new();
        fs::File::open(path).unwrap().read_to_end(&mut data).unwrap();
        data
    });
    let mut volume = Volume::new();
    volume.put(&Saved::new("/fifo", FileType::Fifo, 0o010_600)).record(Stream::FILE_DATA, b"from the volume");
    place.job().run(&volume).assert_quiet();
    assert_eq!(reader.join().unwrap(), b"from the volume");
}

#[test]
fn a_raw_device_is_written_over_and_not_cut() {
    let place = Place::new();
    fs::write(place.path("raw"), b"0123456789").unwrap();
    let mut volume = Volume::new();
    volume.put(&Saved::new("/raw", FileType::Raw, 0o100_600)).record(Stream::FILE_DATA, b"abc");
    place.job().run(&volume).assert_quiet();
    assert_eq!(place.read("raw"), b"abc3456789");
}

#[test]
fn types_that_are_no_files_are_said() {
    let place = Place::new();
    let cases = [
        (FileType::Deleted, MessageType::Info, "create_file.c:436 Original file /x have been deleted: type=23\n"),
        (FileType::NoAccess, MessageType::Error, "create_file.c:448 Original file /x not saved: type=7\n"),
        (FileType::NoOpen, MessageType::Error, "create_file.c:448 Original file /x not saved: type=15\n"),
        (FileType::Base, MessageType::Error, "create_file.c:451 Unknown file type 24; not restored: /x\n"),
        (FileType::InvalidFileSystem, MessageType::Error, "create_file.c:451 Unknown file type 19; not restored: /x\n"),
        (FileType::SecurityObject, MessageType::Error, "create_file.c:451 Unknown file type 30; not restored: /x\n"),
    ];
    for (file_type, kind, text) in cases {
        let mut volume = Volume::new();
        volume.put(&Saved::new("/x", file_type, 0o100_644)).record(Stream::FILE_DATA, b"ignored");
        let finished = place.job().run(&volume);
        assert_eq!(finished.only(), (kind, text));
        assert!(!place.exists("x"));
        assert_eq!((finished.files, finished.job_bytes), (1, 0));
    }
    let mut volume = Volume::new();
    volume.record(Stream::ATTRIBUTES, b"1 99 /x\0A A A A A A A A A A A A A A A C\0\0\x000\0");
    assert_eq!(place.job().run(&volume).only().1, "create_file.c:451 Unknown file type 99; not restored: /x\n");
}

#[test]
fn an_attribute_update_changes_what_exists_and_makes_nothing() {
    let place = Place::new();
    fs::write(place.path("f"), b"kept").unwrap();
    let mut volume = Volume::new();
    for name in ["/f", "/missing"] {
        let mut saved = Saved::file(name);
        saved.stream = Stream::ATTRIBUTES_UPDATE;
        saved.delta_seq = i32::from(name == "/f");
        saved.stat.mode = 0o100_640;
        volume.put(&saved);
        // Never accepted behind an update.
        volume.record(Stream::FILE_DATA, b"x");
    }
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    assert_eq!(place.read("f"), b"kept");
    assert_eq!((place.mode("f"), place.stat("f").mtime()), (0o100_640, MTIME));
    assert!(!place.exists("missing"));
    assert_eq!(finished.files, 2);
}

#[test]
fn patches_need_their_file() {
    let place = Place::new();
    fs::write(place.path("f"), b"0123456789").unwrap();
    let mut volume = Volume::new();
    for name in ["/f", "/missing"] {
        let mut saved = Saved::file(name);
        saved.delta_seq = 1;
        saved.stat.size = 10;
        volume.put(&saved);
        let record = [&5_u64.to_be_bytes()[..], b"abc"].concat();
        volume.record(Stream(Stream::BIT_OFFSETS | Stream::FILE_DATA.0), &record);
    }
    let finished = place.job().run(&volume);
    let text = format!("File skipped. File must exists to apply a patch: {}\n", place.text("missing"));
    assert_eq!(finished.only(), (MessageType::Skipped, text.as_str()));
    assert_eq!(place.read("f"), b"01234abc89");
}

#[test]
fn sparse_and_compressed_data_comes_out_as_it_was() {
    let data: Vec<u8> = (0..60_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    let address = |at: u64, record: &[u8]| [&at.to_be_bytes()[..], record].concat();
    let pack = |mut compressor: Compressor, block: &[u8]| {
        let mut out = Vec::new();
        compressor.compress(block, &mut out).unwrap();
        out
    };
    let gzip = |block: &[u8]| pack(Compressor::gzip(6).unwrap(), block);
    let lzo = |block: &[u8]| pack(Compressor::lzo(), block);
    let zstd = |block: &[u8]| pack(Compressor::zstd(3).unwrap(), block);
    let (first, second) = data.split_at(65_536);
    let cases: Vec<(Stream, Vec<Vec<u8>>)> = vec![
        (Stream::FILE_DATA, vec![first.to_vec(), second.to_vec()]),
        (Stream::GZIP_DATA, vec![gzip(first), gzip(second)]),
        (Stream::COMPRESSED_DATA, vec![lzo(first), lzo(second)]),
        (Stream::COMPRESSED_DATA, vec![zstd(first), zstd(second)]),
        (Stream::SPARSE_DATA, vec![address(0, first), address(65_536, second)]),
        (Stream::SPARSE_GZIP_DATA, vec![address(65_536, &gzip(second)), address(0, &gzip(first))]),
        (Stream::SPARSE_COMPRESSED_DATA, vec![address(0, &lzo(first)), address(65_536, &lzo(second))]),
        (Stream(Stream::BIT_OFFSETS | Stream::FILE_DATA.0), vec![address(0, first), address(65_536, second)]),
    ];
    for (stream, records) in cases {
        let place = Place::new();
        let mut saved = Saved::file("/f");
        saved.stat.size = 240_000;
        saved.data_stream = stream.kind();
        let mut volume = Volume::new();
        volume.put(&saved);
        let received: usize = records.iter().map(Vec::len).sum();
        for record in records {
            volume.record(stream, &record);
        }
        let finished = place.job().run(&volume);
        finished.assert_quiet();
        assert!(place.read("f") == data, "stream {stream}");
        assert_eq!((finished.read_bytes, finished.job_bytes), (received as u64, 240_000), "stream {stream}");
    }
}

#[test]
fn holes_stay_holes() {
    let place = Place::new();
    let mut saved = Saved::file("/f");
    saved.stat.size = 10_000_003;
    saved.data_stream = Stream::SPARSE_DATA;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::SPARSE_DATA, &[&10_000_000_u64.to_be_bytes()[..], b"end"].concat());
    place.job().run(&volume).assert_quiet();
    let found = place.stat("f");
    assert_eq!(found.len(), 10_000_003);
    assert!(found.blocks() * 512 < 1_000_000);
}

#[test]
fn windows_data_is_taken_out_of_its_parts() {
    let mut stream = 1_i32.to_le_bytes().to_vec();
    stream.extend_from_slice(&[0; 4]);
    stream.extend_from_slice(&11_i64.to_le_bytes());
    stream.extend_from_slice(&0_i32.to_le_bytes());
    stream.extend_from_slice(b"hello world");
    let pack = |compressor: Option<Compressor>, record: &[u8]| {
        let mut out = record.to_vec();
        if let Some(mut compressor) = compressor {
            out.clear();
            compressor.compress(record, &mut out).unwrap();
        }
        out
    };
    for (kind, compressor) in [
        (Stream::WIN32_DATA, (|| None) as fn() -> Option<Compressor>),
        (Stream::WIN32_GZIP_DATA, || Compressor::gzip(6).ok()),
        (Stream::WIN32_COMPRESSED_DATA, || Some(Compressor::lzo())),
    ] {
        let place = Place::new();
        let mut saved = Saved::file("C:/f");
        saved.data_stream = kind;
        let mut volume = Volume::new();
        volume.put(&saved);
        for record in stream.chunks(13) {
            volume.record(kind, &pack(compressor(), record));
        }
        let finished = place.job().run(&volume);
        finished.assert_quiet();
        assert_eq!(place.read("C:/f"), b"hello world", "stream {kind}");
        assert_eq!(finished.job_bytes, 31);
    }
}

/// Attributes of stream 5; without `LinkFI`, flags and data stream, which were not always recorded; with data stream 0.
#[test]
fn attributes_of_older_versions_are_read() {
    let mode = "IGk"; // 0100644
    for (stream, rest) in [
        (Stream::ATTRIBUTES, " A A C"),
        (Stream::ATTRIBUTES, " A A A"),
        (Stream::ATTRIBUTES, " A"),
        (Stream::ATTRIBUTES, ""),
        (Stream::ATTRIBUTES_EX, " A A C"),
        (Stream::ATTRIBUTES_EX, ""),
    ] {
        let place = Place::new();
        let mut record = b"1 3 /f\0".to_vec();
        record.extend_from_slice(format!("A A {mode} B A A A D A A A ProA A{rest}").as_bytes());
        record.extend_from_slice(b"\0\0\0");
        let mut volume = Volume::new();
        volume.record(stream, &record).record(Stream::FILE_DATA, b"old");
        place.job().run(&volume).assert_quiet();
        assert_eq!(place.read("f"), b"old", "stream {stream} {rest:?}");
        assert_eq!((place.mode("f"), place.stat("f").mtime()), (0o100_644, 4_110_848), "stream {stream} {rest:?}");
    }
}

#[test]
fn encrypted_files_are_a_clear_error() {
    let place = Place::new();
    let mut saved = Saved::file("/f");
    saved.data_stream = Stream::ENCRYPTED_FILE_DATA;
    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::ENCRYPTED_SESSION_DATA, b"?").record(Stream::ENCRYPTED_FILE_DATA, &[0; 16]);
    volume.file("/g", b"plain");
    let finished = place.job().run(&volume);
    let text = "No private decryption keys have been defined to decrypt encrypted backup data.\n";
    assert_eq!(finished.only(), (MessageType::Error, text));
    assert_eq!(place.mode("f"), 0o100_600);
    assert_eq!(place.read("g"), b"plain");

    let mut volume = Volume::new();
    volume.put(&saved).record(Stream::ENCRYPTED_FILE_DATA, &[0; 16]);
    let text = format!("restore.c:785 Missing encryption session data stream for {}\n", place.text("f"));
    assert_eq!(place.job().run(&volume).only(), (MessageType::Error, text.as_str()));
}

#[test]
fn directory_of_windows_without_meaning_is_opened_up() {
    let place = Place::new();
    let mut saved = Saved::directory("/d");
    saved.stat.mode = 0o041_700;
    saved.stat.rdev = 5;
    saved.data_stream = Stream::WIN32_DATA;
    place.job().run(Volume::new().put(&saved)).assert_quiet();
    assert_eq!(place.mode("d"), 0o040_707);
    assert_eq!(place.mode("d") & Stat::MODE_TYPE, Stat::MODE_DIRECTORY);
}

#[test]
fn names_and_hard_links_follow_regexwhere() {
    let place = Place::new();
    let expressions = format!("!^/src!{}/x!,!File!Renamed!", place.root().display());
    let mut job = place.job();
    job.plan.output = fd_restore::OutputNames::Regex(fd_restore::RegexWhere::parse(expressions.as_bytes()).unwrap());
    let mut volume = Volume::new();
    volume.file("/src/File.txt", b"data").put(&Saved::hard_link("/src/hard", "/src/File.txt"));
    volume.symlink("/src/soft", "/src/File.txt").directory("/src/");
    job.run(&volume).assert_quiet();
    assert_eq!((place.read("x/Renamed.txt"), place.read("x/hard")), (b"data".to_vec(), b"data".to_vec()));
    assert_eq!(fs::read_link(place.path("x/soft")).unwrap().to_str(), Some("/src/File.txt"));
    job.plan.prelinks = true;
    job.run(Volume::new().symlink("/src/soft", "/src/File.txt")).assert_quiet();
    assert_eq!(fs::read_link(place.path("x/soft")).unwrap(), place.path("x/Renamed.txt"));
}

#[test]
fn a_bare_name_is_said() {
    let place = Place::new();
    let mut job = place.job();
    job.plan.output = fd_restore::OutputNames::Regex(fd_restore::RegexWhere::parse(b"!^.*/!!").unwrap());
    let finished = job.run(Volume::new().file("/src/bare-name", b"x"));
    let text = "File bare-name not restored: the name has no directory.\n";
    assert_eq!(finished.only(), (MessageType::Warning, text));
    assert_eq!(finished.files, 1);
}
