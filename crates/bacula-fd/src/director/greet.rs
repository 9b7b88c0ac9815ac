//! From an accepted connection to an authenticated Director, or to the end of it
//! (reference 01 §6.4, §8).

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fd_bsock::hello::{self, DirectorHello, FirstPacket, StorageCall};
use fd_bsock::{FrameError, MAX_PAYLOAD, Signal};
use fd_config::Director;
use fd_messages::{MessageType, Numbering, shown};
use fd_os::threads;
use fd_session::Need;
use fd_session::authenticate::{AuthError, Authenticated, Authentication};
use fd_transport::{Channel, Farewell, Fault, Received};

use super::commands::Remains;
use super::conversation::Conversation;
use crate::connection::dialogue::{self, Secrets, Signals};
use crate::security::hosts_access;
use crate::security::places::Place;
use crate::shared::daemon::Daemon;
use crate::shared::slots::Slot;
use crate::shared::supervisor::Session;
use crate::shortage;
use crate::texts;

/// The largest frame before a peer is known, in bytes (reference 01 §6.4, §9.3).
const LARGEST_FRAME: usize = 500;
/// The brake on a first frame that is no hello, and on a call that no job waits for.
const BAD_HELLO_PAUSE: Duration = Duration::from_secs(5);
/// The brake on a failed authentication.
const FAILURE_PAUSE: Duration = Duration::from_secs(6);

/// Which peers a connection is counted among.
#[derive(Debug)]
enum Standing {
    /// Among the callers that have not logged in.
    Stranger(Place),
    /// Among the peers that are served.
    Known {
        /// It is held, and free again when this goes.
        _slot: Slot,
    },
}

impl Standing {
    /// The peer has logged in: from now on it takes one of the places of jobs. Until one is free it
    /// keeps the place that it has, so that it is not sent away. `false` if it has left meanwhile.
    fn become_known(&mut self, daemon: &Daemon, channel: &Channel) -> bool {
        if let Self::Stranger(place) = self {
            place.keep();
            let peer = channel.canceler();
            let Some(slot) = daemon.logins.slots.take(|| peer.peer_has_left()) else { return false };
            keep_alive(daemon, channel);
            *self = Self::Known { _slot: slot };
        }
        true
    }
}

/// Serves an accepted connection to its end.
pub(crate) fn serve(daemon: &Daemon, channel: Channel, place: Place) {
    let (peer, own) = (channel.address(), channel.own_address());
    // It may ask a name server or a host that is the stranger's, who takes no place for longer than
    // others do.
    let ask = || {
        let (name, client) = (daemon.config().file_daemon.name.clone(), hosts_access::Client::new(peer, own));
        threads::start("asks for a name", move || hosts_access::is_allowed(&name, &client))
    };
    let asked = shortage::ask_again(ask, |_| !place.is_sent_away());
    match asked.map(|asked| asked.end(|| !place.is_sent_away())) {
        Ok(Some(Ok(true))) => serve_from(daemon, channel, Standing::Stranger(place)),
        Ok(Some(Ok(false))) => {
            let text = texts::refused_by_hosts_access(&ip_of(&channel), peer.port());
            daemon.supervisor.say(MessageType::Security, "bnet_server.c:201", text);
        }
        Ok(None) => tracing::debug!(%peer, "sent away before it was known whether it may connect"),
        Ok(Some(Err(_panic))) => tracing::error!(%peer, "refused: it is not known whether it may connect"),
        Err(error) => tracing::error!(%error, %peer, "refused: no thread to look whether it may connect"),
    }
}

/// The same for a connection that we have made and that the Director has taken.
pub(crate) fn serve_channel(daemon: &Daemon, channel: Channel, slot: Slot) {
    serve_from(daemon, channel, Standing::Known { _slot: slot });
}

/// Serves a connection, and what a console on it may have made of it (command `proxy`).
fn serve_from(daemon: &Daemon, channel: Channel, mut standing: Standing) {
    let mut next = Some(channel);
    while let Some(channel) = next {
        next = serve_one(daemon, channel, &mut standing);
    }
}

/// A peer's address as messages have it.
fn ip_of(channel: &Channel) -> String {
    channel.address().ip().to_canonical().to_string()
}

