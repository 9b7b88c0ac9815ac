//! Plugins that misbehave in calls that are not those of one file: `newPlugin`, `freePlugin`,
//! queries, estimates and Verify jobs. There is a copy of the plugin for each way to misbehave,
//! and each is used in one call after the other, so it is started again each time.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::thread;

use bed::peer::{Frame, Peer, director_session};
use bed::{Bed, BedError, FileSet, JobResult, PATIENCE, Result, job_resource, wait_for};

use crate::jobs::{CLIENT, about, run_all, set};

/// How a call goes wrong, and how a message tells that; `None`: the call goes on.
const HOWS: [(&str, Option<&str>); 8] = [
    ("segv", Some("signal 11")),
    ("abort", Some("signal 6")),
    ("exit", Some("exit status 0")),
    ("free2", Some("signal 6")),
    ("sleep", Some("has not returned for ")),
    ("rc", None),
    ("print", None),
    ("fork", None),
];

/// Those that are canceled in the middle of a call.
const SLEEPERS: [&str; 3] = ["query", "estimate", "verify"];

fn name_of(how: &str) -> String {
    format!("x{how}")
}

fn sleeper(call: &str) -> String {
    format!("s{call}")
}

/// The plugins' names.
pub(crate) fn names() -> impl Iterator<Item = String> {
    HOWS.iter().map(|(how, _)| name_of(how)).chain(SLEEPERS.map(sleeper))
}

/// Settings of the daemon.
pub(crate) fn settings() -> [String; 2] {
    // All plugins are started at the same time, and this one is to be among them.
    [("start", 10), ("call", 2)].map(|(what, seconds)| format!("plugins.settings.xsleep.{what}_timeout = {seconds}"))
}

/// `FileSets` with one plugin that behaves, and with all of these.
pub(crate) fn file_sets() -> [FileSet; 2] {
    let commands: Vec<_> = names().map(|name| format!("{name}:file=/@evil/{name}")).collect();
    [set("one", &["e00:file=/@evil/one".to_owned()]), set("each", &commands)]
}

/// The Director's job that verifies the newest backup.
pub(crate) fn verify_job() -> String {
    let more = format!("Type = Verify\nLevel = Data\nVerify Job = \"backup-{CLIENT}\"");
    job_resource("verify-evil", CLIENT, "one", &more)
}

/// What each plugin does in this call, as a file that it looks for.
struct Switches(Vec<PathBuf>);

impl Switches {
    fn on<'h>(bed: &Bed, call: &str, hows: impl Iterator<Item = (String, &'h str)>) -> Self {
        let trace = bed.folder().join("work").join(CLIENT).join("trace");
        let files = hows.map(|(name, how)| {
            let path = trace.join(format!("{name}.{call}"));
            fs::write(&path, how).unwrap();
            path
        });
        Self(files.collect())
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        for path in &self.0 {
            fs::remove_file(path).unwrap();
        }
    }
}

/// The text of all frames up to the signal behind them.
fn heard(peer: &mut Peer) -> Result<String> {
    let mut text = String::new();
    while let Frame::Data(payload) = peer.receive()? {
        text.push_str(&String::from_utf8_lossy(&payload));
        text.push('\n');
    }
    Ok(text)
}

/// What is wrong with the messages of a call in which a plugin has misbehaved in this way.
fn judge(wrong: &mut String, function: &str, (how, told): (&str, Option<&str>), messages: &str) {
    let file = format!("Plugin {}-fd.so: ", name_of(how));
    let lines: Vec<_> = messages.lines().filter(|line| line.contains(&file)).collect();
    let is_right = match told {
        None => lines.is_empty(),
        Some(told) => matches!(lines[..], [line] if line.contains(function) && line.contains(told)),
    };
    if !is_right {
        writeln!(wrong, "{function}, {how}: {messages}").unwrap();
    }
    if std::env::var_os("PLUGIN_LOGS").is_some() {
        println!("{function}, {how}: {lines:#?}");
    }
}

/// A session in which an Include with these commands is estimated.
fn estimate(port: u16, job: u32, commands: &[String]) -> Result<Peer> {
    let mut peer = director_session(port, job)?;
    peer.send(b"level = full mtime_only=0\n")?;
    let commands = commands.iter().map(|command| format!("P {command}"));
    let lines = ["fileset\n", "I\n", "O M\n"].map(str::to_owned).into_iter().chain(commands).chain(["N\n".to_owned()]);
    for line in lines {
        peer.send(line.as_bytes())?;
    }
    peer.signal(-1)?;
    peer.send(b"estimate listing=0\n")?;
    Ok(peer)
}

