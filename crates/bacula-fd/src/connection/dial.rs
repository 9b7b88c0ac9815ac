//! Calls to a Director: to keep a connection ready for it (`registration`), or for a console
//! (`proxy`).

use std::time::Duration;

use fd_bsock::hello::is_director_acceptance;
use fd_config::{PasswordKey, Tls};
use fd_messages::Said;
use fd_session::authenticate::{AuthError, Authentication};
use fd_session::{Action, Need};
use fd_transport::{Certificates, Channel, ConnectError, ConnectPlan, ConnectWatch, Limits, Peer, PeerKind, Received};

use crate::connection::dialogue::{self, Secrets, Signals};
use crate::shared::daemon::Daemon;
use crate::texts;

/// Between two tries to connect (reference 01 §18.4).
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// When to give up, and how long the Director may take to authenticate us (reference 01 §14).
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// Our identity towards the Director, and its address.
#[derive(Clone, Debug)]
pub(crate) struct Call<'c> {
    /// The daemon that calls.
    pub daemon: &'c Daemon,
    /// Our name in the hello and in our challenge.
    pub name: &'c str,
    /// The Director's name, as our configuration has it.
    pub director: &'c str,
    /// The shared password.
    pub password: &'c PasswordKey,
    /// How the connection is protected.
    pub tls: &'c Tls,
    /// The certificates of `tls`.
    pub certificates: Option<Certificates>,
    /// The Director's host.
    pub host: &'c str,
    /// The Director's port.
    pub port: u16,
}

/// Why a Director can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// It can't be reached.
    #[error(transparent)]
    Unreachable(#[from] ConnectError),
    /// It doesn't authenticate us, or we don't authenticate it.
    #[error("{}", texts::why_not_authenticated(.error, .certificate_errors))]
    Unknown {
        /// Why.
        error: AuthError,
        /// The fault of the Director's certificates.
        certificate_errors: Vec<String>,
    },
    /// Its greeting is something else than an acceptance.
    #[error("the Director's greeting: {0}")]
    Greeting(String),
}

struct Impatient;

impl ConnectWatch for Impatient {
    fn canceled(&self) -> bool {
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
            // So that a firewall keeps the connection, and a dead line is noticed.
            keep_idle: Some(self.daemon.config().file_daemon.heartbeat_interval),
            send_buffer: None,
        };
        let mut channel = Channel::connect(&plan, Limits::default(), &Impatient)?;
        let mut credentials = self.daemon.credentials(self.name, self.password.as_bytes(), self.tls);
        credentials.peer_may_have_our_name = self.director == self.name;
        let secrets = Secrets { key: credentials.key.clone(), certificates: self.certificates.clone() };
        let (mut machine, mut first) = Authentication::client(credentials);
        first.insert(0, Action::Send(hello.to_vec()));
        let led = dialogue::lead(&mut channel, &mut machine, first, &secrets, Signals::All, GIVE_UP_AFTER);
        led.map_err(|error| DialError::Unknown { error, certificate_errors: channel.certificate_errors().to_vec() })?;
        let said = match channel.recv(GIVE_UP_AFTER) {
            Ok(Received::Data(line)) if is_director_acceptance(line) => return Ok(channel),
            Ok(Received::Data(line)) => Said::of_bytes(line).as_str().to_owned(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.cause(),
        };
        Err(DialError::Greeting(said))
    }
}
