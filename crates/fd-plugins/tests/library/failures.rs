//! Plugins that fail.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use fd_plugins::library::{Confinement, HostSettings, Library};
use fd_plugins::{Called, Event, Gone, Instance, Io, IoDone, Plugin as _, SavePacket, Status};
use fd_records::MetadataKind;

use crate::Test;
use crate::bed::{Daemon, begun, compiled, confinement, load, load_with, odd, settings};

pub(crate) const TESTS: &[Test] = &[
    (
        "a_crash_in_each_function_is_named_and_the_next_job_works",
        a_crash_in_each_function_is_named_and_the_next_job_works,
    ),
    ("each_kind_of_death_is_named", each_kind_of_death_is_named),
    ("the_death_in_one_job_is_told_in_another", the_death_in_one_job_is_told_in_another),
    (
        "a_job_that_does_not_use_a_plugin_does_not_hear_of_its_death",
        a_job_that_does_not_use_a_plugin_does_not_hear_of_its_death,
    ),
    (
        "a_plugin_that_hangs_is_given_up_when_its_job_is_canceled",
        a_plugin_that_hangs_is_given_up_when_its_job_is_canceled,
    ),
    ("a_plugin_that_obeys_the_cancel_goes_on", a_plugin_that_obeys_the_cancel_goes_on),
    ("a_plugin_is_not_freed_while_it_is_told_of_a_cancel", a_plugin_is_not_freed_while_it_is_told_of_a_cancel),
    ("a_call_has_its_time", a_call_has_its_time),
    ("jobs_that_begin_together_wait_for_one_start", jobs_that_begin_together_wait_for_one_start),
    ("nonsense_ends_the_plugin_host", nonsense_ends_the_plugin_host),
    ("odd_habits_do_no_harm", odd_habits_do_no_harm),
    ("a_read_beyond_the_buffer_fails_the_job", a_read_beyond_the_buffer_fails_the_job),
    ("no_message_of_a_plugin_ends_the_daemon", no_message_of_a_plugin_ends_the_daemon),
    ("libraries_that_are_no_plugins_are_refused", libraries_that_are_no_plugins_are_refused),
];

/// Calls every function once, until one fails; what has failed.
fn through(daemon: &mut Daemon, command: &str) -> Option<Gone> {
    through_all(odd(), daemon, command)
}

fn through_all(plugin: &Library, daemon: &mut Daemon, command: &str) -> Option<Gone> {
    fn calls(plugin: &Library, daemon: &mut Daemon, command: &str) -> Called<()> {
        let mut instance = begun(plugin, daemon, command)?;
        let mut file = SavePacket::empty();
        let instance_ref = &mut instance;
        instance_ref.start_backup_file(daemon, command.as_bytes(), true, &mut file)?;
        instance_ref.check_stream(daemon, &mut 26)?;
        transfer(daemon, instance_ref.as_mut())?;
        instance_ref.read_xacl(daemon, MetadataKind::Acl, &mut Vec::new())?;
        instance_ref.end_backup_file(daemon)?;
        instance_ref.check_file(daemon, b"/x")?;
        instance_ref.start_restore_file(daemon, command.as_bytes())?;
        instance_ref.create_file(daemon, &fd_plugins::RestoreFile::default())?;
        instance_ref.io(daemon, Io::Write { data: &vec![7; 70_000] })?;
        instance_ref.io(daemon, Io::Seek { offset: 3, whence: 0 })?;
        instance_ref.set_attributes(daemon, &fd_plugins::RestoreFile::default())?;
        instance_ref.end_restore_file(daemon)?;
        instance.end(daemon)
    }
    calls(plugin, daemon, command).err()
}

fn transfer(daemon: &mut Daemon, instance: &mut dyn Instance) -> Called<()> {
    instance.io(daemon, Io::Open { name: b"/odd/file0", flags: 0, mode: 0 })?;
    instance.io(daemon, Io::Read { buffer: &mut [0; 1000] })?;
    instance.io(daemon, Io::Close)?;
    Ok(())
}

fn text(gone: Option<&Gone>) -> String {
    let gone = gone.expect("it fails");
    assert!(!gone.canceled);
    let text = String::from_utf8(gone.text.clone()).unwrap();
    let file = String::from_utf8(odd().info().file.clone()).unwrap();
    text.replace(&file, "odd-fd.so")
}