fn query(port: u16, job: u32, name: &str, parameter: &str) -> Result<Peer> {
    let mut peer = director_session(port, job)?;
    peer.send(format!("query parameter=\"{parameter}\" plugin=\"{name}:\" value=\"\"\n").as_bytes())?;
    Ok(peer)
}

fn sessions(port: u16, wrong: &mut String) -> Result<()> {
    // The first event costs its command, and the first call of a file costs the estimate.
    let event = |(how, _): &(&str, _)| format!("{0}:event11={how},file=/@evil/{0}", name_of(how));
    let text = heard(&mut estimate(port, 9000, &HOWS.iter().map(event).collect::<Vec<_>>())?)?;
    for how in HOWS {
        judge(wrong, "handlePluginEvent", how, &text);
    }
    let mut texts = vec![text];
    for (job, how) in (9001..).zip(HOWS) {
        let command = format!("{0}:start={1},file=/@evil/{0}", name_of(how.0), how.0);
        let text = heard(&mut estimate(port, job, &[command])?)?;
        judge(wrong, "startBackupFile", how, &text);
        texts.push(text);
    }
    for text in texts.iter().filter(|text| !text.contains("2000 OK estimate files=")) {
        writeln!(wrong, "estimate: {text}").unwrap();
    }
    for (job, (how, told)) in (9100..).zip(HOWS) {
        let text = heard(&mut query(port, job, &name_of(how), how)?)?;
        judge(wrong, "queryParameter", (how, told), &text);
        let answer = if how == "rc" || told.is_some() { "error=plugin protocol error" } else { "result" };
        if !text.contains(answer) {
            writeln!(wrong, "query, {how}: {text}").unwrap();
        }
    }
    // Answers that make no sense: none at all, one that is nowhere, one that fits into no frame,
    // and one after the other.
    let answers = [
        ("null", "\n"),
        ("unmapped", "died in queryParameter: signal 11"),
        ("long", "Error: bsock.c:290 Write socket has insane msglen=1020000 on call to "),
    ];
    for (parameter, answer) in answers {
        let text = heard(&mut query(port, 9200, "xrc", parameter)?)?;
        if !text.contains(answer) {
            writeln!(wrong, "query, {parameter}: {text}").unwrap();
        }
    }
    let mut endless = query(port, 9201, "xrc", "more")?;
    for _ in 0..1000 {
        endless.expect("result")?;
    }
    Ok(())
}

/// A session whose plugin never returns from a call, and is canceled by another one.
fn canceled(mut other: Peer, job: u32, mut peer: Peer) -> Result<()> {
    other.send(format!("cancel Job=script.2026-01-01_00.00.00_{job:02}\n").as_bytes())?;
    other.expect("2001 Job")?;
    while let Frame::Data(_) = peer.receive()? {}
    Ok(())
}

/// Cancels a Verify job whose plugin never comes back.
fn cancel_verify(bed: &Bed, wrong: &mut String) -> Result<()> {
    let switched = Switches::on(bed, "verify", [(sleeper("verify"), "sleep")].into_iter());
    let sleeps = bed.folder().join("work").join(CLIENT).join("trace/sleeps");
    fs::remove_file(&sleeps).unwrap();
    let verifying = bed.queue("run job=verify-evil yes")?;
    wait_for("the Verify job to be in the call", PATIENCE, || {
        let told = fs::read_to_string(&sleeps).unwrap_or_default();
        Ok(if told == "verify" { Ok(()) } else { Err(told) })
    })?;
    must_be_canceled(bed, wrong, verifying)?;
    drop(switched);
    Ok(())
}

fn must_be_canceled(bed: &Bed, wrong: &mut String, job: u32) -> Result<()> {
    bed.console(&[&format!("cancel jobid={job} yes")])?;
    let canceled = bed.wait(job)?;
    if canceled.row.status != 'A' {
        writeln!(wrong, "canceled: {} {}", canceled.row.status, canceled.log).unwrap();
    }
    Ok(())
}

/// Runs a job in which all plugins misbehave in this call, one in each way.
fn job(bed: &Bed, wrong: &mut String, (call, function): (&str, &str), command: &str) -> Result<JobResult> {
    // What it returns ends a Verify job, as with the stock daemon.
    let hows = || HOWS.into_iter().filter(|(how, _)| (call, *how) != ("endverify", "rc"));
    let switched = Switches::on(bed, call, hows().map(|(how, _)| (name_of(how), how)));
    let number = bed.queue(command)?;
    let job = bed.wait(number)?;
    drop(switched);
    let of_job = |line: &&str| line.contains(&format!("JobId {number}:"));
    let path = bed.folder().join("work").join(CLIENT).join("all.log");
    // The daemon writes its own log when it has the time.
    let told = wait_for(&format!("what is said of {function}"), PATIENCE, || {
        let log = fs::read_to_string(&path).map_err(BedError::file("read", &path))?;
        let lines: Vec<_> = log.lines().filter(of_job).collect();
        let mut missing = String::new();
        hows().for_each(|how| judge(&mut missing, function, how, &lines.join("\n")));
        Ok(if missing.is_empty() { Ok(()) } else { Err(missing) })
    });
    if let Err(missing) = told {
        writeln!(wrong, "{missing}").unwrap();
    }
    Ok(job)
}

