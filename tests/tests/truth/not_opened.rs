//! Files that can't be opened any more, in jobs that build on an earlier one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Result};

/// The stock daemon sends a record without data, and a restore of the newest copies makes an empty
/// file of it. In an accurate job it takes that record for the file, and does not try it again.
#[test]
fn a_file_that_can_t_be_opened_keeps_its_copy_of_an_earlier_job() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        return skip::test("only root can start a daemon that becomes another user");
    }
    let mut options = BedOptions::side_by_side("not-opened")?;
    for client in &mut options.clients {
        client.user = Some("nobody".to_owned());
    }
    options.clients.push(ClientOptions::new(Fd::Stock).named("root"));
    let source = options.source()?;
    let [closed, open] = ["closed", "open"].map(|name| source.join(name));
    let write = |text: &str| [&closed, &open].into_iter().for_each(|path| fs::write(path, text).unwrap());
    write("whole");
    options.file_sets = vec![FileSet::new("Source", &["Signature = MD5"], &[&source])];
    let mut bed = Bed::start(options)?;
    let fulls = ["reference", "test"].map(|client| bed.backup(client, "level=Full"));
    write("newer");
    // Newer than the Full, in whichever second that has begun.
    for path in [&closed, &open] {
        let later = SystemTime::now() + Duration::from_secs(3600);
        fs::File::options().append(true).open(path).unwrap().set_modified(later).unwrap();
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o600)).unwrap();
    for (client, full) in ["reference", "test"].into_iter().zip(fulls) {
        let full = full?.must_be_good()?.row.id;
        let keeps = bed.client(client)?.options.fd == Fd::Ours;
        let mut jobs = format!("{full}");
        for accurate in ["no", "yes"] {
            let job = bed.backup(client, &format!("level=Incremental accurate={accurate}"))?;
            let is_tried = job.log.contains("/closed\": ERR=Permission denied.");
            assert_eq!(is_tried, keeps || accurate == "no", "accurate={accurate}: {}", job.log);
            assert_eq!((job.row.status, job.row.errors), ('T', u32::from(is_tried)), "{}", job.log);
            jobs = format!("{jobs},{}", job.row.id);
            let target = bed.folder().join(format!("restored-{client}-{accurate}"));
            bed.run(&format!(
                "restore jobid={jobs} client={client}-fd restoreclient=root-fd where={} replace=always all done yes",
                target.display()
            ))?;
            let restored = |path: &Path| fs::read_to_string(target.join(path.strip_prefix("/").unwrap())).unwrap();
            assert_eq!(restored(&open), "newer");
            assert_eq!(restored(&closed), if keeps { "whole" } else { "" }, "{client}, accurate={accurate}");
        }
    }
    Ok(())
}
