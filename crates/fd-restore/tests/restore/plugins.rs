//! Files of plugins (reference 07 §7.4).

use fd_compress::Compressor;
use fd_crypto::Digester;
use fd_messages::{CancelToken, MessageType};
use fd_plugins::{CreateStatus, IoDone, Offers, Status};
use fd_records::{Compression, DigestKind, FileType, Stream};
use fd_restore::{End, LinkRule, RestoreState};

use crate::fake_plugin::{Answers, access};
use crate::plugin_volumes::{ASKS, COMMAND, Restored, ended_by_plugin, plugin_file, restore, restore_at};
use crate::volume::{Frame, Place, Saved, Volume};

fn one_file() -> Volume {
    let mut volume = Volume::new();
    volume.of_plugin(&plugin_file("/@tp/file"));
    volume
}

fn two_files() -> Volume {
    let mut volume = one_file();
    volume.of_plugin(&plugin_file("/@tp/after"));
    volume
}

fn is_silent(restored: &Restored) -> bool {
    restored.told().is_empty() && restored.finished.outcome == Ok(End::EndOfData)
}

/// The message about a file whose end has not come.
fn end_missing(name: &str) -> (MessageType, String) {
    (MessageType::Error, format!("File {name} may not be complete: its end is missing on the volume.\n"))
}

fn digest(kind: DigestKind, data: &[u8]) -> Vec<u8> {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap().as_bytes().to_vec()
}

#[test]
fn a_plugin_is_called_in_the_order_of_the_stock_daemon() {
    let restored = restore(Answers::default(), &one_file());
    let root = restored.place.text("");
    let open = format!("open {}/@tp/file 1101 600", root.trim_end_matches('/'));
    let calls = [
        open.as_str(),
        "metadata 0/2 one",
        "metadata 1/2 two",
        "write 5",
        "attributes",
        "close",
        "xacl acl A",
        "xacl xattr X",
    ];
    assert_eq!(restored.inner_calls()[1..], calls);
    assert!(is_silent(&restored), "{restored:?}");
    assert_eq!((restored.finished.files, restored.finished.job_bytes), (1, 5));
    assert_eq!(restored.noted.data, b"hello");
    let told = &restored.noted.files[0];
    assert_eq!((told.stream, told.data_stream, told.file_type, told.file_index), (1, 2, 3, 1));
    assert_eq!((told.stat.mode, told.stat.size, told.replace), (0o100_640, 5, b'a'));
    assert_eq!((told.place.as_deref(), told.regex_where.as_deref()), (Some(b"/where".as_slice()), None));
    assert_eq!(told.link.as_deref(), Some(b"".as_slice()));
    assert!(!restored.place.exists("@tp"), "the daemon has made something");
}

#[test]
fn a_plugin_gets_no_command_that_only_the_volume_says() {
    for (command, why) in [
        ("tp:unknown", "which no FileSet of this Director has had on this host"),
        ("tp:never", "plugins.restore_commands in bacula-fd.toml is \"none\""),
    ] {
        let mut volume = Volume::new();
        volume.file("/before", b"x");
        for name in ["/@tp/one", "/@tp/two"] {
            volume.start(command).put(&plugin_file(name)).blob(0, b"one").record(Stream::FILE_DATA, b"hello");
            volume.record(Stream::PLUGIN_ACL, b"A").stop();
        }
        volume.start(command).put(&Saved::directory("/before-too/")).stop();
        volume.of_plugin(&plugin_file("/@tp/known")).file("/after", b"y");
        let restored = restore(Answers::default(), &volume);
        // Once for all files of the command.
        let [(MessageType::Error, text)] = &restored.told()[..] else { panic!("{:?}", restored.told()) };
        assert!(text.contains(&format!("plugin command \"{command}\"")) && text.contains(why), "{text}");
        assert_eq!(restored.noted.files.len(), 1);
        assert!(!restored.calls().iter().any(|call| call.contains(command)), "{:?}", restored.calls());
        assert_eq!(restored.noted.data, b"hello");
        assert_eq!((restored.place.read("before"), restored.place.read("after")), (b"x".to_vec(), b"y".to_vec()));
        assert!(!restored.place.exists("@tp") && !restored.place.exists("before-too"));
    }
}

