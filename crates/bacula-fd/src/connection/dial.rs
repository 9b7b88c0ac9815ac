//! Calling a Director ourselves: to be at his disposal (`registration`), or for a console (`proxy`).

use std::time::Duration;

use fd_bsock::hello::is_director_acceptance;
use fd_config::{PasswordKey, Tls};
use fd_session::authenticate::{AuthError, Authentication};
use fd_session::{Action, Need};
use fd_transport::{Certificates, Channel, ConnectError, ConnectPlan, ConnectWatch, Limits, Peer, PeerKind, Received};

use crate::connection::dialogue::{self, Secrets, Signals};
use crate::shared::daemon::Daemon;

/// Between two tries to connect (reference 01 §18.4).
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// When to give up, and how long the Director may take to know us (reference 01 §14).
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// Who we are for the Director, and where he is.
#[derive(Clone, Debug)]
pub(crate) struct Call<'c> {
    /// Who calls.
    pub daemon: &'c Daemon,
    /// Our name in the hello and in our challenge.
    pub name: &'c str,
    /// His name, as our configuration has it.
    pub director: &'c str,
    /// What we share with him.
    pub password: &'c PasswordKey,
    /// How the connection is protected.
    pub tls: &'c Tls,
    /// The certificates of `tls`.
    pub certificates: Option<&'c Certificates>,
    /// His host.
    pub host: &'c str,
    /// His port.
    pub port: u16,
    /// Idle time before TCP looks whether he is still there.
    pub keep_idle: Option<Duration>,
}

/// Why a Director can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// He can't be reached.
    #[error(transparent)]
    Unreachable(#[from] ConnectError),
    /// He does not know us, or we don't know him.
    #[error(transparent)]
    Unknown(#[from] AuthError),
    /// He has said something else than that he takes us.
    #[error("the Director's greeting: {0}")]
    Greeting(String),
}

struct Impatient;

impl ConnectWatch for Impatient {
    fn cancelled(&self) -> bool {
        false
    }

    fn retrying(&self, text: &str) {
        tracing::debug!(%text, "the Director does not answer yet");
    }
}

impl Call<'_> {
    /// What we need, as the hello says it.
    pub(crate) const fn need(&self) -> Need {
        self.daemon.need(self.tls)
    }

    /// A connection on which the Director has accepted us. `hello` is the first line.
    pub(crate) fn dial(&self, hello: &[u8]) -> Result<Channel, DialError> {
        let plan = ConnectPlan {
            peer: Peer { kind: PeerKind::Director, host: self.host.to_owned(), port: self.port },
            source: None,
            retry_every: RETRY_EVERY,
            give_up_after: GIVE_UP_AFTER,
            keep_idle: self.keep_idle,
            send_buffer: None,
        };
        let mut channel = Channel::connect(&plan, Limits::default(), &Impatient)?;
        let mut credentials = self.daemon.credentials(self.name, self.password.as_bytes(), self.tls);
        credentials.peer_may_have_our_name = self.director == self.name;
        let secrets = Secrets { key: credentials.key.clone(), certificates: self.certificates.cloned() };
        let (mut machine, mut first) = Authentication::client(credentials);
        first.insert(0, Action::Send(hello.to_vec()));
        dialogue::lead(&mut channel, &mut machine, first, &secrets, Signals::All, GIVE_UP_AFTER)?;
        let said = match channel.recv(GIVE_UP_AFTER) {
            Ok(Received::Data(line)) if is_director_acceptance(line) => return Ok(channel),
            Ok(Received::Data(line)) => String::from_utf8_lossy(line).trim_end().to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.cause(),
        };
        Err(DialError::Greeting(said))
    }
}
