//! Looks names up and opens directories ahead of the walk, many at a time, where the walk would
//! wait for each: for a server, for a disk.
//!
//! The walk stays on its thread and decides everything. Where it would ask the kernel, it asks
//! here, and gets the same answer earlier. While the kernel answers at once, nothing is done ahead
//! and no thread is started.
//!
//! - `calls`: the system calls that are made ahead.
//! - `depth`: how many at a time.
//! - `folder`, `agenda`: what is to be done, and what is known.
//! - `scouts`: the threads.

mod agenda;
mod calls;
mod depth;
mod folder;
mod scouts;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::attributes::Found;
use crate::directory::{Leaf, Loan, Rest, push_name};
use crate::scan::Known;
use crate::settings::{LookupDepth, WalkEnd};
use agenda::{Agenda, Entered, Next, Reply};
pub(crate) use calls::{Calls, Kernel};
use depth::Depth;
pub(crate) use folder::FolderId;
use folder::{Answer, Handed};
pub(crate) use scouts::Attend;
use scouts::Scouts;

/// See the module. A walk owns one.
pub(crate) struct Ahead {
    calls: Arc<dyn Calls>,
    depth: Depth,
    scouts: Option<Scouts>,
    /// No thread can be started, or one has panicked.
    is_alone: bool,
    reads_links: bool,
    scans: Vec<Arc<Known>>,
    /// Entries that the walk has still to use: of the directory that it is in, and of those above
    /// in which an entry has become a directory.
    handed: Vec<(FolderId, VecDeque<Handed>)>,
    /// The entry that the walk has taken from these.
    taken: Option<Handed>,
    /// The target of the link that was looked up last.
    link: Option<Result<Vec<u8>, Errno>>,
}

impl Ahead {
    /// `reads_links`: the walk will want the targets of most symbolic links.
    pub(crate) fn new(setting: LookupDepth, calls: Arc<dyn Calls>, reads_links: bool) -> Self {
        Self {
            calls,
            depth: Depth::new(setting),
            scouts: None,
            is_alone: false,
            reads_links,
            scans: Vec::new(),
            handed: Vec::new(),
            taken: None,
            link: None,
        }
    }

    /// Whether directories should be lent ([`Self::lend`]). A directory that is lent when this is
    /// no longer so should be taken back.
    pub(crate) const fn is_on(&self) -> bool {
        self.depth.get() > 1 && !self.is_alone
    }

    /// Looks up or opens an entry on the walk's own thread.
    pub(crate) fn directly<T>(&mut self, call: impl FnOnce(&dyn Calls) -> T) -> T {
        let calls = &*self.calls;
        self.link = None;
        self.depth.watch(|| call(calls))
    }

    /// From now on, the directory is read here. `place`: where it is in the walk.
    pub(crate) fn lend(&mut self, loan: Loan, path: &[u8], identity: (u64, u64), place: Vec<u64>) -> Option<FolderId> {
        Some(self.scouts.as_ref()?.with(|agenda| agenda.enlist(loan, path, identity, place)))
    }

    /// Whether there are threads; starts them.
    pub(crate) fn has_scouts(&mut self) -> bool {
        let scouts = self.scouts.get_or_insert_with(|| {
            let scouts = Scouts::new(Arc::clone(&self.calls), self.reads_links);
            scouts.with(|agenda| self.scans.iter().for_each(|scan| agenda.add_scan(Arc::clone(scan))));
            scouts
        });
        self.is_alone |= scouts.have_ended();
        // Lookups may be late again that were not any more.
        self.set_depth();
        !self.is_alone
    }

    /// The place of what is below the entry that the walk is at in this directory.
    pub(crate) fn place_below(&self, folder: FolderId) -> Vec<u64> {
        self.scouts.as_ref().map(|scouts| scouts.with(|agenda| agenda.place_below(folder))).unwrap_or_default()
    }

    /// From now on, what this scan has found to be old is not looked up ahead.
    pub(crate) fn add_scan(&mut self, scan: &Arc<Known>) {
        self.scans.push(Arc::clone(scan));
        if let Some(scouts) = &self.scouts {
            scouts.with(|agenda| agenda.add_scan(Arc::clone(scan)));
        }
    }

    /// From now on, everything is looked up again on this device.
    pub(crate) fn remove_scan(&mut self, dev: u64) {
        self.scans.retain(|scan| scan.dev() != dev);
        if let Some(scouts) = &self.scouts {
            scouts.with(|agenda| agenda.remove_scan(dev));
        }
    }

    /// Appends the next name of a lent directory to `path`, `None` at its end.
    pub(crate) fn next_name(
        &mut self,
        folder: FolderId,
        path: &mut Vec<u8>,
        walk: &dyn Attend,
    ) -> Result<Result<Option<Leaf>, Errno>, WalkEnd> {
        self.taken = None;
        let mut handed = self.handed_of(folder);
        if handed.is_empty() {
            match self.ask(folder, walk, |agenda| agenda.next(folder))? {
                Reply::Ready(Next::Known(known)) => handed = known,
                Reply::Ready(Next::Name(name, leaf)) => {
                    path.extend_from_slice(&name);
                    return Ok(Ok(Some(leaf)));
                }
                Reply::Ready(Next::Ended) => return Ok(Ok(None)),
                Reply::Ready(Next::Failed(errno)) => return Ok(Err(errno)),
                Reply::Wait | Reply::Yourself => return Ok(Err(Errno::IO)),
            }
        }
        let Some(entry) = handed.pop_front() else { return Ok(Err(Errno::IO)) };
        if !handed.is_empty() {
            self.handed.push((folder, handed));
        }
        path.extend_from_slice(&entry.name);
        let leaf = entry.leaf;
        self.taken = Some(entry);
        Ok(Ok(Some(leaf)))
    }

