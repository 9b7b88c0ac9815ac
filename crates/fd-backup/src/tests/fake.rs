//! A plugin whose every answer is written down before.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use fd_messages::MessageType;
use fd_plugins::{
    Called, CancelEvent, Event, Gone, Host, Instance, Io, IoDone, JobFacts, JobPlugins, MetadataPacket, NoFacts,
    Offers, Plugin, PluginInfo, SavePacket, Status,
};
use fd_records::{FileType, MetadataKind, Stat};

/// Called in each call of the plugin, with the call's name.
pub(crate) type Hook = Box<dyn FnMut(&str, &mut dyn Host) + Send>;

/// What the plugin does.
#[derive(Default)]
pub(crate) struct Script {
    /// Its files; after each but the last one there is more.
    pub(crate) files: VecDeque<FakeFile>,
    /// The answer to the event of a command.
    pub(crate) command: Option<Status>,
    /// The answers for files of an option plugin.
    pub(crate) handled: Vec<(&'static str, Status)>,
    /// Of those, what can't be opened, and the error.
    pub(crate) closed: Option<(&'static str, i32)>,
    /// Files that still exist.
    pub(crate) existing: Vec<&'static str>,
    /// What `checkStream` makes of a stream.
    pub(crate) stream: Option<i32>,
    /// The answer to `handleXACLdata`.
    pub(crate) xacl: Option<Status>,
    /// The call in which the plugin is gone.
    pub(crate) gone_in: Option<&'static str>,
    /// It is gone because the job is over.
    pub(crate) gone_is_canceled: bool,
    pub(crate) hook: Option<Hook>,
    /// The calls so far.
    pub(crate) calls: Vec<String>,
    /// The file that is being saved.
    current: FakeFile,
}

/// A file of the plugin.
#[derive(Clone, Default)]
pub(crate) struct FakeFile {
    pub(crate) packet: SavePacket,
    /// Blocks, each with its address.
    pub(crate) blocks: VecDeque<(i64, Vec<u8>)>,
    /// The error of opening it.
    pub(crate) open_error: Option<i32>,
    /// The error after the last block.
    pub(crate) read_error: Option<i32>,
    /// The answer when it is closed.
    pub(crate) closed: Option<IoDone>,
    /// The answer instead of the file.
    pub(crate) refused: Option<Status>,
    /// The answer at its end.
    pub(crate) ended: Option<Status>,
    pub(crate) xacl: VecDeque<(MetadataKind, Vec<u8>)>,
}

impl FakeFile {
    /// A file of this type, whose attributes are those of bpipe's but for the times.
    pub(crate) fn new(name: &str, file_type: FileType, data: &[u8]) -> Self {
        let stat = Stat {
            mode: 0o100_700,
            nlink: 1,
            size: -1,
            blksize: 4096,
            blocks: 1,
            atime: 1,
            mtime: 1,
            ctime: 1,
            ..Stat::default()
        };
        let packet =
            SavePacket { name: Some(name.into()), stat, file_type: i32::from(file_type.code()), ..SavePacket::empty() };
        let blocks = if data.is_empty() { VecDeque::new() } else { [(0, data.to_vec())].into() };
        Self { packet, blocks, ..Self::default() }
    }

    pub(crate) fn regular(name: &str, data: &[u8]) -> Self {
        Self::new(name, FileType::Regular, data)
    }

    /// An object of this type.
    pub(crate) fn object(name: &str, file_type: FileType, data: &[u8]) -> Self {
        let mut object = Self::new("", file_type, b"");
        object.packet.name = None;
        object.packet.object.name = Some(name.into());
        object.packet.object.data = data.to_vec();
        object
    }

    /// The same with changes.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn with_metadata(self, packets: Vec<MetadataPacket>) -> Self {
        self.with(|file| file.packet.metadata = Some(packets))
    }
}

/// The plugin `tp`, or one of another name.
pub(crate) struct Fake {
    info: PluginInfo,
    offers: Offers,
    pub(crate) script: Arc<Mutex<Script>>,
    begun: Status,
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fake").finish_non_exhaustive()
    }
}

impl Fake {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            info: PluginInfo { file: format!("{name}-fd.so").into(), version: b"1".into() },
            offers: Offers {
                backup: true,
                io: true,
                check_file: true,
                xacl: true,
                check_stream: true,
                ..Offers::default()
            },
            script: Arc::default(),
            begun: Status::Ok,
        }
    }

    /// A plugin with these files.
    pub(crate) fn with_files(files: impl IntoIterator<Item = FakeFile>) -> Self {
        let plugin = Self::new("tp");
        plugin.script.lock().unwrap().files = files.into_iter().collect();
        plugin
    }

    pub(crate) fn disabled(self) -> Self {
        Self { begun: Status::Error, ..self }
    }

    pub(crate) fn offering(self, offers: Offers) -> Self {
        Self { offers, ..self }
    }

    pub(crate) fn hooked(self, hook: impl FnMut(&str, &mut dyn Host) + Send + 'static) -> Self {
        self.script.lock().unwrap().hook = Some(Box::new(hook));
        self
    }
}

/// The plugins of a job.
pub(crate) fn job_plugins(plugins: impl IntoIterator<Item = Fake>) -> Arc<JobPlugins> {
    let plugins: Vec<Arc<dyn Plugin>> = plugins.into_iter().map(|plugin| Arc::new(plugin) as _).collect();
    Arc::new(JobPlugins::begin(&plugins, &mut Bare))
}

