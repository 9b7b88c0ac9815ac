//! The regular expressions of a job: compiled and matched here if they are light, else by a second
//! process that may die, the guest.
//!
//! The C library's expressions have no bound in memory, stack or time, and a thread that is in one
//! can't be stopped. Light ones ([`fd_os::regex::weigh`]) are matched where they are needed, as
//! fast as ever. The others, first of all those with back-references, go to a second process of
//! this program, which takes no more memory than it may ([`serve`]), and which is killed when the
//! job is canceled or when a single text takes too long.

use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ChildStdin, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fd_fileset::Regex;
use fd_os::io_error_text;
use fd_os::lock::Mutex;
use fd_os::regex::{Captures, GROUPS, PosixRegex, RegexError, RegexOptions, weigh};
use fd_restore::Undecided;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::shared::job::Job;
use crate::texts;
use fd_os::process::{Group, IsWanted, Program, Watched, is_unwanted, own_program};

/// The name under which this program is a guest.
const GUEST: &str = "bacula-fd-regex";
/// Memory of a guest, program included, bytes.
const GUEST_MEMORY: u64 = 320 << 20;
/// How long it may take to compile an expression.
const COMPILE_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take with one text.
const MATCH_LIMIT: Duration = Duration::from_secs(60);
/// The most memory that matching light expressions may come to take, all together, bytes. Further
/// ones go to the guest.
const MOST_MATCHING: usize = 512 << 20;
/// Longest text that is matched here, bytes: the time grows with its square.
const LONGEST_TEXT: usize = 4096;
/// Most bytes of a request or an answer: those of an expression or a text, and a few.
const LONGEST_MESSAGE: usize = 1 << 20;

/// What the guest is asked. Both sides are the same program.
#[derive(Debug, Serialize, Deserialize)]
enum Request {
    /// Compile this expression, with `ignore_case` and `newline` of [`RegexOptions`].
    Compile(Vec<u8>, bool, bool),
    /// Find the expression with this number, with its groups or without, in this text.
    Find(usize, bool, Vec<u8>),
}

/// What the guest says: `None` for ready and for compiled, or what is found, which has no places if
/// no groups were wanted; or the C library's words.
type Answer = Result<Option<Captures>, String>;

/// The expressions of one job.
#[derive(Debug)]
pub(crate) struct Matcher {
    job: Arc<Job>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Memory that matching what is light may take.
    matching: usize,
    /// What the guest has compiled, or is to compile when it is started again.
    expressions: Vec<(Vec<u8>, RegexOptions)>,
    guest: Option<Guest>,
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    matcher: Arc<Matcher>,
    pattern: Vec<u8>,
    options: RegexOptions,
    /// `None` for a heavy one.
    light: Option<PosixRegex>,
    /// Its number at the guest.
    number: OnceLock<usize>,
    /// Memory of the compiled expression in this process, about, in bytes.
    memory: usize,
}

/// Why an expression can't be used.
#[derive(Debug)]
pub(crate) struct NotCompiled {
    /// In the C library's words, or others.
    pub why: String,
    /// It is no good expression; else it needs more than there was, or no guest has seen it.
    pub is_bad: bool,
}

impl NotCompiled {
    /// The C library says so.
    fn refused(why: String) -> Self {
        let is_bad = ![RegexError::too_big(), RegexError::no_memory()].iter().any(|error| error.to_string() == why);
        Self { why, is_bad }
    }
}

impl From<Failure> for NotCompiled {
    fn from(failure: Failure) -> Self {
        let why = match failure {
            Failure::Refused(words) => return Self::refused(words),
            Failure::Unwanted => RegexError::too_big().to_string(),
            Failure::Late => texts::took_too_long(COMPILE_LIMIT),
            Failure::NotStarted(error) => texts::no_guest(&own_program(), &io_error_text(&error)),
            Failure::Ended(signal) => texts::guest_was_ended(signal),
            Failure::Gone(error) => {
                tracing::warn!(%error, "the process that compiles expressions failed on one");
                RegexError::too_big().to_string()
            }
        };
        Self { why, is_bad: false }
    }
}