/// The block with the record that ends the plugin's file was lost.
#[test]
fn a_plugin_s_file_without_its_end_takes_no_other_file_along() {
    let without_end = |command: &str| {
        let text = format!(
            "A file of plugin command \"{command}\" may not be complete, or missing: its end is missing on the volume.\n"
        );
        (MessageType::Error, text)
    };
    for (command, cases) in [
        ("tp:unknown", &[true, false][..]),
        ("tp:never", &[true, false]),
        ("no:plugin", &[true, false]),
        (COMMAND, &[false]),
    ] {
        for has_attributes in cases {
            let mut volume = Volume::new();
            volume.start(command).put(&plugin_file("/@tp/one")).record(Stream::FILE_DATA, b"hello");
            if !has_attributes {
                // The start is all that there is. A plugin that has its file reports another one.
                volume.frames.truncate(2);
            }
            volume.file("/after", b"y").record(Stream::MD5, &digest(DigestKind::Md5, b"y"));
            volume.of_plugin(&plugin_file("/@tp/known"));
            let restored = restore(Answers::default(), &volume);
            assert!(restored.told().contains(&without_end(command)), "{command} {:?}", restored.told());
            assert_eq!(restored.place.read("after"), b"y", "{command}");
            assert_eq!(restored.noted.data, b"hello", "{command}: the plugin gets its own data only");
        }
    }
}

/// What is there is kept, as with any file whose data is missing.
#[test]
fn an_ordinary_file_behind_a_plugin_s_file_without_its_end_is_replaced_by_its_data_only() {
    let place = Place::new();
    std::fs::write(place.path("after"), b"old").unwrap();
    let mut volume = Volume::new();
    volume.start("no:plugin").put(&plugin_file("/@tp/one")).record(Stream::FILE_DATA, b"hello");
    volume.put(&Saved { stat: plugin_file("").stat, ..Saved::file("/after") });
    let restored = restore_at(place, Answers::default(), &volume, &CancelToken::new());
    assert_eq!(restored.place.read("after"), b"old");
}

#[test]
fn the_log_says_what_the_volume_asks_for_without_what_a_terminal_obeys() {
    let mut volume = two_files();
    volume.start("tp:x\n\u{1b}[2J").put(&plugin_file("/@tp/three")).stop();
    let restored = restore(Answers::default(), &volume);
    let told: Vec<_> = restored.finished.told().into_iter().filter(|(_, text)| text.starts_with(ASKS)).collect();
    let lines = ["tp:a command", "tp:x??[2J"].map(|command| format!("{ASKS}{command}\n"));
    assert_eq!(told, [(MessageType::Info, &*lines[0]), (MessageType::Info, &*lines[1])]);
}

#[test]
fn files_without_data_get_their_attributes_at_once() {
    let answers = Answers { create: (Status::Ok, CreateStatus::Created), ..Answers::default() };
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&Saved::directory("/@tp/d/")).blob(0, b"one").record(Stream::PLUGIN_ACL, b"A").stop();
    volume.start(COMMAND).put(&Saved::symlink("/@tp/l", "to")).record(Stream::PLUGIN_ACL, b"A").stop();
    let restored = restore(answers, &volume);
    assert!(is_silent(&restored), "{restored:?}");
    let of_each = ["event 10 tp:a command", "start", "create", "attributes"];
    let calls = [&of_each[..], &["metadata 0/2 one", "xacl acl A", "end"], &of_each, &["xacl acl A", "end"]].concat();
    assert_eq!(restored.calls(), calls);
    assert_eq!(restored.noted.files[1].link.as_deref(), Some(b"to".as_slice()));
}

