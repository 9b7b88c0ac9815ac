//! The attributes of a record as short numbers, as far as the job can compare them.

use std::collections::HashMap;

use fd_records::Stat;

use super::varint;

/// Which attributes are kept, beside the times of the last changes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Fields(u8);

impl Fields {
    /// `st_ino`.
    pub(super) const INO: Self = Self(1);
    /// `st_size`.
    pub(super) const SIZE: Self = Self(2);
    /// `st_atime`.
    pub(super) const ATIME: Self = Self(4);
    /// Mode, owner, number of names: many files have them in common.
    pub(super) const CLASS: Self = Self(8);
    /// Everything: the list's attributes are sent again (base jobs).
    pub(super) const ALL: Self = Self(31);

    /// The attributes of both.
    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of these are among them.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Attributes that many files have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Class {
    dev: u64,
    mode: u32,
    nlink: u64,
    uid: u32,
    gid: u32,
    rdev: u64,
    blksize: i64,
}

/// Holds each class once, and encodes attributes.
#[derive(Default)]
pub(super) struct Classes {
    numbers: HashMap<Class, u32>,
    classes: Vec<Class>,
}

impl Classes {
    /// Appends the attributes that `fields` names; times are relative to `epoch`.
    pub(super) fn push_stat(&mut self, out: &mut Vec<u8>, stat: &Stat, fields: Fields, epoch: i64) {
        varint::push_signed(out, stat.mtime.wrapping_sub(epoch));
        varint::push_signed(out, stat.ctime.wrapping_sub(stat.mtime));
        if fields.has(Fields::ATIME) {
            varint::push_signed(out, stat.atime.wrapping_sub(stat.mtime));
        }
        if fields.has(Fields::SIZE) {
            varint::push_signed(out, stat.size);
        }
        if fields.has(Fields::INO) {
            varint::push(out, stat.ino);
        }
        if fields.has(Fields::CLASS) {
            let mut class =
                Class { mode: stat.mode, nlink: stat.nlink, uid: stat.uid, gid: stat.gid, ..Class::default() };
            if fields == Fields::ALL {
                class = Class { dev: stat.dev, rdev: stat.rdev, blksize: stat.blksize, ..class };
            }
            varint::push(out, self.number(class));
        }
        if fields == Fields::ALL {
            varint::push_signed(out, stat.blocks.wrapping_sub(usual_blocks(stat.size)));
        }
    }

    /// Takes what [`Self::push_stat`] appended with the same arguments.
    pub(super) fn take_stat(&self, rest: &mut &[u8], fields: Fields, epoch: i64) -> Stat {
        let mtime = varint::take_signed(rest).wrapping_add(epoch);
        let mut stat = Stat { mtime, ctime: varint::take_signed(rest).wrapping_add(mtime), ..Stat::default() };
        if fields.has(Fields::ATIME) {
            stat.atime = varint::take_signed(rest).wrapping_add(mtime);
        }
        if fields.has(Fields::SIZE) {
            stat.size = varint::take_signed(rest);
        }
        if fields.has(Fields::INO) {
            stat.ino = varint::take(rest);
        }
        if fields.has(Fields::CLASS) {
            let Class { dev, mode, nlink, uid, gid, rdev, blksize } = self.get(varint::take(rest));
            stat = Stat { dev, mode, nlink, uid, gid, rdev, blksize, ..stat };
        }
        if fields == Fields::ALL {
            stat.blocks = varint::take_signed(rest).wrapping_add(usual_blocks(stat.size));
        }
        stat
    }

    fn number(&mut self, class: Class) -> u64 {
        let next = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(class).or_insert(next);
        if number == next {
            self.classes.push(class);
        }
        u64::from(number)
    }

    fn get(&self, number: u64) -> Class {
        usize::try_from(number).ok().and_then(|number| self.classes.get(number)).copied().unwrap_or_default()
    }

    /// Bytes of memory in use.
    pub(super) fn memory(&self) -> usize {
        self.classes.len() * (2 * size_of::<Class>() + 8)
    }
}

/// The usual number of 512-byte blocks of a file of this size.
fn usual_blocks(size: i64) -> i64 {
    size.saturating_add(4095) / 4096 * 8
}
