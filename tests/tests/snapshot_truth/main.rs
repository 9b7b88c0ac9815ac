//! Snapshots of a file system that is in use: what is saved is one moment of it, and a database
//! that is written to all the time is whole when it is restored.
//!
//! On a real btrfs, in a file that a loop device makes a disk. LVM and ZFS are tested with recorded
//! tools: `crates/bacula-fd/src/bin/bsnapshot/backend/tests/`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what helps a test fails the test, like the test itself"
)]

mod btrfs;
mod helper;
mod postgresql;
mod sqlite;
mod subvolumes;

use std::path::{Path, PathBuf};

use bed::{BedOptions, ClientOptions, Fd, FileSet, Result, our_program};

/// The client.
const CLIENT: &str = "test";

/// Our helper, beside our daemon.
fn helper() -> Result<PathBuf> {
    Ok(our_program()?.with_file_name("bsnapshot"))
}

/// A bed whose client makes snapshots with our helper, and a FileSet with them (`Snapshot`) and one
/// without (`Live`) of the same paths. With the stock daemon, too: it has no helper of its own.
fn options(label: &str, paths: &[&Path]) -> Result<BedOptions> {
    let mut client = ClientOptions::new(Fd::under_test()?).named(CLIENT);
    if Fd::under_test()? == Fd::Stock {
        client.file_daemon.push(format!("Snapshot Command = \"{}\"", helper()?.display()));
    }
    let mut options = BedOptions::new(label, [client])?;
    // It is not what is tested, and takes time.
    options.tls_psk = false;
    let mut snapshot = FileSet::new("Snapshot", &["Signature = MD5"], paths);
    snapshot.lines.insert(0, "Enable Snapshot = yes".to_owned());
    options.file_sets = vec![snapshot, FileSet::new("Live", &["Signature = MD5"], paths)];
    Ok(options)
}
