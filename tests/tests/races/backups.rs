//! Another user changes the tree while it is saved. `RACES=20000` takes that many races instead of
//! a selection; after all of them once it begins again.

use std::path::Path;

use bed::{Bed, Counted, Fd, JobResult, Racer, Result, Rule};

use crate::judge;
use crate::scene::{ACTS, Planned, Scene, Tally, bed_of_units, inodes, spread, wanted, with_cause};

/// Units of one job.
const UNITS: usize = 200;

/// A backup of so many new units while these rules hold.
fn backup(bed: &mut Bed, scene: &Scene, rules: &[Rule]) -> Result<(JobResult, Vec<Counted>)> {
    let racer = scene.watch(bed, "test", rules)?;
    let job = bed.backup("test", "level=Full")?;
    let counted = racer.finish()?;
    Ok((job.must_be('T')?, counted))
}

impl Planned {
    /// The object that has been replaced.
    fn victim(&self) -> Option<&Path> {
        let path = Path::new(&self.acted.as_ref()?.path);
        if self.what.starts_with("parent-") { path.parent() } else { Some(path) }
    }

    /// Whether an object may be missing without a message: it was removed or moved away when it was
    /// looked up ahead. To that belong reading the target of a link, and opening and reading a
    /// directory. If the walk comes many seconds later it reads the names again, without this one.
    fn has_removed(&self, path: &Path) -> bool {
        let Some(acted) = &self.acted else { return false };
        let of_any = ["newfstatat", "readlinkat"];
        let of_directories = ["openat", "openat2", "fstat", "getdents64"];
        let is_directory = path.ends_with("d") || self.what == "parent-away";
        let is_ahead = |call: &str| of_any.contains(&call) || is_directory && of_directories.contains(&call);
        let is_removed = ["remove", "parent-away"].contains(&self.what) && self.victim() == Some(path);
        is_removed && is_ahead(&acted.call)
    }
}

/// What is wrong after a job.
fn judge(bed: &Bed, scene: &Scene, job: &JobResult, races: &[Planned]) -> Result<Vec<String>> {
    let files = judge::files(bed.records(&job.row, "test")?)?;
    let Scene { tree, spare, grave, lure } = scene;
    let inodes = inodes(&[tree, spare, grave, lure]);
    let (said, _report) = job.log.split_once("  Build OS:").unwrap_or((&job.log, ""));
    let mut problems = judge::misfits(&files, &inodes, said);
    for (number, race) in races.iter().enumerate() {
        let missing = judge::missing(&scene.unit(number), race.victim(), &files, said);
        let lost = missing.into_iter().filter(|path| !race.has_removed(path));
        problems.extend(lost.map(|path| judge::is_missing(&path)));
    }
    Ok(with_cause(problems, races, said))
}

#[test]
fn what_another_user_does_between_two_calls_mixes_nothing_up() -> Result<()> {
    skip::lacks!(Racer::missing());
    let (mut bed, folder, tree) = bed_of_units("races")?;

    // Without races: all is well, and the number of calls about a unit is known.
    let scene = Scene::lay(&folder, tree.clone());
    (0..10).for_each(|number| scene.lay_unit(number, true));
    let count =
        |number| Rule { below: Some(scene.unit(number)), nth: 0, calls: "*".to_owned(), action: "kill".to_owned() };
    let (job, counted) = backup(&mut bed, &scene, &(0..10).map(count).collect::<Vec<_>>())?;
    let none = || Planned { what: "nothing", nth: 0, acted: None };
    let nothing: Vec<_> = std::iter::repeat_with(none).take(10).collect();
    assert_eq!(judge(&bed, &scene, &job.must_be_good()?, &nothing)?, Vec::<String>::new());
    let calls = usize::try_from(counted.iter().map(|counted| counted.calls).max().unwrap()).unwrap();
    assert!(calls > 10, "{counted:?}");

    let races = wanted("RACES", UNITS);
    let mut tally = Tally::default();
    let mut problems = Vec::new();
    for first in (0..races).step_by(UNITS) {
        let scene = Scene::lay(&folder, tree.clone());
        let (mut rules, mut units) = (Vec::new(), Vec::new());
        for turn in first..races.min(first + UNITS) {
            let choice = spread(turn, calls * ACTS.len());
            let (act, nth) = (*ACTS.get(choice % ACTS.len()).unwrap(), 1 + choice / ACTS.len());
            scene.lay_unit(units.len(), true);
            let below = Some(scene.unit(units.len()));
            rules.push(Rule { below, nth: nth as u64, calls: "*".to_owned(), action: format!("do {act}") });
            units.push(Planned { what: act, nth, acted: None });
        }
        let (job, counted) = backup(&mut bed, &scene, &rules)?;
        for (unit, counted) in units.iter_mut().zip(&counted) {
            tally.add(unit.what, counted);
            unit.acted.clone_from(&counted.acted);
        }
        let found = judge(&bed, &scene, &job, &units)?;
        problems.extend(found);
    }
    eprintln!("of {races} races ({calls} calls about a unit): {tally}; problems: {}", problems.len());
    problems.iter().take(40).for_each(|problem| eprintln!("{problem}"));
    assert!(tally.done(&["done"]) * 2 > races, "the other user did little: {tally}");
    if Fd::under_test()? == Fd::Ours {
        assert!(problems.is_empty(), "{} problems, the first: {:?}", problems.len(), problems.first());
    }
    Ok(())
}
