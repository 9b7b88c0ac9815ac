//! Calls that work.

use fd_plugins::{Io, IoDone, Plugin as _, SavePacket, Status};
use fd_records::MetadataKind;

use crate::Test;
use crate::bed::{Daemon, PRINTED, begun, odd};

pub(crate) const TESTS: &[Test] = &[
    ("a_plugin_is_loaded_and_says_what_it_has", a_plugin_is_loaded_and_says_what_it_has),
    ("files_come_in_full", files_come_in_full),
    ("a_thread_of_the_plugin_is_heard", a_thread_of_the_plugin_is_heard),
    ("what_a_plugin_prints_disturbs_nothing", what_a_plugin_prints_disturbs_nothing),
    ("ten_thousand_small_files_are_fast", ten_thousand_small_files_are_fast),
    ("a_large_file_is_fast", a_large_file_is_fast),
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
}

fn what_a_plugin_prints_disturbs_nothing() {
    save(&mut Daemon::default(), "odd: startBackupFile=print");
    while PRINTED.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(PRINTED.lock().unwrap().concat(), "printed by the plugin");
}

fn ten_thousand_small_files_are_fast() {
    let start = std::time::Instant::now();
    assert_eq!(save(&mut Daemon::default(), "odd: files=10000 size=100").len(), 10_000);
    println!("10,000 small files: {:?}", start.elapsed());
}

fn a_large_file_is_fast() {
    let start = std::time::Instant::now();
    save(&mut Daemon::default(), "odd: size=1000000000");
    println!("1 GB: {:?}", start.elapsed());
}
