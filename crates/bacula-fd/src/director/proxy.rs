//! `proxy`: a console that can reach this host only talks to the Director through us
//! (reference 02 §4.25, 06 §12.3).

use std::time::Duration;

use fd_bsock::Signal;
use fd_bsock::hello;
use fd_config::{Console, Director};
use fd_transport::{Channel, Received, wait_for_either};

use super::conversation::{Conversation, Flow};
use crate::connection::dial::{Call, DialError};
use crate::texts;

/// How long both sides may be silent before they are looked at all the same.
const LOOK: Duration = Duration::from_secs(5);

/// Frames of one side before the other one gets its turn.
const TURN: usize = 256;

/// What one side has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Passed {
    /// All that was there has been passed on.
    All,
    /// There may be more.
    Some,
    /// It has gone, or the other one has.
    Left,
    /// The Director takes the connection for itself.
    Called,
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
                self.reply(&texts::PROXY_FAILED.of(&why));
                self.signal(Signal::MainPrompt);
                Flow::GoOn
            }
        }
    }

    /// The Console resource that the Director resource names, else the first one, else the
    /// Director's own values.
    fn call(&self) -> Option<Call<'_>> {
        let Director { name, password, tls, address, port, .. } = self.resource;
        let (daemon, certificates) = (self.daemon, &self.daemon.certificates);
        let console = self.resource.console.as_ref().or_else(|| daemon.config().consoles.first());
        let host = console.and_then(|console| console.address.as_ref()).or(address.as_ref())?;
        let (port, its_certificates) = (*port, certificates.of_director(name));
        let call = Call { daemon, director: name, name, password, tls, certificates: its_certificates, host, port };
        let Some(console) = console else { return Some(call) };
        let Console { name, password, tls, port, .. } = console;
        Some(Call { name, password, tls, port: *port, certificates: certificates.of_console(name), ..call })
    }

    /// A connection on which the Director takes us for a console; else the reason why there is
    /// none.
    fn reach_director(&self) -> Result<Channel, String> {
        // Without an address the stock daemon gives no reason.
        let Some(call) = self.call() else { return Err(String::new()) };
        call.dial(&hello::console(call.name.as_bytes(), call.need().to_wire())).map_err(|error| words(&error))
    }

    /// Copies frames and signals both ways until one side ends. A Director that calls us gets the
    /// connection on which it calls; it is served when the console's is over.
    fn relay(&mut self, mut far: Channel) {
        loop {
            let from_director = pass(&mut far, &mut self.channel);
            if from_director == Passed::Called {
                // Its hello comes within this TLS session; the next session takes its place on the
                // socket.
                self.handed_over = Some(far);
                return;
            }
            let from_console = pass(&mut self.channel, &mut far);
            match (from_director, from_console) {
                (Passed::All, Passed::All) => wait_for_either(&self.channel, &far, LOOK),
                (Passed::All | Passed::Some, Passed::All | Passed::Some) => {}
                _ => break,
            }
        }
        // The end has been passed on, if the other side announced it.
        match far.leave() {
            Ok(farewell) => self.farewells.push(farewell),
            Err(error) => tracing::debug!(%error, "the proxied connection did not end cleanly"),
        }
    }
}

/// In the words that the stock daemon has for a console.
fn words(error: &DialError) -> String {
    match error {
        DialError::Unreachable(error) => format!("{error}\n"),
        DialError::Unknown { error, .. } => texts::no_console(error.detail()),
        DialError::Greeting(_) => texts::no_console(texts::NO_GREETING),
    }
}

/// Passes on what is there.
fn pass(from: &mut Channel, to: &mut Channel) -> Passed {
    for _ in 0..TURN {
        let passed = match from.try_recv() {
            // The stock daemon sends C strings, which end at a NUL.
            Ok(Some(Received::Data(frame))) => to.send(frame.split(|byte| *byte == 0).next().unwrap_or_default()),
            Ok(Some(Received::Empty)) => to.send(&[]),
            Ok(Some(Received::Signal(Signal::FdCalled))) => {
                // The console may have gone.
                let _left = flushed(to, Passed::Called);
                return Passed::Called;
            }
            Ok(Some(Received::Signal(signal))) => to.signal(signal),
            Ok(None) => return flushed(to, Passed::All),
            Err(_) => return flushed(to, Passed::Left),
        };
        if passed.is_err() {
            return Passed::Left;
        }
    }
    flushed(to, Passed::Some)
}

/// What was passed on leaves in one write.
fn flushed(to: &mut Channel, then: Passed) -> Passed {
    if to.flush().is_ok() { then } else { Passed::Left }
}
