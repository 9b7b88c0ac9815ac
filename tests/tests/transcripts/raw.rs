//! What a tool may send a File Daemon and no current Director does: bad syntax, old forms, wrong
//! order, and the Directors that may do little.

use bed::peer::{EOD, Frame, TERMINATE, logged_in};
use bed::{DIRECTOR, FD_PASSWORD, Result};

use crate::normal;

const MONITOR: &str = "watcher-dir";
const REMOTE: &str = "console-dir";
const CONSOLE: &[u8] = b"JobId=0 Job=-Console-.2026-11-21_02.19.55_02 SDid=0 SDtime=0 Authorization=dummy\n";
const JOB: &[u8] = b"JobId=7 Job=b.2026-11-21_02.19.56_04 SDid=1 SDtime=2 Authorization=dummy\n";

/// One conversation: the caller, what it sends, and how many answers it waits for after each.
#[derive(Debug)]
pub(crate) struct Talk {
    /// For messages.
    pub(crate) name: &'static str,
    director: &'static str,
    says: Vec<Say>,
}

#[derive(Debug)]
enum Say {
    Frame(&'static [u8]),
    Signal(i32),
    /// Waits for so many frames or signals.
    Hear(usize),
    /// Waits for a signal.
    HearAll,
}

/// Two more Directors, as lines of the `FileDaemon` resource that they follow.
pub(crate) fn more_directors() -> Vec<String> {
    let director = |name: &str, only: &str| {
        [
            "TLS PSK Enable = no",
            "}",
            "Director {",
            &format!("Name = {name}"),
            &format!("Password = \"{FD_PASSWORD}\""),
            only,
        ]
        .map(str::to_owned)
    };
    [director(MONITOR, "Monitor = yes"), director(REMOTE, "Remote = yes")].concat()
}

impl Talk {
    /// Everything that the File Daemon says in it, as lines.
    pub(crate) fn with(&self, client: &str, port: u16) -> Result<Vec<String>> {
        let mut peer = logged_in(port, self.director)?;
        let mut heard = Vec::new();
        for say in &self.says {
            match say {
                Say::Frame(text) => peer.send(&named(text, client))?,
                Say::Signal(signal) => peer.signal(*signal)?,
                Say::Hear(count) => {
                    for _frame in 0..*count {
                        heard.push(peer.receive()?);
                    }
                }
                Say::HearAll => loop {
                    heard.push(peer.receive()?);
                    if !matches!(heard.last(), Some(Frame::Data(_))) {
                        break;
                    }
                },
            }
        }
        if heard.last() != Some(&Frame::Closed) {
            // An open end, and no reset: what comes last must not be lost.
            peer.finish()?;
            heard.extend(peer.rest()?);
        }
        Ok(heard.iter().map(|frame| normal::line(frame, client)).collect())
    }
}

/// A text with the client's name for each `CLIENT`.
fn named(text: &[u8], client: &str) -> Vec<u8> {
    let mut named = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(6).position(|word| word == b"CLIENT") {
        named.extend_from_slice(&rest[..at]);
        named.extend_from_slice(client.as_bytes());
        rest = &rest[at + 6..];
    }
    named.extend_from_slice(rest);
    named
}

/// On a console's connection: the answer to `JobId=`, then one frame and everything that follows.
fn console(name: &'static str, text: &'static [u8]) -> Talk {
    Talk { name, director: DIRECTOR, says: vec![Say::Frame(CONSOLE), Say::Hear(1), Say::Frame(text)] }
}

fn more(mut talk: Talk, says: impl IntoIterator<Item = Say>) -> Talk {
    talk.says.extend(says);
    talk
}

/// On a job's connection.
fn job(name: &'static str, text: &'static [u8]) -> Talk {
    Talk { name, director: DIRECTOR, says: vec![Say::Frame(JOB), Say::Hear(1), Say::Frame(text)] }
}

/// The talks.
pub(crate) fn talks() -> Vec<Talk> {
    let caps = || [Say::HearAll, Say::Frame(b"caps\n"), Say::HearAll];
    let as_director = |name, director, says| Talk { name, director, says };
    let mut talks = vec![
        console("caps", b"caps\n"),
        console("sm_dump", b"sm_dump\n"),
        console("no such command", b"bootstrap\n"),
        console("exit", b"exit\n"),
        as_director("before any job", DIRECTOR, vec![Say::Frame(b"jobid=1\n")]),
        console("short status", b".status\n"),
        console("resources", b".status resources api=2 api_opts=j"),
        console("resources, other separators", b".status resources api=2 api_opts=s59e58l124S36"),
        console("header, quoted", b".status header api=2 api_opts=q"),
        console("statistics as JSON", b".status statistics api=2 api_opts=j"),
        console("statistics of one collector", b".status statistics=x api=2 api_opts=s59"),
        console("terminated, old form", b".status terminated api=1 api_opts="),
        console("terminated, Unix times", b".status terminated api=2 api_opts=jt1"),
        console("setdebug, three words", b"setdebug=0 trace=0 hangup=-1\n"),
        console("setdebug, two words", b"setdebug=0 trace=0\n"),
        console("setdebug, unknown tag", b"setdebug=0 trace=0 hangup=0 blowup=0 options=zz tags=foo\n"),
        console("setdebug, bad", b"setdebug=x y\n"),
        console("statistics by name", b"statistics format=full bacula.client.x.memory.bufs \n"),
        console("statistics as text", b"statistics all format=simple\n"),
        console(
            "statistics of two names",
            b"statistics format=full bacula.client.CLIENT-fd.memory.heap no.such bacula.client.CLIENT-fd.memory.bufs\n",
        ),
        console(
            "statistics of a name as JSON",
            b"statistics format=json bacula.client.CLIENT-fd.memory.smbytes bacula.client.CLIENT-fd.memory.heap\n",
        ),
        console("statistics, bad", b"statistics foo\n"),
        more(console("cancel, unknown", b"cancel Job=nobody\n"), caps()),
        more(console("cancel, bad", b"cancel nobody\n"), caps()),
        more(console("stop, unknown", b"stop Job=nobody\n"), caps()),
        more(console("stop, bad", b"stop nobody\n"), caps()),
        more(console("query of an unknown plugin", b"query parameter=\"a\\\"b\" plugin=\"p\" value=\"v\"\n"), caps()),
        console("query without a plugin", b"query parameter=\"x\"\n"),
        more(
            console("testnetwork without storage", b"testnetwork bytes=100 rtt=1\n"),
            [Say::Frame(b"caps\n"), Say::HearAll],
        ),
        console("plugin options", b"pluginoptions=nosuch:a=b\n"),
        console("plugin options, bad", b"pluginoptions\n"),
        more(console("restore file list, bad", b"restorefilelist x\n"), [Say::Frame(b"caps\n"), Say::HearAll]),
        console("restore object, bad", b"restoreobject x\n"),
        console("no restore objects", b"restoreobject end\n"),
        console("plugin features", b"PluginFeatures\n"),
        console("snapshot retention", b"snapshot retention=5\n"),
        console("snapshot list", b"snapshot list\n"),
        console("snapshot prune", b"snapshot prune volume=/ type=btrfs"),
        console("snapshot, unknown", b"snapshot bogus\n"),
        console("estimate without a FileSet", b"estimate listing=0\n"),
        console("estimate, bad", b"estimate\n"),
        console("session", b"session x\n"),
        console("bandwidth of an unknown job", b"setbandwidth=1000 Job=nobody\n"),
        console("bandwidth, bad", b"setbandwidth=-5 Job=nobody\n"),
        console("storage, bad", b"storage foo\n"),
        console("level, unknown", b"level = bogus\n"),
        console("backup without storage", b"backup FileIndex=0\n"),
        console("a fileset nobody knows", b"fileset\n"),
        job("job: backup without storage", b"backup FileIndex=0\n"),
        job("job: restore without storage", b"restore files=7 replace=a prelinks=0 where=/tmp/r\n"),
        job("job: restore, bad", b"restore x\n"),
        job("job: level, unknown", b"level = bogus\n"),
        job("job: script, bad", b"Runxyz\n"),
        // The script has ended before its Director leaves.
        more(job("job: script fails", b"RunBeforeJob /bin/false\n"), [Say::Hear(3)]),
        as_director("job: a signal between commands", DIRECTOR, vec![Say::Frame(JOB), Say::Hear(1), Say::Signal(EOD)]),
        job("job: an empty frame", b""),
        as_director("job that does not scan", DIRECTOR, vec![Say::Frame(b"JobId=5 Job=x SDid=1\n")]),
        as_director(
            "monitor may not",
            MONITOR,
            vec![Say::Frame(CONSOLE), Say::HearAll, Say::Frame(b"cancel Job=x\n"), Say::HearAll],
        ),
        as_director(
            "monitor may",
            MONITOR,
            vec![Say::Frame(b"status"), Say::HearAll, Say::Frame(b"caps\n"), Say::HearAll],
        ),
        as_director(
            "remote may not",
            REMOTE,
            vec![Say::Frame(CONSOLE), Say::HearAll, Say::Frame(b"estimate\n"), Say::HearAll],
        ),
        as_director(
            "remote may",
            REMOTE,
            vec![Say::Frame(b"cancel Job=x\n"), Say::HearAll, Say::Frame(b".status header"), Say::HearAll],
        ),
        as_director("remote proxy to nowhere", REMOTE, vec![Say::Frame(b"proxy\n"), Say::Hear(3)]),
    ];
    talks.extend(verifies());
    talks.extend(before_restores());
    talks.push(more(console("component", b"component_info\n"), [Say::Frame(b"a"), Say::Frame(b"b"), Say::Signal(EOD)]));
    talks.push(more(console("a good end", b"caps\n"), [Say::HearAll, Say::Signal(TERMINATE)]));
    talks
}

/// `fileset` and its lines; what they name does not exist.
fn file_set() -> impl Iterator<Item = Say> {
    let lines: [&[u8]; 6] = [b"I\n", b"O MVpins5:\n", b"N\n", b"F /no/such/thing", b"N\n", b"N\n"];
    lines.into_iter().map(Say::Frame).chain([Say::Signal(EOD), Say::Hear(1)])
}

/// Verify jobs out of order.
fn verifies() -> Vec<Talk> {
    let after = |name, says: Vec<Say>, text: &'static [u8]| {
        let mut talk = more(job(name, b"fileset vss=1\n"), file_set());
        talk.says.extend(says);
        talk.says.push(Say::Frame(text));
        talk
    };
    vec![
        job("job: verify volume without storage", b"verify level=volume\n"),
        job("job: verify data without storage", b"verify level=data\n"),
        job("job: verify init of nothing", b"verify level=init\n"),
        job("job: verify catalog of nothing, odd case", b"verify level=CaTaLoG\n"),
        after("job: verify of a missing file", vec![], b"verify level=disk_to_catalog\n"),
        more(
            job("job: verify with snap", b"fileset vss=1 snap=1\n"),
            file_set().chain([Say::Frame(b"verify level=init\n")]),
        ),
        after(
            "job: verify with options for an unknown plugin",
            vec![Say::Frame(b"pluginoptions=nosuch:\x01a=b\n"), Say::Hear(2)],
            b"verify level=init\n",
        ),
        after(
            "job: accurate list and data without storage",
            vec![
                Say::Frame(b"accurate files=1\n"),
                Say::Frame(b"/x\0P4A A A A A A A A A A A A A A A\0\x000"),
                Say::Signal(EOD),
            ],
            b"verify level=data\n",
        ),
        after("job: accurate, bad", vec![], b"accurate x\n"),
        console("verify on a console's connection", b"verify level=init\n"),
    ]
}

