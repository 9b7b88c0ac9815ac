//! The mutual CRAM-MD5 exchange with its TLS start, for both sides of a hello.
//!
//! The server of the hello challenges first (reference 01 §8, §9); who opened the TCP connection does not matter.
//! Not here: the hello before it and the OK after it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fd_bsock::cram;
use fd_bsock::hello::{self, Challenge, StartTls};
use thiserror::Error;

use crate::action::{Action, Input, Machine, TlsMode, TlsRole};
use crate::need::{Need, Negotiated};
use crate::texts;

/// How long the peer may take for one answer (reference 01 §9.2).
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// The brake after a wrong or missing answer.
const BRAKE: Duration = Duration::from_secs(5);

/// What we bring to an authentication.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The daemon's own resource name; it stands in the challenge.
    pub own_name: String,
    /// The shared secret as text: 32 hex digits towards a Director, the session key towards a Storage Daemon.
    pub key: Vec<u8>,
    /// What our resource needs.
    pub need: Need,
    /// TLS is for the authentication only and is dropped after it.
    pub tls_authenticate: bool,
    /// Nothing is proven in clear, whatever else the needs allow (`tls.require` of `bacula-fd.toml`).
    pub require_tls: bool,
    /// Whether the peer may have our own name. Otherwise a challenge with that name is one of ours, perhaps of another
    /// process with the same configuration, and is not answered.
    pub peer_may_have_our_name: bool,
    /// All challenges of this process that wait for their answers.
    pub challenges: Challenges,
    /// A random number for our challenge.
    pub random: u32,
    /// Seconds since 1970, for our challenge.
    pub time: i64,
}

/// The challenges of all connections of a process that wait for their answers; clones share them.
///
/// CRAM-MD5 has the same answer in both directions. Somebody without the key could let us call it, send a challenge of
/// ours from another connection back to us, and take our answer there. So what is in here is never answered.
#[derive(Clone, Debug, Default)]
pub struct Challenges(Arc<Mutex<Vec<String>>>);

impl Challenges {
    fn enter(&self, text: &str) -> InFlight {
        self.with(|texts| texts.push(text.to_owned()));
        InFlight { all: self.clone(), text: text.to_owned() }
    }

    fn holds(&self, text: &[u8]) -> bool {
        self.with(|texts| texts.iter().any(|ours| ours.as_bytes() == text))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Vec<String>) -> T) -> T {
        // Nothing can panic half-way through a change.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One of the [`Challenges`], until this goes.
#[derive(Debug)]
struct InFlight {
    all: Challenges,
    text: String,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.all.with(|texts| {
            if let Some(place) = texts.iter().position(|text| *text == self.text) {
                texts.swap_remove(place);
            }
        });
    }
}

/// Why an authentication failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AuthError {
    /// The peer's answer to our challenge is wrong.
    #[error("wrong password: the peer's answer to our challenge does not fit our key")]
    WrongPassword,
    /// The peer does not accept our answer.
    #[error("the peer refused our answer to its challenge (wanted \"1000 OK auth\", got {0})")]
    Refused(String),
    /// One side requires encryption that the other does not offer.
    #[error("no common encryption: we need tlspsk={ours}, the peer said tlspsk={peers}")]
    Requirement {
        /// Our number.
        ours: i32,
        /// The peer's number.
        peers: i32,
    },
    /// Encryption is required, and the peer talks in clear.
    #[error("{}", texts::TLS_REQUIRED)]
    Clear,
    /// The challenge is our own.
    #[error("{}", texts::CHALLENGE_REFLECTED)]
    Reflected,
    /// The handshake failed.
    #[error("TLS handshake failed, check the passwords: {0}")]
    Tls(String),
    /// The peer said something else.
    #[error("{what}: {got}")]
    Unexpected {
        /// What was being waited for.
        what: &'static str,
        /// What came.
        got: String,
    },
}

impl AuthError {
    /// What the stock daemon says of it to a console, beside that there is a problem; mostly nothing.
    pub fn detail(&self) -> &str {
        match self {
            Self::Tls(why) => why,
            Self::Clear => texts::TLS_REQUIRED,
            Self::Reflected => texts::CHALLENGE_REFLECTED,
            Self::Unexpected { what, .. } if *what == State::Opening.wants() => texts::NO_STARTTLS,
            _ => "",
        }
    }
}

