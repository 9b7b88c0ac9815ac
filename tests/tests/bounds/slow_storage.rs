//! Backups of storage that fails, answers partly, changes its mind, or does not answer at all: what
//! is on the volume has the right digest, what is not is in the messages, and a job that waits for
//! an answer can be canceled while others go on.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use bed::{
    Bed, BedOptions, ClientOptions, Fd, FileSet, JobResult, Noise, PATIENCE, Plugins, Restore, Result, Saved,
    SlowStorage, build_plugin, has_session, idle, in_parallel, is_named, saved, threads, verify_job, wait_for,
};
use md5::{Digest as _, Md5};

const WORDS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
const DIRECTORIES: usize = 3;

/// A bed with two `FileSets`: `slow`, which is seen through the mount, and `local`.
struct Scene {
    // Unmounted before the bed removes its folder.
    storage: SlowStorage,
    bed: Bed,
    /// What the storage shows.
    tree: PathBuf,
    /// Where the storage is seen.
    mount: PathBuf,
    /// What is in each file.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Scene {
    fn start(label: &str) -> Result<Self> {
        Self::start_with(label, |_, _| ())
    }

    /// With what is added for a mount.
    fn start_with(label: &str, more: impl FnOnce(&mut BedOptions, &Path)) -> Result<Self> {
        let mut client = ClientOptions::new(Fd::under_test()?).named("test");
        client.job.push("Maximum Concurrent Jobs = 5".to_owned());
        let mut options = BedOptions::new(label, [client])?;
        options.device = vec!["Maximum Concurrent Jobs = 5".to_owned()];
        let [tree, mount, local] = ["tree", "mount", "local"].map(|name| options.folder.path().join(name));
        let mut files = BTreeMap::new();
        let mut noise = Noise::new(19);
        for directory in 0..DIRECTORIES {
            fs::create_dir_all(tree.join(format!("d{directory}"))).unwrap();
            for (number, word) in (0..4).flat_map(|number| WORDS.map(|word| (number, word))) {
                let size = if (number, word) == (0, "gamma") { 700_000 } else { noise.below(30_000) };
                let content = noise.bytes(size);
                let name = format!("d{directory}/{word}-{number}");
                fs::write(tree.join(&name), &content).unwrap();
                files.insert(mount.join(name), content);
            }
        }
        fs::create_dir(&mount).unwrap();
        fs::create_dir(&local).unwrap();
        fs::write(local.join("file"), "local\n").unwrap();
        let md5 = ["Signature = MD5", "Verify = pins5"];
        options.file_sets = vec![FileSet::new("slow", &md5, &[&mount]), FileSet::new("local", &md5, &[&local])];
        options.director_resources = vec![verify_job("test", "slow", "")];
        more(&mut options, &mount);
        let storage = SlowStorage::mount(Path::new(env!("CARGO_BIN_EXE_slowfs")), &[], &tree, &mount)?;
        Ok(Self { storage, bed: Bed::start(options)?, tree, mount, files })
    }

    /// Saves the storage with these faults and judges the result.
    fn judge(&mut self, faults: &[String]) -> Result<()> {
        for fault in faults {
            self.storage.order(&format!("fault {fault}"))?;
        }
        let job = self.bed.backup("test", "level=Full fileset=slow")?.must_be('T')?;
        self.storage.order("clear")?;
        let problems = self.problems(&job, faults)?;
        assert!(problems.is_empty(), "{faults:?}:\n{}\n{}", problems.join("\n"), job.log);
        Ok(())
    }

