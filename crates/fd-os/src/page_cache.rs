//! Which pages of a file are in memory, and reading it without keeping more of them there.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The system call `cachestat` (Linux 6.5), whose number is the same everywhere.
const CACHESTAT: libc::c_long = 451;

/// What `cachestat` is asked.
#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// What it answers, in pages.
#[repr(C)]
#[derive(Default)]
struct Answer {
    cached: u64,
    dirty: u64,
    under_writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How many pages of a regular file's bytes from `offset` on, `len` of them, are in memory. Where
/// the kernel does not tell that (up to Linux 6.4) of a file that is not ours, all of them count.
///
/// # Errors
/// What the kernel says; `offset` must be a multiple of the page size.
pub fn resident_pages(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<u64> {
    if len == 0 {
        return Ok(0);
    }
    cached_pages(file, offset, len).or_else(|_| mapped_pages(file, offset, len))
}

/// Whether the kernel tells of any file that can be read which of its pages are in memory (Linux
/// 6.5), and not only of those that are ours.
pub fn is_told_of_any_file(file: BorrowedFd<'_>) -> bool {
    cached_pages(file, 0, 1).is_ok()
}

/// Whether nearly all pages of a regular file's first `len` bytes are in memory, fifteen of sixteen
/// at least, as far as [`resident_pages`] can tell.
///
/// # Errors
/// What the kernel says.
pub fn is_nearly_resident(file: BorrowedFd<'_>, len: u64) -> io::Result<bool> {
    let pages = len.div_ceil(page_size() as u64);
    Ok(resident_pages(file, 0, len)? >= pages - pages / 16)
}

/// Reads once at `position` to the end of `out`, at most `most` bytes; 0 is the end of the file.
///
/// # Errors
/// What the kernel says. Nothing was read then.
pub fn append(file: BorrowedFd<'_>, out: &mut Vec<u8>, most: usize, position: u64) -> io::Result<usize> {
    append_at(file, out, most, Some(position))
}

/// As [`append`], from where the last read of it has ended; also of a pipe or socket.
///
/// # Errors
/// As [`append`].
pub fn append_next(file: BorrowedFd<'_>, out: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    append_at(file, out, most, None)
}

fn append_at(file: BorrowedFd<'_>, out: &mut Vec<u8>, most: usize, position: Option<u64>) -> io::Result<usize> {
    let too_far = |_| io::Error::from_raw_os_error(libc::EOVERFLOW);
    let offset = position.map(libc::off_t::try_from).transpose().map_err(too_far)?;
    // The kernel refuses a read that would go beyond the greatest length of a file, which a file
    // without any data may have.
    let to_the_greatest = offset.and_then(|offset| usize::try_from(libc::off_t::MAX - offset).ok());
    let most = to_the_greatest.map_or(most, |left| most.min(left));
    out.reserve(most);
    let most = most.min(out.spare_capacity_mut().len());
    let start = out.spare_capacity_mut().as_mut_ptr().cast::<libc::c_void>();
    let result = match offset {
        // SAFETY: the kernel writes at most `most` bytes from `start` on, which are there and
        // belong to `out`.
        None => unsafe { libc::read(file.as_raw_fd(), start, most) },
        // SAFETY: as above.
        Some(offset) => unsafe { libc::pread(file.as_raw_fd(), start, most, offset) },
    };
    let len = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    let end = out.len().saturating_add(len.min(most));
    // SAFETY: the kernel has written the first `len` bytes behind the end, and there was room for
    // `most`.
    unsafe { out.set_len(end) };
    Ok(len)
}

fn cached_pages(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<u64> {
    let range = Range { offset, len };
    let mut answer = Answer::default();
    let flags: libc::c_uint = 0;
    // SAFETY: the kernel reads `range` and writes `answer`, which live here and have the layout of
    // its interface.
    let result = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut answer, flags) };
    if result == 0 { Ok(answer.cached) } else { Err(io::Error::last_os_error()) }
}

fn mapped_pages(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<u64> {
    let mapping = Mapping::new(file, offset, len)?;
    let mut pages = vec![0_u8; mapping.len.get().div_ceil(page_size())];
    // SAFETY: the mapping covers `len` bytes, and `pages` has a byte for each of its pages.
    let result = unsafe { libc::mincore(mapping.start, mapping.len.get(), pages.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages.iter().map(|page| u64::from(page & 1)).sum())
}

/// Bytes of a page of memory.
pub(crate) fn page_size() -> usize {
    // SAFETY: `sysconf` has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| *size > 0).unwrap_or(4096)
}

/// A stretch of a file in the address space. Never looked into, only asked about.
struct Mapping {
    start: *mut libc::c_void,
    len: NonZeroUsize,
}

impl Mapping {
    fn new(file: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<Self> {
        let too_large = |_| io::Error::from_raw_os_error(libc::EOVERFLOW);
        let len = usize::try_from(len).map_err(too_large)?;
        let len = NonZeroUsize::new(len).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let offset = libc::off_t::try_from(offset).map_err(too_large)?;
        let (protection, flags) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: the kernel chooses the address; nothing that exists is replaced.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len.get(), protection, flags, file.as_raw_fd(), offset) };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start, len }) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no pointer into it is left.
        unsafe { libc::munmap(self.start, self.len.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn a_file_of_the_greatest_length_is_read_to_its_end() {
        let file =
            File::from(nix::sys::memfd::memfd_create(c"greatest", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap());
        let end = i64::MAX.cast_unsigned();
        file.set_len(end).unwrap();
        file.write_all_at(b"end", end - 3).unwrap();
        let mut read = Vec::new();
        for (position, expected) in [(end - 5, b"\0\0end".as_slice()), (end, b"")] {
            read.clear();
            assert_eq!(append(file.as_fd(), &mut read, 65_536, position).unwrap(), expected.len());
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn pages_just_written_are_resident() {
        // A disk's page may be freed at any time, one of this file only to be swapped.
        let mut file =
            File::from(nix::sys::memfd::memfd_create(c"pages", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap());
        let page = page_size();
        file.write_all(&vec![7; 10 * page]).unwrap();
        let len = 10 * page as u64;
        assert_eq!(resident_pages(file.as_fd(), 0, len).unwrap(), 10);
        assert_eq!(resident_pages(file.as_fd(), 4 * page as u64, 2 * page as u64).unwrap(), 2);
        assert_eq!(resident_pages(file.as_fd(), 0, 0).unwrap(), 0);
        assert_eq!(mapped_pages(file.as_fd(), 0, len).unwrap(), 10);
        assert!(is_nearly_resident(file.as_fd(), len - 1).unwrap());
        assert!(!is_nearly_resident(file.as_fd(), len + 1).unwrap(), "one page of eleven is not there");
        assert!(is_nearly_resident(file.as_fd(), 0).unwrap());
    }

    #[test]
    fn a_read_appends_to_the_buffer() {
        let path = std::env::temp_dir().join(format!("fd-os-append-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.write_all(b"0123456789").unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut out = b"before".to_vec();
        assert_eq!(append(file.as_fd(), &mut out, 4, 3).unwrap(), 4);
        assert_eq!(out, b"before3456");
        assert_eq!(append(file.as_fd(), &mut out, 1000, 7).unwrap(), 3);
        assert_eq!(append(file.as_fd(), &mut out, 1000, 10).unwrap(), 0);
        assert_eq!(append(file.as_fd(), &mut out, 0, 0).unwrap(), 0);
        assert_eq!(out, b"before3456789");
        assert!(append(file.as_fd(), &mut out, 1, u64::MAX).is_err());
        assert_eq!(out, b"before3456789");
    }

    #[test]
    fn a_refused_call_is_an_error() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(mapped_pages(reader.as_fd(), 0, 4096).is_err());
        assert!(mapped_pages(reader.as_fd(), u64::MAX, 4096).is_err());
    }
}
