//! The process: its command line, start and end, and the services that run as long as it does.

pub(crate) mod bfdjson;
pub(crate) mod cli;
pub(crate) mod ending;
pub(crate) mod host;
pub(crate) mod listener;
pub(crate) mod log;
pub(crate) mod notify;
pub(crate) mod pid_file;
pub(crate) mod plugins;
pub(crate) mod privileges;
pub(crate) mod probe;
pub(crate) mod registration;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod timetable;
