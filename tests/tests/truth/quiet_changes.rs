//! Accurate jobs that compare digests find data that has changed under the old times.

use std::fs;
use std::path::Path;

use bed::{Bed, BedOptions, Fd, FileSet, Result};

/// Other data of the same length under the same modification time.
fn change_quietly(path: &Path) {
    let facts = fs::metadata(path).unwrap();
    fs::write(path, vec![b'2'; 70_000]).unwrap();
    let times = fs::FileTimes::new().set_modified(facts.modified().unwrap());
    fs::File::options().write(true).open(path).unwrap().set_times(times).unwrap();
}

/// The stock daemon takes the entry behind a hard link that is sent for unchanged, whatever its
/// data is.
#[test]
fn the_entry_behind_a_hard_link_is_compared_by_its_digest() -> Result<()> {
    let fd = Fd::under_test()?;
    let mut options = BedOptions::side_by_side("quiet")?;
    for client in &mut options.clients {
        client.job.push("Accurate = yes".to_owned());
    }
    let source = options.source()?;
    let [first, link, behind, last] = ["first", "link", "behind", "last"].map(|name| source.join(name));
    fs::create_dir(&first).unwrap();
    for path in [&link, &behind, &last] {
        fs::write(path, vec![b'1'; 70_000]).unwrap();
    }
    let compared = ["Signature = MD5", "Accurate = pinsm5"];
    options.file_sets = vec![FileSet::new("Source", &compared, &[&first, &link, &behind, &last])];
    let bed = Bed::start(options)?;
    let saved = |level: &str| -> Result<Vec<(u64, u64)>> {
        let job = |client| {
            let row = bed.backup(client, &format!("level={level}"))?.must_be_good()?.row;
            Ok((row.files, row.bytes))
        };
        ["reference", "test"].into_iter().map(job).collect()
    };
    assert_eq!(saved("Full")?, [(4, 210_000); 2]);
    // The name that comes first has the data, and the other one is the link.
    fs::hard_link(&link, first.join("name")).unwrap();
    for path in [&behind, &last] {
        change_quietly(path);
    }
    let (both, one_less) = ((5, 210_000), (4, 140_000));
    assert_eq!(saved("Incremental")?, [one_less, if fd == Fd::Ours { both } else { one_less }]);
    Ok(())
}
