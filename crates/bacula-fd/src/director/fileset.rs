//! The `fileset` command: its lines, and the lists of names that stand on this host (reference 03 §1).

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::Arc;

use fd_fileset::{
    LineError, ListFailure, ListKind, ListRequest, Parser, Reaction, Regex, RegexCompiler, texts as fileset_texts,
};
use fd_messages::MessageType;
use fd_os::regex::{PosixRegex, RegexOptions};
use fd_session::texts;
use fd_transport::{IDLE_LIMIT, Received};

use super::{Conversation, Flow};
use crate::program::{self, NotRun};
use crate::texts::NO_PROGRAM;

impl Conversation<'_> {
    /// Reads the lines up to a signal. A bad FileSet gets no reply: the command loop just ends.
    pub(super) fn read_fileset(&mut self) -> Flow {
        if self.fileset.is_some() {
            return Flow::End;
        }
        let mut parser = Parser::new(&PosixCompiler);
        if self.daemon.config().file_daemon.plugin_directory.is_none() {
            parser = parser.without_plugins();
        }
        loop {
            let line = match self.channel.recv(IDLE_LIMIT) {
                Ok(Received::Data(line)) => line.to_vec(),
                Ok(Received::Empty) => Vec::new(),
                Ok(Received::Signal(_)) => break,
                Err(error) => {
                    tracing::debug!(%error, "the FileSet broke off");
                    return Flow::End;
                }
            };
            let done = match parser.line(&line) {
                Ok(Reaction::Accepted) => Ok(()),
                Ok(Reaction::UnknownLetters(letters)) => {
                    for letter in letters {
                        self.say(MessageType::Error, &fileset_texts::unknown_letter(letter));
                    }
                    Ok(())
                }
                Ok(Reaction::List(request)) => self.read_list(&mut parser, &request),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                self.say(MessageType::Fatal, &error.text());
            }
        }
        match parser.finish() {
            Ok(fileset) => {
                self.fileset = Some(Arc::new(fileset));
                self.reply(texts::OK_INCLUDE);
                Flow::GoOn
            }
            Err(error) => {
                tracing::debug!(%error, "a FileSet was refused");
                Flow::End
            }
        }
    }

    fn read_list(&mut self, parser: &mut Parser<'_>, request: &ListRequest) -> Result<(), LineError> {
        match request.kind {
            // What is in a list is told to the Director, file name by file name.
            ListKind::File if !self.directory_limits().lets_read(&request.argument) => {
                let error = fileset_texts::NOT_IN_ALLOWED_PATHS.to_owned();
                parser.list_failed(ListFailure::CannotStart { error })
            }
            ListKind::File => match File::open(OsStr::from_bytes(&request.argument)) {
                Ok(file) => {
                    feed(parser, file)?;
                    parser.list_end()
                }
                Err(error) => parser.list_failed(ListFailure::CannotStart { error: program::system_words(&error) }),
            },
            ListKind::Program => self.run_list_program(parser, request),
        }
    }

    fn run_list_program(&mut self, parser: &mut Parser<'_>, request: &ListRequest) -> Result<(), LineError> {
        let command = self.expanded(&request.argument);
        let cannot_start = |error: &str| ListFailure::CannotStart { error: error.to_owned() };
        let started = match program::prepare(&command, &self.resource.allowed_script_directories) {
            Ok(mut process) => process.stdin(Stdio::null()).stdout(Stdio::piped()).spawn(),
            Err(NotRun::Exec(error)) => Err(error),
            Err(NotRun::Refused(refused)) => return parser.list_failed(cannot_start(&refused.to_string())),
            Err(NotRun::Empty) => return parser.list_failed(cannot_start(NO_PROGRAM)),
        };
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                let status = program::exec_status(&error);
                let error = program::system_words(&error);
                return parser.list_failed(ListFailure::Status { status, error });
            }
        };
        if let Some(output) = child.stdout.take() {
            feed(parser, output)?;
        }
        match child.wait() {
            Ok(status) if status.success() => parser.list_end(),
            Ok(status) => {
                let number = status.code().or_else(|| status.signal()).unwrap_or(-1);
                parser.list_failed(ListFailure::Status { status: number, error: program::describe(status) })
            }
            Err(error) => parser.list_failed(ListFailure::Status { status: -1, error: program::system_words(&error) }),
        }
    }
}

/// Gives the parser all of a list. Only the caller knows whether that is a good end.
fn feed(parser: &mut Parser<'_>, mut list: impl Read) -> Result<(), LineError> {
    let mut buffer = [0; 4096];
    loop {
        match list.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => parser.list_data(buffer.get(..n).unwrap_or(&[]))?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return parser.list_failed(ListFailure::CannotStart { error: program::system_words(&error) });
            }
        }
    }
}

/// The C library's regular expressions, as the FileSet wants them.
struct PosixCompiler;

struct Compiled(PosixRegex);

impl RegexCompiler for PosixCompiler {
    fn compile(&self, pattern: &[u8], ignore_case: bool) -> Result<Box<dyn Regex>, String> {
        let options = RegexOptions { ignore_case, newline: false };
        let compiled = PosixRegex::new(pattern, options).map_err(|error| error.to_string())?;
        Ok(Box::new(Compiled(compiled)))
    }
}

impl Regex for Compiled {
    fn is_match(&self, text: &CStr) -> bool {
        self.0.is_match_c(text)
    }
}