#[test]
fn what_is_not_made_is_reported_and_left_out() {
    let refused = "fd_plugins.c:1205 Plugin createFile call failed. Returned CF_ERROR file=/@tp/file\n";
    let offers = Answers::default().offers;
    for (answers, text, files) in [
        (Answers { create: (Status::Ok, CreateStatus::Skip), ..Answers::default() }, "", 2),
        (Answers { create: (Status::Ok, CreateStatus::Error), ..Answers::default() }, refused, 2),
        (
            Answers { create: (Status::Skip, CreateStatus::Extract), ..Answers::default() },
            "fd_plugins.c:1200 Plugin createFile call failed. Stat=7 file=/@tp/file\n",
            2,
        ),
        (
            Answers { open: IoDone::error(13), ..Answers::default() },
            "fd_plugins.c:1235 Could not create /@tp/file: ERR=Permission denied\n",
            2,
        ),
        // Nothing has canceled the job.
        (
            Answers { open: IoDone::error(125), ..Answers::default() },
            "fd_plugins.c:1235 Could not create /@tp/file: ERR=Operation canceled\n",
            2,
        ),
        (Answers { offers: Offers { create_file: false, ..offers }, ..Answers::default() }, refused, 2),
        (
            Answers { offers: Offers { io: false, ..offers }, ..Answers::default() },
            "fd_plugins.c:1235 Could not create /@tp/file: ERR=Function not implemented\n",
            2,
        ),
    ] {
        let mut volume = one_file();
        volume.file("/of-the-core", b"x");
        let restored = restore(answers.clone(), &volume);
        let told: Vec<_> = restored.told().into_iter().map(|(_, text)| text).collect();
        assert_eq!(told.concat(), text);
        assert_eq!((restored.finished.files, restored.finished.job_bytes), (files, 1), "{answers:?}");
        assert_eq!(restored.noted.data, b"");
        assert!(!restored.calls().contains(&"attributes") && !restored.calls().contains(&"xacl acl A"));
        // Metadata of a file that was left out is the plugin's, too, if it knows of the file.
        let has_metadata = restored.calls().contains(&"metadata 0/2 one");
        assert_eq!(has_metadata, answers.offers.create_file);
        assert_eq!(restored.place.read("of-the-core"), b"x");
    }
}

#[test]
fn any_other_answer_takes_the_data() {
    let answers = Answers { create: (Status::Ok, CreateStatus::Other(0)), ..Answers::default() };
    let restored = restore(answers, &one_file());
    assert_eq!(restored.noted.data, b"hello");
    assert!(is_silent(&restored));
}

#[test]
fn the_daemon_makes_what_is_left_to_it() {
    let mut volume = one_file();
    volume.start(COMMAND).put(&Saved::directory("/@tp/d/")).stop();
    for (set, mode, mode_of_directory) in
        [(CreateStatus::Core, 0o100_640, 0o040_750), (CreateStatus::Error, 0o100_600, 0o040_700)]
    {
        let create = (Status::Ok, CreateStatus::Core);
        let restored = restore(Answers { create, set: (Status::Ok, set), ..Answers::default() }, &volume);
        assert!(is_silent(&restored), "{restored:?}");
        assert_eq!(restored.place.read("@tp/file"), b"hello");
        assert_eq!(restored.place.mode("@tp/file"), mode);
        if set == CreateStatus::Core {
            assert_eq!(restored.place.mode("@tp/d"), mode_of_directory);
        }
        assert_eq!(restored.noted.data, b"");
        let calls: Vec<_> = restored.calls().into_iter().filter(|call| !call.starts_with("metadata")).collect();
        assert_eq!(calls[2..5], ["create", "attributes", "end"]);
    }
}

/// The stock daemon looks at the size when it sets the attributes itself (reference 05 §8).
#[test]
fn the_size_is_looked_at_only_where_the_daemon_sets_the_attributes() {
    let wrong = "attribs.c:603 File size of restored file";
    for (set, is_told) in [(CreateStatus::Core, true), (CreateStatus::Created, false)] {
        let mut saved = plugin_file("/@tp/file");
        saved.stat.size = 389_981;
        let mut volume = Volume::new();
        volume.of_plugin(&saved);
        let create = (Status::Ok, CreateStatus::Core);
        let restored = restore(Answers { create, set: (Status::Ok, set), ..Answers::default() }, &volume);
        assert_eq!(restored.place.read("@tp/file"), b"hello");
        assert_eq!(is_silent(&restored), !is_told, "{restored:?}");
        assert_eq!(format!("{restored:?}").contains(wrong), is_told, "{restored:?}");
    }
}

#[test]
fn the_daemon_sets_attributes_of_what_a_plugin_has_made() {
    let place = Place::new();
    std::fs::create_dir(place.path("@tp")).unwrap();
    std::fs::write(place.path("@tp/file"), "made by the plugin").unwrap();
    let answers = Answers { set: (Status::Ok, CreateStatus::Core), ..Answers::default() };
    let restored = restore_at(place, answers, &one_file(), &CancelToken::new());
    assert!(is_silent(&restored));
    assert_eq!(restored.place.mode("@tp/file"), 0o100_640);
}

