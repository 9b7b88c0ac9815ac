//! Accurate jobs that send only the attributes of a file whose data has not changed
//! (`Accurate = …o5`, reference 04 §6.8): whatever the letters and whatever the type of a file, the
//! newest state comes back whole, through either daemon.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, Fd, FileSet, JobResult, Noise, Result, TreeRules, below, compare_trees, next_second, posix_acl,
};
use nix::fcntl::AT_FDCWD;
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, makedev, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::mkfifo;
use walkdir::WalkDir;

const CLIENTS: [&str; 2] = ["reference", "test"];
/// Values of `Accurate`: each letter alone, with the digest, and with the digest to confirm; and
/// some in company.
const ALONE: [&str; 12] = ["i", "p", "n", "u", "g", "s", "a", "m", "c", "M", "d", "A"];
const COMPANY: [&str; 7] = ["mcs", "5", "o5", "mcso5", "pinugsamcMdo5", "pinugsamcMd5", "pinugsmo5"];
/// What changes on every entry, so that these letters see each change; the others see some.
const SEES_ALL: &str = "pugamcMA";
/// The first file of the FileSet, alone in its directory: what the stock daemon does there depends
/// on no entry before.
const FIRST: &str = "first";
/// Later than any change time, so that `relatime` leaves it alone.
const ATIME: i64 = 2_064_787_200;
/// Files whose data changes.
const EDITED: [&str; 5] = ["grown", "shrunk", "emptied", "filled", "edited-later"];

/// What must be right even if no letter sees what changed.
const RARELY_SEEN: TreeRules = TreeRules::CONTENT;

/// Files with two names, of which the first one goes.
const ORPHANS: [&str; 4] = ["data", "empty", "fifo", "renamed"];

fn letters() -> Vec<String> {
    let each = ALONE.iter().flat_map(|letter| ["", "o5"].map(|more| format!("{letter}{more}")));
    each.chain(COMPANY.map(str::to_owned)).collect()
}

/// Every type of entry, with data and without.
fn build(top: &Path, seed: u64) {
    let noise = |number: u64, count| Noise::new(100 * seed + number).bytes(count);
    let write = |name: &str, bytes: &[u8]| fs::write(top.join(name), bytes).unwrap();
    for directory in ["dir-full", "dir-empty", "dir-attributes"] {
        fs::create_dir_all(top.join(directory)).unwrap();
    }
    for name in ["empty", "empty-private", "empty-attributes", "filled", "hard-empty", "gone-empty"] {
        write(name, b"");
    }
    for (number, name) in (1..).zip([
        "data",
        "grown",
        "shrunk",
        "emptied",
        "hard",
        "gone",
        "linked-later",
        "edited-later",
        "dir-full/inside",
    ]) {
        write(name, &noise(number, 3000));
    }
    write("data-attributes", &noise(20, 70_000));
    let sparse = File::create(top.join("sparse")).unwrap();
    sparse.write_all_at(&noise(21, 5000), 300_000).unwrap();
    sparse.set_len(400_000).unwrap();
    File::create(top.join("sparse-hole")).unwrap().set_len(300_000).unwrap();
    symlink("data", top.join("symlink")).unwrap();
    symlink("no/such/thing", top.join("symlink-dangling")).unwrap();
    mkfifo(&top.join("fifo"), Mode::S_IRUSR).unwrap();
    let node = |name: &str, kind, device| mknod(&top.join(name), kind, Mode::S_IRUSR, device).unwrap();
    node("character", SFlag::S_IFCHR, makedev(1, 3));
    node("block", SFlag::S_IFBLK, makedev(7, 250));
    node("socket", SFlag::S_IFSOCK, 0);
    for name in ["hard", "hard-empty", "fifo", "character"] {
        fs::hard_link(top.join(name), top.join(format!("dir-full/{name}-too"))).unwrap();
        fs::hard_link(top.join(name), top.join(format!("{name}-three"))).unwrap();
    }
    for name in ["empty-attributes", "data-attributes", "dir-attributes"] {
        xattr::set(top.join(name), "user.kept", b"value").unwrap();
        xattr::set(top.join(name), "system.posix_acl_access", &access_list()).unwrap();
    }
    for (kind, bytes) in [("data", &b"of two names"[..]), ("empty", b""), ("renamed", b"too")] {
        write(&format!("orphan-{kind}-1"), bytes);
    }
    mkfifo(&top.join("orphan-fifo-1"), Mode::S_IRUSR).unwrap();
    for kind in ORPHANS {
        fs::hard_link(top.join(format!("orphan-{kind}-1")), top.join(format!("orphan-{kind}-2"))).unwrap();
    }
    touch(top, 0);
}

