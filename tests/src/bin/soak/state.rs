//! What outlives a run: the seed, which rounds are done, and all counts. A file of lines, replaced
//! whole.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bed::{BedError, Result};

use crate::counts::Counts;

/// The state in a folder.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    /// Decides about every round.
    pub(crate) seed: u64,
    /// The first number that was never given out.
    next: u64,
    /// Given out and not done: when a run is ended in the middle, these are done first by the next.
    begun: BTreeSet<u64>,
    /// Of all runs.
    pub(crate) counts: Counts,
}

impl State {
    /// Reads the state, or begins one; `seed` begins anew if it is another one.
    pub(crate) fn open(folder: &Path, seed: Option<u64>) -> Result<Self> {
        fs::create_dir_all(folder).map_err(BedError::file("create", folder))?;
        let mut state = Self {
            folder: folder.to_owned(),
            seed: seed.unwrap_or(1),
            next: 1,
            begun: BTreeSet::new(),
            counts: Counts::default(),
        };
        let path = state.path();
        let Ok(text) = fs::read_to_string(&path) else { return Ok(state) };
        let mut found = Self { folder: folder.to_owned(), begun: BTreeSet::new(), counts: Counts::default(), ..state };
        for line in text.lines() {
            let number = line.split_once(' ').and_then(|(name, number)| Some((name, number.parse::<u64>().ok()?)));
            match number {
                Some(("seed", number)) => found.seed = number,
                Some(("next", number)) => found.next = number,
                Some(("begun", number)) => _ = found.begun.insert(number),
                Some((name, number)) if found.counts.take(name, number) => {}
                _ => return Err(BedError::Usage(format!("{}: not a line of a state: {line:?}", path.display()))),
            }
        }
        if seed.is_none_or(|seed| seed == found.seed) {
            return Ok(found);
        }
        state = Self { next: 1, counts: Counts::default(), seed: seed.unwrap_or(1), ..found };
        state.begun.clear();
        Ok(state)
    }

    /// The number of a round to be done now.
    pub(crate) fn take(&mut self, running: &BTreeSet<u64>) -> Result<u64> {
        let left = self.begun.iter().copied().find(|round| !running.contains(round));
        let round = left.unwrap_or(self.next);
        self.next = self.next.max(round + 1);
        self.begun.insert(round);
        self.save()?;
        Ok(round)
    }

    /// A round is done.
    pub(crate) fn done(&mut self, round: u64, counts: &Counts) -> Result<()> {
        self.begun.remove(&round);
        self.counts.add_all(counts);
        self.save()
    }

    /// Keeps a report of a round.
    pub(crate) fn report(&self, round: u64, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(format!("round-{round}.txt"));
        fs::write(&path, text).map_err(BedError::file("write", &path))?;
        Ok(path)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn save(&self) -> Result<()> {
        let mut text = format!("seed {}\nnext {}\n", self.seed, self.next);
        for round in &self.begun {
            let _ = writeln!(text, "begun {round}");
        }
        text.push_str(&self.counts.lines());
        let (new, path) = (self.folder.join("state.new"), self.path());
        fs::write(&new, text).map_err(BedError::file("write", &new))?;
        fs::rename(&new, &path).map_err(BedError::file("rename to", &path))
    }
}

#[cfg(test)]
mod tests {
    use bed::Folder;

    use super::*;
    use crate::counts::Count;

    #[test]
    fn a_round_that_was_not_done_is_taken_again() {
        let folder = Folder::new("soak-state").unwrap();
        let nothing = BTreeSet::new();
        let mut state = State::open(folder.path(), Some(7)).unwrap();
        assert_eq!((state.take(&nothing).unwrap(), state.take(&BTreeSet::from([1])).unwrap()), (1, 2));
        let mut counts = Counts::default();
        counts.add(Count::Jobs, 5);
        state.done(1, &counts).unwrap();
        let mut again = State::open(folder.path(), None).unwrap();
        assert_eq!((again.seed, again.counts.get(Count::Jobs)), (7, 5));
        assert_eq!(again.take(&nothing).unwrap(), 2);
        assert_eq!(again.take(&BTreeSet::from([2])).unwrap(), 3);
        let other = State::open(folder.path(), Some(8)).unwrap();
        assert_eq!((other.seed, other.next, other.counts.get(Count::Jobs)), (8, 1, 0));
    }
}
