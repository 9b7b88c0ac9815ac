//! A FileSet that is still being made: by the Director's lines, and then by plugins until its files
//! are looked for (reference 07 §3.5).

use std::collections::VecDeque;

use crate::effective::EffectiveOptions;
use crate::fileset::{Block, FileSet};
use crate::matching::candidates::Candidates;
use crate::matching::patterns::PatternSet;
use crate::matching::regex::Regex;
use crate::parse::letters;
use crate::parse::lists::NameSplitter;
use crate::parse::options::{Options, PathPatterns};
use crate::parse::problem::{LineError, ListFailure, ListKind, ListRequest, MOST};

/// Memory of a name or a pattern beside its own bytes.
pub(crate) const COST_OF_A_NAME: usize = 64;

/// Memory of an empty Options block and of what comes of it.
const COST_OF_OPTIONS: usize = size_of::<Options>() + size_of::<EffectiveOptions>();

/// The blocks so far, and which of them the next line or plugin changes.
#[derive(Default)]
pub struct Draft {
    blocks: Vec<Block>,
    /// The blocks' order.
    order: Vec<usize>,
    current: Option<usize>,
    pub(crate) state: State,
    pub(crate) plugins_refused: bool,
    list: Option<(ListRequest, NameSplitter)>,
    /// Plugin commands of which plugins are still to be told, before they are in their blocks.
    waiting: VecDeque<NewCommand>,
    plugins: Vec<Plugin>,
    /// Approximate memory, in bytes.
    cost: usize,
}

/// A plugin command that is still to come into its block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewCommand {
    block: usize,
    /// The command.
    pub command: Vec<u8>,
}

/// What a plugin has of the FileSet.
struct Plugin {
    name: Vec<u8>,
    /// The Include that it adds names to.
    include: Option<usize>,
    /// The Exclude block of its own.
    exclude: Option<usize>,
}

/// What the next line continues.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum State {
    /// Between blocks.
    #[default]
    None,
    /// In an Options block.
    Options,
    /// In a list of names.
    Include,
    /// Everything that follows is dropped. Whether a message has said why.
    Error { told: bool },
}

/// A kind of name that a plugin adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addition {
    /// A name to be saved.
    Include,
    /// A name to be left out.
    Exclude,
    /// A plugin command.
    Command,
}

/// What has become of an addition.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use = "the name may stand for a list"]
pub enum Added {
    /// It is in the FileSet.
    Done,
    /// There is no block that it could be added to.
    NoBlock,
    /// Read a list and feed it to the draft: [`Draft::list_data`], then [`Draft::list_end`] or
    /// [`Draft::list_failed`].
    List(ListRequest),
}

/// A sort of patterns: for what they count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    Any,
    Directory,
    File,
    BaseName,
}

impl Sort {
    pub(crate) const fn of_wild(code: u8) -> Option<Self> {
        match code {
            b'B' => Some(Self::BaseName),
            other => Self::of_regex(other),
        }
    }

    pub(crate) const fn of_regex(code: u8) -> Option<Self> {
        match code {
            b' ' => Some(Self::Any),
            b'D' => Some(Self::Directory),
            b'F' => Some(Self::File),
            _ => None,
        }
    }
}

/// What the Director's lines say.
impl Draft {
    /// Begins a block, which is the current one from now on.
    pub(crate) fn open_block(&mut self, is_exclude: bool) {
        self.current = Some(self.new_block(is_exclude, false));
    }

    fn new_block(&mut self, is_exclude: bool, first: bool) -> usize {
        let block = self.blocks.len();
        self.blocks.push(Block { is_exclude, ..Block::default() });
        self.order.insert(if first { 0 } else { self.order.len() }, block);
        block
    }

    fn block(&mut self) -> Option<&mut Block> {
        self.current.and_then(|current| self.blocks.get_mut(current))
    }

    /// Changes the current Include or Exclude. Without one the reference crashes; here the line is
    /// refused.
    pub(crate) fn in_block(&mut self, change: impl FnOnce(&mut Block)) {
        match self.block() {
            Some(block) => {
                change(block);
                self.state = State::Include;
            }
            None => self.fail_silently(),
        }
    }