/// Serves one connection; returns another one on which a Director is to be served next.
fn serve_one(daemon: &Daemon, mut channel: Channel, standing: &mut Standing) -> Option<Channel> {
    let (begin, ip) = (Instant::now(), ip_of(&channel));
    channel.limit_frames(LARGEST_FRAME);
    // The stock daemon has no limit here: twenty silent connections lock all others out.
    let (frame, len) = match channel.recv(daemon.login()) {
        Ok(Received::Data(frame)) => (frame.to_vec(), i64::try_from(frame.len()).unwrap_or(i64::MAX)),
        Ok(Received::Signal(signal)) => (Vec::new(), i64::from(signal.code())),
        Ok(Received::Empty) => (Vec::new(), 0),
        Err(error) => {
            tracing::debug!(%error, %ip, "no first frame");
            let announced = match error.fault {
                Fault::Frame(FrameError::TooBig { len }) if len <= MAX_PAYLOAD => i64::try_from(len).unwrap_or(0),
                _ => 0,
            };
            (Vec::new(), announced)
        }
    };
    match FirstPacket::of(&frame) {
        FirstPacket::Director => return greet(daemon, channel, &frame, &Caller { ip: &ip, begin }, standing),
        FirstPacket::Ping => {
            // A probe may close without reading the answer.
            let _answered = channel.send(hello::PING_OK).and_then(|()| channel.close());
        }
        FirstPacket::StorageCall => take_call(daemon, channel, &frame),
        FirstPacket::Bad => {
            daemon.supervisor.say(MessageType::Security, "job.c:592", texts::expected_hello(&ip, len));
            dialogue::brake(&channel, BAD_HELLO_PAUSE);
        }
    }
    None
}

/// A Storage Daemon calls for a job that waits for it (reference 01 §13). It is not answered here:
/// the job's own thread sends the hello.
fn take_call(daemon: &Daemon, channel: Channel, frame: &[u8]) {
    let refuse = |place, text| {
        daemon.supervisor.say(MessageType::Fatal, place, text);
        dialogue::brake(&channel, BAD_HELLO_PAUSE);
    };
    let Some(call) = StorageCall::parse(frame) else {
        return refuse("hello.c:55", texts::BAD_STORAGE_CALL.to_vec());
    };
    let Some(job) = daemon.supervisor.job(&call.job) else {
        return refuse("hello.c:63", texts::STORAGE_CALL_WITHOUT_JOB.of(shown(&call.job)));
    };
    keep_alive(daemon, &channel);
    if let Err(second) = job.storage.park(channel) {
        tracing::warn!(job = %job.name(), peer = %second.peer(), "a Storage daemon called twice");
    }
}

/// So that a firewall keeps a connection that others have made, and a dead line is noticed.
fn keep_alive(daemon: &Daemon, channel: &Channel) {
    channel.keep_alive(daemon.config().file_daemon.heartbeat_interval);
}

/// A peer that says that it is a Director.
struct Caller<'c> {
    ip: &'c str,
    /// When it came.
    begin: Instant,
}

