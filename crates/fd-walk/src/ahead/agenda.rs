//! What is to be looked up and opened next, nearest in the walk's order first, and what is known.
//! No threads and no system calls: these take tasks from here and bring results.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fd_os::depth::Taken;
use fd_records::Stat;
use rustix::io::Errno;

use super::calls::Name;
use super::folder::{Answer, Below, Entry, FRESH, Folder, FolderId, Handed, Look, Reading};
use crate::directory::{Leaf, Loan, Rest, first_name};
use crate::scan::Known;
use fd_os::sync::Instant;

/// In one directory, so many lookups are ahead of the walk. So many of the directories that they
/// have found wait for its decision.
const MOST_BEGUN: usize = 1024;
/// So many entries are handed over to the walk at once.
const MOST_HANDED: usize = 64;
/// Lookups of which fewer are one task wait for a server or a disk.
const FEW_A_TURN: usize = 8;
/// In all directories, so many names are held before further ones are read ahead. A read brings at
/// most 16 KiB of them.
pub(crate) const MOST_NAMES: usize = 16_384;
/// So many directories are open ahead of the walk.
pub(crate) const MOST_OPEN: usize = 64;
/// Why a directory could not be opened ahead, and perhaps can be when its turn has come: another
/// object was there, or none; or something was wanting that the walk may have.
const OF_A_MOMENT: [Errno; 7] =
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::STALE, Errno::MFILE, Errno::NFILE, Errno::NOMEM];

/// What a thread is to do.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) folder: FolderId,
    pub(crate) descriptor: Arc<OwnedFd>,
    pub(crate) work: Work,
}

/// See [`Task`].
#[derive(Debug)]
pub(crate) enum Work {
    /// Look these entries up.
    Look { entries: Vec<(u64, Arc<[u8]>)>, reads_links: bool },
    /// Open this directory and read its first names.
    Open(Opening),
    /// Read the next names.
    Read,
}

/// A directory that the walk enters, and when it was opened.
pub(crate) type Entered = (FolderId, Arc<OwnedFd>);

/// See [`Work::Open`].
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) number: u64,
    pub(crate) name: Arc<[u8]>,
    pub(crate) identity: (u64, u64),
    /// It is not opened if there is a file at this path.
    pub(crate) unless: Option<Vec<u8>>,
}

/// A directory that was opened, with its identity and its first names; or a file is there that
/// makes the walk leave it out.
#[derive(Debug)]
pub(crate) enum Opened {
    Open { descriptor: OwnedFd, identity: (u64, u64), names: Vec<Name>, rest: Rest },
    Marked,
}

/// What a thread has found.
#[derive(Debug)]
pub(crate) enum Outcome {
    Looked(Vec<(u64, Answer)>),
    Opened(u64, Result<Opened, Errno>),
    Read(Vec<Name>, Rest),
}

/// What the walk gets when it asks.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    Ready(T),
    /// It is being done.
    Wait,
    /// The walk has to do it.
    Yourself,
}

/// What follows in a directory.
#[derive(Debug)]
pub(crate) enum Next {
    Name(Arc<[u8]>, Leaf),
    /// Entries that are no directories, at least one.
    Known(VecDeque<Handed>),
    Ended,
    Failed(Errno),
}

/// A directory that may be opened ahead, if the walk would enter it.
#[derive(Debug)]
pub(crate) struct Candidate {
    folder: FolderId,
    number: u64,
    identity: (u64, u64),
    pub(crate) path: Vec<u8>,
}

/// Directories ahead of the walk, by their place in it: each with the one that holds it, and its
/// number there. What is dropped here is opened when the walk comes to it.
#[derive(Debug, Default)]
struct Openings {
    /// Those of which the walk decides whether it would enter them.
    to_judge: BTreeMap<Vec<u64>, (FolderId, u64)>,
    /// Those to be opened.
    wanted: BTreeMap<Vec<u64>, (FolderId, Opening)>,
    /// Those that are open, and not yet entered by the walk; with what they are here.
    open: BTreeMap<Vec<u64>, (FolderId, u64, FolderId)>,
    /// How many are being opened.
    begun: usize,
}

