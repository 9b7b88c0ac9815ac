//! The objects of a bucket, in a real S3 server that is some round trips away: ours saves them with
//! its plugin `s3`, the stock daemon saves a FUSE mount of the same bucket through the same
//! distance, which is mounted anew for each job. CPU time and memory are those of the File Daemon,
//! and of what works for it: the plugin host, or the program that mounts.
//!
//! Then the plugin alone: with more and fewer objects in flight, and with listings of any length.

mod pages;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bed::{Bed, BedError, Distance, Fd, FileSet, Gateway, JobResult, Noise, Result, children, next_second, say};
use clap::{Args, value_parser};
use nix::unistd::sync;

use crate::bucket::mount::Mount;
use crate::bucket::{md5, must_be_whole, options, plugin_set};
use crate::cell::Mounted;
use crate::connection::Watch;
use crate::processes::{Before, Cost};
use crate::statistics::{float, median, quotient};
use crate::surroundings::load;
use crate::volumes::remove_volumes;
use pages::Pages;

/// Objects of a directory of small and of large ones.
const IN_A_DIRECTORY: [u64; 2] = [1000, 100];
/// Large objects that differ; the others are the same again.
const DIFFERENT: u64 = 16;

/// What is measured.
#[derive(Debug, Clone, Args)]
pub struct Wanted {
    /// Number of small objects; 0: none.
    #[arg(long, default_value_t = 30_000)]
    pub objects: u64,
    /// Their mean size in bytes.
    #[arg(long, default_value_t = 590, value_parser = value_parser!(u64).range(1..=1 << 20))]
    pub mean: u64,
    /// Number of large objects; 0: none.
    #[arg(long, default_value_t = 1000)]
    pub large: u64,
    /// Their size in MiB.
    #[arg(long, default_value_t = 8)]
    pub mebibytes: u64,
    /// Milliseconds of a round trip to the server.
    #[arg(long, default_value_t = 10)]
    pub round_trip: u64,
    /// Objects that ours fetches at the same time, each measured for itself. The first one is set
    /// beside the stock daemon.
    #[arg(long, value_delimiter = ',', default_value = "64,256,768")]
    pub prefetch: Vec<u16>,
    /// How the stock daemon's bucket is mounted: `tuned`, `plain`; or nothing, for no job of it.
    #[arg(long, value_delimiter = ',', default_value = "tuned,plain")]
    pub mounts: Vec<String>,
    /// Objects of long listings; 0: none.
    #[arg(long, value_delimiter = ',', default_value = "130000,1300000")]
    pub listed: Vec<u64>,
    /// Jobs of each kind.
    #[arg(long, default_value_t = 1)]
    pub pairs: u32,
    /// `none`, or the word of the `FileSet`: `MD5`, `SHA256`.
    #[arg(long, default_value = "MD5")]
    pub signature: String,
}

/// One job.
#[derive(Debug, Clone)]
struct Figures {
    what: String,
    side: String,
    wall: f64,
    daemon: Cost,
    /// The plugin host, or the program that mounts.
    helper: Cost,
    load: f64,
}

impl Figures {
    fn cpu(&self) -> f64 {
        self.daemon.cpu + self.helper.cpu
    }
}

/// A bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bucket {
    Small,
    Large,
}

impl Bucket {
    fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }

    fn objects(self, wanted: &Wanted) -> u64 {
        match self {
            Self::Small => wanted.objects,
            Self::Large => wanted.large,
        }
    }

    fn text(self, wanted: &Wanted) -> String {
        match self {
            Self::Small => format!("{} objects of {} bytes", wanted.objects, wanted.mean),
            Self::Large => format!("{} objects of {} MiB", wanted.large, wanted.mebibytes),
        }
    }
}

/// The bed, and what a job needs.
struct Stand<'a> {
    gateway: Gateway,
    distance: Distance,
    bed: Bed,
    watch: &'a Watch,
    interrupted: &'a AtomicBool,
    wanted: &'a Wanted,
    all: Vec<Figures>,
}

