//! Runs the programs that deliver messages: mail and operator commands (reference 06 §7.8).
//!
//! They run one after the other in a thread of their own, so that a mail server that hangs blocks
//! no job.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Messages that may wait; further ones are lost, with an error message.
const WAITING: usize = 100;
/// How long a program may take.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// How often the end of a program is polled.
const STEP: Duration = Duration::from_millis(20);

/// What a program gets on its standard input.
#[derive(Debug)]
pub(crate) enum Content {
    /// A text before it, and a file.
    File(Vec<u8>, File),
    /// These bytes.
    Bytes(Vec<u8>),
}

/// One program to be run.
#[derive(Debug)]
pub(crate) struct ProgramRun {
    /// The program and its arguments.
    pub(crate) argv: Vec<Vec<u8>>,
    /// Its input.
    pub(crate) content: Content,
    /// Called with the reason when the program could not do its work.
    pub(crate) failed: fn(&[Vec<u8>], &str),
}

/// The thread that runs them; it starts with the first message.
#[derive(Debug, Default)]
pub(crate) struct ProgramQueue {
    line: Option<(SyncSender<ProgramRun>, JoinHandle<()>)>,
}

impl ProgramQueue {
    /// Queues a message; `false` if too many wait, or there is no thread.
    pub(crate) fn send(&mut self, next: ProgramRun) -> bool {
        if self.line.is_none() {
            let (sender, runs) = sync_channel(WAITING);
            let thread = thread::Builder::new().name("delivery".to_owned()).spawn(move || run_all(&runs));
            self.line = thread.ok().map(|thread| (sender, thread));
        }
        self.line.as_ref().is_some_and(|(sender, _)| sender.try_send(next).is_ok())
    }

    /// Waits until every message is delivered or given up.
    pub(crate) fn finish(&mut self) {
        if let Some((sender, thread)) = self.line.take() {
            drop(sender);
            // A panic of the thread is reported where it happens.
            let _panicked = thread.join();
        }
    }
}

fn run_all(runs: &Receiver<ProgramRun>) {
    for next in runs {
        let done = run(&next);
        match done {
            Ok(status) if status.success() => {}
            Ok(status) => (next.failed)(&next.argv, &status.to_string()),
            Err(error) => (next.failed)(&next.argv, &fd_os::io_error_text(&error)),
        }
    }
}

fn run(next: &ProgramRun) -> io::Result<ExitStatus> {
    let (name, arguments) = next.argv.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = fd_os::process::command(OsStr::from_bytes(name));
    command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    command.stdin(Stdio::piped()).stdout(fd_os::process::no_output()).stderr(fd_os::process::no_output());
    // A program that does not read must not block for ever: the time limit ends it, and with it the
    // write. The thread comes first: a program whose input ended at once would send an empty mail.
    thread::scope(|scope| {
        let (hand, input) = sync_channel(1);
        let feeder = move || input.recv().map(|input| feed(input, &next.content));
        thread::Builder::new().name("delivery input".to_owned()).spawn_scoped(scope, feeder)?;
        let mut child = command.spawn()?;
        if let Some(input) = child.stdin.take() {
            // It fails only if the thread has panicked.
            let _ = hand.send(input);
        }
        wait(&mut child)
    })
}

fn feed(mut input: std::process::ChildStdin, content: &Content) -> io::Result<()> {
    match content {
        Content::Bytes(bytes) => input.write_all(bytes),
        Content::File(head, file) => {
            input.write_all(head)?;
            let mut file: &File = file;
            file.rewind()?;
            io::copy(&mut file, &mut input).map(drop)
        }
    }
}

fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > TIME_LIMIT {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(STEP);
    }
}
