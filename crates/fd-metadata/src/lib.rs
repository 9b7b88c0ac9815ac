//! What a file has beside its contents: owner, mode, times, ACLs, extended attributes, special
//! files; read from and applied to the file system.
//!
//! Reading serves the backup ([`MetadataReader`]), applying serves the restore ([`Target`],
//! [`MetadataWriter`]). Everything is applied through an open file or through a name in an open
//! directory, never through a whole path, so that no other process can redirect it.
//!
//! What is where:
//!
//! - `reader`, `writer`: ACLs and extended attributes, read from a file and applied to one.
//! - `no_proc`: paths of open objects, and what is done where there is no `/proc`.
//! - `target`: an object that is held, its owner, mode and times; how special files are made.
//! - `names`: names of users and groups; `warnings`: how many warnings a backup shows; `texts`:
//!   their words.
//!
//! Not here: the formats of the records (`fd-records`), the network, and the decision what is an
//! error of the job.

mod names;
mod no_proc;
mod reader;
mod target;
mod texts;
mod warnings;
mod writer;

pub use names::NameCache;
pub use no_proc::has_proc;
pub use reader::{FileMetadata, MetadataReader, Place, ReadWarnings, Wanted};
pub use target::{ACCESS_ACL, AttributeFailures, DEFAULT_ACL, Target, UsualOwner, make_special, pin};
pub use warnings::{Failures, WarningLimit};
pub use writer::{MetadataWriter, WriterWarnings};