fn a_crash_in_each_function_is_named_and_the_next_job_works() {
    assert_eq!(through(&mut Daemon::default(), "odd: none"), None);
    let functions = [
        ("handlePluginEvent", "handlePluginEvent"),
        ("startBackupFile", "startBackupFile"),
        ("checkStream", "checkStream"),
        ("open", "pluginIO"),
        ("read", "pluginIO"),
        ("close", "pluginIO"),
        ("handleXACLdata", "handleXACLdata"),
        ("endBackupFile", "endBackupFile"),
        ("checkFile", "checkFile"),
        ("startRestoreFile", "startRestoreFile"),
        ("createFile", "createFile"),
        ("write", "pluginIO"),
        ("seek", "pluginIO"),
        ("setFileAttributes", "setFileAttributes"),
        ("endRestoreFile", "endRestoreFile"),
        ("freePlugin", "freePlugin"),
    ];
    for (word, function) in functions {
        let gone = through(&mut Daemon::default(), &format!("odd: {word}=segv"));
        let expected =
            format!("Plugin odd-fd.so: the plugin host died in {function}: signal 11 (Segmentation violation).\n");
        assert_eq!(text(gone.as_ref()), expected, "{word}");
        assert_eq!(through(&mut Daemon::default(), "odd: none"), None);
    }
}

fn each_kind_of_death_is_named() {
    let kinds = [
        ("abort", "signal 6 (IOT trap)"),
        ("free", "signal 6 (IOT trap)"),
        ("exit", "exit status 3"),
        ("dying", "signal 6 (IOT trap)"),
    ];
    for (kind, end) in kinds {
        let gone = through(&mut Daemon::default(), &format!("odd: read={kind}"));
        assert_eq!(text(gone.as_ref()), format!("Plugin odd-fd.so: the plugin host died in pluginIO: {end}.\n"));
    }
}

fn the_death_in_one_job_is_told_in_another() {
    let mut other = Daemon::default();
    let mut idle = begun(odd(), &mut other, "odd: none").unwrap();
    text(through(&mut Daemon::default(), "odd: checkFile=segv").as_ref());
    let gone = idle.end_backup_file(&mut other).err();
    let expected =
        "Plugin odd-fd.so: the plugin host died in checkFile of another job: signal 11 (Segmentation violation).\n";
    assert_eq!(text(gone.as_ref()), expected);
    // It was told.
    assert_eq!(idle.end(&mut other), Ok(()));
}

fn a_job_that_does_not_use_a_plugin_does_not_hear_of_its_death() {
    // Of a process that ends by itself nothing tells in which job.
    for (kind, place) in [("segv", "checkFile of another job"), ("exit", "handlePluginEvent")] {
        let mut other = Daemon::default();
        let (mut idle, _) = odd().begin(&mut other).unwrap();
        text(through(&mut Daemon::default(), &format!("odd: checkFile={kind}")).as_ref());
        assert_eq!(idle.event(&mut other, &Event::StartBackupJob), Ok(Status::Ok), "{kind}");
        // Until it wants something of it.
        let gone = idle.event(&mut other, &Event::BackupCommand(b"odd: none")).unwrap_err();
        let text = text(Some(&gone));
        assert!(text.contains(&format!("died in {place}: ")), "{text}");
        assert_eq!(idle.end(&mut other), Ok(()));
    }
}

/// Two other jobs in a plugin host that the daemon ends because of this function of one: only the
/// one that uses the plugin hears of it.
fn ends_for(plugin: &Library, function: &str, fail: impl FnOnce() -> Option<Gone>) -> Gone {
    let mut others = [(); 2].map(|()| Daemon::default());
    let [idle_host, used_host] = &mut others;
    let (mut idle, _) = plugin.begin(idle_host).unwrap();
    let mut used = begun(plugin, used_host, "odd: none").unwrap();
    let gone = fail().expect("it fails");
    assert_eq!(idle.event(idle_host, &Event::StartBackupJob), Ok(Status::Ok));
    assert_eq!(idle.end(idle_host), Ok(()));
    let text = String::from_utf8(used.end_backup_file(used_host).unwrap_err().text).unwrap();
    assert!(text.contains(&format!("died in {function} of another job: signal 9 ")), "{text}");
    assert_eq!(used.end(used_host), Ok(()));
    gone
}

/// Cancels the job when the plugin is in a call: the plugin is told, and then its time begins.
fn canceled(plugin: &Library, command: &str) -> (Daemon, Called<Status>) {
    let mut daemon = Daemon::default();
    let mut instance = begun(plugin, &mut daemon, command).unwrap();
    let (facts, canceler) = (Arc::clone(&daemon.facts), instance.canceler());
    let cancels = thread::spawn(move || {
        let mut daemon = Daemon { facts, said: Vec::new() };
        canceler.cancel(&mut daemon);
        daemon.facts.canceled.store(true, Ordering::Relaxed);
        daemon.said
    });
    let answer = instance.end_backup_file(&mut daemon);
    assert_eq!(cancels.join().unwrap(), ["Info canceled\n"]);
    if answer.is_ok() {
        instance.end(&mut daemon).unwrap();
    }
    (daemon, answer)
}