/// Plugins that die while a console's session begins: the Director gets its answer first.
fn console(bed: &Bed, wrong: &mut String) -> Result<()> {
    let switched = Switches::on(bed, "new", HOWS.into_iter().map(|(how, _)| (name_of(how), how)));
    let said = bed.console(&[&format!("status client={CLIENT}-fd")])?;
    drop(switched);
    judge(wrong, "newPlugin", HOWS[0], &said);
    if !said.contains("Daemon started") {
        writeln!(wrong, "status: {said}").unwrap();
    }
    Ok(())
}

/// A plugin that says far more than fits into memory before a console's session has its answer.
fn flooded_console(bed: &Bed, wrong: &mut String) -> Result<()> {
    let switched = Switches::on(bed, "new", [(sleeper("query"), "flood")].into_iter());
    let said = bed.console(&[&format!("status client={CLIENT}-fd")])?;
    drop(switched);
    let held = said.matches("flood ").count();
    let is_told = said.contains("The plugins say more than is held; the rest is left out.");
    if held == 0 || held > 100 || !is_told || !said.contains("Daemon started") {
        let others: Vec<_> = said.lines().filter(|line| !line.contains("flood ")).collect();
        writeln!(wrong, "{held} messages of a flood, {is_told}: {others:#?}").unwrap();
    }
    Ok(())
}

/// What is wrong, as text. The job `sleeping` never comes back from a call, and is canceled.
pub(crate) fn wrong(bed: &mut Bed, sleeping: u32) -> Result<String> {
    let mut wrong = String::new();
    let port = bed.client(CLIENT)?.port();
    let bed = &*bed;
    // A session that begins while a plugin dies is told so, too. Therefore these begin before.
    let [asker_ends, estimate_ends] = [director_session(port, 0)?, director_session(port, 0)?];
    let asker = query(port, 9301, &sleeper("query"), "sleep")?;
    let name = sleeper("estimate");
    let estimator = estimate(port, 9302, &[format!("{name}:start=sleep,file=/@evil/{name}")])?;
    // What hangs is given up after ten seconds, so all of it hangs at the same time.
    let mut canceled_wrong = String::new();
    thread::scope(|scope| -> Result<()> {
        let asks = scope.spawn(|| canceled(asker_ends, 9301, asker));
        let estimates = scope.spawn(|| canceled(estimate_ends, 9302, estimator));
        let sleeps = scope.spawn(|| must_be_canceled(bed, &mut canceled_wrong, sleeping));
        sessions(port, &mut wrong)?;
        let backup = format!("run job=backup-{CLIENT} fileset=one level=Full yes");
        for call in [("new", "newPlugin"), ("free", "freePlugin")] {
            let saved = job(bed, &mut wrong, call, &backup)?;
            if saved.row.status != 'T' || saved.row.files != 1 {
                writeln!(wrong, "{call:?}: {} {}", saved.row.status, saved.log).unwrap();
            }
        }
        [asks, estimates, sleeps].into_iter().try_for_each(|ends| ends.join().unwrap())
    })?;
    wrong.push_str(&canceled_wrong);
    console(bed, &mut wrong)?;
    flooded_console(bed, &mut wrong)?;
    // Only now is the volume free.
    for call in [("verify", "startVerifyFile"), ("endverify", "endVerifyFile")] {
        let verified = job(bed, &mut wrong, call, "run job=verify-evil yes")?;
        // What they were to look for is not looked for.
        if verified.row.files != 1 || verified.row.status != 'f' {
            writeln!(wrong, "{call:?}: {} {}", verified.row.status, verified.log).unwrap();
        }
    }
    cancel_verify(bed, &mut wrong)?;
    let each = run_all(bed, &["each".to_owned()])?.remove(0);
    if each.row.status != 'T' || each.row.files != names().count() as u64 || !about(&each, "Error").is_empty() {
        writeln!(wrong, "each: {} {}", each.row.status, each.log).unwrap();
    }
    Ok(wrong)
}