    /// What is wrong on the volume or missing in the messages.
    fn problems(&self, job: &JobResult, faults: &[String]) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let saved = self.saved(job)?;
        for (path, content) in &self.files {
            let is_told = path.ancestors().any(|path| is_named(&job.log, &path.to_string_lossy()));
            let Some(Saved { data, digest, .. }) = saved.get(path) else {
                if !is_told {
                    problems.push(format!("{} is neither saved nor in a message", path.display()));
                }
                continue;
            };
            let computed = Md5::digest(data).to_vec();
            // The file whose reading failed in the middle has a message.
            if *digest != computed && !(digest.is_empty() && (content.is_empty() || is_told)) {
                problems.push(format!("{}: the digest is not that of the data", path.display()));
            }
            let spoiled = |verb: &str| {
                faults.iter().filter_map(|fault| fault.strip_prefix(verb)).any(|word| named(path).contains(word))
            };
            let is_right = data == content || spoiled("change:") || spoiled("short:") && content.starts_with(data);
            if !is_right && !is_told {
                problems.push(format!("{}: {} of {} bytes", path.display(), data.len(), content.len()));
            }
        }
        Ok(problems)
    }

    /// Restores what a job saved onto storage with these faults: each file is there and right, or
    /// named in a message.
    fn judge_restore(&mut self, backup: u32, faults: &[String]) -> Result<String> {
        let fd = Fd::under_test()?;
        // The stock daemon gives up after a short write, with a message that has no name.
        for fault in faults.iter().filter(|fault| fd == Fd::Ours || !fault.starts_with("short")) {
            self.storage.order(&format!("fault {fault}"))?;
        }
        let to = self.mount.join("restored");
        let job = self.bed.restore_own("test", backup, &to)?;
        self.storage.order("clear")?;
        let (said, _report) = job.log.split_once("  Build OS:").unwrap_or((&job.log, ""));
        let restored = self.tree.join("restored");
        let mut problems = Vec::new();
        for (path, content) in &self.files {
            let below = path.strip_prefix("/").unwrap();
            let is_told = to.join(below).ancestors().any(|path| is_named(said, &path.to_string_lossy()));
            let found = fs::read(restored.join(below)).map_err(|error| error.to_string());
            if !is_told && found.as_ref() != Ok(content) {
                let found = found.map(|found| found.len());
                problems.push(format!("{}: {found:?}, not {} bytes", path.display(), content.len()));
            }
        }
        if restored.exists() {
            fs::remove_dir_all(&restored).unwrap();
        }
        assert!(problems.is_empty(), "{faults:?}:\n{}\n{}", problems.join("\n"), job.log);
        Ok(job.log)
    }

    /// Cancels a job that hangs, which may not have begun. It must end in the daemon and in the
    /// Director before the storage answers: the caller has it answer after this.
    fn cancel(&self, job: u32, pid: u32, fault: &str) -> Result<()> {
        self.bed.console(&[&format!("cancel jobid={job} yes")])?;
        // The Director may sleep for ten seconds before it passes the order on.
        wait_for(&format!("the end of a session with {fault}"), PATIENCE, || {
            Ok(if has_session(pid)? { Err("it is served".to_owned()) } else { Ok(()) })
        })?;
        self.bed.wait(job)?.must_be('A').map(drop)
    }

    /// Starts a job, and waits until it hangs.
    fn hang(&mut self, command: &str, fault: &str) -> Result<u32> {
        self.storage.order(&format!("fault {fault}"))?;
        let job = self.bed.queue(command)?;
        self.storage.order("held")?;
        Ok(job)
    }

    /// The files on the volume.
    fn saved(&self, job: &JobResult) -> Result<BTreeMap<PathBuf, Saved>> {
        if job.row.files == 0 {
            return Ok(BTreeMap::new());
        }
        let files = saved(self.bed.records(&job.row, "test")?)?;
        Ok(files.into_values().map(|file| (PathBuf::from(&file.name), file)).collect())
    }
}