/// Removes of each pair of names the one that a walk meets first, to which the record of the other
/// one is a link; or puts another file in its place.
fn orphan(top: &Path) {
    let names: Vec<_> = fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path()).collect();
    for kind in ORPHANS {
        let of_pair = |path: &&PathBuf| path.to_string_lossy().contains(&format!("orphan-{kind}-"));
        let first = names.iter().find(of_pair).unwrap();
        if kind == "renamed" {
            fs::rename(first, top.join("dir-full/renamed")).unwrap();
            fs::write(first, "another file").unwrap();
        } else {
            fs::remove_file(first).unwrap();
        }
    }
}

/// An ACL that lets one more user read.
fn access_list() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    posix_acl(&[(1, 6, NOBODY), (2, 4, 1), (4, 4, NOBODY), (0x10, 4, NOBODY), (0x20, 4, NOBODY)])
}

/// What happens between the jobs: `step` counts from 1.
fn change(top: &Path, step: u32) {
    let at = |name: &str| top.join(name);
    let write = |name: &str, text: String| fs::write(at(name), text).unwrap();
    File::options().append(true).open(at("grown")).unwrap().write_all(b"more of it").unwrap();
    let len = fs::metadata(at("shrunk")).unwrap().len();
    File::options().write(true).open(at("shrunk")).unwrap().set_len(len - 100).unwrap();
    if step == 1 {
        write("emptied", String::new());
        write("filled", "no longer empty".to_owned());
        orphan(top);
        fs::remove_file(at("gone")).unwrap();
        fs::remove_file(at("gone-empty")).unwrap();
        fs::hard_link(at("linked-later"), at("dir-full/linked")).unwrap();
    }
    if step == 2 {
        write("edited-later", "after an update of its attributes".to_owned());
    }
    write(&format!("new-empty-{step}"), String::new());
    write(&format!("new-{step}"), format!("new in step {step}"));
    fs::create_dir(at(&format!("dir-new-{step}"))).unwrap();
    symlink("new", at(&format!("symlink-new-{step}"))).unwrap();
    // The same data in a new inode.
    for name in ["data", "empty", "sparse"] {
        fs::copy(at(name), at("copy")).unwrap();
        fs::rename(at("copy"), at(name)).unwrap();
    }
    touch(top, step);
}

/// Gives each entry another owner, group, mode and times, contents before their directories.
fn touch(top: &Path, step: u32) {
    for entry in WalkDir::new(top).follow_root_links(false).contents_first(true) {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type());
        lchown(path, Some(100 + step), Some(200 + step)).unwrap();
        if !kind.is_symlink() {
            let mut bits =
                if kind.is_dir() { [0o750, 0o755, 0o700, 0o770, 0o711] } else { [0o644, 0o664, 0o646, 0o600, 0o666] };
            if path.ends_with("empty-private") {
                bits = [0o600, 0o620, 0o640, 0o660, 0o400];
            }
            fs::set_permissions(path, fs::Permissions::from_mode(bits[step as usize])).unwrap();
        }
        let atime = TimeSpec::new(ATIME + i64::from(step), 0);
        utimensat(AT_FDCWD, path, &atime, &TimeSpec::UTIME_NOW, UtimensatFlags::NoFollowSymlink).unwrap();
    }
}

