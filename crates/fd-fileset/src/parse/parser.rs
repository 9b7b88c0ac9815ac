//! The machine that reads a FileSet line by line (reference 03 §1.3–1.6).

use crate::fileset::{Block, FileSet};
use crate::matching::regex::RegexCompiler;
use crate::parse::letters;
use crate::parse::line::Line;
use crate::parse::lists::NameSplitter;
use crate::parse::options::{Options, PathPatterns};
use crate::texts;

/// Reads the lines between the `fileset` command and the signal that ends them.
///
/// ```
/// # use fd_fileset::{Parser, Regex, RegexCompiler};
/// # struct NoRegex;
/// # impl RegexCompiler for NoRegex {
/// #     fn compile(&self, _: &[u8], _: bool) -> Result<Box<dyn Regex>, String> {
/// #         Err("none".to_owned())
/// #     }
/// # }
/// let mut parser = Parser::new(&NoRegex);
/// for line in [b"I\n".as_slice(), b"O MZ6\n", b"N\n", b"F /home", b"N\n", b"N\n"] {
///     parser.line(line)?;
/// }
/// let fileset = parser.finish()?;
/// assert_eq!(fileset.includes()[0].names(), [b"/home"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Parser<'c> {
    compiler: &'c dyn RegexCompiler,
    plugins_allowed: bool,
    state: State,
    blocks: Vec<Block>,
    list: Option<(ListRequest, NameSplitter)>,
    /// Approximate memory of the lines so far, in bytes.
    cost: usize,
}

