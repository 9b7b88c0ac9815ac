//! Jobs over subvolumes.

use std::fs;

use bed::{Bed, Result};

use crate::btrfs::Btrfs;
use crate::{CLIENT, options};

#[test]
fn a_subvolume_that_is_mounted_by_itself_is_saved_if_its_top_level_is_mounted_too() -> Result<()> {
    let mut btrfs = match Btrfs::make("subvolumes", 256)? {
        Ok(btrfs) => btrfs,
        Err(reason) => return skip::test(reason),
    };
    fs::write(btrfs.subvolume("@home").join("file"), "of a user").unwrap();
    let home = btrfs.mount("@home")?;
    let bed = Bed::start(options("subvolumes", &[&home])?)?;
    let job = bed.backup(CLIENT, "fileset=Snapshot")?.must_be_good()?;
    assert_eq!(job.report()["Snapshot/VSS"], "yes");
    let created = format!("Create Snapshot for {}\n", home.display());
    assert!(job.log.contains(&created) && !job.log.contains("read as it is now"), "{}", job.log);
    let files = bed.catalog().files(job.row.id)?;
    assert!(files.iter().any(|file| file.path.ends_with(b"/file")), "{files:?}");
    assert_eq!(btrfs.snapshots(), [""; 0], "a snapshot was left");
    Ok(())
}
