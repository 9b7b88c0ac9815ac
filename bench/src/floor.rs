//! The floor: a File Daemon that reads and writes no file. In a backup it sends a stream that is
//! ready in memory, in a restore it receives the records and drops them. So what its job takes is
//! about what Director and Storage Daemon need for themselves; a login that is quicker than its own
//! can still save something.
//!
//! The stream is made from the volume of a real job: a record there was one packet on the wire. It
//! logs in and encrypts as the daemons do by default; packets are not compressed (what that would
//! save the line costs the peer more).

mod line;

use std::net::TcpListener;
use std::thread;

use bed::peer::{EOD, Frame, TERMINATE, key_of_password, packet};
use bed::{FD_PASSWORD, Record, Result};

use line::{Line, problem};

/// What a job sends to the Storage Daemon between `append data` and the last EOD, and the counts
/// that it reports.
#[derive(Debug, Default)]
pub struct Stream {
    wire: Vec<u8>,
    files: u64,
    read_bytes: u64,
    bytes: u64,
}

/// What the floor does for a job.
#[derive(Debug, Clone, Copy)]
pub enum Role<'a> {
    /// Sends this.
    Send(&'a Stream),
    /// Receives and drops everything, and reports so many files.
    Drop(u64),
}

/// A connection's name for messages.
const DIRECTOR: &str = "the Director";
const STORAGE: &str = "the Storage Daemon";
/// What the daemons say of their need for TLS: PSK is possible.
const PSK_POSSIBLE: &str = "tlspsk=100";

impl Stream {
    /// Puts a job's stream together from its records.
    pub fn of(records: impl Iterator<Item = Result<Record>>, files: u64, read_bytes: u64, bytes: u64) -> Result<Self> {
        let mut wire = Vec::new();
        let mut open = None;
        for record in records {
            let record = record?;
            let place = (record.file_index, record.stream);
            if open != Some(place) {
                if open.is_some() {
                    wire.extend(EOD.to_be_bytes());
                }
                wire.extend(packet(format!("{} {} 0", place.0, place.1).as_bytes()));
                open = Some(place);
            }
            wire.extend(packet(&record.data));
        }
        if open.is_some() {
            wire.extend(EOD.to_be_bytes());
        }
        Ok(Self { wire, files, read_bytes, bytes })
    }

    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.wire.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.wire.is_empty()
    }
}

/// Plays a File Daemon for one job that runs meanwhile.
pub fn during<T>(port: u16, role: Role<'_>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(|error| problem(DIRECTOR, &error.to_string()))?;
    thread::scope(|scope| {
        let served = scope.spawn(move || serve(&listener, role));
        let result = work();
        let served = served.join().map_err(|_| problem(DIRECTOR, "the thread that served it ended"))?;
        result.and_then(|result| served.map(|()| result))
    })
}

/// Takes the Director's call and logs in.
fn greet(listener: &TcpListener) -> Result<Line> {
    let (socket, _) = listener.accept().map_err(|error| problem(DIRECTOR, &error.to_string()))?;
    let key = key_of_password(FD_PASSWORD);
    let mut director = Line::over(DIRECTOR, socket)?;
    director.hear("Hello Director ")?;
    director.say(&format!("starttls {PSK_POSSIBLE}\n"))?;
    let mut director = director.encrypted(&key, line::Side::Server)?;
    director.challenge(&key)?;
    director.answer(&key)?;
    director.say("2000 OK Hello 15\n")?;
    Ok(director)
}

