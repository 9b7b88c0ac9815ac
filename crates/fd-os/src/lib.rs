//! The few system calls that need `unsafe`, each behind a safe function. No policy.
#![allow(unsafe_code, reason = "this crate is where the workspace keeps its unsafe code")]

pub mod daemonize;
mod error_text;
pub mod local_time;
pub mod locale;
pub mod low_water;
pub mod memory;
pub mod page_cache;
pub mod priority;
pub mod regex;
pub mod regex_weight;
mod resolver;
pub mod wiping;

pub use error_text::{error_text, io_error_text};
pub use resolver::resolver_text;
