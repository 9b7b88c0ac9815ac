//! What one side of a connection requires and has, and the result for two sides.

use bed::Authority;

/// The clients of a bed are `<reference or test>-<server>`.
pub(crate) const SIDES: [&str; 2] = ["reference", "test"];

/// The certificates that daemons of the matrix have.
#[derive(Debug)]
pub(crate) struct Papers {
    pub(crate) ours: Authority,
    pub(crate) other: Authority,
}

/// What the `TLS …` directives of a resource ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) name: &'static str,
    psk: bool,
    certificates: bool,
    pub(crate) require: bool,
}

const fn state(name: &'static str, psk: bool, certificates: bool, require: bool) -> State {
    State { name, psk, certificates, require }
}

/// In the order of the numbers 0, 1, 2, 100, 101, 200, 202 of reference 01 §10.1.
pub(crate) const STATES: [State; 7] = [
    state("none", false, false, false),
    state("cert", false, true, false),
    state("certreq", false, true, true),
    state("psk", true, false, false),
    state("both", true, true, false),
    state("pskreq", true, false, true),
    state("bothreq", true, true, true),
];

/// How a connection ends: rows are the servers of the hello, columns the clients, in the order of
/// [`STATES`] (reference 01 §10.3). `c` is clear, `t` TLS with certificates, `p` with the key, `x`
/// a refusal by either side.
const TABLE: [&str; 7] = ["ccxccxx", "cttctxt", "xttxtxt", "ccxpppp", "cttptpt", "xxxpppp", "xttptpt"];

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Clear,
    Certificates,
    Key,
    /// With TLS for the authentication only.
    ClearAgain,
    /// The operator reads this.
    Refused(&'static str),
}

/// What the table says.
pub(crate) fn end_of(server: usize, client: usize) -> End {
    match TABLE.get(server).and_then(|row| row.as_bytes().get(client)) {
        Some(b'c') => End::Clear,
        Some(b't') => End::Certificates,
        Some(b'p') => End::Key,
        _ => End::Refused(""),
    }
}

impl State {
    /// The state of this name.
    pub(crate) fn of(name: &str) -> Self {
        STATES.into_iter().find(|state| state.name == name).unwrap()
    }

    /// The directives, with the certificate of `who`.
    pub(crate) fn lines(&self, papers: &Papers, who: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.psk {
            lines.push("TLS PSK Enable = no".to_owned());
        }
        if self.certificates {
            lines.extend(["TLS Enable = yes".to_owned(), papers.ours.trusted()]);
            lines.extend(papers.ours.identity(who));
        }
        if self.require {
            lines.push("TLS Require = yes".to_owned());
        }
        lines
    }
}
