//! A relay between two daemons that keeps what went over each connection, and may change what the
//! caller says.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::error::{BedError, Result};

/// What went over one connection, in both directions.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// From the side that called.
    pub sent: Vec<u8>,
    /// From the side that was called.
    pub received: Vec<u8>,
    /// Where the side that called comes from.
    pub from: Option<IpAddr>,
    /// When the side that called had sent how much.
    times: Vec<(Instant, usize)>,
}

impl Recorded {
    fn heard(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        self.times.push((Instant::now(), self.sent.len()));
    }

    /// Whether a text went over the line in clear, in either direction.
    pub fn shows(&self, text: &str) -> bool {
        let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        has(&self.sent) || has(&self.received)
    }

    /// Bytes a second that the side that called has sent, between these two counts of bytes.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        let at = |bytes| self.times.iter().find(|(_, sent)| *sent >= bytes);
        let ((start, before), (end, after)) = (at(from)?, at(to)?);
        let bytes = u32::try_from(after.checked_sub(*before)?).ok()?;
        Some(f64::from(bytes) / end.duration_since(*start).as_secs_f64())
    }

    /// The cipher suite that the called side chose as a TLS server, from its `ServerHello`: 0x1301
    /// to 0x1303 are those of TLS 1.3.
    pub fn cipher_chosen_by_called(&self) -> Option<u16> {
        let start = self.received.windows(3).position(|window| window == [0x16, 3, 3])?;
        // Record header, handshake header, version and random number come before the session's
        // length.
        let hello = self.received.get(start + 43..)?;
        let session = usize::from(*hello.first()?);
        let cipher = hello.get(1 + session..3 + session)?;
        Some(u16::from_be_bytes(cipher.try_into().ok()?))
    }
}

/// A text, and what it becomes.
type Change = (Vec<u8>, Vec<u8>);

/// A port of 127.0.0.1 that leads to another one. It lives as long as the test's process.
#[derive(Debug, Clone)]
pub struct Relay {
    port: u16,
    target: Arc<AtomicU16>,
    connections: Arc<Mutex<Vec<Arc<Mutex<Recorded>>>>>,
    /// What is changed, and into what.
    changes: Arc<Mutex<Vec<Change>>>,
    /// Bytes of the called side after which a connection stands.
    end: Arc<AtomicUsize>,
}

impl Relay {
    /// A relay without a target yet.
    pub fn new() -> Result<Self> {
        let broken = |error: std::io::Error| BedError::Usage(format!("relay: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(broken)?;
        let port = listener.local_addr().map_err(broken)?.port();
        let connections: Arc<Mutex<Vec<_>>> = Arc::default();
        let target = Arc::<AtomicU16>::default();
        let aim = Arc::clone(&target);
        let kept = Arc::clone(&connections);
        let changes: Arc<Mutex<Vec<Change>>> = Arc::default();
        let wanted = Arc::clone(&changes);
        let end = Arc::new(AtomicUsize::new(usize::MAX));
        let stands_at = Arc::clone(&end);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let Ok(called) = TcpStream::connect(("127.0.0.1", aim.load(Ordering::Relaxed))) else { continue };
                let from = caller.peer_addr().ok().map(|address| address.ip());
                let record = Arc::new(Mutex::new(Recorded { from, ..Recorded::default() }));
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&record));
                let (Ok(back_to), Ok(back_from)) = (caller.try_clone(), called.try_clone()) else { continue };
                let answers = Arc::clone(&record);
                let wanted = Arc::clone(&wanted);
                thread::spawn(move || {
                    pass(caller, called, |bytes| {
                        lock(&record).heard(bytes);
                        lock(&wanted).iter().for_each(|(from, to)| replace(bytes, from, to));
                    });
                });
                let stands_at = Arc::clone(&stands_at);
                thread::spawn(move || {
                    pass(back_from, back_to, |bytes| {
                        lock(&answers).received.extend_from_slice(bytes);
                        while lock(&answers).received.len() > stands_at.load(Ordering::Relaxed) {
                            thread::park();
                        }
                    });
                });
            }
        });
        Ok(Self { port, target, connections, changes, end })
    }

    /// From now on it leads to this port of 127.0.0.1.
    pub fn aim(&self, port: u16) {
        self.target.store(port, Ordering::Relaxed);
    }

    /// From now on a text of the caller becomes another one, which has the same length because a
    /// frame's header has it, if it comes in one piece, as a line does. What is kept is what the
    /// caller said.
    pub fn change(&self, from: &str, to: &str) {
        lock(&self.changes).push((from.into(), to.into()));
    }

    /// From now on it hands on what it gets.
    pub fn change_nothing(&self) {
        lock(&self.changes).clear();
    }

    /// From now on each connection stands, for ever, when the called side has sent so many bytes.
    pub fn stand_after(&self, bytes: usize) {
        self.end.store(bytes, Ordering::Relaxed);
    }

    /// The port to call.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How much the side that called has sent on the connection that began with this text in clear.
    pub fn sent_after(&self, first: &str) -> Option<usize> {
        self.connection(first).map(|record| lock(&record).sent.len())
    }

    /// What went over the connection that began with this text in clear.
    pub fn recorded_after(&self, first: &str) -> Option<Recorded> {
        self.connection(first).map(|record| lock(&record).clone())
    }

    fn connection(&self, first: &str) -> Option<Arc<Mutex<Recorded>>> {
        let begins = |record: &&Arc<Mutex<Recorded>>| {
            lock(record).sent.get(4..).is_some_and(|sent| sent.starts_with(first.as_bytes()))
        };
        lock(&self.connections).iter().find(begins).cloned()
    }

    /// What went over the connections so far, oldest first.
    pub fn recorded(&self) -> Vec<Recorded> {
        lock(&self.connections).iter().map(|record| lock(record).clone()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    if let Some(start) = bytes.windows(from.len()).position(|window| window == from)
        && let Some(place) = bytes.get_mut(start..start + to.len())
    {
        place.copy_from_slice(to);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut look: impl FnMut(&mut [u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = buffer.get_mut(..count).unwrap_or_default();
        look(bytes);
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    // The other side may be gone already.
    let _ = to.shutdown(Shutdown::Write);
}
