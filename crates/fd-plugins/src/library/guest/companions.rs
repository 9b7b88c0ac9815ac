//! The distribution's libraries, for plugins that were made for the daemon which has them loaded
//! (reference 07 §3.9).

use std::ffi::{OsStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::{exports, libbac};
use crate::library::values::c_text;

/// How the names of the libraries begin, in the order in which they need each other, and what
/// follows in the package.
const LIBRARIES: [(&str, &str); 3] =
    [("libbac-", "libbac-15.0.3.so"), ("libbaccfg-", "libbaccfg-15.0.3.so"), ("libbacfind-", "libbacfind-15.0.3.so")];
/// Bytes of `my_name`, the last NUL included.
const LONGEST_NAME: usize = 30;

/// Whether a library can't be opened because these are missing.
pub(super) fn are_missing(error: &str) -> bool {
    error.contains("undefined symbol") || error.contains("libbac")
}

/// Where the distribution has them, and where its daemon finds them for plugins of any directory.
const DISTRIBUTION: &str = "/usr/lib/bacula";

/// Loads them: those beside the plugin, or else those of the distribution, or those that the system
/// finds. Those that are not there are left out.
pub(super) fn load(plugin: &Path, working_directory: &[u8], daemon: &[u8]) {
    exports::keep();
    let beside = plugin.parent().unwrap_or(Path::new("/"));
    for (start, name) in LIBRARIES {
        let places = [beside, Path::new(DISTRIBUTION)];
        let path = places.into_iter().find_map(|place| found(place, start)).unwrap_or_else(|| PathBuf::from(name));
        // SAFETY: they are the distribution's, like the plugin.
        let Ok(library) = (unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }) else { continue };
        // The plugin uses it as long as this process lives.
        let library = ManuallyDrop::new(library);
        set_up(&library, working_directory, daemon);
        libbac::set_up(&library);
    }
}

fn found(directory: &Path, start: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    let fits = |name: &OsStr| name.as_bytes().starts_with(start.as_bytes()) && name.as_bytes().ends_with(b".so");
    let mut fitting: Vec<_> = entries.flatten().map(|entry| entry.file_name()).filter(|name| fits(name)).collect();
    fitting.sort_unstable();
    fitting.pop().map(|name| directory.join(name))
}

/// Sets the variables that a daemon sets, where this library has them.
fn set_up(library: &Library, working_directory: &[u8], daemon: &[u8]) {
    // SAFETY: the variable of this name is the address of a text.
    if let Ok(variable) = unsafe { library.get::<*mut *mut c_char>(b"working_directory\0") } {
        let text = c_text(working_directory).into_raw();
        // SAFETY: as above; the text stays.
        unsafe { **variable = text };
    }
    // SAFETY: the variable of this name is an array of characters.
    if let Ok(variable) = unsafe { library.get::<*mut c_void>(b"my_name\0") } {
        let name = c_text(daemon.get(..daemon.len().min(LONGEST_NAME - 1)).unwrap_or_default());
        let bytes = name.as_bytes_with_nul();
        // SAFETY: it has more room than this.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), variable.cast(), bytes.len()) };
    }
    // SAFETY: the function of this name is of this type.
    if let Ok(function) = unsafe { library.get(b"_Z10open_bpipePciPKcPS_\0") } {
        exports::set_open_bpipe(*function);
    }
}
