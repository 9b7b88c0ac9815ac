//! A plugin in a plugin host, as the daemon calls it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fd_messages::MessageType;
use fd_records::MetadataKind;

use super::chain::{Chain, decisive};
use super::conversation::{Conversation, Heard};
use super::process::{NotLoaded, Process, STEP, signal_or_status};
use super::settings::{Confinement, HostSettings};
use super::wire::{
    self, Answer, Begin, Bytes, Call, Change, Data, EventValue, Function, Nonsense, Note, Plan, Reply, Request, ToHost,
    marks,
};
use crate::api::call::{Called, Gone, Io, IoDone, Status};
use crate::api::event::Event;
use crate::api::host::{FileSetChange, Host, Variable};
use crate::api::packets::{ChosenFile, CreateStatus, MetadataPacket, Query, RestoreFile, SavePacket};
use crate::api::plugin::{CancelEvent, Instance, Offers, Plugin, PluginInfo};
use crate::texts;

/// How long the thread that cancels waits for a plugin to take note.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// A third-party plugin: a library with the C interface, in a plugin host.
#[derive(Debug)]
pub struct Library {
    path: Vec<u8>,
    info: PluginInfo,
    offers: Offers,
    settings: HostSettings,
    confinement: Confinement,
    current: Mutex<Option<Arc<Process>>>,
}

impl Library {
    /// Loads the plugin of this path in a new plugin host.
    ///
    /// # Errors
    /// The message about it, with its final newline; `None` for a plugin that has refused, about
    /// which nothing is said (reference 07 §2.3).
    pub fn load(path: &Path, settings: HostSettings, confinement: Confinement) -> Result<Self, Option<Vec<u8>>> {
        let file = path.file_name().unwrap_or_default().as_bytes().to_vec();
        let path = path.as_os_str().as_bytes().to_vec();
        let started = Process::start(&settings, &confinement, &path, &file);
        let (process, version, offers) = started.map_err(|why| match why {
            NotLoaded::Silently => None,
            NotLoaded::Refused(text) => Some(text),
            why => Some(texts::not_loaded(&file, &why.words())),
        })?;
        let info = PluginInfo { file, version };
        Ok(Self { path, info, offers, settings, confinement, current: Mutex::new(Some(process)) })
    }

    /// Has the plugin host become this user, as the daemon itself has, unless it has a user of its
    /// own. Plugin hosts that are started later are that already.
    ///
    /// # Errors
    /// The message about it.
    pub fn become_user(&self, uid: u32, gid: u32, groups: &[u32]) -> Result<(), Vec<u8>> {
        if self.confinement.user.is_some() {
            return Ok(());
        }
        let Some(process) = self.current().clone() else { return Ok(()) };
        process.become_user(uid, gid, groups.to_vec()).map_err(|why| texts::not_loaded(&self.info.file, &why.words()))
    }