/// What both sides know when an authentication is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Authenticated {
    /// Whether the connection is encrypted from here on.
    pub encrypted: bool,
}

type Actions = Vec<Action<Authenticated, AuthError>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Server,
    Client,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Client: the first frame is `starttls` or already the challenge.
    Opening,
    /// A handshake before CRAM-MD5.
    EarlyTls,
    /// Our challenge is out.
    Challenged,
    /// The peer's challenge is awaited.
    Listening,
    /// Our answer is out.
    Answered,
    /// A handshake after CRAM-MD5, as old peers do it.
    LateTls,
    Ended,
}

/// One authentication.
#[derive(Debug)]
pub struct Authentication {
    side: Side,
    credentials: Credentials,
    peer: Need,
    state: State,
    tls_on: bool,
    challenge: InFlight,
    peer_compatible: bool,
}

impl Authentication {
    /// We are the server of the hello; `peer` is the need that the hello said.
    pub fn server(credentials: Credentials, peer: Need) -> (Self, Actions) {
        let mut this = Self::new(Side::Server, credentials, peer);
        let negotiated = this.credentials.need.negotiate(peer);
        let actions = match negotiated {
            Negotiated::Certificate | Negotiated::Psk => {
                this.state = State::EarlyTls;
                vec![
                    Action::Send(StartTls { tlspsk: this.credentials.need.to_wire() }.encode()),
                    Action::StartTls(TlsRole::Server, mode(negotiated)),
                ]
            }
            Negotiated::Clear | Negotiated::Refused if this.credentials.require_tls => {
                this.fail(Vec::new(), AuthError::Clear)
            }
            // A requirement of ours is checked when the peer has proven itself, as in the stock daemon.
            Negotiated::Clear | Negotiated::Refused => this.send_challenge(Vec::new()),
        };
        (this, actions)
    }

    /// We are the client of the hello, which has been sent.
    pub fn client(credentials: Credentials) -> (Self, Actions) {
        let mut this = Self::new(Side::Client, credentials, Need::default());
        this.state = State::Opening;
        (this, vec![Action::Receive(ANSWER_TIMEOUT)])
    }

    fn new(side: Side, credentials: Credentials, peer: Need) -> Self {
        let text = cram::challenge(credentials.random, credentials.time, &credentials.own_name);
        let challenge = credentials.challenges.enter(&text);
        Self { side, credentials, peer, state: State::Ended, tls_on: false, challenge, peer_compatible: false }
    }

    fn opening(&mut self, frame: &[u8]) -> Actions {
        let Some(start) = StartTls::parse(frame) else {
            return self.answer_challenge(frame);
        };
        self.peer = Need::from_wire(start.tlspsk);
        match self.credentials.need.negotiate(self.peer) {
            negotiated @ (Negotiated::Certificate | Negotiated::Psk) => {
                self.state = State::EarlyTls;
                vec![Action::StartTls(TlsRole::Client, mode(negotiated))]
            }
            Negotiated::Clear | Negotiated::Refused => self.refuse(),
        }
    }

    fn send_challenge(&mut self, mut actions: Actions) -> Actions {
        self.state = State::Challenged;
        let ssl = Some(i32::from(self.credentials.need.tls));
        let line = Challenge { text: self.challenge.text.clone().into_bytes(), compatible: false, ssl };
        actions.push(Action::Send(line.encode()));
        actions.push(Action::Receive(ANSWER_TIMEOUT));
        actions
    }

    fn check_answer(&mut self, answer: &[u8]) -> Actions {
        // A server takes both encodings; a client only the one that current servers use.
        let accept_compatible = self.side == Side::Server || self.peer_compatible;
        if !cram::verify(&self.credentials.key, self.challenge.text.as_bytes(), answer, accept_compatible) {
            let refusal = vec![Action::Send(hello::AUTH_FAILED.to_vec()), Action::Pause(BRAKE)];
            return self.fail(refusal, AuthError::WrongPassword);
        }
        let actions = vec![Action::Send(hello::AUTH_OK.to_vec())];
        match self.side {
            Side::Server => self.listen(actions),
            Side::Client => self.finish(actions),
        }
    }

    fn listen(&mut self, mut actions: Actions) -> Actions {
        self.state = State::Listening;
        actions.push(Action::Receive(ANSWER_TIMEOUT));
        actions
    }

