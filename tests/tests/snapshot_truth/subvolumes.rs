//! Jobs over subvolumes.

use std::fs;

use bed::{Bed, FileSet, Result};

use crate::btrfs::Btrfs;
use crate::{CLIENT, helper, options};

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

/// In the snapshot it would be an empty directory.
#[test]
fn a_subvolume_that_the_helper_does_not_name_is_an_error_and_is_saved() -> Result<()> {
    let btrfs = match Btrfs::make("unnamed", 256)? {
        Ok(btrfs) => btrfs,
        Err(reason) => return skip::test(reason),
    };
    fs::write(btrfs.subvolume("nested").join("file"), "in it").unwrap();
    let command = btrfs.folder().join("command");
    let script = format!(
        "[ $SNAPSHOT_ACTION != subvolumes ] || {{ echo status=0 error=oops; exit 1; }}\nexec {}",
        helper()?.display()
    );
    scripts::write(&command, &script).unwrap();
    let mut options = options("unnamed", &[])?;
    let set = |name: &str, path: &std::path::Path| {
        let mut set = FileSet::new(name, &["Signature = MD5", "One FS = no"], &[path]);
        set.lines.insert(0, "Enable Snapshot = yes".to_owned());
        set
    };
    let top = btrfs.top();
    options.file_sets.extend([set("Whole", top), set("Nested", &top.join("nested"))]);
    options.clients[0].file_daemon.push(format!("Snapshot Command = \"{}\"", command.display()));
    let bed = Bed::start(options)?;
    let unknown = "its subvolumes are not known, and it is read as it is now: oops";
    for (set, error) in [
        ("Whole", format!("Unable to create snapshot of {} ERR={unknown}", top.display())),
        ("Nested", format!("Unable to use snapshot of {} ERR={}/nested is a place of", top.display(), top.display())),
    ] {
        let job = bed.backup(CLIENT, &format!("fileset={set}"))?.must_be('T')?;
        assert!(job.log.contains(&error), "{}", job.log);
        let files = bed.catalog().files(job.row.id)?;
        assert!(files.iter().any(|file| file.path.ends_with(b"/nested/file")), "{set}: {files:?}");
    }
    Ok(())
}
