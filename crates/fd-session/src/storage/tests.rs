//! Hellos of Storage Daemons with and without capabilities, and what their signals mean.

use super::*;
use crate::authenticate::Challenges;
use crate::need::Need;

const KEY: &[u8] = b"FHDM-NHEO-KGBJ-ABPN-DFPH-IEFC-NMBL-EAPC";

fn greeting(tlspsk: i32, require_tls: bool) -> StorageHello {
    start(tlspsk, require_tls).0
}

fn start(tlspsk: i32, require_tls: bool) -> (StorageHello, Actions) {
    let credentials = Credentials {
        own_name: "w-fd".to_owned(),
        key: KEY.to_vec(),
        need: Need::from_wire(tlspsk),
        tls_authenticate: false,
        require_tls,
        peer_may_have_our_name: false,
        challenges: Challenges::default(),
        random: 1,
        time: 2,
    };
    StorageHello::start(b"job", credentials, false)
}

/// The frames of a list of actions.
fn sent(actions: &[Action<StorageGreeting, StorageError>]) -> Vec<&[u8]> {
    let frames = actions.iter().filter_map(|action| match action {
        Action::Send(frame) => Some(frame.as_slice()),
        _ => None,
    });
    frames.collect()
}

/// It takes no further job while as many run as it may run.
#[test]
fn a_busy_storage_daemon_may_take_as_long_as_the_whole_hello_for_its_first_answer() {
    assert_eq!(start(100, false).1.last(), Some(&Action::Receive(HELLO_TIMEOUT)));
}

/// As 9.6.7 speaks (reference 01 §12).
#[test]
fn a_storage_daemon_without_capabilities_begins_with_its_challenge() {
    let challenge = b"auth cram-md5 <1.2@sd> ssl=0\n";
    let answer =
        |challenge: &str| [fd_bsock::cram::respond(KEY, challenge.as_bytes(), false).as_bytes(), b"\0"].concat();
    let mut machine = greeting(100, false);
    assert_eq!(sent(&machine.handle(Input::Frame(challenge))), [&answer("<1.2@sd>")[..]]);
    let actions = machine.handle(Input::Frame(b"1000 OK auth\n"));
    assert_eq!(sent(&actions), [b"auth cram-md5 <1.2@w-fd> ssl=0\n"]);
    let actions = machine.handle(Input::Frame(&answer("<1.2@w-fd>")));
    assert_eq!(sent(&actions), [b"1000 OK auth\n"]);
    assert_eq!(actions.last(), Some(&Action::Receive(ANSWER_TIMEOUT)));
    let end = StorageGreeting { encrypted: false, version: 306, dedup_blocks: (0, 0) };
    assert_eq!(machine.handle(Input::Frame(b"3000 OK Hello 306\n")), [Action::Done(end)]);
}

#[test]
fn a_storage_daemon_without_capabilities_gets_no_answer_where_tls_is_required() {
    for (tlspsk, require_tls) in [(100, true), (200, false), (2, false)] {
        let actions = greeting(tlspsk, require_tls).handle(Input::Frame(b"auth cram-md5 <1.2@sd> ssl=0\n"));
        assert!(matches!(actions[..], [Action::Failed(StorageError::Authentication(_))]), "{actions:?}");
    }
}

#[test]
fn what_is_neither_a_capability_nor_an_authentication_ends_the_hello() {
    for bad in [&b"sdcaps: dedup=0\n"[..], b"auth", b"3000 OK Hello 306\n", b""] {
        let actions = greeting(0, false).handle(Input::Frame(bad));
        assert_eq!(actions, [Action::Failed(StorageError::BadCapabilities(bad.to_vec()))]);
    }
    // It has not logged in, and writes into the job's log.
    let text = StorageError::BadCapabilities(b"x\n25-Nov 01:00 dir JobId 7: \x1b[2J\n".to_vec()).message();
    assert_eq!(text, b"hello.c:191 Bad caps from SD: x 25-Nov 01:00 dir JobId 7:  [2J.\n");
}

#[test]
fn each_signal_of_a_storage_daemon_has_its_reaction() {
    let reactions = [
        (Signal::Eod, SignalReaction::Return),
        (Signal::EodPoll, SignalReaction::AcknowledgeAndReturn),
        (Signal::Status, SignalReaction::Status),
        (Signal::Terminate, SignalReaction::Return),
        (Signal::Poll, SignalReaction::Acknowledge),
        (Signal::Heartbeat, SignalReaction::Ignore),
        (Signal::HbResponse, SignalReaction::Ignore),
        (Signal::BTime, SignalReaction::Unknown),
    ];
    for (signal, reaction) in reactions {
        assert_eq!(react(signal), reaction, "{signal}");
    }
}

#[test]
fn numbers_end_where_the_digits_end() {
    assert_eq!(leading_number(b"12\n"), Some(12));
    assert_eq!(leading_number(b"0 x"), Some(0));
    assert_eq!(leading_number(b""), None);
    assert_eq!(leading_number(b"-1"), None);
    assert_eq!(leading_number(b"9999999999"), None);
}