fn named(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The numbers of the combinations that are drawn. Many take hours; several runs can share them.
fn rounds(usually: u64) -> Range<u64> {
    let number = |name, usually| std::env::var(name).map_or(usually, |text| text.parse().unwrap());
    let first = number("STORAGE_FIRST", 0);
    first..first + number("STORAGE_ROUNDS", usually)
}

/// Some faults, the same for the same number.
fn drawn(round: u64) -> Vec<String> {
    let mut noise = Noise::new(1000 + round);
    let words = ["alpha", "beta-1", "gamma", "ta-2", "d1", "-3", "a-0"];
    let count = words.len();
    (0..=noise.below(4))
        .map(|_| {
            let word = words.get(noise.below(count)).unwrap();
            match noise.below(9) {
                0 => format!("error:{word}"),
                1 => format!("error-read:{word}"),
                2 => format!("error-open:{word}"),
                3 => format!("error-getattr:{word}"),
                4 => format!("error-opendir:{word}"),
                5 => format!("error-readdir:{word}"),
                6 => format!("partial:{}", 1 + noise.below(5000)),
                7 => format!("short:{word}"),
                _ => format!("change:{word}"),
            }
        })
        .collect()
}

/// The same for restores.
fn drawn_for_restores(round: u64) -> Vec<String> {
    let mut noise = Noise::new(5000 + round);
    let words = ["alpha", "beta-1", "gamma", "ta-2", "d1", "-3", "a-0"];
    let verbs = ["error-create", "error-write", "error-mkdir", "error-setattr", "error-lookup", "error-getattr"];
    let verbs = [&verbs[..], &["error-flush", "error-open", "error-read", "error", "short"]].concat();
    let mut pick = |all: &[&str]| all.get(noise.below(all.len())).unwrap().to_string();
    let count = 1 + round % 4;
    (0..count).map(|_| format!("{}:{}", pick(&verbs), pick(&words))).collect()
}

#[test]
fn faults_of_storage_lose_no_file_silently_and_make_no_wrong_digest() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let mut scene = Scene::start("storage-faults")?;
    let all = ["partial:1000", "change:alpha", "short:gamma", "error-read:beta", "error-open:delta-1", "error:d2"];
    scene.judge(&all.map(str::to_owned))?;
    let good = scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    assert_eq!(scene.problems(&good, &[])?, Vec::<String>::new());
    let all = ["short:gamma", "error-create:alpha-1", "error-write:beta", "error-flush:delta-2", "error-mkdir:d2"];
    let said = scene.judge_restore(good.row.id, &all.map(str::to_owned))?;
    if Fd::under_test()? == Fd::Ours {
        assert_eq!(said.matches("could not close").count(), 2, "{said}");
    }
    for round in rounds(3) {
        scene.judge(&drawn(round))?;
        // Late answers have files made at the same time.
        scene.storage.order(&format!("delay {}", if round % 2 == 0 { 2 } else { 0 }))?;
        scene.judge_restore(good.row.id, &drawn_for_restores(round))?;
        scene.storage.order("delay 0")?;
    }
    // Nothing stays of it.
    scene.judge_restore(good.row.id, &[])?;
    let good = scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    assert_eq!(scene.problems(&good, &[])?, Vec::<String>::new());
    assert_eq!(scene.saved(&good)?.len(), scene.files.len() + DIRECTORIES + 1);
    Ok(())
}

/// Over a network the last error of a file often comes only when it is closed.
#[test]
fn a_file_that_could_not_be_closed_is_replaced_by_the_next_restore() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon does not look whether a file could be closed");
    let mut scene = Scene::start("storage-close")?;
    let good = scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    // With late answers files are made at the same time.
    for delay in [0, 2] {
        let name = format!("restored-{delay}");
        let to = scene.mount.join(&name);
        let restore = |scene: &Scene, replace| {
            scene.bed.restore(&Restore { job: good.row.id, from: "test", onto: "test", to: &to, replace })
        };
        scene.storage.order("fault error-flush:delta-2")?;
        scene.storage.order(&format!("delay {delay}"))?;
        let broken = restore(&scene, "always")?;
        scene.storage.order("clear")?;
        scene.storage.order("delay 0")?;
        assert_eq!(broken.log.matches("could not close").count(), DIRECTORIES, "{}", broken.log);
        let below = scene.tree.join(&name).join(scene.mount.strip_prefix("/").unwrap());
        for directory in 0..DIRECTORIES {
            let found = fs::metadata(below.join(format!("d{directory}/delta-2"))).unwrap();
            assert_eq!(found.mode(), 0o101_600, "d{directory}, {delay} ms");
            assert_eq!(fs::metadata(below.join(format!("d{directory}/delta-1"))).unwrap().mode(), 0o100_644);
        }
        let next = restore(&scene, "never")?;
        for (path, content) in &scene.files {
            let found = below.join(path.strip_prefix(&scene.mount).unwrap());
            assert_eq!(&fs::read(&found).unwrap(), content, "{}: {}", found.display(), next.log);
            assert_eq!(fs::metadata(&found).unwrap().mode(), 0o100_644, "{}: {}", found.display(), next.log);
        }
        fs::remove_dir_all(scene.tree.join(&name)).unwrap();
    }
    Ok(())
}

