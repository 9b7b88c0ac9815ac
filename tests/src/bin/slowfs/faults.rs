//! What goes wrong, on demand.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::str::FromStr as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::timer::Job;

/// What is asked of the file system, as the kernel calls it, for a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) operation: &'static str,
    pub(crate) name: &'a OsStr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Error,
    Unsupported,
    Stop,
    Short,
    Change,
    Fold,
}

#[derive(Debug)]
struct Rule {
    verb: Verb,
    /// Only this one, if there is any.
    operation: Option<String>,
    word: Vec<u8>,
}

impl Rule {
    fn applies(&self, asked: Asked<'_>) -> bool {
        let name = asked.name.as_bytes();
        self.operation.as_ref().is_none_or(|operation| operation == asked.operation)
            && (self.word.is_empty() || name.windows(self.word.len()).any(|part| part == self.word))
    }
}

/// The faults, and what is held back.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    state: Mutex<State>,
    holds: Condvar,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    /// Operations until nothing is answered.
    left: Option<u64>,
    /// Bytes that a read gives at most.
    partial: Option<usize>,
    /// How many reads have been changed.
    changed: u8,
    held: Vec<Job>,
}

impl fmt::Debug for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}, {} held", self.rules, self.held.len())
    }
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a fault as it is written on the command line.
    pub(crate) fn add(&self, text: &str) -> io::Result<()> {
        let wrong = || io::Error::other(format!("{text:?} is no fault"));
        let (what, word) = text.split_once(':').ok_or_else(wrong)?;
        match what {
            "stop-after" => self.state().left = Some(u64::from_str(word).map_err(|_| wrong())?),
            "partial" => self.state().partial = Some(usize::from_str(word).map_err(|_| wrong())?),
            _ => {
                let (verb, operation) = what.split_once('-').map_or((what, None), |(verb, rest)| (verb, Some(rest)));
                let verb = match verb {
                    "error" => Verb::Error,
                    "unsupported" => Verb::Unsupported,
                    "stop" => Verb::Stop,
                    "short" => Verb::Short,
                    "change" => Verb::Change,
                    "fold" => Verb::Fold,
                    _ => return Err(wrong()),
                };
                let rule = Rule { verb, operation: operation.map(str::to_owned), word: word.as_bytes().to_vec() };
                self.state().rules.push(rule);
            }
        }
        Ok(())
    }

    /// No faults any more, and everything is answered.
    pub(crate) fn clear(&self) {
        self.state().rules.clear();
        self.state().partial = None;
        self.release();
    }

    /// Answers what is held, and from now on everything.
    pub(crate) fn release(&self) {
        let held = {
            let mut state = self.state();
            state.left = None;
            state.rules.retain(|rule| rule.verb != Verb::Stop);
            std::mem::take(&mut state.held)
        };
        for job in held {
            job();
        }
    }

    /// Returns when something is held.
    pub(crate) fn wait_until_held(&self) {
        let nothing = |state: &mut State| state.held.is_empty();
        drop(self.holds.wait_while(self.state(), nothing).unwrap_or_else(PoisonError::into_inner));
    }

    /// Gives the job back, unless it is held.
    pub(crate) fn admit(&self, asked: Asked<'_>, job: Job) -> Option<Job> {
        let mut state = self.state();
        let over = match &mut state.left {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        };
        if over || state.rules.iter().any(|rule| rule.verb == Verb::Stop && rule.applies(asked)) {
            state.held.push(job);
            self.holds.notify_all();
            return None;
        }
        Some(job)
    }

    /// Whether a fault of this kind applies.
    pub(crate) fn has(&self, verb: Verb, asked: Asked<'_>) -> bool {
        self.state().rules.iter().any(|rule| rule.verb == verb && rule.applies(asked))
    }

    /// Whether reads of the file must come here each time, and go to their reader as they are.
    pub(crate) fn concern_reads(&self, name: &OsStr) -> bool {
        let asked = Asked { operation: "read", name };
        self.state().partial.is_some() || self.has(Verb::Short, asked) || self.has(Verb::Change, asked)
    }

    /// How many of these bytes a write takes.
    pub(crate) fn taken(&self, name: &OsStr, bytes: usize) -> usize {
        let is_short = self.has(Verb::Short, Asked { operation: "write", name });
        if is_short { (bytes / 2).max(bytes.min(1)) } else { bytes }
    }

    /// Spoils what was read from a place of a file of this size.
    pub(crate) fn spoil(&self, name: &OsStr, offset: u64, size: u64, data: &mut Vec<u8>) {
        let asked = Asked { operation: "read", name };
        if self.has(Verb::Short, asked) {
            data.truncate(usize::try_from((size / 2).saturating_sub(offset)).unwrap_or(usize::MAX));
        }
        let changes = self.has(Verb::Change, asked);
        let mut state = self.state();
        if let Some(partial) = state.partial {
            data.truncate(partial);
        }
        if changes {
            state.changed = state.changed.wrapping_add(1);
            let number = state.changed;
            for byte in data.iter_mut() {
                *byte ^= number;
            }
        }
    }
}
