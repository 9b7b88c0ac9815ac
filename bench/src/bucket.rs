//! The files of a tree as the objects of a bucket, in a real S3 server that is some round trips
//! away. Ours saves them with its plugin `s3`, the stock daemon saves a mount of the same bucket,
//! which is made anew for each job. CPU time and memory are those of the File Daemon and of what
//! works for it: the plugin host, or the program that mounts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Console, Distance, Fd, FileSet, Gateway, JobResult, Plugins, Result,
    children, next_second,
};
use nix::unistd::sync;
use openssl::hash::{MessageDigest, hash};

use crate::cell::{Cell, Level, Mounted};
use crate::connection::Watch;
use crate::group::Replica;
use crate::problems::Problem;
use crate::processes::{Before, used_by_others};
use crate::sample::{Sample, Side};
use crate::statistics::float;
use crate::surroundings::{Stalls, Surroundings};
use crate::tree::{Standing, visit};
use crate::volumes::remove_volumes;

pub(crate) mod mount;

use mount::Mount;

const BUCKET: &str = "objects";
/// How a bucket is saved.
#[derive(Debug, Clone, Copy)]
pub struct BucketKind {
    /// What the stock daemon saves.
    pub mounted: Mounted,
    /// So many objects are fetched by ours at a time.
    pub in_flight: u16,
    /// To the server and back.
    pub round_trip: Duration,
}

/// A bed whose clients save a bucket.
pub struct Buckets<'a> {
    console: Console,
    bed: Bed,
    distance: Distance,
    mounted: Mounted,
    objects: u64,
    watch: &'a Watch,
    /// The newest Full of each side.
    full: BTreeMap<Side, JobResult>,
    _gateway: Gateway,
}

impl<'a> Buckets<'a> {
    /// What this host has not.
    pub fn missing() -> Option<String> {
        Gateway::missing().or_else(Mount::missing).map(str::to_owned)
    }

    /// Raises the server, fills the bucket and raises the bed.
    pub fn start(cell: Cell, kind: BucketKind, tree: &Standing, watch: &'a Watch) -> Result<Self> {
        let BucketKind { mounted, in_flight, round_trip } = kind;
        let (mut options, gateway) = options("bucket")?;
        gateway.make_bucket(BUCKET)?;
        let objects = place_all(&gateway, &tree.path)?;
        let distance = Distance::to(gateway.port(), round_trip)?;
        let (mountpoint, settings) = (options.folder.path().join(BUCKET), options.folder.path().join("bucket.toml"));
        Gateway::settings(&settings, distance.port(), BUCKET, &format!("prefetch = {in_flight}"))?;
        let words = cell.variant.options().join("\n");
        let plugin = plugin_set(Side::Ours.name(), &words, &settings);
        options.file_sets = vec![FileSet::new(Side::Stock.name(), &[&words], &[&mountpoint]), plugin];
        let bed = Bed::start(options)?;
        // An Incremental would take for changed what is as new as the Full.
        next_second()?;
        Ok(Self {
            console: Console::of(&bed)?,
            bed,
            distance,
            mounted,
            objects,
            watch,
            full: BTreeMap::new(),
            _gateway: gateway,
        })
    }

    /// One replica: a job of each daemon in this order.
    pub fn replica(&mut self, cell: Cell, replica: u32, turns: &[Side]) -> Result<Replica> {
        for &side in turns {
            if cell.level != Level::Full && !self.full.contains_key(&side) {
                let full = Cell { level: Level::Full, ..cell };
                let (_, job) = self.measure(full, side, replica, 0)?;
                self.keep(full, side, job.must_be_good()?)?;
            }
        }
        let (mut samples, mut problems) = (Vec::new(), Vec::new());
        for (turn, &side) in (1..).zip(turns) {
            let (sample, job) = self.measure(cell, side, replica, turn)?;
            samples.push(sample);
            match job.must_be_good() {
                Ok(job) => {
                    let kept = self.keep(cell, side, job);
                    problems.extend(kept.err().map(|problem| Problem::differed(&problem)));
                }
                Err(problem) => problems.push(Problem::failed(&problem)),
            }
        }
        Ok(Replica { samples, problems })
    }

