//! What a FileSet with a thousand patterns costs: both File Daemons estimate the same 100,000
//! files, in turns, without patterns and with wild-cards, regular expressions, or both, of which
//! none matches. What is measured is the daemon's CPU time, beside that of the clock.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use bed::{Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Result, usage};

use crate::say;

const FILES: usize = 100_000;
const IN_ONE_DIRECTORY: usize = 100;
const CLIENTS: [&str; 2] = ["stock", "ours"];

/// Measures `rounds` estimates of each, and says the medians. `true` if both daemons counted the
/// same.
pub(crate) fn run(patterns: usize, rounds: usize) -> Result<bool> {
    bed::setup::root(&mut |step| say(step))?;
    let mut options = BedOptions::new("matching", Fd::BOTH.map(ClientOptions::new))?;
    let source = options.source()?;
    say(&format!("{FILES} empty files, {patterns} patterns, {rounds} rounds."));
    make_files(&source)?;
    let half = patterns / 2;
    let sets: [(&str, Vec<String>); 4] = [
        ("none", Vec::new()),
        ("wild", wild_cards(patterns)),
        ("regex", expressions(patterns)),
        ("both", [wild_cards(half), expressions(half)].concat()),
    ];
    options.file_sets = sets
        .iter()
        .map(|(name, lines)| {
            let mut directives = vec!["Exclude = yes"];
            directives.extend(lines.iter().map(String::as_str));
            // An Options block that rejects and has no pattern would reject everything.
            FileSet::new(name, if lines.is_empty() { &[] } else { &directives }, &[&source])
        })
        .collect();
    let mut bed = Bed::start(options)?;
    say(&format!("{:<10}{:>14}{:>14}{:>14}{:>14}", "patterns", "stock CPU s", "ours CPU s", "stock s", "ours s"));
    let mut same = true;
    for (name, _) in &sets {
        let mut times: [Vec<(Duration, Duration)>; 2] = Default::default();
        let mut answers = Vec::new();
        for _ in 0..rounds {
            for (client, times) in CLIENTS.iter().zip(&mut times) {
                let (answer, cpu, wall) = estimate(&mut bed, client, name)?;
                answers.push(answer);
                times.push((cpu, wall));
            }
        }
        same &= answers.iter().all(|answer| Some(answer) == answers.first());
        let cpu = times.each_ref().map(|times| median(times.iter().map(|(cpu, _)| *cpu).collect()));
        let wall = times.each_ref().map(|times| median(times.iter().map(|(_, wall)| *wall).collect()));
        let [cpu_stock, cpu_ours] = cpu.map(|time| time.as_secs_f64());
        let [wall_stock, wall_ours] = wall.map(|time| time.as_secs_f64());
        say(&format!("{name:<10}{cpu_stock:>14.2}{cpu_ours:>14.2}{wall_stock:>14.2}{wall_ours:>14.2}"));
    }
    say(if same { "Both counted the same." } else { "The two did NOT count the same." });
    Ok(same)
}

/// Homes with projects in them.
fn make_files(source: &Path) -> Result<()> {
    for directory in 0..FILES / IN_ONE_DIRECTORY {
        let (user, project) = (directory % 37, directory / 37);
        let folder = source.join(format!("home/user{user}/projects/project-{project}/src"));
        fs::create_dir_all(&folder).map_err(BedError::file("make", &folder))?;
        for file in 0..IN_ONE_DIRECTORY {
            let kind = ["c", "o", "txt", "html", "jpeg", "log"].get(file % 6).unwrap_or(&"dat");
            let path = folder.join(format!("file_{directory}_{file}.{kind}"));
            fs::File::create(&path).map_err(BedError::file("make", &path))?;
        }
    }
    Ok(())
}

fn wild_cards(count: usize) -> Vec<String> {
    let pattern = |at: usize| match at % 4 {
        0 => format!("*.ext{at}"),
        1 => format!("*/home/*/cache-{at}/*"),
        2 => format!("*/build-{at}/*.o"),
        _ => format!("/srv/data{at}/[a-f]*"),
    };
    (0..count).map(|at| format!("Wild File = \"{}\"", pattern(at))).collect()
}

fn expressions(count: usize) -> Vec<String> {
    let pattern = |at: usize| match at % 4 {
        0 => format!("\\\\.bak{at}$"),
        1 => format!("/home/[^/]+/\\\\.trash{at}/"),
        2 => format!("/tmp-{at}/.*\\\\.(o|a|so)$"),
        _ => format!("^/srv/(www|ftp){at}/"),
    };
    (0..count).map(|at| format!("Regex File = \"{}\"", pattern(at))).collect()
}

/// One estimate: the Director's last word about it, the daemon's CPU time, and the time by the
/// clock.
fn estimate(bed: &mut Bed, client: &str, file_set: &str) -> Result<(String, Duration, Duration)> {
    let pid = bed.client(client)?.pid()?;
    let before = usage(pid)?;
    let start = Instant::now();
    let command = format!("estimate job=backup-{client} fileset={file_set}");
    let answer = bed.console(&[&command])?;
    let wall = start.elapsed();
    let cpu = usage(pid)?.cpu().saturating_sub(before.cpu());
    match answer.lines().find(|line| line.starts_with("2000 OK estimate")) {
        Some(line) => Ok((line.to_owned(), cpu, wall)),
        None => Err(BedError::Console { command, problem: "no estimate".to_owned(), answer }),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
