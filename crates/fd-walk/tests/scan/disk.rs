//! Changes of a disk that the kernel does not see.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Gives these files old times on the disk only: the kernel, which has them in memory, doesn't look
/// there again. `false`: it does not let anybody write to a disk that is mounted.
pub(crate) fn make_look_old(device: &Path, files: &[PathBuf]) -> bool {
    let mut orders = String::new();
    for file in files {
        let ino = fs::symlink_metadata(file).expect("a file").ino();
        for time in ["ctime", "mtime"] {
            writeln!(orders, "sif <{ino}> {time} 20200101000000").expect("memory");
        }
    }
    let mut command = Command::new("debugfs");
    command.args(["-w", "-f", "-"]).arg(device).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("debugfs is beside mkfs.ext4");
    child.stdin.take().expect("a pipe").write_all(orders.as_bytes()).expect("a pipe");
    child.wait().expect("an end").success()
}
