//! Which plugins are called, and when.

use std::sync::atomic::AtomicU32;

use super::*;
use crate::api::call::Status;
use crate::api::host::{Change, FileSetChange, JobFacts, NoFacts};

/// A plugin that notes its events, and answers a command by adding another one.
#[derive(Debug)]
struct Noting {
    info: PluginInfo,
    adds: &'static [u8],
    noted: Arc<Mutex<Vec<String>>>,
    begins: Status,
}

struct NotingJob {
    name: String,
    adds: &'static [u8],
    noted: Arc<Mutex<Vec<String>>>,
}

struct NoCancel;

impl CancelEvent for NoCancel {
    fn cancel(&self, host: &mut dyn Host) {
        host.debug(0, b"canceled");
    }
}

impl Plugin for Noting {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        Offers::default()
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        let name = String::from_utf8_lossy(self.info.name()).into_owned();
        Ok((Box::new(NotingJob { name, adds: self.adds, noted: Arc::clone(&self.noted) }), self.begins))
    }
}

impl Instance for NotingJob {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(NoCancel)
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        self.noted.lock().push(format!("{} ends", self.name));
        Ok(())
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        self.noted.lock().push(format!("{} {}", self.name, event.number()));
        if !self.adds.is_empty() {
            let added = host.change_fileset(self.name.as_bytes(), FileSetChange::new(Change::Plugin, self.adds));
            self.noted.lock().push(format!("{} added {}", self.name, added.code()));
        }
        Ok(Status::Ok)
    }
}

/// Tells plugins of commands that others add.
struct Telling<'p> {
    plugins: &'p JobPlugins,
    missed: u32,
}

impl Host for Telling<'_> {
    fn facts(&self) -> &dyn JobFacts {
        &NoFacts
    }

    fn message(&mut self, _kind: MessageType, _text: &[u8]) {}

    fn change_fileset(&mut self, _plugin: &[u8], change: FileSetChange<'_>) -> Status {
        let FileSetChange { how: Change::Plugin, item: command, .. } = change else { return Status::Error };
        let plugins = self.plugins;
        if plugins.tell_named_unless_busy(self, command, &Event::PluginCommand(command)) == Ok(false) {
            self.missed += 1;
        }
        Status::Ok
    }
}

struct Set {
    plugins: JobPlugins,
    noted: Arc<Mutex<Vec<String>>>,
}