/// What a Director sends before a restore, and orders out of place.
fn before_restores() -> Vec<Talk> {
    let frames = |name, first: &'static [u8], more_frames: &[&'static [u8]]| {
        more(job(name, first), more_frames.iter().map(|text| Say::Frame(text)))
    };
    vec![
        frames("job: end of no restore", b"endrestore", &[]),
        frames("job: regexwhere without expression", b"restore files=1 replace=a prelinks=0 regexwhere=\n", &[]),
        frames("job: regexwhere, bad", b"restore files=1 replace=a prelinks=0 regexwhere=!(!x!\n", &[]),
        frames("job: restore, old form", b"restore replace=x prelinks=1 where=", &[]),
        frames(
            "job: restore object",
            b"restoreobject JobId=4 3,3,1,28,0,1,nosuch:x\n",
            &[b"name", b"abc", b"restoreobject end\n"],
        ),
        frames(
            "job: restore object, old form, compressed badly",
            b"restoreobject JobId=4 3,9,1,28,1,1\n",
            &[b"name", b"abc", b"restoreobject end\n"],
        ),
        more(
            job("job: restore object that does not come", b"restoreobject JobId=4 3,3,1,28,0,1,x\n"),
            [Say::Signal(EOD)],
        ),
        more(
            job("job: restore file list", b"restorefilelist plugin=nosuch-fd.so\n"),
            [Say::Frame(b"/x\0P4A A A\0\x000"), Say::Signal(EOD), Say::Frame(b"PluginFeatures\n")],
        ),
    ]
}