/// Why the guest has no answer.
#[derive(Debug)]
enum Failure {
    /// The job doesn't need one any more.
    Unwanted,
    /// The C library's words.
    Refused(String),
    /// It took too long.
    Late,
    /// It died.
    Gone(io::Error),
    /// The kernel, for want of memory, or an operator has ended it, by this signal. That says
    /// nothing of the expression.
    Ended(Signal),
    /// It could not be started.
    NotStarted(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            _ if is_unwanted(&error) => Self::Unwanted,
            io::ErrorKind::TimedOut => Self::Late,
            _ => Self::Gone(error),
        }
    }
}

impl Matcher {
    /// The expressions of `job`, which ends when one can't be matched.
    pub(crate) fn new(job: Arc<Job>) -> Arc<Self> {
        Arc::new(Self { job, inner: Mutex::default() })
    }

    /// Compiles an expression, as long as `wanted`.
    ///
    /// # Errors
    /// See [`NotCompiled`].
    pub(crate) fn compile(
        self: &Arc<Self>,
        pattern: &[u8],
        options: RegexOptions,
        wanted: IsWanted<'_>,
    ) -> Result<Expression, NotCompiled> {
        let until_nul = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut expression = Expression {
            matcher: Arc::clone(self),
            pattern: until_nul.to_vec(),
            options,
            light: None,
            number: OnceLock::new(),
            // The guest's memory has a bound of its own.
            memory: until_nul.len().saturating_mul(2).saturating_add(size_of::<Expression>()),
        };
        let mut inner = self.inner.lock();
        match weigh(until_nul, options.ignore_case) {
            Some(weight) if inner.matching.saturating_add(weight.matching) <= MOST_MATCHING => {
                let light = PosixRegex::new(until_nul, options);
                expression.light = Some(light.map_err(|error| NotCompiled::refused(error.to_string()))?);
                expression.memory += weight.compiled;
                inner.matching += weight.matching;
            }
            _ => {
                let number = inner.compile(until_nul, options, wanted)?;
                let _first = expression.number.set(number);
            }
        }
        Ok(expression)
    }
}

impl Expression {
    /// Whether it is found anywhere in `text`. If that can't be decided, the job fails.
    pub(crate) fn is_match(&self, text: &CStr) -> bool {
        match &self.light {
            _ if self.matcher.job.cancel.is_canceled() => false,
            Some(light) if text.count_bytes() <= LONGEST_TEXT => match light.is_match_c(text) {
                Ok(found) => found,
                Err(error) => {
                    self.fail(text.to_bytes(), &error.to_string());
                    false
                }
            },
            _ => self.ask(text.to_bytes(), false).is_ok_and(|found| found.is_some()),
        }
    }

    /// The first match and its groups. If that can't be decided, the job fails.
    pub(crate) fn captures(&self, text: &[u8]) -> Result<Option<Captures>, Undecided> {
        let until_nul = text.split(|byte| *byte == 0).next().unwrap_or_default();
        match &self.light {
            _ if self.matcher.job.cancel.is_canceled() => Err(Undecided),
            Some(light) if until_nul.len() <= LONGEST_TEXT => {
                light.captures(until_nul).map_err(|error| self.fail(text, &error.to_string()))
            }
            _ => self.ask(until_nul, true),
        }
    }

    fn ask(&self, text: &[u8], groups: bool) -> Result<Option<Captures>, Undecided> {
        let mut inner = self.matcher.inner.lock();
        self.matcher.job.course.set_asking(true);
        let found = self.ask_guest(&mut inner, text, groups);
        self.matcher.job.course.set_asking(false);
        found
    }

    /// Asks the guest. One that dies or has no memory left may have been full of earlier work: a
    /// new one gets a try.
    fn ask_guest(&self, inner: &mut Inner, text: &[u8], groups: bool) -> Result<Option<Captures>, Undecided> {
        let cancel = &self.matcher.job.cancel;
        let wanted = || !cancel.is_canceled();
        for is_last in [false, true] {
            let found = self.number(inner, &wanted).and_then(|number| inner.find(number, text, groups, &wanted));
            match found {
                Ok(found) => return Ok(found),
                Err(failure) => {
                    inner.guest = None;
                    let why = match failure {
                        Failure::Unwanted => return Err(Undecided),
                        Failure::Late => texts::took_too_long(MATCH_LIMIT),
                        Failure::Refused(_) | Failure::Gone(_) | Failure::Ended(_) if !is_last => continue,
                        Failure::Refused(words) => words,
                        Failure::NotStarted(error) => texts::no_guest(&own_program(), &io_error_text(&error)),
                        Failure::Ended(signal) => texts::guest_was_ended(signal),
                        Failure::Gone(error) => io_error_text(&error),
                    };
                    return Err(self.fail(text, &why));
                }
            }
        }
        Err(Undecided)
    }