impl Set {
    fn of(members: &[(&str, &'static [u8], Status)]) -> Self {
        let noted = Arc::<Mutex<Vec<String>>>::default();
        let plugin = |(name, adds, begins): &(&str, &'static [u8], Status)| {
            let info = PluginInfo { file: format!("{name}-fd.so").into_bytes(), version: b"1".to_vec() };
            Arc::new(Noting { info, adds, noted: Arc::clone(&noted), begins: *begins }) as Arc<dyn Plugin>
        };
        let loaded: Vec<_> = members.iter().map(plugin).collect();
        let none = JobPlugins::default();
        Self { plugins: JobPlugins::begin(&loaded, &mut Telling { plugins: &none, missed: 0 }), noted }
    }

    fn told(&self, command: &[u8]) -> (Vec<String>, u32) {
        let mut host = Telling { plugins: &self.plugins, missed: 0 };
        self.plugins.tell_named(&mut host, command, &Event::PluginCommand(command)).unwrap();
        (std::mem::take(&mut *self.noted.lock()), host.missed)
    }
}

#[test]
fn the_name_ends_at_the_first_colon() {
    assert_eq!(command_name(b"bpipe:/a:b c:d"), Ok(Some(b"bpipe".as_slice())));
    assert_eq!(command_name(b"bpipe"), Ok(Some(b"bpipe".as_slice())));
    assert_eq!(command_name(b":x"), Ok(None));
    assert_eq!(command_name(b""), Ok(None));
    assert_eq!(command_name(b"bpipe x"), Err(Malformed));
    assert_eq!(command_name(b"a b:c"), Ok(Some(b"a b".as_slice())));
}

#[test]
fn a_plugin_is_told_at_once_of_a_command_that_another_one_adds() {
    let set = Set::of(&[("a", b"b:x", Status::Ok), ("b", b"", Status::Ok)]);
    assert_eq!(set.told(b"a:1"), (["a 20", "b 20", "a added 0"].map(str::to_owned).to_vec(), 0));
}

#[test]
fn a_plugin_in_a_call_can_not_be_told_of_its_own_command() {
    let set = Set::of(&[("a", b"a:x", Status::Ok)]);
    assert_eq!(set.told(b"a:1"), (["a 20", "a added 0"].map(str::to_owned).to_vec(), 1));
}

#[test]
fn only_a_bare_special_name_is_for_all() {
    let set = Set::of(&[("a", b"", Status::Ok), ("b", b"", Status::Ok), ("c", b"", Status::Error)]);
    assert_eq!(set.told(b"*all*").0, ["a 20", "b 20"]);
    assert_eq!(set.told(b"job").0, ["a 20", "b 20"]);
    assert_eq!(set.told(b"job:x").0, Vec::<String>::new());
    assert!(matches!(set.plugins.named(b"c:x"), Lookup::Disabled));
    assert!(matches!(set.plugins.named(b"d:x"), Lookup::NotFound));
}

#[test]
fn a_disabled_plugin_is_ended_and_nothing_is_ended_twice() {
    let set = Set::of(&[("a", b"", Status::Ok), ("c", b"", Status::Error)]);
    let mut host = Telling { plugins: &set.plugins, missed: 0 };
    set.plugins.end(&mut host);
    set.plugins.end(&mut host);
    assert_eq!(*set.noted.lock(), ["a ends", "c ends"]);
}

#[test]
fn a_cancel_is_told_once() {
    #[derive(Debug, Default)]
    struct Counting(AtomicU32);

    impl JobFacts for Counting {
        fn value(&self, _: crate::Variable) -> Option<crate::Value> {
            None
        }

        fn is_canceled(&self) -> bool {
            true
        }

        fn allowed_programs(&self) -> &[Vec<u8>] {
            &[]
        }

        fn debug(&self, _: i32, _: &[u8]) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Plain(Counting);

    impl Host for Plain {
        fn facts(&self) -> &dyn JobFacts {
            &self.0
        }

        fn message(&mut self, _kind: MessageType, _text: &[u8]) {}
    }

    let set = Set::of(&[("a", b"", Status::Ok)]);
    let mut host = Plain(Counting::default());
    set.plugins.cancel(&mut host);
    set.plugins.cancel(&mut host);
    assert_eq!(host.0.0.load(Ordering::Relaxed), 1);
    // What is not for canceled jobs is not told.
    set.plugins.tell_all(&mut host, &Event::JobEnd);
    set.plugins.tell_all(&mut host, &Event::EndBackupJob);
    assert_eq!(*set.noted.lock(), ["a 4"]);
}

/// As a plugin between two of its files that the daemon makes on storage which does not answer.
#[test]
fn a_plugin_that_a_left_thread_holds_outside_a_call_keeps_no_other_thread() {
    let set = Set::of(&[("a", b"", Status::Ok), ("b", b"", Status::Ok)]);
    let Lookup::Found(mut held) = set.plugins.named(b"a:x") else { panic!("it is there") };
    assert!(!set.plugins.are_busy());
    assert_eq!(held.call(|_| Ok(set.plugins.are_busy())), Ok(true));
    assert!(!set.plugins.are_busy());
    set.plugins.abandon();
    let mut host = Telling { plugins: &set.plugins, missed: 0 };
    set.plugins.tell_all(&mut host, &Event::JobEnd);
    set.plugins.tell_named(&mut host, b"a:x", &Event::PluginCommand(b"a:x")).unwrap();
    assert!(matches!(set.plugins.named(b"a:x"), Lookup::Disabled));
    set.plugins.end(&mut host);
    assert_eq!(*set.noted.lock(), ["b 2", "b ends"]);
    // When its storage answers, the job is over.
    assert!(held.call(|_| Ok(())).unwrap_err().canceled);
    drop(held);
    set.plugins.tell_all(&mut host, &Event::EndRestoreJob);
    assert_eq!(*set.noted.lock(), ["b 2", "b ends"]);
}
