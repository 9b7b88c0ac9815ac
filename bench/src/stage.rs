//! Where the jobs of a cell run: a bed with one client of each daemon, or with several, or with a
//! bucket.

use std::env;
use std::time::Duration;

use bed::{BedError, Result};

use crate::bucket::{BucketKind, Buckets};
use crate::cell::{Cell, Level, Variant};
use crate::connection::Watch;
use crate::group::{Group, Replica};
use crate::places::Places;
use crate::restored::Restored;
use crate::sample::Side;
use crate::surroundings::free;
use crate::together::Together;
use crate::tree::{Kind, Standing};

/// The tree, a volume of each daemon, and some room.
const SAVED: u64 = 4;
/// What both restore, too.
const RESTORED: u64 = 6;

/// A bed for a cell and its neighbours.
pub enum Stage<'a> {
    /// With one client of each daemon.
    One(Box<Group<'a>>),
    /// With several that are saved at once.
    Together(Box<Together<'a>>),
    /// With one client of each daemon, which save a bucket.
    Bucket(Box<Buckets<'a>>),
}

impl<'a> Stage<'a> {
    /// What a cell needs and this host has not.
    pub fn missing(cell: Cell) -> Option<String> {
        let room = || {
            let copies = if cell.level.is_restore() { RESTORED } else { SAVED };
            let needed = (cell.tree.kind == Kind::Single).then_some(cell.tree.scale as u64 * copies)?;
            let here = free(&env::temp_dir())? >> 30;
            (here < needed).then(|| format!("it needs {needed} GiB of free disk, and there are {here}"))
        };
        let variant = || match cell.variant {
            Variant::Bucket(..) => Buckets::missing(),
            Variant::Changing(changer) => changer.missing(),
            other => Places::missing(other),
        };
        cell.tree.kind.missing().or_else(variant).or_else(room)
    }

    /// Raises the bed; `settings` are lines of ours' `bacula-fd.toml`.
    ///
    /// # Errors
    /// There are settings, and the cell's clients are not one of each daemon.
    pub fn start(
        cell: Cell,
        settings: &[String],
        tree: &'a Standing,
        watch: &'a Watch,
        restored: &'a mut Restored,
    ) -> Result<Self> {
        match cell.variant {
            Variant::Clients(_) | Variant::Bucket(..) if !settings.is_empty() => {
                Err(BedError::Usage(format!("{cell} takes no settings")))
            }
            Variant::Clients(count) => {
                Together::start(cell, count, tree, watch).map(|many| Self::Together(Box::new(many)))
            }
            Variant::Bucket(mounted, in_flight, away) => {
                let round_trip = Duration::from_millis(away.into());
                let kind = BucketKind { mounted, in_flight, round_trip };
                Buckets::start(cell, kind, tree, watch).map(|bucket| Self::Bucket(Box::new(bucket)))
            }
            _ => {
                restored.make_file_system()?;
                Group::start(cell, settings, tree, watch, restored).map(|group| Self::One(Box::new(group)))
            }
        }
    }

    /// Whether the floor takes part in a level.
    pub fn has_floor(&self, level: Level) -> bool {
        matches!(self, Self::One(group) if group.has_floor(level))
    }

    /// The process of a side; the cell's clients are one of each daemon.
    pub fn pid(&mut self, side: Side) -> Result<u32> {
        match self {
            Self::One(group) => group.pid(side),
            Self::Together(_) | Self::Bucket(_) => Err(BedError::Usage("a cell of more than two clients".to_owned())),
        }
    }

    /// One replica of a cell: a job of each side in this order.
    pub fn replica(&mut self, cell: Cell, replica: u32, turns: &[Side]) -> Result<Replica> {
        match self {
            Self::One(group) => {
                group.prepare(cell.level)?;
                group.replica(cell, replica, turns)
            }
            Self::Together(together) => together.replica(cell, replica, turns),
            Self::Bucket(bucket) => bucket.replica(cell, replica, turns),
        }
    }
}
