//! Plugins that die, hang, answer nonsense or do what they have no business to do: they cost their
//! own file or job, and the daemon serves on. Each case has a copy of the plugin of its own, so
//! that all run at the same time. Only ours is tested: in the stock daemon they are part of it.

use std::fmt::Write as _;
use std::fs;

use crate::calls;
use crate::jobs::{CLIENT, about, run_all, set};
use bed::{Bed, BedOptions, ClientOptions, Fd, PATIENCE, Plugins, Result, build_plugin, descriptors, wait_for};

/// What a backup does with the one file that the plugin hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The job fails, and a message names the plugin.
    Fails,
    /// The job ends well or with errors, as the daemon's own rules say.
    GoesOn,
    /// One of both: the memory may not have been used.
    Either,
}

/// A call, how it goes wrong, and what comes of it.
type Case = (&'static str, &'static str, End);

/// Of a backup.
const BACKUPS: [Case; 44] = [
    ("event20", "segv", End::Fails),
    ("event19", "segv", End::Fails),
    ("event3", "segv", End::Fails),
    ("event9", "abort", End::Fails),
    ("start", "segv", End::Fails),
    ("start", "exit", End::Fails),
    ("start", "null", End::Fails),
    ("start", "long", End::GoesOn),
    ("start", "deep", End::GoesOn),
    ("start", "far", End::GoesOn),
    ("start", "unmapped", End::Fails),
    ("start", "packet", End::Fails),
    ("start", "huge", End::Fails),
    ("start", "negative", End::GoesOn),
    ("stream", "kill", End::Fails),
    ("stream", "huge", End::GoesOn),
    ("stream", "negative", End::GoesOn),
    ("open", "segv", End::Fails),
    ("open", "huge", End::GoesOn),
    // Of these jobs' only file nothing could be read.
    ("open", "negative", End::Fails),
    ("read", "segv", End::Fails),
    ("read", "raise", End::Fails),
    ("read", "stack", End::Fails),
    ("read", "trap", End::Fails),
    ("read", "free2", End::Fails),
    ("read", "smash", End::Either),
    ("read", "overrun", End::Either),
    ("read", "closeall", End::Fails),
    ("read", "huge", End::Fails),
    ("read", "negative", End::Fails),
    ("read", "null", End::GoesOn),
    ("read", "rc", End::GoesOn),
    ("read", "print", End::GoesOn),
    ("read", "fork", End::GoesOn),
    ("read", "killgroup", End::Fails),
    ("read", "leak", End::GoesOn),
    ("read", "thread", End::GoesOn),
    ("read", "badpointer", End::Fails),
    ("close", "abort", End::Fails),
    ("xacl", "segv", End::Fails),
    ("xacl", "huge", End::GoesOn),
    ("end", "segv", End::Fails),
    ("event4", "segv", End::Fails),
    // The Director has been told of the job's end before.
    ("event2", "segv", End::GoesOn),
];

/// Of a restore: all in one job, where each costs only its file.
const RESTORES: [(&str, &str); 9] = [
    ("event10", "segv"),
    ("startrestore", "segv"),
    ("create", "segv"),
    ("create", "huge"),
    ("write", "segv"),
    ("write", "huge"),
    ("write", "abort"),
    ("attributes", "segv"),
    ("endrestore", "exit"),
];

fn name_of(number: usize) -> String {
    format!("e{number:02}")
}

/// The plugin of a restore's case.
fn restorer(number: usize) -> String {
    format!("r{number:02}")
}

fn bed() -> Result<Bed> {
    let client = ClientOptions::new(Fd::Ours).named(CLIENT);
    let mut options = BedOptions::new("evil-plugins", [client])?;
    let plugins = options.folder.make("plugins")?;
    let built = options.folder.path().join("evil-fd.so");
    build_plugin("evil", &[], &built)?;
    let of_restores = (0..RESTORES.len()).map(restorer);
    let of_backups = (0..BACKUPS.len()).map(name_of).chain(["sleeper".to_owned(), "slow".to_owned()]);
    for name in of_backups.chain(of_restores).chain(calls::names()) {
        fs::copy(&built, plugins.join(format!("{name}-fd.so"))).unwrap();
    }
    build_plugin("evil", &["LOAD=\"abort\""], &plugins.join("loads-fd.so"))?;
    let client = &mut options.clients[0];
    client.plugins = Plugins::In(plugins);
    client.settings.push("plugins.bpipe = \"off\"".to_owned());
    client.settings.push("plugins.settings.slow.call_timeout = 2".to_owned());
    client.settings.extend(calls::settings());
    client.messages.push("Append = @WORK@/all.log = all".to_owned());
    options.folder.make(&format!("work/{CLIENT}/trace"))?;
    let case = |(number, (call, how, _)): (usize, &Case)| {
        let name = name_of(number);
        set(&name, &[format!("{name}:{call}={how},file=/@evil/{name},size=200000")])
    };
    options.file_sets = BACKUPS.iter().enumerate().map(case).collect();
    let good: Vec<_> = (0..BACKUPS.len()).map(name_of).map(|name| format!("{name}:file=/@evil/{name}")).collect();
    options.file_sets.push(set("good", &good));
    let commands = RESTORES.iter().enumerate().map(|(number, (call, how))| {
        let name = restorer(number);
        format!("{name}:{call}={how},file=/@evil/{name},size=200000")
    });
    let commands: Vec<_> = commands.chain(["e00:file=/@evil/last".to_owned()]).collect();
    options.file_sets.push(set("restores", &commands));
    options.file_sets.push(set("sleeper", &["sleeper:read=sleep,file=/@evil/sleeper".to_owned()]));
    options.file_sets.push(set("slow", &["slow:read=loop,file=/@evil/slow".to_owned()]));
    options.file_sets.extend(calls::file_sets());
    options.director_resources.push(calls::verify_job());
    // Some sessions are the test's own.
    options.tls_psk = false;
    Bed::start(options)
}

