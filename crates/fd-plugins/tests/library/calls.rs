//! Calls that work.

use std::sync::atomic::Ordering;

use fd_plugins::{Io, IoDone, Plugin as _, SavePacket, Status};
use fd_records::MetadataKind;

use crate::Test;
use crate::bed::{Daemon, PRINTED, begun, odd};

pub(crate) const TESTS: &[Test] = &[
    ("a_plugin_is_loaded_and_says_what_it_has", a_plugin_is_loaded_and_says_what_it_has),
    ("files_come_in_full", files_come_in_full),
    ("a_thread_of_the_plugin_is_heard", a_thread_of_the_plugin_is_heard),
    ("what_a_plugin_prints_disturbs_nothing", what_a_plugin_prints_disturbs_nothing),
    (
        "what_is_called_ahead_sees_the_daemon_as_it_is_at_the_call",
        what_is_called_ahead_sees_the_daemon_as_it_is_at_the_call,
    ),
    ("a_job_that_stops_leaves_no_file_open", a_job_that_stops_leaves_no_file_open),
    ("many_small_files_are_saved", many_small_files_are_saved),
];

fn a_plugin_is_loaded_and_says_what_it_has() {
    let plugin = odd();
    assert_eq!(plugin.info().version, b"7");
    let offers = plugin.offers();
    assert!(offers.backup && offers.restore && offers.io && offers.check_stream && offers.xacl);
    assert!(!offers.query && !offers.metadata && !offers.start_verify);
}

/// Saves what the command makes, as a backup does; the bytes of each file.
fn save(daemon: &mut Daemon, command: &str) -> Vec<Vec<u8>> {
    let mut instance = begun(odd(), daemon, command).unwrap();
    let mut files = Vec::new();
    loop {
        let mut file = SavePacket::empty();
        let status = instance.start_backup_file(daemon, command.as_bytes(), true, &mut file).unwrap();
        assert_eq!(status, Status::Ok);
        assert_eq!(file.name, Some(format!("/odd/file{}", files.len()).into_bytes()));
        daemon.facts.files.fetch_add(1, Ordering::Relaxed);
        let mut stream = 26;
        assert_eq!(instance.check_stream(daemon, &mut stream).unwrap(), Status::Ok);
        let name = file.name.unwrap();
        let opened = instance.io(daemon, Io::Open { name: &name, flags: 0, mode: 0 }).unwrap();
        assert_eq!(opened, IoDone::bytes(0));
        let mut data = Vec::new();
        let mut buffer = vec![0; 65536];
        loop {
            let read = instance.io(daemon, Io::Read { buffer: &mut buffer }).unwrap();
            assert!(read.status >= 0, "{read:?}");
            if read.status == 0 {
                break;
            }
            data.extend_from_slice(buffer.get(..usize::try_from(read.status).unwrap()).unwrap());
        }
        instance.io(daemon, Io::Close).unwrap();
        for kind in [MetadataKind::Acl, MetadataKind::Xattr] {
            let mut content = Vec::new();
            assert_eq!(instance.read_xacl(daemon, kind, &mut content).unwrap(), Status::Ok);
            assert!(content.is_empty());
        }
        assert_eq!(i64::try_from(data.len()).unwrap(), file.stat.size);
        files.push(data);
        if instance.end_backup_file(daemon).unwrap() != Status::More {
            break;
        }
    }
    instance.end(daemon).unwrap();
    files
}

fn files_come_in_full() {
    for size in [0, 1, 4096, 4097, 65536, 65537, 3_000_000] {
        let mut daemon = Daemon::default();
        let files = save(&mut daemon, &format!("odd: files=3 size={size}"));
        assert_eq!(files.len(), 3);
        for (file, letter) in files.iter().zip(b'a'..) {
            assert!(file.len() == size && file.iter().all(|byte| *byte == letter), "{size}");
        }
        assert!(daemon.said.is_empty(), "{:?}", daemon.said);
    }
}