    fn answer_challenge(&mut self, frame: &[u8]) -> Actions {
        let Some(challenge) = Challenge::parse(frame) else {
            let error = AuthError::Unexpected { what: State::Listening.wants(), got: describe(Input::Frame(frame)) };
            return self.fail(vec![Action::Send(hello::AUTH_FAILED.to_vec()), Action::Pause(BRAKE)], error);
        };
        if let Some(ssl) = challenge.ssl {
            self.peer.tls = Need::from_wire(ssl).tls;
        }
        self.peer_compatible = challenge.compatible;
        if self.is_ours(&challenge.text) {
            return self
                .fail(vec![Action::Send(hello::AUTH_FAILED.to_vec()), Action::Pause(BRAKE)], AuthError::Reflected);
        }
        if self.side == Side::Client && !self.tls_on {
            // A peer whose first word is its challenge never begins TLS before it has our answer. Nobody that we would
            // turn away afterwards gets one: it is enough to guess passwords with.
            if self.credentials.require_tls {
                return self.fail(Vec::new(), AuthError::Clear);
            }
            if self.credentials.need.negotiate(self.peer) == Negotiated::Refused {
                return self.refuse();
            }
        }
        let answer = cram::respond(&self.credentials.key, &challenge.text, challenge.compatible);
        self.state = State::Answered;
        vec![Action::Send(cram::answer_packet(&answer)), Action::Receive(ANSWER_TIMEOUT)]
    }

    fn is_ours(&self, challenge: &[u8]) -> bool {
        let Credentials { own_name, peer_may_have_our_name, challenges, .. } = &self.credentials;
        let names_us = || {
            let rest = challenge.strip_suffix(b">").and_then(|rest| rest.strip_suffix(own_name.as_bytes()));
            rest.is_some_and(|rest| rest.ends_with(b"@"))
        };
        challenges.holds(challenge) || (!peer_may_have_our_name && names_us())
    }

    fn answered(&mut self) -> Actions {
        match self.side {
            Side::Server => self.finish(Vec::new()),
            Side::Client => self.send_challenge(Vec::new()),
        }
    }

    /// Both sides know each other. TLS goes, stays, or comes now.
    fn finish(&mut self, mut actions: Actions) -> Actions {
        if self.tls_on {
            if self.credentials.tls_authenticate {
                self.tls_on = false;
                actions.push(Action::DropTls);
            }
            return self.end(actions);
        }
        match self.credentials.need.negotiate(self.peer) {
            negotiated @ (Negotiated::Certificate | Negotiated::Psk) => {
                let role = if self.side == Side::Server { TlsRole::Server } else { TlsRole::Client };
                self.state = State::LateTls;
                actions.push(Action::StartTls(role, mode(negotiated)));
                actions
            }
            Negotiated::Clear => self.end(actions),
            Negotiated::Refused => {
                actions.extend(self.refuse());
                actions
            }
        }
    }

    fn refuse(&mut self) -> Actions {
        let error = AuthError::Requirement { ours: self.credentials.need.to_wire(), peers: self.peer.to_wire() };
        self.fail(Vec::new(), error)
    }

    fn end(&mut self, mut actions: Actions) -> Actions {
        self.state = State::Ended;
        actions.push(Action::Done(Authenticated { encrypted: self.tls_on }));
        actions
    }

    fn fail(&mut self, mut actions: Actions, error: AuthError) -> Actions {
        self.state = State::Ended;
        actions.push(Action::Failed(error));
        actions
    }
}

impl Machine for Authentication {
    type Done = Authenticated;
    type Error = AuthError;

    fn handle(&mut self, input: Input<'_>) -> Vec<Action<Authenticated, AuthError>> {
        match (self.state, input) {
            (State::Opening, Input::Frame(frame)) => self.opening(frame),
            (State::EarlyTls, Input::TlsReady) => {
                self.tls_on = true;
                match self.side {
                    Side::Server => self.send_challenge(Vec::new()),
                    Side::Client => self.listen(Vec::new()),
                }
            }
            (State::LateTls, Input::TlsReady) => {
                self.tls_on = true;
                self.end(Vec::new())
            }
            (State::EarlyTls | State::LateTls, other) => {
                let why = if let Input::TlsFailed(why) = other { why.to_owned() } else { describe(other) };
                self.fail(Vec::new(), AuthError::Tls(why))
            }
            (State::Challenged, Input::Frame(answer)) => self.check_answer(answer),
            (State::Listening, Input::Frame(challenge)) => self.answer_challenge(challenge),
            (State::Answered, Input::Frame(hello::AUTH_OK)) => self.answered(),
            (State::Answered, other) => {
                let refused = AuthError::Refused(describe(other));
                self.fail(vec![Action::Pause(BRAKE)], refused)
            }
            (state, other) => {
                let error = AuthError::Unexpected { what: state.wants(), got: describe(other) };
                self.fail(vec![Action::Pause(BRAKE)], error)
            }
        }
    }
}