/// Files that are made at the same time may be on several file systems, of which some are local.
#[test]
fn a_file_that_could_not_be_closed_stays_private_beside_one_on_a_local_file_system() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon does not look whether a file could be closed");
    let mut scene = Scene::start_with("storage-close-local", |options, mount| {
        let local = mount.with_file_name("local");
        let [first, last] = ["d0/gamma-0", "last"].map(|name| mount.join(name));
        options.file_sets.push(FileSet::new("both", &["Signature = MD5"], &[&first, &last, &local]));
        let client = options.clients.remove(0).with_depth(8);
        options.clients.push(client);
    })?;
    let last = scene.tree.join("last");
    fs::create_dir(&last).unwrap();
    for number in 0..4 {
        fs::write(last.join(format!("delta-{number}")), "data").unwrap();
    }
    let good = scene.bed.backup("test", "level=Full fileset=both")?.must_be_good()?;
    let local = scene.mount.with_file_name("local").join("file");
    fs::remove_dir_all(scene.mount.join("last")).unwrap();
    fs::remove_file(&local).unwrap();
    scene.storage.order("fault error-flush:delta")?;
    scene.storage.order("delay 2")?;
    let to = Path::new("/");
    let job = scene.bed.restore_own("test", good.row.id, to)?;
    scene.storage.order("clear")?;
    scene.storage.order("delay 0")?;
    assert_eq!(job.log.matches("could not close").count(), 4, "{}", job.log);
    assert_eq!(fs::metadata(local).unwrap().mode(), 0o100_644);
    for number in 0..4 {
        let found = fs::metadata(last.join(format!("delta-{number}"))).unwrap();
        assert_eq!(found.mode(), 0o101_600, "delta-{number}");
    }
    Ok(())
}