    /// The plugin host, started again if it has died.
    fn process(&self) -> Result<Arc<Process>, NotLoaded> {
        let mut current = self.current();
        if let Some(process) = &*current
            && process.serves()
        {
            return Ok(Arc::clone(process));
        }
        *current = None;
        let (process, _, _) = Process::start(&self.settings, &self.confinement, &self.path, &self.info.file)?;
        Ok(Arc::clone(current.insert(process)))
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Process>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugin for Library {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        self.offers
    }

    fn begin(&self, host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        let failed = |why: &NotLoaded| Gone { text: texts::not_loaded(&self.info.file, &why.words()), canceled: false };
        let process = self.process().map_err(|why| failed(&why))?;
        let line = process.open().map_err(|error| failed(&NotLoaded::Failed(error)))?;
        let mut instance = RemoteInstance {
            file: self.info.file.clone(),
            stream: line.stream,
            shared: line.shared,
            conversation: Conversation::default(),
            canceller: Arc::new(RemoteCanceller {
                file: self.info.file.clone(),
                process: Arc::clone(&process),
                number: line.number,
            }),
            process,
            start_timeout: self.confinement.start_timeout,
            call_timeout: self.confinement.call_timeout,
            grace: self.settings.grace,
            verifies: false,
            dead: false,
            is_used: false,
            lost: None,
            chain: None,
            plan: None,
            learned: Plan::default(),
            command: Vec::new(),
            full_reads: 0,
            emptied: 0,
            rest: (Vec::new(), 0),
        };
        let facts = host.facts();
        let values = (0..=i32::from(u8::MAX))
            .filter_map(Variable::from_number)
            .filter_map(|variable| Some((variable.number(), facts.value(variable)?)))
            .collect();
        let allowed = facts.allowed_programs().iter().map(|path| path.as_slice().into()).collect();
        let status = instance.status(host, Call::New(Box::new(Begin { values, allowed })))?;
        Ok((Box::new(instance), status))
    }
}

impl NotLoaded {
    /// What has happened, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Silently => texts::LOAD_REFUSED.to_owned(),
            Self::Refused(text) => String::from_utf8_lossy(text).trim_end().to_owned(),
            Self::Failed(error) => fd_os::io_error_text(error),
            Self::Ended(status) => texts::ended(signal_or_status(*status)),
            Self::Late => texts::LOAD_LATE.to_owned(),
        }
    }
}

/// An instance in a plugin host.
struct RemoteInstance {
    file: Vec<u8>,
    stream: UnixStream,
    /// Memory that the plugin host has mapped; here it is a file.
    shared: Arc<File>,
    conversation: Conversation,
    process: Arc<Process>,
    canceller: Arc<RemoteCanceller>,
    start_timeout: Duration,
    call_timeout: Option<Duration>,
    grace: Duration,
    verifies: bool,
    /// It has failed, which was reported.
    dead: bool,
    /// The job has work for it: not only events for all plugins.
    is_used: bool,
    /// The plugin host has died in another job while this one had no work for it: what was said.
    lost: Option<Gone>,
    /// What is called ahead.
    chain: Option<Chain>,
    /// What was called for the file before.
    plan: Option<Plan>,
    /// What is called for this file.
    learned: Plan,
    /// The command whose files are saved.
    command: Vec<u8>,
    /// Full reads of this file.
    full_reads: u32,
    /// Slots that were emptied, of which the plugin host does not know.
    emptied: u32,
    /// What a read ahead has brought beyond what was wanted, and its address.
    rest: (Vec<u8>, i64),
}

/// Why a call has no answer.
enum Failure {
    /// The line was closed.
    Closed,
    /// The plugin host has said what it may not.
    Nonsense(Nonsense),
    /// The call takes longer than it may.
    Late(Duration),
    /// The job was canceled, and the call goes on.
    Canceled,
    /// The system's error.
    System(io::Error),
}

impl From<Nonsense> for Failure {
    fn from(nonsense: Nonsense) -> Self {
        Self::Nonsense(nonsense)
    }
}

/// How long a call may take.
#[derive(Clone, Copy)]
struct Limits {
    started: Instant,
    /// At most so long, whatever happens.
    most: Option<Duration>,
    /// At most so long after its job was canceled.
    grace: Duration,
    /// Since when the job is known to be canceled.
    canceled: Option<Instant>,
    looked: Instant,
}

impl Limits {
    fn new(most: Option<Duration>, grace: Duration) -> Self {
        let now = Instant::now();
        Self { started: now, most, grace, canceled: None, looked: now }
    }

    /// Looks ten times a second whether the call may go on.
    fn look(&mut self, host: &dyn Host, process: &Process) -> Result<(), Failure> {
        if self.looked.elapsed() < STEP {
            return Ok(());
        }
        self.looked = Instant::now();
        if process.ended().is_some() {
            return Err(Failure::Closed);
        }
        if let Some(most) = self.most
            && self.started.elapsed() >= most
        {
            return Err(Failure::Late(most));
        }
        if host.facts().is_canceled() && self.canceled.get_or_insert(self.looked).elapsed() >= self.grace {
            return Err(Failure::Canceled);
        }
        Ok(())
    }
}

