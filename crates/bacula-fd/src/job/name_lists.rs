//! Lists of names that stand on this host: files, and what programs print (reference 03 §1.5).

use std::fs::File;
use std::io::{self, PipeWriter, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fd_fileset::{Draft, LineError, ListFailure, ListKind, ListRequest, Regex, RegexCompiler};
use fd_os::io_error_text;
use fd_os::process::{Group, IsWanted, Watched, is_unwanted};
use fd_os::regex::RegexOptions;
use fd_walk::{DirectoryLimits, OutOfLimits};

use crate::job::job_codes::Surroundings;
use crate::job::matcher::Matcher;
use crate::job::own_thread::{Nothing, OwnThread};
use crate::job::program::{self, NotRun};
use crate::shared::job::Job;
use crate::texts::{self, LIST_IS_EXCLUDED, LIST_IS_NOT_ALLOWED};

/// How long a list that is a FIFO may be without a writer.
const WRITER_TIMEOUT: Duration = Duration::from_secs(600);

/// Why a list is not whole.
pub(crate) enum ListEnd {
    /// The operator is told.
    Told(LineError),
    /// The job was canceled, or its Director has gone.
    Unwanted,
    /// Its reader has nothing.
    Nothing(Nothing),
}

impl From<LineError> for ListEnd {
    fn from(error: LineError) -> Self {
        Self::Told(error)
    }
}

impl From<Nothing> for ListEnd {
    fn from(nothing: Nothing) -> Self {
        Self::Nothing(nothing)
    }
}

/// Reads lists for one job.
#[derive(Clone, Debug)]
pub(crate) struct ListReader {
    /// The job.
    pub job: Arc<Job>,
    /// What the commands of lists depend on.
    pub surroundings: Surroundings,
    /// *Allowed* and *Excluded Backup Directories*.
    pub limits: DirectoryLimits,
}

impl ListReader {
    /// Reads the list that was asked for into the FileSet.
    pub(crate) fn read(&self, draft: &mut Draft, request: &ListRequest, wanted: IsWanted<'_>) -> Result<(), ListEnd> {
        match request.kind {
            ListKind::File => self.read_list_file(draft, request, wanted),
            ListKind::Program => self.run_list_program(draft, request, wanted),
        }
    }

    fn run_list_program(&self, draft: &mut Draft, request: &ListRequest, wanted: IsWanted<'_>) -> Result<(), ListEnd> {
        let cannot_run = |error: &io::Error| ListFailure::Status {
            status: program::exec_status(error),
            error: io_error_text(error),
        };
        let Some(command) = self.surroundings.expand(&request.argument, &self.job) else {
            return Ok(draft.list_failed(cannot_run(&program::too_long()))?);
        };
        // Whatever ends the reading ends the program, too. As with the stock daemon its errors are
        // taken for names, which are not found: so the job's log has them.
        let (child, output) = match program::start_while(&command, &self.surroundings.allowed, Group::Ends, wanted) {
            Ok(started) => started,
            Err(NotRun::Exec(error)) if is_unwanted(&error) => return Err(ListEnd::Unwanted),
            Err(NotRun::Exec(error)) => return Ok(draft.list_failed(cannot_run(&error))?),
            Err(why) => return Ok(draft.list_failed(ListFailure::CannotStart { error: why.to_string() })?),
        };
        feed(draft, Watched::new(output, wanted))?;
        let ended = child.wait(wanted);
        if !wanted() {
            return Err(ListEnd::Unwanted);
        }
        match ended {
            Ok(status) if status.success() => draft.list_end()?,
            Ok(status) => {
                let number = status.code().or_else(|| status.signal()).unwrap_or(-1);
                draft.list_failed(ListFailure::Status { status: number, error: texts::ended(status) })?;
            }
            Err(error) => {
                draft.list_failed(ListFailure::Status { status: -1, error: io_error_text(&error) })?;
            }
        }
        Ok(())
    }

    /// The file may be on storage that does not answer, so another thread reads it.
    fn read_list_file(&self, draft: &mut Draft, request: &ListRequest, wanted: IsWanted<'_>) -> Result<(), ListEnd> {
        let failed = |error: &io::Error| ListFailure::CannotStart { error: io_error_text(error) };
        let (list, to) = match io::pipe() {
            Ok(pipe) => pipe,
            Err(error) => return Ok(draft.list_failed(failed(&error))?),
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let (request, limits, sees_end) = (request.clone(), self.limits.clone(), Arc::clone(&is_over));
        let reader = OwnThread::start("list".to_owned(), move || pass_on(&request, &limits, to, &sees_end))?;
        let fed = feed(draft, Watched::new(list, wanted));
        is_over.store(true, Ordering::Relaxed);
        if let Err(ListEnd::Told(_)) = fed {
            // The rest is of no use, and the job not canceled. The reader ends by itself.
            return fed;
        }
        let read = reader.wait(&self.job, wanted)?;
        fed?;
        match read {
            Ok(()) => draft.list_end()?,
            Err(error) => draft.list_failed(failed(&error))?,
        }
        Ok(())
    }
}

/// Passes on a file, or what comes through a FIFO until its writer ends.
fn pass_on(
    request: &ListRequest,
    limits: &DirectoryLimits,
    mut to: PipeWriter,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let file = match limits.open_list(&request.argument, request.plugins)? {
        Ok(file) => File::from(file),
        Err(OutOfLimits::Excluded) => return Err(io::Error::other(LIST_IS_EXCLUDED)),
        Err(OutOfLimits::NotAllowed) => return Err(io::Error::other(LIST_IS_NOT_ALLOWED)),
    };
    let wanted = || !is_over.load(Ordering::Relaxed);
    io::copy(&mut Watched::new(file, &wanted).with_patience(WRITER_TIMEOUT), &mut to).map(|_bytes| ())
}

/// Gives the FileSet all of a list. The caller decides whether that is a good end.
fn feed(draft: &mut Draft, mut list: impl Read) -> Result<(), ListEnd> {
    let mut buffer = [0; 4096];
    loop {
        match list.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => draft.list_data(buffer.get(..n).unwrap_or(&[]))?,
            Err(error) if is_unwanted(&error) => return Err(ListEnd::Unwanted),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let error = io_error_text(&error);
                return Ok(draft.list_failed(ListFailure::CannotStart { error })?);
            }
        }
    }
}

/// The C library's regular expressions, with the FileSet's options.
pub(crate) struct PosixCompiler<'w> {
    /// The job's expressions.
    pub matcher: Arc<Matcher>,
    /// Whether they are still wanted.
    pub wanted: IsWanted<'w>,
}

impl RegexCompiler for PosixCompiler<'_> {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let options = RegexOptions { ignore_case, newline: false };
        let compiled = self.matcher.compile(pattern, options, self.wanted);
        Ok(Box::new(compiled.map_err(|error| error.why)?))
    }
}
