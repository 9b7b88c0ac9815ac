//! The walk itself (reference 03 §5): one entry after the other, in the stock daemon's order, with
//! an explicit stack.
//!
//! - `place`: the position of an entry in the tree, and system calls there.
//! - `judge`: what decides about an entry.
//! - `examine`: what becomes of an entry.
//! - `spare`: what is left out without a look, because an inode scan has found it.
//! - `report`: events and counts.

mod examine;
mod judge;
mod place;
mod report;
mod spare;

use std::cell::Cell;
use std::sync::Arc;

use fd_fileset::{FileSet, Include};

use crate::ahead::{Ahead, Calls, Kernel};
use crate::directory::{Leaf, Scratch};
use crate::event::{Flow, FoundCommand, WalkEvent};
use crate::limits::RealTop;
use crate::links::LinkTable;
use crate::names::without_slashes;
use crate::root::Root;
use crate::scan::Scans;
use crate::settings::{Purpose, WalkEnd, WalkHost, WalkSettings, WalkSummary};
use crate::snapshots::ReadAt;
use crate::texts;
use examine::{Level, Walker};
use judge::{Judge, Lookout};
use place::Place;
use report::Report;
use spare::Sparing;

/// So many directories are kept open; those above are put aside.
const MOST_OPEN: usize = 128;

/// Walks over all names of `fileset` and passes the events to `sink`, in order.
pub fn walk(
    fileset: &FileSet,
    settings: &WalkSettings,
    host: &dyn WalkHost,
    sink: &mut dyn FnMut(WalkEvent<'_>) -> Flow,
) -> WalkSummary {
    walk_again(fileset, settings, host, &LinkTable::default(), sink)
}

/// [`walk`] in a job that may have several. `links`: the inodes that the walks before have met, to
/// which those of this one are added.
pub fn walk_again(
    fileset: &FileSet,
    settings: &WalkSettings,
    host: &dyn WalkHost,
    links: &LinkTable,
    sink: &mut dyn FnMut(WalkEvent<'_>) -> Flow,
) -> WalkSummary {
    walk_with(fileset, settings, host, links, sink, Arc::new(Kernel))
}

/// [`walk_again`] with these system calls.
fn walk_with(
    fileset: &FileSet,
    settings: &WalkSettings,
    host: &dyn WalkHost,
    links: &LinkTable,
    sink: &mut dyn FnMut(WalkEvent<'_>) -> Flow,
    calls: Arc<dyn Calls>,
) -> WalkSummary {
    let mut walker = walker(fileset, settings, host, links, sink, calls);
    let end = walker.all().err().unwrap_or_default();
    WalkSummary { end, ..walker.report.summary }
}

fn walker<'w>(
    fileset: &'w FileSet,
    settings: &'w WalkSettings,
    host: &'w dyn WalkHost,
    links: &'w LinkTable,
    sink: &'w mut dyn FnMut(WalkEvent<'_>) -> Flow,
    calls: Arc<dyn Calls>,
) -> Walker<'w> {
    let purpose = settings.purpose;
    let (inode_scan, compared) = settings.scan_for(fileset, host);
    Walker {
        report: Report {
            purpose,
            host,
            sink,
            text: Vec::new(),
            summary: WalkSummary::default(),
            is_muted: false,
            strip_path: 0,
        },
        judge: Judge { fileset, settings, host, real_top: RealTop::default(), last_options: Cell::new(None) },
        links,
        scratch: Scratch::new(),
        ahead: Ahead::new(settings.lookup_depth, calls, !settings.incremental),
        sparing: Sparing { scans: Scans::new(inode_scan, settings.since, compared), looks_again: false },
        roots: Arc::default(),
        root_of_names: None,
    }
}

impl<'w> Walker<'w> {
    fn all(&mut self) -> Result<(), WalkEnd> {
        self.includes()?;
        if self.sparing.begins_again() {
            self.report.is_muted = true;
            self.includes()?;
        }
        Ok(())
    }

    fn includes(&mut self) -> Result<(), WalkEnd> {
        let (fileset, host) = (self.judge.fileset, self.judge.host);
        for (number, include) in fileset.includes().iter().enumerate() {
            host.begins_include(number);
            self.judge.last_options.set(None);
            self.report.strip_path = include.top_level().strip_path;
            for name in include.names() {
                self.top_level(include, name, false)?;
                for mounted in self.judge.settings.snapshots.sub_mounts(number, name) {
                    self.top_level(include, mounted, true)?;
                }
            }
            if self.sparing.looks_again {
                continue;
            }
            for command in include.plugins() {
                self.plugin(number, include, command, false)?;
            }
            while let Some(command) = host.added_command() {
                self.plugin(number, include, &command, true)?;
            }
        }
        Ok(())
    }

    fn plugin(&mut self, number: usize, include: &Include, command: &[u8], is_added: bool) -> Result<(), WalkEnd> {
        let options = self.judge.last_options.get().unwrap_or(include.top_level());
        self.report.give(WalkEvent::Plugin(FoundCommand { command, include: number, options, is_added }))
    }

