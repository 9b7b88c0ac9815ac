//! One instance's calls: from messages to functions of the plugin, and back (reference 07 §3.3,
//! §3.4).

use std::ffi::c_void;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::convert::from_save;
use super::instance::Shared;
use super::line::Line;
use crate::api::packets::{ChosenFile, MetadataPacket, RestoreFile, SavePacket, SavedObject};
use crate::library::abi::{
    Context, EventPacket, IoPacket, MetaPacket, OfContext, OfPacket, PluginFunctions, QueryPacket,
    RestoreFileListPacket, RestoreObjectPacket, RestorePacketC, SavePacketC, StreamPacket, XaclPacket, io_func,
    size_field, xacl_func,
};
use crate::library::chain::Chain;
use crate::library::values::{Texts, bytes, text, to_stat, write_save_head, zeroed};
use crate::library::wire::{
    Answer, Bytes, Call, Data, EventValue, FIRST_SLOT, FromHost, Function, LONGEST_WRITE, Note, SLOT, SLOT_STEP,
    SLOTS_AHEAD, SMALL_READ,
};
use crate::texts;

/// Status of a function that the plugin does not have, where the daemon does not ask.
const OK: i32 = 0;
const ERROR: i32 = 2;
/// `create_status` before the plugin sets it.
const CREATE_ERROR: i32 = 2;
/// Event 24: a file for an option plugin.
const HANDLE_FILE: u32 = 24;
/// Event 26: features.
const FEATURES: u32 = 26;
/// `io_pkt.mode` when data is verified.
const VERIFIES: u32 = 1;
/// Numbers of [`fd_messages::MessageType::Fatal`] and of an error.
const FATAL: i32 = 4;
const NOT_FATAL: i32 = 5;
/// Most bytes of an ACL or of extended attributes.
const LONGEST_XACL: usize = 16 << 20;
/// After a call that took so long the daemon gets what is ready: the next one may take long, too.
const LONG_CALL: Duration = Duration::from_millis(1);
/// Longest text that is kept for the plugin as long as its instance lives.
const LONGEST_KEPT: usize = 4096;

/// The calls of one instance.
pub(super) struct Calls {
    shared: Arc<Shared>,
    functions: &'static PluginFunctions,
    file: Vec<u8>,
    /// The packet of the file that is saved. The plugin may point to it until the file is done.
    save: Box<SavePacketC>,
    /// What the packet points to.
    texts: Texts,
    verifies: bool,
    /// The slot of the next read.
    slot: u32,
}

impl Calls {
    pub(super) fn new(shared: Arc<Shared>, functions: &'static PluginFunctions, file: Vec<u8>) -> Self {
        // SAFETY: it has numbers and addresses.
        let save = Box::new(unsafe { zeroed() });
        Self { shared, functions, file, save, texts: Texts::default(), verifies: false, slot: 0 }
    }

    /// Serves the instance until it ends.
    pub(super) fn serve(&mut self) -> io::Result<()> {
        let mut begun = false;
        let mut freed = false;
        let served = loop {
            let next = self.shared.with_line(|line| line.next_call(&self.shared.memory));
            let call = match next {
                Ok(call) => call,
                Err(error) => break Err(error),
            };
            begun |= matches!(call, Call::New(_));
            let last = matches!(call, Call::Free);
            freed |= last;
            self.slot = 0;
            let chain = Chain::behind(&call);
            let said = self.answer(call).and_then(|answer| match chain {
                Some(chain) => self.go_ahead(chain, &answer),
                None => Ok(()),
            });
            let said = said.and_then(|()| self.shared.with_line(Line::flush));
            if last || said.is_err() {
                break said;
            }
        };
        if begun && !freed {
            // The daemon has given the instance up, or the plugin has closed its line: what is
            // called now is not what the daemon waits for, and is not noted.
            self.free();
        }
        served
    }

    /// Makes a call and says what it has returned.
    fn answer(&mut self, call: Call) -> io::Result<Answer> {
        // What the plugin has returned is followed, too: an address may be wrong.
        let function = call.function();
        self.shared.memory.mark(function.mark());
        let answer = self.execute(call);
        self.shared.memory.mark(Function::None.mark());
        self.shared.say_notes(&self.file);
        let message = FromHost::Answer(answer);
        self.shared.with_line(|line| line.say(&message))?;
        let FromHost::Answer(answer) = message else { return Err(io::ErrorKind::InvalidData.into()) };
        Ok(answer)
    }

