//! From an accepted connection to an authenticated Director, or to the end of it (reference 01 §6.4, §8).

use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fd_bsock::Signal;
use fd_bsock::hello::{self, DirectorHello, FirstPacket, StorageCall};
use fd_config::Director;
use fd_messages::MessageType;
use fd_session::authenticate::{AuthError, Authenticated, Authentication, Credentials};
use fd_session::{Need, texts};
use fd_transport::{Channel, Farewell, Limits, Received};

use super::{Conversation, Remains};
use crate::clock;
use crate::daemon::Daemon;
use crate::exchange::{self, Secrets, Signals};
use crate::hosts_access;
use crate::supervisor::Session;

/// Hello and authentication together (reference 01 §19).
const AUTHENTICATION: Duration = Duration::from_secs(600);
/// The brake on a first frame that is no hello.
const BAD_HELLO_PAUSE: Duration = Duration::from_secs(5);
/// The brake on a failed authentication.
const FAILURE_PAUSE: Duration = Duration::from_secs(6);

/// Serves an accepted connection to its end.
pub(crate) fn serve(daemon: &Daemon, stream: TcpStream) {
    if let Ok(peer) = stream.peer_addr()
        && !hosts_access::is_allowed(&daemon.config().file_daemon.name, &hosts_access::Client::new(peer.ip()))
    {
        let text = texts::refused_by_hosts_access(&peer.ip().to_canonical().to_string(), peer.port());
        daemon.supervisor().say(MessageType::Security, "bnet_server.c:201", text);
        return;
    }
    let ip = stream.peer_addr().map_or_else(|_| "client".to_owned(), |peer| peer.ip().to_canonical().to_string());
    match Channel::accept(stream, Limits::default()) {
        Ok(channel) => serve_from(daemon, channel, &ip),
        Err(error) => tracing::debug!(%error, %ip, "an accepted connection is gone already"),
    }
}

/// The same for a connection that we have made and that the Director has taken.
pub(crate) fn serve_channel(daemon: &Daemon, channel: Channel) {
    let ip = channel.address().ip().to_canonical().to_string();
    serve_from(daemon, channel, &ip);
}

/// Serves a connection, and what a console on it may have made of it (command `proxy`).
fn serve_from(daemon: &Daemon, channel: Channel, ip: &str) {
    let mut called = serve_one(daemon, channel, ip);
    while let Some(channel) = called {
        let ip = channel.address().ip().to_canonical().to_string();
        called = serve_one(daemon, channel, &ip);
    }
}

/// Serves one connection; gives another one that a Director wants to be served on now.
fn serve_one(daemon: &Daemon, mut channel: Channel, ip: &str) -> Option<Channel> {
    // The stock daemon waits for ever, so that twenty silent connections lock everybody out.
    let (frame, len) = match channel.recv(daemon.first_packet()) {
        Ok(Received::Data(frame)) => (frame.to_vec(), i64::try_from(frame.len()).unwrap_or(i64::MAX)),
        Ok(Received::Signal(signal)) => (Vec::new(), i64::from(signal.code())),
        Ok(Received::Empty) => (Vec::new(), 0),
        Err(error) => {
            tracing::debug!(%error, %ip, "no first frame");
            (Vec::new(), 0)
        }
    };
    match FirstPacket::of(&frame) {
        FirstPacket::Director => return greet(daemon, channel, &frame, ip),
        FirstPacket::Ping => {
            // A probe that does not wait for its answer is no concern of ours.
            let _answered = channel.send(hello::PING_OK).and_then(|()| channel.close());
        }
        FirstPacket::StorageCall => take_call(daemon, channel, &frame),
        FirstPacket::Bad => {
            daemon.supervisor().say(MessageType::Security, "job.c:592", texts::expected_hello(ip, len));
            thread::sleep(BAD_HELLO_PAUSE);
        }
    }
    None
}