/// What is begun ahead of the walk.
enum Ahead<'a> {
    /// The nearest directory is opened.
    Open,
    /// Names of the directory in this place are read or looked up.
    Names(&'a Vec<u64>),
}

/// How much is done at once.
#[derive(Debug)]
struct Measure {
    /// So many tasks are done at a time, beside the urgent ones.
    depth: usize,
    /// So many lookups are one task.
    turn: usize,
}

impl Measure {
    /// Whether lookups wait for a server or a disk, rather than work, or wait for each other.
    const fn is_late(&self) -> bool {
        self.turn < FEW_A_TURN
    }
}

impl Default for Measure {
    fn default() -> Self {
        Self { depth: 0, turn: 1 }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    folders: HashMap<FolderId, Folder>,
    /// Directories with something to begin, by their place in the walk.
    startable: BTreeMap<Vec<u64>, FolderId>,
    openings: Openings,
    /// What the walk waits for.
    urgent: VecDeque<Task>,
    last_id: FolderId,
    /// Names in all folders.
    names: usize,
    busy: usize,
    measure: Measure,
    reads_links: bool,
    /// What need not be looked up.
    scans: Vec<Arc<Known>>,
    taken: Taken,
    /// The directory in which the walk waits.
    waits_in: Option<FolderId>,
}

impl Agenda {
    pub(crate) fn new(reads_links: bool) -> Self {
        Self { reads_links, ..Self::default() }
    }

    /// From now on so many tasks are done at a time, of so many lookups each.
    pub(crate) const fn set_depth(&mut self, depth: usize, turn: usize) {
        self.measure = Measure { depth, turn };
    }

    /// From now on, what this scan has found to be old is not looked up.
    pub(crate) fn add_scan(&mut self, scan: Arc<Known>) {
        self.scans.push(scan);
    }

    /// From now on, everything is looked up again on this device.
    pub(crate) fn remove_scan(&mut self, dev: u64) {
        self.scans.retain(|scan| scan.dev() != dev);
    }

    /// What lookups have taken since the last call.
    pub(crate) fn taken(&mut self) -> Taken {
        std::mem::take(&mut self.taken)
    }

    /// Takes over the reading of a directory that the walk has entered.
    pub(crate) fn enlist(&mut self, loan: Loan, path: &[u8], identity: (u64, u64), order: Vec<u64>) -> FolderId {
        let mut folder = Folder::new(loan.descriptor, path.to_vec(), identity, order);
        let (mut names, mut rest) = (Vec::new(), loan.names.as_slice());
        while let Some((leaf, name, len)) = first_name(rest) {
            names.push(Name { name: Arc::from(name), ino: leaf, is_leaf: leaf != 0 });
            rest = rest.get(len..).unwrap_or_default();
        }
        folder.add(&names, loan.rest);
        self.insert(folder)
    }

    fn insert(&mut self, folder: Folder) -> FolderId {
        self.last_id += 1;
        self.names += folder.entries.len();
        self.startable.insert(place_of_names(&folder), self.last_id);
        self.folders.insert(self.last_id, folder);
        self.last_id
    }

    /// The place of what is below the entry that the walk is at.
    pub(crate) fn place_below(&self, id: FolderId) -> Vec<u64> {
        self.folders.get(&id).map(|folder| below(&folder.order, folder.handed)).unwrap_or_default()
    }

