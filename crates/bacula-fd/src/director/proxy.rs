//! `proxy`: a console that can reach this host only talks to the Director through us (reference 02 §4.25, 06 §12.3).

use std::time::Duration;

use fd_bsock::Signal;
use fd_bsock::hello::{CONSOLE_VERSION, ConsoleHello, director_accepted};
use fd_config::{Director, PasswordKey, Tls};
use fd_session::authenticate::{Authentication, Credentials};
use fd_session::{Need, texts};
use fd_transport::{Channel, ConnectPlan, ConnectWatch, Fault, Limits, Peer, PeerKind, Received};

use super::{Conversation, Flow};
use crate::clock;
use crate::exchange::{self, Secrets, Signals};
use crate::keyring;

/// Between two tries to connect, and when to give up; also how long the Director may take to know us.
const RETRY_EVERY: Duration = Duration::from_secs(5);
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);
/// How long one side is listened to before the other one gets its turn.
const TURN: Duration = Duration::from_millis(10);

/// Who we are for the Director, and where he is.
struct Identity<'d> {
    name: &'d str,
    password: &'d PasswordKey,
    tls: &'d Tls,
    address: Option<&'d String>,
    port: u16,
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

impl Conversation<'_> {
    pub(super) fn proxy(&mut self) -> Flow {
        match self.reach_director() {
            Ok(far) => {
                self.reply(texts::OK_PROXY);
                self.signal(Signal::MainPrompt);
                self.relay(far);
                Flow::End
            }
            Err(why) => {
                tracing::warn!(%why, director = %self.resource.name, "proxy");
                self.signal(Signal::ErrorMsg);
                self.reply(&texts::proxy_failed(&why));
                self.signal(Signal::MainPrompt);
                Flow::GoOn
            }
        }
    }

    /// The Console resource that the Director's one names, else the first one, else the Director's own.
    fn identity(&self) -> Identity<'_> {
        let Director { name, password, tls, address, port, .. } = self.resource;
        match self.resource.console.as_ref().or_else(|| self.daemon.config().consoles.first()) {
            Some(console) => Identity {
                name: &console.name,
                password: &console.password,
                tls: &console.tls,
                address: console.address.as_ref().or(address.as_ref()),
                port: console.port,
            },
            None => Identity { name, password, tls, address: address.as_ref(), port: *port },
        }
    }

    /// A connection on which the Director takes us for a console; else the reason why there is none.
    fn reach_director(&self) -> Result<Channel, String> {
        let identity = self.identity();
        // Without an address the stock daemon has no words.
        let Some(host) = identity.address else { return Err(String::new()) };
        let plan = ConnectPlan {
            peer: Peer { kind: PeerKind::Director, host: host.clone(), port: identity.port },
            source: None,
            retry_every: RETRY_EVERY,
            give_up_after: GIVE_UP_AFTER,
            keep_idle: None,
            send_buffer: None,
        };
        let mut channel = Channel::connect(&plan, Limits::default(), &Impatient).map_err(|error| error.to_string())?;
        let (tls, psk) = identity.tls.need();
        let need = Need { tls, psk };
        let hello =
            ConsoleHello { name: identity.name.as_bytes().to_vec(), version: CONSOLE_VERSION, tlspsk: need.to_wire() };
        channel.send(&hello.encode()).map_err(|error| error.cause())?;
        let key = identity.password.as_bytes().to_vec();
        let credentials = Credentials {
            own_name: identity.name.to_owned(),
            key: key.clone(),
            need,
            tls_authenticate: identity.tls.authenticate,
            random: crate::daemon::random(),
            time: clock::seconds(),
        };
        let certificates = keyring::certificates(identity.tls).map_err(|problem| problem.to_string())?;
        let secrets = Secrets { key, certificates };
        let (mut machine, first) = Authentication::client(credentials);
        exchange::lead(&mut channel, &mut machine, first, &secrets, Signals::All, GIVE_UP_AFTER)
            .map_err(|error| error.to_string())?;
        match channel.recv(GIVE_UP_AFTER) {
            Ok(Received::Data(line)) if director_accepted(line).is_some() => Ok(channel),
            Ok(Received::Data(line)) => Err(String::from_utf8_lossy(line).trim_end().to_owned()),
            Ok(Received::Empty | Received::Signal(_)) => Err("no greeting".to_owned()),
            Err(error) => Err(error.cause()),
        }
    }

    /// Copies frames and signals both ways until one side has enough.
    fn relay(&mut self, mut far: Channel) {
        loop {
            let done = copy(&mut self.channel, &mut far) || copy(&mut far, &mut self.channel);
            if done {
                break;
            }
        }
        if let Err(error) = far.signal(Signal::Terminate).and_then(|()| far.close()) {
            tracing::debug!(%error, "the proxied connection did not end cleanly");
        }
    }
}

/// Hands on what comes within a turn; whether that was the end.
fn copy(from: &mut Channel, to: &mut Channel) -> bool {
    let mut wait = TURN;
    loop {
        let passed = match from.recv(wait) {
            Ok(Received::Data(frame)) => to.send(frame),
            Ok(Received::Empty) => to.send(&[]),
            Ok(Received::Signal(Signal::Terminate)) => return true,
            Ok(Received::Signal(signal)) => to.signal(signal),
            Err(error) if matches!(error.fault, Fault::TimedOut { .. }) => break,
            Err(_) => return true,
        };
        if passed.is_err() {
            return true;
        }
        // What else is there already leaves in the same write.
        wait = Duration::ZERO;
    }
    to.flush().is_err()
}
