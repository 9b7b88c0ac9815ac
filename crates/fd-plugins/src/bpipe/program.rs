//! A reader or writer that runs (reference 07 §10.2, §10.3).

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use fd_os::page_cache::append_next;
use fd_os::process::{Group, Program, no_input};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::output::{Output, enlarge, never_wait};
use super::shell::{NotRun, prepare};
use crate::api::host::Host;

/// How often a wait checks whether the job was canceled, and a busy reader whether there are
/// messages.
const STEP: Duration = Duration::from_millis(100);
/// The same in milliseconds, for the kernel.
const STEP_MS: u16 = 100;

/// How long a program that prints fast is left alone when its pipe is empty: one change to another
/// process for many writes. It prints less than the pipe holds in this time.
const NAP: Duration = Duration::from_micros(100);

/// Added to the exit code of a program (reference 07 §10.2).
const EXITED: i32 = 1 << 28;
/// Added to the signal that a program died of.
const KILLED: i32 = 1 << 27;

/// A program, with its data and its messages.
#[derive(Debug)]
pub(crate) struct Running {
    program: Program,
    data: Data,
    output: Output<PipeReader>,
    looked: Instant,
    /// It takes no more data.
    is_refusing: bool,
}

/// Our end of the pipe of data.
#[derive(Debug)]
enum Data {
    From(PipeReader),
    To(PipeWriter),
    Ended,
}