fn serve(listener: &TcpListener, role: Role<'_>) -> Result<()> {
    let mut director = greet(listener)?;
    let mut job = Prepared::default();
    loop {
        let command = match director.receive()? {
            Frame::Data(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Frame::Signal(_) => continue,
            Frame::Closed => return Err(problem(DIRECTOR, "it left before the job was done")),
        };
        match command.split([' ', '=']).next().unwrap_or_default() {
            "backup" => {
                let Role::Send(stream) = role else { return Err(problem(DIRECTOR, "it wants a backup")) };
                director.say("2000 OK backup\n")?;
                send(job.storage()?, stream)?;
                let Stream { files, read_bytes, bytes, .. } = *stream;
                return end(&mut director, files, read_bytes, bytes);
            }
            "restore" => {
                director.say("2000 OK restore\n")?;
                drop_records(job.storage()?, &job.session)?;
                director.say("2000 OK storage end\n")?;
            }
            "endrestore" => {
                let Role::Drop(files) = role else { return Err(problem(DIRECTOR, "it wants a restore")) };
                return end(&mut director, files, 0, 0);
            }
            name => job.prepare(name, &command, &mut director)?,
        }
    }
}

/// What commands before the job's own have said.
#[derive(Default)]
struct Prepared {
    job: String,
    session_key: String,
    session: String,
    storage: Option<Line>,
}

impl Prepared {
    fn prepare(&mut self, name: &str, command: &str, director: &mut Line) -> Result<()> {
        match name {
            "JobId" => {
                self.job = value(command, "Job=");
                self.session_key = value(command, "Authorization=");
                self.session = format!("{} {}", value(command, "SDid="), value(command, "SDtime="));
                director.say("2000 OK Job 15.0.3 (25Mar25) x86_64-pc-linux-gnu,floor,1;")
            }
            "level" => director.say("2000 OK level\n"),
            "fileset" => {
                while !matches!(director.receive()?, Frame::Signal(EOD) | Frame::Closed) {}
                director.say("2000 OK include\n")
            }
            "storage" => {
                let key = Some(value(command, "Authorization=")).filter(|key| !key.is_empty());
                let line = open(&value(command, "port="), &self.job, key.as_ref().unwrap_or(&self.session_key))?;
                self.storage = Some(line);
                director.say("2000 OK storage\n")
            }
            "PluginFeatures\n" => director.signal(EOD),
            other => Err(problem(DIRECTOR, &format!("unexpected command {other:?}: {command:?}"))),
        }
    }

    fn storage(&mut self) -> Result<Line> {
        self.storage.take().ok_or_else(|| problem(DIRECTOR, "a job before its storage"))
    }
}

/// The job's last line.
fn end(director: &mut Line, files: u64, read_bytes: u64, bytes: u64) -> Result<()> {
    director.say(&format!(
        "2800 End Job TermCode=84 JobFiles={files} ReadBytes={read_bytes} JobBytes={bytes} Errors=0 VSS=0 Encrypt=0 \
         CommBytes=0 CompressCommBytes=0\n"
    ))?;
    director.signal(TERMINATE)
}

/// The word behind a name in a command.
fn value(command: &str, name: &str) -> String {
    let word = command.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
    word.unwrap_or_default().to_owned()
}

/// Connects and logs in.
fn open(port: &str, job: &str, key: &str) -> Result<Line> {
    let port = port.parse().map_err(|_| problem(DIRECTOR, &format!("not a port: {port:?}")))?;
    let mut storage = Line::connect(STORAGE, port)?;
    storage.say(&format!("Hello Bacula SD: Start Job {job} 15 {PSK_POSSIBLE}\n"))?;
    storage.receive()?; // Its capabilities, compressed.
    storage.say("fdcaps: dedup=0 rehydration=0 proxy=0\n")?;
    storage.hear("starttls ")?;
    let mut storage = storage.encrypted(key, line::Side::Client)?;
    storage.answer(key)?;
    storage.challenge(key)?;
    storage.hear("3000 OK Hello ")?;
    Ok(storage)
}

/// The whole of `append`.
fn send(mut storage: Line, stream: &Stream) -> Result<()> {
    storage.say("append open session\n")?;
    let opened = storage.hear("3000 OK open ticket = ")?;
    let ticket = opened.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    storage.say(&format!("append data {ticket}\n"))?;
    storage.hear("3000 OK data\n")?;
    storage.send_bytes(&stream.wire)?;
    storage.signal(EOD)?;
    storage.hear("3000 OK append data\n")?;
    storage.say(&format!("append end session {ticket}\n"))?;
    storage.hear("3000 OK end\n")?;
    storage.say(&format!("append close session {ticket}\n"))?;
    storage.hear("3000 OK close Status = 84")?;
    storage.signal(TERMINATE)
}

/// The whole of `read`: each record is received, and nothing is done with it.
fn drop_records(mut storage: Line, session: &str) -> Result<()> {
    storage.say(&format!("read open session = DummyVolume {session} 0 0 0 0\n"))?;
    let opened = storage.hear("3000 OK open ticket = ")?;
    let ticket = opened.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    storage.say(&format!("read data {ticket}\n"))?;
    storage.hear("3000 OK data\n")?;
    loop {
        match storage.receive()? {
            Frame::Signal(EOD) => break,
            Frame::Data(_) | Frame::Signal(_) => {}
            Frame::Closed => return Err(problem(STORAGE, "it left in the middle of the records")),
        }
    }
    storage.say(&format!("read close session {ticket}\n"))?;
    storage.hear("3000 OK close Status = ")?;
    storage.signal(TERMINATE)
}