fn a_thread_of_the_plugin_is_heard() {
    let mut daemon = Daemon::default();
    save(&mut daemon, "odd: startBackupFile=thread");
    assert_eq!(daemon.said, ["Info from a thread of the plugin\n"]);
    // Among many texts that are written nowhere, too.
    let mut daemon = Daemon::default();
    save(&mut daemon, "odd: debugs=2000 startBackupFile=thread");
    assert_eq!(daemon.said, ["Info from a thread of the plugin\n"]);
    // What has no room is told of once.
    let mut daemon = Daemon::default();
    save(&mut daemon, "odd: messages=2000 startBackupFile=thread");
    let (last, held) = daemon.said.split_last().unwrap();
    assert_eq!(held, ["Info from a thread of the plugin\n"; 1000]);
    assert!(last.ends_with(": its threads say more during a call than is held; the rest is left out.\n"), "{last}");
    assert!(last.starts_with("Warning Plugin odd-"), "{last}");
    // A job whose plugin has given up does not end good.
    let mut daemon = Daemon::default();
    save(&mut daemon, "odd: messages=2000 fatal=1 startBackupFile=thread");
    let last = daemon.said.last().unwrap();
    assert!(last.starts_with("Fatal Plugin odd-"), "{last}");
}

fn what_a_plugin_prints_disturbs_nothing() {
    save(&mut Daemon::default(), "odd: startBackupFile=print");
    while PRINTED.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(PRINTED.lock().unwrap().concat(), "printed by the plugin");
}

fn many_small_files_are_saved() {
    let many = std::env::var("MANY").ok().and_then(|many| many.parse().ok()).unwrap_or(1000);
    let start = std::time::Instant::now();
    assert_eq!(save(&mut Daemon::default(), &format!("odd: files={many} size=100")).len(), many);
    println!("{many} small files: {:?}", start.elapsed());
}

fn what_is_called_ahead_sees_the_daemon_as_it_is_at_the_call() {
    let mut daemon = Daemon::default();
    save(&mut daemon, "odd: files=3 size=10 startBackupFile=tell read=tell endBackupFile=tell");
    let file = |before: i32| {
        let after = before + 1;
        [("startBackupFile", before), ("read", after), ("read", after), ("endBackupFile", after)]
            .map(|(function, files)| format!("Info {function} with {files}\n"))
    };
    assert_eq!(daemon.said, [file(0), file(1), file(2)].concat());
}

fn a_job_that_stops_leaves_no_file_open() {
    let command = "odd: files=9 size=1000000 trace";
    // The job stops at each place of the second file, when the plugin host is ahead of it.
    for calls in 0..6 {
        let mut daemon = Daemon::default();
        let mut instance = begun(odd(), &mut daemon, command).unwrap();
        let mut buffer = vec![0; 65536];
        for file in 0..2 {
            let daemon = &mut daemon;
            let most = if file == 0 { usize::MAX } else { calls };
            let mut packet = SavePacket::empty();
            if most > 0 {
                instance.start_backup_file(daemon, command.as_bytes(), true, &mut packet).unwrap();
            }
            if most > 1 {
                instance.check_stream(daemon, &mut 26).unwrap();
            }
            if most > 2 {
                instance.io(daemon, Io::Open { name: &packet.name.unwrap(), flags: 0, mode: 0 }).unwrap();
            }
            if most > 3 {
                instance.io(daemon, Io::Read { buffer: &mut buffer }).unwrap();
            }
            if most > 4 {
                while instance.io(daemon, Io::Read { buffer: &mut buffer }).unwrap().status > 0 {}
            }
            if most > 5 {
                instance.io(daemon, Io::Close).unwrap();
                instance.end_backup_file(daemon).unwrap();
            }
        }
        instance.end(&mut daemon).unwrap();
        let count = |what: &str| daemon.said.iter().filter(|said| **said == format!("Info {what}\n")).count();
        // What the daemon itself has begun is its own business.
        if calls < 3 {
            assert_eq!(count("open"), count("close"), "{calls}");
        }
        if calls < 1 {
            assert_eq!(count("start"), count("end"), "{calls}");
        }
    }
}
