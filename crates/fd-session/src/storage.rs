//! The hello to a Storage Daemon, with capabilities and authentication; what its signals mean; what
//! can go wrong. Not here: what is said afterwards (`append`, `read`).

use std::fmt;
use std::time::Duration;

use fd_bsock::Signal;
use fd_bsock::hello;
use thiserror::Error;

use crate::action::{Action, Input, Machine};
use crate::authenticate::{ANSWER_TIMEOUT, AuthError, Authenticated, Authentication, Credentials};

/// The whole hello and authentication may take this long (reference 01 §19).
pub const HELLO_TIMEOUT: Duration = Duration::from_secs(600);

/// Which way the data of a session goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the volume.
    Append,
    /// From the volume.
    Read,
}

/// As commands name it.
impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Append { "append" } else { "read" })
    }
}

/// Why the dialogue with a Storage Daemon ended. [`StorageError::message`] is the text for the
/// operator.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StorageError {
    /// No capability line.
    #[error("no capabilities from the Storage daemon: {0}")]
    NoCapabilities(String),
    /// Not a capability line.
    #[error("bad capabilities from the Storage daemon: {}", .0.escape_ascii())]
    BadCapabilities(Vec<u8>),
    /// Authentication failed; the stock daemon has no message for it.
    #[error("authentication with the Storage daemon failed: {0}")]
    Authentication(#[from] AuthError),
    /// Authenticated, but no OK.
    #[error("the Storage daemon ended the hello: {0}")]
    NoHello(String),
    /// Wrong answer to `append open` or `read open`.
    #[error("bad answer to {0} open: {got}", got = .1.escape_ascii())]
    Open(Direction, Vec<u8>),
    /// No answer to it.
    #[error("no answer to {0} open")]
    OpenGone(Direction),
    /// Another text than the one wanted.
    #[error("bad answer to {command}: wanted {}, got {}", .wanted.escape_ascii(), .got.escape_ascii())]
    Response {
        /// The command as messages name it.
        command: &'static str,
        /// The text that the protocol has here.
        wanted: &'static [u8],
        /// The text that came.
        got: Vec<u8>,
    },
    /// A signal instead of a text.
    #[error("bad answer to {command}: wanted {}, got signal {got}", .wanted.escape_ascii())]
    ResponseSignal {
        /// The command as messages name it.
        command: &'static str,
        /// The text that the protocol has here.
        wanted: &'static [u8],
        /// The signal that came.
        got: Signal,
    },
    /// The connection broke instead of a text.
    #[error("bad answer to {command}: {reason}")]
    ResponseGone {
        /// The command as messages name it.
        command: &'static str,
        /// The system's words.
        reason: String,
    },
    /// No status after `append close`.
    #[error("no status after append close")]
    AppendClose,
    /// The Storage Daemon's own verdict on the job.
    #[error("the Storage daemon ended the job with status {0}")]
    BadStatus(u8),
}

/// The answer was not the one wanted.
pub(crate) fn bad_response(command: &'static str, wanted: &'static [u8], input: Input<'_>) -> StorageError {
    match input {
        Input::Frame(got) => StorageError::Response { command, wanted, got: got.to_vec() },
        Input::Empty => StorageError::Response { command, wanted, got: Vec::new() },
        Input::Signal(got) => StorageError::ResponseSignal { command, wanted, got },
        Input::Gone(reason) | Input::TlsFailed(reason) | Input::WrongKey(reason) => {
            StorageError::ResponseGone { command, reason: reason.to_owned() }
        }
        Input::TlsReady => StorageError::ResponseGone { command, reason: input.describe() },
    }
}

/// What to do about a signal from the Storage Daemon, or about what its text means, while an answer
/// or records are awaited (reference 01 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalReaction {
    /// Return it to the caller.
    Return,
    /// Say `2000 OK`, then hand over an end of data.
    AcknowledgeAndReturn,
    /// Say `2000 OK` and go on waiting.
    Acknowledge,
    /// Say `Status OK` with an `EOD` and go on waiting.
    Status,
    /// Go on waiting.
    Ignore,
    /// No stock daemon sends this; log it and go on waiting.
    Unknown,
}

/// See [`SignalReaction`].
pub const fn react(signal: Signal) -> SignalReaction {
    match signal {
        Signal::Eod | Signal::Terminate => SignalReaction::Return,
        Signal::EodPoll => SignalReaction::AcknowledgeAndReturn,
        Signal::Poll => SignalReaction::Acknowledge,
        Signal::Status => SignalReaction::Status,
        Signal::Heartbeat | Signal::HbResponse => SignalReaction::Ignore,
        _ => SignalReaction::Unknown,
    }
}