/// As on vfat or SMB: there is room for one of the two.
#[test]
fn the_second_of_two_names_that_are_one_to_the_file_system_is_an_error() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon replaces the first one, silently");
    let mut scene = Scene::start("storage-folds")?;
    let pairs = [["Makefile", "makefile"], ["Folder/name", "folder/name"]];
    for name in pairs.into_iter().flatten() {
        let file = scene.tree.join("d1").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, name).unwrap();
    }
    let directories = [("Folder", 0o700), ("folder", 0o755)];
    for (name, mode) in directories {
        fs::set_permissions(scene.tree.join("d1").join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let good = scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    // With late answers files are made at the same time.
    for delay in [0, 2] {
        scene.storage.order("fault fold:")?;
        scene.storage.order(&format!("delay {delay}"))?;
        let to = scene.mount.join(format!("restored-{delay}"));
        let job = scene.bed.restore_own("test", good.row.id, &to)?;
        scene.storage.order("clear")?;
        scene.storage.order("delay 0")?;
        let below = scene.tree.join(format!("restored-{delay}")).join(scene.mount.strip_prefix("/").unwrap());
        for names in pairs {
            let there: Vec<&str> = names.into_iter().filter(|name| below.join("d1").join(name).exists()).collect();
            let [kept] = there[..] else { panic!("{there:?}: {}", job.log) };
            assert_eq!(fs::read_to_string(below.join("d1").join(kept)).unwrap(), kept, "{}", job.log);
            let lost = names.into_iter().find(|name| *name != kept).unwrap();
            let told = format!("/d1/{lost} not restored: this file system takes its name for {kept}, which");
            assert!(job.log.contains(&told), "{}", job.log);
        }
        // Nor does the record of the second directory change the first.
        let there = fs::read_dir(below.join("d1")).unwrap().map(|entry| entry.unwrap().file_name());
        let there: Vec<_> = there.filter(|name| name.eq_ignore_ascii_case("folder")).collect();
        let of_first = directories.iter().position(|(name, _)| there == [*name]).unwrap();
        let ((kept, mode), (lost, _)) = (directories[of_first], directories[1 - of_first]);
        let found = fs::metadata(below.join("d1").join(kept)).unwrap().permissions().mode();
        assert_eq!(found & 0o7777, mode, "{kept}, {delay}: {}", job.log);
        let told = format!("/d1/{lost}/ not restored: this file system takes its name for {kept}, which");
        assert!(job.log.contains(&told), "{}", job.log);
        for (path, content) in &scene.files {
            let found = below.join(path.strip_prefix(&scene.mount).unwrap());
            assert_eq!(&fs::read(&found).unwrap(), content, "{}: {}", found.display(), job.log);
        }
    }
    Ok(())
}

/// The names of the attributes that are on the volume for a file.
fn attributes_of(bed: &Bed, job: &JobResult, file: &str) -> Result<Vec<&'static str>> {
    let files = saved(bed.records(&job.row, "test")?)?;
    let file = files.into_values().find(|saved| saved.name.ends_with(file)).unwrap();
    let text = String::from_utf8_lossy(&file.attributes).into_owned();
    Ok(["user.a", "user.b", "user.c"].into_iter().filter(|name| text.contains(name)).collect())
}

#[test]
fn one_attribute_that_cannot_be_read_costs_only_itself() -> Result<()> {
    skip::lacks!(SlowStorage::missing());
    let mut scene = Scene::start_with("storage-attributes", |options, mount| {
        options.file_sets.push(FileSet::new("attributes", &["XattrSupport = yes", "AclSupport = yes"], &[mount]));
    })?;
    let names = ["user.a", "user.b", "user.c"];
    for (file, name) in ["alpha-0", "alpha-1", "delta-3"].iter().flat_map(|file| names.map(|name| (file, name))) {
        xattr::set(scene.tree.join("d1").join(file), name, b"value").unwrap();
    }
    let backup = |scene: &Scene| scene.bed.backup("test", "level=Full fileset=attributes")?.must_be('T');
    let whole = backup(&scene)?;
    assert_eq!(attributes_of(&scene.bed, &whole, "/d1/alpha-0")?, names);
    scene.storage.order("fault error-getxattr:alpha-0@user.b")?;
    scene.storage.order("fault unsupported-listxattr:alpha-1")?;
    let job = backup(&scene)?;
    scene.storage.order("clear")?;
    let file = scene.mount.join("d1/alpha-0");
    assert_eq!(attributes_of(&scene.bed, &job, "/d1/alpha-0")?, ["user.a", "user.c"], "{}", job.log);
    let text = format!("lgetxattr error on file \"{}\": attribute \"user.b\": ERR=Input/output error", file.display());
    assert!(job.log.contains(&text), "{}", job.log);
    assert!(job.log.contains("Had 1 xattr errors while doing backup"), "{}", job.log);
    assert_eq!(attributes_of(&scene.bed, &job, "/d1/alpha-1")?, Vec::<&str>::new());
    assert_eq!(attributes_of(&scene.bed, &job, "/d1/delta-3")?, names, "{}", job.log);

    let to = scene.mount.join("restored");
    scene.storage.order("fault error-setxattr:alpha-0@user.a")?;
    scene.storage.order("fault unsupported-setxattr:alpha-1@user.b")?;
    let job = scene.bed.restore_own("test", whole.row.id, &to)?;
    scene.storage.order("clear")?;
    let there =
        |file: &str| scene.tree.join("restored").join(scene.mount.strip_prefix("/").unwrap()).join("d1").join(file);
    for (file, lost) in [("alpha-0", Some("user.a")), ("alpha-1", Some("user.b")), ("delta-3", None)] {
        let found = names.into_iter().filter(|name| xattr::get(there(file), name).unwrap().is_none());
        assert_eq!(found.collect::<Vec<_>>(), lost.into_iter().collect::<Vec<_>>(), "{file}: {}", job.log);
        let told = lost.is_none_or(|lost| job.log.contains(&format!("{file}\": attribute \"{lost}\"")));
        assert!(told, "{file}: {}", job.log);
    }
    assert!(job.log.contains("Encountered 2 xattr errors while doing restore"), "{}", job.log);
    Ok(())
}

