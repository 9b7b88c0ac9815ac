//! The few system calls that need `unsafe`, each behind a safe function, and programs and threads
//! that run for a job. No policy, but how many calls are made at a time.
//!
//! - `regex`: POSIX regular expressions of the C library, and what one costs before it is compiled;
//! - `error_text`, `resolver`: the words of error numbers; this is the only place that asks for
//!   them;
//! - `local_time`, `locale`: the C library's view of time zone and locale;
//! - `memory`, `wiping`: the allocator; `memory_limit`: what the process can have;
//! - `process`: programs in process groups of their own, which end when nobody wants them any more;
//! - `threads`: threads that hang in the kernel and are left behind; `sync`: what they are made of;
//! - `lock`: a lock that a panic leaves usable;
//! - `depth`: how many calls are made at a time where they wait; `waiting`: whether they do;
//! - `mounts`: names in the kernel's table of mounts;
//! - `identities`: the host's users and groups;
//! - `file_system`, `page_cache`, `low_water`, `daemonize`, `clock_state`: the kernel.
#![allow(unsafe_code, reason = "this crate is where the workspace keeps its unsafe code")]

pub mod btrfs;
pub mod clock_state;
pub mod daemonize;
pub mod depth;
mod error_text;
pub mod file_system;
pub mod identities;
pub mod local_time;
pub mod locale;
pub mod lock;
pub mod low_water;
pub mod memory;
pub mod memory_limit;
pub mod mounts;
pub mod page_cache;
pub mod process;
pub mod regex;
mod resolver;
pub mod sync;
pub mod threads;
pub mod waiting;
pub mod wiping;

pub use error_text::{
    NOT_ALLOWED_CHARACTER, NOT_IN_ALLOWED_PATHS, error_text, io_error_text, job_error_text, signal_words,
};
pub use resolver::resolver_text;