    fn handed_of(&mut self, folder: FolderId) -> VecDeque<Handed> {
        let at = self.handed.iter().rposition(|(of, _)| *of == folder);
        at.map(|at| self.handed.remove(at).1).unwrap_or_default()
    }

    /// The attributes of the entry that the walk is at in a lent directory; `None` if the walk has
    /// to look itself.
    pub(crate) fn look(
        &mut self,
        folder: FolderId,
        walk: &dyn Attend,
    ) -> Result<Option<Result<Found, Errno>>, WalkEnd> {
        self.link = None;
        let reply = match self.taken.take() {
            Some(entry) => {
                self.used(Duration::ZERO);
                // One that is old is looked up anew.
                entry.answer.filter(Answer::is_fresh)
            }
            None => match self.ask(folder, walk, |agenda| agenda.look(folder))? {
                Reply::Ready(answer) => Some(answer),
                Reply::Wait | Reply::Yourself => None,
            },
        };
        // What was not there then may be there now.
        let is_lasting = |answer: &Answer| !matches!(answer.found, Err(Errno::NOENT));
        let Some(answer) = reply.filter(is_lasting) else { return Ok(None) };
        self.link = answer.link;
        Ok(Some(answer.found))
    }

    /// Asks, and considers the depth.
    fn ask<T>(
        &mut self,
        folder: FolderId,
        walk: &dyn Attend,
        ask: impl FnMut(&mut Agenda) -> Reply<T>,
    ) -> Result<Reply<T>, WalkEnd> {
        let Some(scouts) = &self.scouts else { return Ok(Reply::Yourself) };
        let (reply, waited) = scouts.ask(folder, walk, ask)?;
        self.used(waited);
        Ok(reply)
    }

    /// The walk has waited so long for what it asked for.
    fn used(&mut self, waited: Duration) {
        let Some(scouts) = &self.scouts else { return };
        if self.depth.used(waited, || scouts.with(Agenda::taken)) {
            self.set_depth();
        }
    }

    fn set_depth(&mut self) {
        let (depth, turn) = (self.depth.get(), self.depth.turn());
        let Some(scouts) = &mut self.scouts else { return };
        if depth > 1 {
            self.is_alone |= scouts.grow(self.depth.scouts()) == 0;
        }
        scouts.with(|agenda| agenda.set_depth(if depth > 1 { depth } else { 0 }, turn));
    }

    /// The target of the link whose attributes were asked for last, if it was read.
    pub(crate) fn link(&mut self) -> Option<Result<Vec<u8>, Errno>> {
        self.link.take()
    }

    /// The directory of these attributes that the walk is at in a lent directory, lent itself;
    /// `None` if the walk has to open it.
    pub(crate) fn open(
        &mut self,
        folder: FolderId,
        identity: (u64, u64),
        walk: &dyn Attend,
    ) -> Result<Option<Result<Entered, Errno>>, WalkEnd> {
        match self.ask(folder, walk, |agenda| agenda.open(folder, identity))? {
            Reply::Ready(opened) => Ok(Some(opened)),
            Reply::Wait | Reply::Yourself => Ok(None),
        }
    }

    /// Whether the directory that the walk is at in a lent directory was found not to hold the file
    /// that makes the walk leave it out; `false` if the walk has to look.
    pub(crate) fn is_unmarked(&mut self, folder: FolderId, walk: &dyn Attend) -> Result<bool, WalkEnd> {
        let reply = self.ask(folder, walk, |agenda| agenda.is_unmarked(folder))?;
        Ok(matches!(reply, Reply::Ready(())))
    }

    /// Gives a directory back with its names that were not used, and what follows them.
    pub(crate) fn take_back(&mut self, folder: FolderId, walk: &dyn Attend) -> Result<(Vec<u8>, Rest), WalkEnd> {
        match self.ask(folder, walk, |agenda| agenda.take_back(folder))? {
            Reply::Ready((names, rest)) => {
                let mut all = Vec::new();
                for Handed { name, leaf, .. } in self.handed_of(folder) {
                    push_name(&mut all, leaf, &name);
                }
                all.extend_from_slice(&names);
                Ok((all, rest))
            }
            Reply::Wait | Reply::Yourself => Ok((Vec::new(), Rest::Failed(Errno::IO))),
        }
    }

    /// The walk is done with a lent directory.
    pub(crate) fn leave(&mut self, folder: FolderId) {
        let _unused = self.handed_of(folder);
        if let Some(scouts) = &self.scouts {
            scouts.with(|agenda| agenda.leave(folder));
        }
    }
}
