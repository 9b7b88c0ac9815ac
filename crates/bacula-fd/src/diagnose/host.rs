//! The answers of the host that this runs on.

use std::cell::{Cell, OnceCell};
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_bsock::Encoder;
use fd_bsock::hello::PING_OK;
use fd_config::{FileDaemon, KeyProblem, PluginHostSettings, Surroundings as _, Tls};
use fd_os::threads::{self, Thread};
use fd_os::{clock_state, io_error_text, page_cache, resolver_text};
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, Gid, Group, Uid, User, faccessat, geteuid};
use zeroize::Zeroizing;

use crate::clock;
use crate::daemon::host::Host;
use crate::daemon::pid_file::PidFile;
use crate::daemon::plugins::confinement;
use crate::diagnose::patience::Patience;
use crate::diagnose::rights::{self, DAC_OVERRIDE, DAC_READ_SEARCH, of_process};
use crate::diagnose::texts;
use crate::diagnose::world::{About, Answer, Process, Whose, World};

/// How long a name and a connection may take together.
const PATIENCE: Duration = Duration::from_secs(5);
/// Begins the answer to [`texts::METRICS_REQUEST`].
const METRICS_ANSWER: [u8; 15] = *b"HTTP/1.1 200 OK";
/// Largest key file, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Most names of a directory that are looked at.
const MAX_NAMES: usize = 10_000;

/// This host.
#[derive(Debug)]
pub(super) struct ThisHost {
    /// For what lies on storage.
    pub(super) patience: Patience,
    /// The running daemon, or the unit that starts it.
    found: Cell<Option<Process>>,
    /// The root directory of the running daemon, to which a unit may give mounts of its own.
    root: OnceCell<Arc<File>>,
    /// Whether the unit's rights count if none runs.
    asks_unit: bool,
}

impl ThisHost {
    pub(super) const fn new(asks_unit: bool) -> Self {
        Self { patience: Patience::new(), found: Cell::new(None), root: OnceCell::new(), asks_unit }
    }

    /// Looks for the daemon with this configuration. Only its own user, or root, sees which process
    /// listens on a port.
    pub(super) fn look_for_the_daemon(&self, own: &FileDaemon) {
        let port = own.port();
        let holder = self.of(&own.pid_directory, move |directory| Ok(PidFile::holder(directory, port))).ok().flatten();
        let pid = holder.or_else(|| rights::listener(port));
        let running = pid.and_then(|pid| Some((Whose::Daemon(pid), of_process(&format!("/proc/{pid}"))?)));
        // systemd may not answer; that says nothing about storage.
        let of_the_unit = || Patience::new().try_ask(rights::of_unit).ok().filter(|_| self.asks_unit);
        let found = running.or_else(|| Some((Whose::Unit, of_the_unit()?)));
        self.found.set(found.map(|(whose, rights)| Process { whose, rights }));
        // Another user may not look there.
        if let Some(root) = pid.and_then(|pid| File::open(format!("/proc/{pid}/root")).ok()) {
            let _once = self.root.set(Arc::new(root));
        }
    }

    /// The user and group of the daemon, and whether it may read every file, if this process is
    /// root and that is another user, who may not write everywhere either.
    pub(super) fn other_user(&self) -> Option<(String, String, bool)> {
        let rights = self.process().rights;
        if rights.uid == 0 || rights.has(DAC_OVERRIDE) || !geteuid().is_root() {
            return None;
        }
        // Without a name, becoming it says what is wrong.
        let user = User::from_uid(Uid::from_raw(rights.uid)).ok().flatten();
        let gid = rights.gid.or_else(|| Some(user.as_ref()?.gid.as_raw()))?;
        let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten().map(|group| group.name);
        let user = user.map_or_else(|| rights.uid.to_string(), |user| user.name);
        Some((user, group.unwrap_or_else(|| gid.to_string()), rights.has(DAC_READ_SEARCH)))
    }

