//! Leads a conversation of `fd-session` over a connection of `fd-transport`.

use std::time::{Duration, Instant};

use fd_bsock::Signal;
use fd_session::storage::{SignalReaction, react};
use fd_session::{Action, Input, Machine, TlsMode, TlsRole};
use fd_transport::{Certificates, Channel, ChannelError, Fault, Limits, Received, TlsSecret, TlsSide};

use crate::clock;
use crate::texts;

/// What happens to signals while an answer is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signals {
    /// Each is handed over: hellos and the Director's socket.
    All,
    /// As on an authenticated Storage Daemon's socket: some are answered or ignored
    /// (reference 01 §3.2).
    Storage,
}

/// The secrets by which we and a peer authenticate each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    /// The key of CRAM-MD5 and TLS-PSK.
    pub key: Vec<u8>,
    /// For TLS with certificates, where the resource has it.
    pub certificates: Option<Certificates>,
}

/// Does what `machine` asks until it ends. The whole conversation may take `limit`.
pub(crate) fn lead<M: Machine>(
    channel: &mut Channel,
    machine: &mut M,
    first: Vec<Action<M::Done, M::Error>>,
    secrets: &Secrets,
    signals: Signals,
    limit: Duration,
) -> Result<M::Done, M::Error> {
    let deadline = Instant::now().checked_add(limit);
    let left = |asked: Duration| deadline.map_or(asked, |end| asked.min(end.saturating_duration_since(Instant::now())));
    let mut actions = first;
    let mut broken: Option<String> = None;
    loop {
        let mut next = None;
        for action in actions {
            let done = match action {
                Action::Send(frame) => channel.send(&frame),
                Action::Signal(signal) => channel.signal(signal),
                Action::DropTls => channel.drop_tls(),
                Action::Pause(time) => {
                    let flushed = channel.flush();
                    brake(channel, time);
                    flushed
                }
                Action::StartTls(role, mode) => {
                    channel.limit_handshake(left(Limits::default().handshake));
                    next = Some(start_tls(channel, machine, role, mode, secrets));
                    Ok(())
                }
                Action::Receive(wait) => {
                    next = Some(match &broken {
                        Some(why) => machine.handle(Input::Gone(why)),
                        None => receive(channel, machine, signals, left(wait)),
                    });
                    Ok(())
                }
                Action::Done(done) => {
                    // What was sent last must not wait for the next answer; a broken connection
                    // shows there.
                    let _shows_at_the_next_receive = channel.flush();
                    return Ok(done);
                }
                Action::Failed(error) => {
                    let _the_failure_counts = channel.flush();
                    return Err(error);
                }
            };
            if let Err(error) = done {
                broken.get_or_insert_with(|| reason(&error));
            }
        }
        // A machine's list always ends in one of the four; one that does not would leave nothing to
        // do.
        actions = match next {
            Some(next) => next,
            None => machine.handle(Input::Gone("nothing left to do")),
        };
    }
}

/// Delays a peer that has failed. Ends when the channel is canceled, but not when the peer closes
/// it.
pub(crate) fn brake(channel: &Channel, time: Duration) {
    let canceler = channel.canceler();
    clock::pause_while(time, || !canceler.is_canceled());
}

fn start_tls<M: Machine>(
    channel: &mut Channel,
    machine: &mut M,
    role: TlsRole,
    mode: TlsMode,
    secrets: &Secrets,
) -> Vec<Action<M::Done, M::Error>> {
    let side = match role {
        TlsRole::Server => TlsSide::Server,
        TlsRole::Client => TlsSide::Client,
    };
    let secret = match (mode, &secrets.certificates) {
        (TlsMode::Psk, _) => TlsSecret::Key(&secrets.key),
        (TlsMode::Certificate, Some(ours)) => TlsSecret::Certificates(ours),
        // A resource that says it can use certificates has read them at the start.
        (TlsMode::Certificate, None) => return machine.handle(Input::TlsFailed(texts::NO_CERTIFICATES)),
    };
    match channel.start_tls(side, secret) {
        Ok(()) => machine.handle(Input::TlsReady),
        Err(error) if matches!(error.fault, Fault::WrongKey { .. }) => {
            machine.handle(Input::WrongKey(&error.to_string()))
        }
        Err(error) => machine.handle(Input::TlsFailed(&error.to_string())),
    }
}

fn receive<M: Machine>(
    channel: &mut Channel,
    machine: &mut M,
    signals: Signals,
    wait: Duration,
) -> Vec<Action<M::Done, M::Error>> {
    loop {
        let signal = match channel.recv(wait) {
            Ok(Received::Data(frame)) => return machine.handle(Input::Frame(frame)),
            Ok(Received::Empty) => return machine.handle(Input::Empty),
            Ok(Received::Signal(signal)) => signal,
            Err(error) => return machine.handle(Input::Gone(&reason(&error))),
        };
        let handed_over = match signals {
            Signals::All => Some(signal),
            Signals::Storage => match answer_storage_signal(channel, signal) {
                Ok(handed_over) => handed_over,
                Err(error) => return machine.handle(Input::Gone(&reason(&error))),
            },
        };
        if let Some(signal) = handed_over {
            return machine.handle(Input::Signal(signal));
        }
    }
}

/// Ends a sequence of frames: nothing else in the program sends `BNET_EOD`.
pub(crate) fn end_of_data(channel: &mut Channel) -> Result<(), ChannelError> {
    channel.signal(Signal::Eod)
}

/// Answers the signals of a Storage Daemon that need an answer. `Some`: the signal is for the
/// caller.
pub(crate) fn answer_storage_signal(channel: &mut Channel, signal: Signal) -> Result<Option<Signal>, ChannelError> {
    match react(signal) {
        SignalReaction::Return => return Ok(Some(signal)),
        SignalReaction::AcknowledgeAndReturn => {
            channel.send(texts::STORE_OK)?;
            return Ok(Some(Signal::Eod));
        }
        SignalReaction::Acknowledge => channel.send(texts::STORE_OK)?,
        SignalReaction::Status => {
            channel.send(texts::STORE_STATUS)?;
            end_of_data(channel)?;
        }
        SignalReaction::Ignore => {}
        SignalReaction::Unknown => tracing::warn!(%signal, "unknown signal from the Storage daemon"),
    }
    Ok(None)
}

/// The words for `ERR=`; a peer that closed while its answer was awaited has the stock daemon's.
pub(crate) fn reason(error: &ChannelError) -> String {
    match error.fault {
        Fault::Closed => "No data available".to_owned(),
        // Whoever it is, it speaks another protocol.
        Fault::Frame(_) => error.to_string(),
        _ => error.cause(),
    }
}
