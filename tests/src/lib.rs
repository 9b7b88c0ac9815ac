//! The bed: an unmodified Bacula 15.0.3 Director, Storage Daemon and console on loopback, in a
//! folder of their own, with the stock File Daemon, ferrofd, or both as clients; and what is needed
//! to judge what they did: the catalog, the volumes record by record, trees, and what a daemon
//! used.
//!
//! Everything blocks, and everything ends with its value: dropping a [`Bed`] kills its daemons and
//! removes its folder. Nothing here is part of the product, and nothing here uses the product's
//! code.

mod bed;
mod catalog;
mod certificates;
mod config;
mod console;
mod distance;
mod error;
pub mod faketime;
mod fifo;
mod folder;
mod gateway;
mod host;
mod job;
mod keys;
mod lstat;
mod measure;
mod memory;
mod named;
mod options;
mod parallel;
mod patience;
pub mod peer;
mod plugin_build;
mod process;
mod racer;
mod relay;
mod reports;
pub mod road;
mod root;
mod saved;
mod say;
pub mod setup;
mod signals;
mod slow_storage;
mod stock_record;
mod tree;
mod tree_compare;
mod verdict;
mod volume;
mod volume_compare;

pub use bed::{Bed, Client, Daemon, Restore, below, fd_argv};
pub use catalog::{Catalog, FileRow, JobRow};
pub use certificates::Authority;
pub use config::{DIRECTOR, FD_PASSWORD, STORAGE_PASSWORD};
pub use console::{Clocked, Console};
pub use distance::Distance;
pub use error::{BedError, Result};
pub use fifo::{fifo_writer, make_fifo};
pub use folder::{Folder, sweep};
pub use gateway::Gateway;
pub use host::{Host, Snapshot};
pub use job::{COUNTS_OF_A_REPORT, COUNTS_OF_A_VERIFY, JobResult, unescaped};
pub use keys::Keys;
pub use lstat::LStat;
pub use measure::{
    Footprint, Usage, children, connections, cpu_with_children, descriptors, has_session, idle, read_from_disk,
    reset_peak, resident, thread_names, threads, umask, usage,
};
pub use memory::{in_order_of_names, mount_memory, roomy_memory};
pub use options::{BedOptions, ClientOptions, Fd, FileSet, ONLY_OURS, Plugins, job_resource, our_program, verify_job};
pub use parallel::in_parallel;
pub use patience::{PATIENCE, next_second, wait_for};
pub use plugin_build::build_plugin;
pub use ports::{ReservedPort, is_listening};
pub use process::{Adopted, Finished, Process, argv, converse, lacks_mounts, run, with_log};
pub use racer::{Acted, Counted, Racer, Rule, WRITING};
pub use relay::{Recorded, Relay};
pub use root::{Root, VERSION};
pub use saved::{Attributes, Saved, is_named, saved};
pub use say::say;
pub use signals::{block_ends, interrupted};
pub use slow_storage::SlowStorage;
pub use stock_record::{ASKED, Kept, StockRecord, undated};
pub use tree::{Noise, TreeOptions, build_every_type, build_many_files, level_times, posix_acl, set_fixed_times};
pub use tree_compare::{Times, TreeRules, compare_trees, measure_tree, read_once, tree_lines};
pub use verdict::{Expect, line_differences};
pub use volume::{Record, Records, Session, rewrite_volume, stream_name};
pub use volume_compare::{Comparison, RecordRules, compare_records};
