//! The data of one file in blocks: read, with holes and blocks of zeros left out (reference 04 §8).
//!
//! Not here: what is done with a block.

use fd_records::{DataLayout, FileType, Stat};
use rustix::io::Errno;

use crate::exchange::Stopped;
use crate::source::Source;

/// Takes blocks of a file.
pub(crate) trait Intake<E> {
    /// The next block is read to the end of this buffer.
    fn room(&mut self) -> &mut Vec<u8>;

    /// A block of `len` bytes, which begins at `position` in the file, was read there.
    fn take(&mut self, position: u64, len: usize) -> Result<(), E>;

    /// The bytes that were read there, if any, are not used.
    fn leave_out(&mut self);
}

/// Reads each block to the same buffer and calls `each` with its position.
pub(crate) struct Scratch<'s, F> {
    pub(crate) block: &'s mut Vec<u8>,
    /// Called before each block is read, also one that is left out.
    pub(crate) before_each: &'s mut dyn FnMut(),
    pub(crate) each: F,
}

impl<E, F: FnMut(u64, &[u8]) -> Result<(), E>> Intake<E> for Scratch<'_, F> {
    fn room(&mut self) -> &mut Vec<u8> {
        (self.before_each)();
        self.block.clear();
        self.block
    }

    fn take(&mut self, position: u64, _len: usize) -> Result<(), E> {
        (self.each)(position, self.block)
    }

    fn leave_out(&mut self) {}
}

/// How a file is cut into blocks, and which of them are left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Bytes of a full block as read from the file.
    pub(crate) block_len: usize,
    /// Blocks have addresses, and those of zeros are left out.
    sparse: bool,
    file_type: FileType,
    /// Size from the attributes.
    size: u64,
    /// The file takes less space on the disk than its size.
    has_holes: bool,
}

impl Cut {
    /// The cut of a file with these attributes. `record_len` is the length of a full record.
    pub(crate) fn new(file_type: FileType, stat: &Stat, sparse: bool, record_len: usize) -> Self {
        let size = u64::try_from(stat.size).unwrap_or_default();
        let on_disk = u64::try_from(stat.blocks).unwrap_or_default().saturating_mul(512);
        Self {
            block_len: if sparse { record_len - DataLayout::ADDRESS_LEN } else { record_len },
            sparse,
            file_type,
            size,
            has_holes: sparse && file_type == FileType::Regular && on_disk < size,
        }
    }

    /// Whether the block of `len` bytes at `position` is left out if it holds nothing but zeros
    /// (reference 04 §8.3).
    pub(crate) fn may_leave_out(&self, position: u64, len: usize) -> bool {
        let full_and_not_last = len == self.block_len && position.saturating_add(len as u64) < self.size;
        let endless = matches!(self.file_type, FileType::Raw | FileType::Fifo) && self.size == 0;
        self.sparse && (full_and_not_last || endless)
    }

    /// Whether a read of `len` bytes at `position` exceeds the size of the attributes.
    fn is_beyond_end(&self, position: u64, len: usize) -> bool {
        self.file_type == FileType::Regular && position.saturating_add(len as u64) > self.size
    }

    /// Whether a read of `len` bytes that ended at `position` was the last one: it was short, and
    /// the file has its size. Saves the read that would return 0.
    fn is_complete(&self, position: u64, len: usize) -> bool {
        self.file_type == FileType::Regular && len < self.block_len && position == self.size
    }
}

/// Finds holes, one after the other, as reading proceeds.
struct Holes {
    /// Up to here there is data, or holes can't be found.
    known_until: u64,
}

impl Holes {
    fn new(source: &Source, cut: &Cut) -> Self {
        Self { known_until: if cut.has_holes && source.knows_holes() { 0 } else { u64::MAX } }
    }

    /// The position of the next block that is not certainly left out because it lies in a hole,
    /// from `position` on. The stream is the same as if the hole had been read.
    fn skip(&mut self, source: &mut Source, cut: &Cut, position: u64) -> Result<u64, Errno> {
        if position < self.known_until {
            return Ok(position);
        }
        let Some(data) = source.next_data(position) else {
            self.known_until = u64::MAX;
            return Ok(position);
        };
        self.known_until = source.next_hole(data).unwrap_or(u64::MAX);
        let block_len = cut.block_len as u64;
        // Counts blocks that end before the data, and before the end of the file by its attributes.
        let last_end = data.min(cut.size.saturating_sub(1));
        let blocks = last_end.saturating_sub(position) / block_len;
        let next = position.saturating_add(blocks.saturating_mul(block_len));
        source.seek(next)?;
        Ok(next)
    }
}

