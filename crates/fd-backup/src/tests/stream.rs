//! The records of each type of entry (reference 04 §4–§9).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use super::support::{self, Bed, Collector, Record, hex, noise};
use crate::shared::plan::block_len;
use fd_messages::MessageType;
use fd_records::{FileType, Stream};

const HELLO: &[u8] = b"Hello, Bacula!\n";
const HELLO_MD5: &str = "9d61aad300b569bbd6c0fac3fbd10d74";
const NOTHING_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

fn kinds(records: &[Record]) -> Vec<(u32, i64, Vec<usize>)> {
    records.iter().map(|record| (record.stream, record.size, record.messages.iter().map(Vec::len).collect())).collect()
}

#[test]
fn records_are_as_long_as_the_network_buffer_within_what_a_storage_daemon_takes() {
    for (asked, len) in [(0, 65_536), (512, 1024), (1024, 1024), (100_000, 100_000), (1_048_576, 936_476)] {
        assert_eq!(block_len(asked), len, "{asked}");
    }
}

#[test]
fn a_small_file_has_an_attribute_a_data_and_a_digest_record() {
    let bed = Bed::new("M");
    let path = bed.file("a.txt", HELLO);
    let outcome = bed.run();
    let records = outcome.of(path.to_str().unwrap());
    let attributes = records[0].attributes();
    assert_eq!(attributes.file_type(), Some(FileType::Regular));
    assert_eq!(
        (attributes.lstat.stat.size, attributes.lstat.data_stream, attributes.lstat.link_fi),
        (15, Stream::FILE_DATA, 0)
    );
    assert_eq!((attributes.link, attributes.attr_ex, attributes.delta_seq), (&b""[..], &b""[..], 0));
    assert_eq!(records[0].size, 0);
    assert_eq!(kinds(&records[1..]), [(2, 15, vec![15]), (3, 0, vec![16])]);
    assert_eq!(records[1].data(), HELLO);
    assert_eq!(hex(&records[2].data()), HELLO_MD5);
    // The directory follows its contents, and its name has a slash.
    let all = outcome.records();
    let last = all.last().unwrap();
    assert_eq!((last.file_index, last.name()), (2, format!("{}/", bed.directory.path().display())));
    assert_eq!((outcome.progress.files(), outcome.progress.read_bytes(), outcome.progress.job_bytes()), (2, 15, 15));
    assert_eq!(outcome.progress.files_examined(), 2);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn a_stream_has_the_bytes_of_the_reference() {
    let bed = Bed::with_lines(&["I", "O M", "N", "F @/a.txt", "N", "N"]);
    let path = bed.file("a.txt", HELLO);
    let outcome = bed.run();
    let attributes = outcome.records()[0].data();
    assert!(attributes.starts_with(format!("1 3 {}\0", path.display()).as_bytes()));
    assert!(attributes.ends_with(b" A A C\0\0\x000\0"));
    let mut expected = b"\0\0\0\x051 1 0".to_vec();
    expected.extend_from_slice(&u32::try_from(attributes.len()).unwrap().to_be_bytes());
    expected.extend_from_slice(&attributes);
    expected.extend_from_slice(b"\xff\xff\xff\xff\0\0\0\x061 2 15\0\0\0\x0fHello, Bacula!\n\xff\xff\xff\xff");
    expected
        .extend_from_slice(b"\0\0\0\x051 3 0\0\0\0\x10\x9d\x61\xaa\xd3\0\xb5\x69\xbb\xd6\xc0\xfa\xc3\xfb\xd1\x0d\x74");
    expected.extend_from_slice(b"\xff\xff\xff\xff");
    assert_eq!(outcome.sink.wire, expected);
}

#[test]
fn every_type_has_its_records() {
    let bed = Bed::new("M");
    bed.file("empty", b"");
    fs::set_permissions(bed.file("empty600", b""), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("a target", bed.path("link")).unwrap();
    fs::create_dir(bed.path("dir")).unwrap();
    support::fifo(&bed.path("fifo"));
    let _listener = UnixListener::bind(bed.path("socket")).unwrap();
    let outcome = bed.run();
    let type_of = |name: &str| outcome.of(&bed.name(name))[0].attributes().file_type().unwrap();

    assert_eq!(type_of("empty"), FileType::EmptyFile);
    assert_eq!(type_of("empty600"), FileType::Regular);
    for name in ["empty", "empty600"] {
        let records = outcome.of(&bed.name(name));
        assert_eq!(kinds(&records[1..]), [(3, 0, vec![16])], "{name}");
        assert_eq!(hex(&records[1].data()), NOTHING_MD5);
    }
    assert_eq!(type_of("link"), FileType::Symlink);
    assert_eq!(outcome.of(&bed.name("link"))[0].attributes().link, b"a target");
    assert_eq!(type_of("fifo"), FileType::Special);
    assert_eq!(type_of("dir/"), FileType::Directory);
    for name in ["link", "fifo", "dir/"] {
        assert_eq!(outcome.streams(&bed.name(name)), [1], "{name}");
    }
    assert_eq!(outcome.progress.files(), 6);
    assert_eq!(outcome.texts(MessageType::Skipped), [format!("     Socket file skipped: {}\n", bed.name("socket"))]);
}

#[test]
fn names_of_any_bytes_are_saved() {
    let bed = Bed::new("M");
    bed.raw_file(b"new\nline \xff", b"x");
    let records = bed.run().records();
    let name = records[0].attributes().name.to_vec();
    assert!(name.ends_with(b"/new\nline \xff"));
}

#[test]
fn a_large_file_is_one_message_for_each_block() {
    let bed = Bed::new("M");
    let data = noise(1, 3 * 65_536 + 5);
    bed.file("large", &data);
    let outcome = bed.run();
    let records = outcome.of(&bed.name("large"));
    assert_eq!(kinds(&records[1..2]), [(2, 196_613, vec![65_536, 65_536, 65_536, 5])]);
    assert_eq!(records[1].data(), data);

    let mut bed = bed;
    bed.plan.network_buffer = 32_768;
    let records = bed.again().of(&bed.name("large"));
    assert_eq!(records[1].messages.iter().map(Vec::len).max(), Some(32_768));
    assert_eq!(records[1].data(), data);
}

#[test]
fn a_file_of_exactly_one_block_has_one_data_message() {
    let bed = Bed::new("0");
    bed.file("block", &vec![7; 65_536]);
    let outcome = bed.run();
    assert_eq!(kinds(&outcome.of(&bed.name("block"))[1..]), [(2, 65_536, vec![65_536])]);
}

#[test]
fn each_kind_of_digest_has_its_stream() {
    let kinds = [
        ("M", 3, HELLO_MD5),
        ("S", 10, "c5060b62ef2d131242144df49e484e063d9aa1b9"),
        ("S2", 17, "5c4e8258afa022f9c7e5d3d1fb3905b95d43a61d48daa1e94f9e354e387a86a5"),
        ("S5", 39, "c7ae58c933d142ec"),
        ("S7", 41, "fac0b2449d777006525069b187a16877"),
        // Of several digests, the first in a fixed order is used.
        ("S2MS7", 3, HELLO_MD5),
    ];
    for (letters, stream, digest) in kinds {
        let bed = Bed::new(letters);
        bed.file("f", HELLO);
        let records = bed.run().of(&bed.name("f"));
        assert_eq!(records.len(), 3, "{letters}");
        assert_eq!((records[2].stream, hex(&records[2].data())), (stream, digest.to_owned()), "{letters}");
    }
    let bed = Bed::new("0");
    bed.file("f", HELLO);
    assert_eq!(bed.run().streams(&bed.name("f")), [1, 2]);
}

#[test]
fn hard_links_repeat_the_digest_and_name_the_first() {
    let bed = Bed::new("M");
    let first = bed.file("d/one", b"hardlinked data\n");
    fs::hard_link(&first, bed.path("d/two")).unwrap();
    fs::hard_link(&first, bed.path("d/three")).unwrap();
    let records = bed.run().records();
    let attributes: Vec<_> = records.iter().filter(|record| record.stream == 1).collect();
    let (base, later) = (attributes[0], &attributes[1..3]);
    assert_eq!(base.attributes().lstat.stat.nlink, 3);
    for link in later {
        assert_eq!(link.attributes().file_type(), Some(FileType::HardLink));
        assert_eq!(link.attributes().link, base.attributes().name);
        assert_eq!(i64::from(link.attributes().lstat.link_fi), base.file_index);
        let streams: Vec<&Record> = records.iter().filter(|record| record.file_index == link.file_index).collect();
        assert_eq!(streams.iter().map(|record| record.stream).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(hex(&streams[1].data()), "f06ecbc5d66c95c936a65324009db485");
    }
}

#[test]
fn without_hard_link_handling_each_name_is_a_file() {
    let bed = Bed::new("MH");
    let first = bed.file("one", HELLO);
    fs::hard_link(&first, bed.path("two")).unwrap();
    let outcome = bed.run();
    for name in ["one", "two"] {
        let records = outcome.of(&bed.name(name));
        assert_eq!(records[0].attributes().lstat.link_fi, 0);
        assert_eq!(records[1].data(), HELLO);
    }
}

#[test]
fn a_hard_link_with_an_excluded_first_name_has_its_data() {
    let bed = Bed::with_lines(&["I", "O Me", "W *.excluded", "N", "O M", "N", "F @", "N", "N"]);
    let first = bed.file("a.excluded", HELLO);
    for n in 0..5 {
        fs::hard_link(&first, bed.path(&format!("b{n}"))).unwrap();
        fs::hard_link(&first, bed.path(&format!("b{n}.excluded"))).unwrap();
    }
    let records = bed.run().records();
    let data: Vec<&Record> = records.iter().filter(|record| record.stream == 2).collect();
    assert_eq!(data.len(), 1);
    let fi = data[0].file_index;
    let links = records.iter().filter(|record| record.stream == 1 && record.attributes().lstat.link_fi != 0);
    assert!(links.clone().all(|record| i64::from(record.attributes().lstat.link_fi) == fi));
    assert_eq!(links.count(), 4);
}

#[test]
fn strip_path_shortens_names_and_the_links_of_hard_links() {
    let bed = Bed::new("MP1:");
    let first = bed.file("d/one", HELLO);
    fs::hard_link(&first, bed.path("d/two")).unwrap();
    symlink("/some/where/else", bed.path("d/sym")).unwrap();
    let root = bed.directory.path().to_str().unwrap().to_owned();
    let short = root.splitn(3, '/').nth(2).map(|rest| format!("/{rest}")).unwrap_or(root);
    let records = bed.run().records();
    let names: Vec<String> = records.iter().filter(|record| record.stream == 1).map(Record::name).collect();
    for name in ["/d/one", "/d/two", "/d/sym", "/d/"] {
        assert!(names.contains(&format!("{short}{name}")), "{name} not in {names:?}");
    }
    for record in records.iter().filter(|record| record.stream == 1) {
        match record.attributes().file_type().unwrap() {
            FileType::HardLink => assert!(record.attributes().link.starts_with(short.as_bytes())),
            FileType::Symlink => assert_eq!(record.attributes().link, b"/some/where/else"),
            _ => {}
        }
    }
}

#[test]
fn compressed_streams_decompress_to_the_file() {
    let data = [noise(3, 70_000), vec![b'a'; 100_000], HELLO.to_vec()].concat();
    let zstd = ["Zr", "Zs", "Zu", "Zt"].map(|letters| (letters, 29, false));
    let others = [("Z6", 4, false), ("Z1s", 7, true), ("Zo", 29, false), ("Zos", 30, true)];
    for (letters, stream, sparse) in others.into_iter().chain(zstd) {
        let bed = Bed::new(&format!("M{letters}"));
        bed.file("f", &data);
        let outcome = bed.run();
        let records = outcome.of(&bed.name("f"));
        assert_eq!(records[0].attributes().lstat.data_stream.number(), stream, "{letters}");
        assert_eq!((records[1].stream, records[1].size), (stream, 170_015));
        let mut plain = Vec::new();
        let mut decompressor = fd_compress::Decompressor::new(1 << 20);
        for message in &records[1].messages {
            let body = if sparse {
                let (address, body) = message.split_at(8);
                assert_eq!(u64::from_be_bytes(address.try_into().unwrap()), plain.len() as u64);
                body
            } else {
                message
            };
            if stream == 4 || stream == 7 {
                decompressor.zlib(body, &mut plain).unwrap();
            } else {
                decompressor.with_header(body, &mut plain).unwrap();
            }
        }
        assert_eq!(plain, data, "{letters}");
        let sent: usize = records[1].messages.iter().map(Vec::len).sum();
        assert_eq!(outcome.progress.job_bytes(), sent as u64);
        assert_eq!(outcome.progress.read_bytes(), data.len() as u64);
    }
}

#[test]
fn lines_of_saved_files_are_only_built_if_the_log_takes_them() {
    let mut bed = Bed::new("M");
    bed.file("f", HELLO);
    symlink("f", bed.path("s")).unwrap();
    assert!(bed.run().messages.is_empty());
    bed.wants_saved = true;
    let outcome = bed.again();
    let lines = outcome.texts(MessageType::Saved);
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().any(|line| line.starts_with("-rw") && line.ends_with(&format!("  {}\n", bed.name("f")))));
    assert!(lines.iter().any(|line| line.ends_with(&format!("  {} -> f\n", bed.name("s")))));
    assert!(lines[2].starts_with('d') && !lines[2].ends_with("/\n"));
}

#[test]
fn acls_and_extended_attributes_come_between_data_and_digest() {
    let bed = Bed::new("MAX");
    let path = bed.file("f", HELLO);
    if rustix::fs::setxattr(&path, "user.one", b"value1", rustix::fs::XattrFlags::empty()).is_err() {
        return skip::test("this file system has no extended attributes");
    }
    let outcome = bed.run();
    assert_eq!(outcome.streams(&bed.name("f")), [1, 2, 1998, 3]);
    let payload = outcome.of(&bed.name("f"))[2].data();
    assert_eq!(hex(&payload), "005c588400000008757365722e6f6e650000000676616c756531");
    assert_eq!(outcome.progress.job_bytes(), 15 + payload.len() as u64);
}

#[test]
fn comm_line_compression_changes_frames_only() {
    let mut bed = Bed::new("MK");
    bed.file("text", &b"compressible ".repeat(20_000));
    bed.file("noise", &noise(5, 150_000));
    // The first backup changes access times, which may show a second later.
    assert!(bed.run().result.is_ok());
    let plain = bed.again();
    bed.plan.comm_compression = true;
    let compressed = bed.again();
    assert_eq!(plain.records(), compressed.records());
    assert!(compressed.sink.wire.len() < plain.sink.wire.len() - 200_000);
    assert_eq!(compressed.sink.count.plain, plain.sink.count.plain);
    assert!(compressed.sink.count.sent < plain.sink.count.sent);
    assert_eq!(compressed.progress.job_bytes(), plain.progress.job_bytes());
}

/// What does not compress round it (attributes, digests) and between it (noise) says nothing about
/// the data of small files.
#[test]
fn the_data_of_small_files_is_compressed_every_time() {
    for len in [400, 900] {
        let mut bed = Bed::new("S");
        bed.plan.comm_compression = true;
        let words: Vec<u8> = b"The quick brown fox, 42 lazy dogs. ".iter().copied().cycle().take(len).collect();
        for n in 0..300 {
            bed.file(&format!("{n} words"), &words);
            if n % 3 == 0 {
                bed.file(&format!("{n} noise"), &noise(n, len));
            }
        }
        let outcome = bed.run();
        assert!(outcome.result.is_ok());
        let saved = outcome.sink.count.plain - outcome.sink.count.sent;
        let compressed = 300 * (i64::try_from(len).unwrap() - 100);
        assert!(saved >= compressed, "{len}: {saved} bytes of {compressed}");
    }
}

#[test]
fn a_resumed_job_continues_the_file_indexes() {
    let mut bed = Bed::new("M");
    bed.file("f", HELLO);
    bed.plan.files_before = 41;
    bed.progress.set_files(41);
    let outcome = bed.run();
    assert_eq!(outcome.records()[0].file_index, 42);
    assert_eq!(outcome.progress.files(), 43);
}

#[test]
fn a_command_of_a_missing_plugin_is_fatal() {
    let bed = Bed::with_lines(&["I", "O M", "N", "F @", "P bpipe:/x:cat", "N", "N"]);
    bed.file("f", HELLO);
    let outcome = bed.run_with(Collector::default());
    assert!(outcome.result.is_err());
    assert_eq!(
        outcome.texts(MessageType::Fatal),
        ["fd_plugins.c:664 Command plugin \"bpipe:/x:cat\" requested, but is not loaded.\n"]
    );
}

/// Without the plugin of its Options, a file is not backed up properly (reference 07 §5.7).
#[test]
fn a_missing_plugin_of_the_options_ends_the_job_after_the_file() {
    let lines = ["I", "O M", "W *.none", "N", "O M", "G rot13", "N", "F @", "N", "N"];
    let not_loaded = "fd_plugins.c:584 Command plugin \"rot13\" requested, but is not loaded.\n";
    let not_found = "fd_plugins.c:630 Options plugin \"rot13\" not found.\n";
    let bed = Bed::with_lines(&lines);
    for name in ["a", "b", "c"] {
        bed.file(name, HELLO);
    }
    let outcome = bed.run_with(Collector::default());
    assert!(outcome.result.is_err());
    assert_eq!(outcome.texts(MessageType::Fatal), [not_loaded, not_found]);
    assert_eq!(outcome.sink.records().iter().filter(|record| record.stream == 1).count(), 1);
    assert_eq!(outcome.progress.files(), 1);
    let bed = Bed::with_lines(&lines);
    fs::create_dir(bed.path("directory")).unwrap();
    assert!(bed.run_with(Collector::default()).result.is_ok(), "nothing for a plugin");
}
