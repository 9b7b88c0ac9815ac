//! The interface between the daemon and its plugins. It has the functions, structures and values of
//! the stock daemon's plugin interface, version 23 (reference 07 §3), as types of Rust.

pub(crate) mod call;
pub(crate) mod event;
pub(crate) mod host;
pub(crate) mod options;
pub(crate) mod packets;
pub(crate) mod plugin;
mod stat_form;