/// Writes a message, however long the other side takes within its limits.
fn write(
    mut stream: &UnixStream,
    mut bytes: &[u8],
    host: &dyn Host,
    process: &Process,
    limits: &mut Limits,
) -> Result<(), Failure> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if is_step(&error) => limits.look(host, process)?,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(Failure::Closed),
            Err(error) => return Err(Failure::System(error)),
        }
    }
    Ok(())
}

/// Reads once; whether there was something.
fn read(mut stream: &UnixStream, conversation: &mut Conversation) -> Result<bool, Failure> {
    let mut buffer = [0; 16 << 10];
    match stream.read(&mut buffer) {
        Ok(0) => Err(Failure::Closed),
        Ok(count) => {
            conversation.push(buffer.get(..count).unwrap_or_default());
            Ok(true)
        }
        Err(error) if is_step(&error) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Err(Failure::Closed),
        Err(error) => Err(Failure::System(error)),
    }
}

fn is_step(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The message of a plugin: no plugin ends the daemon.
fn message(host: &mut dyn Host, kind: i32, text: &[u8]) {
    let kind = MessageType::ALL.into_iter().find(|known| i32::from(known.number()) == kind);
    let kind = match kind {
        None => MessageType::Info,
        Some(MessageType::Abort | MessageType::ErrorTerm | MessageType::Term) => MessageType::Fatal,
        Some(kind) => kind,
    };
    host.message(kind, text);
}

/// Whether this call is made for each plugin of a job, also for one that it has no work for.
fn is_for_all(call: &Call) -> bool {
    matches!(
        call,
        Call::New(_)
            | Call::Free
            | Call::Event(1..=8 | 12 | 13 | 14 | 19 | 25, EventValue::Nothing | EventValue::Number(_))
    ) || matches!(call, Call::Event(1 | 25, _))
}

/// Whether this call was made ahead for that one.
fn is_same(ahead: &Call, call: &Call) -> bool {
    match (ahead, call) {
        (Call::StartBackup(ahead, _, _, empty), Call::StartBackup(command, true, _, file)) => {
            ahead == command && empty == file
        }
        // If it has brought more than is wanted, the rest is for the next one.
        (Call::Read(..), Call::Read(..)) => true,
        _ => ahead == call,
    }
}

/// What the daemon replies.
fn reply(host: &mut dyn Host, file: &[u8], request: Request) -> Reply {
    let status = |status: Status| Reply::Status(status.code());
    match request {
        Request::Value(number) => Reply::Value(Variable::from_number(number).and_then(|variable| host.value(variable))),
        Request::MarkSeen(name) => status(host.mark_seen(&name.0)),
        Request::SetInteractive => {
            host.facts().set_interactive();
            status(Status::Ok)
        }
        Request::Change(change, item, kind) => {
            let item = item.0.as_slice();
            status(host.change_fileset(
                file,
                match change {
                    Change::Exclude => FileSetChange::Exclude(item),
                    Change::Include => FileSetChange::Include(item),
                    Change::Options => FileSetChange::Options(item),
                    Change::Regex => FileSetChange::Regex(item, kind),
                    Change::Wild => FileSetChange::Wild(item, kind),
                    Change::NewOptions => FileSetChange::NewOptions,
                    Change::NewInclude => FileSetChange::NewInclude,
                    Change::NewPreInclude => FileSetChange::NewPreInclude,
                    Change::Plugin => FileSetChange::Plugin(item),
                },
            ))
        }
        Request::CheckChanges(mut file) => {
            let answer = host.check_changes(&mut file);
            Reply::Checked(answer.code(), file.delta_seq, file.accurate_found)
        }
        Request::AcceptFile(file) => status(host.accept_file(&file)),
        Request::Accurate(name) => Reply::Accurate(host.accurate_attributes(&name.0).map(Box::new)),
        Request::FileEvent(event) => status(host.add_file_event(event)),
    }
}

impl RemoteInstance {
    /// Calls a function, or takes the answer of one that was called ahead.
    fn call(&mut self, host: &mut dyn Host, call: Call) -> Called<Answer> {
        let function = call.function();
        if self.dead {
            return Err(Gone { text: Vec::new(), canceled: true });
        }
        let begins_or_ends = matches!(&call, Call::New(_) | Call::Free | Call::Event(1 | 2, _));
        let most = if begins_or_ends { Some(self.start_timeout) } else { self.call_timeout };
        let mut limits = Limits::new(most, self.grace);
        let is_for_all = is_for_all(&call);
        self.is_used |= !is_for_all;
        if let Some(gone) = self.lost.take() {
            // Whoever has no work for it loses nothing.
            if is_for_all {
                self.lost = Some(gone);
                return Ok(Answer::Status(0));
            }
            self.dead = true;
            return Err(gone);
        }
        self.exchange(host, call, &mut limits).or_else(|failure| {
            let is_closed = matches!(failure, Failure::Closed);
            let (gone, elsewhere) = self.gone(failure, function);
            if is_closed && elsewhere && !self.is_used {
                self.dead = false;
                self.lost = Some(gone);
                return Ok(Answer::Status(0));
            }
            Err(gone)
        })
    }

    fn exchange(&mut self, host: &mut dyn Host, call: Call, limits: &mut Limits) -> Result<Answer, Failure> {
        if let Some(chain) = self.chain.take() {
            if let Some(ahead) = chain.next().filter(|ahead| is_same(ahead, &call)) {
                return self.take(host, &ahead, chain, limits);
            }
            let closed = self.halt(host, chain, limits)?;
            if let (Some(answer), Call::Close) = (closed, &call) {
                return Ok(answer);
            }
        }
        self.ask(host, call, limits)
    }

    /// Has a function called, and takes its answer.
    fn ask(&mut self, host: &mut dyn Host, call: Call, limits: &mut Limits) -> Result<Answer, Failure> {
        let chain = Chain::behind(&call);
        self.emptied = 0;
        let message = ToHost::Call(Box::new(call));
        self.send(host, &message, limits)?;
        let ToHost::Call(call) = message else { return Err(Failure::Closed) };
        match chain {
            Some(chain) => self.take(host, &call, chain, limits),
            None => self.answer(host, &call, limits),
        }
    }

    /// Takes the answer to a call of this chain.
    fn take(
        &mut self,
        host: &mut dyn Host,
        call: &Call,
        mut chain: Chain,
        limits: &mut Limits,
    ) -> Result<Answer, Failure> {
        let answer = self.answer(host, call, limits)?;
        chain.advance(&answer);
        self.chain = chain.next().is_some().then_some(chain);
        Ok(answer)
    }

    /// Has nothing called ahead any more. What was called already is undone where there is a
    /// function for it; the answer to a close, if the plugin host has come to that.
    fn halt(&mut self, host: &mut dyn Host, mut chain: Chain, limits: &mut Limits) -> Result<Option<Answer>, Failure> {
        self.rest.0.clear();
        self.shared.write_all_at(&[1], marks::HALT as u64).map_err(Failure::System)?;
        self.send(host, &ToHost::Halt, limits)?;
        let (mut started, mut opened, mut closed) = (false, false, None);
        while let Some(answer) = self.heard(host, chain.next().as_ref(), limits)? {
            match (&chain.next(), &answer) {
                (Some(Call::StartBackup(..)), Answer::File(0, Some(_))) => started = true,
                (Some(Call::Open { .. }), Answer::Io { status: 0.., .. }) => opened = true,
                (Some(Call::Close), _) => {
                    opened = false;
                    closed = Some(answer.clone());
                }
                _ => {}
            }
            chain.advance(&answer);
        }
        if opened {
            closed = Some(self.ask(host, Call::Close, limits)?);
        }
        if started {
            self.ask(host, Call::EndBackup(None), limits)?;
        }
        Ok(closed)
    }

    fn send(&self, host: &mut dyn Host, message: &ToHost, limits: &mut Limits) -> Result<(), Failure> {
        write(&self.stream, &wire::encode(message)?, host, &self.process, limits)
    }

    /// Waits for the answer to a call, and serves the plugin meanwhile.
    fn answer(&mut self, host: &mut dyn Host, call: &Call, limits: &mut Limits) -> Result<Answer, Failure> {
        self.heard(host, Some(call), limits)?.ok_or(Failure::Nonsense(Nonsense::Order))
    }

    /// The next answer, which is to this call; `None` if nothing is called ahead any more. Serves
    /// the plugin meanwhile.
    fn heard(
        &mut self,
        host: &mut dyn Host,
        awaited: Option<&Call>,
        limits: &mut Limits,
    ) -> Result<Option<Answer>, Failure> {
        loop {
            while let Some(heard) = self.conversation.next(awaited)? {
                match heard {
                    Heard::Answer(answer) => return Ok(Some(answer)),
                    Heard::Halted => return Ok(None),
                    Heard::Note(Note::Message(kind, text)) => message(host, kind, &text.0),
                    Heard::Note(Note::Debug(level, text)) => host.debug(level, &text.0),
                    Heard::Note(Note::Verifies) => self.verifies = true,
                    Heard::Request(request) => {
                        let reply = reply(host, &self.file, request);
                        self.send(host, &ToHost::Reply(reply), limits)?;
                    }
                }
                limits.look(host, &self.process)?;
            }
            read(&self.stream, &mut self.conversation)?;
            limits.look(host, &self.process)?;
        }
    }

    /// The instance has failed: what is to be said, once, and whether another one is to blame.
    fn gone(&mut self, failure: Failure, function: Function) -> (Gone, bool) {
        self.dead = true;
        self.process.retire();
        let file = &self.file;
        let mut is_elsewhere = false;
        let (text, canceled) = match failure {
            Failure::Canceled => (texts::still_runs(file, function.name(), self.grace.as_secs()), true),
            Failure::Late(limit) => {
                self.process.kill();
                (texts::late(file, function.name(), limit.as_secs()), false)
            }
            Failure::Nonsense(nonsense) => {
                self.process.kill();
                (texts::nonsense(file, function.name(), &nonsense.to_string()), false)
            }
            Failure::System(error) => {
                self.process.kill();
                (texts::nonsense(file, function.name(), &fd_os::io_error_text(&error)), false)
            }
            Failure::Closed => {
                let end = self.process.wait_end();
                let (running, elsewhere) = self.process.died_in(&self.shared);
                is_elsewhere = elsewhere;
                let function = if running == Function::NONE { function } else { running };
                let place = if elsewhere { texts::of_another_job(function.name()) } else { function.name().to_owned() };
                match end {
                    Some(status) => (texts::died(file, &place, &texts::ended(signal_or_status(status))), false),
                    None => (texts::hung_up(file, &place), false),
                }
            }
        };
        (Gone { text, canceled }, is_elsewhere)
    }

    /// Calls a function that returns a number.
    fn status(&mut self, host: &mut dyn Host, call: Call) -> Called<Status> {
        match self.call(host, call)? {
            Answer::Status(code) => Ok(Status::from_code(code)),
            _ => Ok(Status::Error),
        }
    }

    /// Calls a function that fills a packet.
    fn fill(&mut self, host: &mut dyn Host, call: Call, file: &mut SavePacket) -> Called<Status> {
        let Answer::File(code, filled) = self.call(host, call)? else { return Ok(Status::Error) };
        if let Some(filled) = filled {
            *file = *filled;
        }
        Ok(Status::from_code(code))
    }

    fn create(&mut self, host: &mut dyn Host, call: Call) -> Called<(Status, CreateStatus)> {
        match self.call(host, call)? {
            Answer::Created(code, created) => Ok((Status::from_code(code), CreateStatus::from_code(created))),
            _ => Ok((Status::Error, CreateStatus::Error)),
        }
    }

    /// Calls `pluginIO` for anything but reading.
    fn input_output(&mut self, host: &mut dyn Host, call: Call) -> Called<IoDone> {
        match self.call(host, call)? {
            Answer::Io { returned, status, errno, offset, .. } => {
                Ok(IoDone { returned: Status::from_code(returned), status, errno, offset })
            }
            _ => Ok(IoDone::error(0)),
        }
    }

    /// Reads at most so many bytes.
    fn read_into(&mut self, host: &mut dyn Host, buffer: &mut [u8]) -> Called<IoDone> {
        if !self.rest.0.is_empty() {
            return Ok(self.read_rest(buffer));
        }
        let count = u32::try_from(buffer.len().min(wire::SLOT)).unwrap_or_default();
        self.learned.read = count;
        let ahead = self.full_reads > 0 && self.chain.is_none();
        let Answer::Io { returned, status, errno, offset, data } = self.call(host, Call::Read(count, ahead))? else {
            return Ok(IoDone::error(0));
        };
        self.full_reads = if u32::try_from(status) == Ok(count) { self.full_reads.saturating_add(1) } else { 0 };
        let done = IoDone { returned: Status::from_code(returned), status, errno, offset };
        self.fetch(host, data, done, buffer).map_err(|failure| self.gone(failure, Function::IO).0)
    }

    /// Fetches what was read.
    fn fetch(&mut self, host: &mut dyn Host, data: Data, done: IoDone, buffer: &mut [u8]) -> Result<IoDone, Failure> {
        let count = usize::try_from(done.status).unwrap_or_default();
        let (now, later) = (count.min(buffer.len()), count.saturating_sub(buffer.len()));
        let place = buffer.get_mut(..now).unwrap_or_default();
        match data {
            Data::Nothing => return Ok(done),
            Data::Here(bytes) => {
                let (first, rest) = bytes.0.split_at_checked(now).ok_or(Nonsense::Range)?;
                place.copy_from_slice(first);
                self.rest.0.extend_from_slice(rest);
            }
            Data::Slot(slot) => {
                let from = (wire::FIRST_SLOT + slot as usize * wire::SLOT_STEP) as u64;
                self.shared.read_exact_at(place, from).map_err(Failure::System)?;
                if later > 0 {
                    self.rest.0.resize(later, 0);
                    let (rest, from) = (&mut self.rest.0, from.saturating_add(now as u64));
                    self.shared.read_exact_at(rest, from).map_err(Failure::System)?;
                }
                self.emptied += 1;
                if self.emptied >= wire::SLOTS_AHEAD / 2 && self.chain.is_some() {
                    let credit = ToHost::Credit(std::mem::take(&mut self.emptied));
                    self.send(host, &credit, &mut Limits::new(None, self.grace))?;
                }
            }
        }
        self.rest.1 = done.offset.saturating_add(i64::try_from(now).unwrap_or_default());
        Ok(IoDone { status: i32::try_from(now).unwrap_or_default(), ..done })
    }

    /// What is left of a read ahead that has brought more than is wanted.
    fn read_rest(&mut self, buffer: &mut [u8]) -> IoDone {
        let (rest, offset) = &mut self.rest;
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest.drain(..count)) {
            *to = from;
        }
        let done = IoDone { offset: *offset, ..IoDone::bytes(i32::try_from(count).unwrap_or_default()) };
        *offset = offset.saturating_add(i64::from(done.status));
        done
    }

    /// Writes at most [`wire::LONGEST_WRITE`] bytes.
    fn write_part(&mut self, host: &mut dyn Host, data: &[u8]) -> Called<IoDone> {
        if data.len() <= wire::SMALL_READ {
            return self.input_output(host, Call::Write(data.into()));
        }
        if let Err(error) = self.shared.write_all_at(data, wire::FIRST_SLOT as u64) {
            return Err(self.gone(Failure::System(error), Function::IO).0);
        }
        let count = u32::try_from(data.len()).unwrap_or_default();
        self.input_output(host, Call::WriteShared(count))
    }
}

