#![no_main]
//! Records of plugins in a restore and in a Verify of data: whatever a volume says, and whatever
//! the plugin answers, the job ends, the plugin's functions are called in their order only, and
//! nothing appears outside of the directory of the restore.
//!
//! The input begins with eight bytes that choose the plugin's answers. Then come records: a byte
//! that chooses the stream, a byte of length, and so many bytes of data.

#[path = "shared/volume.rs"]
mod volume;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use fd_crypto::processor::Processor;
use fd_messages::{CancelToken, MessageType, PacketSink, Progress, SendError};
use fd_plugins::{
    Called, CancelEvent, CreateStatus, Event, FileEvent, Gone, Host, Instance, Io, IoDone, JobFacts, JobPlugins,
    MetadataPacket, Offers, Plugin, PluginInfo, RestoreFile, Status, Value, Variable,
};
use fd_records::{DigestKind, MetadataKind, Replace};
use fd_restore::verify::{Checks, VerifyJob, data as verify_data};
use fd_restore::{LinkRule, OutputNames, PluginAccess, RestorePlan, RestoreState, run};
use libfuzzer_sys::fuzz_target;
use volume::{Frames, Silent};

/// A Director that takes everything.
struct Director;

impl PacketSink for Director {
    fn send(&mut self, _packet: Vec<u8>) -> Result<(), SendError> {
        Ok(())
    }
}

/// How far the plugin's current file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Outside,
    Started,
    Created,
    Open,
    Closed,
}

#[derive(Debug)]
struct Fuzzed {
    info: PluginInfo,
    answers: [u8; 8],
    stage: Arc<Mutex<Stage>>,
}

struct FuzzedInstance {
    answers: [u8; 8],
    calls: usize,
    stage: Arc<Mutex<Stage>>,
    is_dead: bool,
}

struct Nothing;

impl CancelEvent for Nothing {
    fn cancel(&self, _host: &mut dyn Host) {}
}

impl Plugin for Fuzzed {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        let answers = self.answers[0];
        Offers {
            restore: answers & 1 == 0,
            io: answers & 2 == 0,
            create_file: answers & 4 == 0,
            set_attributes: answers & 8 == 0,
            xacl: answers & 16 == 0,
            metadata: answers & 32 == 0,
            start_verify: true,
            end_verify: answers & 64 == 0,
            ..Offers::default()
        }
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        let instance =
            FuzzedInstance { answers: self.answers, calls: 0, stage: Arc::clone(&self.stage), is_dead: false };
        Ok((Box::new(instance), Status::Ok))
    }
}

impl FuzzedInstance {
    /// The next answer; now and then the plugin dies instead.
    fn answer(&mut self) -> Called<u8> {
        assert!(!self.is_dead, "called after its end");
        self.calls += 1;
        let chosen = self.answers[1 + self.calls % 6];
        if self.answers[7] != 0 && self.calls == usize::from(self.answers[7]) {
            self.is_dead = true;
            *self.stage.lock().expect("the stage") = Stage::Outside;
            return Err(Gone { text: b"dead\n".to_vec(), canceled: chosen & 1 == 1 });
        }
        Ok(chosen)
    }

    /// The call is allowed at these stages only.
    fn must_be(&self, stages: &[Stage]) {
        let stage = *self.stage.lock().expect("the stage");
        assert!(stages.contains(&stage), "called at {stage:?}");
    }

    fn go(&self, to: Stage) {
        *self.stage.lock().expect("the stage") = to;
    }

    fn status(answer: u8) -> Status {
        if answer & 0xc0 == 0xc0 { Status::from_code(i32::from(answer & 15)) } else { Status::Ok }
    }
}

impl Instance for FuzzedInstance {
    fn canceler(&self) -> Arc<dyn CancelEvent> {
        Arc::new(Nothing)
    }

    fn end(self: Box<Self>, _host: &mut dyn Host) -> Called<()> {
        Ok(())
    }

    fn verifies(&self) -> bool {
        true
    }

    fn event(&mut self, _host: &mut dyn Host, _event: &Event<'_>) -> Called<Status> {
        self.answer().map(Self::status)
    }

    fn start_restore_file(&mut self, host: &mut dyn Host, _command: &[u8]) -> Called<Status> {
        self.must_be(&[Stage::Outside]);
        let answer = self.answer()?;
        if answer == 7 {
            host.message(MessageType::Fatal, b"fatal\n");
        }
        let status = Self::status(answer);
        if status.is_ok() {
            self.go(Stage::Started);
        }
        Ok(status)
    }

