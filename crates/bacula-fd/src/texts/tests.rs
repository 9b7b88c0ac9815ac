//! Texts as they are sent and shown.

use super::*;

#[test]
fn a_real_line() {
    let line = job_line("dc-fd", 1, MessageType::Info, b"Connected to Storage at 127.0.0.1:20213 without encryption\n");
    let frame = jmsg(1, MessageType::Info.number(), 1_795_227_599, &line);
    assert_eq!(
        frame,
        b"Jmsg JobId=1 type=7 level=1795227599 dc-fd JobId 1: Connected to Storage at 127.0.0.1:20213 without encryption\n"
    );
    assert_eq!(frame.len(), 111);
}

/// As the stock daemon has sent them (reference 02 §11.1).
#[test]
fn a_long_line_of_plugins_is_wrapped() {
    let shown =
        |names: &[&str]| plugins(&names.iter().map(|name| format!("{name}(2)").into_bytes()).collect::<Vec<_>>());
    let long = |len: usize| "a".repeat(len);
    assert_eq!(shown(&["bpipe"]), " Plugin: bpipe(2) \n");
    assert_eq!(shown(&[&long(58), "c", "b"]), format!(" Plugin: {}(2) c(2) b(2) \n", long(58)));
    assert_eq!(shown(&["c", &long(59), "b"]), format!(" Plugin: c(2) {}(2) b(2)\n   \n", long(59)));
    assert_eq!(shown(&[&long(200), "b"]), format!(" Plugin: {}(2)\n   b(2)\n   \n", long(200)));
    let names: Vec<_> = (1..=40).map(|number| format!("name{number:02}")).collect();
    let text = shown(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let in_a_line: Vec<_> = text.lines().map(|line| line.matches("(2)").count()).collect();
    assert_eq!(in_a_line, [8, 7, 16, 9]);
}

#[test]
fn progress_is_a_line_that_a_director_can_read() {
    assert_eq!(progress(7, 1_234, 5_000_000_000), b"Progress JobId=7 files=1234 bytes=5000000000 bps=0\n");
}

#[test]
fn advice_about_keys_lets_nobody_read_them() {
    assert!(certificate_hint(Path::new("/k")).contains("umask 077; openssl req"));
}

#[test]
fn heads_by_type() {
    let head = |kind| String::from_utf8(job_line("x-fd", 9, kind, b"")).unwrap();
    assert_eq!(head(MessageType::Fatal), "x-fd JobId 9: Fatal error: ");
    assert_eq!(head(MessageType::NotSaved), "x-fd JobId 9: ");
    assert_eq!(head(MessageType::Security), "x-fd JobId 9: Security Alert: ");
    assert_eq!(head(MessageType::Events), "");
}

/// A user can make a directory, or a subvolume of btrfs, of any name.
#[test]
fn a_place_of_a_user_neither_begins_a_line_nor_orders_a_terminal_about() {
    let place = b"/home/u/\x1b]0;x\nroot-dir JobId 0: all is well";
    let plain = [snapshot_created, snapshot_removed].map(|text| text(place));
    let why = [
        snapshot_not_created,
        snapshot_not_mounted,
        subvolumes_not_known,
        snapshot_not_unmounted,
        snapshot_not_removed,
    ];
    let others = [
        can_not_match(b"(a)\\1", place, "it took too long"),
        snapshot_helper_failed("create", place, b"", "no"),
        not_in_snapshot(place, place),
        snapshot_not_noted(place, b"no\n"),
        left_snapshot_removed(b"job", place),
        left_snapshot_stays(b"job", place, place, b"no"),
    ];
    for text in plain.into_iter().chain(why.map(|text| text(place, b"no"))).chain(others) {
        assert_eq!(text.iter().position(|byte| *byte == b'\n'), Some(text.len() - 1));
        assert!(text.escape_ascii().to_string().contains("/home/u/\\\\x1b]0;x\\\\nroot-dir"));
    }
}

#[test]
fn long_lines_are_cut() {
    assert_eq!(job_line("x", 1, MessageType::Info, &[b'a'; 6000]).len(), 4999);
}

#[test]
fn the_end_job_line_of_a_real_backup() {
    let end = EndJob {
        term_code: 84,
        files: 7,
        read_bytes: 17,
        job_bytes: 17,
        comm_bytes: 1053,
        compress_comm_bytes: 1053,
        ..EndJob::default()
    };
    assert_eq!(
        String::from_utf8(end.frame()).unwrap(),
        "2800 End Job TermCode=84 JobFiles=7 ReadBytes=17 JobBytes=17 Errors=0 VSS=0 Encrypt=0 CommBytes=1053 \
         CompressCommBytes=1053\n"
    );
}

#[test]
fn comm_bytes_are_cut_to_32_bits() {
    let end = EndJob { comm_bytes: 0x1_0000_0005, ..EndJob::default() };
    assert!(String::from_utf8(end.frame()).unwrap().contains(" CommBytes=5 "));
}

#[test]
fn the_reply_to_job_has_no_newline() {
    assert_eq!(
        ok_job("x86_64-pc-linux-gnu,debian,trixie/sid", b"bpipe(2)"),
        b"2000 OK Job 15.0.3 (25Mar25) x86_64-pc-linux-gnu,debian,trixie/sid;bpipe(2)"
    );
}

#[test]
fn commas_stand_before_every_third_digit() {
    assert_eq!(commas(0), "0");
    assert_eq!(commas(999), "999");
    assert_eq!(commas(1000), "1,000");
    assert_eq!(commas(1_234_567_890_123), "1,234,567,890,123");
}

#[test]
fn the_reply_to_a_bad_hello_shows_no_more_than_100_bytes() {
    let text = bad_hello("127.0.0.1", &[b'x'; 400]);
    assert!(text.ends_with(&[[b'x'; 100].as_slice(), b"\n"].concat()));
    assert!(!text.windows(101).any(|window| window == [b'x'; 101]));
}
