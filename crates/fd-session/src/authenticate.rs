//! The mutual CRAM-MD5 exchange with its TLS start, for both sides of a hello.
//!
//! The server of the hello challenges first (reference 01 §8, §9), whichever side opened the TCP
//! connection. Not here: the hello before it and the OK after it.

mod credentials;
mod error;

use std::time::Duration;

use fd_bsock::cram;
use fd_bsock::hello::{self, Challenge, StartTls};

use crate::action::{Action, Input, Machine, TlsMode, TlsRole};
use crate::need::{Need, Negotiated};

use credentials::InFlight;
pub use credentials::{Challenges, Credentials};
pub use error::AuthError;

/// How long the peer may take for one answer (reference 01 §9.2).
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// The brake after a wrong or missing answer.
const BRAKE: Duration = Duration::from_secs(5);

/// The result of an authentication.
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
            // A requirement of ours is checked when the peer has proven itself, as in the stock
            // daemon.
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

    /// Whether a server of the hello begins an authentication with this frame.
    pub(crate) fn begins_with(frame: &[u8]) -> bool {
        StartTls::parse(frame).is_some() || Challenge::parse(frame).is_some()
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
        let ssl = Some(self.credentials.need.tls.to_wire());
        let line = Challenge { text: self.challenge.text.clone().into_bytes(), compatible: false, ssl };
        actions.push(Action::Send(line.encode()));
        actions.push(Action::Receive(ANSWER_TIMEOUT));
        actions
    }

    fn check_answer(&mut self, answer: &[u8]) -> Actions {
        // A server takes both encodings; a client only the one that current servers use.
        let accept_compatible = self.side == Side::Server || self.peer_compatible;
        if !cram::verify(&self.credentials.key, self.challenge.text.as_bytes(), answer, accept_compatible) {
            return self.turn_away(AuthError::WrongPassword);
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
            let error = AuthError::Unexpected { what: State::Listening.due(), got: Input::Frame(frame).describe() };
            return self.turn_away(error);
        };
        if let Some(ssl) = challenge.ssl {
            self.peer.tls = Need::from_wire(ssl).tls;
        }
        self.peer_compatible = challenge.compatible;
        if self.is_ours(&challenge.text) {
            return self.turn_away(AuthError::Reflected);
        }
        if self.side == Side::Client && !self.tls_on {
            // A peer whose first word is its challenge never begins TLS before it has our answer. A
            // peer that is turned away afterwards gets none: an answer is enough to guess passwords
            // with.
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

    /// Both sides are proven. TLS is dropped, stays, or begins now.
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

    fn turn_away(&mut self, error: AuthError) -> Actions {
        self.fail(vec![Action::Send(hello::AUTH_FAILED.to_vec()), Action::Pause(BRAKE)], error)
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
            (State::EarlyTls | State::LateTls, Input::WrongKey(why)) => {
                self.fail(Vec::new(), AuthError::WrongKey(why.to_owned()))
            }
            (State::EarlyTls | State::LateTls, other) => {
                let why = if let Input::TlsFailed(why) = other { why.to_owned() } else { other.describe() };
                self.fail(Vec::new(), AuthError::Tls(why))
            }
            (State::Challenged, Input::Frame(answer)) => self.check_answer(answer),
            (State::Listening, Input::Frame(challenge)) => self.answer_challenge(challenge),
            (State::Answered, Input::Frame(hello::AUTH_OK)) => self.answered(),
            (State::Answered, other) => {
                let refused = AuthError::Refused(other.describe());
                self.fail(vec![Action::Pause(BRAKE)], refused)
            }
            (State::Opening, other) => self.fail(vec![Action::Pause(BRAKE)], AuthError::NoStart(other.describe())),
            (state, other) => {
                let error = AuthError::Unexpected { what: state.due(), got: other.describe() };
                self.fail(vec![Action::Pause(BRAKE)], error)
            }
        }
    }
}

impl State {
    /// What is due in this state.
    const fn due(self) -> &'static str {
        match self {
            Self::EarlyTls | Self::LateTls => "waiting for the TLS handshake",
            Self::Challenged => "waiting for the answer to our challenge",
            Self::Listening => "waiting for the peer's challenge",
            Self::Answered => "waiting for the verdict on our answer",
            Self::Opening | Self::Ended => "the authentication had ended",
        }
    }
}

const fn mode(negotiated: Negotiated) -> TlsMode {
    match negotiated {
        Negotiated::Certificate => TlsMode::Certificate,
        _ => TlsMode::Psk,
    }
}

#[cfg(test)]
mod tests;