/// How reading ended.
#[derive(Debug)]
pub(crate) enum DataEnd {
    /// At the end of the data.
    Complete,
    /// With an error; what was read before is sent.
    ReadError(Errno),
}

/// Reads a source to its end and passes each block that is not left out to `intake`.
pub(crate) fn read_blocks<E: From<Stopped>>(
    source: &mut Source,
    cut: &Cut,
    is_stopped: &dyn Fn() -> bool,
    intake: &mut impl Intake<E>,
) -> Result<DataEnd, E> {
    let mut position = 0_u64;
    let mut holes = Holes::new(source, cut);
    loop {
        position = match holes.skip(source, cut, position) {
            Ok(next) => next,
            Err(errno) => return Ok(DataEnd::ReadError(errno)),
        };
        let room = intake.room();
        let before = room.len();
        let len = match source.read(room, cut.block_len, is_stopped) {
            Ok(Some(len)) if len > 0 => len,
            nothing => {
                intake.leave_out();
                return match nothing {
                    Ok(Some(_)) => Ok(DataEnd::Complete),
                    Ok(None) => Err(Stopped.into()),
                    Err(errno) => Ok(DataEnd::ReadError(errno)),
                };
            }
        };
        if cut.is_beyond_end(position, len) && source.has_grown() {
            // The file grows. Its attributes stand before the data, so the data must have their
            // size.
            let rest = usize::try_from(cut.size.saturating_sub(position)).unwrap_or(0);
            room.truncate(before.saturating_add(rest));
            if rest == 0 {
                intake.leave_out();
            } else {
                intake.take(position, rest)?;
            }
            return Ok(DataEnd::Complete);
        }
        if cut.may_leave_out(position, len) && is_zero(room.get(before..).unwrap_or_default()) {
            intake.leave_out();
        } else {
            intake.take(position, len)?;
        }
        position = position.saturating_add(len as u64);
        if cut.is_complete(position, len) {
            return Ok(DataEnd::Complete);
        }
    }
}

/// Whether a block holds nothing but zeros.
pub(crate) fn is_zero(block: &[u8]) -> bool {
    // Without branches in a chunk, so that the compiler uses vector instructions.
    block.chunks(256).all(|stretch| stretch.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(file_type: FileType, size: i64, sparse: bool) -> Cut {
        Cut::new(file_type, &Stat { size, ..Stat::default() }, sparse, 65_536)
    }

    /// Reference 04 §8.3: full blocks before the end only, and each block of a device or fifo.
    #[test]
    fn which_blocks_of_zeros_are_left_out() {
        let file = cut(FileType::Regular, 3 * 65_528, true);
        assert_eq!(file.block_len, 65_528);
        assert!(file.may_leave_out(0, 65_528) && file.may_leave_out(65_528, 65_528));
        assert!(!file.may_leave_out(2 * 65_528, 65_528), "the last one");
        assert!(!file.may_leave_out(0, 65_527), "a short read");
        assert!(!file.may_leave_out(9 * 65_528, 65_528), "behind the size that the file had");
        for endless in [FileType::Raw, FileType::Fifo] {
            assert!(cut(endless, 0, true).may_leave_out(123, 4096));
            assert!(!cut(endless, 0, false).may_leave_out(123, 4096));
        }
        assert!(!cut(FileType::Regular, 3 * 65_528, false).may_leave_out(0, 65_536));
    }

    #[test]
    fn a_file_is_complete_after_a_short_read_at_its_size() {
        let file = cut(FileType::Regular, 100, false);
        assert!(file.is_complete(100, 100));
        assert!(!file.is_complete(90, 90), "shorter than it was: ask again");
        assert!(!cut(FileType::Regular, 65_536, false).is_complete(65_536, 65_536), "a full block may not be the last");
        assert!(!cut(FileType::Raw, 0, false).is_complete(0, 0));
    }

    #[test]
    fn a_single_byte_anywhere_makes_a_block_nonzero() {
        let mut block = vec![0; 65_528];
        assert!(is_zero(&block));
        for at in [0, 255, 256, 65_527] {
            block[at] = 1;
            assert!(!is_zero(&block));
            block[at] = 0;
        }
    }
}
