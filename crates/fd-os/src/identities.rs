//! The host's users and groups, by name and by number. Names may have any bytes, and groups any
//! number of members.

use std::ffi::{CStr, CString, c_char, c_int};
use std::mem::MaybeUninit;

use nix::errno::Errno;

/// The first memory for an entry, in bytes; most fit.
const USUAL: usize = 16 * 1024;
/// The most memory for an entry: that of a group has the names of all its members, which may be
/// some million.
const MOST: usize = 64 * 1024 * 1024;

/// The name of a user; `None` if there is none.
///
/// # Errors
/// When the user database can't be asked now.
pub fn user_name(uid: u32) -> Result<Option<Vec<u8>>, Errno> {
    // SAFETY: `getpwuid_r` does with an entry what `entry` says.
    unsafe { entry(libc::getpwuid_r, uid, |user: &libc::passwd| bytes(user.pw_name)) }
}

/// The name of a group; as [`user_name`].
///
/// # Errors
/// When the group database can't be asked now.
pub fn group_name(gid: u32) -> Result<Option<Vec<u8>>, Errno> {
    // SAFETY: `getgrgid_r` does with an entry what `entry` says.
    unsafe { entry(libc::getgrgid_r, gid, |group: &libc::group| bytes(group.gr_name)) }
}

/// The number of the user of this name; `None` if there is none.
///
/// # Errors
/// When the user database can't be asked now.
pub fn user_number(name: &[u8]) -> Result<Option<u32>, Errno> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // SAFETY: `getpwnam_r` does with an entry what `entry` says; the name lives until it returns.
    unsafe { entry(libc::getpwnam_r, name.as_ptr(), |user: &libc::passwd| user.pw_uid) }
}

/// The number of the group of this name; as [`user_number`].
///
/// # Errors
/// When the group database can't be asked now.
pub fn group_number(name: &[u8]) -> Result<Option<u32>, Errno> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // SAFETY: `getgrnam_r` does with an entry what `entry` says; the name lives until it returns.
    unsafe { entry(libc::getgrnam_r, name.as_ptr(), |group: &libc::group| group.gr_gid) }
}

/// One of the four functions: the key, the entry, memory for its texts, and where it says that it
/// has found the entry.
type Call<K, E> = unsafe extern "C" fn(K, *mut E, *mut c_char, usize, *mut *mut E) -> c_int;

/// Calls the function with more memory until the entry fits, and reads the entry.
///
/// # Safety
/// With this key, `call` writes an entry to its second argument, whose strings end with a NUL and
/// are in the memory of the third and fourth, and then makes the last argument point to it; or it
/// makes that null.
unsafe fn entry<K: Copy, E, T>(call: Call<K, E>, key: K, read: impl FnOnce(&E) -> T) -> Result<Option<T>, Errno> {
    let mut size = USUAL;
    loop {
        let mut texts = Vec::<c_char>::with_capacity(size);
        let mut entry = MaybeUninit::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: entry and memory live until the end of this round, and the size is that of the
        // memory.
        let error = unsafe { call(key, entry.as_mut_ptr(), texts.as_mut_ptr(), texts.capacity(), &raw mut found) };
        match Errno::from_raw(error) {
            // SAFETY: null, or the entry, by the promise of the caller.
            _ if error == 0 => return Ok(unsafe { found.as_ref() }.map(read)),
            // So the C library says that it has no such database.
            Errno::ENOENT | Errno::ESRCH => return Ok(None),
            Errno::ERANGE if size < MOST => size *= 4,
            Errno::EINTR => {}
            errno => return Err(errno),
        }
    }
}

/// The bytes of a string in an entry, while [`entry`] reads it.
fn bytes(text: *const c_char) -> Vec<u8> {
    // SAFETY: it ends with a NUL, by the promise of the caller of `entry`.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_and_others_are_not() {
        assert_eq!((user_name(0), group_name(0)), (Ok(Some(b"root".to_vec())), Ok(Some(b"root".to_vec()))));
        assert_eq!((user_number(b"root"), group_number(b"root")), (Ok(Some(0)), Ok(Some(0))));
        for name in [b"no such user \xff".as_slice(), b"a\0b", b""] {
            assert_eq!((user_number(name), group_number(name)), (Ok(None), Ok(None)));
        }
    }

    static SEVEN: u32 = 7;

    /// An entry that needs `needed` bytes, or an error in place of that.
    // SAFETY: it does what `entry` says, with any key.
    unsafe extern "C" fn fake(needed: usize, _: *mut u32, _: *mut c_char, size: usize, found: *mut *mut u32) -> c_int {
        match needed {
            0 => libc::EIO,
            1 => libc::ENOENT,
            needed if needed > size => libc::ERANGE,
            _ => {
                // SAFETY: the place is that of `entry`.
                unsafe { found.write((&raw const SEVEN).cast_mut()) };
                0
            }
        }
    }

    #[test]
    fn memory_grows_with_the_entry_and_is_bounded() {
        // SAFETY: it does what `entry` says.
        let ask = |needed| unsafe { entry(fake, needed, |entry: &u32| *entry) };
        assert_eq!([2, USUAL, USUAL + 1, MOST].map(ask), [Ok(Some(7)); 4]);
        assert_eq!(ask(MOST + 1), Err(Errno::ERANGE));
        assert_eq!((ask(0), ask(1)), (Err(Errno::EIO), Ok(None)));
    }
}
