//! Files of plugins: their records, options, data, and what goes wrong (reference 07 §5, §6).

use std::fs;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use fd_compress::Decompressor;
use fd_messages::MessageType;
use fd_plugins::{
    Change, Event, FileEvent, FileSetChange, IoDone, MetadataPacket, Offers, PluginObject, SavePacket, Status, Value,
    Variable,
};
use fd_records::{ContentCipher, DigestKind, FileType, MetadataKind, Stat};
use fd_walk::{Purpose, WalkSettings};

use super::accurate::{BASE, CHANGES, listed, stat_of};
use super::fake::{Bare, Fake, FakeFile, Script, job_plugins};
use super::protect::protection;
use super::support::{Bed, Collector, Log, Outcome, Record};
use crate::shared::schedule::Schedule;
use crate::{AccurateLevel, AccurateList, BackupError, BackupPlan, EstimatePlan, EstimateTotals, estimate};

const COMMAND: &str = "tp:mode=full:arg two";

/// A bed with one plugin command, and these options.
fn bed(letters: &str) -> Bed {
    Bed::with_lines(&["I", &format!("O {letters}"), "N", &format!("P {COMMAND}"), "N"])
}

/// A backup of one plugin command.
fn backup(letters: &str, plugin: Fake) -> (Outcome, Vec<String>) {
    let mut bed = bed(letters);
    let script = Arc::clone(&plugin.script);
    bed.plan.plugins = job_plugins([plugin]);
    (bed.run(), calls(&script))
}

fn calls(script: &Mutex<Script>) -> Vec<String> {
    script.lock().unwrap().calls.clone()
}

