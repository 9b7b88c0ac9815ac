//! Another user changes the tree into which files are restored. `RACES=20000` takes that many races
//! instead of a selection.
//!
//! Whatever happens, everything outside of `where` stays as it was, and no file that is not the
//! daemon's gets an owner or a mode from it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bed::{Fd, Racer, Result, Rule, below, is_named};
use nix::unistd::geteuid;

use crate::scene::{ACTS, OTHER, Planned, Scene, Tally, bed_of_units, remove, spread, wanted, with_cause};

/// Units of one job.
const UNITS: usize = 150;
/// A set-user-ID file.
const SET_UID: u32 = 0o4000;
/// What the daemons and this test write during a restore.
const ALWAYS_WRITTEN: [&str; 5] = ["to", "work", "volumes", "log", "rules"];

/// What is compared of something outside of `where`.
type Print = (u64, u32, u32, u32, i64, i64, i64, Vec<u8>);

/// Everything in the bed's folder but `where` and what the daemons write.
fn outside(folder: &Path) -> BTreeMap<PathBuf, Print> {
    let is_of_daemons = |path: &Path| ALWAYS_WRITTEN.iter().any(|name| path == folder.join(name));
    let entries =
        walkdir::WalkDir::new(folder).min_depth(1).into_iter().filter_entry(|entry| !is_of_daemons(entry.path()));
    entries
        .map(|entry| {
            let path = entry.unwrap().into_path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let content = if stat.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            // The other user may make further names of this one.
            let change = if path.ends_with("anyones") { 0 } else { stat.ctime_nsec() };
            let (mode, uid, gid) = (stat.mode(), stat.uid(), stat.gid());
            let print = (stat.ino(), mode, uid, gid, stat.mtime(), stat.mtime_nsec(), change, content);
            (path, print)
        })
        .collect()
}

/// What is wrong with owners and modes below `where`.
fn strange_owners(to: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for entry in walkdir::WalkDir::new(to) {
        let entry = entry.unwrap();
        if !entry.file_type().is_file() {
            continue;
        }
        let stat = entry.metadata().unwrap();
        let content = String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned();
        let line = content.lines().next().unwrap_or_default().to_owned();
        let (mode, uid) = (stat.mode(), stat.uid());
        let is_spare = line.contains(" of spare");
        if is_spare && (uid != OTHER || mode & 0o7777 != 0o740) {
            problems.push(format!("{}: {mode:o} and owner {uid} for {line:?}", entry.path().display()));
        }
        let is_of_root = line.starts_with("this is s of ") && !is_spare;
        if mode & SET_UID != 0 && uid == geteuid().as_raw() && !is_of_root {
            problems.push(format!("{}: set-user-ID of root for {line:?}", entry.path().display()));
        }
    }
    problems
}

/// The files of a unit that nobody has touched and that are not as in the source.
fn unlike(source: &Path, restored: &Path, log: &str) -> Vec<String> {
    let entries = walkdir::WalkDir::new(source).into_iter().map(|entry| entry.unwrap().into_path());
    let is_like = |path: &PathBuf| {
        let there = restored.join(path.strip_prefix(source).unwrap());
        let [one, other] = [path, &there].map(|path| {
            let stat = fs::symlink_metadata(path).ok()?;
            let content = stat.is_file().then(|| fs::read(path).ok());
            Some((stat.mode(), stat.uid(), stat.mtime(), fs::read_link(path).ok(), content))
        });
        one == other || is_named(log, &there.to_string_lossy())
    };
    entries.filter(|path| !is_like(path)).map(|path| format!("{} is not as it was", path.display())).collect()
}

#[test]
fn what_another_user_does_leads_no_restore_out_of_its_place() -> Result<()> {
    skip::lacks!(Racer::missing());
    let (mut bed, folder, tree) = bed_of_units("restore-races")?;
    let source = Scene::lay(&folder, tree.clone());
    (0..UNITS).for_each(|number| source.lay_unit(number, true));
    let saved = bed.backup("test", "level=Full")?.must_be_good()?.row.id;
    for path in [&source.spare, &source.grave] {
        remove(path);
    }

    let to = folder.join("to");
    let races = wanted("RACES", UNITS);
    let (mut tally, mut problems, mut calls) = (Tally::default(), Vec::new(), 0);
    // The first one only counts.
    for first in std::iter::once(None).chain((0..races).step_by(UNITS).map(Some)) {
        remove(&to);
        let scene = Scene { lure: source.lure.clone(), ..Scene::lay(&to, below(&to, &tree)) };
        let (mut rules, mut units) = (Vec::new(), Vec::new());
        for number in 0..UNITS {
            // In every other one everything is there already.
            scene.lay_unit(number, number % 2 == 0);
            let choice = spread(first.unwrap_or_default() + number, 1.max(calls * ACTS.len()));
            let (act, nth) = (*ACTS.get(choice % ACTS.len()).unwrap(), 1 + choice / ACTS.len());
            let nth = if first.is_some() { nth } else { 0 };
            rules.push(Rule {
                below: Some(scene.unit(number)),
                nth: nth as u64,
                calls: "*".to_owned(),
                action: format!("do {act}"),
            });
            units.push(Planned { what: act, nth, acted: None });
        }
        let before = outside(&folder);
        let watch = scene.watch(&mut bed, "test", &rules)?;
        let job = bed.restore_own("test", saved, &to)?;
        let counted = watch.finish()?;
        let after = outside(&folder);
        calls = calls.max(usize::try_from(counted.iter().map(|counted| counted.calls).max().unwrap()).unwrap());
        let mut found = Vec::new();
        let differ = |path: &&PathBuf| before.get(*path) != after.get(*path);
        let changed: Vec<_> = before.keys().chain(after.keys()).filter(differ).collect();
        found.extend(changed.iter().map(|path| format!("{} has changed", path.display())));
        found.extend(strange_owners(&to));
        for (number, (unit, counted)) in units.iter_mut().zip(&counted).enumerate() {
            tally.add(unit.what, counted);
            unit.acted.clone_from(&counted.acted);
            if counted.acted.as_ref().is_none_or(|acted| acted.outcome != "done") {
                found.extend(unlike(&source.unit(number), &scene.unit(number), &job.log));
            }
        }
        if !"TE".contains(job.row.status) {
            found.push(format!("the job ended with {}", job.row.status));
        }
        if !found.is_empty() && Fd::under_test()? == Fd::Ours {
            eprintln!("{}", job.log);
        }
        problems.extend(with_cause(found, &units, &job.log));
    }
    eprintln!("of {races} races ({calls} calls about a unit): {tally}; problems: {}", problems.len());
    problems.iter().take(40).for_each(|problem| eprintln!("{problem:?}"));
    assert!(tally.done(&["done"]) * 4 > races, "the other user did little: {tally}");
    if Fd::under_test()? == Fd::Ours {
        assert!(problems.is_empty(), "{} problems", problems.len());
    }
    Ok(())
}