    /// Makes the calls that follow, as long as the daemon wants them.
    fn go_ahead(&mut self, mut chain: Chain, first: &Answer) -> io::Result<()> {
        chain.advance(first);
        let mut ready = is_large(first);
        while let Some(call) = chain.next() {
            if ready {
                self.shared.with_line(Line::flush)?;
            }
            let goes_on = match call {
                Call::Read(..) => self.shared.with_line(Line::wait_for_slot)?,
                _ => !self.shared.with_line(|line| Ok(line.is_halted()))?,
            };
            if !goes_on || self.shared.memory.is_halted() {
                break;
            }
            let begun = Instant::now();
            let answer = self.answer(call)?;
            chain.advance(&answer);
            ready = is_large(&answer) || begun.elapsed() >= LONG_CALL;
        }
        Ok(())
    }

    fn context(&self) -> *mut Context {
        self.shared.context.address()
    }

    fn of_context(&self, function: Option<OfContext>) -> i32 {
        let context = self.context();
        // SAFETY: a function of the plugin, with its context.
        function.map_or(OK, |function| unsafe { function(context) })
    }

    fn of_packet<P>(&self, function: Option<OfPacket<P>>, packet: *mut P, without: i32) -> i32 {
        let context = self.context();
        // SAFETY: a function of the plugin, with its context and the packet that it wants.
        function.map_or(without, |function| unsafe { function(context, packet) })
    }

    fn event(&self, number: u32, value: *mut c_void) -> i32 {
        let context = self.context();
        let mut event = EventPacket { event_type: number };
        let Some(function) = self.functions.handle_plugin_event else { return OK };
        // SAFETY: the plugin's function, with a value as the event has it.
        unsafe { function(context, &raw mut event, value) }
    }

    /// Ends the instance. Nothing uses its context from here on.
    fn free(&self) -> i32 {
        self.shared.free(|| self.of_context(self.functions.free_plugin))
    }

    fn execute(&mut self, call: Call) -> Answer {
        let functions = self.functions;
        match call {
            Call::New(begin) => {
                let allowed = begin.allowed.into_iter().map(|path| path.0).collect();
                self.shared.set_job(begin.values, allowed);
                Answer::Status(self.of_context(functions.new_plugin))
            }
            Call::Free => Answer::Status(self.free()),
            Call::Event(number, value) => Answer::Status(self.general_event(number, value)),
            Call::HandleFile(command, file) => self.handle_file(&command.0, &file),
            Call::Features => self.features(),
            Call::StartBackup(command, _, _, file) => self.start_backup(&command.0, &file),
            Call::EndBackup(_) => Answer::Status(self.of_context(functions.end_backup_file)),
            Call::Open { name, flags, mode } => self.open(&name.0, flags, mode),
            Call::Read(count, _) => self.read(count),
            Call::Write(data) => self.write(Some(&data.0), data.0.len()),
            Call::WriteShared(count) => self.write(None, count as usize),
            Call::Seek { offset, whence } => {
                self.input_output(IoPacket { whence, offset, ..self.io_packet(io_func::SEEK) })
            }
            Call::Close => self.input_output(self.io_packet(io_func::CLOSE)),
            Call::Xacl(number, content) => self.xacl(number, content),
            Call::CheckStream(stream) => self.check_stream(stream),
            Call::CheckFile(name) => self.check_file(&name.0),
            Call::StartRestore(command) => self.start_restore(&command.0),
            Call::EndRestore => Answer::Status(self.of_context(functions.end_restore_file)),
            Call::CreateFile(file) => self.restore_packet(functions.create_file, &file),
            Call::SetAttributes(file) => self.restore_packet(functions.set_file_attributes, &file),
            Call::RestoreMetadata(packet) => self.restore_metadata(packet),
            Call::RestoreFileList(file) => self.restore_file_list(file.as_deref()),
            Call::Query(parameter, command) => self.query(&parameter.0, &command.0),
            Call::StartVerify(file) => self.start_verify(&file),
            Call::EndVerify => Answer::Status(self.of_context(functions.end_verify_file)),
        }
    }