/// The result of a hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StorageGreeting {
    /// Whether the connection is encrypted.
    pub encrypted: bool,
    /// The Storage Daemon's protocol number; 0 if it said something else (any text counts as OK,
    /// reference 01 §12).
    pub version: i32,
    /// Its largest and its smallest block of deduplication, bytes.
    pub dedup_blocks: (u64, u64),
}

#[derive(Debug)]
enum State {
    Capabilities(Credentials),
    Authenticating(Box<Authentication>),
    Hello(Authenticated),
    Ended,
}

/// The hello to a Storage Daemon, on a connection that either side opened.
#[derive(Debug)]
pub struct StorageHello {
    state: State,
    proxy: bool,
    dedup_blocks: (u64, u64),
}

type Actions = Vec<Action<StorageGreeting, StorageError>>;

impl StorageHello {
    /// `job` is the full job name, `proxy`: our Director is a remote one.
    pub fn start(job: &[u8], credentials: Credentials, proxy: bool) -> (Self, Actions) {
        let tlspsk = credentials.need.to_wire();
        let greeting = hello::start_job(job, tlspsk);
        let this = Self { state: State::Capabilities(credentials), proxy, dedup_blocks: (0, 0) };
        // One whose jobs are as many as it may run answers when one of them has ended.
        (this, vec![Action::Send(greeting), Action::Receive(HELLO_TIMEOUT)])
    }

    fn capabilities(&mut self, credentials: Credentials, input: Input<'_>) -> Actions {
        match input {
            Input::Frame(frame) if let Some(sizes) = hello::dedup_block_sizes(frame) => {
                self.dedup_blocks = sizes;
                let caps = Action::Send(hello::file_daemon_capabilities(self.proxy));
                let (authentication, actions) = Authentication::client(credentials);
                self.state = State::Authenticating(Box::new(authentication));
                let mut all = vec![caps];
                all.extend(self.carry_on(actions));
                all
            }
            // A Storage Daemon before 13 has none: it begins with the authentication.
            Input::Frame(frame) if Authentication::begins_with(frame) => {
                let (mut authentication, _) = Authentication::client(credentials);
                let actions = authentication.handle(input);
                self.state = State::Authenticating(Box::new(authentication));
                self.carry_on(actions)
            }
            Input::Frame(frame) => vec![Action::Failed(StorageError::BadCapabilities(frame.to_vec()))],
            other => vec![Action::Failed(StorageError::NoCapabilities(other.describe()))],
        }
    }

    /// Passes on the authentication's actions; its end begins the last step.
    fn carry_on(&mut self, actions: Vec<Action<Authenticated, AuthError>>) -> Actions {
        let mut all = Vec::with_capacity(actions.len());
        for action in actions {
            all.push(match action {
                Action::Send(frame) => Action::Send(frame),
                Action::Signal(signal) => Action::Signal(signal),
                Action::Receive(limit) => Action::Receive(limit),
                Action::StartTls(role, mode) => Action::StartTls(role, mode),
                Action::DropTls => Action::DropTls,
                Action::Pause(time) => Action::Pause(time),
                Action::Done(authenticated) => {
                    self.state = State::Hello(authenticated);
                    Action::Receive(ANSWER_TIMEOUT)
                }
                Action::Failed(error) => {
                    self.state = State::Ended;
                    Action::Failed(error.into())
                }
            });
        }
        all
    }
}

impl Machine for StorageHello {
    type Done = StorageGreeting;
    type Error = StorageError;

    fn handle(&mut self, input: Input<'_>) -> Vec<Action<StorageGreeting, StorageError>> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Capabilities(credentials) => self.capabilities(credentials, input),
            State::Authenticating(mut authentication) => {
                let actions = authentication.handle(input);
                self.state = State::Authenticating(authentication);
                self.carry_on(actions)
            }
            State::Hello(authenticated) => vec![match input {
                Input::Frame(frame) => Action::Done(StorageGreeting {
                    encrypted: authenticated.encrypted,
                    version: hello::storage_accepted(frame),
                    dedup_blocks: self.dedup_blocks,
                }),
                other => Action::Failed(StorageError::NoHello(other.describe())),
            }],
            State::Ended => vec![Action::Failed(StorageError::NoHello(input.describe()))],
        }
    }
}

/// The ticket in `3000 OK open ticket = <n>\n`.
pub(crate) fn parse_ticket(frame: &[u8]) -> Option<i64> {
    leading_number(frame.strip_prefix(b"3000 OK open ticket = ")?).map(i64::from)
}

/// The decimal number that `text` begins with; no digits, a sign or more than nine digits are no
/// number.
pub(crate) fn leading_number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return None;
    }
    let number = text.iter().take(digits).fold(0, |number: u32, byte| number * 10 + u32::from(byte - b'0'));
    Some(number)
}

#[cfg(test)]
mod tests;