    /// The walk goes on to the next name.
    pub(crate) fn next(&mut self, id: FolderId) -> Reply<Next> {
        let Some(folder) = self.folders.get_mut(&id) else { return Reply::Yourself };
        let passed = folder.current.take();
        let place_of_passed = below(&folder.order, folder.handed);
        let known = folder.hand_out(MOST_HANDED, spared(&self.scans, folder));
        let next = if known.is_empty() { folder.entries.pop_front() } else { None };
        let place = place_of_names(folder);
        let count = known.len() + usize::from(next.is_some());
        folder.handed += count as u64;
        self.names = self.names.saturating_sub(count);
        if count > 0 && (!folder.queue.is_empty() || folder.reading == Reading::Rests(Rest::More)) {
            self.startable.insert(place, id);
        }
        let reply = match (next, folder.reading) {
            _ if !known.is_empty() => Reply::Ready(Next::Known(known)),
            (Some(entry), _) => {
                let (name, leaf) = (Arc::clone(&entry.name), entry.leaf);
                folder.current = Some(entry);
                Reply::Ready(Next::Name(name, leaf))
            }
            (None, Reading::Begun) => Reply::Wait,
            (None, Reading::Rests(Rest::More)) => {
                folder.reading = Reading::Begun;
                let descriptor = Arc::clone(&folder.descriptor);
                self.urgent.push_back(Task { folder: id, descriptor, work: Work::Read });
                Reply::Wait
            }
            (None, Reading::Rests(Rest::Ended)) => Reply::Ready(Next::Ended),
            (None, Reading::Rests(Rest::Failed(errno))) => {
                folder.reading = Reading::Rests(Rest::Ended);
                Reply::Ready(Next::Failed(errno))
            }
        };
        if let Some(entry) = passed {
            self.drop_below(&entry.below, &place_of_passed);
        }
        reply
    }

    /// The attributes of the entry that the walk is at.
    pub(crate) fn look(&mut self, id: FolderId) -> Reply<Answer> {
        let Some(folder) = self.folders.get_mut(&id) else { return Reply::Yourself };
        let Some(entry) = folder.current.as_mut() else { return Reply::Yourself };
        match std::mem::replace(&mut entry.look, Look::Used) {
            Look::Known(answer) if answer.is_fresh() => return Reply::Ready(answer),
            Look::Used => return Reply::Yourself,
            Look::Begun => {
                entry.look = Look::Begun;
                return Reply::Wait;
            }
            Look::Waiting => {}
            // The others are as old.
            Look::Known(_) => folder.forget_answers(),
        }
        if let Some(entry) = folder.begin_current() {
            let mut entries = vec![entry];
            let is_spared = spared(&self.scans, folder);
            let further = std::iter::from_fn(|| folder.begin(&is_spared));
            entries.extend(further.take(self.measure.turn.saturating_sub(1)));
            let work = Work::Look { entries, reads_links: self.reads_links };
            self.urgent.push_back(Task { folder: id, descriptor: Arc::clone(&folder.descriptor), work });
            self.startable.insert(place_of_names(folder), id);
        }
        Reply::Wait
    }

    /// The directory that the walk is at, which has this identity.
    pub(crate) fn open(&mut self, id: FolderId, identity: (u64, u64)) -> Reply<Result<Entered, Errno>> {
        let Some(folder) = self.folders.get_mut(&id) else { return Reply::Yourself };
        let (order, descriptor) = (below(&folder.order, folder.handed), Arc::clone(&folder.descriptor));
        let number = folder.handed;
        let Some(entry) = folder.current.as_mut() else { return Reply::Yourself };
        let name = Arc::clone(&entry.name);
        match std::mem::replace(&mut entry.below, Below::Begun) {
            Below::Open(child) => {
                let opened = self.folders.get(&child).filter(|opened| opened.identity == identity);
                if let Some(opened) = opened.filter(|opened| opened.is_fresh()) {
                    let descriptor = Arc::clone(&opened.descriptor);
                    self.openings.open.remove(&order);
                    self.set_below(id, number, Below::Nothing);
                    return Reply::Ready(Ok((child, descriptor)));
                }
                self.drop_below(&Below::Open(child), &order);
            }
            Below::Failed(errno, time) => {
                self.set_below(id, number, Below::Nothing);
                let is_lasting = time.elapsed() < FRESH && !OF_A_MOMENT.contains(&errno);
                return if is_lasting { Reply::Ready(Err(errno)) } else { Reply::Yourself };
            }
            Below::Begun => return Reply::Wait,
            wanted @ (Below::Nothing | Below::Wanted) => self.drop_below(&wanted, &order),
        }
        self.close_one();
        self.openings.begun += 1;
        let opening = Opening { number, name, identity, unless: None };
        self.urgent.push_back(Task { folder: id, descriptor, work: Work::Open(opening) });
        Reply::Wait
    }

