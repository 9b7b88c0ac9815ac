//! What a state machine asks of its driver, and what the driver answers.

use std::time::Duration;

use fd_bsock::Signal;

/// The side that a TLS handshake is made from. The sender of `starttls` is the server, whichever
/// side opened the TCP connection (reference 01 §10.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsRole {
    /// We sent `starttls`.
    Server,
    /// The peer sent `starttls`.
    Client,
}

/// What authenticates a TLS session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsMode {
    /// The key that CRAM-MD5 uses too.
    Psk,
    /// X.509 certificates.
    Certificate,
}

/// One thing to do. A machine hands out a list; the driver does them in order. The last of a list
/// is always one that the driver answers ([`Action::Receive`], [`Action::StartTls`]) or that ends
/// the machine ([`Action::Done`], [`Action::Failed`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action<T, E> {
    /// Send one data frame.
    Send(Vec<u8>),
    /// Send a signal.
    Signal(Signal),
    /// Wait at most this long for one frame and answer with [`Input`].
    Receive(Duration),
    /// Make a TLS handshake and answer [`Input::TlsReady`], [`Input::TlsFailed`] or
    /// [`Input::WrongKey`].
    StartTls(TlsRole, TlsMode),
    /// Forget TLS without a `close_notify`; the next bytes are clear (reference 01 §11.5).
    DropTls,
    /// Wait this long before the next action: a brake on guessing passwords.
    Pause(Duration),
    /// The machine ended well.
    Done(T),
    /// The machine ended badly.
    Failed(E),
}

/// What the driver answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input<'a> {
    /// A data frame.
    Frame(&'a [u8]),
    /// An empty frame.
    Empty,
    /// A signal.
    Signal(Signal),
    /// The peer closed, the connection broke, or the wait was too long. The text says which.
    Gone(&'a str),
    /// The handshake is done.
    TlsReady,
    /// The handshake failed; the text says why.
    TlsFailed(&'a str),
    /// The handshake failed because the peer has another key; the text is that of
    /// [`Input::TlsFailed`].
    WrongKey(&'a str),
}

impl Input<'_> {
    /// The input in words, for an error; at most 100 bytes of what a peer sent.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Frame(frame) => format!("\"{}\"", frame.get(..100).unwrap_or(frame).escape_ascii()),
            Self::Empty => "an empty frame".to_owned(),
            Self::Signal(signal) => format!("signal {signal}"),
            Self::Gone(why) | Self::TlsFailed(why) | Self::WrongKey(why) => why.to_owned(),
            Self::TlsReady => "a TLS handshake".to_owned(),
        }
    }
}

/// A conversation that a driver leads over a connection.
pub trait Machine {
    /// The result of a good end.
    type Done;
    /// The reason of a bad end.
    type Error;

    /// Takes what came and says what to do next.
    fn handle(&mut self, input: Input<'_>) -> Vec<Action<Self::Done, Self::Error>>;
}
