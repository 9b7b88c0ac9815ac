//! The process of a plugin host, as the daemon sees it: started, ordered about, ended.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use fd_os::lock::Mutex;
use rustix::fs::{MemfdFlags, Mode, SealFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::shm;

use super::child::Leader;
use super::orders;
use super::settings::{Confinement, HostSettings};
use super::wire::{self, Function, Load, Order, Report, marks};
use crate::api::plugin::Offers;
use crate::texts;

/// The name under which this program is a plugin host.
const ROLE: &str = "bacula-fd-plugin";
/// How often a wait looks whether it is still wanted.
pub(crate) const STEP: Duration = Duration::from_millis(100);
/// How long a process may take to end that has closed its line or was killed.
const LAST_MOMENT: Duration = Duration::from_secs(2);
/// How long an order may wait for the plugin host to take it.
const ORDER_LIMIT: Duration = Duration::from_secs(5);

/// Whether the program was started to be a plugin host.
pub fn is_meant(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|name| name.as_bytes() == ROLE.as_bytes())
}

/// A plugin host. Dropped, it is ended.
#[derive(Debug)]
pub(crate) struct Process {
    control: Mutex<OwnedFd>,
    leader: Mutex<Leader>,
    instances: AtomicU64,
    /// Instances that have begun and not ended.
    live: AtomicU64,
    /// The memory of the instances, for their marks.
    memories: Mutex<Vec<Weak<File>>>,
    /// The function in which it has died, or for which it was ended.
    died_in: OnceLock<Function>,
    /// No new instance may begin here.
    retired: AtomicBool,
    patience: Duration,
}

/// The daemon's ends of a new instance.
#[derive(Debug)]
pub(crate) struct Line {
    /// Its number.
    pub(crate) number: u64,
    /// Calls and answers.
    pub(crate) stream: UnixStream,
    /// The shared memory. It is read and written as a file, never mapped: the plugin host may
    /// change it at any time.
    pub(crate) shared: Arc<File>,
}

/// Why a plugin is not loaded.
#[derive(Debug)]
pub(crate) enum NotLoaded {
    /// Its own `loadPlugin` has refused.
    Silently,
    /// The message about it.
    Refused(Vec<u8>),
    /// The plugin host has failed.
    Failed(io::Error),
    /// It has ended.
    Ended(ExitStatus),
    /// It does not return.
    Late,
}

impl NotLoaded {
    /// What has happened, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Silently => texts::LOAD_REFUSED.to_owned(),
            Self::Refused(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
            Self::Failed(error) => fd_os::io_error_text(error),
            Self::Ended(status) => texts::ended(signal_or_status(*status)),
            Self::Late => texts::LOAD_LATE.to_owned(),
        }
    }
}