    /// Whether the directory that the walk is at was opened ahead, which is not done if it holds
    /// the file that makes the walk leave it out.
    pub(crate) fn is_unmarked(&mut self, id: FolderId) -> Reply<()> {
        let current = self.folders.get(&id).and_then(|folder| folder.current.as_ref());
        match current.map(|entry| &entry.below) {
            Some(Below::Open(child)) if self.folders.get(child).is_some_and(Folder::is_fresh) => Reply::Ready(()),
            Some(Below::Begun) => Reply::Wait,
            Some(Below::Open(_) | Below::Nothing | Below::Wanted | Below::Failed(..)) | None => Reply::Yourself,
        }
    }

    fn set_below(&mut self, id: FolderId, number: u64, below: Below) {
        if let Some(entry) = self.folders.get_mut(&id).and_then(|folder| folder.entry(number)) {
            entry.below = below;
        }
    }

    /// Closes the farthest that was opened too long ago to be used: a nearer one needs its place.
    fn close_one(&mut self) {
        let is_old = |child| self.folders.get(child).is_none_or(|folder: &Folder| !folder.is_fresh());
        let old = self.openings.open.values().rev().find(|(.., child)| is_old(child));
        if let Some(&(id, number, child)) = old {
            self.set_below(id, number, Below::Nothing);
            self.leave(child);
        }
    }

    /// Gives the reading of a directory back: its names with a NUL behind each, and what follows.
    pub(crate) fn take_back(&mut self, id: FolderId) -> Reply<(Vec<u8>, Rest)> {
        match self.folders.get(&id).map(|folder| (folder.reading, folder)) {
            None => Reply::Yourself,
            Some((Reading::Begun, _)) => Reply::Wait,
            Some((Reading::Rests(rest), folder)) => {
                let names = folder.names_left();
                self.leave(id);
                Reply::Ready((names, rest))
            }
        }
    }

    /// The walk is done with a directory.
    pub(crate) fn leave(&mut self, id: FolderId) {
        let Some(folder) = self.folders.remove(&id) else { return };
        self.startable.remove(&place_of_names(&folder));
        self.openings.open.remove(&folder.order);
        self.names = self.names.saturating_sub(folder.entries.len());
        let first = folder.handed + u64::from(folder.current.is_none());
        for (entry, number) in folder.current.iter().chain(&folder.entries).zip(first..) {
            if matches!(entry.below, Below::Open(_) | Below::Wanted) {
                // This goes no deeper than there are directories open ahead.
                self.drop_below(&entry.below, &below(&folder.order, number));
            }
        }
    }

    /// Drops what was opened, or was to be opened, below an entry. What is being opened is dropped
    /// when it comes.
    fn drop_below(&mut self, below: &Below, place: &[u64]) {
        match below {
            Below::Open(child) => self.leave(*child),
            Below::Wanted => drop(self.openings.wanted.remove(place)),
            Below::Nothing | Below::Begun | Below::Failed(..) => {}
        }
    }

    /// The next directory of which it is to be decided whether it is opened ahead.
    pub(crate) fn candidate(&mut self) -> Option<Candidate> {
        let wanted = &self.openings.wanted;
        let farthest = wanted.keys().next_back().filter(|_| wanted.len() >= MOST_OPEN);
        while let Some(nearest) = self.openings.to_judge.first_entry()
            && farthest.is_none_or(|farthest| nearest.key() < farthest)
        {
            let (id, number) = nearest.remove();
            let Some(folder) = self.folders.get_mut(&id) else { continue };
            let Some(entry) = folder.entry(number) else { continue };
            if let (Below::Nothing, Look::Known(answer)) = (&entry.below, &entry.look)
                && let Ok((stat, _)) = &answer.found
            {
                let (identity, name) = ((stat.dev, stat.ino), Arc::clone(&entry.name));
                return Some(Candidate { folder: id, number, identity, path: folder.path_of(&name) });
            }
        }
        None
    }