    fn start_verify(&mut self, file: &RestoreFile) -> Answer {
        self.verifies = true;
        match self.restore_packet(self.functions.start_verify_file, file) {
            Answer::Created(code, _) => Answer::Status(code),
            other => other,
        }
    }

    fn open(&mut self, name: &[u8], flags: i32, mode: u32) -> Answer {
        let mut texts = Texts::default();
        let mut packet = self.io_packet(io_func::OPEN);
        packet.flags = flags;
        packet.mode = if self.verifies { VERIFIES } else { mode };
        packet.fname = texts.hold(name);
        self.input_output(packet)
    }

    fn check_stream(&self, stream: i32) -> Answer {
        let size = size_field::<StreamPacket>();
        let mut packet = StreamPacket { pkt_size: size, stream, pkt_end: size };
        let code = self.of_packet(self.functions.check_stream, &raw mut packet, OK);
        Answer::Stream(code, packet.stream)
    }

    fn check_file(&self, name: &[u8]) -> Answer {
        let (mut texts, context) = (Texts::default(), self.context());
        let name = texts.hold(name);
        let Some(function) = self.functions.check_file else { return Answer::Status(OK) };
        // SAFETY: the plugin's function, with a text.
        Answer::Status(unsafe { function(context, name) })
    }

    fn start_restore(&self, command: &[u8]) -> Answer {
        let (command, context) = (self.shared.keep(command), self.context());
        let Some(function) = self.functions.start_restore_file else { return Answer::Status(ERROR) };
        // SAFETY: the plugin's function, with a text.
        Answer::Status(unsafe { function(context, command) })
    }

    fn restore_metadata(&self, packet: MetadataPacket) -> Answer {
        let mut data = packet.data;
        let mut packet = MetaPacket {
            decoded: 1,
            total_size: packet.total_size,
            total_count: packet.total_count,
            kind: packet.kind,
            index: packet.index,
            buf_len: u32::try_from(data.len()).unwrap_or(u32::MAX),
            buf: data.as_mut_ptr().cast(),
        };
        let function = self.functions.metadata_restore;
        Answer::Status(self.of_packet(function, &raw mut packet, OK))
    }

    fn restore_file_list(&self, file: Option<&ChosenFile>) -> Answer {
        let (mut texts, size) = (Texts::default(), size_field::<RestoreFileListPacket>());
        let mut packet = file.map(|file| RestoreFileListPacket {
            pkt_size: size,
            plugin_mode: 0,
            file_index: 0,
            link_fi: file.link_fi,
            statp: to_stat(&file.stat),
            attr_ex: texts.hold(b""),
            ofname: texts.hold(&file.name),
            delta_seq: file.delta_seq,
            chksum: texts.hold(&file.checksum),
            pkt_end: size,
        });
        let address = packet.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        let function = self.functions.restore_file_list;
        Answer::Status(self.of_packet(function, address, OK))
    }

    fn query(&self, parameter: &[u8], command: &[u8]) -> Answer {
        let (mut texts, size) = (Texts::default(), size_field::<QueryPacket>());
        let mut packet = QueryPacket {
            pkt_size: size,
            parameter: texts.hold(parameter),
            command: texts.hold(command),
            api_opts: std::ptr::null_mut(),
            result: std::ptr::null_mut(),
            pkt_end: size,
        };
        let code = self.of_packet(self.functions.query_parameter, &raw mut packet, ERROR);
        // SAFETY: a text of the plugin, or null.
        Answer::Query(code, unsafe { text(packet.result) }.map(Bytes))
    }

    fn general_event(&self, number: u32, value: EventValue) -> i32 {
        match value {
            EventValue::Nothing => self.event(number, std::ptr::null_mut()),
            EventValue::Number(value) => self.event(number, value as *mut c_void),
            EventValue::Text(text) if text.0.len() <= LONGEST_KEPT => {
                self.event(number, self.shared.keep(&text.0).cast_mut().cast())
            }
            EventValue::Text(text) => {
                let mut texts = Texts::default();
                self.event(number, texts.hold(&text.0).cast())
            }
            EventValue::Object(object) => self.restore_object(number, *object),
        }
    }