    /// A name of the FileSet, or a file system below one, and everything below it.
    fn top_level(&mut self, include: &'w Include, name: &[u8], is_sub_mount: bool) -> Result<(), WalkEnd> {
        let mut path = name.to_vec();
        let read_at = self.judge.settings.snapshots.reader(name);
        let limits = &self.judge.settings.limits;
        let held = (!limits.are_none()).then(|| read_at.hold(name));
        self.judge.real_top = match &held {
            Some(Ok(held)) => RealTop::new(name, &held.real),
            _ => limits.unreached_top(name),
        };
        let place = Place {
            include,
            top: name,
            is_sub_mount,
            path: &path,
            name_at: 0,
            parent: None,
            root: None,
            read_at: &read_at,
            held: held.as_ref(),
            lent: None,
            leaf: 0,
        };
        let counted = self.report.summary.entries;
        let Some(level) = self.entry(&place)? else {
            let is_counted = self.report.summary.entries > counted;
            return if is_counted { self.stop_beyond_limit() } else { Ok(()) };
        };
        path.truncate(without_slashes(name).len());
        path.push(b'/');
        let prefix = read_at.of(&path).len();
        let root = level.directory.descriptor().and_then(|top| Root::new(top, prefix, &self.roots).ok()).map(Arc::new);
        let mut levels = vec![level];
        loop {
            if self.ahead.is_on() && levels.last().is_some_and(|level| level.lent.is_none()) {
                self.lend(&mut levels, &path);
            }
            let Some(level) = levels.last_mut() else { break };
            let prefix = level.prefix;
            path.truncate(prefix);
            let next = if self.limit_reached() { None } else { self.next_name(level, &mut path, include, &read_at)? };
            let Some(leaf) = next else {
                path.truncate(prefix.saturating_sub(1));
                if let Some(level) = levels.pop() {
                    self.leave(level, if levels.is_empty() { name } else { &path })?;
                }
                continue;
            };
            // A directory whose name was read is open.
            let Some(directory) = level.directory.descriptor() else { continue };
            let parent = Some((directory, level.dev));
            let place = Place {
                include,
                top: name,
                is_sub_mount,
                path: &path,
                name_at: prefix,
                parent,
                root: root.as_ref(),
                read_at: &read_at,
                held: None,
                lent: level.lent,
                leaf,
            };
            if let Some(below) = self.entry(&place)? {
                path.push(b'/');
                levels.push(below);
                self.free_descriptor(&mut levels, include, &read_at)?;
            }
        }
        Ok(())
    }

    /// Appends the next name of the directory to its path. A read error is reported; the stock
    /// daemon takes it for the end of the directory.
    fn next_name(
        &mut self,
        level: &mut Level,
        path: &mut Vec<u8>,
        include: &Include,
        read_at: &ReadAt,
    ) -> Result<Option<Leaf>, WalkEnd> {
        if level.lent.is_some() && !self.ahead.is_on() {
            self.take_back(level, include, read_at)?;
        }
        let next = match level.lent {
            Some(folder) => self.ahead.next_name(folder, path, &Lookout { judge: &self.judge, include, read_at })?,
            None => level.directory.next_name(path, read_at, &mut self.scratch),
        };
        next.or_else(|errno| {
            let path = path.strip_suffix(b"/").filter(|path| !path.is_empty()).unwrap_or(path);
            self.report.could_not(path, texts::READ_DIRECTORY, errno).map(|()| None)
        })
    }

    /// Has the directories read ahead, with those above them: what follows in them is next.
    #[cold]
    fn lend(&mut self, levels: &mut [Level], path: &[u8]) {
        if !self.ahead.has_scouts() {
            return;
        }
        let mut place = Vec::new();
        for level in levels {
            if level.lent.is_none()
                && let Some(loan) = level.directory.lend()
            {
                let path = path.get(..level.prefix).unwrap_or_default();
                level.lent = self.ahead.lend(loan, path, level.directory.identity(), place.clone());
            }
            match level.lent {
                Some(folder) => place = self.ahead.place_below(folder),
                None => place.push(0),
            }
        }
    }

    fn take_back(&mut self, level: &mut Level, include: &Include, read_at: &ReadAt) -> Result<(), WalkEnd> {
        if let Some(folder) = level.lent.take() {
            let (names, rest) = self.ahead.take_back(folder, &Lookout { judge: &self.judge, include, read_at })?;
            level.directory.take_back(names, rest);
        }
        Ok(())
    }

    /// Bounds the number of open directories, whatever the depth of the tree.
    fn free_descriptor(&mut self, levels: &mut [Level], include: &Include, read_at: &ReadAt) -> Result<(), WalkEnd> {
        if let Some(outermost) = levels.len().checked_sub(MOST_OPEN + 1)
            && let Some(level) = levels.get_mut(outermost)
        {
            self.take_back(level, include, read_at)?;
            level.directory.put_aside(&mut self.scratch);
        }
        Ok(())
    }

    /// In an estimate with a limit, a name of the FileSet that is counted beyond it ends the walk,
    /// unless it is a directory that was entered.
    fn stop_beyond_limit(&self) -> Result<(), WalkEnd> {
        match self.report.purpose {
            Purpose::Estimate { limit } if limit > 0 && self.report.summary.entries > limit => Err(WalkEnd::Complete),
            _ => Ok(()),
        }
    }

    /// In an estimate with a limit: whether it is reached.
    const fn limit_reached(&self) -> bool {
        matches!(self.report.purpose, Purpose::Estimate { limit } if limit > 0 && self.report.summary.entries >= limit)
    }

    /// A directory after its contents. `path` is its path as it was found.
    fn leave(&mut self, level: Level, path: &[u8]) -> Result<(), WalkEnd> {
        if let Some(folder) = level.lent {
            self.ahead.leave(folder);
        }
        level.directory.close(&mut self.scratch);
        match level.entry {
            Some(entry) => {
                self.report.begin(path)?;
                self.report.entry(entry)
            }
            None => self.report.unchanged(path),
        }
    }
}

#[cfg(test)]
mod tests;