    /// Asks about a path.
    fn of<T: Send + 'static>(
        &self,
        path: &Path,
        question: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let path = path.to_owned();
        self.patience.try_ask(move || question(&path))
    }

    /// Asks about files of keys; without an answer that is the problem.
    fn of_keys(&self, question: impl FnOnce() -> Result<(), KeyProblem> + Send + 'static) -> Result<(), KeyProblem> {
        let problem = || KeyProblem { lines: vec![texts::KEYS_HANG.into()], hint: texts::HINT_STORAGE_HANGS.into() };
        self.patience.ask(question).unwrap_or_else(|_| Err(problem()))
    }
}

impl World for ThisHost {
    fn now(&self) -> i64 {
        clock::seconds()
    }

    fn about(&self, path: &Path) -> io::Result<About> {
        self.of(path, |path| {
            let found = fs::metadata(path)?;
            let (is_directory, mode) = (found.is_dir(), found.mode() & 0o7777);
            Ok(About { is_directory, mode, uid: found.uid() })
        })
    }

    fn read(&self, path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
        self.of(path, |path| {
            let mut content = Zeroizing::new(Vec::new());
            // A FIFO in its place must not stop us.
            let options = File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
            options.take(MAX_FILE).read_to_end(&mut content)?;
            Ok(content)
        })
    }

    fn files(&self, directory: &Path) -> io::Result<Vec<Vec<u8>>> {
        self.of(directory, |directory| {
            let entries = fs::read_dir(directory)?.take(MAX_NAMES);
            let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
            let files = entries.filter(|entry| entry.as_ref().map_or(true, is_file));
            files.map(|entry| entry.map(|entry| entry.file_name().into_vec())).collect()
        })
    }

    fn may_write(&self, directory: &Path) -> io::Result<()> {
        let root = self.root.get().cloned();
        self.of(directory, move |directory| {
            let wanted = AccessFlags::W_OK | AccessFlags::X_OK;
            let answer = match (root, directory.strip_prefix("/")) {
                (Some(root), Ok(below)) => faccessat(&*root, &Path::new(".").join(below), wanted, AtFlags::AT_EACCESS),
                _ => faccessat(AT_FDCWD, directory, wanted, AtFlags::AT_EACCESS),
            };
            answer.map_err(io::Error::from)
        })
    }

    fn free_space(&self, directory: &Path) -> io::Result<u64> {
        self.of(directory, |directory| {
            let about = statvfs(directory)?;
            Ok(about.blocks_available().saturating_mul(about.fragment_size()))
        })
    }

    fn tls_context(&self, tls: &Tls) -> Result<(), KeyProblem> {
        let tls = tls.clone();
        self.of_keys(move || Host.tls_context(&tls))
    }

    fn certificate(&self, file: &Path) -> Result<(), KeyProblem> {
        let file = file.to_owned();
        self.of_keys(move || Host.certificate(&file))
    }

    fn private_key(&self, file: &Path) -> Result<(), KeyProblem> {
        let file = file.to_owned();
        self.of_keys(move || Host.private_key(&file))
    }

    fn plugin_user(&self, settings: &PluginHostSettings) -> Result<(), String> {
        let settings = settings.clone();
        let answer = self.patience.ask(move || confinement(settings).map(drop));
        answer.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn mentions_private_key(&self, file: &Path) -> bool {
        let file = file.to_owned();
        self.patience.ask(move || Host.mentions_private_key(&file)).unwrap_or_default()
    }

    fn process(&self) -> Process {
        let of_this = || Process { whose: Whose::This, rights: of_process("/proc/self").unwrap_or_default() };
        self.found.get().unwrap_or_else(of_this)
    }

    fn is_told_of_any_page(&self, file: &Path) -> bool {
        self.of(file, |file| Ok(page_cache::is_told_of_any_file(File::open(file)?.as_fd()))).unwrap_or(false)
    }

    fn clock(&self) -> io::Result<bool> {
        clock_state::is_synchronized()
    }

    fn ping(&self, address: SocketAddr) -> Answer {
        call(address, pong)
    }

    fn metrics(&self, address: SocketAddr) -> Answer {
        call(address, has_metrics)
    }

    fn reach(&self, places: &[(String, u16)]) -> Vec<Result<Duration, String>> {
        let begin = Instant::now();
        let call = |(host, port): (String, u16)| threads::start("reach", move || connect(&host, port));
        let calls: Vec<_> = places.iter().cloned().map(call).collect();
        let answer = |call: io::Result<Thread<Result<Duration, String>>>| {
            let call = call.map_err(|error| io_error_text(&error))?;
            // A thread that hangs in the resolver ends with the program.
            let ended = call.end(|| begin.elapsed() < PATIENCE + PATIENCE / 10);
            ended.and_then(Result::ok).unwrap_or_else(|| Err(texts::no_answer(PATIENCE)))
        };
        calls.into_iter().map(answer).collect()
    }
}

fn connect(host: &str, port: u16) -> Result<Duration, String> {
    let begin = Instant::now();
    let addresses = (host, port).to_socket_addrs().map_err(|error| resolver_text(&error))?;
    let mut last = None;
    for address in addresses {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            break;
        }
        let called = Instant::now();
        match TcpStream::connect_timeout(&address, left) {
            Ok(_closed_at_once) => return Ok(called.elapsed()),
            Err(error) => last = Some(io_error_text(&error)),
        }
    }
    Err(last.unwrap_or_else(|| texts::no_answer(PATIENCE)))
}