    /// Changes the current Options block, which is a new one unless the line before was of the same
    /// kind.
    pub(crate) fn option<T: Default>(&mut self, change: impl FnOnce(&mut Options) -> T) -> T {
        let opens = self.state != State::Options;
        let Some(block) = self.block() else {
            self.fail_silently();
            return T::default();
        };
        if opens || block.options.is_empty() {
            block.current = block.options.len();
            block.options.push(Options::default());
        }
        let changed = block.options.get_mut(block.current).map(change).unwrap_or_default();
        self.state = State::Options;
        changed
    }

    /// Memory of the Options block that the next option opens; 0 if it goes on with the one before.
    pub(crate) fn cost_of_options(&self) -> usize {
        if self.state == State::Options { 0 } else { COST_OF_OPTIONS }
    }

    /// Reads the letters of an `O` line; returns those that are unknown.
    pub(crate) fn letters(&mut self, text: &[u8]) -> Vec<u8> {
        self.option(|options| letters::read(text, options))
    }

    /// Adds a wild-card.
    pub(crate) fn wild(&mut self, pattern: &[u8], sort: Sort) {
        self.option(|options| {
            let list = match sort {
                Sort::Any => &mut options.wild.any,
                Sort::Directory => &mut options.wild.directory,
                Sort::File => &mut options.wild.file,
                Sort::BaseName => &mut options.wild.base_name,
            };
            list.push(pattern.to_vec());
        });
    }

    /// Adds an expression, compiled by `compile` for the current block's letters. `None` as the
    /// sort: it is compiled only.
    pub(crate) fn regex(
        &mut self,
        pattern: &[u8],
        sort: Option<Sort>,
        compile: impl FnOnce(bool) -> Result<Box<dyn Regex>, String>,
    ) -> Result<(), LineError> {
        let added = self.option(|options| {
            let ignore_case = options.wildcard_flags().fold_case;
            let patterns = match sort {
                Some(Sort::Any) => Some(&mut options.any),
                Some(Sort::Directory) => Some(&mut options.directory),
                Some(Sort::File) => Some(&mut options.file),
                Some(Sort::BaseName) | None => None,
            };
            Some(compile(ignore_case).map(|regex| {
                let memory = regex.memory() + Candidates::memory(pattern);
                let add = |patterns: &mut PathPatterns| patterns.regex.push(regex, pattern, ignore_case);
                patterns.map(add);
                memory
            }))
        });
        match added {
            Some(Err(error)) => self.fail(LineError::BadRegex { pattern: pattern.to_vec(), error }),
            Some(Ok(memory)) => self.charge(memory),
            None => Ok(()),
        }
    }

    /// Adds a name or a plugin command to the current block, or asks for the list that it stands
    /// for.
    pub(crate) fn name_or_list(&mut self, name: &[u8], plugins: bool) -> Result<Option<ListRequest>, LineError> {
        let (kind, argument) = match name {
            [b'<', file @ ..] => (ListKind::File, file),
            [b'|', program @ ..] => (ListKind::Program, program),
            name => return self.add_name(name, plugins).map(|()| None),
        };
        let block = self.current;
        let request = ListRequest { kind, argument: argument.to_vec(), plugins, block, by_plugin: false };
        self.list = Some((request.clone(), NameSplitter::new()));
        Ok(Some(request))
    }

    fn add_name(&mut self, name: &[u8], plugins: bool) -> Result<(), LineError> {
        let cost = name.len() + COST_OF_A_NAME;
        // Names of an Exclude are kept twice: as they are, and as wild-cards.
        let is_exclude = self.block().is_some_and(|block| block.is_exclude);
        self.charge(if is_exclude { 2 * cost + PatternSet::memory(name) } else { cost })?;
        let refused = self.plugins_refused;
        let Some(current) = self.current else { return Ok(()) };
        if !plugins {
            self.in_block(|block| block.names.push(name.to_vec()));
        } else if refused {
            // Reported for each command; the job fails when it reaches the Storage Daemon.
            return Err(LineError::NoPluginDirectory { command: name.to_vec() });
        } else {
            self.state = State::Include;
            self.waiting.push_back(NewCommand { block: current, command: name.to_vec() });
        }
        Ok(())
    }

    /// Forgets a list that was asked for.
    pub(crate) fn drop_list(&mut self) {
        self.list = None;
    }