fn a_plugin_that_hangs_is_given_up_when_its_job_is_canceled() {
    let mut other = Daemon::default();
    let mut idle = begun(odd(), &mut other, "odd: none").unwrap();
    let (_, answer) = canceled(odd(), "odd: endBackupFile=hang");
    assert!(answer.unwrap_err().canceled);
    // Another job in the same plugin host goes on; new ones get a new plugin host.
    assert_eq!(idle.end_backup_file(&mut other), Ok(Status::Ok));
    assert_eq!(through(&mut Daemon::default(), "odd: none"), None);
    let before = plugin_hosts();
    idle.end(&mut other).unwrap();
    assert_eq!(plugin_hosts(), before - 1, "the one that hangs is gone");
}

/// Plugin hosts of this process.
fn plugin_hosts() -> usize {
    let own = format!("PPid:\t{}\n", std::process::id());
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let is_host = |path: &std::path::PathBuf| {
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap_or_default();
        read("status").contains(&own) && read("cmdline").starts_with("bacula-fd-plugin")
    };
    processes.filter(is_host).count()
}

fn a_plugin_that_obeys_the_cancel_goes_on() {
    let patient = HostSettings { grace: Duration::from_secs(1000), ..settings() };
    let plugin = load_with(&compiled("obeys", &[]), patient, confinement()).unwrap();
    let (_, answer) = canceled(&plugin, "odd: endBackupFile=obey");
    assert_eq!(answer, Ok(Status::Ok));
}

/// What is told of the cancel on another thread uses what the end of the job frees.
fn a_plugin_is_not_freed_while_it_is_told_of_a_cancel() {
    let patient = HostSettings { grace: Duration::from_secs(1000), ..settings() };
    let plugin = load_with(&compiled("lingers", &[]), patient, confinement()).unwrap();
    // Another job in the same plugin host.
    let mut other = Daemon::default();
    let mut idle = begun(&plugin, &mut other, "odd: none").unwrap();
    let mut daemon = Daemon::default();
    let mut instance = begun(&plugin, &mut daemon, "odd: endBackupFile=obey cancel=linger").unwrap();
    let canceler = instance.canceler();
    thread::scope(|scope| {
        scope.spawn(|| canceler.cancel(&mut Daemon::default()));
        assert_eq!(instance.end_backup_file(&mut daemon), Ok(Status::Ok));
        // The one that tells of the cancel is not done.
        instance.end(&mut daemon).unwrap();
    });
    assert_eq!(idle.end_backup_file(&mut other), Ok(Status::Ok));
    idle.end(&mut other).unwrap();
}

/// Much longer than a call takes that does not hang.
const LATE: Duration = Duration::from_secs(10);

fn a_call_has_its_time() {
    let path = compiled("late", &[]);
    let at_ends = load(&path, Confinement { start_timeout: LATE, ..confinement() }).unwrap();
    let between = load(&path, Confinement { call_timeout: Some(LATE), ..confinement() }).unwrap();
    thread::scope(|scope| {
        for (plugin, function) in [(&at_ends, "freePlugin"), (&between, "checkFile")] {
            scope.spawn(move || {
                let command = format!("odd: {function}=hang");
                let gone = ends_for(plugin, function, || through_all(plugin, &mut Daemon::default(), &command));
                let expected = format!("{function} has not returned for 10 s. The plugin host was ended.\n");
                assert!(!gone.canceled && String::from_utf8_lossy(&gone.text).ends_with(&expected), "{gone:?}");
            });
        }
    });
}

/// As many jobs at night: each would wait for the starts of all before it.
fn jobs_that_begin_together_wait_for_one_start() {
    let hangs = std::env::temp_dir().join(format!("ferrofd-hangs-{}", std::process::id()));
    let load = format!("-DODD_LOAD=if(!access(\"{}\",0)){{write(1,\"loads\\n\",6);for(;;)pause();}}", hangs.display());
    let (tells, loads) = mpsc::channel();
    let tells = Mutex::new(tells);
    let output = Arc::new(move |_: &[u8], line: &[u8]| {
        if line == b"loads" {
            tells.lock().unwrap().send(()).unwrap();
        }
    });
    let confinement = Confinement { start_timeout: LATE, ..confinement() };
    let plugin = load_with(&compiled("again", &[&load]), HostSettings { output, ..settings() }, confinement).unwrap();
    // Nothing begins in its plugin host any more.
    assert!(canceled(&plugin, "odd: endBackupFile=hang").1.unwrap_err().canceled);
    std::fs::write(&hangs, "").unwrap();
    let begin = || plugin.begin(&mut Daemon::default()).map(drop).unwrap_err().text;
    let texts = thread::scope(|scope| {
        let first = scope.spawn(begin);
        loads.recv().unwrap();
        let others = [(); 3].map(|()| scope.spawn(begin)).map(|other| other.join().unwrap());
        others.into_iter().chain([first.join().unwrap()]).collect::<Vec<_>>()
    });
    std::fs::remove_file(&hangs).unwrap();
    for text in texts {
        assert!(text.ends_with(b"it could not be loaded: loadPlugin does not return.\n"), "{}", text.escape_ascii());
    }
    assert_eq!(loads.try_iter().count(), 0, "one that came meanwhile has started another one");
    // One that comes later tries again.
    let (mut daemon, instance) = (Daemon::default(), plugin.begin(&mut Daemon::default()));
    instance.unwrap().0.end(&mut daemon).unwrap();
}