/// Commands of jobs, the fault that stops each, and its delay.
fn cases(scene: &Scene, full: u32) -> Vec<(String, String, u64)> {
    let backup = "run job=backup-test level=Full fileset=slow yes".to_owned();
    let to = scene.mount.join("restored");
    let restore = Restore { job: full, from: "test", onto: "test", to: &to, replace: "always" }.command();
    let verify = format!("run job=verify-test level=DiskToCatalog jobid={full} yes");
    // Of restores a directory, small files at the same time, and a large one.
    let mut cases = [
        (&backup, "stop-read:beta-2", 0),
        (&backup, "stop-lookup:beta-2", 0),
        (&verify, "stop-read:gamma-2", 0),
        (&verify, "stop-lookup:gamma-2", 0),
        (&restore, "stop-mkdir:d1", 0),
        (&restore, "stop-create:delta-3", 5),
        (&restore, "stop-write:gamma-0", 0),
    ]
    .map(|(command, fault, delay)| (command.clone(), fault.to_owned(), delay))
    .to_vec();
    // And at any operation.
    cases.extend(rounds(0).map(|round| {
        let command = if round % 2 == 0 { &backup } else { &restore };
        (command.clone(), format!("stop-after:{}", Noise::new(77 + round).below(250)), 5 * (round / 2 % 2))
    }));
    cases
}

#[test]
fn a_job_whose_storage_does_not_answer_is_canceled_and_others_go_on() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    skip::lacks!(SlowStorage::missing());
    let mut scene = Scene::start("storage-stops")?;
    scene.bed.backup("test", "level=Full fileset=local")?.must_be_good()?;
    let good = scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    let pid = scene.bed.client("test")?.pid()?;
    let idle = idle(pid)?.1;
    let cases = cases(&scene, good.row.id);
    for (number, (command, fault, delay)) in cases.iter().enumerate() {
        scene.storage.order(&format!("delay {delay}"))?;
        let job = scene.hang(command, fault)?;
        if number % 2 == 0 {
            scene.bed.backup("test", "level=Full fileset=local")?.must_be_good()?;
        }
        scene.cancel(job, pid, fault)?;
        // Its threads end when the storage answers, or is taken away.
        if number + 1 == cases.len() {
            scene.storage.take_away();
        } else {
            scene.storage.order("clear")?;
        }
        threads_end(pid, idle, fault)?;
    }
    Ok(())
}

/// A list of names and a program on the storage, names that want a snapshot, and a client whose
/// Director may use the storage only.
fn asks_before_jobs(options: &mut BedOptions, mount: &Path) {
    for (name, sign, file) in [("list", '<', "d0/alpha-0"), ("program", '|', "d0/beta-1")] {
        let text = format!("\\{sign}{}", mount.join(file).display());
        options.file_sets.push(FileSet::new(name, &[], &[Path::new(&text)]));
    }
    let mut snapshot = FileSet::new("snapshot", &[], &[&mount.join("d1")]);
    snapshot.lines.push("Enable Snapshot = yes".to_owned());
    options.file_sets.push(snapshot);
    let limited = options.clients.first().cloned().map(|mut client| {
        "limited".clone_into(&mut client.name);
        client.fd_director = vec![
            format!("Allowed Restore Directories = {}", mount.display()),
            format!("Allowed Backup Directories = {}", mount.join("d2").display()),
            format!("Allowed Script Directories = {}", mount.display()),
        ];
        client
    });
    options.clients.extend(limited);
    for client in &mut options.clients {
        client.file_daemon.push("Snapshot Command = \"/bin/echo status=0\"".to_owned());
    }
}