impl State {
    const fn wants(self) -> &'static str {
        match self {
            Self::Opening => "waiting for starttls or a challenge",
            Self::EarlyTls | Self::LateTls => "waiting for the TLS handshake",
            Self::Challenged => "waiting for the answer to our challenge",
            Self::Listening => "waiting for the peer's challenge",
            Self::Answered => "waiting for the verdict on our answer",
            Self::Ended => "the authentication had ended",
        }
    }
}

const fn mode(negotiated: Negotiated) -> TlsMode {
    match negotiated {
        Negotiated::Certificate => TlsMode::Certificate,
        _ => TlsMode::Psk,
    }
}

/// An input in words, for an error; never more than 100 bytes of what a peer sent.
pub(crate) fn describe(input: Input<'_>) -> String {
    match input {
        Input::Frame(frame) => {
            let shown = frame.get(..100).unwrap_or(frame);
            format!("\"{}\"", shown.escape_ascii())
        }
        Input::Empty => "an empty frame".to_owned(),
        Input::Signal(signal) => format!("signal {signal}"),
        Input::Gone(why) | Input::TlsFailed(why) => why.to_owned(),
        Input::TlsReady => "a TLS handshake".to_owned(),
    }
}

#[cfg(test)]
mod tests {
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
    fn the_real_exchange_without_tls() {
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
    fn both_sides_understand_each_other() {
        let (transcript, ends) = converse(credentials("w-sd", KEY, 0), credentials("w-fd", KEY, 0));
        assert_eq!(ends, [Ok(Authenticated { encrypted: false }), Ok(Authenticated { encrypted: false })]);
        assert_eq!(transcript.len(), 6, "{transcript:?}");
    }

    #[test]
    fn a_wrong_key_ends_on_both_sides() {
        let (transcript, ends) = converse(credentials("w-sd", KEY, 0), credentials("w-fd", b"other", 0));
        assert_eq!(ends[0], Err(AuthError::WrongPassword));
        assert!(matches!(&ends[1], Err(AuthError::Refused(got)) if got.contains("1999 Authorization failed.")));
        assert_eq!(transcript.last().map(String::as_str), Some("S 1999 Authorization failed.\\n"));
    }

    #[test]
    fn a_side_that_requires_encryption_never_talks_in_clear() {
        for (server, client) in [(200, 0), (0, 200), (2, 0), (0, 2), (2, 100), (100, 2), (200, 1)] {
            let (_, ends) = converse(credentials("a", KEY, server), credentials("b", KEY, client));
            assert!(
                ends.iter().any(|end| matches!(end, Err(AuthError::Requirement { .. }))),
                "{server} {client} {ends:?}"
            );
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
    fn anything_else_in_place_of_an_answer_is_braked_and_ends() {
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
        actions
            .iter()
            .any(|action| matches!(action, Action::Send(frame) if frame.len() == 23 && frame.ends_with(b"\0")))
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
        // Somebody calls us as a Director, and answers our own call with what we said there. Names prove nothing here.
        let (server, hears) = Authentication::server(with("w-fd", true), Need::default());
        let challenge = challenge_of(&hears).to_vec();
        for name in ["w-fd", "console"] {
            let (mut client, _) = Authentication::client(with(name, true));
            let actions = client.handle(Input::Frame(&challenge));
            assert!(!answers(&actions), "{actions:?}");
            assert_eq!(actions.last(), Some(&Action::Failed(AuthError::Reflected)));
        }
        // What is not in flight any more is somebody else's, if its name may be.
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
    fn who_needs_encryption_answers_no_challenge_in_clear() {
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
        // Old servers begin TLS with certificates when both know each other.
        let (mut client, _) = Authentication::client(credentials("w-fd", KEY, 2));
        assert!(answers(&client.handle(Input::Frame(b"auth cram-md5 <110644299.1795226764@w-dir> ssl=1\n"))));
    }

    #[test]
    fn where_tls_is_required_of_all_nobody_hears_a_thing_in_clear() {
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
}