    fn restore_object(&self, number: u32, object: SavedObject) -> i32 {
        let (mut texts, size) = (Texts::default(), size_field::<RestoreObjectPacket>());
        let mut data = object.data;
        let length = i32::try_from(data.len()).unwrap_or(i32::MAX);
        // Plugins take it for a text.
        data.push(0);
        let mut packet = RestoreObjectPacket {
            pkt_size: size,
            object_name: texts.hold(&object.name),
            object: data.as_mut_ptr().cast(),
            plugin_name: texts.hold(&object.command),
            object_type: object.object_type,
            object_len: length,
            object_full_len: object.full_length,
            object_index: object.index,
            object_compression: object.compression,
            stream: 0,
            job_id: object.job_id,
            pkt_end: size,
        };
        self.event(number, (&raw mut packet).cast())
    }

    fn fill_save(&mut self, command: &[u8], file: &SavePacket) {
        let size = size_field::<SavePacketC>();
        let mut texts = Texts::default();
        // SAFETY: it has numbers and addresses.
        let mut packet: SavePacketC = unsafe { zeroed() };
        packet.pkt_size = size;
        packet.pkt_end = size;
        packet.fname = texts.hold_option(file.name.as_deref());
        packet.snap_fname = texts.hold_option(file.snap_name.as_deref());
        packet.link = texts.hold_option(file.link.as_deref());
        write_save_head(file, &mut packet);
        packet.cmd = self.shared.keep(command).cast_mut();
        *self.save = packet;
        self.texts = texts;
    }

    fn filled_save(&self, code: i32) -> Answer {
        // SAFETY: the plugin has filled it with right addresses.
        Answer::File(code, (code == OK).then(|| Box::new(unsafe { from_save(&self.save) })))
    }

    fn start_backup(&mut self, command: &[u8], file: &SavePacket) -> Answer {
        self.fill_save(command, file);
        let packet = &raw mut *self.save;
        let code = self.of_packet(self.functions.start_backup_file, packet, ERROR);
        self.filled_save(code)
    }

    fn handle_file(&mut self, command: &[u8], file: &SavePacket) -> Answer {
        self.fill_save(command, file);
        let packet = &raw mut *self.save;
        let code = self.event(HANDLE_FILE, packet.cast());
        self.filled_save(code)
    }

    fn features(&self) -> Answer {
        let mut features: *const std::ffi::c_char = std::ptr::null();
        self.event(FEATURES, (&raw mut features).cast());
        // SAFETY: a text of the plugin, or null.
        Answer::Features(unsafe { text(features) }.map(Bytes))
    }

    fn io_packet(&self, func: i32) -> IoPacket {
        let size = size_field::<IoPacket>();
        // SAFETY: it has numbers and addresses.
        let packet: IoPacket = unsafe { zeroed() };
        let mode = if self.verifies { VERIFIES } else { 0 };
        IoPacket { pkt_size: size, func, mode, status: -1, pkt_end: size, ..packet }
    }

    fn io(&self, packet: &mut IoPacket) -> i32 {
        self.of_packet(self.functions.plugin_io, packet, ERROR)
    }

    fn input_output(&self, mut packet: IoPacket) -> Answer {
        let returned = self.io(&mut packet);
        io_answer(returned, &packet, Data::Nothing)
    }

    fn read(&mut self, count: u32) -> Answer {
        let most = (count as usize).min(SLOT);
        let place = self.shared.memory.at(FIRST_SLOT + self.slot as usize * SLOT_STEP);
        let mut packet = self.io_packet(io_func::READ);
        packet.count = i32::try_from(most).unwrap_or_default();
        packet.buf = place.cast();
        let returned = self.io(&mut packet);
        let Ok(read) = usize::try_from(packet.status) else { return io_answer(returned, &packet, Data::Nothing) };
        if read > most {
            let text = texts::read_too_much(&self.file, packet.status, packet.count);
            self.shared.note(Note::Message(FATAL, Bytes(text)));
            packet.status = -1;
            packet.io_errno = libc::EIO;
            return io_answer(returned, &packet, Data::Nothing);
        }
        let data = match read {
            0 => Data::Nothing,
            // SAFETY: the slot is as long as a read may be.
            1..=SMALL_READ => Data::Here(Bytes(unsafe { bytes(place.cast(), packet.status) }.to_vec())),
            _ => {
                let slot = self.slot;
                self.slot = (slot + 1) % SLOTS_AHEAD;
                // The line is this thread's.
                let _filled = self.shared.with_line(|line| {
                    line.fill_slot();
                    Ok(())
                });
                Data::Slot(slot)
            }
        };
        io_answer(returned, &packet, data)
    }

