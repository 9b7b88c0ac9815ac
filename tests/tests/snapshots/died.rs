//! Snapshots are removed whatever becomes of the job, its peers, or the daemon (ferrofd only: the
//! stock daemon leaves them).

use std::fs;
use std::path::Path;

use bed::peer::{EOD, Frame, director_session};
use bed::{Bed, Fd, ONLY_OURS, PATIENCE, Result, wait_for};
use serde_json::{Map, Value};

use crate::{console, helper, place};

/// Says that it is there, and waits: `ACTION: …`.
fn waits(action: &str, seconds: u32) -> String {
    format!("{action}: touch $here/$job-waits; sleep {seconds}")
}

fn wait_for_file(path: &Path) -> Result<()> {
    wait_for(&path.display().to_string(), PATIENCE, || {
        Ok(if path.exists() { Ok(()) } else { Err("not there".to_owned()) })
    })
}

/// What follows the calls before a snapshot is made.
fn calls_after_support(folder: &Path, job: &str) -> Vec<String> {
    let heads = helper::heads(folder, job, "under").into_iter().filter(|head| head.ends_with("/bed/data"));
    heads.filter(|head| !head.starts_with("subvolumes") && !head.starts_with("support")).collect()
}

fn expected(actions: &[&str]) -> Vec<String> {
    actions.iter().map(|action| format!("{action} /bed/data")).collect()
}

fn wait_for_calls(folder: &Path, job: &str, actions: &[&str]) -> Result<()> {
    wait_for(&format!("the calls of {job}"), PATIENCE, || {
        let calls = calls_after_support(folder, job);
        Ok(if calls == expected(actions) { Ok(()) } else { Err(format!("{calls:?}")) })
    })
}

/// The command of a console for the first snapshot in a journal.
fn deletion_of_the_first(journal: &Path) -> String {
    let (_, snapshots): (u32, Vec<Map<String, Value>>) = serde_json::from_slice(&fs::read(journal).unwrap()).unwrap();
    let volume: Vec<u8> = serde_json::from_value(snapshots.first().unwrap()["volume"].clone()).unwrap();
    let volume = String::from_utf8(volume).unwrap().replace(' ', "\u{1}");
    format!("snapshot del name=lost volume={volume} device=/dev/x tdate=17 type=fake\n")
}

fn no_journal(path: &Path) -> Result<()> {
    wait_for("the journal to be empty", PATIENCE, || {
        Ok(if path.exists() { Err("it is there".to_owned()) } else { Ok(()) })
    })
}

fn journal(bed: &mut Bed) -> Result<std::path::PathBuf> {
    let client = bed.client("under")?;
    Ok(client.work.join(format!("bacula-fd.{}.snapshots", client.port())))
}

/// Puts a snapshot of another job in front of those in a journal, as if the daemon had died before
/// the helper was called.
fn begin_another(journal: &Path, job: &str) {
    let bytes = fs::read(journal).unwrap();
    let (form, mut snapshots): (u32, Vec<Map<String, Value>>) = serde_json::from_slice(&bytes).unwrap();
    let mut another = snapshots.first().unwrap().clone();
    another.insert("name".to_owned(), job.as_bytes().into());
    another.insert("volume".to_owned(), Value::Array(Vec::new()));
    snapshots.insert(0, another);
    fs::write(journal, serde_json::to_vec(&(form, snapshots)).unwrap()).unwrap();
}

