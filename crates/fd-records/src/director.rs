//! Messages between Director and File Daemon that consist of the texts of records.

pub(crate) mod accurate;
pub(crate) mod file_event_packet;
pub mod listing;
pub(crate) mod verify_packet;