impl From<io::Error> for NotLoaded {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Process {
    /// Starts a plugin host and has it load this plugin. With `reads_all` it may read every file,
    /// as the daemon may, which has become another user.
    pub(crate) fn start(
        settings: &HostSettings,
        confinement: &Confinement,
        path: &[u8],
        file: &[u8],
        reads_all: bool,
    ) -> Result<(Arc<Self>, Vec<u8>, Offers), NotLoaded> {
        let (control, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)?;
        rustix::net::sockopt::set_socket_timeout(&control, rustix::net::sockopt::Timeout::Send, Some(ORDER_LIMIT))
            .map_err(io::Error::from)?;
        let (output, printed) = io::pipe()?;
        let mut command = fd_os::process::command(&settings.program);
        command
            .arg0(ROLE)
            .arg(OsStr::from_bytes(file))
            .stdin(Stdio::from(theirs))
            .stdout(printed.try_clone()?)
            .stderr(printed);
        let (sink, name) = (Arc::clone(&settings.output), file.to_vec());
        let leader = Leader::start(command, output, reads_all, move |line| sink(&name, line))?;
        let process = Arc::new(Self {
            control: Mutex::new(control),
            leader: Mutex::new(leader),
            instances: AtomicU64::new(0),
            live: AtomicU64::new(0),
            memories: Mutex::default(),
            died_in: OnceLock::new(),
            retired: AtomicBool::new(false),
            patience: confinement.start_timeout,
        });
        let load = Load {
            path: path.into(),
            file: file.into(),
            general: settings.general.iter().map(|(variable, value)| (variable.number(), value.clone())).collect(),
            user: confinement.user.clone(),
            memory: confinement.memory,
            network: confinement.network,
            reads_all,
            working_directory: settings.working_directory.as_slice().into(),
            daemon: settings.daemon.as_slice().into(),
        };
        match process.order(&Order::Load(Box::new(load)))? {
            Report::Loaded { version, offers } => Ok((process, version.0, offers)),
            Report::Refused(Some(text)) => Err(NotLoaded::Refused(text.0)),
            Report::Refused(None) => Err(NotLoaded::Silently),
            Report::Done => Err(NotLoaded::Failed(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Orders something that is reported.
    fn order(&self, order: &Order) -> Result<Report, NotLoaded> {
        let control = self.control.lock();
        let bytes = encoded(order)?;
        orders::send(control.as_fd(), &bytes, &[])?;
        let start = Instant::now();
        rustix::net::sockopt::set_socket_timeout(&*control, rustix::net::sockopt::Timeout::Recv, Some(STEP))
            .map_err(io::Error::from)?;
        let mut ended = None;
        loop {
            match orders::receive(control.as_fd()) {
                Ok(Some((bytes, _))) => return Ok(wire::decode(&bytes).map_err(invalid)?),
                Ok(None) => return Err(self.wait_end().map_or(NotLoaded::Late, NotLoaded::Ended)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Some(status) = ended {
                        return Err(NotLoaded::Ended(status));
                    }
                    // One that ends may have reported since; that is received then.
                    ended = self.ended();
                    if ended.is_none() && start.elapsed() >= self.patience {
                        self.kill();
                        return Err(NotLoaded::Late);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(self.wait_end().map_or(NotLoaded::Late, NotLoaded::Ended));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opens the line of a new instance.
    pub(crate) fn open(&self) -> io::Result<Line> {
        let (stream, theirs) = UnixStream::pair()?;
        let shared = shared_memory()?;
        stream.set_read_timeout(Some(STEP))?;
        stream.set_write_timeout(Some(STEP))?;
        let shared = Arc::new(File::from(shared));
        let mut memories = self.memories.lock();
        memories.retain(|memory| memory.strong_count() > 0);
        memories.push(Arc::downgrade(&shared));
        drop(memories);
        let number = self.instances.fetch_add(1, Ordering::Relaxed);
        let bytes = encoded(&Order::Open(number))?;
        orders::send(self.control.lock().as_fd(), &bytes, &[theirs.as_fd(), shared.as_fd()])?;
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Line { number, stream, shared })
    }

    /// Has another thread tell this instance that its job is canceled; the line of that thread.
    pub(crate) fn cancel(&self, number: u64) -> io::Result<UnixStream> {
        let (stream, theirs) = UnixStream::pair()?;
        stream.set_read_timeout(Some(STEP))?;
        stream.set_write_timeout(Some(STEP))?;
        let bytes = encoded(&Order::Cancel(number))?;
        orders::send(self.control.lock().as_fd(), &bytes, &[theirs.as_fd()])?;
        Ok(stream)
    }

    /// Has it become this user.
    pub(crate) fn become_user(&self, uid: u32, gid: u32, groups: Vec<u32>, reads_all: bool) -> Result<(), NotLoaded> {
        match self.order(&Order::Become { uid, gid, groups, reads_all })? {
            Report::Done => Ok(()),
            Report::Refused(text) => Err(NotLoaded::Refused(text.unwrap_or_default().0)),
            Report::Loaded { .. } => Err(NotLoaded::Failed(io::ErrorKind::InvalidData.into())),
        }
    }

    /// How it has ended, if it has. What the plugin had started and left running has ended then.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.leader.lock().ended()
    }

    /// The function in which it has died: that of the thread which received the signal. If none
    /// did, that of the instance with this memory, if it was in one. Whether this instance had no
    /// part in it.
    pub(crate) fn died_in(&self, own: &File) -> (Function, bool) {
        let marks = |memory: &File| {
            let mut bytes = [0; marks::LENGTH];
            memory.read_exact_at(&mut bytes, 0).map_or((Function::None, false), |()| wire::read_marks(bytes))
        };
        let (function, at_fault) = marks(own);
        if at_fault {
            return (*self.died_in.get_or_init(|| function), false);
        }
        if let Some(function) = self.died_in.get() {
            return (*function, true);
        }
        let memories = self.memories.lock();
        let mut others = memories.iter().filter_map(Weak::upgrade).map(|memory| marks(&memory));
        let fault = others.find(|(_, at_fault)| *at_fault);
        fault.map_or((function, function == Function::None), |(function, _)| (function, true))
    }

    /// How it has ended, if it was about to.
    pub(crate) fn ends_soon(&self) -> Option<ExitStatus> {
        self.ends_within(LAST_MOMENT)
    }

    /// How it has ended: it is about to, or is made to.
    pub(crate) fn wait_end(&self) -> Option<ExitStatus> {
        self.ends_soon().or_else(|| {
            self.kill();
            None
        })
    }

    fn ends_within(&self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let ended = self.ended();
            if ended.is_some() || start.elapsed() >= limit {
                return ended;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(STEP);
        }
    }

    /// Ends it at once, with what the plugin has started. Nothing begins here any more.
    pub(crate) fn kill(&self) {
        self.retire();
        self.leader.lock().kill();
    }

    /// The same because of this function of an instance. Other instances are told so.
    pub(crate) fn kill_for(&self, function: Function) {
        self.died_in.get_or_init(|| function);
        self.kill();
    }

    /// An instance has ended. If nothing begins here any more and it was the last one, the process
    /// ends.
    pub(crate) fn leave(&self) {
        if self.live.fetch_sub(1, Ordering::Relaxed) == 1 && self.retired.load(Ordering::Relaxed) {
            self.kill();
            let _ended = self.ends_within(LAST_MOMENT);
        }
    }

    /// Lets nothing begin here any more. It ends with its last instance.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    /// Whether something may begin here.
    pub(crate) fn serves(&self) -> bool {
        !self.retired.load(Ordering::Relaxed) && self.ended().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.serves()
            && let Ok(bytes) = encoded(&Order::Unload)
            && orders::send(self.control.lock().as_fd(), &bytes, &[]).is_ok()
        {
            let _ended = self.ends_within(LAST_MOMENT);
        }
        self.kill();
        let _ended = self.ends_within(LAST_MOMENT);
    }
}

/// A file in memory, without a name.
fn shared_memory() -> io::Result<OwnedFd> {
    let memory = match rustix::fs::memfd_create("plugin", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING) {
        // Linux before 3.17, or a filter of system calls. Without seals a plugin that shortens it
        // is ended by the kernel; the daemon maps nothing.
        Err(Errno::NOSYS | Errno::PERM) => {
            let name = format!("/ferrofd-{:016x}", RandomState::new().hash_one(()));
            let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
            let memory = shm::open(&name, flags, Mode::RUSR | Mode::WUSR)?;
            shm::unlink(&name)?;
            rustix::fs::ftruncate(&memory, wire::SHARED as u64)?;
            return Ok(memory);
        }
        made => made?,
    };
    rustix::fs::ftruncate(&memory, wire::SHARED as u64)?;
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}

fn encoded(order: &Order) -> io::Result<Vec<u8>> {
    wire::encode_bare(order).map_err(invalid)
}

fn invalid(error: wire::Nonsense) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// The signal that has ended a process, or its exit status.
pub(crate) fn signal_or_status(status: ExitStatus) -> Result<i32, i32> {
    match status.signal() {
        Some(signal) => Ok(signal),
        None => Err(status.code().unwrap_or_default()),
    }
}
