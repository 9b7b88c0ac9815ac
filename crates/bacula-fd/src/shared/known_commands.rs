//! The plugin commands of what Directors want saved: a restore runs only these
//! (`plugins.restore_commands`).
//!
//! Digests of them are in `WORKING_DIRECTORY/bacula-fd.PORT.commands`. The file is trusted only if
//! it belongs to the daemon's user, who alone can read and write it: what is in it is run.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fd_os::lock::Mutex;
use openssl::sha::Sha256;

use crate::security::own_file;

/// Its mode.
const MODE: u32 = 0o600;
/// Its first bytes.
const MAGIC: &[u8] = b"ferrofd commands 1\0";
/// Bytes of a digest.
const LENGTH: usize = 32;
/// Commands that are kept. Those that were not sent for the longest time are forgotten.
const MOST: usize = 16_384;

/// Of a Director's name and its command.
type Digest = [u8; LENGTH];

/// See the module.
#[derive(Debug)]
pub(crate) struct KnownCommands {
    path: PathBuf,
    /// `None`: the file has not been read yet.
    state: Mutex<Option<State>>,
}

#[derive(Default, Debug)]
struct State {
    /// Each with a number that is higher the later it was sent.
    sent: HashMap<Digest, u64>,
    last: u64,
    /// The file has less: it could not be written.
    is_unwritten: bool,
}

impl KnownCommands {
    /// Those of a daemon that listens on this port.
    pub(crate) fn new(working_directory: &Path, port: u16) -> Self {
        let path = own_file::path(working_directory, port, "commands");
        Self { path, state: Mutex::default() }
    }

    /// A FileSet of this Director has these commands.
    pub(crate) fn note<'c>(&self, director: &[u8], commands: impl Iterator<Item = &'c [u8]>) {
        let mut commands = commands.peekable();
        if commands.peek().is_none() {
            return;
        }
        let mut guard = self.state.lock();
        let Some(state) = self.loaded(&mut guard) else { return };
        let mut is_new = state.is_unwritten;
        for command in commands {
            state.last += 1;
            is_new |= state.sent.insert(digest(director, command), state.last).is_none();
        }
        if !is_new {
            return;
        }
        if state.sent.len() > MOST {
            let oldest = state.in_order().map(|(_, number)| number).rev().nth(MOST - 1);
            if let Some(oldest) = oldest {
                state.sent.retain(|_, number| *number >= oldest);
            }
        }
        let written = own_file::replace(&self.path, MODE, &state.encode());
        state.is_unwritten = written.is_err();
        if let Err(error) = written {
            let path = self.path.display();
            tracing::warn!(%error, %path, "the next daemon will not know the plugin commands of FileSets");
        }
    }

    /// Whether a FileSet of this Director has had this very command.
    pub(crate) fn has(&self, director: &[u8], command: &[u8]) -> bool {
        self.loaded(&mut self.state.lock()).is_some_and(|state| state.sent.contains_key(&digest(director, command)))
    }

    /// The file, read when it is first asked for. `None`: it can't be read for the moment, and must
    /// not be written either.
    fn loaded<'s>(&self, state: &'s mut Option<State>) -> Option<&'s mut State> {
        if state.is_none() {
            *state = match read(&self.path) {
                Ok(read) => Some(read),
                Err(error) => {
                    if error.kind() != io::ErrorKind::NotFound {
                        tracing::warn!(%error, path = %self.path.display(), "the list of plugin commands is not used");
                    }
                    (!own_file::lacks_something(&error)).then(State::default)
                }
            };
        }
        state.as_mut()
    }
}

impl State {
    /// From the one that was not sent for the longest time on.
    fn in_order(&self) -> impl DoubleEndedIterator<Item = (&Digest, u64)> {
        let mut all: Vec<_> = self.sent.iter().map(|(digest, number)| (digest, *number)).collect();
        all.sort_unstable_by_key(|(_, number)| *number);
        all.into_iter()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        self.in_order().for_each(|(digest, _)| bytes.extend_from_slice(digest));
        bytes
    }

    /// `None` if it is damaged.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (digests, rest) = bytes.strip_prefix(MAGIC)?.as_chunks::<LENGTH>();
        if !rest.is_empty() || digests.len() > MOST {
            return None;
        }
        let sent: HashMap<_, _> = digests.iter().copied().zip(1..).collect();
        Some(Self { sent, last: digests.len() as u64, is_unwritten: false })
    }
}

fn read(path: &Path) -> io::Result<State> {
    let mut bytes = Vec::new();
    let most = (MAGIC.len() + MOST * LENGTH) as u64;
    own_file::read_private(path, MODE)?.take(most + 1).read_to_end(&mut bytes)?;
    State::decode(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
}

/// A Director's name has no NUL.
fn digest(director: &[u8], command: &[u8]) -> Digest {
    let mut digest = Sha256::new();
    digest.update(director);
    digest.update(b"\0");
    digest.update(command);
    digest.finish()
}

#[cfg(test)]
mod tests;
