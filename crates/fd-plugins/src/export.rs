//! A plugin in Rust as a library that a daemon loads: the stock one, or ferrofd (reference 07 §2.3,
//! §3). [`export!`](crate::export!) makes the two functions that a daemon looks up.
//!
//! - `convert`: between the structures of C and those of Rust;
//! - `daemon`: the daemon's functions as a [`Host`](crate::Host);
//! - `functions`: the plugin's functions for the daemon.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use crate::api::plugin::Plugin;
use crate::library::abi::{DaemonFunctions, DaemonInfo, MAGIC, PluginInfoPacket, VERSION};

#[allow(clippy::multiple_unsafe_ops_per_block, reason = "all fields of a packet are right for one reason")]
mod convert;
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "a daemon vouches for all that it hands over")]
mod daemon;
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "a daemon vouches for all that it hands over")]
mod functions;

pub use fd_messages::MessageType;
pub use fd_records::{FileType, MetadataKind, Stat};

/// What a library says of its plugin, beside the plugin's version.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Who has written it.
    pub author: &'static CStr,
    /// What it does.
    pub description: &'static CStr,
}

/// The license that both daemons accept. It says that the library may be loaded into a program
/// under the AGPL.
const LICENSE: &CStr = c"AGPLv3";
/// Magic of `pInfo`.
const MAGIC_TEXT: &CStr = c"*FDPluginData*";

/// Hands a plugin over to a daemon. 0, or 2 if this is not done.
///
/// # Safety
/// `daemon` points to `bInfo`, `functions` to `bFuncs` for as long as the library is loaded, and
/// the other two are places for addresses: what a daemon gives to `loadPlugin`.
pub unsafe fn load(
    plugin: Arc<dyn Plugin>,
    about: About,
    daemon: *mut c_void,
    functions: *const c_void,
    info: *mut *mut c_void,
    offered: *mut *mut c_void,
) -> c_int {
    const ERROR: c_int = 2;
    debug_assert_eq!(MAGIC_TEXT.to_bytes(), MAGIC);
    // SAFETY: the caller vouches for it.
    let Some(daemon) = (unsafe { daemon.cast::<DaemonInfo>().as_ref() }) else { return ERROR };
    // SAFETY: the same.
    let Some(functions) = (unsafe { functions.cast::<DaemonFunctions>().as_ref() }) else { return ERROR };
    if daemon.version != VERSION || info.is_null() || offered.is_null() {
        return ERROR;
    }
    let Ok(version) = std::ffi::CString::new(plugin.info().version.clone()) else { return ERROR };
    let Some(own) = functions::offer(plugin, *functions) else { return ERROR };
    // A daemon loads a library once, and keeps what it gets.
    let packet = Box::leak(Box::new(PluginInfoPacket {
        size: u32::try_from(size_of::<PluginInfoPacket>()).unwrap_or_default(),
        version: VERSION,
        magic: MAGIC_TEXT.as_ptr(),
        license: LICENSE.as_ptr(),
        author: about.author.as_ptr(),
        date: c"".as_ptr(),
        plugin_version: version.into_raw(),
        description: about.description.as_ptr(),
    }));
    // SAFETY: the caller vouches for both places.
    unsafe { info.write(std::ptr::from_mut(packet).cast()) };
    // SAFETY: the same.
    unsafe { offered.write(std::ptr::from_mut(own).cast()) };
    0
}

/// Makes a library of a plugin: `fd_plugins::export!(MyPlugin::new());` in a crate of type
/// `cdylib`. Installed as `NAME-fd.so` in the `Plugin Directory`, it is the plugin NAME.
#[macro_export]
macro_rules! export {
    ($plugin:expr) => {
        /// What a daemon calls to load the plugin.
        ///
        /// # Safety
        /// For daemons only.
        #[unsafe(no_mangle)]
        #[allow(unsafe_code, non_snake_case, reason = "the interface of C")]
        pub unsafe extern "C" fn loadPlugin(
            daemon: *mut ::core::ffi::c_void,
            functions: *const ::core::ffi::c_void,
            info: *mut *mut ::core::ffi::c_void,
            offered: *mut *mut ::core::ffi::c_void,
        ) -> ::core::ffi::c_int {
            const fn text(bytes: &'static [u8]) -> &'static ::core::ffi::CStr {
                match ::core::ffi::CStr::from_bytes_until_nul(bytes) {
                    Ok(text) => text,
                    Err(_) => c"",
                }
            }
            let about = $crate::export::About {
                author: text(concat!(env!("CARGO_PKG_AUTHORS"), "\0").as_bytes()),
                description: text(concat!(env!("CARGO_PKG_DESCRIPTION"), "\0").as_bytes()),
            };
            // SAFETY: a daemon calls it with what belongs to it.
            unsafe { $crate::export::load(::std::sync::Arc::new($plugin), about, daemon, functions, info, offered) }
        }

        /// What a daemon calls when it ends.
        #[unsafe(no_mangle)]
        #[allow(unsafe_code, non_snake_case, reason = "the interface of C")]
        pub extern "C" fn unloadPlugin() -> ::core::ffi::c_int {
            0
        }
    };
}