#[test]
fn without_its_plugin_a_file_is_an_ordinary_one() {
    let not_found = (MessageType::Warning, "fd_plugins.c:1118 Plugin=bpipe:/x:cat:dd not found.\n".to_owned());
    let malformed = (MessageType::Error, "fd_plugins.c:464 Malformed plugin command: tp x\n".to_owned());
    let refuses = |answers: Answers| (Some(answers), COMMAND, vec![]);
    for (answers, command, told) in [
        (None, "bpipe:/x:cat:dd", vec![]),
        (Some(Answers::default()), "bpipe:/x:cat:dd", vec![not_found]),
        (Some(Answers::default()), "tp x", vec![malformed]),
        (Some(Answers::default()), ":x", vec![]),
        refuses(Answers { begin: Status::Error, ..Answers::default() }),
        refuses(Answers { event: Status::Error, ..Answers::default() }),
        refuses(Answers { start: Status::Error, ..Answers::default() }),
        refuses(Answers { offers: Offers::default(), ..Answers::default() }),
    ] {
        let mut volume = Volume::new();
        let mut saved = plugin_file("/@tp/file");
        saved.stat.size = -1;
        volume
            .start(command)
            .put(&saved)
            .blob(0, b"x")
            .record(Stream::FILE_DATA, b"hello")
            .record(Stream::MD5, &digest(DigestKind::Md5, b"hello"));
        volume.record(Stream::PLUGIN_ACL, b"A").stop().file("/next", b"next");
        let place = Place::new();
        let mut job = place.job();
        let of_plugin = answers.map(access);
        job.plan.plugins = of_plugin.as_ref().map(|(access, _noted)| access.clone());
        let finished = job.run(&volume);
        let seen = finished.told().into_iter().filter(|(_, text)| !text.starts_with(ASKS));
        let seen: Vec<_> = seen.map(|(kind, text)| (kind, text.to_owned())).collect();
        assert_eq!(seen, told, "{command}");
        assert_eq!((place.read("@tp/file"), place.mode("@tp/file")), (b"hello".to_vec(), 0o100_640));
        assert_eq!(place.read("next"), b"next");
        if let Some((_access, noted)) = of_plugin {
            assert!(noted.lock().unwrap().calls.iter().all(|call| !call.starts_with("create")));
        }
    }
}

#[test]
fn without_its_plugin_a_file_may_be_longer_than_its_attributes_say() {
    let mut volume = Volume::new();
    let mut saved = plugin_file("/@tp/file");
    saved.stat.size = 0;
    volume.start("no:plugin").put(&saved);
    let block = vec![7; 900_000];
    for _ in 0..20 {
        volume.record(Stream::FILE_DATA, &block);
    }
    volume.stop();
    let place = Place::new();
    let finished = place.job().run(&volume);
    finished.assert_quiet();
    assert_eq!(place.stat("@tp/file").len(), 18_000_000);
}

#[test]
fn addresses_become_seeks() {
    let mut volume = Volume::new();
    let block = |address: u64, data: &[u8]| [&address.to_be_bytes(), data].concat();
    volume.start(COMMAND).put(&plugin_file("/@tp/file"));
    for (address, data) in [(0, b"abc"), (3, b"def"), (1000, b"ghi")] {
        volume.record(Stream::SPARSE_DATA, &block(address, data));
    }
    volume.stop();
    let restored = restore(Answers::default(), &volume);
    assert_eq!(restored.inner_calls()[2..], ["write 3", "write 3", "seek 1000 0", "write 3", "attributes", "close"]);
    let failing = restore(Answers { seek: IoDone::error(29), ..Answers::default() }, &volume);
    let text = failing.told().pop().unwrap().1;
    assert!(text.contains("/@tp/file") && text.contains("Illegal seek"), "{text}");
    assert_eq!(failing.inner_calls()[2..], ["write 3", "write 3", "seek 1000 0", "give up"]);
}