#[test]
fn snapshots_are_removed_when_a_job_is_canceled_or_the_daemon_is_killed() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    skip::when!(Fd::under_test()? == Fd::Stock, ONLY_OURS);
    let mut options = place::options("snapshot-died", &[("under", Fd::Ours)])?;
    let folder = options.folder.path().to_owned();
    for (name, action) in [("c-create", "create"), ("c-mount", "mount"), ("k-create", "create"), ("k-mount", "mount")] {
        helper::set_mode(&folder, name, &waits(action, if name.starts_with('c') { 600 } else { 40 }));
        options.director_resources.push(place::job(name, "under", "Data", &[]));
    }
    let late = "create: touch $here/$job-waits; while [ ! -e $here/goes-on ]; do sleep 0.1; done".to_owned();
    let after_all =
        format!("{}\nlist: [ -e $here/after-all ] || {{ touch $here/none-yet; exit 0; }}", waits("create", 600));
    let lost = "mount: touch $here/$job-waits; while [ ! -e $here/is-lost ]; do sleep 0.1; done".to_owned();
    for (name, mode) in [("lost", lost), ("gone", late), ("c-late", after_all)] {
        helper::set_mode(&folder, name, &mode);
        options.director_resources.push(place::job(name, "under", "Data", &[]));
    }
    let kept = ["Snapshot Retention = 1 hour"];
    options.director_resources.push(place::job("unnoted", "under", "Data", &kept));
    let mut bed = Bed::start(options)?;
    let journal = journal(&mut bed)?;
    let start = |bed: &Bed, name: &str| -> Result<u32> {
        let job = bed.queue(&format!("run job={name}-under yes"))?;
        wait_for_file(&folder.join(format!("{name}-under-waits")))?;
        Ok(job)
    };

    // The helper is ended in the middle; what it may have made is looked for.
    for (name, then) in
        [("c-create", &["create", "list", "delete"][..]), ("c-mount", &["create", "mount", "unmount", "delete"])]
    {
        let job = start(&bed, name)?;
        assert!(journal.exists());
        bed.console(&[&format!("cancel jobid={job}")])?;
        let ended = bed.wait(job)?;
        assert_eq!(ended.row.status, 'A', "{}", ended.log);
        no_journal(&journal)?;
        assert_eq!(calls_after_support(&folder, name), expected(then), "{}", ended.log);
    }

    // The Director can't note a snapshot that is to stay.
    bed.catalog().change("DROP TABLE Snapshot;\n")?;
    let ended = bed.run("run job=unnoted-under yes")?;
    let told = ended.messages_of("under-fd").join("\n");
    assert!(
        told.contains("has not noted the snapshot of") && told.contains("   Delete Snapshot for "),
        "{}",
        ended.log
    );
    assert_eq!(calls_after_support(&folder, "unnoted"), expected(&["create", "mount", "unmount", "delete"]));
    no_journal(&journal)?;

    // What the ended helper had started makes it later.
    let job = start(&bed, "c-late")?;
    bed.console(&[&format!("cancel jobid={job}")])?;
    assert_eq!(bed.wait(job)?.row.status, 'A');
    wait_for_calls(&folder, "c-late", &["create", "list"])?;
    wait_for_file(&folder.join("none-yet"))?;
    fs::write(folder.join("after-all"), "").unwrap();

    // The daemon dies; the next one finds what it has left.
    for name in ["k-create", "k-mount"] {
        start(&bed, name)?;
    }
    bed.client("under")?.daemon().kill()?;
    assert!(journal.exists());
    // None of them waits for one that was only begun.
    helper::set_mode(&folder, "never", "list: exit 0");
    begin_another(&journal, "never-under.2026-11-23_01.02.03_04");
    bed.client("under")?.daemon().start()?;
    wait_for_calls(&folder, "k-create", &["create", "list", "delete"])?;
    // It was made after all.
    helper::set_mode(&folder, "never", "");
    no_journal(&journal)?;
    assert_eq!(calls_after_support(&folder, "never").last(), expected(&["delete"]).last());
    assert_eq!(calls_after_support(&folder, "k-mount"), expected(&["create", "mount", "unmount", "delete"]));
    assert_eq!(calls_after_support(&folder, "c-late"), expected(&["create", "list", "list", "delete"]));
    let calls = fs::read_to_string(folder.join("calls/k-create-under")).unwrap();
    assert!(calls.contains("SNAPSHOT_VOLUME=/found k-create-under."), "{calls}");
    let mut peer = director_session(bed.client("under")?.port(), 0)?;
    peer.signal(EOD)?;
    let said = peer.rest()?.into_iter().filter_map(|frame| match frame {
        Frame::Data(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    });
    let said = said.collect::<String>();
    for name in ["k-create", "k-mount"] {
        let told = said.lines().any(|line| {
            line.contains(&format!("in the middle of job {name}-under.")) && line.contains("/data is removed now")
        });
        assert!(told, "{name}: {said}");
    }

    // One that is kept may expire while it is read.
    start(&bed, "lost")?;
    let answer = console::answer(bed.client("under")?.port(), &deletion_of_the_first(&journal))?;
    assert!(answer.contains(&"2999 Snapshot deleted ERR=a\u{1}job\u{1}reads\u{1}it\n".to_owned()), "{answer:?}");

    // The Storage Daemon dies.
    bed.storage().kill()?;
    fs::write(folder.join("is-lost"), "").unwrap();
    no_journal(&journal)?;
    assert_eq!(calls_after_support(&folder, "lost"), expected(&["create", "mount", "unmount", "delete"]));

    // The Director dies before the helper has answered.
    bed.storage().start()?;
    start(&bed, "gone")?;
    bed.director().kill()?;
    fs::write(folder.join("goes-on"), "").unwrap();
    no_journal(&journal)?;
    assert_eq!(calls_after_support(&folder, "gone"), expected(&["create", "mount", "unmount", "delete"]));
    Ok(())
}
