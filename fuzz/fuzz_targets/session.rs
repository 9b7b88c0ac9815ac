#![no_main]
//! A whole session of a Director: hello, login, and then commands in any order with the lists that
//! belong to them, and the dialogues with a Storage Daemon that they begin. The loop is the
//! daemon's without its sockets and without the work.
//!
//! Whatever is said, the session comes to an end: each frame is used once, what is kept of them is
//! never more than they were, states follow their rule, and the last word is one line.

#[path = "shared/expressions.rs"]
mod expressions;

use expressions::Compiler;
use fd_bsock::Signal;
use fd_bsock::cram;
use fd_bsock::hello::{Challenge, DIRECTOR_ACCEPTED, DirectorHello, FirstPacket};
use fd_fileset::{FileSet, ListFailure, Parser, Reaction};
use fd_records::AccurateEntry;
use fd_session::append::AppendClose;
use fd_session::authenticate::{Authentication, Challenges, Credentials};
use fd_session::clock::{ClockSync, parse_btime};
use fd_session::command::{self, Access, Command, Level, PluginCommand, ScriptCommand};
use fd_session::open::SessionOpen;
use fd_session::read::ReadClose;
use fd_session::storage::{SignalReaction, StorageHello, react};
use fd_session::{Action, Input, JobStatus, Machine, Need};
use libfuzzer_sys::fuzz_target;

const KEY: &[u8] = b"5ebe2294ecd0e0f08eab7690d2a6ee69";
const NOW: i64 = 1_795_229_815;

/// What came.
enum Said<'d> {
    Frame(&'d [u8]),
    Empty,
    Signal(Signal),
    Gone,
    Tls,
    /// Whatever is right here.
    Right,
}

/// Both peers: a line is a frame, unless its first byte says otherwise.
struct Peers<'d> {
    lines: std::slice::SplitInclusive<'d, u8, fn(&u8) -> bool>,
    taken: usize,
}

impl<'d> Peers<'d> {
    fn next(&mut self) -> Option<Said<'d>> {
        let line = self.lines.next()?;
        self.taken += line.len();
        Some(match line.split_first() {
            None | Some((b'0', [b'\n'])) => Said::Empty,
            Some((b'!', rest)) => Said::Signal(Signal::from_code(-i32::from(rest.first().copied().unwrap_or(1)))),
            Some((b'?', _)) => Said::Gone,
            Some((b'+', _)) => Said::Tls,
            Some((b'=', _)) => Said::Right,
            // Without the newline that ends it here.
            Some((b'\\', rest)) => Said::Frame(rest.strip_suffix(b"\n").unwrap_or(rest)),
            Some(_) => Said::Frame(line),
        })
    }

    /// Leads a machine as far as the peers go.
    fn lead<M: Machine>(&mut self, (mut machine, mut actions): (M, Vec<Action<M::Done, M::Error>>)) -> Option<M::Done> {
        let mut sent = Vec::new();
        loop {
            let mut tls = false;
            for action in actions {
                match action {
                    Action::Done(done) => return Some(done),
                    Action::Failed(_) => return None,
                    Action::Send(frame) => sent = frame,
                    Action::StartTls(..) => tls = true,
                    Action::Receive(_) => tls = false,
                    Action::Signal(_) | Action::DropTls | Action::Pause(_) => {}
                }
            }
            let answer = match Challenge::parse(&sent) {
                Some(challenge) => cram::answer_packet(&cram::respond(KEY, &challenge.text, challenge.compatible)),
                None => b"1000 OK auth\n".to_vec(),
            };
            actions = match self.next()? {
                Said::Frame(frame) => machine.handle(Input::Frame(frame)),
                Said::Empty => machine.handle(Input::Empty),
                Said::Signal(signal) => machine.handle(Input::Signal(signal)),
                Said::Gone => machine.handle(Input::Gone("Connection reset by peer")),
                Said::Tls => machine.handle(Input::TlsReady),
                Said::Right if tls => machine.handle(Input::TlsReady),
                Said::Right => machine.handle(Input::Frame(&answer)),
            };
            assert!(!actions.is_empty(), "a machine never falls silent");
        }
    }

    /// The frames of a list, up to a signal.
    fn list(&mut self, mut each: impl FnMut(&[u8])) -> Option<()> {
        loop {
            match self.next()? {
                Said::Frame(frame) => each(frame),
                Said::Empty => each(&[]),
                Said::Signal(_) | Said::Tls | Said::Right => return Some(()),
                Said::Gone => return None,
            }
        }
    }
}