/// How a read or write failed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The program was not opened for this.
    NotOpen,
    /// The job was canceled, and the program was ended.
    Canceled,
    /// The system's error.
    Io(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for Failed {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Running {
    /// Starts a program that prints the data; what it says comes by its error output.
    pub(crate) fn reader(host: &dyn Host, line: &[u8]) -> Result<Self, NotRun> {
        let (output, errors) = io::pipe()?;
        let (data, print) = io::pipe()?;
        enlarge(&data);
        never_wait(&data)?;
        let dress = move |command: &mut Command| {
            command.stdin(no_input()).stdout(print).stderr(errors);
        };
        Self::start(host, line, dress, Data::From(data), output)
    }

    /// Starts a program that takes the data; what it says comes by both outputs.
    pub(crate) fn writer(host: &dyn Host, line: &[u8]) -> Result<Self, NotRun> {
        let (output, print) = io::pipe()?;
        let (input, data) = io::pipe()?;
        // As large as with the stock daemon: a writer that ends early is noticed as early.
        never_wait(&data)?;
        let errors = print.try_clone()?;
        let dress = move |command: &mut Command| {
            command.stdin(input).stdout(print).stderr(errors);
        };
        Self::start(host, line, dress, Data::To(data), output)
    }

    /// Starts the program of the line, which may be on storage that does not answer, unless the job
    /// is canceled meanwhile.
    fn start(
        host: &dyn Host,
        line: &[u8],
        dress: impl FnOnce(&mut Command) + Send + 'static,
        data: Data,
        output: PipeReader,
    ) -> Result<Self, NotRun> {
        let facts = host.facts();
        let (line, allowed) = (line.to_vec(), facts.allowed_programs().to_vec());
        let make = move || {
            let mut command = prepare(&line, &allowed)?;
            dress(&mut command);
            Ok::<_, NotRun>(command)
        };
        let program = Program::start_while(make, Group::Ends, &|| !facts.is_canceled())?;
        Ok(Self { program, data, output: Output::new(output)?, looked: Instant::now(), is_refusing: false })
    }

    /// Number of our end of the data's pipe.
    pub(crate) fn descriptor(&self) -> i32 {
        match &self.data {
            Data::From(pipe) => pipe.as_raw_fd(),
            Data::To(pipe) => pipe.as_raw_fd(),
            Data::Ended => -1,
        }
    }

    /// Appends `most` bytes to `room`, or less at the end of the data.
    pub(crate) fn read(
        &mut self,
        host: &mut dyn Host,
        file: &[u8],
        room: &mut Vec<u8>,
        most: usize,
    ) -> Result<usize, Failed> {
        let mut filled = 0;
        if self.looked.elapsed() >= STEP {
            self.look(host, file)?;
        }
        loop {
            let Data::From(data) = &mut self.data else { return Err(Failed::NotOpen) };
            let missing = most.saturating_sub(filled);
            if missing == 0 {
                return Ok(filled);
            }
            match append_next(data.as_fd(), room, missing) {
                Ok(0) => return Ok(filled),
                Ok(count) => {
                    filled = filled.saturating_add(count);
                    if filled < most {
                        // The pipe was just emptied. The program fills it again meanwhile.
                        thread::sleep(NAP);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(host, file)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes all of it.
    pub(crate) fn write(&mut self, host: &mut dyn Host, file: &[u8], mut bytes: &[u8]) -> Result<(), Failed> {
        self.look(host, file)?;
        while !bytes.is_empty() {
            let Data::To(data) = &mut self.data else { return Err(Failed::NotOpen) };
            match data.write(bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(host, file)?,
                Err(error) => {
                    self.is_refusing = true;
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Waits until data can be moved; what is said meanwhile is passed on.
    fn wait(&mut self, host: &mut dyn Host, file: &[u8]) -> Result<(), Failed> {
        loop {
            let data = match &self.data {
                Data::From(pipe) => PollFd::new(pipe.as_fd(), PollFlags::POLLIN),
                Data::To(pipe) => PollFd::new(pipe.as_fd(), PollFlags::POLLOUT),
                Data::Ended => return Ok(()),
            };
            let (ready, talks) = poll_two(data, self.output.pipe())?;
            if talks || self.looked.elapsed() >= STEP {
                self.look(host, file)?;
            }
            if ready {
                return Ok(());
            }
        }
    }

    /// Passes on what was said, and checks whether the job is still wanted.
    fn look(&mut self, host: &mut dyn Host, file: &[u8]) -> Result<(), Failed> {
        self.looked = Instant::now();
        if host.facts().is_canceled() {
            return Err(Failed::Canceled);
        }
        self.output.forward(host, file);
        Ok(())
    }

    /// Closes the pipe of data, passes on what is said until the program has ended, and tells how
    /// it did: 0, or the number of its failure. `None` if it was ended because nobody wants it any
    /// more: a reader that is closed before its data ends, or any program of a canceled job.
    pub(crate) fn close(mut self, host: &mut dyn Host, file: &[u8]) -> Option<i32> {
        if matches!(self.data, Data::To(_)) && host.facts().is_canceled() {
            return self.give_up(host, file);
        }
        let unread = match std::mem::replace(&mut self.data, Data::Ended) {
            Data::From(mut pipe) => !matches!(pipe.read(&mut [0]), Ok(0)),
            Data::To(_) | Data::Ended => false,
        };
        while !unread && !host.facts().is_canceled() {
            let ended = self.program.has_ended();
            self.output.forward(host, file);
            // All that it has said was in the pipe. Processes that it has left behind may keep that
            // open, and talk on.
            if ended {
                self.output.say_rest(host, file);
                return outcome(self.program.wait(&|| true));
            }
            match self.output.pipe() {
                Some(pipe) => drop(poll_two(PollFd::new(pipe, PollFlags::POLLIN), None)),
                None => return outcome(self.program.wait(&|| !host.facts().is_canceled())),
            }
        }
        let _status = self.program.end();
        None
    }

    /// The same where not all data has come: a writer is ended before it sees the end, which it
    /// would take for that of the whole dump. One that has taken no more may say why.
    pub(crate) fn give_up(mut self, host: &mut dyn Host, file: &[u8]) -> Option<i32> {
        if self.is_refusing && !host.facts().is_canceled() {
            return self.close(host, file);
        }
        let _status = self.program.end();
        self.output.forward(host, file);
        self.output.say_rest(host, file);
        None
    }
}

/// How a program has ended: one whose status can't be had has failed. `None`: it was not wanted any
/// more.
fn outcome(ended: io::Result<ExitStatus>) -> Option<i32> {
    ended.map_or_else(|error| error.raw_os_error(), |status| Some(number(status)))
}

/// Waits one step for one or two pipes. Which of them are ready.
fn poll_two(first: PollFd<'_>, second: Option<BorrowedFd<'_>>) -> Result<(bool, bool), Errno> {
    let is_ready = |asked: &PollFd<'_>| asked.revents().is_none_or(|events| !events.is_empty());
    let both = if let Some(second) = second {
        let mut asked = [first, PollFd::new(second, PollFlags::POLLIN)];
        poll(&mut asked, PollTimeout::from(STEP_MS)).map(|_| (is_ready(&asked[0]), is_ready(&asked[1])))
    } else {
        let mut asked = [first];
        poll(&mut asked, PollTimeout::from(STEP_MS)).map(|_| (is_ready(&asked[0]), false))
    };
    match both {
        Err(Errno::EINTR) => Ok((false, false)),
        both => both,
    }
}

/// How a program ended, as a number.
fn number(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(0), _) => 0,
        (Some(code), _) => code | EXITED,
        (None, Some(signal)) => signal | KILLED,
        (None, None) => -1,
    }
}
