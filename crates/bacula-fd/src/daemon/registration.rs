//! `Connect To Director`: the daemon calls the Director and waits until that uses the connection
//! (reference 01 §14, 06 §12.1).
//!
//! A thread for each such Director keeps one connection ready. When the Director uses it, another
//! thread serves it like one that the Director has made, and the next one is made at once.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fd_bsock::Signal;
use fd_bsock::hello::{self, REGISTERED};
use fd_config::Director;
use fd_messages::MessageType;
use fd_session::authenticate::AuthError;
use fd_transport::{Channel, Fault, Received};

use crate::clock;
use crate::connection::dial::{Call, DialError};
use crate::daemon::listener;
use crate::daemon::timetable::Timetable;
use crate::director;
use crate::shared::daemon::Daemon;
use crate::texts;

/// How often clock and timetable are checked while nothing happens.
const LOOK: Duration = Duration::from_secs(5);
/// Pause after a failed try.
const PAUSE: Duration = Duration::from_secs(5);
/// How long the Director may take for its second line.
const GREETING: Duration = Duration::from_secs(15);

/// Why a connection is no longer kept ready.
enum Left {
    /// The Director uses it.
    Called(Box<Channel>),
    /// It is old, or outside the schedule.
    Enough,
    /// It broke, or the Director said something else.
    Lost(String),
}

/// Why a Director could not be called since the last time that it could: each reason is told once.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    /// So many different ones are told.
    const MOST: usize = 8;

    fn is_new(&self, why: &str) -> bool {
        self.0.len() < Self::MOST && !self.0.iter().any(|told| told == why)
    }

    fn note(&mut self, why: String) {
        if self.is_new(&why) {
            self.0.push(why);
        }
    }

    /// Whether there were some.
    fn end(&mut self) -> bool {
        !std::mem::take(&mut self.0).is_empty()
    }
}

/// Starts a thread for every Director that is to be called.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    for number in 0..daemon.config().directors.len() {
        let wanted = daemon.config().directors.get(number).is_some_and(|director| {
            // Without an address the stock daemon does nothing, without a message.
            director.connect_to_director && director.address.is_some()
        });
        if !wanted {
            continue;
        }
        let shared = Arc::clone(daemon);
        let spawned = thread::Builder::new().name("calls Director".to_owned()).spawn(move || {
            if let Some(director) = shared.config().directors.get(number) {
                stay_ready(&shared, director);
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread to call a Director with");
        }
    }
}

/// Keeps a connection ready for as long as the daemon lives.
fn stay_ready(daemon: &Arc<Daemon>, director: &Director) {
    let mut timetable = Timetable::new(director.schedule.as_ref());
    let mut failures = Failures::default();
    loop {
        if !timetable.is_open(clock::seconds()) {
            thread::sleep(LOOK);
            continue;
        }
        let made = Instant::now();
        let left = match register(daemon, director) {
            Ok(channel) => {
                if failures.end() {
                    tracing::warn!(director = %director.name, "the Director accepts our calls again");
                }
                wait_for_call(channel, director.reconnection_time, &mut timetable)
            }
            Err(error) => {
                let why = error.to_string();
                if failures.is_new(&why) {
                    report(daemon, director, &error);
                }
                Left::Lost(why)
            }
        };
        match left {
            Left::Called(channel) => serve(daemon, *channel),
            Left::Enough => {}
            Left::Lost(why) => {
                if failures.is_new(&why) {
                    tracing::warn!(director = %director.name, %why, "the Director can't be called; retrying");
                }
                failures.note(why);
                // A Director that drops every connection at once must not cause calls in a tight
                // loop.
                if made.elapsed() < PAUSE {
                    thread::sleep(PAUSE);
                }
            }
        }
    }
}

/// Calls the Director and registers.
fn register(daemon: &Daemon, director: &Director) -> Result<Channel, DialError> {
    let Some(host) = director.address.as_deref() else { return Err(DialError::Greeting(String::new())) };
    let own = &daemon.config().file_daemon;
    let call = Call {
        daemon,
        director: &director.name,
        name: &own.name,
        password: &director.password,
        tls: &director.tls,
        certificates: daemon.certificates.of_director(&director.name),
        host,
        port: director.port,
    };
    let mut channel = call.dial(&hello::registration(own.name.as_bytes(), call.need().to_wire()))?;
    match channel.recv(GREETING) {
        Ok(Received::Data(line)) if line == REGISTERED => Ok(channel),
        Ok(other) => Err(DialError::Greeting(format!("{other:?}"))),
        Err(error) => Err(DialError::Greeting(error.to_string())),
    }
}

/// Another program answers in the Director's place, or the Director is not encrypted as it has to
/// be: a security message for the operator. What is wrong with its certificate is an error.
fn report(daemon: &Daemon, director: &Director, failure: &DialError) {
    let DialError::Unknown { error, certificate_errors } = failure else { return };
    daemon.supervisor.say_certificate_errors(certificate_errors);
    if let why @ (AuthError::Clear | AuthError::Reflected) = error {
        let host = director.address.as_deref().unwrap_or_default();
        let text = texts::suspicious_login(director.name.as_bytes(), host, why.detail());
        daemon.supervisor.say(MessageType::Security, "authenticate.c", text);
    }
}

/// Keeps the connection until something happens to it.
fn wait_for_call(mut channel: Channel, most: Duration, timetable: &mut Timetable<'_>) -> Left {
    let made = Instant::now();
    loop {
        match channel.recv(LOOK) {
            Ok(Received::Signal(Signal::IsAlive)) => {
                let answered = channel
                    .signal(Signal::IsAlive)
                    .and_then(|()| channel.flush())
                    // Both sides drop TLS: a new hello in clear comes next.
                    .and_then(|()| channel.drop_tls());
                return match answered {
                    Ok(()) => Left::Called(Box::new(channel)),
                    Err(error) => Left::Lost(error.to_string()),
                };
            }
            Ok(Received::Signal(Signal::Terminate)) => return Left::Lost(Signal::Terminate.to_string()),
            Ok(Received::Signal(_)) => {}
            Ok(other) => return Left::Lost(format!("{other:?}")),
            Err(error) if matches!(error.fault, Fault::TimedOut { .. }) => {
                if made.elapsed() >= most || !timetable.is_open(clock::seconds()) {
                    leave(channel);
                    return Left::Enough;
                }
            }
            Err(error) => return Left::Lost(error.to_string()),
        }
    }
}

fn leave(channel: Channel) {
    if let Err(error) = channel.leave() {
        tracing::debug!(%error, "the Director's connection did not end cleanly");
    }
}

/// The Director has taken a connection: from here on it is like one that the Director has made.
fn serve(daemon: &Arc<Daemon>, channel: Channel) {
    let director = channel.canceler();
    let Some(slot) = daemon.logins.called.take(|| director.peer_has_left()) else { return };
    let shared = Arc::clone(daemon);
    let peer = channel.address().to_string();
    listener::serve(&peer, move || director::serve_channel(&shared, channel, slot));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_for_which_a_director_can_not_be_called_is_told_once_until_it_can() {
        let mut failures = Failures::default();
        let mut told = |why: &str| {
            let is_new = failures.is_new(why);
            failures.note(why.to_owned());
            is_new
        };
        let reasons = ["refused", "refused", "certificate", "refused", "certificate"];
        assert_eq!(reasons.map(&mut told), [true, false, true, false, false]);
        // Not without end.
        let many = (0..20).filter(|number| told(&number.to_string())).count();
        assert_eq!(many, Failures::MOST - 2);
        assert!(failures.end() && !failures.end() && failures.is_new("refused"));
    }
}
