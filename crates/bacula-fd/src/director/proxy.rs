//! `proxy`: a console that can reach this host only talks to the Director through us (reference 02 §4.25, 06 §12.3).

use std::time::Duration;

use fd_bsock::Signal;
use fd_bsock::hello::{CONSOLE_VERSION, ConsoleHello};
use fd_config::Director;
use fd_session::texts;
use fd_transport::{Channel, Fault, Received};

use super::{Conversation, Flow};
use crate::dial::Call;

/// How long one side is listened to before the other one gets its turn.
const TURN: Duration = Duration::from_millis(10);

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
    fn call(&self) -> Option<Call<'_>> {
        let Director { name, password, tls, address, port, .. } = self.resource;
        let keyring = self.daemon.keyring();
        let call = match self.resource.console.as_ref().or_else(|| self.daemon.config().consoles.first()) {
            Some(console) => Call {
                name: &console.name,
                password: &console.password,
                tls: &console.tls,
                certificates: keyring.of_console(&console.name),
                host: console.address.as_ref().or(address.as_ref())?,
                port: console.port,
                keep_idle: None,
            },
            None => Call {
                name,
                password,
                tls,
                certificates: keyring.of_director(name),
                host: address.as_ref()?,
                port: *port,
                keep_idle: None,
            },
        };
        Some(call)
    }

    /// A connection on which the Director takes us for a console; else the reason why there is none.
    fn reach_director(&self) -> Result<Channel, String> {
        // Without an address the stock daemon has no words.
        let Some(call) = self.call() else { return Err(String::new()) };
        let tlspsk = call.need().to_wire();
        let hello = ConsoleHello { name: call.name.as_bytes().to_vec(), version: CONSOLE_VERSION, tlspsk };
        call.dial(&hello.encode())
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