    fn number(&self, inner: &mut Inner, wanted: IsWanted<'_>) -> Result<usize, Failure> {
        if let Some(number) = self.number.get() {
            return Ok(*number);
        }
        let number = inner.compile(&self.pattern, self.options, wanted)?;
        Ok(*self.number.get_or_init(|| number))
    }

    fn fail(&self, text: &[u8], why: &str) -> Undecided {
        self.matcher.job.fail(texts::can_not_match(&self.pattern, text, why));
        Undecided
    }
}

impl Regex for Expression {
    fn is_match(&self, text: &CStr) -> bool {
        Self::is_match(self, text)
    }

    fn memory(&self) -> usize {
        self.memory
    }
}

impl Inner {
    /// Has the guest compile one more; its number.
    fn compile(&mut self, pattern: &[u8], options: RegexOptions, wanted: IsWanted<'_>) -> Result<usize, Failure> {
        if let Err(failure) = self.ask(wanted, |guest| guest.compile(pattern, options, wanted)) {
            self.guest = None;
            return Err(failure);
        }
        self.expressions.push((pattern.to_vec(), options));
        Ok(self.expressions.len() - 1)
    }

    fn find(
        &mut self,
        number: usize,
        text: &[u8],
        groups: bool,
        wanted: IsWanted<'_>,
    ) -> Result<Option<Captures>, Failure> {
        self.ask(wanted, |guest| guest.find(number, text, groups, wanted))
    }

    /// Asks the guest, which is started when it is needed.
    fn ask<T>(
        &mut self,
        wanted: IsWanted<'_>,
        ask: impl FnOnce(&mut Guest) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let guest = self.guest(wanted)?;
        ask(guest).map_err(|failure| guest.explained(failure))
    }

    /// The guest, with all expressions.
    fn guest(&mut self, wanted: IsWanted<'_>) -> Result<&mut Guest, Failure> {
        let guest = if let Some(guest) = self.guest.take() {
            guest
        } else {
            let mut guest = Guest::start(wanted)?;
            for (pattern, options) in &self.expressions {
                guest.compile(pattern, *options, wanted).map_err(|failure| guest.explained(failure))?;
            }
            guest
        };
        Ok(self.guest.insert(guest))
    }
}

/// The process that may die.
#[derive(Debug)]
struct Guest {
    /// Dropped, it is killed. `None` once it has died.
    program: Option<Program>,
    requests: ChildStdin,
    answers: File,
}

impl Guest {
    fn start(wanted: IsWanted<'_>) -> Result<Self, Failure> {
        let mut command = fd_os::process::command(own_program());
        command.arg0(GUEST).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(fd_os::process::no_output());
        let mut program = Program::start(&mut command, Group::Ends).map_err(Failure::NotStarted)?;
        let (Some(requests), Some(answers)) = (program.take_input(), program.take_output()) else {
            return Err(Failure::NotStarted(io::ErrorKind::BrokenPipe.into()));
        };
        let mut guest = Self { program: Some(program), requests, answers: OwnedFd::from(answers).into() };
        guest.is_ready(wanted)?;
        Ok(guest)
    }

    /// Waits until it has bounded itself. One that ends before has not met an expression yet.
    fn is_ready(&mut self, wanted: IsWanted<'_>) -> Result<(), Failure> {
        let mut answers = Watched::new(&self.answers, wanted).with_patience(COMPILE_LIMIT);
        match receive::<Answer>(&mut answers) {
            Ok(_ready) => Ok(()),
            Err(error) if is_unwanted(&error) => Err(Failure::Unwanted),
            Err(error) => Err(Failure::NotStarted(error)),
        }
    }