/// What a restore lacks of the tree as it is, or has too much, or has otherwise.
fn lacks(source: &Path, restored: &Path) -> Result<Vec<String>> {
    let mut wrong = compare_trees(&source.join(FIRST), &restored.join(FIRST), RARELY_SEEN)?;
    for letters in letters() {
        let (left, right) = (source.join(&letters), restored.join(&letters));
        let sees_all = letters.contains(|letter| SEES_ALL.contains(letter));
        let rules = if sees_all { TreeRules::restored() } else { RARELY_SEEN };
        for difference in compare_trees(&left, &right, rules)? {
            let name = difference.split(':').next().unwrap_or_default();
            let field = difference.split(": ").nth(1).unwrap_or_default();
            let is = |fields: &[&str]| fields.iter().any(|begin| field.starts_with(begin));
            let directory = left.join(name).is_dir();
            let known = match () {
                // What is made in a directory after it sets its times.
                () if directory && is(&["mtime", "atime"]) => true,
                // No letter sees that the data is another.
                () if !sees_all && !letters.contains('5') && EDITED.contains(&name) => !is(&["missing", "type"]),
                () if !sees_all && name.starts_with("orphan-renamed") && field == "size 12 against 3" => true,
                () if !sees_all && (name.contains("linked") || name.contains("renamed")) => is(&["hard link"]),
                // The mode of a symbolic link never changes, so `p` does not see that the rest
                // does.
                () => ["p", "p5", "po5"].contains(&letters.as_str()) && name.contains("symlink"),
            };
            if !known {
                wrong.push(format!("{letters}: {difference}"));
            }
        }
    }
    Ok(wrong)
}

struct Stage {
    bed: Bed,
    source: PathBuf,
    restores: usize,
}

impl Stage {
    fn set() -> Result<Self> {
        let mut options = BedOptions::side_by_side("updates")?;
        let source = options.source()?;
        fs::create_dir(source.join(FIRST)).unwrap();
        fs::write(source.join(FIRST).join("shortened"), Noise::new(1).text(3000)).unwrap();
        let mut lines = FileSet::new("", &["Signature = MD5", "Accurate = mcso5"], &[&source.join(FIRST)]).lines;
        for (number, letters) in (1..).zip(letters()) {
            let top = source.join(&letters);
            build(&top, number);
            let accurate = format!("Accurate = {letters}");
            let set = ["Signature = MD5", "AclSupport = yes", "XattrSupport = yes", "Sparse = yes", &accurate];
            lines.extend(FileSet::new("", &set, &[&top]).lines);
        }
        options.file_sets = vec![FileSet { name: "Letters".to_owned(), lines }];
        for client in &mut options.clients {
            client.job.push("Accurate = yes".to_owned());
        }
        Ok(Self { bed: Bed::start(options)?, source, restores: 0 })
    }

    /// A job of each client.
    fn save(&self, level: &str) -> Result<Vec<JobResult>> {
        next_second()?;
        let run = |client| format!("run job=backup-{client} level={level} yes");
        let jobs = self.bed.queue_all(&CLIENTS.map(run))?;
        jobs.into_iter().map(|job| self.bed.wait(job)).collect()
    }

    /// What is wrong with the newest state of what one client saved, restored by another.
    fn restore(&mut self, from: &str, onto: &str) -> Result<Vec<String>> {
        self.restores += 1;
        let to = self.bed.folder().join(format!("restored/{}", self.restores));
        let job = self.bed.run(&format!(
            "restore client={from}-fd restoreclient={onto}-fd where={} replace=always select current all done yes",
            to.display()
        ))?;
        let mut wrong = lacks(&self.source, &below(&to, &self.source))?;
        if job.row.status != 'T' || job.row.errors > 0 {
            wrong.push(job.log);
        }
        Ok(wrong)
    }
}