#[test]
fn what_a_job_asks_of_storage_before_it_begins_can_be_canceled() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    skip::lacks!(SlowStorage::missing());
    // The Director may take twenty seconds to pass one cancel on.
    in_parallel(PARTS, &(0..PARTS).collect::<Vec<_>>(), |&part| asks_are_canceled(part)).map(drop)
}

/// In how many scenes the cases of [`asks_are_canceled`] are.
const PARTS: usize = 5;

/// The cases of one scene.
fn asks_are_canceled(part: usize) -> Result<()> {
    let mut scene = Scene::start_with(&format!("storage-before-jobs-{part}"), asks_before_jobs)?;
    let good = scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    let to = scene.mount.join("restored");
    let restore = Restore { job: good.row.id, from: "test", onto: "limited", to: &to, replace: "always" }.command();
    let backup = |client: &str, set: &str| format!("run job=backup-{client} level=Full fileset={set} yes");
    let cases = [
        ("test", backup("test", "list"), "stop-open:alpha-0"),
        ("test", backup("test", "list"), "stop-read:alpha-0"),
        ("test", backup("test", "program"), "stop-lookup:beta-1"),
        ("test", backup("test", "snapshot"), "stop-lookup:d1"),
        ("limited", backup("limited", "program"), "stop-lookup:beta-1"),
        ("limited", backup("limited", "local"), "stop-lookup:d2"),
        ("limited", restore, "stop-lookup:restored"),
    ];
    for (client, command, fault) in cases.into_iter().skip(part).step_by(PARTS) {
        let pid = scene.bed.client(client)?.pid()?;
        let idle = idle(pid)?.1;
        let job = scene.hang(&command, fault)?;
        scene.cancel(job, pid, fault)?;
        scene.storage.order("clear")?;
        threads_end(pid, idle, fault)?;
    }
    scene.bed.backup("test", "level=Full fileset=slow")?.must_be_good()?;
    Ok(())
}

/// Programs for bpipe on the storage, which the Director may run, and plugins of whose files the
/// daemon makes or saves a part.
fn with_plugins(options: &mut BedOptions, mount: &Path) -> Result<()> {
    let plugins = options.folder.make("plugins")?;
    for name in ["tp", "opt"] {
        build_plugin(name, &[], &plugins.join(format!("{name}-fd.so")))?;
    }
    for client in &mut options.clients {
        client.plugins = Plugins::In(plugins.clone());
        client.fd_director = vec![format!("Allowed Script Directories = {}", mount.display())];
        options.folder.make(&format!("work/{}/trace", client.name))?;
    }
    let programs = mount.with_file_name("tree").join("programs");
    fs::create_dir(&programs).unwrap();
    for (name, line) in [("reader", "echo data"), ("writer", "cat >/dev/null")] {
        scripts::write(&programs.join(name), line).unwrap();
    }
    let at = |name: &str| mount.join("programs").join(name).display().to_string();
    for (name, command) in [
        ("bpipe", format!("bpipe:/f:{}:{}", at("reader"), at("writer"))),
        ("core", "tp:reg=/left-to-the-daemon,data=x,cf=5".to_owned()),
    ] {
        options.file_sets.push(FileSet::new(name, &["Signature = MD5"], &[]).with(format!("Plugin = \"{command}\"")));
    }
    // The plugin saves this one's data, and the daemon its attributes.
    fs::write(mount.with_file_name("tree").join("programs/file.ok"), "data").unwrap();
    let option = ["Signature = MD5", "XATTR Support = yes", "Plugin = \"opt:x\""];
    options.file_sets.push(FileSet::new("option", &option, &[&mount.join("programs/file.ok")]));
    Ok(())
}

