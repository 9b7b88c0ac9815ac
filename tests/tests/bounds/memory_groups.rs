//! Daemons in a control group with little memory, as in a container: jobs at the same time share
//! what is there, and none is ended by the kernel.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::fs;
use std::path::PathBuf;

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Noise, Result};

/// A control group of version 1 with a limit of memory, which goes with the value.
struct Group(PathBuf);

impl Group {
    /// `None`: there is no such controller here, or this user may not use it.
    fn new(name: &str, limit: u64) -> Option<Self> {
        let folder = PathBuf::from(format!("/sys/fs/cgroup/memory/{name}-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Self(folder);
        fs::write(group.0.join("memory.limit_in_bytes"), limit.to_string()).ok()?;
        Some(group)
    }

    /// How many processes the kernel has ended for want of memory.
    fn killed(&self) -> u64 {
        let control = fs::read_to_string(self.0.join("memory.oom_control")).unwrap();
        let line = control.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.unwrap_or("0").parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It must not hide the test's own result.
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn jobs_at_the_same_time_share_the_memory_of_their_control_group() -> Result<()> {
    for (jobs, mebibytes) in [(4, 64), (10, 256)] {
        let Some(group) = Group::new("ferrofd-bounds", mebibytes << 20) else {
            return skip::test("no memory controller of version 1 here");
        };
        let mut client = ClientOptions::new(Fd::under_test()?).named("test").with_workers(8);
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.0.display());
        client.wrapper = ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec();
        let mut options = BedOptions::new("memory-group", [client])?;
        let source = options.source()?;
        // Of all sizes that are read in another way, compressed by several threads.
        for number in 0..200 {
            fs::write(source.join(format!("small-{number}")), Noise::new(number).bytes(30_000)).unwrap();
        }
        for number in 0..3 {
            fs::write(source.join(format!("large-{number}")), Noise::new(number).text(12 << 20)).unwrap();
        }
        options.file_sets =
            vec![FileSet::new("Compressed", &["Signature = SHA256", "Compression = GZIP1"], &[&source])];
        let bed = Bed::start(options)?;
        let ids = bed.queue_all(&vec!["run job=backup-test level=Full yes".to_owned(); jobs])?;
        bed.wait_for_reports(&ids)?;
        for id in ids {
            bed.result(id)?.must_be_good()?;
        }
        assert_eq!(group.killed(), 0, "{jobs} jobs in {mebibytes} MiB");
        drop(bed);
    }
    Ok(())
}
