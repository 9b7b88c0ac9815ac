//! The machine that reads a FileSet line by line (reference 03 §1.3–1.6).

use crate::fileset::{Block, FileSet};
use crate::matching::patterns::PatternSet;
use crate::matching::regex::RegexCompiler;
use crate::parse::draft::{COST_OF_A_NAME, Draft, Sort, State};
use crate::parse::line::Line;
use crate::parse::problem::{BadFileSet, LineError, ListFailure, ListRequest};

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
    draft: Draft,
}

/// Memory of a line beside its own bytes.
fn cost_of(line: &Line<'_>, draft: &Draft) -> usize {
    match line.code {
        b'I' | b'E' => size_of::<Block>(),
        b'W' => draft.cost_of_options() + COST_OF_A_NAME + PatternSet::memory(line.argument),
        // The options in force have copies: those of the Include, and those of the block.
        b'X' => draft.cost_of_options() + 3 * COST_OF_A_NAME + 2 * line.argument.len(),
        // The compiled form of an expression is counted when its size is known.
        b'O' | b'D' | b'T' | b'R' | b'B' | b'G' => draft.cost_of_options() + COST_OF_A_NAME,
        _ => COST_OF_A_NAME,
    }
}

/// The caller's next step after a line.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "a line may ask for a list"]
pub enum Reaction {
    /// Nothing.
    Accepted,
    /// Report [`crate::texts::unknown_letter`] for each of these, as an error. The job continues.
    UnknownLetters(Vec<u8>),
    /// Read a list and feed it to the parser: [`Parser::list_data`], then [`Parser::list_end`] or
    /// [`Parser::list_failed`].
    List(ListRequest),
}

impl<'c> Parser<'c> {
    /// A parser before the first line.
    pub fn new(compiler: &'c dyn RegexCompiler) -> Self {
        Self { compiler, draft: Draft::default() }
    }

    /// Without a Plugin Directory each plugin command is refused; the FileSet is good without it.
    #[must_use]
    pub fn without_plugins(mut self) -> Self {
        self.draft.plugins_refused = true;
        self
    }

    /// What the lines have come to so far.
    pub fn draft(&mut self) -> &mut Draft {
        &mut self.draft
    }

    /// Reads one packet's payload, with or without its final newline.
    ///
    /// After an error further lines are accepted and dropped. A list that was requested and not
    /// ended counts as ended.
    pub fn line(&mut self, payload: &[u8]) -> Result<Reaction, LineError> {
        let draft = &mut self.draft;
        draft.drop_list();
        if matches!(draft.state, State::Error { .. }) {
            return Ok(Reaction::Accepted);
        }
        let line = Line::parse(payload);
        // Names are counted where they are added, because lists add names too.
        if !matches!(line.code, b'F' | b'P') {
            draft.charge(payload.len() + cost_of(&line, draft))?;
        }
        match line.code {
            b'I' | b'E' => {
                draft.open_block(line.code == b'E');
                if line.sub != b' ' {
                    draft.fail_silently();
                }
            }
            b'N' => draft.state = State::None,
            b'O' => {
                let unknown = draft.letters(line.argument);
                return Ok(if unknown.is_empty() { Reaction::Accepted } else { Reaction::UnknownLetters(unknown) });
            }
            b'R' => self.regex(&line)?,
            b'W' => match Sort::of_wild(line.sub) {
                Some(sort) => draft.wild(line.argument, sort),
                None => self.refuse_sub_code(),
            },
            b'X' => self.drive_or_fs_type(&line),
            b'B' => draft.option(|options| options.base.push(line.argument.to_vec())),
            b'G' => draft.option(|options| options.plugin = Some(line.argument.to_vec())),
            b'D' | b'T' => draft.option(|_| ()),
            b'Z' => draft.in_block(|block| block.ignore_dir = Some(line.argument.to_vec())),
            b'F' | b'P' => return self.name_or_list(&line),
            _ => return draft.fail(LineError::InvalidCommand { argument: line.argument.to_vec() }),
        }
        Ok(Reaction::Accepted)
    }

    /// Takes bytes of the list that the last line requested.
    pub fn list_data(&mut self, data: &[u8]) -> Result<(), LineError> {
        self.draft.list_data(data)
    }

    /// The list is complete, and the program, if it was one, succeeded.
    pub fn list_end(&mut self) -> Result<(), LineError> {
        self.draft.list_end()
    }

    /// The list could not be read, or the program failed. Returns the error to report.
    pub fn list_failed(&mut self, failure: ListFailure) -> Result<(), LineError> {
        self.draft.list_failed(failure)
    }

    /// The end of the lines.
    pub fn finish(self) -> Result<FileSet, BadFileSet> {
        self.into_draft().map(Draft::complete)
    }

    /// The end of the lines; plugins may go on.
    pub fn into_draft(self) -> Result<Draft, BadFileSet> {
        match self.draft.state {
            State::Error { told: true } => Err(BadFileSet::Told),
            State::Error { told: false } => Err(BadFileSet::Silent),
            State::None | State::Options | State::Include => Ok(self.draft),
        }
    }

    fn refuse_sub_code(&mut self) {
        // An Options block is opened all the same.
        self.draft.option(|_| ());
        self.draft.fail_silently();
    }

    /// The expression is compiled first: a bad one is reported even with an unknown sub-code.
    fn regex(&mut self, line: &Line<'_>) -> Result<(), LineError> {
        let (compiler, sort) = (self.compiler, Sort::of_regex(line.sub));
        self.draft.regex(line.argument, sort, |ignore_case| compiler.compile(line.argument, ignore_case))?;
        if sort.is_none() {
            self.draft.fail_silently();
        }
        Ok(())
    }

    fn drive_or_fs_type(&mut self, line: &Line<'_>) {
        match line.sub {
            b' ' => self.draft.option(|options| options.fs_types.push(line.argument.to_vec())),
            b'D' => self.draft.option(|options| options.drive_types.push(line.argument.to_vec())),
            _ => self.refuse_sub_code(),
        }
    }

    fn name_or_list(&mut self, line: &Line<'_>) -> Result<Reaction, LineError> {
        self.draft.in_block(|_| ());
        if self.draft.state != State::Include {
            return Ok(Reaction::Accepted);
        }
        let list = self.draft.name_or_list(line.argument, line.code == b'P')?;
        Ok(list.map_or(Reaction::Accepted, Reaction::List))
    }
}
