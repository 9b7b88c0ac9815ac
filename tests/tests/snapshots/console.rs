//! The console's snapshot commands, and a helper that may not be run.

use std::fs;

use bed::peer::{EOD, Frame, director_session};
use bed::{Bed, Fd, Result, StockRecord};

use crate::{helper, place};

/// The client.
const NAME: &str = "under";

/// A command, and what the helper does before the usual.
const COMMANDS: [(&str, &str); 16] = [
    ("", "snapshot list name= volume= device= tdate=0 type=\n"),
    ("list: exit 7", "snapshot list\n"),
    ("list: echo 'name=a type=t name=b volume=v'; exit 0", "snapshot list\n"),
    ("list: echo 'name=a error=\"x\" type=t'; exit 1", "snapshot list\n"),
    ("support: exit 1", "snapshot list\n"),
    ("", "snapshot query name=script.1 volume=/v\u{1}1 device=/dev/x tdate=17 type=fake"),
    (
        "query: echo 'status=0 error=\"it is busy\"'; exit 1",
        "snapshot query name=script.1 volume=/v device=/d tdate=1 type=f\n",
    ),
    (
        "query: echo 'status=3 error=\"it is busy\" size=12'; exit 0",
        "snapshot query name=script.1 volume=/v device=/d tdate=1 type=f\n",
    ),
    ("", "snapshot del name=script.1\u{1}b volume=/v/1\u{1}2 device=/dev/x tdate=17 type=fake\n"),
    (
        "delete: echo 'status=0 error=\"it is busy\"'; exit 1",
        "snapshot del name=script.1 volume=/v device=/d tdate=1 type=f\n",
    ),
    ("", "snapshot ls name=script.1 volume=/v device=/d tdate=1 type=fake path=/x"),
    ("", "snapshot prune volume=/v type=fake"),
    ("", "snapshot retention=7\n"),
    ("", "snapshot retention=x y\n"),
    ("", "snapshot sync volume=/v\n"),
    ("", "snapshot other\n"),
];

/// The frames that answer a command.
pub(crate) fn answer(port: u16, command: &str) -> Result<Vec<String>> {
    let mut peer = director_session(port, 0)?;
    peer.send(command.as_bytes())?;
    // These end the connection.
    if !["sync", "other"].iter().any(|word| command.contains(word)) {
        peer.signal(EOD)?;
    }
    let frames = peer.rest()?;
    Ok(frames.iter().map(Frame::text).filter(|line| !line.contains(" JobId 0: ")).collect())
}

#[test]
fn snapshot_commands_are_answered_as_by_the_stock_daemon() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let options = place::options("snapshot-commands", &[(NAME, Fd::under_test()?)])?;
    let folder = options.folder.path().to_owned();
    let mut bed = Bed::start(options)?;
    let record = StockRecord::open("snapshots")?;
    let mut wrong = Vec::new();
    for (mode, command) in COMMANDS {
        helper::set_mode(&folder, "script", mode);
        let answer = answer(bed.client(NAME)?.port(), command)?;
        let calls = helper::calls_of(&folder, "script", NAME);
        let _none = fs::remove_file(folder.join("calls/script"));
        let is_called = calls.iter().any(|line| line.starts_with("SNAPSHOT_ACTION"));
        let commands_with_calls = ["t l", "t q", "t d"];
        assert_eq!(
            is_called,
            commands_with_calls.iter().any(|word| command.contains(word)) && !command.contains("t ls"),
            "{command:?}"
        );
        let row = format!("{} {mode}", command.escape_debug());
        for (what, lines) in [("answer", answer), ("calls", calls)] {
            let lines: Vec<_> = lines.iter().map(|line| line.replace(&*folder.to_string_lossy(), "/bed")).collect();
            wrong.extend(record.differences(&row, what, "", &lines)?);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

#[test]
fn what_stands_in_the_way_of_snapshots_is_told_as_by_the_stock_daemon() -> Result<()> {
    skip::lacks!(bed::lacks_mounts());
    let fd = Fd::under_test()?;
    // A helper that may not be run, and one that is not there.
    let clients = [NAME, "undernone"];
    let mut options = place::options("snapshot-allowed", &clients.map(|name| (name, fd)))?;
    let folder = options.folder.path().to_owned();
    for client in &mut options.clients {
        if client.name.ends_with("none") {
            client.file_daemon = vec!["Snapshot Command = \"/nowhere/helper %a\"".to_owned()];
        } else {
            client.fd_director.push("Allowed Script Directories = /usr/lib".to_owned());
        }
        options.director_resources.push(place::job("shut", &client.name, "Data", &[]));
    }
    let bed = Bed::start(options)?;
    let record = StockRecord::open("snapshots")?;
    let orders: Vec<_> = clients.iter().map(|client| format!("run job=shut-{client} yes")).collect();
    let jobs = bed.queue_all(&orders)?;
    bed.wait_for_reports(&jobs)?;
    let mut wrong = Vec::new();
    for (client, job) in clients.iter().zip(jobs) {
        let job = bed.result(job)?.must_be_good()?;
        assert_eq!(job.report().get("Snapshot/VSS").map(String::as_str), Some("no"), "{}", job.log);
        assert!(helper::heads(&folder, "shut", client).is_empty());
        let told = job.plain_messages(client).into_iter();
        let mut told: Vec<_> = told.map(|line| line.replace(&*folder.to_string_lossy(), "/bed")).collect();
        told.push(format!("{} files", job.row.files));
        wrong.extend(record.differences("no helper", client, "", &told)?);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
