//! Where the jobs of a cell run: a bed with one client of each daemon, or with several, or with a
//! bucket.

use std::env;

use bed::{Result, SlowStorage};

use crate::bucket::Buckets;
use crate::cell::{Cell, Level, Variant};
use crate::connection::Watch;
use crate::group::{Group, Replica};
use crate::restored::Restored;
use crate::sample::Side;
use crate::surroundings::free;
use crate::together::Together;
use crate::tree::{Kind, Standing};

/// The tree, two volumes of each daemon or the volume and what is restored of it, and some room.
const COPIES: u64 = 6;

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
        let storage = || cell.variant.delay().and_then(|_| SlowStorage::missing()).map(str::to_owned);
        let room = || {
            let needed = (cell.tree.kind == Kind::Single).then_some(cell.tree.scale as u64 * COPIES)?;
            let here = free(&env::temp_dir())? >> 30;
            (here < needed).then(|| format!("it needs {needed} GiB of free disk, and there are {here}"))
        };
        let bucket = || if matches!(cell.variant, Variant::Bucket(..)) { Buckets::missing() } else { None };
        cell.tree.kind.missing().or_else(storage).or_else(bucket).or_else(room)
    }

    /// Raises the bed.
    pub fn start(cell: Cell, tree: &'a Standing, watch: &'a Watch, restored: &'a mut Restored) -> Result<Self> {
        match cell.variant {
            Variant::Clients(count) => {
                Together::start(cell, count, tree, watch).map(|many| Self::Together(Box::new(many)))
            }
            Variant::Bucket(mounted, in_flight) => {
                Buckets::start(cell, (mounted, in_flight), tree, watch).map(|bucket| Self::Bucket(Box::new(bucket)))
            }
            _ => Group::start(cell, tree, watch, restored).map(|group| Self::One(Box::new(group))),
        }
    }

    /// Whether the floor takes part in a level.
    pub fn has_floor(&self, level: Level) -> bool {
        matches!(self, Self::One(group) if group.has_floor(level))
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