/// Measures, and gives tables.
///
/// # Errors
/// A program is missing, a job fails, or it does not save what it must.
pub fn measure(wanted: &Wanted, watch: &Watch, interrupted: &AtomicBool) -> Result<String> {
    let kinds = wanted.mounts.iter().filter(|name| !name.is_empty()).map(|name| {
        let kind = Mounted::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| BedError::Usage(format!("{name}: no kind of mount; tuned or plain")))
    });
    let kinds = kinds.collect::<Result<Vec<_>>>()?;
    if let (false, Some(missing)) = (kinds.is_empty(), Mount::missing()) {
        return Err(BedError::Usage(missing.to_owned()));
    }
    let (mut options, gateway) = options("bench-s3")?;
    let distance = Distance::to(gateway.port(), Duration::from_millis(wanted.round_trip))?;
    let pages = Pages::start()?;
    let folder = options.folder.path().to_owned();
    let buckets: Vec<_> =
        [Bucket::Small, Bucket::Large].into_iter().filter(|bucket| bucket.objects(wanted) > 0).collect();
    let signature = match wanted.signature.as_str() {
        "none" => String::new(),
        word => format!("Signature = {word}"),
    };
    for bucket in &buckets {
        let bucket = bucket.name();
        for kind in &kinds {
            let set = format!("{bucket}-{}", kind.name());
            options.file_sets.push(FileSet::new(&set, &[&signature], &[&folder.join("mounts").join(&set)]));
        }
        for prefetch in &wanted.prefetch {
            let set = format!("{bucket}-{prefetch}");
            let path = folder.join(format!("{set}.toml"));
            Gateway::settings(&path, distance.port(), bucket, &format!("prefetch = {prefetch}"))?;
            options.file_sets.push(plugin_set(&set, &signature, &path));
        }
    }
    let path = folder.join("listed.toml");
    Gateway::settings(&path, pages.port(), "listed", "")?;
    options.file_sets.push(plugin_set("listed", &signature, &path));
    let bed = Bed::start(options)?;
    let mut stand = Stand { gateway, distance, bed, watch, interrupted, wanted, all: Vec::new() };
    stand.fill(&buckets)?;
    stand.measure(&buckets, &kinds)?;
    let mut text = stand.markdown(&buckets, &kinds);
    text.push_str(&stand.listings(&pages)?);
    Ok(text)
}

