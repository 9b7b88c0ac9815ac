//! Both sides of an authentication, with peers that keep to it and peers that don't.

use fd_bsock::Signal;

use super::*;

const KEY: &[u8] = b"af2904ba21987b283d3f14cb9cfb5579";

fn credentials(name: &str, key: &[u8], tlspsk: i32) -> Credentials {
    Credentials {
        own_name: name.to_owned(),
        key: key.to_vec(),
        need: Need::from_wire(tlspsk),
        tls_authenticate: false,
        require_tls: false,
        peer_may_have_our_name: false,
        challenges: Challenges::default(),
        random: 254_337_502,
        time: 1_795_226_764,
    }
}

/// Two machines talk to each other; what each sent, and how each ended.
fn converse(server: Credentials, client: Credentials) -> (Vec<String>, [Result<Authenticated, AuthError>; 2]) {
    let peer = client.need;
    let (mut server, mut from_server) = Authentication::server(server, peer);
    let (mut client, mut from_client) = Authentication::client(client);
    let mut transcript = Vec::new();
    let mut ends = [None, None];
    for _round in 0..20 {
        let to_client = deliver(&from_server, "S", &mut transcript, &mut ends[0]);
        from_server.clear();
        for input in to_client {
            if ends[1].is_none() {
                from_client = client.handle(as_input(&input));
            }
        }
        let to_server = deliver(&from_client, "C", &mut transcript, &mut ends[1]);
        from_client.clear();
        for input in to_server {
            if ends[0].is_none() {
                from_server = server.handle(as_input(&input));
            }
        }
    }
    (transcript, ends.map(|end| end.unwrap_or(Err(AuthError::Refused("never ended".to_owned())))))
}

enum Passed {
    Frame(Vec<u8>),
    Tls,
}

fn as_input(passed: &Passed) -> Input<'_> {
    match passed {
        Passed::Frame(frame) => Input::Frame(frame),
        Passed::Tls => Input::TlsReady,
    }
}

fn deliver(
    actions: &Actions,
    who: &str,
    transcript: &mut Vec<String>,
    end: &mut Option<Result<Authenticated, AuthError>>,
) -> Vec<Passed> {
    let mut passed = Vec::new();
    for action in actions {
        match action {
            Action::Send(frame) => {
                transcript.push(format!("{who} {}", frame.escape_ascii()));
                passed.push(Passed::Frame(frame.clone()));
            }
            Action::StartTls(role, mode) => {
                transcript.push(format!("{who} {role:?} {mode:?}"));
                if *role == TlsRole::Client {
                    passed.push(Passed::Tls);
                }
            }
            Action::DropTls => transcript.push(format!("{who} drops TLS")),
            Action::Done(done) => *end = Some(Ok(*done)),
            Action::Failed(error) => *end = Some(Err(error.clone())),
            Action::Signal(_) | Action::Receive(_) | Action::Pause(_) => {}
        }
    }
    passed
}

#[test]
fn a_real_exchange_without_tls_ends_well() {
    let (mut server, actions) = Authentication::server(credentials("w-fd", KEY, 0), Need::default());
    assert_eq!(actions[0], Action::Send(b"auth cram-md5 <254337502.1795226764@w-fd> ssl=0\n".to_vec()));
    let actions = server.handle(Input::Frame(b"0wdCU9UpTFgdv551L7+jzA\0"));
    assert_eq!(actions[0], Action::Send(b"1000 OK auth\n".to_vec()));
    let actions = server.handle(Input::Frame(b"auth cram-md5 <110644299.1795226764@w-dir> ssl=0\n"));
    assert_eq!(actions[0], Action::Send(b"x4Eyo7+N/7+cO51bX+/dOB\0".to_vec()));
    let actions = server.handle(Input::Frame(b"1000 OK auth\n"));
    assert_eq!(actions, [Action::Done(Authenticated { encrypted: false })]);
}

#[test]
fn with_psk_the_server_of_the_hello_starts_tls_and_then_challenges() {
    let (mut server, actions) = Authentication::server(credentials("w-fd", KEY, 100), Need::from_wire(100));
    assert_eq!(
        actions,
        [Action::Send(b"starttls tlspsk=100\n".to_vec()), Action::StartTls(TlsRole::Server, TlsMode::Psk)]
    );
    let actions = server.handle(Input::TlsReady);
    assert!(matches!(&actions[0], Action::Send(line) if line.starts_with(b"auth cram-md5 <")));
}