#[test]
fn restores_are_complete_after_updates_of_attributes() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root for devices and owners");
    let mut stage = Stage::set()?;
    let (mut wrong, mut lost) = (Vec::new(), Vec::new());
    stage.save("Full")?;
    for (step, level) in [(1, "Incremental"), (2, "Incremental"), (3, "Incremental"), (4, "Differential")] {
        next_second()?;
        touch(&stage.source.join(FIRST), step);
        if step == 2 {
            fs::write(stage.source.join(FIRST).join("shortened"), "after an update of its attributes").unwrap();
        }
        for letters in letters() {
            change(&stage.source.join(&letters), step);
        }
        for job in stage.save(level)? {
            assert_eq!(job.row.status, 'T', "{}", job.log);
        }
        for onto in CLIENTS {
            let lacks = stage.restore("test", onto)?;
            wrong.extend(lacks.into_iter().map(|text| format!("{level} {step}, restored by {onto}: {text}")));
        }
        if step == 2 {
            lost = stage.restore("reference", "reference")?;
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    // The stock daemon loses what is new or changed behind an update, and links whose first name
    // has gone; and it writes the data of a file that was updated before over that of the job
    // before.
    for known in ["mo5: new-1: missing", "mo5: grown: size", "s: orphan-data-", "shortened: size 33 against 3000"] {
        assert!(lost.iter().any(|text| text.starts_with(known)), "{known}: not lost by the stock daemon\n{lost:#?}");
    }
    Ok(())
}

/// `CAP_NET_RAW`, permitted and effective, as the kernel has it.
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What letters see of a file that has a capability and an attribute is its owner, group and mode;
/// its attributes change with them.
#[test]
fn capabilities_and_attributes_of_the_newest_update_come_back() -> Result<()> {
    skip::when!(!nix::unistd::geteuid().is_root(), "needs root for owners and capabilities");
    let mut options = BedOptions::side_by_side("capabilities")?;
    let file = options.source()?.join("program");
    fs::write(&file, "content").unwrap();
    let lines = ["Signature = MD5", "AclSupport = yes", "XattrSupport = yes", "Accurate = ugpso5"];
    options.file_sets = vec![FileSet::new("Letters", &lines, &[file.parent().unwrap()])];
    for client in &mut options.clients {
        client.job.push("Accurate = yes".to_owned());
    }
    let bed = Bed::start(options)?;
    for (step, level) in (0_u32..).zip(["Full", "Incremental", "Incremental", "Differential"]) {
        next_second()?;
        // The kernel takes a capability away with the owner.
        lchown(&file, Some(100 + step), Some(200 + step)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700 + step)).unwrap();
        xattr::set(&file, "user.k", step.to_string().as_bytes()).unwrap();
        xattr::set(&file, "security.capability", &CAPABILITY).unwrap();
        for client in CLIENTS {
            bed.backup(client, &format!("level={level}"))?.must_be_good()?;
        }
    }
    let attributes = |path: &Path| {
        let of = |name| xattr::get(path, name).unwrap().map(|value| value.escape_ascii().to_string());
        (fs::read_to_string(path).unwrap(), path.metadata().unwrap().mode(), of("user.k"), of("security.capability"))
    };
    let restored = |from: &str, onto: &str| -> Result<_> {
        let to = bed.folder().join(format!("{from}-{onto}"));
        let (place, how) = (to.display(), "replace=always select current all done yes");
        bed.run(&format!("restore client={from}-fd restoreclient={onto}-fd where={place} {how}"))?.must_be_good()?;
        Ok(attributes(&to.join(file.strip_prefix("/").unwrap())))
    };
    let newest = attributes(&file);
    // The stock daemon ignores the attributes of an update, and sets the owner again.
    let by_stock = (newest.0.clone(), newest.1, Some("0".to_owned()), None);
    let by_ours = if Fd::under_test()? == Fd::Stock { &by_stock } else { &newest };
    for from in CLIENTS {
        assert_eq!(&restored(from, "test")?, by_ours, "of {from}");
        assert_eq!(restored(from, "reference")?, by_stock, "of {from}");
    }
    Ok(())
}
