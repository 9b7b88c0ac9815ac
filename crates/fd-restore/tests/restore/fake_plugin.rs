//! A plugin that does as it is told, and notes each call.

use std::sync::{Arc, Mutex};

use fd_messages::MessageType;
use fd_plugins::{
    Called, CancelEvent, CommandOfVolume, CreateStatus, Event, Gone, Host, Instance, Io, IoDone, JobFacts, JobPlugins,
    MetadataPacket, Offers, Plugin, PluginInfo, RestoreFile, Status, Value, Variable,
};
use fd_records::MetadataKind;
use fd_restore::PluginAccess;

/// What the plugin answers. The default takes every file.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    pub(crate) offers: Offers,
    pub(crate) begin: Status,
    pub(crate) event: Status,
    pub(crate) start: Status,
    pub(crate) create: (Status, CreateStatus),
    pub(crate) set: (Status, CreateStatus),
    pub(crate) open: IoDone,
    /// `None`: everything is taken.
    pub(crate) write: Option<IoDone>,
    pub(crate) seek: IoDone,
    pub(crate) close: IoDone,
    pub(crate) metadata: Status,
    pub(crate) xacl: Status,
    pub(crate) verifies: bool,
    pub(crate) start_verify: Status,
    pub(crate) end_verify: Status,
    /// The call in which its process ends.
    pub(crate) dies_in: Option<&'static str>,
    /// What it says in a call.
    pub(crate) says: Option<(&'static str, MessageType, &'static str)>,
    /// What it finds at the end of a file.
    pub(crate) finds: Option<fd_plugins::FileEvent>,
}

impl Default for Answers {
    fn default() -> Self {
        let offers = Offers {
            restore: true,
            io: true,
            create_file: true,
            set_attributes: true,
            xacl: true,
            metadata: true,
            start_verify: true,
            end_verify: true,
            ..Offers::default()
        };
        Self {
            offers,
            begin: Status::Ok,
            event: Status::Ok,
            start: Status::Ok,
            create: (Status::Ok, CreateStatus::Extract),
            set: (Status::Ok, CreateStatus::Error),
            open: IoDone::bytes(0),
            write: None,
            seek: IoDone::bytes(0),
            close: IoDone::bytes(0),
            metadata: Status::Ok,
            xacl: Status::Ok,
            verifies: false,
            start_verify: Status::Ok,
            end_verify: Status::Ok,
            dies_in: None,
            says: None,
            finds: None,
        }
    }
}

/// What a plugin has been called for, and what it was given.
#[derive(Default, Debug)]
pub(crate) struct Noted {
    pub(crate) calls: Vec<String>,
    pub(crate) data: Vec<u8>,
    pub(crate) files: Vec<RestoreFile>,
}

/// The plugin `name`.
#[derive(Debug)]
pub(crate) struct Fake {
    info: PluginInfo,
    answers: Answers,
    noted: Arc<Mutex<Noted>>,
}

struct FakeInstance {
    answers: Answers,
    noted: Arc<Mutex<Noted>>,
}

struct Ends(Arc<Mutex<Noted>>);

impl CancelEvent for Ends {
    fn cancel(&self, _host: &mut dyn Host) {
        self.0.lock().unwrap().calls.push("cancel".to_owned());
    }
}

impl Plugin for Fake {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        self.answers.offers
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        let instance = FakeInstance { answers: self.answers.clone(), noted: Arc::clone(&self.noted) };
        Ok((Box::new(instance), self.answers.begin))
    }
}

impl FakeInstance {
    fn note(&self, host: &mut dyn Host, call: &'static str, more: &str) -> Called<()> {
        self.noted.lock().unwrap().calls.push(format!("{call}{more}"));
        if let Some((when, kind, text)) = self.answers.says
            && when == call
        {
            host.message(kind, text.as_bytes());
        }
        if self.answers.dies_in == Some(call) {
            return Err(Gone { text: format!("plugin tp died in {call}\n").into_bytes(), canceled: false });
        }
        Ok(())
    }
}

impl Instance for FakeInstance {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(Ends(Arc::clone(&self.noted)))
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn verifies(&self) -> bool {
        self.answers.verifies
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        let command = match event {
            Event::RestoreCommand(command) => String::from_utf8_lossy(command).into_owned(),
            _ => String::new(),
        };
        self.note(host, "event", &format!(" {} {command}", event.number()))?;
        Ok(self.answers.event)
    }

