//! What plugins save (reference 07 §5, §8.1).
//!
//! - `command`: the files of a plugin command, one after the other.
//! - `option`: a file of the walk that the plugin of its Options may save.
//! - `file`: a file that is being saved; `record`: the records of a file or object; `data`: its
//!   data.
//! - `guest`: a plugin and its host together, for calls.
//! - `estimate`: the files of a command in an estimate.
//! - `check`: whether a file that was not found still exists.
//! - `missing`: messages about plugins that are not there; `names`: names that no file may have.

pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod data;
pub(crate) mod estimate;
pub(crate) mod file;
pub(crate) mod guest;
pub(crate) mod missing;
pub(crate) mod names;
pub(crate) mod option;
pub(crate) mod record;
