//! Extended attributes of a file that are longer together than a frame may be.

use std::fs;

use bed::{Bed, BedOptions, FileSet, Restore, Result, below, mount_memory, saved};

/// Attributes of the file, and the bytes of each.
const COUNT: usize = 24;
const LENGTH: usize = 65_000;

/// The Storage Daemon looks at the length that a frame has on the line, where these are compressed.
#[test]
fn attributes_that_only_the_line_made_short_enough_come_back() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = BedOptions::side_by_side("large-attributes")?;
    let (source, restored) = (options.source()?, options.folder.make("restored")?);
    // Few other file systems have room for them.
    mount_memory(&source)?;
    mount_memory(&restored)?;
    let (file, long) = (source.join("file"), vec![7; LENGTH]);
    fs::write(&file, "data").unwrap();
    let has_all = (0..COUNT).all(|number| xattr::set(&file, format!("user.{number}"), &long).is_ok());
    skip::when!(!has_all, "no file system here holds so many attributes");
    options.file_sets = vec![FileSet::new("Attributes", &["XattrSupport = yes"], &[&source])];
    let bed = Bed::start(options)?;
    let backup = bed.backup("reference", "level=Full")?.must_be_good()?;
    let files = saved(bed.records(&backup.row, "reference")?)?;
    let on_volume = files.into_values().find(|saved| saved.name.ends_with("/file")).unwrap();
    assert!(on_volume.attributes.len() > COUNT * LENGTH, "{}", backup.log);
    for onto in ["reference", "test"] {
        let to = restored.join(onto);
        let restore = Restore { job: backup.row.id, from: "reference", onto, to: &to, replace: "always" };
        let done = bed.restore(&restore)?.must_be_good()?;
        let there = below(&to, &file);
        for number in 0..COUNT {
            let value = xattr::get(&there, format!("user.{number}")).unwrap();
            assert!(value.as_ref() == Some(&long), "{onto}, {number}: {}", done.log);
        }
    }
    Ok(())
}
