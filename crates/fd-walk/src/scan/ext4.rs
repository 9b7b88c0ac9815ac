//! The inode tables of ext4, and of ext2 and ext3 as the ext4 driver mounts them.
//!
//! They are read through the block device, buffered. The kernel keeps super block, group
//! descriptors and inode tables in the buffers of that very device, and changes them there as soon
//! as an inode changes; only with `lazytime` later, unless the file system is synchronized before.
//! So what is read is what a lookup would find. Two things may be read half-changed: an inode and a
//! descriptor that are just being changed. Of the inode, each attribute is old or new; the
//! descriptor's checksum is wrong, and its group is left out.
//!
//! What is left out is looked up by the walk as ever. What isn't known here is refused.

use fd_records::Stat;

use super::checksum::{crc16, crc32c};
use super::table::{Inode, Refusal};

/// Where the super block is, and its size.
const SUPER_AT: u64 = 1024;
const SUPER_LEN: usize = 1024;
/// Bytes of an inode that all have.
const INODE_LEN: usize = 128;
/// Read at once.
const PIECE: u64 = 1 << 20;
/// The tries to read a descriptor whose checksum is wrong.
const TRIES: usize = 3;

/// Features that matter here, of the three kinds.
mod feature {
    /// All that change nothing where inodes are.
    pub(super) const COMPATIBLE: u32 = 0x1fff;
    pub(super) const SPARSE_SUPER2: u32 = 0x200;

    /// Without compression, a journal of its own, data in directories, and folded names.
    pub(super) const INCOMPATIBLE: u32 = 0x1_e7d6;
    pub(super) const META_BG: u32 = 0x10;
    pub(super) const BITS_64: u32 = 0x80;
    pub(super) const CSUM_SEED: u32 = 0x2000;

    /// Without snapshots and replicas.
    pub(super) const READ_ONLY: u32 = 0x1_f77f;
    pub(super) const SPARSE_SUPER: u32 = 1;
    pub(super) const GDT_CSUM: u32 = 0x10;
    pub(super) const METADATA_CSUM: u32 = 0x400;
}

/// Reads the device: fills the bytes from this position on.
pub(crate) trait Device: Send + Sync {
    /// # Errors
    /// The kernel's; also if the device ends before.
    fn read(&self, position: u64, bytes: &mut [u8]) -> std::io::Result<()>;
}

impl<D: Device> Device for &D {
    fn read(&self, position: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        (**self).read(position, bytes)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes)
}

/// How the descriptors, and the inodes, are protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Checksums {
    None,
    /// The descriptors only.
    Descriptors,
    /// Everything, from this seed on.
    All(u32),
}

/// Which groups beside the first one have a copy of the super block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Backups {
    All,
    /// The second one, and those whose numbers are powers of 3, 5 and 7.
    Sparse,
    Two([u32; 2]),
}

/// Where the inodes of a group are.
struct InodeTable {
    /// In bytes.
    begin: u64,
    /// So many were ever used.
    used: u32,
    /// The rest is zeros.
    is_zeroed: bool,
}

/// What the super block says.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Layout {
    block_len: u64,
    blocks: u64,
    first_block: u64,
    blocks_per_group: u64,
    groups: u32,
    inodes_per_group: u32,
    inode_len: usize,
    descriptor_len: usize,
    backups: Backups,
    /// From this block of descriptors on, they are spread.
    first_meta: u64,
    uuid: [u8; 16],
    checksums: Checksums,
}

