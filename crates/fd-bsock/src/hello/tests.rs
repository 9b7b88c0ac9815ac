//! Hellos, challenges and capabilities of real daemons, and lines that are none.

use super::*;

#[test]
fn all_five_hellos_of_a_director_are_read() {
    let hello = |name: &[u8], version, tlspsk| Some(DirectorHello { name: name.to_vec(), version, tlspsk });
    for (line, expected) in [
        (&b"Hello Director w-dir calling 10002 tlspsk=100\n"[..], hello(b"w-dir", 10002, 100)),
        (b"Hello Director w-dir calling 103\n", hello(b"w-dir", 103, 0)),
        (b"Hello Director w-dir calling\n", hello(b"w-dir", 0, 0)),
        (b"Hello w-dir calling 10002 tlspsk=2\n", hello(b"w-dir", 10002, 2)),
        (b"Hello w-dir calling 10002\n", hello(b"w-dir", 10002, 0)),
        (b"Hello Director my\x01dir calling 10002 tlspsk=0\n", hello(b"my dir", 10002, 0)),
        (b"Hello w-dir calling\n", None),
        (b"Hello Director w-dir callxing 10002 tlspsk=0\n", None),
    ] {
        assert_eq!(DirectorHello::parse(line), expected, "{}", line.escape_ascii());
    }
    let knows_events = |version| hello(b"w-dir", version, 0).is_some_and(|hello| hello.knows_events());
    assert_eq!([10002, 103, 0, -1].map(knows_events), [true, false, false, false]);
    let long = [b"Hello Director ", &[b'n'; 128][..], b" calling 10002 tlspsk=0\n"].concat();
    assert_eq!(DirectorHello::parse(&long), None);
}

#[test]
fn a_first_packet_is_told_by_its_beginning_and_length() {
    assert_eq!(FirstPacket::of(b"Ping"), FirstPacket::Ping);
    assert_eq!(FirstPacket::of(b"Hello w-dir calling 1234"), FirstPacket::Bad);
    assert_eq!(FirstPacket::of(b"Hello w-dir calling 12345"), FirstPacket::Director);
    assert_eq!(FirstPacket::of(b"Hello FD: Bacula Storage calling Start Job x 1\n"), FirstPacket::StorageCall);
    assert_eq!(FirstPacket::of(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), FirstPacket::Bad);
    let mut long = b"Hello ".to_vec();
    long.resize(500, b'x');
    assert_eq!(FirstPacket::of(&long), FirstPacket::Director);
    long.push(b'x');
    assert_eq!(FirstPacket::of(&long), FirstPacket::Bad);
    assert_eq!(FirstPacket::of(b""), FirstPacket::Bad);
}

#[test]
fn hellos_of_the_file_daemon_and_a_call_of_the_storage_daemon() {
    let hello = start_job(b"b1.2026-11-21_02.56.53_03", 0);
    assert_eq!(hello, b"Hello Bacula SD: Start Job b1.2026-11-21_02.56.53_03 15 tlspsk=0\n");
    assert_eq!(registration(b"w-fd", 100), b"Hello w-fd fdcallsdir 1 tlspsk=100\n");
    assert_eq!(console(b"my console", 100), b"Hello my\x01console calling 1 tlspsk=100\n");
    let call = b"Hello FD: Bacula Storage calling Start Job b1.2026-11-21_02.30.16_03 30008\n";
    assert_eq!(StorageCall::parse(call), Some(StorageCall { job: b"b1.2026-11-21_02.30.16_03".to_vec() }));
    assert_eq!(StorageCall::parse(b"Hello FD: Bacula Storage calling\n"), None);
}

#[test]
fn starttls_and_each_form_of_challenge_are_read_and_written() {
    assert_eq!(StartTls::parse(b"starttls tlspsk=100\n"), Some(StartTls { tlspsk: 100 }));
    assert_eq!(StartTls { tlspsk: 100 }.encode(), b"starttls tlspsk=100\n");
    let line = b"auth cram-md5 <1796554246.1795229815@w-fd> ssl=0\n";
    assert_eq!(StartTls::parse(line), None);
    let text = b"<1796554246.1795229815@w-fd>".to_vec();
    let challenge = Challenge { text: text.clone(), compatible: false, ssl: Some(0) };
    assert_eq!(Challenge::parse(line), Some(challenge.clone()));
    assert_eq!(challenge.encode(), line);
    assert_eq!(
        Challenge::parse(b"auth cram-md5c <1796554246.1795229815@w-fd> ssl=2\n"),
        Some(Challenge { text: text.clone(), compatible: true, ssl: Some(2) })
    );
    assert_eq!(
        Challenge::parse(b"auth cram-md5 <1796554246.1795229815@w-fd>\n"),
        Some(Challenge { text, compatible: false, ssl: None })
    );
    assert_eq!(Challenge::parse(b"1000 OK auth\n"), None);
}

#[test]
fn capabilities_of_both_daemons() {
    let line = b"sdcaps: dedup=0 hash=1 dedup_block=65536 min_dedup_block=1024 max_dedup_block=66556\n";
    assert_eq!(dedup_block_sizes(line), Some((66556, 1024)));
    assert_eq!(dedup_block_sizes(b"sdcaps: dedup=0 hash=1 dedup_block=65536\n"), None);
    assert_eq!(file_daemon_capabilities(true), b"fdcaps: dedup=0 rehydration=0 proxy=1\n");
}

#[test]
fn acceptances_of_storage_daemon_and_director() {
    assert_eq!(storage_accepted(b"3000 OK Hello 30008\n"), 30008);
    assert_eq!(storage_accepted(b"3999 No go\n"), 0);
    assert!(is_director_acceptance(b"1000 OK: 10002 w-dir Version: 15.0.3 (25 March 2025)\n"));
    assert!(!is_director_acceptance(b"1999 You are not authorized.\n"));
}