/// For calls outside of a job.
pub(crate) struct Bare;

impl Host for Bare {
    fn facts(&self) -> &dyn JobFacts {
        &NoFacts
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        panic!("{kind:?} {}", String::from_utf8_lossy(text));
    }
}

impl Plugin for Fake {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        self.offers
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        Ok((Box::new(Playing(Arc::clone(&self.script))), self.begun))
    }
}

struct Playing(Arc<Mutex<Script>>);

impl Playing {
    /// Notes a call.
    fn call(&self, name: &str, host: &mut dyn Host) -> Called<()> {
        let mut script = self.0.lock().unwrap();
        script.calls.push(name.to_owned());
        let hook = script.hook.take();
        let gone = script.gone_in.is_some_and(|wanted| name.starts_with(wanted));
        let canceled = script.gone_is_canceled;
        drop(script);
        if let Some(mut hook) = hook {
            hook(name, host);
            self.0.lock().unwrap().hook = Some(hook);
        }
        if gone { Err(Gone { text: format!("tp is gone in {name}\n").into(), canceled }) } else { Ok(()) }
    }
}

struct Deaf;

impl CancelEvent for Deaf {
    fn cancel(&self, _host: &mut dyn Host) {}
}

impl Instance for Playing {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(Deaf)
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        self.call(&format!("event {}", event.number()), host)?;
        Ok(self.0.lock().unwrap().command.unwrap_or(Status::Ok))
    }

    fn handle_file(&mut self, host: &mut dyn Host, command: &[u8], file: &mut SavePacket) -> Called<Status> {
        let name = String::from_utf8_lossy(file.name.as_deref().unwrap_or_default()).into_owned();
        self.call(&format!("handle {} {name}", String::from_utf8_lossy(command)), host)?;
        let mut script = self.0.lock().unwrap();
        let answer = script.handled.iter().find(|(end, _)| name.ends_with(end)).map_or(Status::Core, |found| found.1);
        let content = [b"plugin's ", name.rsplit('/').next().unwrap_or_default().as_bytes()].concat();
        let open_error = script.closed.filter(|(end, _)| name.ends_with(end)).map(|(_, error)| error);
        script.current = FakeFile { blocks: [(0, content)].into(), open_error, ..FakeFile::default() };
        Ok(answer)
    }

    fn start_backup_file(
        &mut self,
        host: &mut dyn Host,
        _command: &[u8],
        reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        self.call(if reads { "start" } else { "start without reading" }, host)?;
        let mut script = self.0.lock().unwrap();
        let Some(next) = script.files.pop_front() else { return Ok(Status::Stop) };
        *file = next.packet.clone();
        script.current = next;
        Ok(script.current.refused.unwrap_or(Status::Ok))
    }

    fn end_backup_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.call("end", host)?;
        let script = self.0.lock().unwrap();
        let usual = if script.files.is_empty() { Status::Ok } else { Status::More };
        Ok(script.current.ended.unwrap_or(usual))
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        let name = match &io {
            Io::Open { name, flags, mode } => format!("open {} {flags} {mode}", String::from_utf8_lossy(name)),
            Io::Read { buffer } => format!("read {}", buffer.len()),
            Io::Close => "close".to_owned(),
            other => format!("{other:?}"),
        };
        self.call(&name, host)?;
        let current = &mut self.0.lock().unwrap().current;
        Ok(match io {
            Io::Open { .. } => current.open_error.map_or(IoDone::bytes(0), IoDone::error),
            Io::Read { buffer } => match current.blocks.pop_front() {
                Some((offset, block)) => {
                    let len = block.len().min(buffer.len());
                    let (now, later) = block.split_at(len);
                    buffer[..len].copy_from_slice(now);
                    if !later.is_empty() {
                        current.blocks.push_front((offset, later.to_vec()));
                    }
                    IoDone { offset, ..IoDone::bytes(i32::try_from(len).unwrap()) }
                }
                None => current.read_error.map_or(IoDone::bytes(0), IoDone::error),
            },
            Io::Close => current.closed.unwrap_or(IoDone::bytes(0)),
            _ => IoDone::bytes(0),
        })
    }

    fn read_xacl(&mut self, host: &mut dyn Host, kind: MetadataKind, content: &mut Vec<u8>) -> Called<Status> {
        self.call(kind.name(), host)?;
        let mut script = self.0.lock().unwrap();
        if let Some(answer) = script.xacl {
            return Ok(answer);
        }
        let xacl = &mut script.current.xacl;
        if let Some((_, bytes)) = xacl.front().filter(|(of, _)| *of == kind) {
            content.extend_from_slice(bytes);
            xacl.pop_front();
        }
        Ok(Status::Ok)
    }

    fn check_stream(&mut self, host: &mut dyn Host, stream: &mut i32) -> Called<Status> {
        self.call("stream", host)?;
        if let Some(changed) = self.0.lock().unwrap().stream {
            *stream = changed;
        }
        Ok(Status::Ok)
    }

    fn check_file(&mut self, host: &mut dyn Host, name: &[u8]) -> Called<Status> {
        let name = String::from_utf8_lossy(name).into_owned();
        self.call(&format!("check {name}"), host)?;
        let exists = self.0.lock().unwrap().existing.iter().any(|end| name.ends_with(end));
        Ok(if exists { Status::Seen } else { Status::Ok })
    }
}
