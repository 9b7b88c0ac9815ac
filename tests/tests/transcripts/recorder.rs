//! A proxy between a Director and a File Daemon that records every frame, in clear text.
//!
//! Each connection is a conversation of its own. What one side sends after the other has closed is
//! recorded, too. A connection begins when the log has the end of the one before; otherwise the
//! order of a daemon's events is chance. The stock daemon writes both events of a short session
//! after it has closed the connection: the log alone does not say that a session is open.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use bed::peer::Frame;
use bed::{BedError, PATIENCE, Result, wait_for};

/// One connection: what each side said, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    /// The Director's frames.
    pub(crate) director: Vec<Frame>,
    /// The File Daemon's frames.
    pub(crate) daemon: Vec<Frame>,
    ended: u8,
}

type Shared = Arc<Mutex<Conversation>>;

/// The File Daemon behind a recorder.
#[derive(Debug)]
struct Target {
    port: u16,
    /// The file with its events.
    log: PathBuf,
    /// The sessions so far.
    sessions: AtomicUsize,
}

/// The proxy of one File Daemon.
#[derive(Debug)]
pub(crate) struct Recorder {
    port: u16,
    target: Arc<OnceLock<Target>>,
    conversations: Arc<Mutex<Vec<Shared>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Listens on a port of its own; [`Self::lead_to`] says where to.
    pub(crate) fn new() -> Result<Self> {
        let problem = |error: std::io::Error| BedError::Usage(format!("the recorder can't listen: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        let recorder = Self { port, target: Arc::default(), conversations: Arc::default() };
        let (target, conversations) = (Arc::clone(&recorder.target), Arc::clone(&recorder.conversations));
        thread::spawn(move || {
            for near in listener.incoming().map_while(std::io::Result::ok) {
                let shared = Shared::default();
                lock(&conversations).push(Arc::clone(&shared));
                match connect(&target) {
                    Ok(far) => join(near, far, &shared, &target),
                    Err(problem) => {
                        let mut shared = lock(&shared);
                        shared.daemon.push(Frame::Data(problem.to_string().into_bytes()));
                        shared.ended = 2;
                    }
                }
            }
        });
        Ok(recorder)
    }

    /// The port for the Director.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The port of the File Daemon, and its log.
    pub(crate) fn lead_to(&self, port: u16, log: PathBuf) {
        self.target.get_or_init(|| Target { port, log, sessions: AtomicUsize::new(0) });
    }

    /// The File Daemon's port, when its log has the end of each session; one more session begins.
    pub(crate) fn begin_session(&self) -> Result<u16> {
        self.wait_for_ends()?;
        let target = known(&self.target)?;
        target.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(target.port)
    }

    /// Waits until the log has the end of each session.
    pub(crate) fn wait_for_ends(&self) -> Result<()> {
        known(&self.target)?.wait_for_ends()
    }

    /// The conversations since the last call, when all of them have ended.
    pub(crate) fn take(&self, what: &str) -> Result<Vec<Conversation>> {
        wait_for(&format!("the end of all connections of {what}"), PATIENCE, || {
            let open = lock(&self.conversations).iter().filter(|shared| lock(shared).ended < 2).count();
            Ok(if open == 0 { Ok(()) } else { Err(format!("{open} are open")) })
        })?;
        Ok(std::mem::take(&mut *lock(&self.conversations)).iter().map(|shared| lock(shared).clone()).collect())
    }
}

impl Target {
    fn wait_for_ends(&self) -> Result<()> {
        wait_for("the end of each session in the log", PATIENCE, || {
            let log = fs::read(&self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let count = |event| log.matches(event).count();
            let (begun, ended) = (count("text=Director connection"), count("text=Director disconnection"));
            let sessions = self.sessions.load(Ordering::Relaxed);
            let all = begun == sessions && ended == sessions;
            Ok(if all {
                Ok(())
            } else {
                Err(format!("of {sessions} the log has {begun} that began, {ended} that ended"))
            })
        })
    }
}

fn known(target: &OnceLock<Target>) -> Result<&Target> {
    target.get().ok_or_else(|| BedError::Usage("a call that is too early".to_owned()))
}

fn connect(target: &OnceLock<Target>) -> Result<TcpStream> {
    let target = known(target)?;
    target.wait_for_ends()?;
    TcpStream::connect(("127.0.0.1", target.port)).map_err(|error| BedError::Usage(format!("no connection: {error}")))
}

fn join(near: TcpStream, far: TcpStream, shared: &Shared, target: &Arc<OnceLock<Target>>) {
    let Ok((near_again, far_again)) = near.try_clone().and_then(|near| Ok((near, far.try_clone()?))) else {
        lock(shared).ended = 2;
        return;
    };
    let (from_director, from_daemon) = (Arc::clone(shared), Arc::clone(shared));
    let target = Arc::clone(target);
    thread::spawn(move || {
        let said = |frame| lock(&from_director).director.push(frame);
        copy(near, far, said);
        lock(&from_director).ended += 1;
    });
    thread::spawn(move || {
        let said = |frame| {
            let begins = matches!(&frame, Frame::Data(text) if text.starts_with(b"2000 OK Hello"));
            if let (true, Some(target)) = (begins, target.get()) {
                target.sessions.fetch_add(1, Ordering::Relaxed);
            }
            lock(&from_daemon).daemon.push(frame);
        };
        copy(far_again, near_again, said);
        lock(&from_daemon).ended += 1;
    });
}

fn copy(mut from: TcpStream, mut to: TcpStream, said: impl Fn(Frame)) {
    while let Some((bytes, frame)) = next(&mut from) {
        said(frame);
        // The other side may have gone; the rest is still taken down.
        let _gone = to.write_all(&bytes);
    }
    // Already closed, then.
    let _closed = to.shutdown(Shutdown::Write);
}

fn next(from: &mut TcpStream) -> Option<(Vec<u8>, Frame)> {
    let mut head = [0; 4];
    from.read_exact(&mut head).ok()?;
    let length = i32::from_be_bytes(head);
    if length < 0 {
        return Some((head.to_vec(), Frame::Signal(length)));
    }
    let mut payload = vec![0; usize::try_from(length & 0x1fff_ffff).ok()?];
    from.read_exact(&mut payload).ok()?;
    Some(([head.as_slice(), &payload].concat(), Frame::Data(payload)))
}
