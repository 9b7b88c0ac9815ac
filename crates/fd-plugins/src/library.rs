//! The host of third-party plugins: libraries with the C interface, version 23, of which each runs
//! in a process of its own (reference 07 §2, §3).
//!
//! The daemon's side:
//! - `wire`: what both sides say, and how what the plugin host says is checked;
//! - `conversation`: what it may say when;
//! - `chain`: what it calls ahead, so that it need not be asked each time;
//! - `orders`: messages with descriptors;
//! - `child`: the process, and what belongs to it;
//! - `process`: starting, ordering about and ending it;
//! - `remote`: the plugin and its instances;
//! - `settings`: how plugin hosts are run.
//!
//! The plugin host's side, with all the `unsafe` code:
//! - `guest`: the process, and the calls in both directions;
//! - `values`: between the structures of C and the types of the API;
//! - `abi`, `variadic`, `printf`: the structures of C, and its functions with any number of
//!   arguments.
//!
//! That side is for x86-64 only, of which the structures and the instructions are. On other
//! processors no plugin is loaded, and no plugin host started.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "without plugin hosts nobody uses it"))]

#[cfg(target_arch = "x86_64")]
pub(crate) mod abi;
mod chain;
mod child;
mod conversation;
#[cfg(target_arch = "x86_64")]
mod guest;
#[cfg(any(test, fuzzing))]
mod listen;
mod orders;
#[cfg(target_arch = "x86_64")]
mod printf;
mod process;
mod remote;
mod settings;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "it reads structures of C")]
pub(crate) mod values;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions, and what they make of registers and the stack")]
mod variadic;
mod wire;

#[cfg(target_arch = "x86_64")]
pub use self::guest::serve;
#[cfg(any(test, fuzzing))]
pub use self::listen::listen;
pub use self::process::is_meant;
pub use self::remote::Library;
pub use self::settings::{Confinement, HostSettings, Output};

/// Runs a plugin host, which nobody starts on this processor; returns its exit status.
#[cfg(not(target_arch = "x86_64"))]
pub fn serve() -> u8 {
    1
}