    /// What its end says of why it is gone.
    fn explained(&mut self, failure: Failure) -> Failure {
        let Failure::Gone(error) = failure else { return failure };
        let status = self.program.take().and_then(Program::end);
        match status.and_then(|status| Signal::try_from(status.signal()?).ok()) {
            Some(signal @ (Signal::SIGKILL | Signal::SIGTERM)) => Failure::Ended(signal),
            _ => Failure::Gone(error),
        }
    }

    fn compile(&mut self, pattern: &[u8], options: RegexOptions, wanted: IsWanted<'_>) -> Result<(), Failure> {
        let request = Request::Compile(pattern.to_vec(), options.ignore_case, options.newline);
        self.ask(&request, COMPILE_LIMIT, wanted).map(drop)
    }

    fn find(
        &mut self,
        number: usize,
        text: &[u8],
        groups: bool,
        wanted: IsWanted<'_>,
    ) -> Result<Option<Captures>, Failure> {
        let in_text = |range: &Range<usize>| range.start <= range.end && range.end <= text.len();
        let found = self.ask(&Request::Find(number, groups, text.to_vec()), MATCH_LIMIT, wanted)?;
        Ok(found.map(|places| places.map(|place| place.filter(in_text))))
    }

    /// The guest reads all of a request before it does anything, so that this does not wait for
    /// long with the request.
    fn ask(&mut self, request: &Request, limit: Duration, wanted: IsWanted<'_>) -> Result<Option<Captures>, Failure> {
        let request = encode(request)?;
        if request.len() > LONGEST_MESSAGE {
            return Err(Failure::Refused(RegexError::too_big().to_string()));
        }
        self.requests.write_all(&request)?;
        let answer: Answer = receive(&mut Watched::new(&self.answers, wanted).with_patience(limit))?;
        answer.map_err(Failure::Refused)
    }
}

/// The bytes of a message, its length first.
fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let message = postcard::to_allocvec(message).map_err(|_| io::ErrorKind::InvalidData)?;
    let length = u32::try_from(message.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok([length.to_be_bytes().as_slice(), &message].concat())
}

/// The next message.
fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST_MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut message = vec![0; length];
    from.read_exact(&mut message)?;
    postcard::from_bytes(&message).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Whether the program was started to be a guest.
pub(crate) fn is_meant(arguments: &[OsString]) -> bool {
    arguments.first().is_some_and(|name| name.as_bytes() == GUEST.as_bytes())
}

/// Runs a guest; returns its exit status. It ends with the daemon.
pub(crate) fn serve() -> u8 {
    let bounded = set_pdeathsig(Signal::SIGKILL)
        .and_then(|()| setrlimit(Resource::RLIMIT_CORE, 0, 0))
        .and_then(|()| setrlimit(Resource::RLIMIT_AS, GUEST_MEMORY, GUEST_MEMORY));
    if bounded.is_err() {
        return 1;
    }
    fd_os::locale::set_from_environment();
    // The end of the requests is the end of the job, and so is whatever else goes wrong between two
    // processes.
    let _end = answer_all(&mut io::stdin().lock(), &mut io::stdout().lock());
    0
}

/// Does what the requests ask for, one after the other.
fn answer_all(requests: &mut impl Read, answers: &mut impl Write) -> io::Result<()> {
    let mut expressions = Vec::new();
    let mut said = Ok(None);
    loop {
        answers.write_all(&encode(&said)?)?;
        answers.flush()?;
        said = answer(&mut expressions, receive(requests)?)?;
    }
}

/// Does what one request asks for.
fn answer(expressions: &mut Vec<PosixRegex>, request: Request) -> io::Result<Answer> {
    let answer = match request {
        Request::Compile(pattern, ignore_case, newline) => {
            PosixRegex::new(&pattern, RegexOptions { ignore_case, newline }).map(|expression| {
                expressions.push(expression);
                None
            })
        }
        Request::Find(number, groups, text) => {
            let expression = expressions.get(number).ok_or(io::ErrorKind::InvalidData)?;
            if groups {
                expression.captures(&text)
            } else {
                let text = CString::new(text).map_err(|_| io::ErrorKind::InvalidData)?;
                expression.is_match_c(&text).map(|found| found.then_some([const { None }; GROUPS]))
            }
        }
    };
    Ok(answer.map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests;
