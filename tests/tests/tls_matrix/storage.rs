//! The File Daemon calls Storage Daemons: it is the client.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{BedOptions, JobResult, Process, Recorded, Relay, ReservedPort, Result, Root, STORAGE_PASSWORD, argv};

use crate::states::{End, Papers, SIDES, STATES, State, end_of};

/// A Storage Daemon of its own with one state, and a relay before it.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) name: String,
    lines: Vec<String>,
    port: ReservedPort,
    pub(crate) relay: Relay,
    process: Option<Process>,
}

impl Storage {
    /// Adds a `Storage` and a `Pool` resource to the Director's configuration.
    pub(crate) fn prepare(options: &mut BedOptions, name: &str, lines: Vec<String>) -> Result<Self> {
        let (port, relay) = (ReservedPort::new()?, Relay::new()?);
        relay.aim(port.number());
        let text = format!(
            "Storage {{\nName = {name}\nAddress = 127.0.0.1\nSDPort = {}\nPassword = \"{STORAGE_PASSWORD}\"\nDevice = {name}\n\
             Media Type = {name}\nMaximum Concurrent Jobs = 20\n}}\n\
             Pool {{\nName = {name}\nPool Type = Backup\nLabel Format = \"{name}-\"\n}}",
            relay.port()
        );
        options.director_resources.extend(text.lines().map(ToOwned::to_owned));
        Ok(Self { name: name.to_owned(), lines, port, relay, process: None })
    }

    /// Writes its configuration and starts it. One whose name says so gets a variable: it supports
    /// nothing newer than TLS 1.2.
    pub(crate) fn start(&mut self, folder: &Path, root: &Root, old: &(String, String)) -> Result<()> {
        let Self { name, port, .. } = self;
        let (work, archive) = (folder.join(format!("work/sd-{name}")), folder.join(format!("volumes/sd-{name}")));
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(&archive).unwrap();
        let config = folder.join(format!("etc/sd-{name}.conf"));
        let text = format!(
            "Storage {{\nName = sd-{name}\nSDPort = {}\nSDAddress = 127.0.0.1\nWorkingDirectory = \"{work}\"\n\
             PidDirectory = \"{work}\"\nMaximum Concurrent Jobs = 50\n{}\n}}\n\
             Director {{\nName = {}\nPassword = \"{STORAGE_PASSWORD}\"\n}}\n\
             Device {{\nName = {name}\nMedia Type = {name}\nArchive Device = \"{}\"\nLabel Media = yes\nRandom Access = yes\n\
             Automatic Mount = yes\nRemovable Media = no\nAlways Open = no\nMaximum Concurrent Jobs = 20\n}}\n\
             Messages {{\nName = Standard\nDirector = {} = all\n}}\n",
            port.number(),
            self.lines.join("\n"),
            bed::DIRECTOR,
            archive.display(),
            bed::DIRECTOR,
            work = work.display(),
        );
        fs::write(&config, text).unwrap();
        let program = root.argv("/usr/sbin/bacula-sd", ["-c".into(), config.into_os_string(), "-f".into()])?;
        let variable = name.ends_with("-1.2").then(|| format!("{}={}", old.0, old.1));
        let argv: Vec<_> = argv(["env".to_owned()].into_iter().chain(variable)).into_iter().chain(program).collect();
        let output: PathBuf = folder.join(format!("log/sd-{name}.out"));
        let mut process = Process::start(&format!("sd-{name}"), &argv, &output)?;
        let port = port.number();
        process.must_listen(port)?;
        self.process = Some(process);
        Ok(())
    }
}

/// The state's directives for the `Storage` resource of a Storage Daemon.
pub(crate) fn lines(state: State, papers: &Papers) -> Vec<String> {
    let mut lines = state.lines(papers, "sd");
    // Without this it would ask the File Daemon for a certificate, which that need not have.
    if lines.iter().any(|line| line == "TLS Enable = yes") {
        lines.push("TLS Verify Peer = no".to_owned());
    }
    lines
}

