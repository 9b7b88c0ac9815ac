//! Daemons in a control group with little memory, as in a container: jobs at the same time share
//! what is there, a list that does not fit fails its job, and the kernel ends none.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use bed::peer::{EOD, Frame, job_session, packet};
use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Noise, Result};

/// A control group with a limit of memory, which goes with the value.
struct Group(PathBuf);

/// Where groups are, the file with the limit, and that with what the kernel has ended: in version 2
/// and in version 1.
const VERSIONS: [(&str, &str, &str); 2] = [
    ("/sys/fs/cgroup", "memory.max", "memory.events"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
];

impl Group {
    /// `None`: there is no such controller here, or this user may not use it.
    fn new(name: &str, limit: u64) -> Option<Self> {
        VERSIONS.into_iter().find_map(|(root, file, _)| {
            let folder = PathBuf::from(format!("{root}/{name}-{}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);
            // Only a controller has this file already.
            fs::File::options()
                .write(true)
                .open(group.0.join(file))
                .ok()?
                .write_all(limit.to_string().as_bytes())
                .ok()?;
            Some(group)
        })
    }

    /// Has a daemon enter it.
    fn wrapper(&self) -> Vec<String> {
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }

    /// How many processes the kernel has ended for want of memory.
    fn killed(&self) -> u64 {
        let control = VERSIONS.iter().find_map(|(.., file)| fs::read_to_string(self.0.join(file)).ok()).unwrap();
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
            return skip::test("no memory controller here");
        };
        let mut client = ClientOptions::new(Fd::under_test()?).named("test").with_workers(8);
        client.wrapper = group.wrapper();
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
        for id in bed.run_all(&vec!["run job=backup-test level=Full yes".to_owned(); jobs])? {
            bed.result(id)?.must_be_good()?;
        }
        assert_eq!(group.killed(), 0, "{jobs} jobs in {mebibytes} MiB");
        drop(bed);
    }
    Ok(())
}

/// The stock daemon takes 187 bytes a file, until the kernel ends it with all its jobs.
#[test]
fn an_accurate_list_that_does_not_fit_fails_its_job_only() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    let Some(group) = Group::new("ferrofd-list", 64 << 20) else {
        return skip::test("no memory controller here");
    };
    let mut client = ClientOptions::new(Fd::Ours).named("test");
    client.wrapper = group.wrapper();
    let options = BedOptions::new("memory-of-lists", [client])?.in_clear();
    let mut bed = Bed::start(options)?;
    let mut peer = job_session(bed.client("test")?.port(), 7)?;
    let lines: [&[u8]; 3] = [b"fileset vss=1\n", b"I\n", b"F /no/such/name"];
    peer.send_bytes(&lines.map(packet).concat())?;
    peer.signal(EOD)?;
    peer.expect("2000 OK include\n")?;
    peer.send(b"accurate files=2000000\n")?;
    let lstat = "P0A EAI IGk B Po Po A Gh BAA I BeLkZb BeLkZc BeLkZd A A C";
    for some in 0..2000 {
        let entry = |number| packet(format!("/d/{some}/{number:040}\0{lstat}\0\x000").as_bytes());
        peer.send_bytes(&(0..1000).map(entry).collect::<Vec<_>>().concat())?;
    }
    peer.signal(EOD)?;
    let said = loop {
        match peer.receive()? {
            Frame::Data(text) if text.starts_with(b"Jmsg ") => break String::from_utf8_lossy(&text).into_owned(),
            Frame::Closed => panic!("no message says why the job has failed"),
            _ => {}
        }
    };
    assert!(said.contains("The accurate list has more than "), "{said}");
    drop(peer);
    assert!(bed.console(&["status client=test-fd"])?.contains("Daemon started"));
    assert_eq!(group.killed(), 0);
    Ok(())
}