impl Instance for RemoteInstance {
    fn canceller(&self) -> Arc<dyn CancelEvent> {
        Arc::clone(&self.canceller) as Arc<dyn CancelEvent>
    }

    fn end(mut self: Box<Self>, host: &mut dyn Host) -> Called<()> {
        if self.dead {
            return Ok(());
        }
        self.call(host, Call::Free).map(drop)
    }

    fn verifies(&self) -> bool {
        self.verifies
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        let value = match event {
            Event::JobStart(text)
            | Event::BackupCommand(text)
            | Event::RestoreCommand(text)
            | Event::EstimateCommand(text)
            | Event::PluginCommand(text)
            | Event::ComponentInfo(text)
            | Event::PluginOptions(text) => EventValue::Text((*text).into()),
            Event::Level(letter) => EventValue::Number(i64::from(*letter)),
            Event::Since(time) => EventValue::Number(*time),
            Event::RestoreObject(Some(object)) => EventValue::Object(Box::new((*object).clone())),
            Event::RestoreObject(None)
            | Event::JobEnd
            | Event::StartBackupJob
            | Event::EndBackupJob
            | Event::StartRestoreJob
            | Event::EndRestoreJob
            | Event::StartVerifyJob
            | Event::EndVerifyJob
            | Event::Cancel
            | Event::EndFileSet => EventValue::Nothing,
        };
        self.status(host, Call::Event(event.number(), value))
    }