#[test]
fn both_sides_end_well_with_the_same_key() {
    let (transcript, ends) = converse(credentials("w-sd", KEY, 0), credentials("w-fd", KEY, 0));
    assert_eq!(ends, [Ok(Authenticated { encrypted: false }), Ok(Authenticated { encrypted: false })]);
    assert_eq!(transcript.len(), 6, "{transcript:?}");
}

#[test]
fn a_wrong_key_fails_on_both_sides() {
    let (transcript, ends) = converse(credentials("w-sd", KEY, 0), credentials("w-fd", b"other", 0));
    assert_eq!(ends[0], Err(AuthError::WrongPassword));
    assert!(matches!(&ends[1], Err(AuthError::Refused(got)) if got.contains("1999 Authorization failed.")));
    assert_eq!(transcript.last().map(String::as_str), Some("S 1999 Authorization failed.\\n"));
}

#[test]
fn a_side_that_requires_encryption_never_talks_in_clear() {
    for (server, client) in [(200, 0), (0, 200), (2, 0), (0, 2), (2, 100), (100, 2), (200, 1)] {
        let (_, ends) = converse(credentials("a", KEY, server), credentials("b", KEY, client));
        assert!(ends.iter().any(|end| matches!(end, Err(AuthError::Requirement { .. }))), "{server} {client} {ends:?}");
        assert!(!ends.contains(&Ok(Authenticated { encrypted: true })), "{server} {client}");
    }
}

#[test]
fn tls_for_the_authentication_only_is_dropped_at_the_end() {
    let mut only_auth = credentials("w-fd", KEY, 100);
    only_auth.tls_authenticate = true;
    let (mut server, _) = Authentication::server(only_auth, Need::from_wire(100));
    let _challenge = server.handle(Input::TlsReady);
    let _ok = server.handle(Input::Frame(b"0wdCU9UpTFgdv551L7+jzA\0"));
    let _answer = server.handle(Input::Frame(b"auth cram-md5 <110644299.1795226764@w-dir> ssl=0\n"));
    assert_eq!(
        server.handle(Input::Frame(b"1000 OK auth\n")),
        [Action::DropTls, Action::Done(Authenticated { encrypted: false })]
    );
}

#[test]
fn anything_else_in_place_of_an_answer_fails_after_a_pause() {
    for input in [Input::Empty, Input::Signal(Signal::Heartbeat), Input::Gone("No data available")] {
        let (mut server, _) = Authentication::server(credentials("w-fd", KEY, 0), Need::default());
        let actions = server.handle(input);
        assert_eq!(actions[0], Action::Pause(Duration::from_secs(5)));
        assert!(matches!(actions[1], Action::Failed(AuthError::Unexpected { .. })));
    }
}

/// Our challenge of `from`, as it goes over the wire.
fn challenge_of(from: &Actions) -> &[u8] {
    let sent = from.iter().find_map(|action| match action {
        Action::Send(frame) if frame.starts_with(b"auth cram-md5 ") => Some(frame.as_slice()),
        _ => None,
    });
    sent.unwrap()
}

fn answers(actions: &Actions) -> bool {
    actions.iter().any(|action| matches!(action, Action::Send(frame) if frame.len() == 23 && frame.ends_with(b"\0")))
}

#[test]
fn a_challenge_of_ours_is_not_answered_on_any_connection() {
    let challenges = Challenges::default();
    let mut random = 0;
    let mut with = |name: &str, may: bool| {
        random += 1;
        let challenges = challenges.clone();
        Credentials { challenges, peer_may_have_our_name: may, random, ..credentials(name, KEY, 100) }
    };
    // A peer calls us as a Director, and answers our own call with what we said there. Names prove
    // nothing here.
    let (server, sent) = Authentication::server(with("w-fd", true), Need::default());
    let challenge = challenge_of(&sent).to_vec();
    for name in ["w-fd", "console"] {
        let (mut client, _) = Authentication::client(with(name, true));
        let actions = client.handle(Input::Frame(&challenge));
        assert!(!answers(&actions), "{actions:?}");
        assert_eq!(actions.last(), Some(&Action::Failed(AuthError::Reflected)));
    }
    // What is no longer in flight may be another process's challenge, if the peer may have our
    // name.
    drop(server);
    assert!(answers(&Authentication::client(with("w-fd", true)).0.handle(Input::Frame(&challenge))));
    let (mut client, _) = Authentication::client(with("w-fd", false));
    assert_eq!(client.handle(Input::Frame(&challenge)).last(), Some(&Action::Failed(AuthError::Reflected)));
    drop(client);
    assert!(challenges.with(|texts| texts.is_empty()));
}