fn nonsense_ends_the_plugin_host() {
    for what in ["scribble", "close"] {
        let gone = through(&mut Daemon::default(), &format!("odd: checkFile={what}"));
        let text = text(gone.as_ref());
        assert!(text.starts_with("Plugin odd-fd.so: the plugin host") && text.contains("checkFile"), "{text}");
        assert_eq!(through(&mut Daemon::default(), "odd: none"), None);
    }
    // A name of 2 MiB.
    let long = || through(&mut Daemon::default(), "odd: startBackupFile=long");
    let text = text(Some(&ends_for(odd(), "startBackupFile", long)));
    assert!(text.contains("the plugin host failed in startBackupFile") && text.contains("It was ended."), "{text}");
}

fn odd_habits_do_no_harm() {
    for (what, said) in
        [("fork", ""), ("leak", ""), ("print", ""), ("thread", "Info from a thread of the plugin\n"), ("nul", "Info a")]
    {
        let mut daemon = Daemon::default();
        assert_eq!(through(&mut daemon, &format!("odd: startBackupFile={what}")), None, "{what}");
        assert_eq!(daemon.said.concat(), said, "{what}");
    }
}

fn a_read_beyond_the_buffer_fails_the_job() {
    let mut daemon = Daemon::default();
    let mut instance = begun(odd(), &mut daemon, "odd: toomuch=1").unwrap();
    let read = instance.io(&mut daemon, Io::Read { buffer: &mut [0; 1000] }).unwrap();
    assert_eq!(read, IoDone { returned: Status::Ok, status: -1, errno: 5, offset: 0 });
    assert_eq!(daemon.said.len(), 1);
    assert!(daemon.said.concat().starts_with("Fatal "));
    assert!(daemon.said.concat().ends_with("pluginIO says that it has read 1001 bytes of at most 1000.\n"));
    instance.end(&mut daemon).unwrap();
}

fn libraries_that_are_no_plugins_are_refused() {
    let refusal = |name: &str, definition: &str| {
        let path = compiled(name, &[definition]);
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let late = Confinement { start_timeout: LATE, ..confinement() };
        let confinement = if name == "sleeping" { late } else { confinement() };
        load(&path, confinement).unwrap_err().replace(path.to_str().unwrap(), "PATH").replace(&file, "FILE")
    };
    let cases = [
        ("magic", "-DODD_LOAD=info.magic=\"x\"", "Plugin magic wrong. Plugin=FILE wanted=*FDPluginData* got=x\n"),
        ("version", "-DODD_LOAD=info.version=22", "Plugin version incorrect. Plugin=FILE wanted=23 got=22\n"),
        ("license", "-DODD_LOAD=info.license=\"MIT\"", "Plugin license incompatible. Plugin=FILE license=MIT\n"),
        ("size", "-DODD_LOAD=info.size=55", "Plugin size incorrect. Plugin=FILE wanted=56 got=55\n"),
        ("refusing", "-DODD_LOAD=return(2)", "silent"),
        ("crashing", "-DODD_LOAD=abort()", "Plugin FILE: it could not be loaded: signal 6 (IOT trap).\n"),
        ("sleeping", "-DODD_LOAD=for(;;)pause()", "Plugin FILE: it could not be loaded: loadPlugin does not return.\n"),
        ("nameless", "-DloadPlugin=loads", "Lookup of loadPlugin in plugin PATH failed: ERR=<NULL>\n"),
        ("endless", "-DunloadPlugin=unloads", "Lookup of unloadPlugin in plugin PATH failed: ERR=<NULL>\n"),
    ];
    let garbage = compiled("garbage", &[]);
    std::fs::write(&garbage, "garbage").unwrap();
    let path = garbage.to_str().unwrap();
    let expected = format!("dlopen plugin {path} failed: ERR={path}: file too short\n");
    assert_eq!(load(&garbage, confinement()).unwrap_err(), expected);
    for (name, definition, expected) in cases {
        assert_eq!(refusal(name, definition), expected, "{name}");
    }
}

fn no_message_of_a_plugin_ends_the_daemon() {
    let mut daemon = Daemon::default();
    assert_eq!(through(&mut daemon, "odd: open=fatal"), None);
    assert_eq!(daemon.said, ["Fatal the end\n"]);
}