    fn handle_file(&mut self, host: &mut dyn Host, command: &[u8], file: &mut SavePacket) -> Called<Status> {
        self.fill(host, Call::HandleFile(command.into(), Box::new(file.clone())), file)
    }

    fn features(&mut self, host: &mut dyn Host) -> Called<Option<Vec<u8>>> {
        match self.call(host, Call::Features)? {
            Answer::Features(text) => Ok(text.map(|text| text.0)),
            _ => Ok(None),
        }
    }

    fn start_backup_file(
        &mut self,
        host: &mut dyn Host,
        command: &[u8],
        reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        self.learned = Plan::default();
        self.full_reads = 0;
        if self.command != command || !reads {
            self.plan = None;
        }
        self.command = command.to_vec();
        let plan = self.plan.clone().filter(|_| *file == SavePacket::empty());
        let status = self.fill(host, Call::StartBackup(command.into(), reads, plan, Box::new(file.clone())), file)?;
        self.learned.flags = decisive(file.flags);
        Ok(status)
    }

    fn end_backup_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        if self.learned.open.is_some() {
            self.plan = Some(std::mem::take(&mut self.learned));
        }
        // A canceled job begins no other file.
        let next = self.plan.clone().filter(|_| !host.facts().is_canceled());
        self.status(host, Call::EndBackup(next.map(|plan| (self.command.as_slice().into(), plan))))
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        match io {
            Io::Open { name, flags, mode } => {
                self.learned.open = Some((flags, mode));
                self.full_reads = 0;
                self.input_output(host, Call::Open { name: name.into(), flags, mode })
            }
            Io::Read { buffer } => self.read_into(host, buffer),
            Io::Write { data } => {
                // The usual case, and that of no data, is one part.
                let mut written = 0_i32;
                let mut rest = data;
                loop {
                    let (part, next) = rest.split_at(rest.len().min(wire::LONGEST_WRITE));
                    let done = self.write_part(host, part)?;
                    let whole = usize::try_from(done.status) == Ok(part.len());
                    if !whole || next.is_empty() {
                        let status = if done.status < 0 { done.status } else { written.saturating_add(done.status) };
                        return Ok(IoDone { status, ..done });
                    }
                    written = written.saturating_add(done.status);
                    rest = next;
                }
            }
            Io::Seek { offset, whence } => self.input_output(host, Call::Seek { offset, whence }),
            Io::Close => {
                self.rest.0.clear();
                self.input_output(host, Call::Close)
            }
        }
    }

    fn read_xacl(&mut self, host: &mut dyn Host, kind: MetadataKind, content: &mut Vec<u8>) -> Called<Status> {
        self.learned.xacl = true;
        let number = if kind == MetadataKind::Acl { 1 } else { 3 };
        match self.call(host, Call::Xacl(number, Bytes::default()))? {
            Answer::Xacl(code, bytes) => {
                content.extend_from_slice(&bytes.0);
                Ok(Status::from_code(code))
            }
            _ => Ok(Status::Error),
        }
    }

    fn write_xacl(&mut self, host: &mut dyn Host, kind: MetadataKind, content: &[u8]) -> Called<Status> {
        let number = if kind == MetadataKind::Acl { 2 } else { 4 };
        match self.call(host, Call::Xacl(number, content.into()))? {
            Answer::Xacl(code, _) => Ok(Status::from_code(code)),
            _ => Ok(Status::Error),
        }
    }

    fn check_stream(&mut self, host: &mut dyn Host, stream: &mut i32) -> Called<Status> {
        self.learned.check_stream = Some(*stream);
        match self.call(host, Call::CheckStream(*stream))? {
            Answer::Stream(code, changed) => {
                *stream = changed;
                Ok(Status::from_code(code))
            }
            _ => Ok(Status::Error),
        }
    }

    fn check_file(&mut self, host: &mut dyn Host, name: &[u8]) -> Called<Status> {
        self.status(host, Call::CheckFile(name.into()))
    }

    fn start_restore_file(&mut self, host: &mut dyn Host, command: &[u8]) -> Called<Status> {
        self.status(host, Call::StartRestore(command.into()))
    }

    fn end_restore_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.status(host, Call::EndRestore)
    }

    fn create_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.create(host, Call::CreateFile(Box::new(file.clone())))
    }

    fn set_attributes(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.create(host, Call::SetAttributes(Box::new(file.clone())))
    }

    fn restore_metadata(&mut self, host: &mut dyn Host, packet: &MetadataPacket) -> Called<Status> {
        self.status(host, Call::RestoreMetadata(packet.clone()))
    }

    fn restore_file_list(&mut self, host: &mut dyn Host, file: Option<&ChosenFile>) -> Called<Status> {
        self.status(host, Call::RestoreFileList(file.cloned().map(Box::new)))
    }

    fn query(&mut self, host: &mut dyn Host, query: Query<'_>, result: &mut Vec<u8>) -> Called<Status> {
        match self.call(host, Call::Query(query.parameter.into(), query.command.into()))? {
            Answer::Query(code, text) => {
                result.extend_from_slice(&text.unwrap_or_default().0);
                Ok(Status::from_code(code))
            }
            _ => Ok(Status::Error),
        }
    }

    fn start_verify_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<Status> {
        self.status(host, Call::StartVerify(Box::new(file.clone())))
    }

    fn end_verify_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.status(host, Call::EndVerify)
    }
}

