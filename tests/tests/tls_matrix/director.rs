//! The Director calls: the File Daemon is the server.

use bed::FD_PASSWORD;

use crate::states::{End, Papers, STATES, State, end_of};

/// What the Director's operator reads when a login failed after the handshake.
const NOT_AUTHENTICATED: &str = "Director unable to authenticate with File Daemon";
const HANDSHAKE: &str = "TLS Connect failure. Check the passwords.";

/// A File Daemon of the matrix as a server.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) lines: Vec<String>,
    /// It supports nothing newer than TLS 1.2.
    pub(crate) old: bool,
}

/// A `Client` resource of the Director.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) lines: Vec<String>,
    pub(crate) password: &'static str,
}

/// One connection to try.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) server: &'static str,
    pub(crate) caller: &'static str,
    pub(crate) end: End,
}

pub(crate) fn servers(papers: &Papers) -> Vec<Server> {
    let with = |name, state: &str, line: &str| {
        let mut lines = State::of(state).lines(papers, "fd");
        lines.push(line.to_owned());
        Server { name, lines, old: false }
    };
    let plain = STATES.map(|state| Server { name: state.name, lines: state.lines(papers, "fd"), old: false });
    let old = |name, state: &str| Server { name, lines: State::of(state).lines(papers, "fd"), old: true };
    let special = [
        with("cn-good", "certreq", "TLS Allowed CN = DIRECTOR"),
        with("cn-bad", "certreq", "TLS Allowed CN = nobody"),
        with("no-verify", "certreq", "TLS Verify Peer = no"),
        with("login-only", "certreq", "TLS Authenticate = yes"),
        Server { name: "elsewhere", lines: State::of("certreq").lines(papers, "elsewhere"), old: false },
        old("psk-1.2", "psk"),
        old("certreq-1.2", "certreq"),
    ];
    plain.into_iter().chain(special).collect()
}

pub(crate) fn caller(papers: &Papers, name: &str) -> Caller {
    let of = |lines: Vec<String>| Caller { lines, password: FD_PASSWORD };
    let certificates = |trusted: String, identity: Vec<String>| {
        let first = vec!["TLS PSK Enable = no".to_owned(), "TLS Enable = yes".to_owned(), trusted];
        of([first, identity].concat())
    };
    let Papers { ours, other } = papers;
    match name {
        "psk wrong" => Caller { password: "wrong", ..of(State::of("psk").lines(papers, "Director")) },
        "none wrong" => Caller { password: "wrong", ..of(State::of("none").lines(papers, "Director")) },
        "no certificate" => certificates(ours.trusted(), Vec::new()),
        "stranger" => certificates(ours.trusted(), other.identity("stranger")),
        "distrustful" => certificates(other.trusted(), ours.identity("Director")),
        "login-only" => {
            let mut lines = State::of("certreq").lines(papers, "Director");
            lines.push("TLS Authenticate = yes".to_owned());
            of(lines)
        }
        state => of(State::of(state).lines(papers, "Director")),
    }
}

/// Every pair of states, then what is right, wrong and missing.
pub(crate) fn rows() -> Vec<Row> {
    let row = |server, caller, end| Row { server, caller, end };
    let pairs = (0..STATES.len()).flat_map(|server| (0..STATES.len()).map(move |caller| (server, caller)));
    let mut rows: Vec<_> = pairs
        .filter_map(|(server, caller)| {
            Some(row(STATES.get(server)?.name, STATES.get(caller)?.name, end_of(server, caller)))
        })
        .collect();
    rows.extend([
        row("psk", "psk wrong", End::Refused(HANDSHAKE)),
        row("pskreq", "psk wrong", End::Refused(HANDSHAKE)),
        row("none", "none wrong", End::Refused(NOT_AUTHENTICATED)),
        row("cert", "no certificate", End::Refused(NOT_AUTHENTICATED)),
        row("certreq", "no certificate", End::Refused(NOT_AUTHENTICATED)),
        row("certreq", "stranger", End::Refused(NOT_AUTHENTICATED)),
        row("certreq", "distrustful", End::Refused("certificate verify failed")),
        row("cn-good", "certreq", End::Certificates),
        row("cn-bad", "certreq", End::Refused(NOT_AUTHENTICATED)),
        row("no-verify", "no certificate", End::Certificates),
        row("no-verify", "stranger", End::Certificates),
        row("elsewhere", "certreq", End::Refused("Host name \"127.0.0.1\" did not match presented certificate")),
        row("login-only", "login-only", End::ClearAgain),
        row("login-only", "certreq", End::Refused("Bad response from File daemon")),
        row("psk-1.2", "psk", End::Key),
        row("psk-1.2", "psk wrong", End::Refused(HANDSHAKE)),
        row("certreq-1.2", "certreq", End::Certificates),
        row("certreq-1.2", "no certificate", End::Refused(HANDSHAKE)),
    ]);
    rows
}