fn summary(records: &[Record]) -> Vec<(i64, u32)> {
    records.iter().map(|record| (record.file_index, record.stream)).collect()
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Makes the job one that has a list with these names.
fn with_list(bed: &mut Bed, level: AccurateLevel, names: &[&str]) {
    let mut list = AccurateList::new(level, names.len() as u64, &bed.plan.fileset);
    let stat = Stat { size: 10, mtime: 5, ctime: 5, mode: 0o100_644, nlink: 1, ..Stat::default() };
    for name in names {
        let mode = if name.ends_with('/') { 0o40_755 } else { stat.mode };
        list.add(&listed(name, Stat { mode, ..stat }, "nVdV36yYdCA1NqA50wWznw", 0));
    }
    list.complete();
    bed.plan.walk.incremental = !level.full;
    bed.plan.accurate = Some(Arc::new(list));
}

/// Names and types of the attribute records.
fn recorded(outcome: &Outcome) -> Vec<(String, u16)> {
    let records = outcome.records();
    let attributes = records.iter().filter(|record| [1, 37].contains(&record.stream));
    attributes.map(|record| (record.name(), record.attributes().type_code)).collect()
}

/// Names of the records of this type.
fn recorded_as(outcome: &Outcome, file_type: FileType) -> Vec<String> {
    let records = recorded(outcome).into_iter().filter(|(_, type_code)| *type_code == file_type.code());
    records.map(|(name, _)| name).collect()
}

/// The dump of reference 07 §5.12, with another command and other times.
#[test]
fn an_object_and_a_file_are_the_records_of_the_stock_daemon() {
    const OBJECT: &[u8] = b"# Plugin configuration file\n# Version 1\nOptPrompt=\"Restore command to use\"\n\
        restore_command=@STR@\n\n";
    let files = [
        FakeFile::object("RestoreOptions", FileType::PluginConfig, OBJECT),
        FakeFile::regular("/x/y/s.nosave", b"strip\n"),
    ];
    let (outcome, calls) = backup("M", Fake::with_files(files));
    let records = outcome.records();
    let plain: Vec<String> = records
        .iter()
        .map(|record| {
            let Record { file_index, stream, size, messages } = record;
            format!("{file_index} {stream} {size} {}", text(&messages.concat()))
        })
        .collect();
    let expected = [
        "1 26 0 1 1 1 tp:mode=full:arg two\\x00",
        "1 28 0 1 27 0 98 98 0 tp:mode=full:arg two\\x00RestoreOptions\\x00# Plugin configuration file\\n# Version 1\\n\
         OptPrompt=\\\"Restore command to use\\\"\\nrestore_command=@STR@\\n\\n\\x00",
        "1 26 0 1 0",
        "2 26 0 2 1 1 tp:mode=full:arg two\\x00",
        "2 1 0 2 3 /x/y/s.nosave\\x00A A IHA B A A A -B BAA B B B B A A C\\x00\\x00\\x000\\x00",
        "2 2 -1 strip\\n",
        "2 3 0 s\\xfe\\xc05\\xad\\xa2\\xd5@~E\\x1eF?\\x1bm\\xa4",
        "2 26 0 2 0",
    ];
    assert_eq!(plain, expected);
    assert_eq!((outcome.progress.files(), outcome.progress.job_bytes(), outcome.progress.read_bytes()), (2, 6, 6));
    assert_eq!(
        calls,
        [
            "event 9",
            "start",
            "stream",
            "end",
            "start",
            "stream",
            "open /x/y/s.nosave 0 0",
            "read 65536",
            "read 65536",
            "close",
            "acl",
            "xattr",
            "end"
        ]
    );
}

/// The stock daemon warns that it can't find it on the disk.
#[test]
fn the_file_of_a_plugin_is_not_looked_at_for_changes() {
    let (outcome, _) = backup("Mc", Fake::with_files([FakeFile::regular("/not/on/the/disk", b"data")]));
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn large_objects_are_compressed_and_objects_of_the_catalog_have_a_form_of_their_own() {
    let description = FakeFile::object("", FileType::PluginObject, b"").with(|object| {
        object.packet.object.name = None;
        object.packet.plugin_object = PluginObject {
            path: b"/@tp/with space/vm".into(),
            category: b"Virtual Machine".into(),
            object_type: b"VMWare".into(),
            name: b"vm 1".into(),
            source: b"src".into(),
            size: 12_345,
            count: 7,
            ..PluginObject::default()
        };
    });
    let files = [
        FakeFile::object("obj big", FileType::SecurityObject, &[b'x'; 5000]).with(|file| file.packet.object.index = 4),
        FakeFile::object("short", FileType::SecurityObject, &[b'x'; 1000]),
        description,
    ];
    let (outcome, _) = backup("M", Fake::with_files(files));
    let records = outcome.records();
    assert_eq!(summary(&records)[..3], [(1, 26), (1, 28), (1, 26)]);
    let object = records[1].data();
    let texts: Vec<&[u8]> = object.splitn(3, |byte| *byte == 0).collect();
    let packed = texts[2].strip_suffix(b"\0").unwrap();
    assert_eq!(text(texts[0]), format!("1 30 4 {} 5000 1 {COMMAND}", packed.len()));
    assert_eq!((texts[1], &packed[..2]), (b"obj big".as_slice(), b"\x78\xda".as_slice()));
    let mut plain = Vec::new();
    Decompressor::default().zlib(packed, &mut plain).unwrap();
    assert_eq!(plain, [b'x'; 5000]);
    assert!(records[4].data().starts_with(b"2 30 0 1000 1000 0 "));
    assert_eq!(
        text(&records[7].data()),
        "/@tp/with\\x01space/vm tp:mode=full:arg\\x01two Virtual\\x01Machine VMWare vm\\x011 src  12345 U 7\\x00"
    );
    assert_eq!(outcome.progress.files(), 3);
}

#[test]
fn every_type_of_a_packet_is_saved_or_reported_as_the_walk_does() {
    let not_saved = |type_code: i32| {
        let file = FakeFile::regular("/f", b"x").with(|file| {
            file.packet.file_type = type_code;
        });
        let (outcome, calls) = backup("M", Fake::with_files([file]));
        assert_eq!(calls, ["event 9", "start", "end"], "{type_code}");
        assert!(outcome.records().is_empty(), "{type_code}");
        (outcome.messages, outcome.progress.errors())
    };
    let message = |kind, text: &str| vec![(kind, text.to_owned())];
    let skipped = message(MessageType::Skipped, "     Unchanged file skipped: /f\n");
    for (code, expected) in [
        (7, (message(MessageType::NotSaved, "     Could not access \"/f\": ERR=Success\n"), 1)),
        (8, (message(MessageType::NotSaved, "     Could not follow link \"/f\": ERR=Success\n"), 1)),
        (9, (message(MessageType::NotSaved, "     Could not stat \"/f\": ERR=Success\n"), 1)),
        (10, (skipped.clone(), 0)),
        (11, (skipped, 0)),
        (12, (message(MessageType::NotSaved, "     Archive file not saved: /f\n"), 0)),
        (15, (message(MessageType::NotSaved, "     Could not open directory \"/f\": ERR=Success\n"), 1)),
        (18, (Vec::new(), 0)),
        (22, (message(MessageType::NotSaved, "     Unknown file type 22; not saved: /f\n"), 1)),
        (28, (message(MessageType::NotSaved, "     Unknown file type 28; not saved: tp:mode=full:arg two\n"), 1)),
        (99, (message(MessageType::NotSaved, "     Unknown file type 99; not saved: /f\n"), 1)),
        (-1, (message(MessageType::NotSaved, "     Unknown file type -1; not saved: /f\n"), 1)),
    ] {
        assert_eq!(not_saved(code), expected, "{code}");
    }
    let saved = |type_code: u16| {
        let file = FakeFile::regular("/f", b"").with(|file| {
            file.packet.file_type = type_code.into();
            file.packet.no_read = true;
        });
        let (outcome, _) = backup("M", Fake::with_files([file]));
        let records = outcome.records();
        (records.iter().map(|record| record.stream).collect::<Vec<_>>(), records[1].attributes().type_code)
    };
    for (code, streams, written) in [
        (1, vec![26, 1, 26], 1),
        (2, vec![26, 1, 3, 26], 2),
        (4, vec![26, 1, 26], 4),
        (5, vec![26, 1, 26], 5),
        (6, vec![26, 1, 26], 6),
        (13, vec![26, 1, 26], 5),
        (14, vec![26, 1, 26], 5),
        // The plugin can't prevent that these are read.
        (16, vec![26, 1, 2, 3, 26], 16),
        (17, vec![26, 1, 2, 26], 17),
        (19, vec![26, 1, 26], 5),
        (20, vec![26, 1, 26], 20),
        (23, vec![26, 1, 26], 23),
    ] {
        assert_eq!(saved(code), (streams, written), "{code}");
    }
}

#[test]
fn names_links_deltas_and_updates_come_from_the_packet() {
    let directory = FakeFile::new("/@tp/dir", FileType::Directory, b"").with(|file| {
        file.packet.link = Some(b"/@tp/dir/".into());
        file.packet.no_read = true;
        file.packet.link_fi = 7;
    });
    let update = FakeFile::regular("/@tp/u", b"").with(|file| {
        file.packet.stat_update = true;
        file.packet.no_read = true;
    });
    let delta = FakeFile::regular("/@tp/d", b"patch").with(|file| {
        file.packet.flags = SavePacket::DELTA;
        file.packet.delta_seq = 4;
        file.packet.portable = false;
    });
    let plugin = Fake::with_files([directory, update, delta]);
    plugin.script.lock().unwrap().stream = Some(26 + (1 << 22));
    let (outcome, _) = backup("M", plugin);
    let records = outcome.records();
    let start = 26 + (1 << 22);
    assert_eq!(
        summary(&records),
        [
            (1, start),
            (1, 1),
            (1, 26),
            (2, start),
            (2, 37),
            (2, 3),
            (2, 26),
            (3, start),
            (3, 1),
            (3, 2),
            (3, 3),
            (3, 26)
        ]
    );
    assert_eq!((records[1].name(), records[1].attributes().lstat.link_fi), ("/@tp/dir/".to_owned(), 7));
    let attributes = records[4].attributes();
    assert_eq!((attributes.attr_ex, attributes.delta_seq), (b"<NULL>".as_slice(), 1));
    assert_eq!(records[8].attributes().delta_seq, 5);
    assert_eq!(text(&records[7].data()), "3 1 0 tp:mode=full:arg two\\x00");
}

#[test]
fn the_link_of_a_directory_is_its_name_with_a_slash() {
    let directory = FakeFile::new("/@tp/d", FileType::Directory, b"").with(|file| {
        file.packet.link = Some(b"/@tp/dir".into());
        file.packet.no_read = true;
    });
    let (outcome, _) = backup("M", Fake::with_files([directory]));
    assert_eq!(outcome.records()[1].name(), "/@tp/dir/");
}

#[test]
fn data_with_addresses_holes_and_compression_has_the_stock_daemon_s_streams() {
    let blocks = |blocks: &[(i64, &[u8])]| blocks.iter().map(|(at, data)| (*at, data.to_vec())).collect();
    let offsets = FakeFile::regular("/o", b"").with(|file| {
        file.packet.flags = SavePacket::OFFSETS;
        file.blocks = blocks(&[(1000, b"0123"), (-1, b"4")]);
    });
    let sparse = FakeFile::regular("/s", b"").with(|file| {
        file.packet.flags = SavePacket::SPARSE;
        file.packet.stat.size = 3 * 65_528;
        file.blocks = [1, 0, 0].map(|byte| (0, vec![byte; 65_528])).into();
    });
    let plain = FakeFile::regular("/p", &vec![7; 200_000]);
    // The option of the FileSet has no effect on a plugin's file.
    let (outcome, calls) = backup("s", Fake::with_files([offsets.clone(), sparse, plain.clone()]));
    let records = outcome.records();
    let data: Vec<&Record> = records.iter().filter(|record| ![1, 26].contains(&record.stream)).collect();
    assert_eq!(data.iter().map(|record| record.stream).collect::<Vec<_>>(), [2 | 1 << 26, 6, 2]);
    assert_eq!(data[0].messages, [b"\0\0\0\0\0\0\x03\xe80123".to_vec(), b"\xff\xff\xff\xff\xff\xff\xff\xff4".to_vec()]);
    assert_eq!(data[1].messages.iter().map(Vec::len).collect::<Vec<_>>(), [65_536, 65_536]);
    assert!(data[1].messages[1].starts_with(&(2 * 65_528_u64).to_be_bytes()), "the last block is sent");
    assert_eq!(data[2].messages.iter().map(Vec::len).collect::<Vec<_>>(), [65_536, 65_536, 65_536, 3392]);
    assert_eq!(records[1].attributes().lstat.data_stream.number(), 2, "without the bit of the addresses");
    for read in ["read 65536", "read 65528"] {
        assert!(calls.contains(&read.to_owned()), "{calls:?}");
    }
    assert_eq!(outcome.progress.job_bytes(), 5 + 16 + 2 * 65_536 + 200_000);

    let (outcome, _) = backup("MZ6", Fake::with_files([offsets, plain]));
    let streams: Vec<u32> = outcome.records().iter().map(|record| record.stream).collect();
    assert_eq!(streams, [26, 1, 4 | 1 << 26, 3, 26, 26, 1, 4, 3, 26]);
}

#[test]
fn files_that_can_t_be_opened_or_read_are_reported_and_the_next_one_is_saved() {
    let closed = FakeFile::regular("/closed", b"x").with(|file| file.open_error = Some(2));
    let broken = FakeFile::regular("/broken", b"some").with(|file| file.read_error = Some(5));
    let (outcome, _) = backup("M", Fake::with_files([closed, broken, FakeFile::regular("/good", b"x")]));
    let expected = [(1, 26), (1, 1), (1, 26), (2, 26), (2, 1), (2, 2), (2, 3), (2, 26)];
    assert_eq!(summary(&outcome.records())[..8], expected);
    assert_eq!(
        outcome.messages,
        [
            (MessageType::NotSaved, "     Cannot open \"/closed\": ERR=No such file or directory.\n".to_owned()),
            (MessageType::Error, "Read error on file /broken. ERR=Input/output error\n".to_owned())
        ]
    );
    assert_eq!((outcome.progress.files(), outcome.progress.errors()), (3, 3));
}

#[test]
fn metadata_events_and_attributes_of_the_plugin_stand_at_their_places() {
    let packet =
        |kind, data: &[u8]| MetadataPacket { total_size: 9, total_count: 2, kind, index: 0, data: data.into() };
    let file = FakeFile::regular("/f", b"data")
        .with(|file| {
            file.xacl = [(MetadataKind::Acl, b"acl".to_vec()), (MetadataKind::Xattr, b"xattr".to_vec())].into();
        })
        .with_metadata(vec![packet(0, b"blob"), packet(1, b"mail")]);
    let plugin = Fake::with_files([file, FakeFile::regular("/g", b"x")]).hooked(|call, host| {
        let event = |description: &str| FileEvent {
            file_index: 0,
            kind: b'a',
            severity: 100,
            source: b"some source".into(),
            description: description.into(),
        };
        if call == "close" || call == "end" {
            assert_eq!(host.add_file_event(event(call)), Status::Ok);
        }
    });
    let (outcome, _) = backup("M", plugin);
    let records = outcome.records();
    let streams: Vec<u32> = records.iter().map(|record| record.stream).collect();
    // An event stands with its own file only.
    assert_eq!(streams, [26, 1, 35, 36, 2, 1020, 1988, 3, 38, 38, 26, 26, 1, 2, 3, 38, 38, 26]);
    assert_eq!((records[2].data().len(), records[5].data()), (28, b"acl".to_vec()));
    assert_eq!(text(&records[8].data()), "a 100 some\\x01source close 0");
    assert_eq!(outcome.progress.job_bytes(), 4 + 3 + 5 + 1);
}

#[test]
fn metadata_that_can_t_be_saved_costs_itself_or_ends_the_job() {
    let packet = |kind, len| MetadataPacket { kind, data: vec![0; len], ..MetadataPacket::default() };
    let long = FakeFile::regular("/f", b"data").with_metadata(vec![packet(0, 3), packet(0, 2_999_977)]);
    let large = FakeFile::regular("/large", b"data").with_metadata(vec![packet(0, 1_000_000)]);
    let none = FakeFile::regular("/none", b"data").with_metadata(Vec::new());
    let (outcome, _) = backup("M", Fake::with_files([long, large, none, FakeFile::regular("/g", b"x")]));
    let records = summary(&outcome.records());
    assert_eq!(records[..6], [(1, 26), (1, 1), (1, 35), (1, 2), (1, 3), (1, 26)]);
    for index in [2, 3, 4] {
        let of_file: Vec<u32> = records.iter().filter(|(file, _)| *file == index).map(|(_, stream)| *stream).collect();
        assert_eq!(of_file, [26, 1, 2, 3, 26], "its data is there");
    }
    assert_eq!(
        outcome.texts(MessageType::Error),
        [
            "backup.c:261 Metadata size (3000001) is bigger then currently supported one (3MB)\n",
            "fd_plugins.c:1315 Failed to backup metadata for plugin: \"tp-fd.so\" fname: /f\n",
            "Record of \"/large\" can't be sent: packet of 1000024 bytes, at most 1000000 are allowed\n",
            "fd_plugins.c:1315 Failed to backup metadata for plugin: \"tp-fd.so\" fname: /large\n",
            "fd_plugins.c:1315 Failed to backup metadata for plugin: \"tp-fd.so\" fname: /none\n"
        ]
    );
    let (outcome, _) = backup("M", Fake::with_files([FakeFile::regular("/f", b"").with_metadata(vec![packet(2, 0)])]));
    assert!(matches!(outcome.result, Err(BackupError::Fatal(_))));
    assert_eq!(outcome.texts(MessageType::Fatal), ["backup.c:291 Invalid metadata type: 2\n"]);
    assert_eq!(
        outcome.texts(MessageType::Error),
        ["fd_plugins.c:1315 Failed to backup metadata for plugin: \"tp-fd.so\" fname: /f\n"]
    );
    assert_eq!(outcome.progress.files(), 1, "what was sent counts");
}

/// As with the stock daemon, whose peers look at the length of what comes over the line.
#[test]
fn metadata_may_be_longer_than_a_frame_where_the_line_is_compressed() {
    let packet = MetadataPacket { data: vec![b'm'; 2_999_976], ..MetadataPacket::default() };
    let mut bed = bed("M");
    bed.plan.comm_compression = true;
    bed.plan.plugins = job_plugins([Fake::with_files([FakeFile::regular("/f", b"data").with_metadata(vec![packet])])]);
    let outcome = bed.run();
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
    let records = outcome.records();
    assert_eq!(summary(&records), [(1, 26), (1, 1), (1, 35), (1, 2), (1, 3), (1, 26)]);
    assert_eq!(records[2].data().len(), 3_000_000);
}

#[test]
fn a_bad_packet_ends_the_job_with_the_stock_daemon_s_words() {
    let cases: [(FakeFile, &str); 3] = [
        (FakeFile::regular("/f", b"").with(|file| file.packet.file_type = 0), "724 Command plugin \"CMD\": no type"),
        (
            FakeFile::object("", FileType::PluginConfig, b"").with(|file| file.packet.object.name = None),
            "737 Command plugin \"CMD\": no object_name",
        ),
        (FakeFile::regular("", b"").with(|file| file.packet.name = None), "763 Command plugin \"CMD\": no fname"),
    ];
    for (file, expected) in cases {
        let (outcome, _) = backup("M", Fake::with_files([file]));
        let expected = format!("fd_plugins.c:{} in startBackupFile packet.\n", expected.replace("CMD", COMMAND));
        assert_eq!(outcome.texts(MessageType::Fatal), [expected]);
        assert!(outcome.result.is_err());
    }
}

#[test]
fn an_empty_object_is_not_saved_and_the_job_goes_on() {
    for file_type in [FileType::RestoreFirst, FileType::PluginConfig, FileType::SecurityObject] {
        let files = [FakeFile::object("none", file_type, b""), FakeFile::object("some", file_type, b"x")];
        let (outcome, calls) = backup("M", Fake::with_files(files));
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        let expected = format!("Command plugin \"{COMMAND}\": object \"none\" is empty and is not saved.\n");
        assert_eq!(outcome.messages, [(MessageType::Error, expected)]);
        assert_eq!(summary(&outcome.records()), [(1, 26), (1, 28), (1, 26)]);
        assert_eq!(outcome.progress.files(), 1);
        assert_eq!(calls.iter().filter(|call| *call == "end").count(), 2, "{calls:?}");
    }
}

/// A restore would put them over other files, or nowhere.
#[test]
fn a_file_whose_name_leads_elsewhere_is_not_saved_and_the_job_goes_on() {
    let directory = FakeFile::new("/@tp/d", FileType::Directory, b"").with(|file| {
        file.packet.link = Some(b"/@tp/../d/".into());
        file.packet.no_read = true;
    });
    let long = format!("/@tp/{}", "x".repeat(256));
    let names = ["/@tp/../x", "/@tp/.", "/@tp//x", "x", &long, "/@tp/x\0y"];
    let files = names.map(|name| FakeFile::regular(name, b"data")).into_iter().chain([directory]);
    let (outcome, calls) = backup("M", Fake::with_files(files.chain([FakeFile::regular("/@tp/x", b"data")])));
    assert_eq!(summary(&outcome.records()), [(1, 26), (1, 1), (1, 2), (1, 3), (1, 26)]);
    let told: Vec<String> = outcome.messages.iter().map(|(_, text)| text.replace(&"x".repeat(256), "LONG")).collect();
    let expected = [
        "has a part that is . or ..: /@tp/../x",
        "has a part that is . or ..: /@tp/.",
        "has an empty part: /@tp//x",
        "is not absolute: x",
        "has a part of more than 255 bytes: /@tp/LONG",
        "has a NUL byte: /@tp/x\\x00y",
        "has a part that is . or ..: /@tp/../d/",
    ];
    let whole = |why: &str| format!("Command plugin \"{COMMAND}\": not saved, because its name {why}\n");
    assert_eq!(told, expected.map(whole));
    assert_eq!((outcome.progress.files(), outcome.progress.errors()), (1, 7));
    assert_eq!(calls.iter().filter(|call| *call == "end").count(), 8, "{calls:?}");
}

#[test]
fn a_command_whose_plugin_saves_nothing_is_refused_or_told() {
    let outcome = |command: &str, plugin: Fake| {
        let mut bed = Bed::with_lines(&["I", "O M", "N", "F @/file", "N", &format!("P {command}"), "N"]);
        bed.file("file", b"x");
        bed.plan.plugins = job_plugins([plugin]);
        let outcome = bed.run();
        assert_eq!(outcome.sink.records().len(), 3, "{command}: what stands before it is saved");
        (outcome.result.is_ok(), outcome.messages)
    };
    let files = || Fake::with_files([FakeFile::regular("/f", b"x")]);
    // The stock daemon says nothing of these three, and the job is good.
    let told = |why: &str| (true, vec![(MessageType::Error, format!("Plugin command \"tp:x\" {why}.\n"))]);
    let no_part = told("saves nothing: its plugin takes no part in this job");
    assert_eq!(outcome("tp:x", files().disabled()), no_part);
    assert_eq!(outcome("tp:x", files().offering(Offers::default())), no_part);
    let refusing = files();
    refusing.script.lock().unwrap().command = Some(Status::Error);
    assert_eq!(outcome("tp:x", refusing), told("has ended early: its plugin has failed, and does not say why"));
    assert_eq!(outcome(":x", files()), (true, Vec::new()));
    let malformed = "fd_plugins.c:464 Malformed plugin command: tp x\n".to_owned();
    assert_eq!(outcome("tp x", files()), (true, vec![(MessageType::Error, malformed)]));
    let not_found = "fd_plugins.c:802 Command plugin \"other:x\" not found.\n".to_owned();
    assert_eq!(outcome("other:x", files()), (false, vec![(MessageType::Fatal, not_found)]));
}

/// An accurate job with two plugin commands, whose list has three files of the first one.
fn accurate_commands(commands: [&str; 2], plugin: Fake) -> Outcome {
    let [one, other] = commands.map(|command| format!("P {command}"));
    let mut bed = Bed::with_lines(&["I", "O M", "N", "F @/file", "N", &one, &other, "N"]);
    bed.file("file", b"x");
    with_list(&mut bed, CHANGES, &["/@tp/a", "/@tp/b", "/@tp/c"]);
    bed.plan.plugins = job_plugins([plugin]);
    bed.run()
}

/// An empty list of a database that is down is not the list of a database that is empty.
#[test]
fn nothing_counts_as_deleted_if_a_plugin_command_is_not_run_to_its_end() {
    let file = |name: &str| FakeFile::regular(name, b"x");
    let files = || Fake::with_files([file("/@tp/a"), file("/@tp/b")]);
    let answering = |status| {
        let plugin = files();
        plugin.script.lock().unwrap().command = Some(status);
        plugin
    };
    let refusing = |status| Fake::with_files([file("/@tp/a"), file("/@tp/b").with(|b| b.refused = Some(status))]);
    let ending = |status| Fake::with_files([file("/@tp/a").with(|a| a.ended = Some(status)), file("/@tp/b")]);
    let told = |command: &str| {
        let text = "was not run to its end, so no file of earlier jobs counts as deleted.\n";
        vec![format!("Plugin command \"{command}\" {text}")]
    };
    for (what, plugin, saved) in [
        ("no part", files().disabled(), 0),
        ("no function", files().offering(Offers::default()), 0),
        ("the command fails", answering(Status::Error), 0),
        ("the command is not taken", answering(Status::Stop), 0),
        ("the second file fails", refusing(Status::Error), 1),
        // The other command gets the second one.
        ("the end of the first file fails", ending(Status::Error), 2),
    ] {
        // If that is as bad, it is not told again.
        let outcome = accurate_commands(["tp:x", "tp:y"], plugin);
        let names: Vec<String> = recorded(&outcome).into_iter().skip(1).map(|(name, _)| name).collect();
        assert_eq!(names, ["/@tp/a", "/@tp/b"][..saved], "{what}");
        assert_eq!(outcome.texts(MessageType::Warning), told("tp:x"), "{what}");
    }
    let outcome = accurate_commands(["tp x", ":x"], files());
    assert_eq!((recorded(&outcome).len(), outcome.texts(MessageType::Warning)), (1, vec![&*told("tp x")[0]]));
    // These are ends.
    for (what, plugin, deleted) in [
        ("no more files", Fake::with_files([]), vec!["/@tp/a", "/@tp/b", "/@tp/c"]),
        ("the last file", files(), vec!["/@tp/c"]),
        ("a stop instead of a file", refusing(Status::Stop), vec!["/@tp/b", "/@tp/c"]),
    ] {
        let outcome = accurate_commands(["tp:x", ":x"], plugin);
        let mut found = recorded_as(&outcome, FileType::Deleted);
        found.sort();
        assert_eq!(found, deleted, "{what}");
        assert!(outcome.messages.is_empty(), "{what}: {:?}", outcome.messages);
    }
}

#[test]
fn a_plugin_that_fails_at_the_end_of_a_file_is_told() {
    let text = format!("Plugin command \"{COMMAND}\" has ended early: its plugin has failed, and does not say why.\n");
    let files = || {
        let failing = FakeFile::regular("/f", b"x").with(|file| file.ended = Some(Status::Error));
        [FakeFile::regular("/before", b"x"), failing, FakeFile::regular("/behind", b"x")]
    };
    let (outcome, _) = backup("", Fake::with_files(files()));
    let names: Vec<String> = recorded(&outcome).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["/before", "/f"]);
    assert_eq!(outcome.messages, [(MessageType::Error, text.clone())]);
    // What it says of one file is not the reason why it ends at another one.
    let says_at = |calls: u32| {
        let mut call_of = 0;
        Fake::with_files(files()).hooked(move |call, host| {
            call_of += u32::from(call == "end");
            if call == "end" && call_of == calls {
                host.message(MessageType::Error, b"its reason\n");
            }
        })
    };
    assert_eq!(backup("", says_at(1)).0.texts(MessageType::Error), ["its reason\n", &text]);
    assert_eq!(backup("", says_at(2)).0.texts(MessageType::Error), ["its reason\n"]);
}

#[test]
fn a_plugin_s_file_is_known_by_its_stripped_name() {
    let mut bed = bed("MP1:");
    with_list(&mut bed, CHANGES, &["/saved", "/whole", "/unchanged", "/kept", "/asked", "/dir/", "/gone"]);
    let linked = |name: &str, file_type| {
        FakeFile::new(name, file_type, b"").with(|file| {
            file.packet.link.clone_from(&file.packet.name);
            file.packet.no_read = true;
        })
    };
    let directory = linked("/@tp/dir", FileType::Directory).with(|file| file.packet.stat.mode = 0o40_755);
    // Without a link its name is not stripped.
    let whole = FakeFile::regular("/whole", b"");
    let files =
        [linked("/@tp/saved", FileType::Regular), whole, linked("/@tp/unchanged", FileType::Unchanged), directory];
    bed.plan.plugins = job_plugins([Fake::with_files(files).hooked(|call, host| {
        if call == "event 9" {
            assert_eq!((host.mark_seen(b"/@tp/kept"), host.mark_seen(b"/@tp/new")), (Status::Ok, Status::Error));
            assert!(host.accurate_attributes(b"/@tp/asked").is_some());
            assert!(host.accurate_attributes(b"/@tp/new").is_none());
        }
    })]);
    let outcome = bed.run();
    let mut deleted = recorded_as(&outcome, FileType::Deleted);
    deleted.sort();
    assert_eq!(deleted, ["/asked", "/gone"]);
    let saved: Vec<String> = recorded(&outcome).into_iter().take(3).map(|(name, _)| name).collect();
    assert_eq!(saved, ["/saved", "/whole", "/dir/"]);
}

/// A record without data would hide the copy of an earlier job.
#[test]
fn a_plugin_s_file_that_can_t_be_opened_keeps_its_copy_of_an_earlier_job() {
    let run = |level: Option<AccurateLevel>| {
        let mut bed = bed("M");
        bed.plan.walk.incremental = true;
        if let Some(level) = level {
            with_list(&mut bed, level, &["/closed", "/dir/"]);
        }
        let closed =
            |name: &str, file_type| FakeFile::new(name, file_type, b"").with(|file| file.open_error = Some(13));
        let directory = closed("/dir", FileType::Directory).with(|file| file.packet.stat.mode = 0o40_755);
        let plugin = Fake::with_files([
            closed("/closed", FileType::Regular),
            closed("/new", FileType::Raw),
            FakeFile::regular("/good", b"x"),
            directory,
        ]);
        let script = Arc::clone(&plugin.script);
        bed.plan.plugins = job_plugins([plugin]);
        let outcome = bed.run();
        let told = ["/closed", "/new", "/dir"]
            .map(|name| (MessageType::NotSaved, format!("     Cannot open \"{name}\": ERR=Permission denied.\n")));
        let own: Vec<_> = outcome.messages.iter().filter(|(kind, _)| *kind == MessageType::NotSaved).cloned().collect();
        assert_eq!(own, told);
        assert_eq!(outcome.progress.errors(), 3);
        let calls = calls(&script);
        assert_eq!(calls[..6], ["event 9", "start", "stream", "open /closed 0 0", "end", "start"]);
        (outcome, calls)
    };
    let [good, directory] = [("/good", FileType::Regular), ("/dir/", FileType::Directory)]
        .map(|(name, file_type)| (name.to_owned(), file_type.code()));
    for level in [None, Some(CHANGES)] {
        let (outcome, _) = run(level);
        // The directory is more than its data.
        assert_eq!(recorded(&outcome), [good.clone(), directory.clone()], "{level:?}");
        assert_eq!(outcome.records().len(), 8, "{level:?}");
        assert_eq!(outcome.progress.files(), 2);
    }
    // The base has no copy of a new file.
    let (outcome, _) = run(Some(BASE));
    assert_eq!(recorded(&outcome)[..3], [("/new".to_owned(), FileType::Raw.code()), good, directory]);
    let mut of_base = recorded_as(&outcome, FileType::Base);
    of_base.sort();
    assert_eq!(of_base, ["/closed", "/dir/"]);
    assert_eq!(outcome.of("/new")[1].attributes().lstat.stat.ctime, 0);
}

/// As of files on the disk: accurate jobs try it again.
#[test]
fn a_plugin_s_file_that_a_full_can_t_open_has_no_change_time_and_counts_as_unread() {
    let closed = || FakeFile::regular("/closed", b"x").with(|file| file.open_error = Some(2));
    let broken = || FakeFile::regular("/broken", b"").with(|file| file.read_error = Some(5));
    let partly = || FakeFile::regular("/partly", b"some").with(|file| file.read_error = Some(5));
    for (letters, last) in [("M", FakeFile::regular("/good", b"x")), ("M", partly()), ("MZ6", partly())] {
        let (outcome, _) = backup(letters, Fake::with_files([closed(), last]));
        let records = outcome.of("/closed");
        let stat = records[1].attributes().lstat.stat;
        assert_eq!((stat.ctime, stat.mtime, records.len()), (0, 1, 3));
    }
    for letters in ["M", "MZ6"] {
        let (outcome, _) = backup(letters, Fake::with_files([closed(), broken()]));
        let text = "No file could be read: of 2 with data, no data is saved.\n";
        assert_eq!(outcome.texts(MessageType::Fatal), [text], "{letters}");
    }
    // That is no file with data.
    let directory = FakeFile::new("/dir", FileType::Directory, b"");
    for directory in
        [directory.clone().with(|file| file.open_error = Some(2)), directory.with(|file| file.read_error = Some(5))]
    {
        let (outcome, _) = backup("M", Fake::with_files([directory]));
        assert!(outcome.result.is_ok(), "{:?}", outcome.messages);
        assert_eq!(outcome.of("/dir/")[1].attributes().lstat.stat.ctime, 1);
    }
}

#[test]
fn a_plugin_that_fails_to_close_its_file_is_told() {
    let run = |closed: IoDone, says: bool| {
        let file = FakeFile::regular("/f", b"half").with(|file| file.closed = Some(closed));
        let mut told = !says;
        let plugin = Fake::with_files([file, FakeFile::regular("/g", b"x")]).hooked(move |call, host| {
            if call == "close" && !std::mem::replace(&mut told, true) {
                host.message(MessageType::Error, b"its reason\n");
            }
        });
        let (outcome, _) = backup("M", plugin);
        assert_eq!(outcome.streams("/f"), [26, 1, 2, 3, 26], "its data stays");
        outcome.messages
    };
    let text = "Plugin could not close /f: ERR=Broken pipe. Its data may not be whole.\n";
    let told = [(MessageType::Error, text.to_owned())];
    assert_eq!(run(IoDone::error(32), false), told);
    assert_eq!(run(IoDone { status: 0, ..IoDone::error(32) }, false), told);
    assert_eq!(run(IoDone { returned: Status::Ok, ..IoDone::error(32) }, false), told);
    assert_eq!(run(IoDone::error(32), true), [(MessageType::Error, "its reason\n".to_owned())]);
    // A plugin that sets nothing leaves the status as it was: -1. A program has a number.
    for good in [IoDone { returned: Status::Ok, ..IoDone::error(0) }, IoDone::bytes(5)] {
        assert!(run(good, false).is_empty());
    }
    // One failure has one message.
    let file = FakeFile::regular("/f", b"x").with(|file| {
        file.read_error = Some(5);
        file.closed = Some(IoDone::error(5));
    });
    let (outcome, _) = backup("M", Fake::with_files([file]));
    assert_eq!(outcome.texts(MessageType::Error), ["Read error on file /f. ERR=Input/output error\n"]);
}

#[test]
fn a_first_object_of_a_restore_takes_the_options_of_the_files_after_it() {
    let object = |file_type| FakeFile::object("o", file_type, b"x");
    let file = || FakeFile::regular("/f", b"data");
    let streams = |file_type| {
        let (outcome, _) = backup("MZ6", Fake::with_files([file(), object(file_type), file()]));
        outcome.records().iter().map(|record| record.stream).collect::<Vec<_>>()
    };
    assert_eq!(streams(FileType::PluginConfig)[8..], [26, 1, 4, 3, 26]);
    assert_eq!(streams(FileType::RestoreFirst)[8..], [26, 1, 2, 26]);
}

#[test]
fn files_inherit_the_options_of_the_entry_before_the_command() {
    let digest = |name: &str| {
        let lines = ["I", "O S", "WF */c", "N", "O M", "N", "F @", "N", &format!("P {COMMAND}"), "N"];
        let mut bed = Bed::with_lines(&lines);
        bed.file(name, b"x");
        bed.plan.plugins = job_plugins([Fake::with_files([FakeFile::regular("/f", b"data")])]);
        let records = bed.run().records();
        records[records.len() - 2].stream
    };
    assert_eq!((digest("c"), digest("d")), (10, 3));
}

/// Everything before a command is sent when it begins, and what it does is seen by the rest.
#[test]
fn a_command_is_run_between_what_stands_before_and_after_it() {
    for workers in [1, 4] {
        let lines = ["I", "O M", "N", "F @/a", "N", &format!("P {COMMAND}"), "N", "I", "O M", "N", "F @/b", "N"];
        let mut bed = Bed::with_lines(&lines);
        for name in 0..300 {
            bed.file(&format!("a/{name}"), b"x");
        }
        fs::create_dir(bed.path("b")).unwrap();
        let (made, files) = (bed.path("b/made"), Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&files);
        let progress = Arc::clone(&bed.progress);
        let plugin = Fake::with_files([FakeFile::regular("/f", b"data"), FakeFile::regular("/g", b"")]).hooked(
            move |call, host| {
                if call == "event 9" && !made.exists() {
                    assert_eq!(progress.files(), 301, "all is sent");
                    fs::write(&made, b"by the plugin").unwrap();
                    assert_eq!(
                        host.change_fileset(b"tp", FileSetChange::new(Change::Exclude, b"*/left out")),
                        Status::Ok
                    );
                    assert_eq!(host.change_fileset(b"tp", FileSetChange::new(Change::Plugin, b"tp:late")), Status::Ok);
                    assert_eq!(host.change_fileset(b"tp", FileSetChange::new(Change::Include, b"/etc")), Status::Error);
                }
                noted.lock().unwrap().push((call.to_owned(), host.value(Variable::FileIndex)));
            },
        );
        bed.file("b/left out", b"x");
        bed.plan.workers = workers;
        bed.plan.plugins = job_plugins([plugin]);
        let outcome = bed.run();
        assert!(outcome.of(&bed.name("b/made")).len() == 3);
        let names: Vec<String> =
            outcome.records().iter().filter(|record| record.stream == 1).map(Record::name).collect();
        assert_eq!(names[301..], ["/f", "/g", &bed.name("b/made"), &bed.name("b/")]);
        let index_of = |wanted: &str| {
            let all = files.lock().unwrap();
            all.iter().filter(|(call, _)| call == wanted).map(|(_, index)| index.clone()).collect::<Vec<_>>()
        };
        let number = |number| Some(Value::Number(number));
        assert_eq!(index_of("start"), [number(301), number(302), number(303)]);
        assert_eq!(index_of("end"), [number(302), number(303)]);
        assert_eq!(index_of("event 20"), [number(303)]);
    }
}

#[test]
fn a_plugin_s_messages_come_in_their_order_and_a_fatal_one_ends_the_job() {
    let plugin =
        Fake::with_files([FakeFile::regular("/f", b"data"), FakeFile::regular("/g", b"data")]).hooked(|call, host| {
            host.message(MessageType::Info, format!("{call}\n").as_bytes());
            if call.starts_with("open") {
                host.message(MessageType::Fatal, b"enough\n");
            }
        });
    let (outcome, calls) = backup("", plugin);
    assert!(matches!(&outcome.result, Err(BackupError::Fatal(text)) if text == "enough"), "{:?}", outcome.result);
    let called = ["event 9", "start", "stream", "open /f 0 0", "read 65536", "close", "acl", "xattr", "end"];
    assert_eq!(calls, called, "the file is ended properly");
    let told: Vec<&str> = outcome.messages.iter().map(|(_, text)| text.trim_end()).collect();
    assert_eq!(told, [&called[..4], &["enough"], &called[4..]].concat());
}

#[test]
fn a_plugin_that_is_gone_ends_the_job() {
    for call in ["event 9", "start", "stream", "open", "read", "close", "acl", "end"] {
        let plugin = Fake::with_files([FakeFile::regular("/f", b"data")]);
        plugin.script.lock().unwrap().gone_in = Some(call);
        let (outcome, _) = backup("", plugin);
        assert!(matches!(outcome.result, Err(BackupError::Fatal(_))), "{call}");
        let fatal = outcome.texts(MessageType::Fatal);
        assert!(matches!(fatal[..], [text] if text.starts_with(&format!("tp is gone in {call}"))), "{fatal:?}");
        assert!(outcome.texts(MessageType::Error).is_empty());
        assert_eq!(outcome.sink.empty_frames(), 0, "{call}");
    }
}

/// A database may take an hour before its plugin has the first byte.
#[test]
fn what_is_saved_is_sent_while_a_plugin_lets_the_job_wait() {
    let mut bed = Bed::with_lines(&["I", "O M", "N", "F @/file", "N", &format!("P {COMMAND}"), "N"]);
    bed.file("file", b"x");
    let (told, flushed) = mpsc::channel();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let plugin = Fake::with_files([FakeFile::regular("/f", b"data")]).hooked(move |call, _| {
        if call.starts_with("read") && seen.lock().unwrap().is_empty() {
            *seen.lock().unwrap() = flushed.recv_timeout(Duration::from_secs(60)).unwrap_or_default();
        }
    });
    bed.plan.plugins = job_plugins([plugin]);
    let outcome = bed.run_with(Collector::telling(told));
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    let name = bed.name("file").into_bytes();
    for name in [&name[..], b" /f\0"] {
        assert!(
            sent.lock().unwrap().windows(name.len()).any(|part| part == name),
            "{:?} was sent",
            name.escape_ascii()
        );
    }
}

#[test]
fn a_canceled_job_calls_no_plugin_any_more() {
    let mut bed = bed("");
    let cancel = bed.cancel.clone();
    let plugin = Fake::with_files([FakeFile::regular("/f", &vec![1; 300_000])]).hooked(move |call, _| {
        if call.starts_with("read") {
            cancel.cancel();
        }
    });
    let script = Arc::clone(&plugin.script);
    bed.plan.plugins = job_plugins([plugin]);
    let outcome = bed.run();
    assert!(matches!(outcome.result, Err(BackupError::Canceled)));
    assert_eq!(calls(&script), ["event 9", "start", "stream", "open /f 0 0", "read 65536"]);
    assert!(outcome.messages.is_empty(), "{:?}", outcome.messages);
}

fn with_option_plugin(handled: &[(&'static str, Status)]) -> (Bed, Arc<Mutex<Script>>) {
    let mut bed = Bed::with_lines(&["I", "O Ms", "G tp:option", "N", "F @", "N"]);
    for name in ["plugin's", "skipped", "core's"] {
        bed.file(name, b"on the disk");
    }
    fs::hard_link(bed.path("skipped"), bed.path("skipped too")).unwrap();
    let plugin = Fake::new("tp");
    plugin.script.lock().unwrap().handled = handled.to_vec();
    let script = Arc::clone(&plugin.script);
    bed.plan.plugins = job_plugins([plugin]);
    (bed, script)
}

#[test]
fn an_option_plugin_saves_skips_or_leaves_each_file() {
    let handled = [("plugin's", Status::Ok), ("skipped", Status::Skip), ("skipped too", Status::Skip)];
    let (bed, script) = with_option_plugin(&handled);
    let outcome = bed.run();
    let records = outcome.of(&bed.name("plugin's"));
    assert_eq!(records.iter().map(|record| record.stream).collect::<Vec<_>>(), [26, 1, 2, 3, 26]);
    assert_eq!((records[2].size, records[2].data()), (11, b"plugin's plugin's".to_vec()));
    assert_eq!(text(&records[0].data()), format!("{} 1 1 tp:option\\x00", records[0].file_index));
    assert_eq!(outcome.streams(&bed.name("core's")), [1, 6, 3]);
    // A later name is asked about, too, if the first one was not saved.
    let names: Vec<String> = outcome.records().iter().filter(|record| record.stream == 1).map(Record::name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let calls = calls(&script);
    assert_eq!(calls.iter().filter(|call| call.starts_with("handle")).count(), 4, "{calls:?}");
    assert!(calls.contains(&format!("open {} 0 0", bed.name("plugin's"))), "{calls:?}");
}

/// As on storage that does not answer when the daemon asks for attributes of the plugin's file.
#[test]
fn a_canceled_job_leaves_a_worker_behind_that_hangs_between_two_calls_of_a_plugin() {
    let (mut bed, script) = with_option_plugin(&[("", Status::Ok)]);
    // The walker's thread works on the last ones.
    (0..1000).for_each(|number| drop(bed.file(&format!("{number}"), b"x")));
    let schedule = Arc::new(Schedule::hanging(u64::MAX));
    let hangs = Arc::clone(&schedule);
    script.lock().unwrap().hook = Some(Box::new(move |call, _| {
        if call.starts_with("open") && thread::current().name() == Some("worker") {
            hangs.hang();
        }
    }));
    bed.plan = BackupPlan { schedule: Some(Arc::clone(&schedule)), grace: Duration::ZERO, ..bed.plan };
    let (over, is_over) = mpsc::channel::<()>();
    let outcome = thread::scope(|scope| {
        let (schedule, cancel) = (&schedule, bed.cancel.clone());
        scope.spawn(move || {
            schedule.wait_until_one_hangs();
            cancel.cancel();
            let _ended = is_over.recv_timeout(Duration::from_secs(60));
            schedule.let_go();
        });
        let outcome = bed.run();
        // The plugin is left to the thread.
        bed.plan.plugins.tell_all(&mut Bare, &Event::EndBackupJob);
        bed.plan.plugins.end(&mut Bare);
        drop(over);
        outcome
    });
    assert!(matches!(outcome.result, Err(BackupError::Canceled)), "{:?}", outcome.result);
    let warnings = outcome.texts(MessageType::Warning);
    assert!(warnings[0].starts_with("A file system of the host does not answer: "), "{warnings:?}");
    let (here, plan, plugin) = (1, 1, 1);
    while Arc::strong_count(&schedule) > here + plan + plugin {
        thread::yield_now();
    }
    let calls = calls(&script);
    assert!(!calls.last().unwrap().starts_with("event"), "{calls:?}");
}

#[test]
fn a_file_that_an_option_plugin_can_t_open_keeps_its_copy_of_an_earlier_job() {
    let handled = [("plugin's", Status::Ok), ("skipped", Status::Ok), ("skipped too", Status::Ok)];
    for (incremental, streams) in [(true, None), (false, Some(vec![26, 1, 26]))] {
        let (mut bed, script) = with_option_plugin(&handled);
        script.lock().unwrap().closed = Some(("plugin's", 13));
        bed.plan.walk.incremental = incremental;
        let outcome = bed.run();
        let name = bed.name("plugin's");
        let text = format!("     Cannot open \"{name}\": ERR=Permission denied.\n");
        assert_eq!(outcome.messages, [(MessageType::NotSaved, text)]);
        assert_eq!(recorded(&outcome).iter().filter(|(found, _)| *found == name).count(), usize::from(!incremental));
        if let Some(streams) = streams {
            assert_eq!(outcome.streams(&name), streams);
            assert_eq!(outcome.of(&name)[1].attributes().lstat.stat.ctime, 0);
        }
        // The others have the numbers behind it, and a link leads to its first name.
        assert_eq!(recorded(&outcome).len(), if incremental { 4 } else { 5 });
    }
    let (mut bed, script) = with_option_plugin(&handled);
    script.lock().unwrap().closed = Some(("plugin's", 13));
    let name = bed.name("plugin's");
    with_list(&mut bed, BASE, &[&name]);
    assert_eq!(recorded_as(&bed.run(), FileType::Base), [name]);
}

#[test]
fn an_option_plugin_that_is_missing_ends_the_job_and_one_that_is_disabled_does_not() {
    let run = |plugin: Fake| {
        let mut bed = Bed::with_lines(&["I", "O M", "G tp:option", "N", "F @/f", "N"]);
        bed.file("f", b"x");
        bed.plan.plugins = job_plugins([plugin]);
        let outcome = bed.run();
        assert_eq!(outcome.sink.records().len(), 3, "the daemon saves the file");
        (outcome.result.is_ok(), outcome.messages)
    };
    let not_found = "fd_plugins.c:630 Options plugin \"tp:option\" not found.\n".to_owned();
    assert_eq!(run(Fake::new("other")), (false, vec![(MessageType::Fatal, not_found)]));
    assert_eq!(run(Fake::new("tp").disabled()), (true, Vec::new()));
}

#[test]
fn what_a_plugin_asks_about_the_catalog_is_answered_and_what_it_knows_is_not_deleted() {
    let mut bed = bed("");
    let stat = Stat { size: 10, mtime: 5, ctime: 5, mode: 0o100_644, ..Stat::default() };
    bed.plan.walk.incremental = true;
    bed.file("in the list", b"x");
    let on_disk = stat_of(&bed.path("in the list"));
    let mut list = AccurateList::new(CHANGES, 10, &bed.plan.fileset);
    for name in ["/same", "/changed", "/asked", "/gone", "/kept", "/saved"] {
        list.add(&listed(name, stat, "nVdV36yYdCA1NqA50wWznw", 3));
    }
    list.add(&listed("/dir/", Stat { mode: 0o40_755, ..on_disk }, "", 0));
    list.complete();
    bed.plan.accurate = Some(Arc::new(list));
    let directory = FakeFile::new("/dir", FileType::Directory, b"").with(|file| {
        file.packet.link = Some(b"/dir/".into());
        file.packet.stat.mode = 0o40_755;
        file.packet.no_read = true;
    });
    let plugin = Fake::with_files([FakeFile::regular("/saved", b"data"), directory]).hooked(move |call, host| {
        if call != "event 9" {
            return;
        }
        let mut ask = |name: &str, stat| {
            let mut packet = SavePacket { name: Some(name.into()), stat, ..SavePacket::empty() };
            (host.check_changes(&mut packet), packet.accurate_found, packet.delta_seq)
        };
        assert_eq!(ask("/same", stat), (Status::Seen, true, 3));
        assert_eq!(ask("/changed", Stat { mtime: 6, ..stat }), (Status::Ok, true, 3));
        assert_eq!(ask("/new", stat), (Status::Ok, false, 0));
        let known = host.accurate_attributes(b"/asked").unwrap();
        assert_eq!((known.stat, known.delta_seq, known.seen), (stat, 3, false));
        assert_eq!(known.checksum.as_deref(), Some(b"nVdV36yYdCA1NqA50wWznw".as_slice()));
        assert_eq!(host.accurate_attributes(b"/new"), None);
        assert_eq!((host.mark_seen(b"/asked"), host.mark_seen(b"/new")), (Status::Ok, Status::Error));
    });
    plugin.script.lock().unwrap().existing = vec!["/kept"];
    let script = Arc::clone(&plugin.script);
    bed.plan.plugins = job_plugins([plugin]);
    let outcome = bed.run();
    let records = outcome.records();
    let deleted: Vec<String> = records
        .iter()
        .filter(|record| record.stream == 1 && record.attributes().type_code == 23)
        .map(Record::name)
        .collect();
    assert_eq!(deleted, ["/gone"]);
    let mut checked: Vec<String> = calls(&script).into_iter().filter(|call| call.starts_with("check")).collect();
    checked.sort();
    assert_eq!(checked, ["check /gone", "check /kept"]);
}

#[test]
fn a_plugin_that_is_gone_while_it_is_asked_about_deleted_files_ends_the_job() {
    let mut bed = bed("");
    let mut list = AccurateList::new(CHANGES, 1, &bed.plan.fileset);
    list.add(&listed("/gone", Stat::default(), "", 0));
    list.complete();
    bed.plan.accurate = Some(Arc::new(list));
    let plugin = Fake::new("tp");
    plugin.script.lock().unwrap().gone_in = Some("check");
    bed.plan.plugins = job_plugins([plugin]);
    let outcome = bed.run();
    assert!(matches!(outcome.result, Err(BackupError::Fatal(_))));
    assert!(outcome.sink.records().is_empty(), "no file counts as deleted");
    assert_eq!(outcome.texts(MessageType::Fatal), ["tp is gone in check /gone\n"]);
}

#[test]
fn an_estimate_counts_and_lists_a_plugin_s_files_without_reading_them() {
    let bed = bed("M");
    let sized =
        |name: &str, file_type, size| FakeFile::new(name, file_type, b"").with(|file| file.packet.stat.size = size);
    let plugin = Fake::with_files([
        sized("/f", FileType::Regular, 10),
        sized("/unknown", FileType::Regular, -1),
        sized("/linked", FileType::HardLink, 10),
        FakeFile::object("o", FileType::PluginConfig, b"x"),
        sized("/unchanged", FileType::Unchanged, 5),
    ]);
    let script = Arc::clone(&plugin.script);
    let plan = EstimatePlan {
        fileset: Arc::clone(&bed.plan.fileset),
        walk: WalkSettings { purpose: Purpose::Estimate { limit: 0 }, ..WalkSettings::default() },
        accurate: None,
        network_buffer: 0,
        encrypts: false,
        plugins: job_plugins([plugin]),
        facts: Arc::clone(&bed.plan.facts),
        late: None,
        listing: true,
    };
    let log = Log::new(Arc::default());
    let result = estimate(&plan, &log, &bed.cancel).unwrap();
    // Of whatever type, but no objects.
    assert_eq!(result, EstimateTotals { files: 4, bytes: 15 });
    let lines = log.lines.into_inner().unwrap();
    assert!(lines[0].1.starts_with("-rwx------   1 root     root                     10 "), "{lines:?}");
    assert!(lines[0].1.ends_with("  /f\n"));
    let calls = calls(&script);
    assert_eq!(calls[..4], ["event 11", "start without reading", "end", "start without reading"]);
    assert!(!calls.iter().any(|call| call.starts_with("open") || call == "stream" || call == "acl"), "{calls:?}");
}

#[test]
fn a_plugin_s_file_whose_data_would_have_to_be_compared_counts_as_changed() {
    let mut bed = bed("MCmcs5:");
    let stat = Stat { size: 10, mtime: 5, ctime: 5, mode: 0o100_644, ..Stat::default() };
    let mut list = AccurateList::new(CHANGES, 1, &bed.plan.fileset);
    list.add(&listed("/same", stat, "nVdV36yYdCA1NqA50wWznw", 0));
    list.complete();
    bed.plan.walk.incremental = true;
    bed.plan.accurate = Some(Arc::new(list));
    bed.plan.plugins = job_plugins([Fake::new("tp").hooked(move |call, host| {
        if call == "start" {
            let mut packet = SavePacket { name: Some(b"/same".into()), stat, ..SavePacket::empty() };
            assert_eq!((host.check_changes(&mut packet), packet.accurate_found), (Status::Ok, true));
        }
    })]);
    let outcome = bed.run();
    assert!(outcome.records().is_empty() && outcome.messages.is_empty(), "{:?}", outcome.messages);
}

#[test]
fn all_data_of_plugins_is_encrypted_and_data_with_addresses_is_refused() {
    let run = |file: FakeFile| {
        let mut bed = bed("M");
        bed.plan.protection = Some(protection(DigestKind::Sha256, Some(ContentCipher::Aes128)));
        bed.plan.plugins = job_plugins([Fake::with_files([file])]);
        bed.run()
    };
    let streams = |file_type, data: &[u8]| {
        let outcome = run(FakeFile::new("/f", file_type, data));
        outcome.records().iter().map(|record| record.stream).collect::<Vec<_>>()
    };
    assert_eq!(streams(FileType::Regular, b"data"), [26, 1, 22, 20, 19, 3, 26]);
    assert_eq!(streams(FileType::Directory, b"data"), [26, 1, 22, 20, 26]);
    let outcome = run(FakeFile::regular("/f", b"data").with(|file| file.packet.flags = SavePacket::OFFSETS));
    let refused = "crypto.c:39 Encrypting sparse or offset data not supported.\n";
    assert_eq!(outcome.texts(MessageType::Fatal), [refused]);
}

#[test]
fn an_acl_that_is_too_long_for_a_record_costs_itself() {
    let long =
        FakeFile::regular("/long", b"x").with(|file| file.xacl = [(MetadataKind::Acl, vec![b'a'; 1_100_000])].into());
    let (outcome, _) = backup("", Fake::with_files([long, FakeFile::regular("/next", b"x")]));
    assert_eq!(summary(&outcome.records()).last(), Some(&(2, 26)));
    let [(MessageType::Error, text)] = &outcome.messages[..] else { panic!("{:?}", outcome.messages) };
    assert!(text.starts_with("Record of \"/long\" can't be sent: "), "{text}");
}

#[test]
fn acls_that_a_plugin_can_t_give_are_a_warning() {
    let plugin = Fake::with_files([FakeFile::regular("/f", b"x")]);
    plugin.script.lock().unwrap().xacl = Some(Status::Error);
    let (outcome, _) = backup("", plugin);
    assert_eq!(outcome.records().len(), 4);
    assert_eq!(
        outcome.texts(MessageType::Warning),
        [
            "No OS ACL configured.\n",
            "No OS XATTR configured.\n",
            "Had 1 acl errors while doing backup\n",
            "Had 1 xattr errors while doing backup\n"
        ]
    );
}

/// After a fatal message of a plugin the plugin host may take the job for canceled.
#[test]
fn a_plugin_that_is_gone_because_the_job_is_over_ends_it_without_a_further_message() {
    let plugin = Fake::with_files([FakeFile::regular("/f", b"data")]).hooked(|call, host| {
        if call.starts_with("open") {
            host.message(MessageType::Fatal, b"enough\n");
        }
    });
    plugin.script.lock().unwrap().gone_in = Some("close");
    plugin.script.lock().unwrap().gone_is_canceled = true;
    let (outcome, _) = backup("", plugin);
    assert!(matches!(outcome.result, Err(BackupError::Fatal(_))), "{:?}", outcome.result);
    assert_eq!(outcome.messages, [(MessageType::Fatal, "enough\n".to_owned())]);
}
