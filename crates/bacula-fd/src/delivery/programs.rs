//! Runs the programs that deliver messages: mail and operator commands (reference 06 §7.8).
//!
//! They run one after the other in a thread of their own, so that a mail server that hangs blocks
//! no job.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fd_messages::split_arguments;
use fd_os::process::{Group, Program};
use fd_os::threads;

use crate::texts;

/// Messages that may wait; further ones are lost, with an error message.
const WAITING: usize = 100;
/// How long a program may take.
const TIME_LIMIT: Duration = Duration::from_secs(120);

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
    /// The program and its arguments, as they are written.
    pub(crate) command: Vec<u8>,
    /// Its input.
    pub(crate) content: Content,
    /// Called with the command and the reason when the program could not do its work.
    pub(crate) failed: fn(&[u8], &str),
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
    for ProgramRun { command, content, failed } in runs {
        match run(&split_arguments(&command), content, TIME_LIMIT) {
            Ok(status) if status.success() => {}
            Ok(status) => failed(&command, &texts::ended(status)),
            Err(error) => failed(&command, &fd_os::io_error_text(&error)),
        }
    }
}

/// Runs a program, and ends it after this time, with the programs that it has started: one of them
/// may hang, too. What a program that has ended by itself has started goes on.
fn run(argv: &[Vec<u8>], content: Content, limit: Duration) -> io::Result<ExitStatus> {
    let (name, arguments) = argv.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut command = fd_os::process::command(OsStr::from_bytes(name));
    command.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    command.stdin(Stdio::piped()).stdout(fd_os::process::no_output()).stderr(fd_os::process::no_output());
    // A program that does not read must not block for ever: what is behind it may keep its input
    // open, so this thread is left behind then. It comes before the program: one whose input ended
    // at once would send an empty mail.
    let (hand, input) = sync_channel(1);
    let feeder = threads::start("delivery input", move || input.recv().map(|input| feed(input, &content)))?;
    let begun = Instant::now();
    let is_wanted = || begun.elapsed() <= limit;
    let mut program = Program::start(&mut command, Group::Stays)?;
    if let Some(input) = program.take_input() {
        // It fails only if the thread has panicked.
        let _ = hand.send(input);
    }
    let status = program.wait(&is_wanted);
    let _fed = feeder.end(is_wanted);
    status
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(script: &str, limit: Duration) -> io::Result<ExitStatus> {
        let argv = ["sh", "-c", script].map(|word| word.as_bytes().to_vec());
        // More than a pipe holds.
        run(&argv, Content::Bytes(vec![b'x'; 1 << 20]), limit)
    }

    #[test]
    fn a_program_that_hangs_with_what_it_has_started_is_ended() {
        let status = run_shell("sleep 1000; :", Duration::from_millis(50)).unwrap();
        assert!(!status.success());
    }

    #[test]
    fn a_program_gets_all_of_its_input() {
        let status = run_shell("[ $(wc -c) = 1048576 ]", TIME_LIMIT).unwrap();
        assert!(status.success());
    }
}