    fn write(&self, data: Option<&[u8]>, count: usize) -> Answer {
        let count = count.min(LONGEST_WRITE);
        let place = self.shared.memory.at(FIRST_SLOT);
        if let Some(data) = data {
            // SAFETY: the memory is longer than a message with data.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), place, count.min(data.len())) };
        }
        let mut packet = self.io_packet(io_func::WRITE);
        packet.count = i32::try_from(count).unwrap_or_default();
        packet.buf = place.cast();
        let returned = self.io(&mut packet);
        io_answer(returned, &packet, Data::Nothing)
    }

    fn xacl(&self, number: i32, content: Bytes) -> Answer {
        let size = size_field::<XaclPacket>();
        let mut content = content.0;
        let restores = matches!(number, xacl_func::ACL_RESTORE | xacl_func::XATTR_RESTORE);
        let mut packet = XaclPacket {
            pkt_size: size,
            func: number,
            count: i32::try_from(content.len()).unwrap_or_default(),
            content: if restores { content.as_mut_ptr().cast() } else { std::ptr::null_mut() },
            pkt_end: size,
        };
        let code = self.of_packet(self.functions.handle_xacl_data, &raw mut packet, OK);
        if !restores && usize::try_from(packet.count).is_ok_and(|count| count > LONGEST_XACL) {
            let text = texts::too_long_for_an_acl(&self.file, packet.count);
            self.shared.note(Note::Message(NOT_FATAL, Bytes(text)));
            return Answer::Xacl(ERROR, Bytes::default());
        }
        // SAFETY: the plugin's bytes.
        let filled = if restores { Vec::new() } else { unsafe { bytes(packet.content, packet.count) }.to_vec() };
        Answer::Xacl(code, Bytes(filled))
    }

    fn restore_packet(&self, function: Option<OfPacket<RestorePacketC>>, file: &RestoreFile) -> Answer {
        let (mut texts, size) = (Texts::default(), size_field::<RestorePacketC>());
        let mut packet = RestorePacketC {
            pkt_size: size,
            plugin_mode: 0,
            stream: file.stream,
            data_stream: file.data_stream,
            file_type: file.file_type,
            file_index: file.file_index,
            link_fi: file.link_fi,
            uid: file.uid,
            statp: to_stat(&file.stat),
            attr_ex: texts.hold(&file.attr_ex),
            ofname: texts.hold(&file.name),
            olname: texts.hold_option(file.link.as_deref()),
            place: texts.hold_option(file.place.as_deref()),
            regex_where: texts.hold_option(file.regex_where.as_deref()),
            replace: i32::from(file.replace),
            create_status: CREATE_ERROR,
            delta_seq: file.delta_seq,
            pkt_end: size,
        };
        let code = self.of_packet(function, &raw mut packet, OK);
        Answer::Created(code, packet.create_status)
    }
}

/// Tells an instance that its job is canceled. Another thread may be in one of its calls.
pub(super) fn cancel(shared: &Shared, functions: &PluginFunctions) {
    const CANCEL: u32 = 14;
    shared.set_canceled();
    let mut event = EventPacket { event_type: CANCEL };
    let told = shared.beside(|| {
        functions.handle_plugin_event.map_or(OK, |function| {
            // SAFETY: the plugin's function, with an event that has no value.
            unsafe { function(shared.context.address(), &raw mut event, std::ptr::null_mut()) }
        })
    });
    // One that has just ended needs no telling.
    let Some(code) = told else { return };
    // The daemon may wait no longer.
    let _gone = shared.with_line(|line| {
        line.say(&FromHost::Answer(Answer::Status(code)))?;
        line.flush()
    });
}

/// Whether there is much to do for the daemon.
const fn is_large(answer: &Answer) -> bool {
    matches!(answer, Answer::Io { data: Data::Slot(_), .. })
}

fn io_answer(returned: i32, packet: &IoPacket, data: Data) -> Answer {
    let (status, errno) = (packet.status, packet.io_errno);
    Answer::Io { returned, status, errno, offset: packet.offset, data }
}