    fn measure(&mut self, cell: Cell, side: Side, replica: u32, turn: u32) -> Result<(Sample, JobResult)> {
        let folder = self.bed.folder().to_owned();
        let mount = match side {
            Side::Ours => None,
            _ => Some(Mount::new(self.mounted, self.distance.port(), BUCKET, &folder.join(BUCKET), &folder)?),
        };
        let client = self.bed.client(side.name())?;
        let (port, pid) = (client.port(), client.pid()?);
        let processes = || -> Result<Vec<u32>> {
            let helpers = mount.as_ref().map_or_else(|| children(pid), |mount| Ok(vec![mount.pid()]))?;
            Ok([vec![pid], helpers].concat())
        };
        sync();
        let around = Surroundings::found(&folder);
        let (before, others) = (Before::of(&processes()?)?, used_by_others(&mut self.bed)?);
        let stalls = Stalls::now();
        let level = if cell.level == Level::Full { "Full" } else { "Incremental" };
        let commands = [format!("run job=backup-{0} level={level} fileset={0} yes", side.name())];
        let storage = self.bed.storage().port();
        let run = || self.console.run(&self.bed, &commands);
        let (clocked, connection) = self.watch.seen(pid, port, Some(storage), run)?;
        let (job, queued) = (clocked.took, connection.started.map(|started| clocked.until(started)));
        let result = clocked.one()?;
        let stalls = Stalls::now().since(stalls);
        let cost = before.until_now(&processes()?)?;
        let [sd, dir] = used_by_others(&mut self.bed)?;
        let sample = Sample {
            cell,
            side,
            replica,
            turn,
            outcome: Sample::outcome_of(&result.row),
            connection: connection.life.as_secs_f64() * 1e3,
            first: None,
            job: Some(job.as_secs_f64() * 1e3),
            queued,
            fd: cost.cpu,
            // The kernel's ticks of each are not summed.
            fd_user: 0.0,
            fd_system: 0.0,
            sd: sd - others[0],
            dir: dir - others[1],
            rss: float(cost.peak),
            files: result.row.files,
            bytes: result.row.bytes,
            read_bytes: result.row.read_bytes,
            around: Surroundings { stalls, ..around },
            program: None,
            harness: None,
        };
        Ok((sample, result))
    }

    /// Fails if a job has not saved what it must; makes room of what the next one does not need.
    fn keep(&mut self, cell: Cell, side: Side, job: JobResult) -> Result<()> {
        let is_full = cell.level == Level::Full;
        must_be_whole(&format!("{cell}: {}", side.name()), &job, is_full, self.objects)?;
        let old = if is_full { self.full.insert(side, job) } else { Some(job) };
        old.map_or(Ok(()), |old| remove_volumes(&self.bed, &old, side.name()))
    }
}

/// A bed with both daemons, ours with its plugin, and a server of buckets.
pub(crate) fn options(label: &str) -> Result<(BedOptions, Gateway)> {
    let mut options = BedOptions::new(label, Fd::BOTH.map(ClientOptions::new))?;
    for client in &mut options.clients {
        // Server and relay are on this host only because this is a bench; a backup would give way
        // to them.
        client.settings.push("job.manners = \"off\"".to_owned());
    }
    for client in options.clients.iter_mut().filter(|client| client.fd == Fd::Ours) {
        client.plugins = Plugins::s3(&options.folder)?;
    }
    // A volume for each job, so that old ones can go.
    options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
    let gateway = Gateway::start(&options.folder, None)?.ok_or_else(|| BedError::Usage(Gateway::MISSING.to_owned()))?;
    Ok((options, gateway))
}

/// Fails if a job has not saved what it must of so many objects.
pub(crate) fn must_be_whole(what: &str, job: &JobResult, is_full: bool, objects: u64) -> Result<()> {
    let files = job.row.files;
    let is_whole = if is_full { files >= objects } else { files < objects.div_ceil(2) };
    if is_whole { Ok(()) } else { Err(BedError::Usage(format!("{what} has saved {files} files"))) }
}

/// Makes an object of each file of a tree; how many there are.
fn place_all(gateway: &Gateway, tree: &Path) -> Result<u64> {
    let mut count = 0;
    visit(tree, &mut |path| {
        let data = fs::read(path).map_err(BedError::file("read", path))?;
        let key = path.strip_prefix(tree).unwrap_or(path).to_string_lossy();
        count += 1;
        gateway.place(BUCKET, &key, &data, &md5(&data)?)
    })?;
    Ok(count)
}

/// A `FileSet` of what the plugin `s3` finds with these settings.
pub(crate) fn plugin_set(name: &str, options: &str, settings: &Path) -> FileSet {
    let (options, plugin) = (format!("Options {{ {options} }}"), format!("Plugin = \"s3:{}\"", settings.display()));
    let lines = ["Include {", &options, &plugin, "}"].map(str::to_owned).to_vec();
    FileSet { lines, ..FileSet::new(name, &[], &[]) }
}

/// The MD5 of an object, as the server notes it.
pub(crate) fn md5(data: &[u8]) -> Result<String> {
    let digest = hash(MessageDigest::md5(), data).map_err(|error| BedError::Usage(error.to_string()))?;
    Ok(digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