/// Storage Daemons beside those of the states, with their directives.
pub(crate) fn special(papers: &Papers) -> [(&'static str, Vec<String>); 5] {
    let with_papers_of = |identity: Vec<String>| {
        let first = ["TLS PSK Enable = no", "TLS Enable = yes", "TLS Require = yes", "TLS Verify Peer = no"];
        [first.map(ToOwned::to_owned).to_vec(), vec![papers.ours.trusted()], identity].concat()
    };
    let mut verifies = State::of("certreq").lines(papers, "sd");
    verifies.push("TLS Verify Peer = yes".to_owned());
    [
        ("elsewhere", with_papers_of(papers.ours.identity("elsewhere"))),
        ("stranger", with_papers_of(papers.other.identity("stranger"))),
        ("verifies", verifies),
        ("psk-1.2", lines(State::of("psk"), papers)),
        ("certreq-1.2", lines(State::of("certreq"), papers)),
    ]
}

/// One job.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) side: &'static str,
    pub(crate) storage: &'static str,
    pub(crate) client: &'static str,
    end: End,
    /// What the File Daemon says of it.
    says: &'static str,
}

/// A backup, in clear.
const DATA: &str = "append open session";

impl Row {
    pub(crate) fn command(&self) -> String {
        let Self { side, storage, client, .. } = self;
        format!("run job=backup-{side}-{client} storage={storage} pool={storage} yes")
    }

    /// Whether the job ended as expected, and nothing of it went over the lines in clear that must
    /// not.
    pub(crate) fn check(&self, job: &JobResult, lines: &[Recorded]) -> std::result::Result<(), String> {
        let cipher = lines.iter().find_map(Recorded::cipher_chosen_by_called);
        let of_key = matches!(cipher, Some(0x1301 | 0x1303 | 0x008d));
        let clear = lines.iter().any(|line| line.shows(DATA));
        let said = self.says.is_empty() || job.log.contains(self.says);
        let good = match self.end {
            End::Clear => clear && cipher.is_none(),
            End::Certificates => !clear && cipher.is_some(),
            End::Key => !clear && of_key,
            End::ClearAgain => false,
            End::Refused(text) => !clear && job.log.contains(text) && job.log.contains("got 2902 Bad storage"),
        };
        let newer = self.storage.ends_with("-1.2") && matches!(cipher, Some(0x1301..=0x1305));
        let good = good && !newer;
        let status = if matches!(self.end, End::Refused(_)) { 'f' } else { 'T' };
        if good && said && job.row.status == status {
            return Ok(());
        }
        Err(format!("{self:?}: status {}, clear {clear}, cipher {cipher:x?}\n{}", job.row.status, job.log))
    }
}

/// Every pair of states, and certificates of another host and another authority. A refusal takes
/// the daemons many seconds (the stock one makes them wait for each other), so the stock daemon
/// shows a few of them only.
pub(crate) fn rows() -> Vec<Row> {
    const REFUSED_BY_STOCK: [(&str, &str); 3] = [("none", "certreq"), ("pskreq", "none"), ("stranger", "certreq")];
    const REFUSED: End = End::Refused("Bad response to Storage command: wanted 2000 OK storage");
    let pairs = (0..STATES.len()).flat_map(|storage| (0..STATES.len()).map(move |client| (storage, client)));
    let mut all: Vec<_> = pairs
        .filter_map(|(storage, client)| {
            let end = match end_of(storage, client) {
                End::Refused(_) => REFUSED,
                end => end,
            };
            Some((STATES.get(storage)?.name, STATES.get(client)?.name, end, ""))
        })
        .collect();
    let unknown = "Error: tls.c:95 Error with certificate at depth: 0, issuer = /CN=other-ca, subject = /CN=stranger, \
                   ERR=20:unable to get local issuer certificate";
    all.extend([
        ("elsewhere", "certreq", REFUSED, "Host name \"127.0.0.1\" did not match presented certificate"),
        ("stranger", "certreq", REFUSED, unknown),
        ("verifies", "certreq", End::Certificates, "Connected to Storage at 127.0.0.1:"),
        ("psk-1.2", "psk", End::Key, ""),
        ("psk-1.2", "pskreq", End::Key, ""),
        ("certreq-1.2", "certreq", End::Certificates, ""),
        ("verifies", "none", REFUSED, "no common encryption: we need tlspsk=0, the peer said tlspsk=2"),
    ]);
    let row = |side, (storage, client, end, says)| Row { side, storage, client, end, says };
    let [reference, test] = SIDES;
    let shown = |(storage, client, end, _): &(&str, &str, End, &str)| {
        *end != REFUSED || REFUSED_BY_STOCK.contains(&(storage, client))
    };
    let of_stock = all.clone().into_iter().filter(shown).map(|pair| row(reference, pair));
    of_stock.chain(all.into_iter().map(|pair| row(test, pair))).collect()
}
