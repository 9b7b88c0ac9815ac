//! What a program says, as messages (reference 07 §10.2).

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};

use fd_messages::MessageType;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::api::host::Host;
use crate::texts;

/// Most bytes of one message, as in the stock daemon.
const MOST: usize = 1024;
/// What a pipe holds, if the kernel doesn't say.
const USUAL_SIZE: usize = 64 << 10;

/// The end of a pipe where a program's words come out. Reads never wait.
#[derive(Debug)]
pub(crate) struct Output<R> {
    pipe: Option<R>,
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl<R: Read + AsFd> Output<R> {
    /// Reads from this pipe.
    pub(crate) fn new(pipe: R) -> io::Result<Self> {
        never_wait(&pipe)?;
        Ok(Self { pipe: Some(pipe), begun: Vec::new() })
    }

    /// What to poll for; `None` at its end.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Says what has come: the lines of each read in one message. It takes no more than the pipe
    /// holds, so that it returns whatever comes meanwhile.
    pub(crate) fn forward(&mut self, host: &mut dyn Host, file: &[u8]) {
        let size = self.pipe.as_ref().and_then(|pipe| fcntl(pipe, FcntlArg::F_GETPIPE_SZ).ok());
        let mut left = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(USUAL_SIZE);
        let mut buffer = [0; MOST];
        while let Some(pipe) = &mut self.pipe
            && left > 0
            && !host.facts().is_canceled()
        {
            let rest = buffer.get_mut(self.begun.len()..).unwrap_or_default();
            match pipe.read(rest) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    left = left.saturating_sub(count);
                    self.begun.extend_from_slice(rest.get(..count).unwrap_or_default());
                    self.say_lines(host, file);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        if self.pipe.is_none() {
            self.say_rest(host, file);
        }
    }

    /// Says the lines that have come, or what is as long as a message may be.
    fn say_lines(&mut self, host: &mut dyn Host, file: &[u8]) {
        let end = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => newline + 1,
            None if self.begun.len() >= MOST => self.begun.len(),
            None => return,
        };
        say(host, file, self.begun.get(..end).unwrap_or_default());
        self.begun.drain(..end);
    }

    /// Says a line that has no end.
    pub(crate) fn say_rest(&mut self, host: &mut dyn Host, file: &[u8]) {
        if !self.begun.is_empty() {
            say(host, file, &std::mem::take(&mut self.begun));
        }
    }
}

fn say(host: &mut dyn Host, file: &[u8], text: &[u8]) {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    // A message ends at a zero byte on its way to the Director.
    let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
    host.message(MessageType::Info, &texts::said(file, &text));
}

/// Reads and writes of our end return at once. The program's end is not changed.
pub(crate) fn never_wait(pipe: &impl AsFd) -> io::Result<()> {
    let flags = fcntl(pipe, FcntlArg::F_GETFL)?;
    fcntl(pipe, FcntlArg::F_SETFL(OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK))?;
    Ok(())
}

/// Bytes that a pipe of data holds, if the kernel allows it: fewer changes between the processes.
const PIPE_SIZE: i32 = 1 << 20;

/// Makes a pipe of data larger.
pub(crate) fn enlarge(pipe: &impl AsFd) {
    // Where the user has used up what the kernel allows, it stays at 64 KiB.
    let _size = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(PIPE_SIZE));
}
