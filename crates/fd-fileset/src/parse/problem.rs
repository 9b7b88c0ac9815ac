//! What a line of a FileSet asks for, and how it fails.

use crate::texts;

/// The most memory that a FileSet may take, in bytes: nearly three million names. The stock daemon
/// has no bound.
pub(crate) const MOST: usize = 256 << 20;

/// A list of names outside the FileSet, on this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListRequest {
    /// File or program.
    pub kind: ListKind,
    /// Path of the file; or the command, to be expanded by [`fd_messages::expand_job_codes`] and
    /// split by [`fd_messages::split_arguments`].
    pub argument: Vec<u8>,
    /// The names are plugin commands.
    pub plugins: bool,
    /// The block that they belong to.
    pub(crate) block: Option<usize>,
    /// A plugin has asked for it: the FileSet stays usable if it can't be read.
    pub(crate) by_plugin: bool,
}

/// Where a list comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListKind {
    /// `<file`: its lines. Empty ones are names, too.
    File,
    /// `|program`: lines of its standard output. Empty ones are dropped.
    Program,
}

/// Why a list could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListFailure {
    /// The file cannot be opened, or the program is not allowed or cannot be started.
    CannotStart {
        /// The system's error text, or that of [`crate::ProgramNotAllowed`].
        error: String,
    },
    /// The program ended with another status than 0. Names it printed stay, but the job ends
    /// anyway.
    Status {
        /// The status, as the text shows it.
        status: i32,
        /// What it means.
        error: String,
    },
}

/// A line that fails the job. [`LineError::text`] is the fatal message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LineError {
    /// The line is unknown.
    #[error("invalid FileSet line with argument \"{}\"", argument.escape_ascii())]
    InvalidCommand {
        /// The line without its code.
        argument: Vec<u8>,
    },
    /// A regular expression does not compile.
    #[error("FileSet: regular expression \"{}\" does not compile: {error}", pattern.escape_ascii())]
    BadRegex {
        /// The expression.
        pattern: Vec<u8>,
        /// The C library's error text.
        error: String,
    },
    /// A list file or program.
    #[error("FileSet: {:?} \"{}\": {failure:?}", request.kind, request.argument.escape_ascii())]
    List {
        /// The request.
        request: ListRequest,
        /// The failure.
        failure: ListFailure,
    },
    /// The FileSet takes more memory than it may.
    #[error("FileSet is larger than {} bytes", MOST)]
    TooLarge,
    /// A plugin command, but no Plugin Directory is configured.
    #[error("FileSet: plugin command \"{}\" without a Plugin Directory", command.escape_ascii())]
    NoPluginDirectory {
        /// The command.
        command: Vec<u8>,
    },
}

impl LineError {
    /// The text of the fatal message.
    pub fn text(&self) -> Vec<u8> {
        match self {
            Self::InvalidCommand { argument } => texts::invalid_command(argument),
            Self::TooLarge => texts::too_large(MOST),
            Self::BadRegex { pattern, error } => texts::bad_regex(pattern, error),
            Self::NoPluginDirectory { command } => texts::no_plugin_directory(command),
            Self::List { request, failure } => match (request.kind, failure) {
                (_, ListFailure::Status { status, error }) => texts::program_failed(&request.argument, *status, error),
                (ListKind::File, ListFailure::CannotStart { error }) => {
                    texts::cannot_open_list(&request.argument, error)
                }
                (ListKind::Program, ListFailure::CannotStart { error }) => texts::cannot_run(&request.argument, error),
            },
        }
    }
}

/// The FileSet is unusable: no `2000 OK include` is sent (reference 03 §1.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadFileSet {
    /// A fatal message was returned; the job ends with status `f`.
    #[error("the FileSet was refused with a message")]
    Told,
    /// There was no message; the job ends with status `C`.
    #[error("the FileSet was refused silently: a line with an unknown sub-code, or outside any block")]
    Silent,
}