    /// The walk would enter this directory, unless there is a file at this path.
    pub(crate) fn open_ahead(&mut self, candidate: &Candidate, unless: Option<Vec<u8>>) {
        let Some(folder) = self.folders.get_mut(&candidate.folder) else { return };
        let place = below(&folder.order, candidate.number);
        if let Some(entry @ Entry { below: Below::Nothing, .. }) = folder.entry(candidate.number) {
            entry.below = Below::Wanted;
            let name = Arc::clone(&entry.name);
            let opening = Opening { number: candidate.number, name, identity: candidate.identity, unless };
            self.openings.wanted.insert(place, (candidate.folder, opening));
        }
        if self.openings.wanted.len() > MOST_OPEN
            && let Some((_, (id, opening))) = self.openings.wanted.pop_last()
        {
            self.set_below(id, opening.number, Below::Nothing);
        }
    }

    /// The next task, nearest in the walk's order first.
    pub(crate) fn take(&mut self) -> Option<Task> {
        let task = self.urgent.pop_front().or_else(|| self.ahead())?;
        self.busy += 1;
        if let Some(folder) = self.folders.get_mut(&task.folder) {
            folder.busy += 1;
        }
        Some(task)
    }

    fn ahead(&mut self) -> Option<Task> {
        while let Some(next) = self.next_ahead() {
            let task = match next {
                Ahead::Open => self.begin_open(),
                Ahead::Names(place) => self.begin_names(&place.clone()),
            };
            if task.is_some() {
                return task;
            }
        }
        None
    }

    /// What is begun next ahead of the walk.
    fn next_ahead(&self) -> Option<Ahead<'_>> {
        if self.busy >= self.measure.depth {
            return None;
        }
        let are_few = self.openings.open.len() + self.openings.begun < MOST_OPEN;
        let open = self.openings.wanted.keys().next().filter(|_| are_few && self.names < MOST_NAMES);
        let (nearest, free) = (self.startable.keys().next(), self.nearest_free());
        let start = if self.measure.is_late() { nearest } else { free };
        if open.is_some_and(|open| start.is_none_or(|start| open < start)) {
            return Some(Ahead::Open);
        }
        // Where lookups work, only a walk that waits is worth a second thread in a directory.
        let shared = start.or_else(|| nearest.filter(|_| self.waits_in.is_some()));
        free.or(shared).map(Ahead::Names)
    }

    fn begin_open(&mut self) -> Option<Task> {
        let (_, (id, opening)) = self.openings.wanted.pop_first()?;
        let folder = self.folders.get_mut(&id)?;
        folder.entry(opening.number)?.below = Below::Begun;
        self.openings.begun += 1;
        Some(Task { folder: id, descriptor: Arc::clone(&folder.descriptor), work: Work::Open(opening) })
    }

    /// The nearest directory with something to begin in which no thread is at work: some file
    /// systems, as XFS, let one thread at a time look into a directory.
    fn nearest_free(&self) -> Option<&Vec<u64>> {
        let is_free = |(_, id): &(_, &FolderId)| self.folders.get(id).is_none_or(|folder| folder.busy == 0);
        self.startable.iter().find(is_free).map(|(place, _)| place)
    }

    fn begin_names(&mut self, place: &[u64]) -> Option<Task> {
        let id = *self.startable.get(place)?;
        let Some(folder) = self.folders.get_mut(&id) else {
            self.startable.remove(place);
            return None;
        };
        let descriptor = Arc::clone(&folder.descriptor);
        let few = folder.queue.len() < self.measure.depth.saturating_mul(2) && folder.entries.len() < MOST_BEGUN;
        if few && folder.reading == Reading::Rests(Rest::More) && self.names < MOST_NAMES {
            folder.reading = Reading::Begun;
            return Some(Task { folder: id, descriptor, work: Work::Read });
        }
        let free = MOST_BEGUN.saturating_sub(folder.begun()).min(self.measure.turn);
        let is_spared = spared(&self.scans, folder);
        let entries: Vec<_> = std::iter::from_fn(|| folder.begin(&is_spared)).take(free).collect();
        if entries.is_empty() {
            self.startable.remove(place);
            return None;
        }
        Some(Task { folder: id, descriptor, work: Work::Look { entries, reads_links: self.reads_links } })
    }

