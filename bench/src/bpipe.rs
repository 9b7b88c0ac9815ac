//! `bpipe` beside the stock daemon's: a program prints many bytes, which are saved as one file, and
//! a restore gives them to another program. CPU time is that of the File Daemon alone, without its
//! programs.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bed::{Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, JobResult, Noise, Restore, Result, reset_peak, say};
use nix::unistd::sync;

use crate::connection::Watch;
use crate::group::used;
use crate::statistics::{float, median, quotient};
use crate::surroundings::load;
use crate::tree::noise_file;
use crate::volumes::remove_volumes;

/// MiB that are printed again and again: more than a frame can compress, and in the page cache.
const BLOCK: u64 = 32;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// MiB that the program prints.
    pub mebibytes: u64,
    /// Jobs of each daemon for each kind of data and signature.
    pub pairs: u32,
    /// `zeros`, `noise`.
    pub data: Vec<String>,
    /// `none` or the word of the `FileSet`: `MD5`, `SHA256`.
    pub signatures: Vec<String>,
    /// Whether each backup is restored, too.
    pub restores: bool,
}

/// One job.
#[derive(Debug, Clone)]
struct Figures {
    what: String,
    fd: Fd,
    cpu: f64,
    wall: f64,
    peak: f64,
    load: f64,
}

/// Measures, the daemons in turn, and gives a table.
pub fn measure(wanted: &Wanted, watch: &Watch, interrupted: &AtomicBool) -> Result<String> {
    let mut options = BedOptions::new("bench-bpipe", Fd::BOTH.map(ClientOptions::new))?;
    // A volume for each job, so that old ones can go.
    options.pool = vec!["Maximum Volume Jobs = 1".to_owned()];
    let printer = printer(options.folder.path(), wanted.mebibytes)?;
    for data in &wanted.data {
        for signature in &wanted.signatures {
            options.file_sets.push(file_set(&printer, data, signature));
        }
    }
    let bed = &mut Bed::start(options)?;
    let mut all = Vec::new();
    for data in &wanted.data {
        for signature in &wanted.signatures {
            for _ in 0..wanted.pairs {
                for fd in Fd::BOTH {
                    if interrupted.load(Ordering::Relaxed) {
                        return Err(BedError::Usage("interrupted".to_owned()));
                    }
                    let name = fd.name();
                    let what = format!("{data}, {signature}");
                    let command = format!("run job=backup-{name} level=Full fileset={data}-{signature} yes");
                    let saved = one(bed, watch, &mut all, (&what, fd), &command)?;
                    if wanted.restores {
                        let to = bed.folder().join("restored");
                        let command =
                            Restore { job: saved.row.id, from: name, onto: name, to: &to, replace: "always" }.command();
                        one(bed, watch, &mut all, (&format!("{what}, restore"), fd), &command)?;
                    }
                    remove_volumes(bed, &saved, name)?;
                }
            }
        }
    }
    Ok(markdown(wanted, &all))
}

fn file_set(printer: &str, data: &str, signature: &str) -> FileSet {
    let mut set = FileSet::new(&format!("{data}-{signature}"), &[], &[]);
    let options = if signature == "none" { String::new() } else { format!("Signature = {signature}") };
    set.lines = vec![
        "Include {".to_owned(),
        format!("Options {{ {options} }}"),
        format!("Plugin = \"bpipe:/bench/{data}:{printer} {data}:dd of=/dev/null bs=1M status=none\""),
        "}".to_owned(),
    ];
    set
}

/// The program that prints; the path of it.
fn printer(folder: &Path, mebibytes: u64) -> Result<String> {
    let noise = folder.join("noise");
    let block = BLOCK.min(mebibytes.max(1));
    noise_file(&noise, &mut Noise::new(1), usize::try_from(block << 20).unwrap_or(1 << 20))?;
    let path = folder.join("print");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = zeros ]; then exec head -c {mebibytes}M /dev/zero; fi\n\
         n=0; while [ $n -lt {} ]; do cat {}; n=$((n+1)); done\n",
        mebibytes.div_ceil(block),
        noise.display()
    );
    fs::write(&path, text).map_err(BedError::file("write", &path))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(BedError::file("change", &path))?;
    Ok(path.display().to_string())
}

fn one(
    bed: &mut Bed,
    watch: &Watch,
    all: &mut Vec<Figures>,
    (what, fd): (&str, Fd),
    command: &str,
) -> Result<JobResult> {
    let client = bed.client(fd.name())?;
    let (port, pid) = (client.port(), client.pid()?);
    sync();
    let load = load();
    reset_peak(pid)?;
    let before = used(pid)?;
    let (result, wall) = watch.during(pid, port, || bed.run(command))?;
    let after = used(pid)?;
    let result = result.must_be_good()?;
    let figures = Figures {
        what: what.to_owned(),
        fd,
        cpu: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
        wall: wall.as_secs_f64(),
        peak: float(after.parts.peak_memory) / float(1 << 20),
        load,
    };
    say(&format!(
        "{what}: {} CPU {:.3} s (user {:.2}), {:.2} s, {:.0} MiB, load {load:.1}",
        fd.name(),
        figures.cpu,
        after.parts.user.saturating_sub(before.parts.user).as_secs_f64(),
        figures.wall,
        figures.peak,
    ));
    all.push(figures);
    Ok(result)
}

/// Medians of each daemon, and the median of the pairs' ratios.
fn markdown(wanted: &Wanted, all: &[Figures]) -> String {
    let mut text = format!(
        "{} MiB through bpipe, {} pairs. Medians; ratios are ours / stock, medians of the pairs.\n\n\
         | data, signature | FD CPU s: stock | ours | ratio | connection s: stock | ours | ratio | peak MiB: stock | ours | load |\n\
         | --- | --: | --: | --- | --: | --: | --- | --: | --: | --- |\n",
        wanted.mebibytes, wanted.pairs
    );
    let mut done: Vec<&str> = Vec::new();
    for what in all.iter().map(|figures| figures.what.as_str()) {
        if done.contains(&what) {
            continue;
        }
        done.push(what);
        let of = |fd: Fd, figure: fn(&Figures) -> f64| -> Vec<f64> {
            all.iter().filter(|figures| figures.what == what && figures.fd == fd).map(figure).collect()
        };
        let row = |figure: fn(&Figures) -> f64| {
            let (stock, ours) = (of(Fd::Stock, figure), of(Fd::Ours, figure));
            let ratios: Vec<f64> = ours.iter().zip(&stock).map(|(ours, stock)| quotient(*ours, *stock)).collect();
            (median(&stock), median(&ours), median(&ratios))
        };
        let (cpu, wall, peak) = (row(|f| f.cpu), row(|f| f.wall), row(|f| f.peak));
        let loads: Vec<f64> = all.iter().filter(|figures| figures.what == what).map(|figures| figures.load).collect();
        let _ = writeln!(
            text,
            "| {what} | {:.2} | {:.2} | **{:.2}** | {:.1} | {:.1} | **{:.2}** | {:.0} | {:.0} | {:.1} |",
            cpu.0,
            cpu.1,
            cpu.2,
            wall.0,
            wall.1,
            wall.2,
            peak.0,
            peak.1,
            median(&loads),
        );
    }
    text
}