#[test]
fn compressed_data_is_unpacked() {
    let mut packed = Vec::new();
    Compressor::new(Compression::Gzip(6)).unwrap().compress(&[7; 5000], &mut packed).unwrap();
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).record(Stream::GZIP_DATA, &packed).stop();
    assert_eq!(restore(Answers::default(), &volume).noted.data, [7; 5000]);
}

#[test]
fn a_failed_write_ends_the_file_but_not_the_restore() {
    let failed =
        "restore.c:1524 Write error at byte=0 block=0 write_len=5 lerror=0 on /@tp/file: ERR=No space left on device\n";
    let short = "restore.c:1520 Wrong write size error at byte=0 block=0 wanted=5 wrote=4\n";
    // Nothing has canceled the job.
    let canceled = failed.replace("No space left on device", "Operation canceled");
    for (done, text) in [(IoDone::error(28), failed), (IoDone::bytes(4), short), (IoDone::error(125), &*canceled)] {
        let mut volume = one_file();
        volume.file("/next", b"next");
        let restored = restore(Answers { write: Some(done), ..Answers::default() }, &volume);
        assert_eq!(restored.told(), [(MessageType::Error, text.to_owned())]);
        assert_eq!(restored.inner_calls()[4..], ["write 5", "give up"]);
        assert_eq!(restored.place.read("next"), b"next");
        assert_eq!(restored.finished.outcome, Ok(End::EndOfData));
    }
}

#[test]
fn a_fatal_message_of_a_plugin_ends_the_restore() {
    let answers = Answers {
        says: Some(("write", MessageType::Fatal, "Pipe write error\n")),
        write: Some(IoDone::error(32)),
        ..Answers::default()
    };
    let restored = restore(answers, &two_files());
    let told = restored.told();
    assert_eq!(told[0], (MessageType::Fatal, "Pipe write error\n".to_owned()));
    assert_eq!(told.len(), 2);
    assert!(ended_by_plugin(&restored));
    assert_eq!(restored.inner_calls()[4..], ["write 5", "cancel", "give up"]);
}

#[test]
fn metadata_may_skip_a_file_or_end_the_restore() {
    let restored = restore(Answers { metadata: Status::Skip, ..Answers::default() }, &one_file());
    assert!(is_silent(&restored));
    assert_eq!(restored.inner_calls()[2..], ["metadata 0/2 one", "give up", "metadata 1/2 two"]);
    let restored = restore(Answers { metadata: Status::Error, ..Answers::default() }, &two_files());
    let text = "Plugin metadataRestore call failed, err: 2\n".to_owned();
    assert_eq!(restored.told(), [(MessageType::Error, text)]);
    assert!(ended_by_plugin(&restored));
    assert_eq!(restored.inner_calls()[2..], ["metadata 0/2 one", "cancel", "give up"]);
}

#[test]
fn damaged_metadata_costs_its_file() {
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).record(Stream::PLUGIN_META_BLOB, b"short");
    volume.record(Stream::FILE_DATA, b"hello").stop().of_plugin(&plugin_file("/@tp/after"));
    let restored = restore(Answers::default(), &volume);
    let text = "Damaged plugin metadata of /@tp/file: ERR=metadata record of 5 bytes has no complete head\n";
    assert_eq!(restored.told(), [(MessageType::Error, text.to_owned())]);
    assert_eq!(restored.noted.data, b"hello");
    assert_eq!(
        restored.calls()[3..5],
        [format!("open {} 1101 600", restored.place.text("@tp/file")).as_str(), "give up"]
    );
}

#[test]
fn the_first_data_of_an_update_is_not_lost() {
    let mut volume = Volume::new();
    let saved = Saved { stream: Stream::ATTRIBUTES_UPDATE, ..plugin_file("/@tp/file") };
    volume.start(COMMAND).put(&saved).record(Stream::FILE_DATA, b"hello").stop();
    let restored = restore(Answers::default(), &volume);
    assert_eq!(restored.noted.data, b"hello");
    assert_eq!(restored.noted.files[0].stream, 37);
}