/// What is wrong with the jobs whose file no restore could make: it must not be saved silently.
fn unsaved(jobs: &[bed::JobResult]) -> String {
    let mut wrong = String::new();
    for (how, why) in [
        ("long", "has more than 4,095 bytes"),
        ("deep", "has more than 4,095 bytes"),
        ("far", "is that of a link to more than 4,095 bytes"),
    ] {
        let number = BACKUPS.iter().position(|case| case.1 == how).unwrap();
        let told = format!("not saved, because its name {why}");
        if !jobs[number].log.contains(&told) || jobs[number].row.files != 0 {
            writeln!(wrong, "{how}: {} files\n{}", jobs[number].row.files, jobs[number].log).unwrap();
        }
    }
    wrong
}

/// What is wrong, as text.
fn wrong() -> Result<String> {
    let mut bed = bed()?;
    let pid = bed.client(CLIENT)?.pid()?;
    let before = descriptors(pid)?.len();
    let mut wrong = String::new();
    // This one never comes back.
    let sleeper = bed.queue(&format!("run job=backup-{CLIENT} fileset=sleeper level=Full yes"))?;
    let mut sets: Vec<_> = (0..BACKUPS.len()).map(name_of).collect();
    sets.push("slow".to_owned());
    let jobs = run_all(&bed, &sets)?;
    for (number, ((call, how, end), job)) in BACKUPS.iter().zip(&jobs).enumerate() {
        let told = about(job, &name_of(number));
        let is_right = match end {
            End::Fails => job.row.status == 'f' && !told.is_empty(),
            End::GoesOn => job.row.status == 'T',
            End::Either => job.row.status == 'T' || job.row.status == 'f' && !told.is_empty(),
        };
        if !is_right {
            writeln!(wrong, "{} {call}={how}: {}, {told:#?}", name_of(number), job.row.status).unwrap();
        }
        if std::env::var_os("PLUGIN_LOGS").is_some() {
            println!("{call}={how}: {} {told:#?}", job.row.status);
        }
    }
    let slow = jobs.last().unwrap();
    if slow.row.status != 'f' || about(slow, "slow").is_empty() {
        writeln!(wrong, "slow: {} {}", slow.row.status, slow.log).unwrap();
    }
    wrong.push_str(&calls::wrong(&mut bed, sleeper)?);
    wrong.push_str(&unsaved(&jobs));
    // Each is started again.
    let good = run_all(&bed, &["good".to_owned()])?.remove(0);
    if good.row.status != 'T' || good.row.files != BACKUPS.len() as u64 {
        writeln!(wrong, "afterwards: {} {}", good.row.status, good.log).unwrap();
    }
    let saved = run_all(&bed, &["restores".to_owned()])?.remove(0).must_be_good()?;
    let place = bed.folder().join("restored-evil");
    let restored = bed.restore_own(CLIENT, saved.row.id, &place)?;
    if std::env::var_os("PLUGIN_LOGS").is_some() {
        println!("restore: {} {}", restored.row.status, restored.log);
    }
    for (number, (call, how)) in RESTORES.iter().enumerate() {
        if how != &"huge" && about(&restored, &restorer(number)).is_empty() {
            writeln!(wrong, "restore with {call}={how}: nothing was said\n{}", restored.log).unwrap();
        }
    }
    if restored.row.files != RESTORES.len() as u64 + 1 {
        writeln!(wrong, "restore: {} files of {}", restored.row.files, RESTORES.len() + 1).unwrap();
    }
    if bed.client(CLIENT)?.pid()? != pid {
        wrong.push_str("the daemon is another one\n");
    }
    wait_for("the descriptors of the jobs to be closed", PATIENCE, || {
        let now = descriptors(pid)?.len();
        Ok(if now <= before { Ok(()) } else { Err(format!("{now}, before {before}")) })
    })?;
    bed.client(CLIENT)?.daemon().process()?.must_run()?;
    Ok(wrong)
}

#[test]
fn a_plugin_that_misbehaves_costs_its_own_file_or_job() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    let wrong = wrong()?;
    assert!(wrong.is_empty(), "{wrong}");
    Ok(())
}
