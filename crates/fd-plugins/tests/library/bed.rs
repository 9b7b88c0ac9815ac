//! What the tests share: a compiled plugin, and a daemon that notes what it is told.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fd_messages::MessageType;
use fd_plugins::library::{Confinement, HostSettings, Library};
use fd_plugins::{
    AccurateAttributes, Called, Event, FileEvent, FileSetChange, Host, Instance, JobFacts, Plugin as _, SavePacket,
    Status, Value, Variable,
};

/// What plugins have printed.
pub(crate) static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The facts of a job that can be canceled.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) canceled: AtomicBool,
    pub(crate) files: AtomicI32,
    pub(crate) allowed: Vec<Vec<u8>>,
}

impl JobFacts for Facts {
    fn value(&self, variable: Variable) -> Option<Value> {
        Some(match variable {
            Variable::JobId => Value::Number(17),
            Variable::JobName => Value::Text(Some(b"job.2026".to_vec())),
            Variable::FileIndex => Value::Number(self.files.load(Ordering::Relaxed)),
            Variable::Where => Value::Text(None),
            Variable::IsCanceled => Value::Number(i32::from(self.is_canceled())),
            _ => return None,
        })
    }

    fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &self.allowed
    }

    fn debug(&self, _level: i32, _text: &[u8]) {}
}

/// A daemon that notes what a plugin wants of it.
#[derive(Default)]
pub(crate) struct Daemon {
    pub(crate) facts: Arc<Facts>,
    pub(crate) said: Vec<String>,
}

impl Daemon {
    /// One whose Director may run programs of this directory only.
    pub(crate) fn allowing(directory: &[u8]) -> Self {
        Self { facts: Arc::new(Facts { allowed: vec![directory.to_vec()], ..Facts::default() }), said: Vec::new() }
    }
}

impl Host for Daemon {
    fn facts(&self) -> &dyn JobFacts {
        &*self.facts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        self.said.push(format!("{kind:?} {}", String::from_utf8_lossy(text)));
    }

    fn mark_seen(&mut self, name: &[u8]) -> Status {
        self.said.push(format!("seen {}", String::from_utf8_lossy(name)));
        Status::Ok
    }

    fn change_fileset(&mut self, plugin: &[u8], change: FileSetChange<'_>) -> Status {
        self.said.push(format!("{} {change:?}", String::from_utf8_lossy(plugin)));
        Status::Ok
    }

    fn check_changes(&mut self, file: &mut SavePacket) -> Status {
        file.delta_seq = 5;
        file.accurate_found = true;
        Status::Seen
    }

    fn accurate_attributes(&mut self, _name: &[u8]) -> Option<AccurateAttributes> {
        Some(AccurateAttributes { checksum: Some(b"sum".to_vec()), delta_seq: 3, ..AccurateAttributes::default() })
    }

    fn add_file_event(&mut self, event: FileEvent) -> Status {
        self.said.push(format!("{event:?}"));
        Status::Ok
    }
}

/// Compiles `odd.c` as a plugin of this name, with these definitions; its path.
pub(crate) fn compiled(name: &str, definitions: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(format!("{name}-{}-fd.so", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/library/odd.c");
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-w", "-pthread", "-o"])
        .arg(&library)
        .args(definitions)
        .arg(source)
        .status()
        .expect("the C compiler runs");
    assert!(done.success());
    library
}

/// The usual settings. A plugin that knows of a cancel has no time left.
pub(crate) fn settings() -> HostSettings {
    HostSettings {
        program: fd_os::process::own_program(),
        daemon: b"x-fd".to_vec(),
        working_directory: b"/tmp".to_vec(),
        general: vec![(Variable::FdName, Value::Text(Some(b"x-fd".to_vec())))],
        grace: Duration::ZERO,
        output: Arc::new(|_, line| PRINTED.lock().unwrap().push(String::from_utf8_lossy(line).into_owned())),
    }
}

/// A plugin that is loaded once.
pub(crate) fn odd() -> &'static Library {
    static ODD: std::sync::OnceLock<Library> = std::sync::OnceLock::new();
    ODD.get_or_init(|| load(&compiled("odd", &[]), confinement()).expect("it loads"))
}

/// No test waits so long.
pub(crate) fn confinement() -> Confinement {
    Confinement { start_timeout: Duration::from_secs(1000), call_timeout: None, ..Confinement::default() }
}

pub(crate) fn load(path: &Path, confinement: Confinement) -> Result<Library, String> {
    load_with(path, settings(), confinement)
}

pub(crate) fn load_with(path: &Path, settings: HostSettings, confinement: Confinement) -> Result<Library, String> {
    Library::load(path, settings, confinement)
        .map_err(|why| why.map_or("silent".to_owned(), |text| String::from_utf8_lossy(&text).into_owned()))
}

/// An instance that has this command.
pub(crate) fn begun(plugin: &Library, daemon: &mut Daemon, command: &str) -> Called<Box<dyn Instance>> {
    let (mut instance, status) = plugin.begin(daemon)?;
    assert_eq!(status, Status::Ok);
    instance.event(daemon, &Event::JobStart(b"JobId=17 Job=job.2026"))?;
    let status = instance.event(daemon, &Event::BackupCommand(command.as_bytes()))?;
    assert_eq!(status, Status::Ok);
    Ok(instance)
}