/// Calls of plugins have no limit. What the daemon asks of storage for them has.
#[test]
fn a_job_that_waits_for_storage_while_a_plugin_has_its_files_is_canceled() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon waits on");
    skip::lacks!(SlowStorage::missing());
    // The Director may take twenty seconds to pass one cancel on.
    let cases = [
        ("bpipe", false, "stop-lookup:reader"),
        ("bpipe", true, "stop-lookup:writer"),
        ("core", true, "stop-create:left"),
        ("option", false, "stop-listxattr:file.ok"),
    ];
    in_parallel(cases.len(), &cases, |&(set, restores, fault)| {
        let mut scene = Scene::start_with(&format!("storage-{set}-{restores}"), |options, mount| {
            with_plugins(options, mount).unwrap();
        })?;
        let pid = scene.bed.client("test")?.pid()?;
        let command = if restores {
            let good = scene.bed.backup("test", &format!("level=Full fileset={set}"))?.must_be_good()?;
            let to = scene.mount.join("restored");
            Restore { job: good.row.id, from: "test", onto: "test", to: &to, replace: "always" }.command()
        } else {
            format!("run job=backup-test level=Full fileset={set} yes")
        };
        let idle = threads(pid)?;
        let job = scene.hang(&command, fault)?;
        scene.cancel(job, pid, fault)?;
        scene.storage.order("clear")?;
        threads_end(pid, idle, fault)?;
        // The plugin serves the next job.
        scene.bed.backup("test", &format!("level=Full fileset={set}"))?.must_be_good().map(drop)
    })
    .map(drop)
}

/// A Director that may not restore everywhere may have another job put a link there, while its
/// first one is looked at or does not read the answer.
#[test]
fn a_link_that_comes_after_the_look_at_the_place_of_a_restore_is_not_followed() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon follows any link");
    skip::lacks!(SlowStorage::missing());
    let mut scene = Scene::start_with("storage-judged", |options, mount| {
        let [alias, allowed, outside] = ["alias", "allowed", "outside"].map(|name| mount.with_file_name(name));
        fs::create_dir(&allowed).unwrap();
        // Behind a link no directory is made.
        fs::create_dir_all(outside.join(mount.with_file_name("local").strip_prefix("/").unwrap())).unwrap();
        symlink(allowed, &alias).unwrap();
        // Where the place has a link, it is looked where that of each allowed directory leads.
        let line = format!("Allowed Restore Directories = {}, {}", mount.join("d1").display(), alias.display());
        options.clients.iter_mut().for_each(|client| client.fd_director.push(line.clone()));
    })?;
    let good = scene.bed.backup("test", "level=Full fileset=local")?.must_be_good()?;
    let at = |name: &str| scene.mount.with_file_name(name);
    let [to, link, outside, file] = ["alias/new", "allowed/new", "outside", "local/file"].map(at);
    let restore = Restore { job: good.row.id, from: "test", onto: "test", to: &to, replace: "always" };
    let job = scene.hang(&restore.command(), "stop-lookup:d1")?;
    symlink(&outside, link).unwrap();
    scene.storage.order("clear")?;
    let job = scene.bed.wait(job)?;
    assert!(!outside.join(file.strip_prefix("/").unwrap()).exists(), "{}", job.log);
    assert!(job.log.contains("it is newer than this job"), "{}", job.log);
    Ok(())
}

fn threads_end(pid: u32, idle: usize, fault: &str) -> Result<()> {
    wait_for(&format!("the threads after {fault} to end"), PATIENCE, || {
        let now = threads(pid)?;
        Ok(if now <= idle { Ok(()) } else { Err(format!("{now} instead of {idle}")) })
    })
}