    /// Whether there is something to do for one more thread.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.urgent.is_empty() || self.next_ahead().is_some()
    }

    /// Takes the outcome of a task of this folder. Returns whether the walk should look again.
    pub(crate) fn deliver(&mut self, id: FolderId, outcome: Outcome, taken: Taken) -> bool {
        self.busy = self.busy.saturating_sub(1);
        if let Some(folder) = self.folders.get_mut(&id) {
            folder.busy = folder.busy.saturating_sub(1);
        }
        self.taken.add(taken);
        match outcome {
            Outcome::Looked(answers) => self.deliver_answers(id, answers),
            Outcome::Opened(number, opened) => self.deliver_folder(id, number, opened),
            Outcome::Read(names, rest) => {
                let Some(folder) = self.folders.get_mut(&id) else { return false };
                self.names += names.len();
                folder.add(&names, rest);
                self.startable.insert(place_of_names(folder), id);
                self.waits_in == Some(id)
            }
        }
    }

    fn deliver_answers(&mut self, id: FolderId, answers: Vec<(u64, Answer)>) -> bool {
        let Some(folder) = self.folders.get_mut(&id) else { return false };
        let (device, at) = (folder.identity.0, folder.handed);
        let is_folder = |(stat, _): &(Stat, _)| stat.mode_type() == Stat::MODE_DIRECTORY && stat.dev == device;
        let mut wakes = false;
        for (number, answer) in answers {
            let Some(entry) = folder.entry(number) else { continue };
            let is_folder = answer.found.as_ref().is_ok_and(is_folder);
            entry.look = Look::Known(answer);
            if is_folder {
                self.openings.to_judge.insert(below(&folder.order, number), (id, number));
            }
            if self.openings.to_judge.len() > MOST_BEGUN {
                self.openings.to_judge.pop_last();
            }
            wakes |= is_folder && self.waits_in.is_some() || number == at && self.waits_in == Some(id);
        }
        wakes
    }

    fn deliver_folder(&mut self, id: FolderId, number: u64, opened: Result<Opened, Errno>) -> bool {
        self.openings.begun = self.openings.begun.saturating_sub(1);
        let Some(folder) = self.folders.get_mut(&id) else { return false };
        let (order, is_current) = (below(&folder.order, number), number == folder.handed);
        let mut path = folder.path.clone();
        let Some(entry @ Entry { below: Below::Begun, .. }) = folder.entry(number) else { return false };
        match opened {
            Err(errno) => entry.below = Below::Failed(errno, Instant::now()),
            Ok(Opened::Marked) => entry.below = Below::Nothing,
            Ok(Opened::Open { descriptor, identity, names, rest }) => {
                path.extend_from_slice(&entry.name);
                path.push(b'/');
                let mut child = Folder::new(Arc::new(descriptor), path, identity, order.clone());
                child.add(&names, rest);
                entry.below = Below::Open(self.last_id + 1);
                self.openings.open.insert(order, (id, number, self.last_id + 1));
                self.insert(child);
            }
        }
        is_current && self.waits_in == Some(id)
    }

    /// Whether the walk's own thread does tasks, too, rather than wait: it is one of the two.
    pub(crate) const fn walk_helps(&self) -> bool {
        self.measure.depth == 2
    }

    /// The walk waits in this directory, or nowhere.
    pub(crate) const fn waits(&mut self, folder: Option<FolderId>) {
        self.waits_in = folder;
    }

    /// Nothing is to be done any more.
    pub(crate) fn clear(&mut self) {
        *self = Self { busy: self.busy, ..Self::new(self.reads_links) };
    }
}

/// Whether the scan of the file system that a directory is on makes a lookup there unnecessary.
fn spared<'s>(scans: &'s [Arc<Known>], folder: &Folder) -> impl Fn(Leaf) -> bool + use<'s> {
    let scan = scans.iter().find(|scan| scan.dev() == folder.identity.0);
    move |leaf| scan.is_some_and(|scan| scan.has(leaf))
}

/// What is below the entry of this number comes before this, and after all before.
fn below(order: &[u64], number: u64) -> Vec<u64> {
    [order, &[number]].concat()
}

/// The names of a directory come after all that is opened below it.
fn place_of_names(folder: &Folder) -> Vec<u64> {
    below(&folder.order, u64::MAX)
}

#[cfg(test)]
mod tests;