/// The Director is asked for its clock.
fn set_clock(peers: &mut Peers<'_>) -> Option<()> {
    let mut sync = ClockSync::default();
    while sync.wants_more() {
        let Some(Said::Frame(answer)) = peers.next() else { return None };
        let theirs = parse_btime(answer)?;
        sync.answer(NOW * 1_000_000, NOW * 1_000_000 + 5, theirs);
    }
    let _ = sync.adjustment();
    Some(())
}

/// The two messages of a restore object.
fn take_object(peers: &mut Peers<'_>) -> Option<()> {
    let is_data = |said| matches!(said, Said::Frame(_) | Said::Empty).then_some(());
    (0..2).try_for_each(|_| peers.next().and_then(is_data))
}

/// What the session has come to.
struct Session {
    job: Option<(u32, Vec<u8>)>,
    status: JobStatus,
    fileset: Option<FileSet>,
    storage: bool,
    accurate: usize,
    scripts: usize,
    errors: u32,
}

impl Session {
    fn change(&mut self, new: JobStatus) {
        let before = self.status;
        self.status = before.changed_to(new);
        assert!(!before.is_incomplete() || self.status.is_incomplete());
        assert!(!before.is_canceled() || self.status.is_canceled() || self.status.is_incomplete());
    }

    fn fail(&mut self) {
        self.errors += 1;
        self.change(JobStatus::Fatal);
    }

