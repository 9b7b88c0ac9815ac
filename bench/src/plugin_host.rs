//! A library with the C interface beside the stock daemon, which runs it as a part of itself:
//! `tests/plugins/bulk.c` hands over one large file in blocks of 64 KiB, or many small files. CPU
//! time is that of the File Daemon and of its plugin hosts.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bed::{Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Plugins, Result, build_plugin, children, say};
use nix::unistd::sync;

use crate::connection::Watch;
use crate::group::used;
use crate::statistics::{median, quotient};
use crate::surroundings::load;
use crate::volumes::remove_volumes;

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// MiB of the large file.
    pub mebibytes: u64,
    /// Number of small files, of 100 bytes each.
    pub files: u64,
    /// Jobs of each daemon for each of both.
    pub pairs: u32,
}

/// What a pair of jobs took, the stock daemon's first.
struct Pair {
    cpu: [f64; 2],
    wall: [f64; 2],
    load: f64,
}

/// Measures, the daemons in turn, and gives a table.
///
/// # Errors
/// A job fails, or the daemons do not save the same number of files and bytes.
pub fn measure(wanted: Wanted, watch: &Watch, interrupted: &AtomicBool) -> Result<String> {
    let kinds = [
        ("large", format!("one file of {} MiB", wanted.mebibytes), format!("mib={}", wanted.mebibytes)),
        ("small", format!("{} files of 100 bytes", wanted.files), format!("files={},size=100", wanted.files)),
    ];
    let mut options = BedOptions::new("bench-plugin-host", Fd::BOTH.map(ClientOptions::new))?;
    // A volume for each job, so that old ones can go.
    options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
    let plugins = options.folder.make("plugins")?;
    build_plugin("bulk", &[], &plugins.join("bulk-fd.so"))?;
    for client in &mut options.clients {
        client.plugins = Plugins::In(plugins.clone());
        client.settings.push("plugins.bpipe = \"off\"".to_owned());
    }
    for (name, _, words) in &kinds {
        let mut set = FileSet::new(name, &[], &[]);
        let plugin = format!("Plugin = \"bulk:name=/@bulk/x,{words}\"");
        set.lines = ["Include {", "Options { Signature = MD5 }", plugin.as_str(), "}"].map(str::to_owned).to_vec();
        options.file_sets.push(set);
    }
    let bed = &mut Bed::start(options)?;
    let mut table = format!(
        "A library in a plugin host, MD5, {} pairs. Medians; ratios are ours / stock, medians of the pairs.\n\n\
         | data | FD CPU s: stock | ours, plugin host included | ratio | connection s: stock | ours | ratio | load |\n\
         | --- | --: | --: | --: | --: | --: | --: | --: |\n",
        wanted.pairs
    );
    for (name, text, _) in &kinds {
        let mut pairs = Vec::new();
        for _ in 0..wanted.pairs {
            if interrupted.load(Ordering::Relaxed) {
                return Err(BedError::Usage("interrupted".to_owned()));
            }
            let pair = pair(bed, watch, name)?;
            say(&format!("{text}: CPU {:.3?} s, connection {:.2?} s, load {:.1}", pair.cpu, pair.wall, pair.load));
            pairs.push(pair);
        }
        add_row(&mut table, text, &pairs);
    }
    Ok(table)
}

fn add_row(table: &mut String, text: &str, pairs: &[Pair]) {
    let cells = |figure: fn(&Pair) -> [f64; 2]| {
        let (stock, ours): (Vec<_>, Vec<_>) = pairs.iter().map(figure).map(|[stock, ours]| (stock, ours)).unzip();
        let ratios: Vec<_> = ours.iter().zip(&stock).map(|(ours, stock)| quotient(*ours, *stock)).collect();
        format!("{:.2} | {:.2} | **{:.2}**", median(&stock), median(&ours), median(&ratios))
    };
    let loads: Vec<_> = pairs.iter().map(|pair| pair.load).collect();
    let (cpu, wall) = (cells(|pair| pair.cpu), cells(|pair| pair.wall));
    // Writing to a text does not fail.
    let _ = writeln!(table, "| {text} | {cpu} | {wall} | {:.1} |", median(&loads));
}

/// A job of each daemon.
fn pair(bed: &mut Bed, watch: &Watch, set: &str) -> Result<Pair> {
    let mut pair = Pair { cpu: [0.0; 2], wall: [0.0; 2], load: load() };
    let mut counts = Vec::new();
    for ((fd, cpu), wall) in Fd::BOTH.into_iter().zip(&mut pair.cpu).zip(&mut pair.wall) {
        let client = bed.client(fd.name())?;
        let (port, pid) = (client.port(), client.pid()?);
        sync();
        let before = processor_time(pid)?;
        let command = format!("run job=backup-{} level=Full fileset={set} yes", fd.name());
        let (result, time) = watch.during(pid, port, || bed.run(&command))?;
        *cpu = processor_time(pid)?.saturating_sub(before).as_secs_f64();
        *wall = time.as_secs_f64();
        let job = result.must_be_good()?;
        counts.push((job.row.files, job.row.bytes));
        remove_volumes(bed, &job, fd.name())?;
    }
    if counts.windows(2).any(|both| both.first() != both.last()) {
        return Err(BedError::Usage(format!("{set}: files and bytes differ: {counts:?}")));
    }
    Ok(pair)
}

/// The CPU time of a process and of its plugin hosts, which live as long as it does.
fn processor_time(daemon: u32) -> Result<Duration> {
    children(daemon)?.into_iter().try_fold(used(daemon)?.cpu, |sum, pid| Ok(sum + used(pid)?.cpu))
}
