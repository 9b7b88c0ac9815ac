//! What plugins change in the FileSet while it is walked (reference 07 §3.5).
//!
//! A path that is excluded, or a command that is added, counts from then on. An Include that is new
//! is walked when the FileSet is through. Names and options for the Includes that are there can't
//! be added any more: the walk has passed the place where they would stand.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fd_fileset::{Exclude, FileSet};
use fd_messages::MessageType;
use fd_os::lock::Mutex;
use fd_plugins::{Change, FileSetChange, Status};

/// So many changes are accepted in a job.
const MOST: usize = 10_000;

/// And so many bytes of names, patterns and commands.
const MOST_BYTES: usize = 16 << 20;

/// Includes that plugins make during the walk.
pub trait LateIncludes: Send + Sync + std::fmt::Debug {
    /// Makes a change for a plugin. What it causes to be said goes to `say`. An error: there is no
    /// such Include, or it can't be done.
    fn change(&self, plugin: &[u8], change: FileSetChange<'_>, say: &mut dyn FnMut(MessageType, &[u8])) -> Status;
    /// Takes what has come together, if anything has.
    fn take(&self) -> Option<FileSet>;
}

/// See the module.
#[derive(Default)]
pub(crate) struct LateChanges {
    includes: Option<Arc<dyn LateIncludes>>,
    excludes: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: usize,
    bytes: usize,
    names: Vec<Vec<u8>>,
    /// The block of `names`, once it is needed.
    block: Option<Exclude>,
    /// Commands, each with the number of its Include.
    commands: VecDeque<(usize, Vec<u8>)>,
    /// The Include that is walked.
    include: usize,
    /// Nothing is walked any more.
    is_over: bool,
}

impl LateChanges {
    /// Changes of a job, in which these Includes are made.
    pub(crate) fn new(includes: Option<Arc<dyn LateIncludes>>) -> Self {
        Self { includes, ..Self::default() }
    }

    /// Makes a change for a plugin, if that is still possible.
    pub(crate) fn change(
        &self,
        plugin: &[u8],
        change: FileSetChange<'_>,
        say: &mut dyn FnMut(MessageType, &[u8]),
    ) -> Status {
        let mut state = self.state.lock();
        let FileSetChange { how, item, .. } = change;
        let bytes = state.bytes.saturating_add(item.len());
        if state.is_over || state.count >= MOST || bytes > MOST_BYTES {
            return Status::Error;
        }
        state.count += 1;
        state.bytes = bytes;
        match how {
            // A list or a program is read when the FileSet comes, not while it is walked.
            Change::Exclude if !item.starts_with(b"|") && !item.starts_with(b"<") => {
                state.names.push(item.to_vec());
                state.block = None;
                self.excludes.store(true, Ordering::Relaxed);
            }
            Change::Plugin => {
                let include = state.include;
                state.commands.push_back((include, item.to_vec()));
            }
            Change::Exclude => return Status::Error,
            _ => {
                drop(state);
                return self.includes.as_ref().map_or(Status::Error, |includes| includes.change(plugin, change, say));
            }
        }
        Status::Ok
    }

    /// Takes the Includes that are to be walked when the FileSet is through. If there are none,
    /// what plugins change later, when they are asked about deleted files, would be walked never.
    pub(crate) fn take_includes(&self) -> Option<FileSet> {
        let more = self.includes.as_ref().and_then(|includes| includes.take());
        self.state.lock().is_over = more.is_none();
        more
    }

    /// Whether a plugin has excluded this path.
    pub(crate) fn excludes(&self, path: &[u8]) -> bool {
        if !self.excludes.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.state.lock();
        let State { names, block, .. } = &mut *state;
        block.get_or_insert_with(|| Exclude::of_names(names.clone())).matches(path)
    }

    /// The Include with this number is walked next.
    pub(crate) fn begin_include(&self, include: usize) {
        self.state.lock().include = include;
    }

    /// Takes the next command that was added to the Include that is walked.
    pub(crate) fn take_command(&self) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        let include = state.include;
        let at = state.commands.iter().position(|(of, _)| *of == include)?;
        state.commands.remove(at).map(|(_, command)| command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: &LateChanges, change: FileSetChange<'_>) -> Status {
        changes.change(b"tp", change, &mut |_, _| {})
    }

    #[test]
    fn excluded_paths_and_added_commands_count_from_then_on() {
        let changes = LateChanges::default();
        assert!(!changes.excludes(b"/a/b"));
        for (change, expected) in [
            (FileSetChange::new(Change::Exclude, b"/a/*"), Status::Ok),
            (FileSetChange::new(Change::Exclude, b"/c"), Status::Ok),
            (FileSetChange::new(Change::Exclude, b"|program"), Status::Error),
            (FileSetChange::new(Change::Include, b"/d"), Status::Error),
            (FileSetChange::new(Change::NewOptions, b""), Status::Error),
        ] {
            assert_eq!(changed(&changes, change), expected, "{change:?}");
        }
        assert!(changes.excludes(b"/a/b") && changes.excludes(b"/c") && !changes.excludes(b"/d"));
        changes.begin_include(1);
        assert_eq!(changed(&changes, FileSetChange::new(Change::Plugin, b"p:1")), Status::Ok);
        changes.begin_include(2);
        assert_eq!(changes.take_command(), None);
        changes.begin_include(1);
        assert_eq!((changes.take_command(), changes.take_command()), (Some(b"p:1".to_vec()), None));
    }

    #[test]
    fn nothing_is_changed_when_the_walk_is_over() {
        let changes = LateChanges::default();
        assert_eq!(changed(&changes, FileSetChange::new(Change::Plugin, b"p:1")), Status::Ok);
        assert!(changes.take_includes().is_none());
        for change in [
            FileSetChange::new(Change::NewInclude, b""),
            FileSetChange::new(Change::Include, b"/a"),
            FileSetChange::new(Change::Plugin, b"p:2"),
        ] {
            assert_eq!(changed(&changes, change), Status::Error, "{change:?}");
        }
    }

    #[test]
    fn the_number_of_changes_is_bounded() {
        let changes = LateChanges::default();
        for _ in 0..MOST {
            assert_eq!(changed(&changes, FileSetChange::new(Change::Plugin, b"p")), Status::Ok);
        }
        assert_eq!(changed(&changes, FileSetChange::new(Change::Plugin, b"p")), Status::Error);
    }

    #[test]
    fn the_bytes_of_changes_are_bounded() {
        let changes = LateChanges::default();
        let long = vec![b'n'; 1 << 20];
        for number in 0..16 {
            let change =
                [FileSetChange::new(Change::Plugin, &long), FileSetChange::new(Change::Exclude, &long)][number % 2];
            assert_eq!(changed(&changes, change), Status::Ok, "{number}");
        }
        assert_eq!(changed(&changes, FileSetChange::new(Change::Exclude, b"/a")), Status::Error);
    }
}