    fn start_restore_file(&mut self, host: &mut dyn Host, _command: &[u8]) -> Called<Status> {
        self.note(host, "start", "")?;
        Ok(self.answers.start)
    }

    fn end_restore_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.note(host, "end", "")?;
        Ok(Status::Ok)
    }

    fn create_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.noted.lock().unwrap().files.push(file.clone());
        self.note(host, "create", "")?;
        Ok(self.answers.create)
    }

    fn set_attributes(&mut self, host: &mut dyn Host, _file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.note(host, "attributes", "")?;
        Ok(self.answers.set)
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        match io {
            Io::Open { name, flags, mode } => {
                self.note(host, "open", &format!(" {} {flags:o} {mode:o}", String::from_utf8_lossy(name)))?;
                Ok(self.answers.open)
            }
            Io::Write { data } => {
                self.noted.lock().unwrap().data.extend_from_slice(data);
                self.note(host, "write", &format!(" {}", data.len()))?;
                Ok(self.answers.write.unwrap_or_else(|| IoDone::bytes(i32::try_from(data.len()).unwrap())))
            }
            Io::Seek { offset, whence } => {
                self.note(host, "seek", &format!(" {offset} {whence}"))?;
                Ok(self.answers.seek)
            }
            Io::Close => {
                self.note(host, "close", "")?;
                if let Some(event) = self.answers.finds.clone() {
                    host.add_file_event(event);
                }
                Ok(self.answers.close)
            }
            Io::Read { .. } => Ok(IoDone::error(22)),
        }
    }

    fn give_up(&mut self, host: &mut dyn Host) -> Called<IoDone> {
        self.note(host, "give up", "")?;
        Ok(self.answers.close)
    }

    fn write_xacl(&mut self, host: &mut dyn Host, kind: MetadataKind, content: &[u8]) -> Called<Status> {
        self.note(host, "xacl", &format!(" {} {}", kind.name(), String::from_utf8_lossy(content)))?;
        Ok(self.answers.xacl)
    }

    fn restore_metadata(&mut self, host: &mut dyn Host, packet: &MetadataPacket) -> Called<Status> {
        let data = String::from_utf8_lossy(&packet.data);
        self.note(host, "metadata", &format!(" {}/{} {data}", packet.index, packet.total_count))?;
        Ok(self.answers.metadata)
    }

    fn start_verify_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<Status> {
        self.noted.lock().unwrap().files.push(file.clone());
        self.note(host, "start verify", "")?;
        Ok(self.answers.start_verify)
    }

    fn end_verify_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.note(host, "end verify", "")?;
        Ok(self.answers.end_verify)
    }
}

/// A job's facts.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) is_canceled: bool,
}

impl JobFacts for Facts {
    fn value(&self, variable: Variable) -> Option<Value> {
        match variable {
            Variable::JobId => Some(Value::Number(9)),
            Variable::Where => Some(Value::Text(Some(b"/where".to_vec()))),
            _ => None,
        }
    }

    fn is_canceled(&self) -> bool {
        self.is_canceled
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &[]
    }

    fn debug(&self, _level: i32, _text: &[u8]) {}

    fn command_of_volume(&self, command: &[u8]) -> CommandOfVolume {
        match command {
            b"tp:unknown" => CommandOfVolume::Unknown,
            b"tp:never" => CommandOfVolume::Never,
            _ => CommandOfVolume::Ordered,
        }
    }
}

/// A place where nothing is said.
struct Quiet<'f>(&'f Facts);

impl Host for Quiet<'_> {
    fn facts(&self) -> &dyn JobFacts {
        self.0
    }

    fn message(&mut self, _kind: MessageType, _text: &[u8]) {}
}

/// A job with the plugin `tp`, and what it notes.
pub(crate) fn access(answers: Answers) -> (PluginAccess, Arc<Mutex<Noted>>) {
    let noted = Arc::new(Mutex::new(Noted::default()));
    let info = PluginInfo { file: b"tp-fd.so".to_vec(), version: b"1".to_vec() };
    let plugin: Arc<dyn Plugin> = Arc::new(Fake { info, answers, noted: Arc::clone(&noted) });
    let facts = Facts { is_canceled: false };
    let plugins = Arc::new(JobPlugins::begin(&[plugin], &mut Quiet(&facts)));
    (PluginAccess { plugins, facts: Arc::new(facts) }, noted)
}
