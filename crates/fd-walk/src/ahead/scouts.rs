//! The threads that look up ahead. Each owns nothing that the walk needs: a thread that the kernel
//! holds in a call is left behind when the walk ends.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use fd_records::Stat;
use rustix::io::Errno;

use super::agenda::{Agenda, Opened, Opening, Outcome, Reply, Task, Work};
use super::calls::{Buffer, Calls};
use super::folder::{Answer, FolderId};
use crate::priority::Priority;
use crate::settings::WalkEnd;
use fd_os::depth::Taken;
use fd_os::sync::{Condvar, Instant, Mutex, MutexGuard, thread};
use fd_os::threads::{GLANCE, Thread, start_helper};

/// Bytes of a thread's stack.
const STACK: usize = 256 * 1024;
/// So long the end of a walk waits for its threads.
const GRACE: Duration = Duration::from_secs(1);

/// What the walk's own thread decides while it waits.
pub(crate) trait Attend {
    /// Whether the job was canceled.
    fn is_canceled(&self) -> bool;

    /// Whether the walk would enter the directory at this path, which is on the file system of the
    /// one that holds it.
    fn enters(&self, path: &[u8]) -> bool;

    /// The path of the file that makes the walk leave this directory out.
    fn marker(&self, path: &[u8]) -> Option<Vec<u8>>;
}

struct Shared {
    board: Mutex<Board>,
    for_scouts: Condvar,
    for_walk: Condvar,
    calls: Arc<dyn Calls>,
    priority: Priority,
}

struct Board {
    agenda: Agenda,
    /// Threads that wait for a task.
    resting: usize,
    has_ended: bool,
}

impl Shared {
    /// Ends the threads, once they have no task any more.
    fn end(&self) {
        let mut board = self.board.lock();
        board.has_ended = true;
        board.agenda.clear();
        self.for_scouts.notify_all();
    }

    /// Does a task, while others use the board.
    fn carry_out<'b>(&'b self, board: MutexGuard<'b, Board>, task: Task, buffer: &mut Buffer) -> MutexGuard<'b, Board> {
        self.wake_one(&board);
        drop(board);
        self.priority.follow();
        let folder = task.folder;
        let (outcome, taken) = measured(|| carry_out(&*self.calls, task, buffer));
        let mut board = self.board.lock();
        if board.agenda.deliver(folder, outcome, taken) {
            self.for_walk.notify_all();
        }
        board
    }

    fn wake_one(&self, board: &Board) {
        if board.resting > 0 && board.agenda.has_tasks() {
            self.for_scouts.notify_one();
        }
    }
}

/// See the module. The walk owns it.
pub(crate) struct Scouts {
    shared: Arc<Shared>,
    threads: Vec<Thread<()>>,
}

impl Scouts {
    /// None yet. The calling thread is the walk's.
    pub(crate) fn new(calls: Arc<dyn Calls>, reads_links: bool) -> Self {
        let board = Mutex::new(Board { agenda: Agenda::new(reads_links), resting: 0, has_ended: false });
        let (for_scouts, for_walk) = (Condvar::new(), Condvar::new());
        let shared = Shared { board, for_scouts, for_walk, calls, priority: Priority::of_this_thread() };
        Self { shared: Arc::new(shared), threads: Vec::new() }
    }

    /// Starts threads until there are so many, and returns how many there are.
    pub(crate) fn grow(&mut self, threads: usize) -> usize {
        while self.threads.len() < threads {
            let shared = PanicIsSeen(Arc::clone(&self.shared));
            // If one can't be started, the next one probably can't, either.
            let Ok(thread) = start_helper("scout", STACK, move || run(&shared.0)) else { break };
            self.threads.push(thread);
        }
        self.threads.len()
    }

    /// Whether a thread has panicked, so that nothing more is to be asked for.
    pub(crate) fn have_ended(&self) -> bool {
        self.shared.board.lock().has_ended
    }