impl Layout {
    fn parse(block: &[u8; SUPER_LEN]) -> Result<Self, Refusal> {
        const MAGIC: u16 = 0xef53;
        const HAS_ERRORS: u16 = 2;
        const CRC32C: u8 = 1;
        const SHORT_OWNERS: u32 = 0x20;
        let (u16, u32) = (|at| u16_at(block, at), |at| u32_at(block, at));
        if u16(0x38) != MAGIC {
            return Err(Refusal::Structure("magic number"));
        }
        // The revision, and whose program has made it: Linux.
        if u32(0x4c) != 1 || u32(0x48) != 0 {
            return Err(Refusal::Unknown("revision"));
        }
        if u16(0x3a) & HAS_ERRORS != 0 {
            return Err(Refusal::Structure("state"));
        }
        let (compatible, incompatible, read_only) = (u32(0x5c), u32(0x60), u32(0x64));
        if compatible & !feature::COMPATIBLE != 0
            || incompatible & !feature::INCOMPATIBLE != 0
            || read_only & !feature::READ_ONLY != 0
        {
            return Err(Refusal::Unknown("feature"));
        }
        // The kernel takes half of each owner then, without a word in its table of mounts.
        if u32(0x100) & SHORT_OWNERS != 0 {
            return Err(Refusal::Unknown("mount option"));
        }
        let uuid = block.get(0x68..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        let checksums = if read_only & feature::METADATA_CSUM != 0 {
            let sum = crc32c(!0, block.get(..0x3fc).unwrap_or_default());
            if block.get(0x175) != Some(&CRC32C) || sum != u32(0x3fc) {
                return Err(Refusal::Structure("checksum of the super block"));
            }
            let has_seed = incompatible & feature::CSUM_SEED != 0;
            Checksums::All(if has_seed { u32(0x270) } else { crc32c(!0, &uuid) })
        } else if read_only & feature::GDT_CSUM != 0 {
            Checksums::Descriptors
        } else {
            Checksums::None
        };
        let is_wide = incompatible & feature::BITS_64 != 0;
        let block_len = 1024_u64.checked_shl(u32(0x18)).filter(|len| *len <= 65_536);
        let block_len = block_len.ok_or(Refusal::Structure("block size"))?;
        let layout = Self {
            block_len,
            blocks: u64::from(u32(0x4)) | if is_wide { u64::from(u32(0x150)) << 32 } else { 0 },
            first_block: u32(0x14).into(),
            blocks_per_group: u32(0x20).into(),
            groups: u32(0).checked_div(u32(0x28)).unwrap_or(0),
            inodes_per_group: u32(0x28),
            inode_len: u16(0x58).into(),
            descriptor_len: if is_wide { u16(0xfe).into() } else { 32 },
            backups: if compatible & feature::SPARSE_SUPER2 != 0 {
                Backups::Two([u32(0x24c), u32(0x250)])
            } else if read_only & feature::SPARSE_SUPER != 0 {
                Backups::Sparse
            } else {
                Backups::All
            },
            first_meta: if incompatible & feature::META_BG != 0 { u32(0x104).into() } else { u64::MAX },
            uuid,
            checksums,
        };
        layout.check(u32(0))?;
        Ok(layout)
    }

    fn check(&self, inodes: u32) -> Result<(), Refusal> {
        let blocks = self.blocks.saturating_sub(self.first_block);
        let is_block_bits = u64::from(self.inodes_per_group) <= self.block_len * 8;
        let is_good = self.blocks <= 1 << 46
            && self.inodes_per_group > 0
            && is_block_bits
            && inodes.checked_rem(self.inodes_per_group) == Some(0)
            && self.blocks_per_group > 0
            && blocks.div_ceil(self.blocks_per_group) == u64::from(self.groups)
            && self.first_block <= 1
            && self.inode_len.is_power_of_two()
            && (INODE_LEN as u64..=self.block_len).contains(&(self.inode_len as u64))
            && self.descriptor_len.is_power_of_two()
            && (32..=1024).contains(&self.descriptor_len);
        if is_good { Ok(()) } else { Err(Refusal::Structure("super block")) }
    }

    /// Whether a group has a copy of the super block.
    fn has_super(&self, group: u64) -> bool {
        let is_power = |base: u64| {
            std::iter::successors(Some(base), |power| power.checked_mul(base))
                .take_while(|power| *power <= group)
                .any(|power| power == group)
        };
        match self.backups {
            _ if group == 0 => true,
            Backups::All => true,
            Backups::Sparse => group == 1 || [3, 5, 7].into_iter().any(is_power),
            Backups::Two(groups) => groups.iter().any(|backup| u64::from(*backup) == group),
        }
    }

    /// Where the descriptor of a group is, in bytes.
    fn descriptor_at(&self, group: u32) -> u64 {
        let in_block = self.block_len / self.descriptor_len as u64;
        let (number, place) = (u64::from(group) / in_block, u64::from(group) % in_block);
        let super_block = SUPER_AT / self.block_len;
        let block = if number < self.first_meta {
            super_block + 1 + number
        } else {
            let first_group = number * in_block;
            // The super block of the first group may be the second block of the disk.
            let shifted = u64::from(number == 0 && self.block_len == 1024 && self.first_block == 0);
            self.first_block + first_group * self.blocks_per_group + u64::from(self.has_super(first_group)) + shifted
        };
        block * self.block_len + place * self.descriptor_len as u64
    }

    /// The table of a group; `None` if the descriptor makes no sense.
    fn table(&self, group: u32, descriptor: &[u8]) -> Option<InodeTable> {
        const NO_INODES: u16 = 1;
        const ZEROED: u16 = 4;
        let rest = descriptor.get(0x20..).unwrap_or_default();
        let is_right = match self.checksums {
            Checksums::None => true,
            Checksums::Descriptors => {
                let sum = crc16(crc16(!0, &self.uuid), &group.to_le_bytes());
                let sum = crc16(crc16(sum, descriptor.get(..0x1e)?), rest);
                sum == u16_at(descriptor, 0x1e)
            }
            Checksums::All(seed) => {
                let sum = crc32c(seed, &group.to_le_bytes());
                let sum = crc32c(crc32c(crc32c(sum, descriptor.get(..0x1e)?), &[0; 2]), rest);
                sum & 0xffff == u32::from(u16_at(descriptor, 0x1e))
            }
        };
        let high = |at: usize| if self.descriptor_len >= 64 { at } else { usize::MAX };
        let (mut begin, mut unused, flags) = (u64::from(u32_at(descriptor, 0x8)), 0, u16_at(descriptor, 0x12));
        begin |= u64::from(u32_at(descriptor, high(0x28))) << 32;
        if self.checksums != Checksums::None {
            unused = u32::from(u16_at(descriptor, 0x1c)) | u32::from(u16_at(descriptor, high(0x32))) << 16;
            if flags & NO_INODES != 0 {
                unused = self.inodes_per_group;
            }
        }
        let used = self.inodes_per_group.checked_sub(unused)?;
        let len = (u64::from(self.inodes_per_group) * self.inode_len as u64).div_ceil(self.block_len);
        let is_inside = begin > self.first_block && begin.checked_add(len)? <= self.blocks;
        let is_zeroed = unused == 0 || flags & ZEROED != 0;
        (is_right && is_inside).then(|| InodeTable { begin: begin * self.block_len, used, is_zeroed })
    }

    /// An inode of a table; `None` if it is free, or its attributes can't be trusted.
    fn inode(&self, ino: u32, bytes: &[u8]) -> Option<Inode> {
        const ENCRYPTED: u32 = 0x800;
        let (mode, links) = (u16_at(bytes, 0), u16_at(bytes, 0x1a));
        if mode == 0 || links == 0 {
            return None;
        }
        let extra = usize::from(u16_at(bytes, 0x80));
        let is_large = self.inode_len > INODE_LEN;
        if is_large && (!extra.is_multiple_of(4) || INODE_LEN + extra > self.inode_len) {
            return None;
        }
        if let Checksums::All(seed) = self.checksums
            && !is_right(seed, ino, bytes, if is_large { extra } else { 0 })
        {
            return None;
        }
        // Times before 1970 have had two forms; such an inode is looked up.
        let time = |at: usize, more: usize| {
            let has_more = is_large && INODE_LEN + extra >= more + 4;
            let epoch = if has_more { u32_at(bytes, more) & 3 } else { 0 };
            let seconds = u32_at(bytes, at);
            (seconds <= i32::MAX.cast_unsigned()).then_some(i64::from(seconds) | i64::from(epoch) << 32)
        };
        let wide = |low: usize, high: usize| u32::from(u16_at(bytes, low)) | u32::from(u16_at(bytes, high)) << 16;
        let is = |file_type: u32| u32::from(mode) & Stat::MODE_TYPE == file_type;
        // Of such a link, a lookup tells the size of its target in plain text. Of what is no file,
        // only some file systems have the second part of the size.
        let (high, is_encrypted) = (i64::from(u32_at(bytes, 0x6c)), u32_at(bytes, 0x20) & ENCRYPTED != 0);
        if is(Stat::MODE_SYMLINK) && is_encrypted || !is(Stat::MODE_REGULAR) && high != 0 {
            return None;
        }
        Some(Inode {
            ino: ino.into(),
            ctime: time(0xc, 0x84)?,
            mtime: time(0x10, 0x88)?,
            mode: mode.into(),
            nlink: links.into(),
            uid: wide(0x2, 0x78),
            gid: wide(0x18, 0x7a),
            size: i64::from(u32_at(bytes, 0x4)) | high << 32,
        })
    }
}

/// Whether the checksum of an inode is right.
fn is_right(seed: u32, ino: u32, bytes: &[u8], extra: usize) -> bool {
    let part = |range: std::ops::Range<usize>| bytes.get(range).unwrap_or_default();
    let sum = crc32c(crc32c(seed, &ino.to_le_bytes()), part(0x64..0x68));
    let mut sum = crc32c(crc32c(crc32c(sum, part(0..0x7c)), &[0; 2]), part(0x7e..0x80));
    let has_high = extra >= 4;
    if has_high {
        sum = crc32c(crc32c(crc32c(sum, part(0x80..0x82)), &[0; 2]), part(0x84..bytes.len()));
    } else {
        sum = crc32c(sum, part(0x80..bytes.len()));
    }
    let stored = u32::from(u16_at(bytes, 0x7c));
    if has_high { sum == stored | u32::from(u16_at(bytes, 0x82)) << 16 } else { sum & 0xffff == stored }
}

/// See the module.
pub(crate) struct Ext4<D> {
    device: D,
    layout: Layout,
}

impl<D: Device> Ext4<D> {
    /// Reads the super block.
    pub(crate) fn new(device: D) -> Result<Self, Refusal> {
        let layout = read_layout(&device)?;
        Ok(Self { device, layout })
    }