#[test]
fn without_its_plugin_the_data_of_an_update_is_missed_and_mixed_with_nothing() {
    let mut volume = Volume::new();
    let saved = Saved { stream: Stream::ATTRIBUTES_UPDATE, ..plugin_file("/@tp/file") };
    volume.start("no:plugin").put(&saved).blob(0, b"x").record(Stream::FILE_DATA, b"hello");
    volume.record(Stream::FILE_DATA, b"more").stop();
    let place = Place::new();
    std::fs::create_dir(place.path("@tp")).unwrap();
    std::fs::write(place.path("@tp/file"), "as it was").unwrap();
    let finished = place.job().run(&volume);
    let (kind, text) = finished.only();
    let text = text.replace(place.root().to_str().unwrap(), "");
    let missed = "Data of /@tp/file not restored: its plugin, which has saved it as an update, is needed.\n";
    assert_eq!((kind, text.as_str()), (MessageType::Error, missed));
    assert_eq!((place.read("@tp/file"), place.mode("@tp/file")), (b"as it was".to_vec(), 0o100_640));
}

/// What the plugin has decided itself is nothing to be told.
#[test]
fn an_update_that_is_left_to_the_daemon_is_named_where_its_data_is_dropped() {
    let whole = Saved { stream: Stream::ATTRIBUTES_UPDATE, ..plugin_file("/@tp/file") };
    let mut empty = whole.clone();
    (empty.file_type, empty.stat.size) = (FileType::EmptyFile, 0);
    for (saved, create, before, after, is_told) in [
        (&whole, CreateStatus::Core, Some("as it was"), Some("as it was"), true),
        (&empty, CreateStatus::Core, None, Some(""), true),
        // As without a plugin, such a file is skipped, which is told.
        (&whole, CreateStatus::Core, None, None, false),
        (&whole, CreateStatus::Created, Some("as it was"), Some("as it was"), false),
        (&whole, CreateStatus::Skip, Some("as it was"), Some("as it was"), false),
    ] {
        let mut volume = Volume::new();
        volume.start(COMMAND).put(saved).record(Stream::FILE_DATA, b"hello").record(Stream::FILE_DATA, b"more").stop();
        let place = Place::new();
        std::fs::create_dir(place.path("@tp")).unwrap();
        if let Some(before) = before {
            std::fs::write(place.path("@tp/file"), before).unwrap();
        }
        let answers =
            Answers { create: (Status::Ok, create), set: (Status::Ok, CreateStatus::Core), ..Answers::default() };
        let restored = restore_at(place, answers, &volume, &CancelToken::new());
        let found = std::fs::read_to_string(restored.place.path("@tp/file")).ok();
        assert_eq!(found.as_deref(), after, "{create:?}");
        if is_told {
            assert_eq!(restored.place.mode("@tp/file"), 0o100_640);
        }
        let dropped =
            "Data of /@tp/file not restored: its plugin has left the update of its attributes to the daemon.\n";
        let mut told = restored.told();
        told.retain(|(kind, _)| *kind != MessageType::Skipped);
        assert_eq!(told, if is_told { vec![(MessageType::Warning, dropped.to_owned())] } else { vec![] }, "{create:?}");
        assert_eq!(restored.noted.data, b"");
    }
}

#[test]
fn an_acl_of_a_file_that_has_no_data_is_not_lost() {
    let answers = Answers { create: (Status::Ok, CreateStatus::Created), ..Answers::default() };
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).record(Stream::PLUGIN_ACL, b"A").stop();
    assert_eq!(restore(answers, &volume).inner_calls(), ["create", "attributes", "xacl acl A"]);
}

#[test]
fn failures_that_a_plugin_does_not_report_are_reported() {
    let silent = Answers { xacl: Status::Error, close: IoDone::error(5), ..Answers::default() };
    let restored = restore(silent.clone(), &one_file());
    let close = (MessageType::Error, "Plugin could not close /@tp/file: ERR=Input/output error\n".to_owned());
    let xacl =
        |what: &str| (MessageType::Warning, format!("Plugin could not restore the {what} of /@tp/file: status 2\n"));
    assert_eq!(restored.told(), [close, xacl("acl"), xacl("xattr")]);
    let said = Answers { xacl: Status::Ok, says: Some(("close", MessageType::Error, "It failed\n")), ..silent };
    let restored = restore(said, &one_file());
    assert_eq!(restored.told(), [(MessageType::Error, "It failed\n".to_owned())]);
}

