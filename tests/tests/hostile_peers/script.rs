//! The two sides of a whole backup as scripts that can be broken off at every point.

use bed::peer::{EOD, Frame, HEARTBEAT, Peer, SD_KEY, answer, hello, key_of_password, packet};
use bed::{BedError, DIRECTOR, FD_PASSWORD, Result};

/// The answer that makes the Director order the backup.
const STORAGE_IS_OK: &str = "2000 OK storage\n";

/// One step of a scripted peer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Send this packet.
    Say(String),
    /// Send this signal.
    Signal(i32),
    /// The next packet begins with this; it may be a challenge for [`Step::Answer`].
    Hear(&'static str),
    /// Answer the challenge heard last.
    Answer,
    /// Take file records up to the EOD in place of a header.
    TakeRecords,
}

fn say(text: &str) -> Step {
    Step::Say(text.to_owned())
}

/// Steps of a script, together with the key of its login.
pub(crate) struct Script {
    pub(crate) key: String,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// Plays the first `count` steps and, if the next one is a packet, `half` of it; then goes
    /// away.
    pub(crate) fn play(&self, mut peer: Peer, count: usize, half: bool) -> Result<()> {
        self.play_with(&mut peer, count)?;
        if let (true, Some(Step::Say(text))) = (half, self.steps.get(count)) {
            let packet = packet(text.as_bytes());
            peer.send_bytes(packet.get(..packet.len() / 2).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Plays the first `count` steps.
    pub(crate) fn play_with(&self, peer: &mut Peer, count: usize) -> Result<()> {
        let mut heard = String::new();
        for step in self.steps.iter().take(count) {
            match step {
                Step::Say(text) => peer.send(text.as_bytes())?,
                Step::Signal(signal) => peer.signal(*signal)?,
                Step::Hear(wanted) => heard = hear(peer, wanted)?,
                Step::Answer => peer.send(&answer(&self.key, &heard))?,
                Step::TakeRecords => take_records(peer)?,
            }
        }
        Ok(())
    }

    /// Every place at which the peer can go away: after each step, and within each packet.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (usize, bool)> {
        (0..=self.steps.len()).flat_map(|count| {
            let within = matches!(self.steps.get(count), Some(Step::Say(_)));
            std::iter::once((count, false)).chain(within.then_some((count, true)))
        })
    }
}

/// The next packet that answers: job messages and heartbeats come at any time and are passed over.
fn hear(peer: &mut Peer, wanted: &str) -> Result<String> {
    loop {
        match peer.receive()? {
            Frame::Signal(HEARTBEAT) => {}
            Frame::Data(bytes) if bytes.starts_with(b"Jmsg ") && !wanted.starts_with("Jmsg") => {}
            Frame::Data(bytes) if bytes.starts_with(wanted.as_bytes()) => {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            other => {
                let problem = format!("expected {wanted:?}, got {other:?}");
                return Err(BedError::Peer { who: "FD".to_owned(), problem });
            }
        }
    }
}

fn take_records(peer: &mut Peer) -> Result<()> {
    let mut ended = false;
    loop {
        match peer.receive()? {
            Frame::Signal(EOD) if ended => return Ok(()),
            Frame::Signal(EOD) => ended = true,
            Frame::Data(_) => ended = false,
            other => {
                return Err(BedError::Peer {
                    who: "FD".to_owned(),
                    problem: format!("expected records, got {other:?}"),
                });
            }
        }
    }
}

/// A whole backup from the Director's side.
pub(crate) fn director_script(job: usize, storage_port: u16, source: &str) -> Script {
    let challenge = format!("auth cram-md5 <7654321.1234567@{DIRECTOR}> ssl=0\n");
    let name = format!("JobId={job} Job=script.2026-01-01_00.00.00_{job:02} SDid=1 SDtime=1 Authorization={SD_KEY}\n");
    let steps = vec![
        say(&hello(DIRECTOR)),
        Step::Hear("auth cram-md5 <"),
        Step::Answer,
        Step::Hear("1000 OK auth\n"),
        say(&challenge),
        Step::Hear(""),
        say("1000 OK auth\n"),
        Step::Hear("2000 OK Hello 15\n"),
        say(&name),
        Step::Hear("2000 OK Job "),
        say("level = full  mtime_only=0 \n"),
        Step::Hear("2000 OK level\n"),
        say("fileset vss=1\n"),
        say("I\n"),
        say("O M\n"),
        say("N\n"),
        say(&format!("F {source}")),
        say("N\n"),
        say("N\n"),
        Step::Signal(EOD),
        Step::Hear("2000 OK include\n"),
        say(&format!("storage address=127.0.0.1 port={storage_port} ssl=0\n")),
        Step::Hear(STORAGE_IS_OK),
        say("backup FileIndex=0\n"),
        Step::Hear("2000 OK backup\n"),
        Step::Hear("2800 End Job TermCode=84 "),
    ];
    Script { key: key_of_password(FD_PASSWORD), steps }
}

/// The same backup from the Storage Daemon's side.
pub(crate) fn storage_script() -> Script {
    let steps = vec![
        Step::Hear("Hello Bacula SD: Start Job script."),
        say("sdcaps: dedup=0 hash=1 dedup_block=65536 min_dedup_block=1024 max_dedup_block=66556\n"),
        Step::Hear("fdcaps: dedup=0 rehydration=0 proxy=0\n"),
        say("auth cram-md5 <1122334.1234567@script-sd> ssl=0\n"),
        Step::Hear(""),
        say("1000 OK auth\n"),
        Step::Hear("auth cram-md5 <"),
        Step::Answer,
        Step::Hear("1000 OK auth\n"),
        say("3000 OK Hello 30008\n"),
        Step::Hear("append open session\n"),
        say("3000 OK open ticket = 1\n"),
        Step::Hear("append data 1\n"),
        say("3000 OK data\n"),
        Step::TakeRecords,
        say("3000 OK append data\n"),
        Step::Hear("append end session 1\n"),
        say("3000 OK end\n"),
        Step::Hear("append close session 1\n"),
        say("3000 OK close Status = 84\n"),
        Step::Signal(EOD),
    ];
    Script { key: SD_KEY.to_owned(), steps }
}

/// Plays the Director up to the storage command, then orders the backup if the daemon got that far;
/// gives everything that it said from there on.
pub(crate) fn whole_job(peer: &mut Peer, script: &Script) -> Result<Vec<String>> {
    let mut heard = String::new();
    for step in &script.steps {
        match step {
            Step::Say(text) if text.starts_with("backup ") => break,
            Step::Say(text) => peer.send(text.as_bytes())?,
            Step::Signal(signal) => peer.signal(*signal)?,
            Step::Hear(STORAGE_IS_OK) | Step::TakeRecords => {}
            Step::Hear(wanted) => heard = hear(peer, wanted)?,
            Step::Answer => peer.send(&answer(&script.key, &heard))?,
        }
    }
    let mut said = Vec::new();
    loop {
        match peer.receive()? {
            Frame::Closed => return Ok(said),
            Frame::Data(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if text == STORAGE_IS_OK {
                    peer.send(b"backup FileIndex=0\n")?;
                }
                said.push(text);
            }
            signal @ Frame::Signal(_) => said.push(format!("{signal:?}")),
        }
    }
}