    /// Uses the agenda.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Agenda) -> T) -> T {
        let mut board = self.shared.board.lock();
        let result = change(&mut board.agenda);
        self.shared.wake_one(&board);
        result
    }

    /// Asks about this directory until there is an answer, which comes with the time that it took.
    /// Meanwhile, decides which directories are opened ahead, and does what a scout would do.
    ///
    /// # Errors
    /// [`WalkEnd::Canceled`]: the job was canceled meanwhile.
    pub(crate) fn ask<T>(
        &self,
        folder: FolderId,
        walk: &dyn Attend,
        mut ask: impl FnMut(&mut Agenda) -> Reply<T>,
    ) -> Result<(Reply<T>, Duration), WalkEnd> {
        let mut since = None;
        let mut buffer = Buffer::default();
        let mut board = self.shared.board.lock();
        loop {
            let reply = if board.has_ended { Reply::Yourself } else { ask(&mut board.agenda) };
            let is_wait = matches!(reply, Reply::Wait);
            board.agenda.waits(is_wait.then_some(folder));
            self.shared.wake_one(&board);
            let candidate = board.agenda.candidate();
            if let Some(candidate) = &candidate {
                drop(board);
                let enters = walk.enters(&candidate.path);
                let unless = walk.marker(&candidate.path).filter(|_| enters);
                board = self.shared.board.lock();
                if enters {
                    board.agenda.open_ahead(candidate, unless);
                    self.shared.wake_one(&board);
                }
            }
            if !is_wait {
                return Ok((reply, since.map_or(Duration::ZERO, |since: Instant| since.elapsed())));
            }
            since.get_or_insert_with(Instant::now);
            if candidate.is_some() {
                continue;
            }
            if board.agenda.walk_helps()
                && let Some(task) = board.agenda.take()
            {
                board = self.shared.carry_out(board, task, &mut buffer);
                if walk.is_canceled() {
                    return Err(WalkEnd::Canceled);
                }
            } else {
                let is_late;
                (board, is_late) = self.shared.for_walk.wait_timeout(board, GLANCE);
                if is_late && walk.is_canceled() {
                    return Err(WalkEnd::Canceled);
                }
            }
        }
    }
}

impl Drop for Scouts {
    /// Ends the threads. Those that the kernel holds end when it lets them go.
    fn drop(&mut self) {
        self.shared.end();
        let until = Instant::now() + GRACE;
        for thread in self.threads.drain(..) {
            let _ended = thread.end(|| Instant::now() < until);
        }
    }
}

/// What a thread shares with the walk, which goes on by itself if the thread panics.
struct PanicIsSeen(Arc<Shared>);

impl Drop for PanicIsSeen {
    fn drop(&mut self) {
        if thread::panicking() {
            // The walk reports the directories in which it can't go on, and lends no others.
            self.0.end();
            self.0.for_walk.notify_all();
        }
    }
}

fn run(shared: &Shared) {
    let mut buffer = Buffer::default();
    let mut board = shared.board.lock();
    while !board.has_ended {
        let Some(task) = board.agenda.take() else {
            board.resting += 1;
            board = shared.for_scouts.wait(board);
            board.resting -= 1;
            continue;
        };
        board = shared.carry_out(board, task, &mut buffer);
    }
}

fn measured(work: impl FnOnce() -> Outcome) -> (Outcome, Taken) {
    let (outcome, mut taken) = Taken::measure(work);
    if let Outcome::Looked(answers) = &outcome {
        taken.calls = u32::try_from(answers.len()).unwrap_or(u32::MAX);
    }
    (outcome, taken)
}

fn carry_out(calls: &dyn Calls, task: Task, buffer: &mut Buffer) -> Outcome {
    let at = task.descriptor.as_fd();
    match task.work {
        Work::Look { entries, reads_links } => {
            let look = |(number, name): (u64, Arc<[u8]>)| (number, look(calls, at, &name, reads_links));
            Outcome::Looked(entries.into_iter().map(look).collect())
        }
        Work::Open(opening) => Outcome::Opened(opening.number, open(calls, at, &opening, buffer)),
        Work::Read => {
            let mut names = Vec::new();
            let rest = calls.names(at, buffer, &mut names);
            Outcome::Read(names, rest)
        }
    }
}

fn open(calls: &dyn Calls, at: BorrowedFd<'_>, opening: &Opening, buffer: &mut Buffer) -> Result<Opened, Errno> {
    if opening.unless.as_ref().is_some_and(|path| calls.exists(path)) {
        return Ok(Opened::Marked);
    }
    let identity = opening.identity;
    let descriptor = calls.open(at, &opening.name, identity)?;
    let mut names = Vec::new();
    let rest = calls.names(descriptor.as_fd(), buffer, &mut names);
    Ok(Opened::Open { descriptor, identity, names, rest })
}

fn look(calls: &dyn Calls, at: BorrowedFd<'_>, name: &[u8], reads_links: bool) -> Answer {
    let found = calls.lstat(at, name);
    let is_link = found.as_ref().is_ok_and(|(stat, _)| stat.mode_type() == Stat::MODE_SYMLINK);
    let link = if is_link && reads_links { calls.link(at, name) } else { None };
    Answer { found, link, time: Instant::now() }
}
