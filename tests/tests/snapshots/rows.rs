//! Jobs with each answer of the helper.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use bed::{Bed, Expect, Fd, JobResult, PATIENCE, Result, StockRecord, job_resource, wait_for};
use nix::libc::O_NONBLOCK;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::{helper, place};

const NAME: &str = "under";

struct Row {
    name: &'static str,
    set: &'static str,
    /// Lines of the helper's mode.
    mode: &'static str,
    /// More directives of the job.
    job: &'static [&'static str],
    expect: Expect,
    /// What ours must say, save, or call.
    must: &'static [&'static str],
}

const fn row(name: &'static str, set: &'static str, mode: &'static str, must: &'static [&'static str]) -> Row {
    Row { name, set, mode, job: &[], expect: Expect::Equal, must }
}

impl Row {
    const fn differs(mut self, documented: &'static str, found: &'static [&'static str]) -> Self {
        self.expect = Expect::Differs { documented, found };
        self
    }

    const fn with_job(mut self, job: &'static [&'static str]) -> Self {
        self.job = job;
        self
    }
}

/// `data` and `data/sub` can have snapshots; the latter's is `snap-sub`.
const BOTH: &str = "support: case $SNAPSHOT_MOUNTPOINT in $here/data/sub) echo status=1 type=fake; exit 0;; esac\n\
    mount: case $SNAPSHOT_MOUNTPOINT in */sub) echo status=1 snapmountpoint=$here/snap-sub/; exit 0;; esac";
const TWO: &str = "support: case $SNAPSHOT_MOUNTPOINT in $here/twice) echo status=1 type=fake; exit 0;; esac\n\
    mount: echo status=1 snapmountpoint=$here/snap-two; exit 0";
const REASON: &str = "says how its program ended";

fn rows() -> Vec<Row> {
    vec![
        row("usual", "Data", "", &["only then", "   Create Snapshot for ", "   Delete Snapshot for ", "vss yes"]),
        row("names", "Names", "", &["Could not stat \"/bed/data/only now\"", "/bed/live/only now"]),
        row(
            "listed",
            "Listed",
            BOTH,
            &["Create Snapshot for /bed/data/sub", "/bed/data/sub/in sub", "/bed/data/other/in other"],
        )
        .differs("empty directory below its mount point", &["only of stock: /bed/data/sub/ "]),
        row("outside", "Outside", "", &["vss no"]),
        row("refused", "Data", "support: echo 'status=0 error=\"no\"'; exit 1", &["vss no", "only now"]),
        row("unclear", "Data", "support: echo 'no such thing'; exit 0", &["vss no", "only now"]),
        row(
            "without",
            "Data",
            "create: echo 'status=2 error=\"no space\"'; exit 1",
            &["ERR=no space", "vss yes", "only now"],
        ),
        row(
            "fatal",
            "Data",
            "create: echo 'status=0 error=\"no space\"'; exit 1",
            &["Fatal error:    Unable to create snapshot"],
        ),
        row(
            "one-of-two",
            "Listed",
            concat!(
                "support: case $SNAPSHOT_MOUNTPOINT in $here/data/sub) echo status=1 type=fake; exit 0;; esac\n",
                "create: case $SNAPSHOT_MOUNTPOINT in */sub) echo 'status=0 error=\"is bad\"'; exit 1;; esac",
            ),
            &["of /bed/data/sub ERR=is bad", "   Delete Snapshot for /bed/data"],
        ),
        row("exit-three", "Data", "create: echo oops; exit 3", &["oops", "Child exited with code 3"])
            .differs(REASON, &["Child exited with code 3"]),
        row(
            "no-mount",
            "Data",
            "mount: echo 'status=0 error=\"no mount\"'; exit 1",
            &["ERR=no mount", "only now", "delete "],
        ),
        row("mount-zero", "Data", "mount: echo 'status=0 error=\"no mount\"'; exit 0", &["Unable to mount snapshot"]),
        row("no-point", "Data", "mount: echo status=1; exit 0", &["only now", "names no snapmountpoint"])
            .differs("names no mount point causes no message", &["names no snapmountpoint", "errors "]),
        row(
            "nowhere",
            "Data",
            "mount: echo status=1 snapmountpoint=/nowhere; exit 0",
            &["Could not stat \"/bed/data\""],
        ),
        row(
            "no-unmount",
            "Data",
            "unmount: echo 'status=0 error=\"busy\"'; exit 1",
            &["delete ", "   Delete Snapshot for "],
        ),
        row("delete-zero", "Data", "delete: echo 'status=0 error=\"busy\"'; exit 0", &["   Delete Snapshot for "]),
        row(
            "no-delete",
            "Data",
            "delete: echo 'status=0 error=\"busy\"'; exit 1",
            &["Unable to delete snapshot of /bed/data ERR=busy"],
        ),
        row("kept", "Data", "", &["unmount ", "vss yes"]).with_job(&["Snapshot Retention = 1 hour"]),
        row(
            "kept-by-date",
            "Data",
            "create: echo 'status=1 volume=\"/v w\" createdate=\"2023-11-14 22:13:20\"'; exit 0",
            &["unmount "],
        )
        .with_job(&["Snapshot Retention = 2 hours"]),
        row("noise", "Data", "create: echo 'WARNING: device is old' >&2", &["only then"]),
        row(
            "subvolumes",
            "Data",
            "subvolumes: case $SNAPSHOT_MOUNTPOINT in $here/data) \
            echo \"dev=12345 mountpoint=\\\"$here/x y\\\" fstype=btrfs dev=12346 mountpoint=$here/z device=/q fstype=btrfs\";; esac",
            &["subvolumes /bed/x y", "subvolumes /bed/z", "/q"],
        ),
        row("all", "All", BOTH, &["/bed/data/sub/in sub", "/bed/data/other/in other", "/bed/data/sub/deep/in deep"])
            .differs("is saved twice", &["/bed/data/sub/deep", "only of stock: /bed/data/sub/ "]),
        row("excluded", "Excluded", BOTH, &["/bed/data/sub/in sub"]).differs(
            "excludes a mount point",
            &["/bed/data/other", "/bed/data/sub/deep", "only of stock: /bed/data/sub/ "],
        ),
        row("twice", "Twice", TWO, &["/bed/twice/again/f 6"]).differs("mounted once more", &["/bed/twice/again"]),
        row("link", "Link", "", &["/bed/link/d/f 27"]),
        row("bound", "Bound", "", &["/bed/bound/f 27"]),
        row("metadata", "Metadata", "", &["stream 1998", "\\x08snapshot"])
            .differs("ACLs and extended attributes", &["stream 1998"]),
    ]
}

/// Everything about a job in lines.
fn lines(bed: &Bed, row: &Row, job: &JobResult) -> Result<Vec<String>> {
    let folder = bed.folder();
    let plain = |line: String| line.replace(&*folder.to_string_lossy(), "/bed").replace(&job.row.job, "JOB");
    let mut lines = vec![format!("status {}", job.row.status)];
    let report = job.report();
    lines.push(format!("vss {}", report.get("Snapshot/VSS").map_or("", String::as_str)));
    if job.row.status != 'f' {
        lines.push(format!("errors {}", report.get("Non-fatal FD errors").map_or("", String::as_str)));
    }
    // Of the stock daemon: any old system error, in the place of a reason.
    let told = job.plain_messages(NAME).into_iter();
    let told = told.filter(|line| ![" Success", " Interrupted system call"].contains(&line.as_str()));
    lines.extend(told.map(plain).map(|line| helper::without_number(&line)));
    let mut files = Vec::new();
    for file in bed.catalog().files(job.row.id)? {
        let (path, digest) = (String::from_utf8_lossy(&file.path), String::from_utf8_lossy(&file.digest));
        // How large a directory is, and in which order its names come, is the file system's.
        let size = if path.ends_with('/') { String::new() } else { size(&file.lstat) };
        files.push(plain(format!("{path} {size} {digest}")));
    }
    files.sort_unstable();
    lines.extend(files);
    if row.set == "Metadata" {
        for record in bed.records(&job.row, NAME)? {
            let record = record?;
            if record.stream == 1998 {
                lines.push(format!("stream 1998 {}", record.data.escape_ascii()));
            }
        }
    }
    lines.extend(helper::calls(folder, row.name, NAME));
    let columns = ["Name", "Volume", "Device", "Type", "CreateTDate", "Retention"];
    let own = format!("FROM Snapshot WHERE JobId = {}", job.row.id);
    for kept in bed.catalog().rows(&columns, &own)? {
        let words = kept.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>().join("|");
        lines.push(plain(format!("catalog {words}")));
    }
    Ok(lines)
}

/// `st_size` in base 64, as a number.
fn size(lstat: &[u8]) -> String {
    bed::LStat::parse(lstat).map_or_else(String::new, |stat| stat.size.to_string())
}

impl Row {
    /// What the page of differences and our own lines should say, and don't.
    fn missing(&self, documents: &str, ours: Option<&str>) -> Vec<String> {
        let documented = match self.expect {
            Expect::Differs { documented, .. } => Some(documented).filter(|text| !documents.contains(text)),
            Expect::Equal => None,
        };
        let undocumented = documented.map(|text| format!("{}: no row says {text:?}", self.name));
        let parts = self.must.iter().filter_map(|part| {
            let all = ours.filter(|all| !all.contains(part))?;
            Some(format!("{}: {part:?} is missing in\n{all}", self.name))
        });
        undocumented.into_iter().chain(parts).collect()
    }
}

#[test]
fn snapshots_are_those_of_the_stock_daemon_or_differ_as_documented() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("snapshots", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    for (name, value) in [("live/d/f", "live"), ("snap/d/f", "snapshot")] {
        xattr::set(folder.join(name), "user.where", value.as_bytes()).unwrap();
    }
    let rows = rows();
    for row in &rows {
        helper::set_mode(&folder, row.name, row.mode);
        options.director_resources.push(place::job(row.name, NAME, row.set, row.job));
    }
    let bed = Bed::start(options)?;
    let record = StockRecord::open("snapshots")?;
    let orders: Vec<_> = rows.iter().map(|row| format!("run job={}-{NAME} yes", row.name)).collect();
    let jobs = bed.queue_all(&orders)?;
    bed.wait_for_reports(&jobs)?;
    let documents = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/differences.md")).unwrap();
    let mut wrong = Vec::new();
    for (row, job) in rows.iter().zip(jobs) {
        let told = lines(&bed, row, &bed.result(job)?)?;
        let input = format!("{} {} {:?}", row.set, row.mode, row.job);
        let mut differences = record.differences(row.name, "job", &input, &told)?;
        differences.retain(|text| !text.contains(&format!("only of stock: {}", helper::ASKS)));
        let expect = if fd == Fd::Stock { Expect::Equal } else { row.expect };
        if !expect.is_met_by(&differences) {
            let ours = told.iter().filter(|line| !line.starts_with("SNAPSHOT_") && !line.contains('|'));
            wrong.push(format!("{}: {differences:#?}\nours: {:#?}", row.name, ours.collect::<Vec<_>>()));
        }
        wrong.extend(row.missing(&documents, (fd == Fd::Ours).then(|| told.join("\n")).as_deref()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// As one in `/run/bsnapshot` is, if `/run` is walked.
#[test]
fn a_snapshot_that_is_mounted_below_a_name_is_left_out() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("mounted-below", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    options.folder.make("other/mounted")?;
    fs::write(folder.join("other/mounted/only then"), "snapshot").unwrap();
    helper::set_mode(&folder, "below", "mount: echo status=1 snapmountpoint=$here/data/other/mounted; exit 0");
    options.director_resources.push(place::job("below", NAME, "All", &[]));
    let bed = Bed::start(options)?;
    let job = bed.run(&format!("run job=below-{NAME} yes"))?.must_be('T')?;
    let files = bed.catalog().files(job.row.id)?;
    let is_saved = |end: &str| files.iter().any(|file| file.path.ends_with(end.as_bytes()));
    assert!(is_saved("/data/only then") && is_saved("/data/other/in other"), "{files:?}");
    assert_eq!(is_saved("/data/other/mounted/only then"), fd == Fd::Stock, "{files:?}");
    Ok(())
}

/// Those that earlier jobs have kept are in it.
#[test]
fn the_directory_of_snapshots_stays_out_where_none_is_read() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("none-read", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    fs::write(folder.join("live/.snapshots/x/kept"), "kept").unwrap();
    let says = |status: &str| {
        let answer = format!("echo '{status} type=fake' snapdirectory=$here/data/.snapshots/");
        format!("support: case $SNAPSHOT_MOUNTPOINT in $here/data) {answer}; exit ${{failed:-0}};; esac")
    };
    let fails = |action: &str, status: u8| format!("{action}: echo 'status={status} error=\"no\"'; exit 1");
    let modes = [
        ("skipped", says("status=0 error=\"it is skipped\"").replace("failed:-0", "failed:-1")),
        ("none-made", format!("{}\n{}", says("status=1"), fails("create", 2))),
        ("none-mounted", format!("{}\n{}", says("status=1"), fails("mount", 0))),
    ];
    for (job, mode) in &modes {
        helper::set_mode(&folder, job, mode);
        options.director_resources.push(place::job(job, NAME, "Data", &[]));
    }
    let bed = Bed::start(options)?;
    for (job, _) in &modes {
        let job = bed.run(&format!("run job={job}-{NAME} yes"))?.must_be('T')?;
        let files = bed.catalog().files(job.row.id)?;
        let is_saved = |end: &str| files.iter().any(|file| file.path.ends_with(end.as_bytes()));
        let saved = ["/data/only now", "/.snapshots/", "/.snapshots/x/kept"].map(is_saved);
        assert_eq!(saved, [true, fd == Fd::Stock, fd == Fd::Stock], "{}", job.log);
    }
    Ok(())
}

/// They make no snapshots, and see what backups leave out.
#[test]
fn a_verify_of_the_disk_and_an_estimate_leave_out_the_directory_of_snapshots() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("looks", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    fs::write(folder.join("live/.snapshots/x/kept"), "kept").unwrap();
    // The snapshot has what is there now.
    let says = "echo status=1 type=fake snapdirectory=$here/data/.snapshots/; exit 0";
    let live = "mount: echo status=1 snapmountpoint=$here/live snapdirectory=$here/data/.snapshots/; exit 0";
    let mode = format!("support: case $SNAPSHOT_MOUNTPOINT in $here/data) {says};; esac\n{live}");
    for job in ["saves", "checks", "-Console"] {
        helper::set_mode(&folder, job, &mode);
    }
    options.director_resources.push(place::job("saves", NAME, "Data", &[]));
    let check = format!("Type = Verify\nLevel = DiskToCatalog\nVerify Job = saves-{NAME}");
    options.director_resources.push(job_resource(&format!("checks-{NAME}"), NAME, "Data", &check));
    let bed = Bed::start(options)?;
    let full = bed.run(&format!("run job=saves-{NAME} yes"))?.must_be('T')?;
    let saved = bed.catalog().files(full.row.id)?.iter().any(|file| file.path.ends_with(b".snapshots/"));
    assert!(!saved, "{}", full.log);
    let check = bed.run(&format!("run job=checks-{NAME} level=DiskToCatalog yes"))?;
    assert_eq!(check.log.contains("/.snapshots/"), fd == Fd::Stock, "{}", check.log);
    let answer = bed.console(&[&format!("estimate job=saves-{NAME} level=Full")])?;
    let files = full.row.files + if fd == Fd::Stock { 3 } else { 0 };
    assert!(answer.contains(&format!("2000 OK estimate files={files} ")), "{files}: {answer}");
    let created = helper::heads(&folder, "checks", NAME).iter().any(|head| head.starts_with("create"));
    assert!(!created, "a Verify job makes no snapshot");
    Ok(())
}

/// What it reads has no snapshot of its own.
#[test]
fn a_snapshot_of_another_job_is_left_out_by_one_that_makes_none() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("of-another", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    options.folder.make("live/d/mounted")?;
    fs::write(folder.join("live/d/mounted/of another"), "snapshot").unwrap();
    helper::set_mode(&folder, "reads", "mount: echo status=1 snapmountpoint=$here/live/d/mounted; exit 0");
    // The job stays where its snapshot is mounted until somebody writes to the gate.
    let (script, gate) = (folder.join("wait"), folder.join("gate"));
    mkfifo(&gate, Mode::S_IRWXU).unwrap();
    scripts::write(&script, &format!("echo waiting; read -r _ < {}", gate.display())).unwrap();
    let command = format!("Command = \"{}\"", script.display());
    let waits = format!("Run Script {{\nRuns When = AfterVSS\nRuns On Client = yes\n{command}\n}}");
    options.director_resources.push(place::job("reads", NAME, "Data", &[&waits]));
    options.director_resources.push(place::job("other", NAME, "Outside", &[]));
    let bed = Bed::start(options)?;
    let reads = bed.queue(&format!("run job=reads-{NAME} yes"))?;
    // It can be written to only when somebody reads.
    let mut open = fs::File::options();
    let gate = wait_for("the snapshot", PATIENCE, || {
        Ok(open.write(true).custom_flags(O_NONBLOCK).open(&gate).map_err(|error| error.to_string()))
    });
    let other = bed.run(&format!("run job=other-{NAME} yes"));
    writeln!(gate?, "go on").unwrap();
    bed.wait(reads)?.must_be('T')?;
    let other = other?.must_be('T')?;
    let files = bed.catalog().files(other.row.id)?;
    let is_saved = |end: &str| files.iter().any(|file| file.path.ends_with(end.as_bytes()));
    assert_eq!(["/live/d/f", "/mounted/of another"].map(is_saved), [true, fd == Fd::Stock], "{}", other.log);
    Ok(())
}

/// As a subvolume of a container does, between the helper's answer and its snapshot.
#[test]
fn a_file_system_that_is_gone_before_its_snapshot_does_not_fail_the_job() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("gone", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    let named = "echo dev=12345 mountpoint=$here/data/gone fstype=btrfs";
    let of_gone = |action: &str, what: &str| format!("{action}: case $SNAPSHOT_MOUNTPOINT in */gone) {what};; esac");
    let mode = [
        format!("subvolumes: case $SNAPSHOT_MOUNTPOINT in */data) {named};; esac"),
        of_gone("support", "echo status=1 type=fake; exit 0"),
        of_gone("create", "echo 'status=0 error=\"it is gone\"'; exit 1"),
    ];
    helper::set_mode(&folder, "gone", &mode.join("\n"));
    options.director_resources.push(place::job("gone", NAME, "All", &[]));
    let bed = Bed::start(options)?;
    let job = bed.run(&format!("run job=gone-{NAME} yes"))?.must_be(if fd == Fd::Stock { 'f' } else { 'T' })?;
    let told = format!("create snapshot of {}/data/gone ERR=it is gone", folder.display());
    assert!(job.log.contains(&told), "{}", job.log);
    let saved = bed.catalog().files(job.row.id)?.iter().any(|file| file.path.ends_with(b"only then"));
    assert_eq!(saved, fd == Fd::Ours, "{}", job.log);
    Ok(())
}

/// The scripts of `docs/snapshots.md`: what was stopped has to be continued.
#[test]
fn a_script_after_the_job_runs_when_no_snapshot_can_be_made() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let mut options = place::options("scripts", &[(NAME, Fd::under_test()?)])?;
    let folder = options.folder.path().to_owned();
    helper::set_mode(&folder, "scripts", "create: echo 'status=0 error=\"no space\"'; exit 1");
    let script = |when: &str, name: &str, more: &str| {
        let command = folder.join(name);
        scripts::write(&command, &format!(": > {}-ran-{when}", command.display())).unwrap();
        let of_client = format!("Runs When = {when}\nRuns On Client = yes\nCommand = \"{}\"", command.display());
        format!("Run Script {{\n{of_client}\n{more}\n}}")
    };
    let scripts = [
        script("Before", "quiesce", ""),
        script("AfterVSS", "continue", ""),
        script("After", "continue-after", "Runs On Success = yes\nRuns On Failure = yes"),
    ];
    let scripts: Vec<_> = scripts.iter().map(String::as_str).collect();
    options.director_resources.push(place::job("scripts", NAME, "Data", &scripts));
    let bed = Bed::start(options)?;
    let job = bed.run(&format!("run job=scripts-{NAME} yes"))?.must_be('f')?;
    let ran = ["quiesce-ran-Before", "continue-ran-AfterVSS", "continue-after-ran-After"];
    assert_eq!(ran.map(|name| folder.join(name).exists()), [true, false, true], "{}", job.log);
    Ok(())
}

/// A helper that says less than it has to.
#[test]
fn a_snapshot_of_which_the_helper_says_too_little_is_an_error() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    let mut options = place::options("says-little", &[(NAME, fd)])?;
    let folder = options.folder.path().to_owned();
    let data = folder.join("data");
    let reason = if fd == Fd::Stock { "" } else { "the helper program names no volume" };
    let silent = "Unable to parse snapshot command output";
    let volume =
        [format!("mount snapshot {} ERR={reason}", data.display()), format!(" of {} ERR={reason}", data.display())];
    let stays = Some(format!("unmount snapshot of {} ERR=it is busy", data.display()));
    let stays: Vec<_> = stays.filter(|_| fd == Fd::Ours).into_iter().collect();
    // The stock daemon takes it for a file system that can have no snapshot.
    let killed = format!("create snapshot of {} ERR=Error while executing \"support\" ", data.display());
    let killed: Vec<_> = Some(killed).filter(|_| fd == Fd::Ours).into_iter().collect();
    let rows = [
        (
            "silent-create",
            "create: exit 0",
            'f',
            vec![format!("Unable to create snapshot of {} ERR={silent}", data.display())],
        ),
        (
            "silent-delete",
            "delete: exit 0",
            'T',
            vec![format!("Unable to delete snapshot of {} ERR={silent}", data.display())],
        ),
        ("no-volume", "create: echo status=1; exit 0\nlist: exit 0", 'T', volume.to_vec()),
        ("no-answer", "support: kill -9 $$", 'T', killed.clone()),
        ("endless", "support: yes | head -c 2000000; exit 0", 'T', killed),
        ("no-unmount", "unmount: echo 'status=0 error=\"it is busy\"'; exit 1", 'T', stays),
    ];
    for (name, mode, ..) in &rows {
        helper::set_mode(&folder, name, mode);
        let kept: &[&str] = if *name == "no-unmount" { &["Snapshot Retention = 1 hour"] } else { &[] };
        options.director_resources.push(place::job(name, NAME, "Data", kept));
    }
    let bed = Bed::start(options)?;
    for (name, _, status, told) in rows {
        let job = bed.run(&format!("run job={name}-{NAME} yes"))?.must_be(status)?;
        for text in told {
            assert!(job.log.contains(&text), "{name}: {text}: {}", job.log);
        }
        let live = bed.catalog().files(job.row.id)?.iter().any(|file| file.path.ends_with(b"only now"));
        assert_eq!(live, ["no-volume", "no-answer", "endless"].contains(&name), "{name}: what is read");
    }
    Ok(())
}