fn greet(
    daemon: &Daemon,
    mut channel: Channel,
    frame: &[u8],
    caller: &Caller<'_>,
    standing: &mut Standing,
) -> Option<Channel> {
    let ip = caller.ip;
    let Some(greeting) = DirectorHello::parse(frame) else {
        let text = texts::bad_hello(ip, frame);
        log_refusal(&text);
        turn_away(daemon, channel, ip, &text);
        return None;
    };
    let Some(resource) = daemon.config().director(&greeting.name) else {
        let text = texts::unknown_director(&greeting.name, ip);
        log_refusal(&text);
        turn_away(daemon, channel, ip, &text);
        return None;
    };
    let left = daemon.login().saturating_sub(caller.begin.elapsed());
    match authenticate(daemon, &mut channel, resource, Need::from_wire(greeting.tlspsk), left) {
        Ok(authenticated) => {
            if !standing.become_known(daemon, &channel) {
                tracing::debug!(director = %resource.name, %ip, "left before there was a free place");
                return None;
            }
            channel.limit_frames(MAX_PAYLOAD);
            let numbering = if greeting.knows_events() { Numbering::WithEvents } else { Numbering::BeforeEvents };
            converse(daemon, channel, resource, authenticated, numbering)
        }
        Err(error) => {
            let certificates = channel.certificate_errors();
            let why = texts::why_not_authenticated(&error, certificates);
            tracing::warn!(error = %why, director = %resource.name, %ip, "a Director failed to authenticate");
            daemon.supervisor.say_certificate_errors(certificates);
            let name = resource.name.as_bytes();
            match &error {
                AuthError::WrongPassword | AuthError::WrongKey(_) => {
                    let text = texts::incorrect_password(name, ip);
                    daemon.supervisor.say_here(MessageType::Fatal, "authenticatebase.cc:538", text);
                }
                AuthError::Clear | AuthError::Reflected => {
                    let text = texts::suspicious_login(name, ip, error.detail());
                    daemon.supervisor.say(MessageType::Security, "authenticate.c", text);
                }
                _ => {}
            }
            turn_away(daemon, channel, ip, hello::DIRECTOR_REFUSED);
            None
        }
    }
}

fn authenticate(
    daemon: &Daemon,
    channel: &mut Channel,
    resource: &Director,
    peer: Need,
    limit: Duration,
) -> Result<Authenticated, AuthError> {
    let own_name = &daemon.config().file_daemon.name;
    let mut credentials = daemon.credentials(own_name, resource.password.as_bytes(), &resource.tls);
    credentials.peer_may_have_our_name = resource.name == *own_name;
    let certificates = daemon.certificates.of_director(&resource.name);
    let secrets = Secrets { key: credentials.key.clone(), certificates };
    let (mut machine, first) = Authentication::server(credentials, peer);
    dialogue::lead(channel, &mut machine, first, &secrets, Signals::All, limit)
}

/// A stranger's words order no terminal about.
fn log_refusal(text: &[u8]) {
    tracing::warn!("{}", String::from_utf8_lossy(&shown(text.trim_ascii_end())));
}

/// Tells a peer why, lets it wait, and closes.
fn turn_away(daemon: &Daemon, mut channel: Channel, ip: &str, text: &[u8]) {
    if channel.send(text).and_then(|()| channel.flush()).is_ok() {
        dialogue::brake(&channel, FAILURE_PAUSE);
        // The peer has its text; an error of the end does not matter.
        let _gone = channel.signal(Signal::Terminate).and_then(|()| channel.close());
    }
    // Not to the peer, as the stock daemon does: it has not proven what it is.
    let session = daemon.supervisor.next_number();
    daemon.supervisor.event("FC0001", "connection", session, "", "Director disconnection");
    daemon.supervisor.event("FS0001", "security", session, ip, &format!("Authentication failed from {ip}"));
    daemon.supervisor.close_local();
}

fn converse(
    daemon: &Daemon,
    mut channel: Channel,
    resource: &Director,
    authenticated: Authenticated,
    numbering: Numbering,
) -> Option<Channel> {
    if channel.send(hello::DIRECTOR_ACCEPTED).and_then(|()| channel.flush()).is_err() {
        return None;
    }
    threads::rename_this_thread(&format!("session {}", channel.address()));
    let session = daemon.supervisor.enter(authenticated.encrypted);
    let registered = Registered { daemon, session: Arc::clone(&session) };
    let Remains { farewells, handed_over } = Conversation::new(daemon, channel, resource, session, numbering).run();
    drop(registered);
    let farewell = move || farewells.into_iter().for_each(Farewell::wait);
    if handed_over.is_none() {
        farewell();
    } else if let Err(error) = thread::Builder::new().name("farewell".to_owned()).spawn(farewell) {
        // A Director waits; the console may miss the last frames.
        tracing::debug!(%error, "no thread to wait for a console that leaves");
    }
    handed_over
}

/// Takes the session off the list of running ones, also when its thread panics.
struct Registered<'d> {
    daemon: &'d Daemon,
    session: Arc<Session>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.daemon.session_ended(&self.session);
        // Accurate lists and large FileSets are many small allocations, which the C library would
        // keep.
        fd_os::memory::give_back();
    }
}