impl Drop for RemoteInstance {
    fn drop(&mut self) {
        self.process.leave();
    }
}

/// Delivers the cancel event of an instance.
struct RemoteCanceller {
    file: Vec<u8>,
    process: Arc<Process>,
    number: u64,
}

impl CancelEvent for RemoteCanceller {
    fn cancel(&self, host: &mut dyn Host) {
        // Whoever is in a call of a plugin host that fails hears of it.
        let Ok(stream) = self.process.cancel(self.number) else { return };
        let mut conversation = Conversation::default();
        let mut limits = Limits::new(Some(CANCEL_LIMIT), CANCEL_LIMIT);
        let call = Call::Event(Event::Cancel.number(), EventValue::Nothing);
        while read(&stream, &mut conversation).is_ok() {
            while let Ok(Some(heard)) = conversation.next(Some(&call)) {
                match heard {
                    Heard::Note(Note::Message(kind, text)) => message(host, kind, &text.0),
                    Heard::Note(Note::Debug(level, text)) => host.debug(level, &text.0),
                    Heard::Request(request) => {
                        let reply = reply(host, &self.file, request);
                        let Ok(bytes) = wire::encode(&ToHost::Reply(reply)) else { return };
                        if write(&stream, &bytes, host, &self.process, &mut limits).is_err() {
                            return;
                        }
                    }
                    Heard::Note(Note::Verifies) | Heard::Halted => {}
                    Heard::Answer(_) => return,
                }
            }
            if limits.look(host, &self.process).is_err() {
                return;
            }
        }
    }
}