    fn end_restore_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        self.must_be(&[Stage::Started, Stage::Created, Stage::Closed]);
        self.answer()?;
        self.go(Stage::Outside);
        Ok(Status::Ok)
    }

    fn create_file(&mut self, _host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.must_be(&[Stage::Started]);
        assert!(!file.name.contains(&0), "a name with a NUL");
        let answer = self.answer()?;
        self.go(Stage::Created);
        Ok((Self::status(answer), CreateStatus::from_code(i32::from(answer & 7))))
    }

    fn set_attributes(&mut self, _host: &mut dyn Host, _file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        self.must_be(&[Stage::Created, Stage::Open]);
        let answer = self.answer()?;
        Ok((Status::Ok, CreateStatus::from_code(i32::from(answer & 7))))
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        self.must_be(if matches!(io, Io::Open { .. }) { &[Stage::Started, Stage::Created] } else { &[Stage::Open] });
        let answer = self.answer()?;
        let fails = answer & 0xe0 == 0xe0;
        match io {
            Io::Open { .. } if fails => {}
            Io::Open { .. } => self.go(Stage::Open),
            Io::Write { data } => {
                let length = i32::try_from(data.len()).expect("a frame");
                return Ok(if fails { IoDone::bytes(length / 2 - 1) } else { IoDone::bytes(length) });
            }
            Io::Seek { offset, whence } => assert!(offset >= 0 && whence == 0),
            Io::Close => {
                self.go(Stage::Closed);
                let event =
                    FileEvent { file_index: 1, kind: b'a', severity: 1, source: vec![answer], description: Vec::new() };
                host.add_file_event(event);
            }
            Io::Read { .. } => panic!("nothing is read"),
        }
        Ok(if fails { IoDone::error(5) } else { IoDone::bytes(0) })
    }

    fn write_xacl(&mut self, _host: &mut dyn Host, _kind: MetadataKind, _content: &[u8]) -> Called<Status> {
        self.must_be(&[Stage::Created, Stage::Open, Stage::Closed]);
        self.answer().map(Self::status)
    }

    fn restore_metadata(&mut self, _host: &mut dyn Host, _packet: &MetadataPacket) -> Called<Status> {
        self.must_be(&[Stage::Created, Stage::Open, Stage::Closed]);
        self.answer().map(Self::status)
    }

    fn start_verify_file(&mut self, _host: &mut dyn Host, _file: &RestoreFile) -> Called<Status> {
        // A plugin without endVerifyFile is not told of a file's end.
        self.must_be(&[Stage::Outside, Stage::Started, Stage::Closed]);
        let status = Self::status(self.answer()?);
        self.go(if status.is_ok() { Stage::Started } else { Stage::Outside });
        Ok(status)
    }

    fn end_verify_file(&mut self, _host: &mut dyn Host) -> Called<Status> {
        self.must_be(&[Stage::Closed]);
        let status = Self::status(self.answer()?);
        self.go(Stage::Outside);
        Ok(status)
    }
}

#[derive(Debug)]
struct Facts;

impl JobFacts for Facts {
    fn value(&self, variable: Variable) -> Option<Value> {
        (variable == Variable::JobId).then_some(Value::Number(1))
    }

    fn is_canceled(&self) -> bool {
        false
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &[]
    }

    fn debug(&self, _level: i32, _text: &[u8]) {}
}

struct Place;

impl Host for Place {
    fn facts(&self) -> &dyn JobFacts {
        &Facts
    }

    fn message(&mut self, _kind: MessageType, _text: &[u8]) {}
}

/// A job's plugins, in the state that a new job finds them in.
fn access(answers: [u8; 8]) -> PluginAccess {
    let info = PluginInfo { file: b"tp-fd.so".to_vec(), version: Vec::new() };
    let plugin: Arc<dyn Plugin> = Arc::new(Fuzzed { info, answers, stage: Arc::new(Mutex::new(Stage::Outside)) });
    let plugins = Arc::new(JobPlugins::begin(&[plugin], &mut Place));
    PluginAccess { plugins, facts: Arc::new(Facts) }
}

/// Streams that plugins have a part in: 26, 35 and 36, 1020, 1988, data, and what is around it.
const STREAMS: [u32; 16] = [26, 26, 1, 1, 37, 2, 2, 6, 4, 3, 35, 36, 1020, 1988, 1008, 22];

/// The frames of a session.
fn frames(mut data: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((&[stream, length], rest)) = data.split_first_chunk::<2>() {
        let (record, rest) = rest.split_at(usize::from(length).min(rest.len()));
        data = rest;
        let stream = STREAMS[usize::from(stream) % STREAMS.len()];
        frames.push(format!("rechdr 1 2 3 {stream} {}", record.len()).into_bytes());
        frames.push(record.to_vec());
    }
    frames
}

/// A folder for this process.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("ferrofd-fuzz-plugins-{}", std::process::id()));
        fs::create_dir_all(folder.join("place")).expect("a folder to restore to");
        folder
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((answers, records)) = data.split_first_chunk::<8>() else { return };
    let place = folder().join("place");
    let (progress, cancel) = (Progress::default(), CancelToken::new());
    let source = || Frames::new(frames(records));
    let plan = RestorePlan {
        output: OutputNames::below(place.to_string_lossy().into_owned().into_bytes()),
        prelinks: false,
        replace: Replace::Always,
        check_digests: true,
        digests: match answers[0] & 3 {
            0 => None,
            1 => Some(vec![DigestKind::Md5]),
            _ => Some(Vec::new()),
        },
        keys: None,
        processor: Processor::chosen(),
        writing_depth: None,
        plugins: Some(access(*answers)),
    };
    let mut state = RestoreState::new(&plan, LinkRule::from_now());
    let _outcome = run(&plan, &mut state, &progress, &Silent, &cancel, &mut source());
    let scanner = access(*answers);
    let checks = Checks { size: true, digest: Some(DigestKind::Md5), unsigned: false };
    let mut job = VerifyJob {
        progress: &progress,
        log: &Silent,
        cancel: &cancel,
        source: &mut source(),
        plugins: Some(&scanner),
    };
    let _outcome = verify_data(&mut job, checks, None, &mut Director);
    for entry in fs::read_dir(folder()).expect("the folder") {
        assert_eq!(entry.expect("an entry").file_name(), "place");
    }
});
