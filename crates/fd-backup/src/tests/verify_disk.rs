//! The levels of a Verify job that read the disk (reference 05 §18).

use std::fs::{self, FileTimes};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fd_messages::{CancelToken, MessageType, PacketSink, SendError};
use fd_walk::{Purpose, WalkSettings};

use super::support::{Bed, Log};
use crate::{VerifyDiskError, VerifyPlan, verify_disk};

/// A Director whose connection ends, or which cancels the job, after so many packets. It can also
/// remove a file.
#[derive(Default)]
struct Director {
    packets: Vec<String>,
    gone_after: Option<usize>,
    cancels_after: Option<(usize, CancelToken)>,
    /// Removed with the first packet.
    removes: Option<PathBuf>,
}

impl PacketSink for Director {
    fn send(&mut self, packet: Vec<u8>) -> Result<(), SendError> {
        if self.gone_after == Some(self.packets.len()) {
            return Err(SendError("Broken pipe".to_owned()));
        }
        if let Some(path) = self.removes.take() {
            fs::remove_file(path).unwrap();
        }
        self.packets.push(String::from_utf8_lossy(&packet).replace('\0', "|"));
        if let Some((packets, cancel)) = &self.cancels_after
            && *packets == self.packets.len()
        {
            cancel.cancel();
        }
        Ok(())
    }
}

struct Verified {
    result: Result<(), VerifyDiskError>,
    packets: Vec<String>,
    /// All messages except the line of each file.
    messages: Vec<(MessageType, String)>,
}

fn verify(bed: &Bed, mut director: Director) -> Verified {
    let plan = VerifyPlan {
        fileset: Arc::clone(&bed.plan.fileset),
        walk: WalkSettings { purpose: Purpose::Verify, ..WalkSettings::default() },
        network_buffer: 0,
        encrypts: false,
    };
    let log = Log::new(Arc::clone(&bed.progress));
    let result = verify_disk(&plan, &bed.progress, &log, &bed.cancel, &mut director);
    let mut messages = log.lines.into_inner().unwrap();
    messages.retain(|(kind, _)| *kind != MessageType::Verified);
    // Names below the directory; the name of the directory itself is empty.
    let short = |packet: String| packet.replace(&format!("{}/", bed.directory.path().display()), "");
    Verified { result, packets: director.packets.into_iter().map(short).collect(), messages }
}

/// The packets without numbers and attributes, sorted: options and name, link or digest.
fn contents(packets: &[String]) -> Vec<String> {
    let mut contents: Vec<_> = packets
        .iter()
        .map(|packet| match packet.split('|').collect::<Vec<_>>()[..] {
            [head, lstat, link, ""] => {
                assert!(lstat.ends_with(" A A A"), "no LinkFI, no stream: {packet}");
                format!("{} -> {link}", head.split_once(' ').unwrap().1)
            }
            _ => packet.split_once(' ').unwrap().1.split(" *").next().unwrap().to_owned(),
        })
        .collect();
    contents.sort();
    contents
}

#[test]
fn a_verify_sends_each_entry_and_digests_of_regular_files() {
    let bed = Bed::new("MVpins5:");
    bed.file("empty", b"");
    let first = bed.file("d/one", b"hello world\n");
    fs::hard_link(&first, bed.path("d/two")).unwrap();
    symlink("one", bed.path("d/link")).unwrap();
    let _listener = UnixListener::bind(bed.path("d/socket")).unwrap();
    let verified = verify(&bed, Director::default());
    assert_eq!((verified.result, verified.messages), (Ok(()), vec![]));
    let mut expected = [
        "1 VVpins5 d/ -> ",
        "1 VVpins5 d/link -> one",
        "1 VVpins5 d/socket -> ",
        "1 VVpins5 empty -> ",
        "3 1B2M2Y8AsgTpgAmY7PhCfg",
        "3 b1kCrCNwJL3QwXbLkwY9xA",
    ]
    .map(str::to_owned)
    .to_vec();
    // The order of the two names depends on the file system.
    let hard = if verified.packets.iter().any(|packet| packet.contains(" d/two|") && packet.ends_with("||")) {
        ["1 VVpins5 d/two -> ", "1 VVpins5 d/one -> d/two"]
    } else {
        ["1 VVpins5 d/one -> ", "1 VVpins5 d/two -> d/one"]
    };
    expected.extend(hard.map(str::to_owned));
    expected.push("1 VVpins5  -> ".to_owned());
    expected.sort();
    assert_eq!(contents(&verified.packets), expected);
    assert_eq!((bed.progress.files(), bed.progress.files_examined()), (7, 7));
    assert_eq!((bed.progress.read_bytes(), bed.progress.job_bytes()), (12, 12));
}

#[test]
fn an_entry_and_its_data_are_progress() {
    let bed = Bed::new("V");
    verify(&bed, Director::default()).result.unwrap();
    assert!(bed.progress.last_activity() > 0);
}