impl Stand<'_> {
    fn measure(&mut self, buckets: &[Bucket], kinds: &[Mounted]) -> Result<()> {
        for &bucket in buckets {
            for _ in 0..self.wanted.pairs {
                self.beside(bucket, kinds)?;
                for &prefetch in self.wanted.prefetch.iter().skip(usize::from(!kinds.is_empty())) {
                    self.alone(bucket, prefetch)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the buckets.
    fn fill(&self, buckets: &[Bucket]) -> Result<()> {
        let mut noise = Noise::new(1);
        for &bucket in buckets {
            self.gateway.make_bucket(bucket.name())?;
            let [many, few] = IN_A_DIRECTORY;
            for number in 0..bucket.objects(self.wanted) {
                let mut place = |key: &str, size: u64| {
                    let data = noise.bytes(usize::try_from(size).unwrap_or_default());
                    self.gateway.place(bucket.name(), key, &data, &md5(&data)?)
                };
                match bucket {
                    // From 1 byte to twice the mean, evenly.
                    Bucket::Small => {
                        let size = 1 + number.wrapping_mul(7919) % (self.wanted.mean * 2).saturating_sub(1).max(1);
                        place(&format!("d{:03}/o{number:06}", number / many), size)?;
                    }
                    Bucket::Large => {
                        let key = |number: u64| format!("d{:03}/o{number:06}", number / few);
                        if number < DIFFERENT {
                            place(&key(number), self.wanted.mebibytes << 20)?;
                        } else {
                            self.gateway.place_again(bucket.name(), &key(number), &key(number % DIFFERENT))?;
                        }
                    }
                }
            }
        }
        // An Incremental would take for changed what is as new as the Full.
        next_second()
    }

    /// Both daemons: a Full and an unchanged Incremental of each.
    fn beside(&mut self, bucket: Bucket, kinds: &[Mounted]) -> Result<()> {
        for &kind in kinds {
            let set = format!("{}-{}", bucket.name(), kind.name());
            self.chain(bucket, Fd::Stock, kind.name(), &set, Some(kind))?;
        }
        if let (Some(first), false) = (self.wanted.prefetch.first(), kinds.is_empty()) {
            self.chain(bucket, Fd::Ours, "ours", &format!("{}-{first}", bucket.name()), None)?;
        }
        Ok(())
    }

    fn chain(&mut self, bucket: Bucket, fd: Fd, side: &str, set: &str, kind: Option<Mounted>) -> Result<()> {
        let mut jobs = Vec::new();
        for level in ["Full", "Incremental"] {
            let place = self.bed.folder().join("mounts").join(set);
            let mount = match kind {
                Some(kind) => Some(Mount::new(kind, self.distance.port(), bucket.name(), &place, self.bed.folder())?),
                None => None,
            };
            let what = format!("{}, {level}", bucket.text(self.wanted));
            let job = self.job(&what, (fd, side), set, level, mount.as_ref())?;
            drop(mount);
            let objects = bucket.objects(self.wanted);
            must_be_whole(&format!("{what}: {}", fd.name()), &job, level == "Full", objects)?;
            jobs.push(job);
        }
        jobs.iter().try_for_each(|job| remove_volumes(&self.bed, job, fd.name()))
    }

    /// A Full of ours with so many objects in flight.
    fn alone(&mut self, bucket: Bucket, prefetch: u16) -> Result<()> {
        let what = format!("{}, Full", bucket.text(self.wanted));
        let set = format!("{}-{prefetch}", bucket.name());
        let job = self.job(&what, (Fd::Ours, &prefetch.to_string()), &set, "Full", None)?;
        remove_volumes(&self.bed, &job, Fd::Ours.name())
    }

    /// One job. What works for the stock daemon is what mounts; for ours, its children.
    fn job(
        &mut self,
        what: &str,
        (fd, side): (Fd, &str),
        set: &str,
        level: &str,
        mount: Option<&Mount>,
    ) -> Result<JobResult> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(BedError::Usage("interrupted".to_owned()));
        }
        let client = self.bed.client(fd.name())?;
        let (port, pid) = (client.port(), client.pid()?);
        let helpers = || match mount {
            Some(mount) => Ok(vec![mount.pid()]),
            None => children(pid),
        };
        sync();
        let load = load();
        let before = (Before::of(&[pid])?, Before::of(&helpers()?)?);
        let command = format!("run job=backup-{} level={level} fileset={set} yes", fd.name());
        let (result, wall) = self.watch.during(pid, port, || self.bed.run(&command))?;
        let job = result.must_be_good()?;
        let (daemon, helper) = (before.0.until_now(&[pid])?, before.1.until_now(&helpers()?)?);
        let figures =
            Figures { what: what.to_owned(), side: side.to_owned(), wall: wall.as_secs_f64(), daemon, helper, load };
        say(&format!(
            "{what}: {side} {:.2} s, {} files, {} bytes, CPU FD {:.2} s and helper {:.2} s, peak {:.0} and {:.0} MiB, \
             load {load:.1}",
            figures.wall,
            job.row.files,
            job.row.bytes,
            daemon.cpu,
            helper.cpu,
            mebibytes(daemon),
            mebibytes(helper),
        ));
        self.all.push(figures);
        Ok(job)
    }

    /// Long listings of which nothing is to be saved.
    fn listings(&mut self, pages: &Pages) -> Result<String> {
        let wanted: Vec<u64> = self.wanted.listed.iter().copied().filter(|objects| *objects > 0).collect();
        if wanted.is_empty() {
            return Ok(String::new());
        }
        let mut text = String::from(
            "\nAn Incremental of a bucket of which nothing has changed, from a server that only lists and is not \
             far away.\n\n\
             | objects | s | objects a second | CPU s: FD | plugin host | peak MiB: FD | plugin host | load |\n\
             | --: | --: | --: | --: | --: | --: | --: | --: |\n",
        );
        for objects in wanted {
            let what = format!("a listing of {objects} objects");
            for _ in 0..self.wanted.pairs {
                pages.hold(0);
                let full = self.job("an empty bucket, Full", (Fd::Ours, "ours"), "listed", "Full", None)?;
                pages.hold(objects);
                let job = self.job(&what, (Fd::Ours, "ours"), "listed", "Incremental", None)?;
                if !job.log.contains(&format!("{objects} objects, {objects} of them unchanged")) {
                    return Err(BedError::Usage(format!("{what}: not all were listed:\n{}", job.log)));
                }
                for job in [&full, &job] {
                    remove_volumes(&self.bed, job, Fd::Ours.name())?;
                }
            }
            let of = |figure: fn(&Figures) -> f64| self.median(&what, "ours", figure);
            let wall = of(|job| job.wall);
            let _ = writeln!(
                text,
                "| {objects} | {wall:.1} | {:.0} | {:.1} | {:.1} | {:.0} | {:.0} | {:.1} |",
                quotient(float(objects), wall),
                of(|job| job.daemon.cpu),
                of(|job| job.helper.cpu),
                of(|job| mebibytes(job.daemon)),
                of(|job| mebibytes(job.helper)),
                of(|job| job.load),
            );
        }
        Ok(text)
    }

    fn median(&self, what: &str, side: &str, figure: fn(&Figures) -> f64) -> f64 {
        let chosen = self.all.iter().filter(|job| job.what == what && job.side == side);
        median(&chosen.map(figure).collect::<Vec<_>>())
    }

    /// Medians: both daemons, then ours by objects in flight.
    fn markdown(&self, buckets: &[Bucket], kinds: &[Mounted]) -> String {
        let wanted = self.wanted;
        let mut text = String::new();
        let Some(first) = wanted.prefetch.first() else { return text };
        if !kinds.is_empty() {
            let _ = write!(
                text,
                "A bucket {} ms away, {} of each job. Stock: a FUSE mount (rclone), ours: the plugin with {first} objects \
                 in flight. CPU and peak memory include what mounts, or the plugin host.\n\n\
                 | job | mount | s: stock | ours | ratio | CPU s: stock | ours | ratio | peak MiB: stock | ours | load |\n\
                 | --- | --- | --: | --: | --- | --: | --: | --- | --: | --: | --: |\n",
                wanted.round_trip, wanted.pairs,
            );
        }
        for bucket in buckets {
            for level in ["Full", "Incremental"] {
                let what = format!("{}, {level}", bucket.text(wanted));
                for kind in kinds {
                    let both = |figure| [self.median(&what, kind.name(), figure), self.median(&what, "ours", figure)];
                    let ([wall, our_wall], [cpu, our_cpu]) = (both(|job| job.wall), both(Figures::cpu));
                    let [peak, our_peak] = both(|job| mebibytes(job.daemon) + mebibytes(job.helper));
                    let _ = writeln!(
                        text,
                        "| {what} | {} | {wall:.2} | {our_wall:.2} | **{:.3}** | {cpu:.2} | {our_cpu:.2} | **{:.2}** | \
                         {peak:.0} | {our_peak:.0} | {:.1} |",
                        kind.name(),
                        quotient(our_wall, wall),
                        quotient(our_cpu, cpu),
                        self.median(&what, "ours", |job| job.load),
                    );
                }
            }
        }
        text.push_str(
            "\n| job | in flight | s | objects a second | MiB a second | CPU s: FD | plugin host | peak MiB: FD | \
             plugin host |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: |\n",
        );
        for &bucket in buckets {
            let what = format!("{}, Full", bucket.text(wanted));
            let objects = bucket.objects(wanted);
            let bytes =
                if bucket == Bucket::Small { objects * wanted.mean } else { (objects * wanted.mebibytes) << 20 };
            for prefetch in &wanted.prefetch {
                let side = if prefetch == first && !kinds.is_empty() { "ours" } else { &prefetch.to_string() };
                let of = |figure| self.median(&what, side, figure);
                let wall = of(|job| job.wall);
                let _ = writeln!(
                    text,
                    "| {what} | {prefetch} | {wall:.2} | {:.0} | {:.1} | {:.2} | {:.2} | {:.0} | {:.0} |",
                    quotient(float(objects), wall),
                    quotient(float(bytes) / float(1 << 20), wall),
                    of(|job| job.daemon.cpu),
                    of(|job| job.helper.cpu),
                    of(|job| mebibytes(job.daemon)),
                    of(|job| mebibytes(job.helper)),
                );
            }
        }
        text
    }
}

fn mebibytes(cost: Cost) -> f64 {
    float(cost.peak) / float(1 << 20)
}