    pub(crate) fn fail<T>(&mut self, error: LineError) -> Result<T, LineError> {
        self.state = State::Error { told: true };
        Err(error)
    }

    pub(crate) fn fail_silently(&mut self) {
        self.state = State::Error { told: false };
    }

    /// Counts the memory of a line or a name.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), LineError> {
        self.cost = self.cost.saturating_add(bytes);
        if self.cost <= MOST {
            return Ok(());
        }
        self.blocks.clear();
        self.order.clear();
        self.fail(LineError::TooLarge)
    }
}

/// Lists of names.
impl Draft {
    /// Takes bytes of the list that was asked for last.
    ///
    /// # Errors
    /// What the names in it fail with.
    pub fn list_data(&mut self, data: &[u8]) -> Result<(), LineError> {
        self.feed_list(|splitter, name| splitter.push(data, name))
    }

    /// The list is complete, and the program, if it was one, succeeded.
    ///
    /// # Errors
    /// What the last name fails with.
    pub fn list_end(&mut self) -> Result<(), LineError> {
        let fed = self.feed_list(|splitter, name| splitter.finish(name));
        self.list = None;
        fed
    }

    /// The list could not be read, or the program failed.
    ///
    /// # Errors
    /// The error to report.
    pub fn list_failed(&mut self, failure: ListFailure) -> Result<(), LineError> {
        match self.list.take() {
            Some((request, _)) if request.by_plugin => Err(LineError::List { request, failure }),
            Some((request, _)) => self.fail(LineError::List { request, failure }),
            None => Ok(()),
        }
    }

    /// Runs `feed` on the current list and adds the names that it finds, up to the first error.
    fn feed_list(&mut self, feed: impl FnOnce(&mut NameSplitter, &mut dyn FnMut(&[u8]))) -> Result<(), LineError> {
        let Some((request, mut splitter)) = self.list.take() else { return Ok(()) };
        let before = std::mem::replace(&mut self.current, request.block);
        let mut result = Ok(());
        feed(&mut splitter, &mut |name| {
            if result.is_ok() && !(name.is_empty() && request.kind == ListKind::Program) {
                result = self.add_name(name, request.plugins);
            }
        });
        self.current = before;
        if result.is_ok() {
            self.list = Some((request, splitter));
        }
        result
    }
}

/// What plugins change.
impl Draft {
    /// Adds a name for a plugin: to the Exclude block of its own, or to the Include that it has
    /// made, or that was the current one when it first added a name.
    ///
    /// # Errors
    /// It can't be added; the FileSet stays usable.
    pub fn add(&mut self, plugin: &[u8], addition: Addition, name: &[u8]) -> Result<Added, LineError> {
        let Some(current) = self.current else { return Ok(Added::NoBlock) };
        let place = self.plugin(plugin)?;
        let known = self.plugins.get(place).and_then(|plugin| match addition {
            Addition::Exclude => plugin.exclude,
            Addition::Include | Addition::Command => plugin.include,
        });
        let block = match (known, addition) {
            (Some(block), _) => block,
            (None, Addition::Exclude) => {
                self.usable(Self::charge, size_of::<Block>())?;
                self.new_block(true, false)
            }
            (None, Addition::Include | Addition::Command) => current,
        };
        if let Some(plugin) = self.plugins.get_mut(place) {
            let own = if addition == Addition::Exclude { &mut plugin.exclude } else { &mut plugin.include };
            *own = Some(block);
        }
        self.current = Some(block);
        let added = self.usable(|draft, name| draft.name_or_list(name, addition == Addition::Command), name);
        self.current = Some(current);
        if let Some((request, _)) = &mut self.list {
            request.by_plugin = true;
        }
        Ok(added?.map_or(Added::Done, |request| Added::List(ListRequest { by_plugin: true, ..request })))
    }

    /// Adds letters of options to the current block; returns those that are unknown. `None`: there
    /// is no block.
    pub fn add_options(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        self.current?;
        Some(self.letters(text))
    }

    /// Adds a wild-card of this sort: a space, `D`, `F` or `B`. `false`: there is no block, or no
    /// such sort.
    ///
    /// # Errors
    /// The FileSet is too large.
    pub fn add_wild(&mut self, pattern: &[u8], sort: u8) -> Result<bool, LineError> {
        let (Some(_), Some(sort)) = (self.current, Sort::of_wild(sort)) else { return Ok(false) };
        let cost = self.cost_of_options() + pattern.len() + COST_OF_A_NAME + PatternSet::memory(pattern);
        self.usable(Self::charge, cost)?;
        self.wild(pattern, sort);
        Ok(true)
    }