#[test]
fn keep_atime_keeps_the_times_of_a_file_that_a_verify_reads() {
    let bed = Bed::new("MkV5:");
    let path = bed.file("f", b"hello world\n");
    // So old that reading would change it on any file system that keeps access times.
    let [accessed, modified] = [1_000_000_000, 1_500_000_000].map(|s| UNIX_EPOCH + Duration::new(s, 123_456_789));
    let times = FileTimes::new().set_accessed(accessed).set_modified(modified);
    fs::File::open(&path).unwrap().set_times(times).unwrap();
    let verified = verify(&bed, Director::default());
    assert_eq!((verified.result, verified.packets.len()), (Ok(()), 3));
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.accessed().unwrap(), found.modified().unwrap()), (accessed, modified));
}

#[test]
fn packets_are_numbered_and_digests_follow_their_file() {
    let bed = Bed::new("SV5:");
    bed.file("f", b"hello world\n");
    let packets = verify(&bed, Director::default()).packets;
    assert!(packets[0].starts_with("1 1 VV5 f|"), "{packets:?}");
    assert_eq!(packets[1], "1 10 IlljY7PeQLBvmB+4XYIxLowO1RE *SHA1-1*");
    assert!(packets[2].starts_with("2 1 VV5 "), "{packets:?}");
    assert_eq!(packets.len(), 3);
}

#[test]
fn a_verify_sends_digests_of_each_kind() {
    for (letters, stream, name, length) in [
        ("M", 3, "MD5", 22),
        ("S", 10, "SHA1", 27),
        ("S2", 17, "SHA256", 43),
        ("S3", 18, "SHA512", 86),
        ("S5", 39, "XXHASH64", 11),
        ("S6", 40, "XXH3_64", 11),
        ("S7", 41, "XXH3_128", 22),
    ] {
        let bed = Bed::new(letters);
        bed.file("f", b"hello world\n");
        let packets = verify(&bed, Director::default()).packets;
        let words: Vec<_> = packets[1].split(' ').collect();
        assert_eq!((words[1], words[3]), (stream.to_string().as_str(), format!("*{name}-1*").as_str()), "{letters}");
        assert_eq!(words[2].len(), length, "{packets:?}");
    }
}

#[test]
fn holes_are_left_out_of_the_digest_as_in_a_backup() {
    let mut data = vec![0; 3 * 65528];
    data.extend_from_slice(b"end");
    let digest_of = |letters: &str| {
        let bed = Bed::new(letters);
        bed.file("f", &data);
        let packets = verify(&bed, Director::default()).packets;
        (packets[1].split(' ').nth(2).unwrap().to_owned(), bed.progress.read_bytes())
    };
    let (whole, whole_bytes) = digest_of("M");
    let (sparse, sparse_bytes) = digest_of("Ms");
    assert_ne!(whole, sparse);
    assert_eq!((whole_bytes, sparse_bytes), (3 * 65528 + 3, 3));
}

/// The file is removed after its attributes were sent and before it is opened.
#[test]
fn a_vanished_file_counts_twice_and_has_no_digest() {
    let bed = Bed::with_lines(&["I", "O MV5:", "N", "F @/f", "F @/no", "N", "N"]);
    let path = bed.file("f", b"x");
    let verified = verify(&bed, Director { removes: Some(path), ..Director::default() });
    let (gone, missing) = (bed.name("f"), bed.name("no"));
    assert_eq!(
        verified.messages,
        [
            (MessageType::Error, format!("     Cannot open {gone}: ERR=No such file or directory.\n")),
            (MessageType::NotSaved, format!("     Could not stat {missing}: ERR=No such file or directory\n")),
        ]
    );
    assert_eq!((verified.packets.len(), bed.progress.files(), bed.progress.errors()), (1, 1, 3));
}

#[test]
fn a_lost_director_ends_the_walk() {
    let bed = Bed::new("M");
    for name in ["a", "b", "c"] {
        bed.file(name, b"x");
    }
    let verified = verify(&bed, Director { gone_after: Some(3), ..Director::default() });
    assert_eq!(verified.result, Err(VerifyDiskError::Director(SendError("Broken pipe".to_owned()))));
    let text = "Network error in send to Director: ERR=Broken pipe\n".to_owned();
    assert_eq!(verified.messages, [(MessageType::Fatal, text)]);
    assert_eq!(verified.packets.len(), 3);
}

#[test]
fn a_canceled_verify_stops_before_the_next_file() {
    let bed = Bed::new("M");
    for name in ["a", "b", "c"] {
        bed.file(name, b"x");
    }
    let director = Director { cancels_after: Some((2, bed.cancel.clone())), ..Director::default() };
    let verified = verify(&bed, director);
    assert_eq!((verified.result, verified.messages), (Err(VerifyDiskError::Canceled), vec![]));
    assert_eq!(verified.packets.len(), 2);
}

#[test]
fn a_plugin_command_ends_the_verify_behind_the_files_before_it() {
    let lines =
        ["I", "O M", "N", "F @/a", "N", "P bpipe:/x:cat:cat", "P bpipe:/y:cat:cat", "N", "I", "O M", "N", "F @/b", "N"];
    let bed = Bed::with_lines(&lines);
    for name in ["a", "b"] {
        bed.file(name, b"x");
    }
    let verified = verify(&bed, Director::default());
    assert_eq!(verified.result, Err(VerifyDiskError::Plugin));
    let text = "Plugin: \"bpipe:/x:cat:cat\" not found.\n".to_owned();
    assert_eq!(verified.messages, [(MessageType::Fatal, text)]);
    assert_eq!(bed.progress.files(), 1);
}