    /// One command; whether the loop goes on.
    fn obey(&mut self, command: Command, peers: &mut Peers<'_>) -> Option<()> {
        match command {
            Command::Job(new) => self.begin(new.job_id, new.name)?,
            Command::Level(_, Level::Since(_)) => set_clock(peers)?,
            Command::FileSet(_) => self.fileset = Some(self.read_fileset(peers)?),
            Command::Accurate(_) => peers.list(|frame| {
                self.accurate += usize::from(AccurateEntry::parse(frame).is_some());
            })?,
            Command::Plugin(PluginCommand::Object(_)) => take_object(peers)?,
            Command::Plugin(PluginCommand::Components | PluginCommand::FileList(_)) => peers.list(|_| {})?,
            Command::Script(ScriptCommand::Run(_) | ScriptCommand::AfterJob(_)) => self.scripts += 1,
            Command::Cancel(_) => self.change(JobStatus::Canceled),
            Command::Stop(_) => self.change(JobStatus::Incomplete),
            Command::Storage(_) => self.call_storage(peers)?,
            Command::Backup(_) => self.back_up(peers)?,
            Command::Restore(_) if self.storage => self.restore(peers)?,
            Command::Restore(_) | Command::Verify(_) => {
                self.fail();
                return None;
            }
            Command::EndRestore => return None,
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, job_id: u32, job: Vec<u8>) -> Option<()> {
        if self.job.is_some() {
            self.fail();
            return None;
        }
        assert!(job.len() <= 127);
        self.job = Some((job_id, job));
        Some(())
    }

    fn restore(&mut self, peers: &mut Peers<'_>) -> Option<()> {
        let ticket = peers.lead(SessionOpen::read(1, 1_795_226_230))?;
        self.change(JobStatus::Running);
        peers.list(|_| {})?;
        peers.lead(ReadClose::start(ticket));
        self.change(JobStatus::Terminated);
        Some(())
    }

    fn call_storage(&mut self, peers: &mut Peers<'_>) -> Option<()> {
        let credentials = Credentials {
            own_name: "w-fd".to_owned(),
            key: KEY.to_vec(),
            need: Need::from_wire(100),
            tls_authenticate: false,
            require_tls: false,
            peer_may_have_our_name: false,
            challenges: Challenges::default(),
            random: 1,
            time: NOW,
        };
        self.change(JobStatus::Blocked);
        self.storage = peers.lead(StorageHello::start(b"b.2026-11-21_02.56.53_03", credentials, false)).is_some();
        if !self.storage {
            self.fail();
        }
        self.storage.then_some(())
    }

    fn read_fileset(&mut self, peers: &mut Peers<'_>) -> Option<FileSet> {
        if self.fileset.is_some() {
            return None;
        }
        let mut parser = Parser::new(&Compiler).without_plugins();
        let mut bad = 0;
        peers.list(|line| {
            let done = match parser.line(line) {
                Ok(Reaction::List(_)) => parser.list_failed(ListFailure::CannotStart { error: "no".to_owned() }),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                assert!(!error.text().is_empty());
                bad += 1;
            }
        })?;
        self.errors += bad;
        let fileset = parser.finish().ok()?;
        // Whatever was compiled can be asked, in a bounded time.
        for include in fileset.includes() {
            for path in [b"/".as_slice(), b"/home/user/.cache/x.tmp", &[b'a'; 300], b"/\xc3\xb6\xff/aabb"] {
                let _verdict = fileset.judge(include, path, path.len() == 1);
            }
        }
        Some(fileset)
    }

    fn back_up(&mut self, peers: &mut Peers<'_>) -> Option<()> {
        if !self.storage {
            self.fail();
            return None;
        }
        let ticket = peers.lead(SessionOpen::append())?;
        self.change(JobStatus::Running);
        // What a Storage Daemon says while it takes data.
        while let Some(Said::Signal(signal)) = peers.next() {
            if react(signal) == SignalReaction::Return {
                break;
            }
        }
        let verdict = peers.lead(AppendClose::start(ticket));
        self.change(verdict.unwrap_or(JobStatus::Fatal));
        None
    }

    /// One frame of the Director; whether the loop goes on.
    fn hear(&mut self, frame: &[u8], access: Access, peers: &mut Peers<'_>) -> Option<()> {
        match command::read(frame, access, |_| false) {
            Ok(command) => self.obey(command, peers),
            Err(refusal) => {
                assert!(refusal.fatal.is_some() || refusal.reply.is_some());
                assert!(refusal.named.is_none_or(|(_, name)| name.len() <= 127));
                if refusal.fatal.is_some() {
                    self.fail();
                }
                refusal.goes_on.then_some(())
            }
        }
    }
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

/// From the first packet to an accepted Director.
fn log_in(peers: &mut Peers<'_>, tlspsk: i32) -> Option<()> {
    let Some(Said::Frame(first)) = peers.next() else { return None };
    if FirstPacket::of(first) != FirstPacket::Director {
        return None;
    }
    let hello = DirectorHello::parse(first)?;
    assert!(hello.name.len() <= 127);
    let credentials = Credentials {
        own_name: "w-fd".to_owned(),
        key: KEY.to_vec(),
        need: Need::from_wire(tlspsk),
        tls_authenticate: false,
        require_tls: false,
        peer_may_have_our_name: false,
        challenges: Challenges::default(),
        random: 1,
        time: NOW,
    };
    peers.lead(Authentication::server(credentials, Need::from_wire(hello.tlspsk)))?;
    assert!(DIRECTOR_ACCEPTED.ends_with(b"\n"));
    Some(())
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, said)) = data.split_first() else { return };
    let lines = said.split_inclusive(is_newline as fn(&u8) -> bool);
    let mut peers = Peers { lines, taken: 0 };
    if log_in(&mut peers, if choice & 1 == 0 { 100 } else { 0 }).is_none() {
        return;
    }
    let access = Access { monitor: choice & 6 == 2, remote: choice & 6 == 4 };
    let mut session = Session {
        job: None,
        status: JobStatus::Created,
        fileset: None,
        storage: false,
        accurate: 0,
        scripts: 0,
        errors: 0,
    };
    // Any signal between commands ends the session.
    while let Some(Said::Frame(frame)) = peers.next() {
        if session.hear(frame, access, &mut peers).is_none() {
            break;
        }
    }
    assert!(peers.taken <= said.len());
    assert!(session.accurate + session.scripts <= peers.taken);
    let names: usize = session
        .fileset
        .iter()
        .flat_map(|set| set.includes())
        .flat_map(|include| include.names())
        .map(|name| name.len())
        .sum();
    assert!(names <= peers.taken);
    if access.monitor || access.remote {
        assert!(session.job.is_none() && session.fileset.is_none() && !session.storage);
    }
});