/// A Storage Daemon calls for a job that waits for it (reference 01 §13). It is not answered here: the job's own thread
/// says hello.
fn take_call(daemon: &Daemon, channel: Channel, frame: &[u8]) {
    let supervisor = daemon.supervisor();
    let Some(call) = StorageCall::parse(frame) else {
        supervisor.say(MessageType::Fatal, "hello.c:55", texts::BAD_STORAGE_CALL.to_vec());
        return;
    };
    let Some(job) = supervisor.job(&call.job) else {
        supervisor.say(MessageType::Fatal, "hello.c:63", texts::storage_call_without_job(&call.job));
        return;
    };
    if let Err(second) = job.park(channel) {
        tracing::warn!(job = %job.name(), peer = %second.peer(), "a Storage daemon called twice");
    }
}

fn greet(daemon: &Daemon, mut channel: Channel, frame: &[u8], ip: &str) -> Option<Channel> {
    let Some(greeting) = DirectorHello::parse(frame) else {
        turn_away(daemon, channel, ip, &texts::bad_hello(ip, frame));
        return None;
    };
    let Some(resource) = daemon.config().director(&greeting.name) else {
        turn_away(daemon, channel, ip, &texts::unknown_director(&greeting.name, ip));
        return None;
    };
    match authenticate(daemon, &mut channel, resource, Need::from_wire(greeting.tlspsk)) {
        Ok(authenticated) => converse(daemon, channel, resource, authenticated),
        Err(error) => {
            tracing::warn!(%error, director = %resource.name, %ip, "a Director failed to authenticate");
            if error == AuthError::WrongPassword {
                let text = texts::incorrect_password(resource.name.as_bytes(), ip);
                daemon.supervisor().say(MessageType::Fatal, "authenticatebase.cc:538", text);
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
) -> Result<Authenticated, AuthError> {
    let credentials = credentials(daemon, resource);
    let certificates = daemon.keyring().of_director(&resource.name).cloned();
    let secrets = Secrets { key: credentials.key.clone(), certificates };
    let (mut machine, first) = Authentication::server(credentials, peer);
    exchange::lead(channel, &mut machine, first, &secrets, Signals::All, AUTHENTICATION)
}

fn credentials(daemon: &Daemon, resource: &Director) -> Credentials {
    let (tls, psk) = resource.tls.need();
    Credentials {
        own_name: daemon.config().file_daemon.name.clone(),
        key: resource.password.as_bytes().to_vec(),
        need: Need { tls, psk },
        tls_authenticate: resource.tls.authenticate,
        random: crate::daemon::random(),
        time: clock::seconds(),
    }
}

/// Tells a peer why, lets it wait, and closes.
fn turn_away(daemon: &Daemon, mut channel: Channel, ip: &str, text: &[u8]) {
    if channel.send(text).and_then(|()| channel.flush()).is_ok() {
        thread::sleep(FAILURE_PAUSE);
        // The peer has had its text; whether it still listens is its business.
        let _gone = channel.signal(Signal::Terminate).and_then(|()| channel.close());
    }
    // Not to the peer, as the stock daemon does: nobody knows who that is.
    let session = daemon.supervisor().next_number();
    daemon.supervisor().event("FC0001", "connection", session, "", "Director disconnection");
    daemon.supervisor().event("FS0001", "security", session, ip, &format!("Authentication failed from {ip}"));
    daemon.supervisor().close_local();
}

fn converse(
    daemon: &Daemon,
    mut channel: Channel,
    resource: &Director,
    authenticated: Authenticated,
) -> Option<Channel> {
    if channel.send(hello::DIRECTOR_ACCEPTED).and_then(|()| channel.flush()).is_err() {
        return None;
    }
    let session = daemon.supervisor().enter(authenticated.encrypted);
    let registered = Registered { daemon, session: Arc::clone(&session) };
    let Remains { farewells, handed_over } = Conversation::new(daemon, channel, resource, session).run();
    drop(registered);
    let farewell = move || farewells.into_iter().for_each(Farewell::wait);
    if handed_over.is_none() {
        farewell();
    } else if let Err(error) = thread::Builder::new().name("farewell".to_owned()).spawn(farewell) {
        // A Director waits; the console may miss its last words.
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
        // An accurate list or a large FileSet is many small pieces, which the C library would keep.
        fd_os::memory::give_back();
    }
}