/// The most memory that a FileSet may take, in bytes: nearly three million names. The stock daemon
/// has no bound.
const MOST: usize = 256 << 20;
/// Memory of a name or a pattern beside its own bytes.
const COST_OF_A_NAME: usize = 64;
/// Memory of a line beside its own bytes.
const fn cost_of(code: u8) -> usize {
    match code {
        b'I' | b'E' => size_of::<Block>(),
        // It may open an Options block.
        b'O' | b'D' | b'T' => size_of::<Options>(),
        // The compiled form is counted when its size is known.
        b'R' => size_of::<Options>() + COST_OF_A_NAME,
        _ => COST_OF_A_NAME,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Between blocks.
    None,
    /// In an Options block.
    Options,
    /// In a list of names.
    Include,
    /// Everything that follows is dropped. Whether a message has said why.
    Error { told: bool },
}

/// The caller's next step after a line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a line may ask for a list"]
pub enum Reaction {
    /// Nothing.
    Accepted,
    /// Report [`texts::unknown_letter`] for each of these, as an error. The job continues.
    UnknownLetters(Vec<u8>),
    /// Read a list and feed it to the parser: [`Parser::list_data`], then [`Parser::list_end`] or
    /// [`Parser::list_failed`].
    List(ListRequest),
}

/// A list of names outside the FileSet, on this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListRequest {
    /// File or program.
    pub kind: ListKind,
    /// Path of the file; or the command, to be expanded by [`fd_messages::expand_job_codes`] and
    /// split by [`fd_messages::split_arguments`].
    pub argument: Vec<u8>,
    /// The names are plugin commands.
    plugins: bool,
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
    #[error("FileSet is larger than {MOST} bytes")]
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

impl<'c> Parser<'c> {
    /// A parser before the first line.
    pub fn new(compiler: &'c dyn RegexCompiler) -> Self {
        Self { compiler, plugins_allowed: true, state: State::None, blocks: Vec::new(), list: None, cost: 0 }
    }

    /// Without a Plugin Directory each plugin command is refused; the FileSet is good without it.
    #[must_use]
    pub fn without_plugins(self) -> Self {
        Self { plugins_allowed: false, ..self }
    }

    /// Reads one packet's payload, with or without its final newline.
    ///
    /// After an error further lines are accepted and dropped. A list that was requested and not
    /// ended counts as ended.
    pub fn line(&mut self, payload: &[u8]) -> Result<Reaction, LineError> {
        self.list = None;
        if matches!(self.state, State::Error { .. }) {
            return Ok(Reaction::Accepted);
        }
        let line = Line::parse(payload);
        // Names are counted where they are added, because lists add names too.
        if !matches!(line.code, b'F' | b'P') {
            self.charge(payload.len() + cost_of(line.code))?;
        }
        match line.code {
            b'I' | b'E' => self.open_block(&line),
            b'N' => self.state = State::None,
            b'O' => return Ok(self.letters(line.argument)),
            b'R' => return self.regex(&line),
            b'W' => self.wild(&line),
            b'X' => self.drive_or_fs_type(&line),
            b'B' => self.option(|options| options.base.push(line.argument.to_vec())),
            b'G' => self.option(|options| options.plugin = Some(line.argument.to_vec())),
            b'D' | b'T' => self.option(|_| ()),
            b'Z' => self.in_block(|block| block.ignore_dir = Some(line.argument.to_vec())),
            b'F' | b'P' => return self.name_or_list(&line),
            _ => return self.fail(LineError::InvalidCommand { argument: line.argument.to_vec() }),
        }
        Ok(Reaction::Accepted)
    }

    /// Takes bytes of the list that the last line requested.
    pub fn list_data(&mut self, data: &[u8]) -> Result<(), LineError> {
        self.feed_list(|splitter, name| splitter.push(data, name))
    }

    /// The list is complete, and the program, if it was one, succeeded.
    pub fn list_end(&mut self) -> Result<(), LineError> {
        let fed = self.feed_list(|splitter, name| splitter.finish(name));
        self.list = None;
        fed
    }

    /// The list could not be read, or the program failed. Returns the error to report.
    pub fn list_failed(&mut self, failure: ListFailure) -> Result<(), LineError> {
        match self.list.take() {
            Some((request, _)) => self.fail(LineError::List { request, failure }),
            None => Ok(()),
        }
    }

    /// The end of the lines.
    pub fn finish(self) -> Result<FileSet, BadFileSet> {
        match self.state {
            State::Error { told: true } => Err(BadFileSet::Told),
            State::Error { told: false } => Err(BadFileSet::Silent),
            State::None | State::Options | State::Include => Ok(FileSet::from_blocks(self.blocks)),
        }
    }

    fn fail<T>(&mut self, error: LineError) -> Result<T, LineError> {
        self.state = State::Error { told: true };
        Err(error)
    }

    /// Counts the memory of a line or a name.
    fn charge(&mut self, bytes: usize) -> Result<(), LineError> {
        self.cost = self.cost.saturating_add(bytes);
        if self.cost <= MOST {
            return Ok(());
        }
        self.blocks.clear();
        self.fail(LineError::TooLarge)
    }

    fn fail_silently(&mut self) {
        self.state = State::Error { told: false };
    }

    fn open_block(&mut self, line: &Line<'_>) {
        self.blocks.push(Block { is_exclude: line.code == b'E', ..Block::default() });
        if line.sub != b' ' {
            self.fail_silently();
        }
    }

    /// Changes the current Include or Exclude. Without one the reference crashes; here the line is
    /// refused.
    fn in_block(&mut self, change: impl FnOnce(&mut Block)) {
        match self.blocks.last_mut() {
            Some(block) => {
                change(block);
                self.state = State::Include;
            }
            None => self.fail_silently(),
        }
    }

    /// Changes the current Options block, which is a new one unless the line before was of the same
    /// kind.
    fn option<T: Default>(&mut self, change: impl FnOnce(&mut Options) -> T) -> T {
        let opens = self.state != State::Options;
        let Some(block) = self.blocks.last_mut() else {
            self.fail_silently();
            return T::default();
        };
        if opens || block.options.is_empty() {
            block.options.push(Options::default());
        }
        self.state = State::Options;
        block.options.last_mut().map(change).unwrap_or_default()
    }

    fn letters(&mut self, text: &[u8]) -> Reaction {
        let unknown = self.option(|options| letters::read(text, options));
        if unknown.is_empty() { Reaction::Accepted } else { Reaction::UnknownLetters(unknown) }
    }

    /// The expression is compiled first: a bad one is reported even with an unknown sub-code.
    fn regex(&mut self, line: &Line<'_>) -> Result<Reaction, LineError> {
        let compiler = self.compiler;
        let added = self.option(|options| {
            let ignore_case = options.wildcard_flags().fold_case;
            let regex = compiler.compile(line.argument, ignore_case);
            let patterns = match line.sub {
                b' ' => Some(&mut options.any),
                b'D' => Some(&mut options.directory),
                b'F' => Some(&mut options.file),
                _ => None,
            };
            Some(regex.map(|regex| {
                let memory = regex.memory();
                let add = |patterns: &mut PathPatterns| patterns.regex.push(regex, line.argument, ignore_case);
                (memory, patterns.map(add).is_some())
            }))
        });
        match added {
            Some(Err(error)) => return self.fail(LineError::BadRegex { pattern: line.argument.to_vec(), error }),
            Some(Ok((memory, added))) => {
                if !added {
                    self.fail_silently();
                }
                self.charge(memory)?;
            }
            None => {}
        }
        Ok(Reaction::Accepted)
    }

    fn wild(&mut self, line: &Line<'_>) {
        self.option_list(line, |options, sub| match sub {
            b' ' => Some(&mut options.wild.any),
            b'D' => Some(&mut options.wild.directory),
            b'F' => Some(&mut options.wild.file),
            b'B' => Some(&mut options.wild.base_name),
            _ => None,
        });
    }

    fn drive_or_fs_type(&mut self, line: &Line<'_>) {
        self.option_list(line, |options, sub| match sub {
            b' ' => Some(&mut options.fs_types),
            b'D' => Some(&mut options.drive_types),
            _ => None,
        });
    }

    /// Adds the argument to the list that the sub-code chooses.
    fn option_list(&mut self, line: &Line<'_>, choose: impl FnOnce(&mut Options, u8) -> Option<&mut Vec<Vec<u8>>>) {
        let known =
            self.option(|options| choose(options, line.sub).map(|list| list.push(line.argument.to_vec())).is_some());
        if !known {
            self.fail_silently();
        }
    }

    fn name_or_list(&mut self, line: &Line<'_>) -> Result<Reaction, LineError> {
        let plugins = line.code == b'P';
        self.in_block(|_| ());
        let (kind, argument) = match line.argument {
            [b'<', file @ ..] => (ListKind::File, file),
            [b'|', program @ ..] => (ListKind::Program, program),
            name => {
                self.add_name(name, plugins)?;
                return Ok(Reaction::Accepted);
            }
        };
        if self.state != State::Include {
            return Ok(Reaction::Accepted);
        }
        let request = ListRequest { kind, argument: argument.to_vec(), plugins };
        self.list = Some((request.clone(), NameSplitter::new()));
        Ok(Reaction::List(request))
    }

    fn add_name(&mut self, name: &[u8], plugins: bool) -> Result<(), LineError> {
        self.charge(name.len() + COST_OF_A_NAME)?;
        let Some(block) = self.blocks.last_mut() else { return Ok(()) };
        if !plugins {
            block.names.push(name.to_vec());
        } else if self.plugins_allowed {
            block.plugins.push(name.to_vec());
        } else {
            // Reported for each command; the job fails when it reaches the Storage Daemon.
            return Err(LineError::NoPluginDirectory { command: name.to_vec() });
        }
        Ok(())
    }

    /// Runs `feed` on the current list and adds the names that it finds, up to the first error.
    fn feed_list(&mut self, feed: impl FnOnce(&mut NameSplitter, &mut dyn FnMut(&[u8]))) -> Result<(), LineError> {
        let Some((request, mut splitter)) = self.list.take() else { return Ok(()) };
        let mut result = Ok(());
        feed(&mut splitter, &mut |name| {
            if result.is_ok() && !(name.is_empty() && request.kind == ListKind::Program) {
                result = self.add_name(name, request.plugins);
            }
        });
        if result.is_ok() {
            self.list = Some((request, splitter));
        }
        result
    }
}
