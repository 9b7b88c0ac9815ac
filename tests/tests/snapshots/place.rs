//! A bed whose daemons see the file systems of the tests, each in a mount namespace of its own.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bed::{BedOptions, ClientOptions, Fd, FileSet, Result, job_resource};

use crate::helper;

/// The file systems: `data`, in it `other`, and `sub` with `deep` in it; and `twice`. The
/// directories `d` are mounted once more, as `bound` and `twice/again`.
const MOUNTS: [(&str, &str); 5] =
    [("live", "data"), ("sub", "data/sub"), ("deep", "data/sub/deep"), ("other", "data/other"), ("two", "twice")];

/// The bed's options, with these clients.
pub(crate) fn options(label: &str, clients: &[(&str, Fd)]) -> Result<BedOptions> {
    let clients = clients.iter().map(|(name, fd)| ClientOptions::new(*fd).named(name));
    let mut options = BedOptions::new(label, clients)?;
    options.tls_psk = false;
    let folder = options.folder.path().to_owned();
    let directories = [
        "data",
        "bound",
        "empty",
        "live/d",
        "live/sub",
        "live/other",
        "live/.snapshots/x",
        "sub/deep",
        "deep",
        "other",
        "snap/d",
        "snap/sub",
        "snap/.snapshots/x",
        "snap-sub",
        "twice",
        "two/d",
        "two/again",
        "snap-two/d",
        "snap-two/again",
    ];
    for name in directories {
        options.folder.make(name)?;
    }
    for (name, content) in [
        ("live/d/f", "live"),
        ("live/only now", "live"),
        ("snap/d/f", "the content of the snapshot"),
        ("snap/only then", "snapshot"),
        ("snap/.snapshots/x/f", "hidden"),
        ("sub/in sub", "sub"),
        ("deep/in deep", "deep"),
        ("other/in other", "other"),
        ("two/d/f", "live"),
        ("snap-two/d/f", "of two"),
        ("snap-sub/in sub", "sub in its snapshot"),
    ] {
        fs::write(folder.join(name), content).unwrap();
    }
    symlink("data", folder.join("link")).unwrap();
    let helper = helper::write(&folder);
    for client in &mut options.clients {
        client.file_daemon.push(helper.clone());
        client.wrapper = wrapper(&folder);
    }
    options.file_sets = file_sets(&folder);
    Ok(options)
}

/// Mounts the file systems, and becomes the daemon. Each daemon has its own, and asks about them in
/// the order of their device numbers. The kernel gives the lowest that is free, so what is
/// unmounted elsewhere meanwhile may turn that order around: then they are mounted again.
fn wrapper(folder: &Path) -> Vec<String> {
    let here = folder.display();
    let mount = |(from, on): (&str, &str)| {
        format!("mount -t overlay bed-{from} -o lowerdir={here}/{from}:{here}/empty {here}/{on}")
    };
    let bind = |from: &str, on: &str| format!("mount --bind {here}/{from} {here}/{on}");
    let points = MOUNTS.map(|(_, on)| format!("{here}/{on}"));
    let inside_out: Vec<_> = points.iter().rev().map(String::as_str).collect();
    let script = format!(
        "until {} && stat -c %d {} | sort -c -n; do umount {} || exit; done; {} && {} && exec \"$@\"",
        MOUNTS.map(mount).join(" && "),
        points.join(" "),
        inside_out.join(" "),
        bind("data/d", "bound"),
        bind("twice/d", "twice/again")
    );
    ["unshare", "--mount", "sh", "-c", &script, "sh"].map(ToOwned::to_owned).to_vec()
}

fn file_sets(folder: &Path) -> Vec<FileSet> {
    let set = |name: &str, options: &[&str], paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(|path| folder.join(path)).collect();
        let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
        let mut set = FileSet::new(name, &[&["Signature = MD5"], options].concat(), &paths);
        set.lines.push("Enable Snapshot = yes".to_owned());
        set
    };
    let mut sets = vec![
        set("Data", &[], &["data"]),
        set("Names", &[], &["data/d", "data/only then", "data/only now", "data/d/", "live/only now"]),
        set("Listed", &[], &["data", "data/sub", "data/other"]),
        set("All", &["One FS = no"], &["data"]),
        set("Outside", &[], &["live"]),
        set("Link", &[], &["link/d"]),
        set("Twice", &[], &["twice"]),
        set("Bound", &[], &["bound"]),
        set("Metadata", &["AclSupport = yes", "XattrSupport = yes"], &["data/d"]),
    ];
    let mut excluded = set("Excluded", &["One FS = no"], &["data"]);
    excluded.lines.extend(["Exclude {".to_owned(), format!("File = {}/data/other", folder.display()), "}".to_owned()]);
    sets.push(excluded);
    sets
}

/// A job of a client. `more` are directives.
pub(crate) fn job(name: &str, client: &str, set: &str, more: &[&str]) -> String {
    let more = format!("Type = Backup\nLevel = Full\n{}", more.join("\n"));
    job_resource(&format!("{name}-{client}"), client, set, &more)
}