/// A plugin that sets nothing leaves the status as it was: -1. A program has a number.
#[test]
fn a_close_has_failed_by_what_it_returns_or_by_its_status_and_a_number() {
    let quiet = |done: IoDone| IoDone { returned: Status::Ok, ..done };
    for (close, has_failed) in [
        (IoDone { status: 0, ..IoDone::error(5) }, true),
        (quiet(IoDone::error(5)), true),
        (quiet(IoDone::error(0)), false),
        (IoDone { errno: 5, ..IoDone::bytes(5) }, false),
    ] {
        let restored = restore(Answers { close, ..Answers::default() }, &one_file());
        let text = "Plugin could not close /@tp/file: ERR=Input/output error\n".to_owned();
        let told = if has_failed { vec![(MessageType::Error, text)] } else { vec![] };
        assert_eq!(restored.told(), told, "{close:?}");
    }
}

#[test]
fn data_that_differs_from_its_digest_is_reported() {
    for (kind, stream) in [
        (DigestKind::Md5, Stream::MD5),
        (DigestKind::Sha1, Stream::SHA1),
        (DigestKind::Sha256, Stream::SHA256),
        (DigestKind::Xxh64, Stream::XXH64),
    ] {
        for (data, long) in [(b"hello".to_vec(), false), (vec![9; 800_000], true)] {
            let mut volume = Volume::new();
            for (name, recorded) in [("/@tp/right", data.as_slice()), ("/@tp/wrong", b"other")] {
                let mut saved = plugin_file(name);
                saved.stat.size = if long { -1 } else { 5 };
                volume.start(COMMAND).put(&saved).record(Stream::FILE_DATA, &data);
                volume.record(stream, &digest(kind, recorded)).stop();
            }
            let restored = restore(Answers::default(), &volume);
            let told = restored.told();
            assert_eq!(told.len(), 1, "{kind:?} {told:?}");
            assert!(told[0].1.starts_with(&format!("{} digest of restored file /@tp/wrong differs", kind.name())));
        }
    }
}

#[test]
fn a_plugin_that_dies_costs_its_files_and_nothing_else() {
    for call in ["event", "start", "create", "open", "metadata", "write", "attributes", "close", "xacl", "end"] {
        let mut volume = Volume::new();
        volume.file("/before", b"before").of_plugin(&plugin_file("/@tp/file")).file("/between", b"between");
        volume.of_plugin(&plugin_file("/@tp/after")).file("/next", b"next");
        let restored = restore(Answers { dies_in: Some(call), ..Answers::default() }, &volume);
        let told = restored.told();
        assert_eq!(told[0], (MessageType::Error, format!("plugin tp died in {call}\n")));
        let of_file = (MessageType::Error, "File /@tp/file not restored: its plugin has failed.\n".to_owned());
        assert_eq!(told.contains(&of_file), !["event", "start"].contains(&call), "{call}: {told:?}");
        let more = if ["event", "start"].contains(&call) { 2 } else { 1 };
        let text = format!("{more} more files were not restored because their plugin has failed.\n");
        assert_eq!(told.last().unwrap(), &(MessageType::Error, text), "{call}");
        assert_eq!(restored.finished.outcome, Ok(End::EndOfData));
        for name in ["before", "between", "next"] {
            assert_eq!(restored.place.read(name), name.as_bytes(), "{call}");
        }
        assert!(!restored.place.exists("@tp"), "{call}");
        let is_it = |noted: &&str| noted.starts_with(call);
        assert_eq!(restored.calls().iter().filter(|noted| is_it(noted)).count(), 1, "{call}");
    }
}

#[test]
fn a_second_start_is_fatal() {
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).start("tp:other").file("/@tp/other", b"x").stop();
    let restored = restore(Answers::default(), &volume);
    let text = "fd_plugins.c:1106 Second call to startRestoreFile. plugin=tp-fd.so cmd=tp:other\n";
    assert_eq!(restored.told(), [end_missing("/@tp/file"), (MessageType::Fatal, text.to_owned())]);
    assert!(ended_by_plugin(&restored));
    assert_eq!(restored.calls()[4..], ["give up", "cancel", "end"]);
}

