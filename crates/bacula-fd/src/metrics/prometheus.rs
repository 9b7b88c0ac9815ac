//! The daemon's numbers for monitoring systems: `GET /metrics` in Prometheus' text format, at the
//! address that `bacula-fd.toml` names. Without an address there is no listener.
//!
//! A few callers at a time, two seconds each: a caller has no password, so it gets few resources.
//! That is also why this is no HTTP library: two methods, one path, no state.
//!
//! Not here: what the metrics are ([`crate::metrics::exposition`]), and those of the stock daemon
//! ([`crate::metrics::stock`]).

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::metrics::exposition::exposition;
use crate::security::places::Places;
use crate::shared::daemon::Daemon;
use crate::texts;

/// How long one caller may take for everything.
const PATIENCE: Duration = Duration::from_secs(2);
/// Callers at a time.
const CALLERS: usize = 16;
/// How long each of them has in any case, however many others wait. An answer takes milliseconds.
const LEAST_TIME: Duration = Duration::from_millis(250);
/// Between two tries to listen.
const BIND_RETRY: Duration = Duration::from_secs(5);
/// Pause after a call that failed, as when no descriptor is free.
const BREATH: Duration = Duration::from_millis(100);
/// Shortest timeout that is set on the socket; zero would mean none.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);
/// Begins a request for the head of an answer alone.
const HEAD: &[u8] = b"HEAD ";
/// The longest request, bytes.
const LONGEST: usize = 8192;

/// Listens, if an address is given. An error is only logged: backups go on.
pub(crate) fn start(daemon: &Arc<Daemon>) {
    let Some(address) = daemon.settings.metrics.address else { return };
    let daemon = Arc::clone(daemon);
    let first = TcpListener::bind(address);
    let serve = move || {
        let listener = first.unwrap_or_else(|error| bind_later(address, &error));
        let places = Places::new(CALLERS, LEAST_TIME);
        for caller in listener.incoming() {
            if let Err(error) = caller.and_then(|caller| admit(&daemon, &places, caller)) {
                tracing::debug!(%error, "a metrics connection failed");
                thread::sleep(BREATH);
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("metrics".to_owned()).spawn(serve) {
        tracing::error!(%address, %error, "metrics can't be served");
    }
}

/// Tries until the address is free: the program that has it may end, or the address come with its
/// network.
fn bind_later(address: SocketAddr, error: &io::Error) -> TcpListener {
    tracing::error!(%address, %error, "metrics can't be served yet; trying on");
    loop {
        thread::sleep(BIND_RETRY);
        if let Ok(listener) = TcpListener::bind(address) {
            tracing::warn!(%address, "metrics are served now");
            return listener;
        }
    }
}

/// Answers in a thread of its own, so that a silent caller delays no other.
fn admit(daemon: &Arc<Daemon>, places: &Arc<Places>, caller: TcpStream) -> io::Result<()> {
    let socket = caller.try_clone()?;
    let place = places.take(move || {
        // An error means that the connection is gone already.
        let _gone = socket.shutdown(Shutdown::Both);
    });
    let daemon = Arc::clone(daemon);
    let work = move || {
        let _place = place;
        if let Err(error) = answer(&daemon, &caller) {
            tracing::debug!(%error, "a caller did not get its metrics");
        }
    };
    thread::Builder::new().name("metrics caller".to_owned()).spawn(work).map(|_ends_soon| ())
}

fn answer(daemon: &Daemon, caller: &TcpStream) -> io::Result<()> {
    let begin = Instant::now();
    let left = || match PATIENCE.saturating_sub(begin.elapsed()) {
        Duration::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
        left => Ok(left.max(TIMEOUT_MIN)),
    };
    let mut stream = caller;
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST {
        caller.set_read_timeout(Some(left()?))?;
        let mut some = [0; 1024];
        match stream.read(&mut some)? {
            0 => break,
            len => request.extend_from_slice(some.get(..len).unwrap_or_default()),
        }
    }
    let (status, body) = match path(&request) {
        Some(b"/metrics") => ("200 OK", exposition(daemon)),
        Some(_) => ("404 Not Found", String::new()),
        None => ("400 Bad Request", String::new()),
    };
    let head = texts::http_head(status, body.len());
    let body = if request.starts_with(HEAD) { "" } else { &body };
    let answer = [head.as_bytes(), body.as_bytes()].concat();
    let mut rest = answer.as_slice();
    while !rest.is_empty() {
        caller.set_write_timeout(Some(left()?))?;
        let sent = stream.write(rest)?;
        rest = rest.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// The path that a request asks for, without the query.
fn path(request: &[u8]) -> Option<&[u8]> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    (matches!(method, b"GET" | b"HEAD") && version.starts_with(b"HTTP/1."))
        .then(|| target.split(|byte| *byte == b'?').next())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_or_a_head_has_a_path() {
        assert_eq!(path(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(&b"/metrics"[..]));
        assert_eq!(path(b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(&b"/metrics"[..]));
        assert_eq!(path(b"GET /metrics?x=1 HTTP/1.0\r\n\r\n"), Some(&b"/metrics"[..]));
        for request in [
            &b""[..],
            b"GET",
            b"GET /metrics",
            b"POST /metrics HTTP/1.1\r\n\r\n",
            b"GET /metrics FTP\r\n",
            b"\x16\x03\x01",
        ] {
            assert_eq!(path(request), None, "{request:?}");
        }
    }
}