    /// How many inodes are to be read: those that were ever used, or all where that is not known.
    ///
    /// The kernel may still have to zero what was never used, in the first hours of a file system.
    /// It does so past the buffers of the device, into which the disk's read-ahead would bring what
    /// was there before, and which it takes for the inodes later. Such a file system is refused.
    pub(crate) fn inodes(&self) -> Result<u64, Refusal> {
        let mut inodes = 0;
        for group in 0..self.layout.groups {
            let Some(table) = self.table_of(group)? else { continue };
            if !table.is_zeroed {
                return Err(Refusal::Unknown("rest of a table"));
            }
            inodes += u64::from(table.used);
        }
        Ok(inodes)
    }

    pub(crate) const fn groups(&self) -> u32 {
        self.layout.groups
    }

    /// Passes on the inodes of one group until it is told to stop. What can't be trusted is left
    /// out.
    pub(crate) fn group(&self, group: u32, take: &mut dyn FnMut(Inode) -> bool) -> Result<(), Refusal> {
        let Some(InodeTable { begin, used, .. }) = self.table_of(group)? else { return Ok(()) };
        let len = self.layout.inode_len;
        let end = begin + u64::from(used) * len as u64;
        let (mut at, mut ino) = (begin, group.saturating_mul(self.layout.inodes_per_group));
        let mut piece = Vec::new();
        while at < end {
            piece.resize(usize::try_from((end - at).min(PIECE)).unwrap_or(0), 0);
            self.device.read(at, &mut piece)?;
            at += piece.len() as u64;
            for bytes in piece.chunks_exact(len) {
                ino = ino.saturating_add(1);
                if self.layout.inode(ino, bytes).is_some_and(|inode| !take(inode)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// All groups were read: whether that was all.
    pub(crate) fn finish(&self) -> Result<(), Refusal> {
        // It has grown meanwhile.
        if read_layout(&self.device)? == self.layout { Ok(()) } else { Err(Refusal::Structure("super block")) }
    }

    fn table_of(&self, group: u32) -> Result<Option<InodeTable>, Refusal> {
        let mut descriptor = vec![0; self.layout.descriptor_len];
        for _ in 0..TRIES {
            self.device.read(self.layout.descriptor_at(group), &mut descriptor)?;
            let table = self.layout.table(group, &descriptor);
            if table.is_some() {
                return Ok(table);
            }
        }
        Ok(None)
    }
}

fn read_layout(device: &impl Device) -> Result<Layout, Refusal> {
    let mut refused = Refusal::Structure("super block");
    // Its checksum is wrong while the kernel changes it.
    for _ in 0..TRIES {
        let mut block = [0; SUPER_LEN];
        device.read(SUPER_AT, &mut block)?;
        match Layout::parse(&block) {
            Ok(layout) => return Ok(layout),
            Err(refusal) => refused = refusal,
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests;