    /// Adds an expression of this sort: a space, `D` or `F`. `compile` gets whether case counts
    /// not. `false`: there is no block, or no such sort.
    ///
    /// # Errors
    /// It does not compile.
    pub fn add_regex(
        &mut self,
        pattern: &[u8],
        sort: u8,
        compile: impl FnOnce(bool) -> Result<Box<dyn Regex>, String>,
    ) -> Result<bool, LineError> {
        let (Some(_), Some(sort)) = (self.current, Sort::of_regex(sort)) else { return Ok(false) };
        self.usable(Self::charge, self.cost_of_options())?;
        self.usable(|draft, ()| draft.regex(pattern, Some(sort), compile), ())?;
        Ok(true)
    }

    /// Begins an Options block in the current block, before the others: it decides first. `false`:
    /// there is no block.
    ///
    /// # Errors
    /// The FileSet is too large.
    pub fn new_options(&mut self) -> Result<bool, LineError> {
        self.usable(Self::charge, COST_OF_OPTIONS)?;
        let Some(block) = self.block() else { return Ok(false) };
        block.options.insert(0, Options::default());
        block.current = 0;
        self.state = State::Options;
        Ok(true)
    }

    /// Begins an Include for a plugin's names, behind the others or before them; the latter has an
    /// Options block. It is the current one from now on.
    ///
    /// # Errors
    /// The FileSet is too large.
    pub fn new_include(&mut self, plugin: &[u8], first: bool) -> Result<(), LineError> {
        self.usable(Self::charge, size_of::<Block>())?;
        let place = self.plugin(plugin)?;
        let block = self.new_block(false, first);
        self.current = Some(block);
        self.state = State::None;
        if let Some(plugin) = self.plugins.get_mut(place) {
            plugin.include = Some(block);
        }
        if first {
            self.new_options()?;
        }
        Ok(())
    }

    /// The place of what this plugin has.
    fn plugin(&mut self, name: &[u8]) -> Result<usize, LineError> {
        if let Some(place) = self.plugins.iter().position(|plugin| plugin.name == name) {
            return Ok(place);
        }
        self.usable(Self::charge, name.len() + size_of::<Plugin>())?;
        self.plugins.push(Plugin { name: name.to_vec(), include: None, exclude: None });
        Ok(self.plugins.len() - 1)
    }

    /// What a plugin does wrong makes no FileSet unusable, unless that is too large.
    fn usable<A, T>(
        &mut self,
        change: impl FnOnce(&mut Self, A) -> Result<T, LineError>,
        argument: A,
    ) -> Result<T, LineError> {
        let state = self.state;
        let changed = change(self, argument);
        if changed.is_err() && self.cost <= MOST {
            self.state = state;
        }
        changed
    }

    /// Takes the first plugin command that waits. Plugins are told of it, and may add others, which
    /// come before it; then it is [accepted](Self::accept).
    pub fn new_command(&mut self) -> Option<NewCommand> {
        self.waiting.pop_front()
    }

    /// Puts a plugin command in its block.
    pub fn accept(&mut self, new: NewCommand) {
        if let Some(block) = self.blocks.get_mut(new.block) {
            block.plugins.push(new.command);
        }
    }
}

/// What has become of it.
impl Draft {
    /// A FileSet with the options of its Includes for their names, and their plugin commands.
    pub fn outline(&self) -> FileSet {
        let includes = self.order.iter().filter_map(|block| self.blocks.get(*block)).filter(|block| !block.is_exclude);
        FileSet::outline(includes)
    }

    /// The complete FileSet.
    pub fn complete(mut self) -> FileSet {
        while let Some(new) = self.new_command() {
            self.accept(new);
        }
        let mut blocks: Vec<Option<Block>> = self.blocks.into_iter().map(Some).collect();
        let in_order = self.order.into_iter().filter_map(|block| blocks.get_mut(block)?.take());
        FileSet::from_blocks(in_order.collect())
    }
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Draft").field("blocks", &self.blocks.len()).field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