/// Calls an address and looks whether what is meant answers.
fn call(address: SocketAddr, is_meant: impl Fn(&TcpStream) -> io::Result<bool>) -> Answer {
    let called = TcpStream::connect_timeout(&address, PATIENCE).and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    });
    match called {
        Err(error) => Answer::Nothing(io_error_text(&error)),
        Ok(stream) => match is_meant(&stream) {
            Ok(true) => Answer::Pong,
            Ok(false) | Err(_) => Answer::Silence,
        },
    }
}

/// Whether a daemon's metrics are there.
fn has_metrics(mut stream: &TcpStream) -> io::Result<bool> {
    stream.write_all(texts::METRICS_REQUEST.as_bytes())?;
    let mut answer = [0; METRICS_ANSWER.len()];
    stream.read_exact(&mut answer)?;
    Ok(answer == METRICS_ANSWER)
}

/// Whether a File Daemon answers.
fn pong(mut stream: &TcpStream) -> io::Result<bool> {
    let mut frame = Vec::new();
    Encoder::new(false).data(&mut frame, b"Ping").map_err(io::Error::other)?;
    stream.write_all(&frame)?;
    let mut answer = [0; 4 + PING_OK.len()];
    stream.read_exact(&mut answer)?;
    Ok(answer.ends_with(PING_OK))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn a_port_that_listens_is_reached_and_a_closed_one_says_why() {
        let open = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let closed = ports::ReservedPort::new().unwrap();
        let host = || "127.0.0.1".to_owned();
        let answers =
            ThisHost::new(false).reach(&[(host(), open.local_addr().unwrap().port()), (host(), closed.number())]);
        assert!(answers[0].is_ok(), "{answers:?}");
        assert_eq!(answers[1], Err("Connection refused".to_owned()));
    }

    #[test]
    fn a_program_that_is_no_file_daemon_gives_no_pong() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = other.local_addr().unwrap();
        let serve = thread::spawn(move || other.accept().unwrap().0.write_all(b"SSH-2.0-OpenSSH_9.2 and more"));
        assert_eq!(ThisHost::new(false).ping(address), Answer::Silence);
        serve.join().unwrap().unwrap();
        assert_eq!(ThisHost::new(false).ping(address), Answer::Nothing("Connection refused".to_owned()));
    }

    /// As the daemon does not load them.
    #[test]
    fn links_and_directories_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a-fd.so"), "").unwrap();
        fs::create_dir(at("d-fd.so")).unwrap();
        std::os::unix::fs::symlink("a-fd.so", at("l-fd.so")).unwrap();
        assert_eq!(ThisHost::new(false).files(folder.path()).unwrap(), [b"a-fd.so"]);
    }

    #[test]
    fn this_process_has_a_user_and_capabilities() {
        let found = ThisHost::new(false).process();
        assert_eq!((found.whose, found.rights.uid), (Whose::This, nix::unistd::geteuid().as_raw()));
    }
}