#[test]
fn a_second_file_between_the_same_records_is_fatal() {
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).put(&plugin_file("/@tp/other")).stop();
    let restored = restore(Answers::default(), &volume);
    let text = "fd_plugins.c:1193 Unbalanced call to createFile=1 1\n";
    assert_eq!(restored.told(), [end_missing("/@tp/file"), (MessageType::Fatal, text.to_owned())]);
    assert!(ended_by_plugin(&restored));
    assert_eq!(restored.calls()[4..], ["give up", "cancel", "end"]);
}

/// A plugin's file may have any size: only the record that ends it tells that a dump is whole.
#[test]
fn data_behind_the_end_of_a_plugins_files_is_missed_with_an_error() {
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).record(Stream::FILE_DATA, b"hel").stop();
    volume.record(Stream::FILE_DATA, b"lo").record(Stream::FILE_DATA, b"!").of_plugin(&plugin_file("/@tp/after"));
    let restored = restore(Answers::default(), &volume);
    let text = "File /@tp/file may not be complete: data of it came out of place.\n";
    assert_eq!(restored.told(), [(MessageType::Error, text.to_owned())]);
    assert_eq!(restored.noted.data, b"helhello");
}

#[test]
fn a_restore_that_ends_in_a_file_does_not_look_like_its_end() {
    let damaged = Frame::Data(b"rechdr x".to_vec());
    for (end, last) in [
        // Other files of the plugin may come from another Storage Daemon, so it is not canceled.
        (None, &["write 3", "give up", "end"][..]),
        (Some(Frame::Lost), &["write 3", "cancel", "give up", "end"]),
        (Some(Frame::Cancel), &["write 3", "cancel", "give up", "end"]),
        (Some(damaged), &["write 3", "cancel", "give up", "end"]),
    ] {
        let mut volume = Volume::new();
        volume.start(COMMAND).put(&plugin_file("/@tp/file")).record(Stream::FILE_DATA, b"hel");
        volume.frames.extend(end.clone());
        let restored = restore(Answers::default(), &volume);
        assert!(restored.calls().ends_with(last), "{end:?}: {:?}", restored.calls());
        assert_eq!(restored.told().contains(&end_missing("/@tp/file")), end.is_none(), "{:?}", restored.told());
    }
}

/// Its digest stands behind the data, so only attributes of a plugin can be missing.
#[test]
fn a_plugins_file_without_its_end_is_whole_if_its_digest_is_there() {
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&plugin_file("/@tp/file")).record(Stream::FILE_DATA, b"hello");
    volume.record(Stream::MD5, &digest(DigestKind::Md5, b"hello"));
    let restored = restore(Answers::default(), &volume);
    assert!(is_silent(&restored), "{restored:?}");
    assert!(restored.calls().ends_with(&["attributes", "close", "end"]), "{:?}", restored.calls());
}

#[test]
fn half_a_dump_is_not_the_whole_without_its_plugin_either() {
    for (is_whole, errors) in [(true, 0), (false, 1)] {
        let mut volume = Volume::new();
        let mut saved = plugin_file("/@tp/file");
        saved.stat.size = -1;
        volume.start("no:plugin").put(&saved).record(Stream::FILE_DATA, b"hel");
        if is_whole {
            volume.stop();
        }
        let place = Place::new();
        let told = place.job().run(&volume).told().len();
        assert_eq!((told, place.mode("@tp/file") & 0o777), (errors, if is_whole { 0o640 } else { 0o600 }));
    }
}

#[test]
fn a_plugin_serves_several_rounds() {
    let place = Place::new();
    let mut job = place.job();
    let (access, noted) = access(Answers::default());
    job.plan.plugins = Some(access);
    let mut state = RestoreState::new(&job.plan, LinkRule::from_now());
    for _ in 0..2 {
        let told = job.run_round(&mut state, &one_file());
        assert_eq!(told.only(), (MessageType::Info, &*format!("{ASKS}{COMMAND}\n")));
    }
    assert_eq!(noted.lock().unwrap().data, b"hellohello");
}

#[test]
fn file_types_of_plugins_need_not_be_known() {
    let mut volume = Volume::new();
    volume.start(COMMAND).put(&Saved { file_type: FileType::Fifo, ..plugin_file("/@tp/fifo") });
    volume.record(Stream::FILE_DATA, b"hello").stop();
    let restored = restore(Answers::default(), &volume);
    assert!(is_silent(&restored));
    assert_eq!(restored.noted.data, b"hello");
}