#[test]
fn a_challenge_that_only_looks_like_ours_is_answered() {
    for text in ["<1.2@x-w-fd>", "<1.2@w-fdx>", "<1.2@w-dir>", "<1.2@w-fd", "w-fd>"] {
        let (mut client, _) = Authentication::client(credentials("w-fd", KEY, 100));
        let line = format!("auth cram-md5 {text} ssl=0\n");
        assert!(answers(&client.handle(Input::Frame(line.as_bytes()))), "{text}");
    }
}

#[test]
fn a_side_that_requires_encryption_answers_no_challenge_in_clear() {
    let clear = b"auth cram-md5 <110644299.1795226764@w-dir> ssl=0\n";
    for required in [2, 200, 202] {
        let (mut client, _) = Authentication::client(credentials("w-fd", KEY, required));
        let actions = client.handle(Input::Frame(clear));
        assert!(matches!(actions[..], [Action::Failed(AuthError::Requirement { .. })]), "{required}: {actions:?}");
    }
    for possible in [0, 1, 100, 101] {
        let (mut client, _) = Authentication::client(credentials("w-fd", KEY, possible));
        assert!(answers(&client.handle(Input::Frame(clear))), "{possible}");
    }
    // Old servers begin TLS with certificates when both are proven.
    let (mut client, _) = Authentication::client(credentials("w-fd", KEY, 2));
    assert!(answers(&client.handle(Input::Frame(b"auth cram-md5 <110644299.1795226764@w-dir> ssl=1\n"))));
}

#[test]
fn with_tls_required_of_all_nothing_is_sent_in_clear() {
    let strict = || Credentials { require_tls: true, ..credentials("w-fd", KEY, 202) };
    for number in [0, 2] {
        let (_, actions) = Authentication::server(strict(), Need::from_wire(number));
        match number {
            0 => assert_eq!(actions, [Action::Failed(AuthError::Clear)]),
            _ => assert!(actions.contains(&Action::StartTls(TlsRole::Server, TlsMode::Certificate))),
        }
        let line = format!("auth cram-md5 <110644299.1795226764@w-dir> ssl={number}\n");
        let (mut client, _) = Authentication::client(strict());
        assert_eq!(client.handle(Input::Frame(line.as_bytes())), [Action::Failed(AuthError::Clear)]);
    }
    let (mut client, _) = Authentication::client(strict());
    let actions = client.handle(Input::Frame(b"starttls tlspsk=100\n"));
    assert_eq!(actions, [Action::StartTls(TlsRole::Client, TlsMode::Psk)]);
    client.handle(Input::TlsReady);
    assert!(answers(&client.handle(Input::Frame(b"auth cram-md5 <110644299.1795226764@w-dir> ssl=0\n"))));
}

#[test]
fn a_challenge_that_does_not_scan_is_refused() {
    let (mut client, _) = Authentication::client(credentials("w-fd", KEY, 0));
    let actions = client.handle(Input::Frame(b"3999 No go\n"));
    assert_eq!(actions[0], Action::Send(b"1999 Authorization failed.\n".to_vec()));
    assert!(matches!(actions[2], Action::Failed(AuthError::Unexpected { .. })));
}

#[test]
fn a_console_is_told_why_only_where_the_stock_daemon_has_words() {
    let (mut client, _) = Authentication::client(credentials("w-fd", KEY, 0));
    let actions = client.handle(Input::Gone("No data available"));
    let [Action::Pause(_), Action::Failed(error)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!(error.to_string(), "waiting for starttls or a challenge: No data available");
    assert_eq!(error.detail(), "[FE0071] Unable to get starttls protocol");
    assert_eq!(AuthError::WrongPassword.detail(), "");
}
