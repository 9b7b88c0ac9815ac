//! Every pair of daemons, and how their connection is protected: pre-shared key, certificates, both
//! or none; possible or required; right, wrong and missing credentials; TLS 1.3 and 1.2. The File
//! Daemon is called by the real Director, and calls real Storage Daemons. Relays in between see
//! whether anything went over the line in clear.
//!
//! The stock daemon goes through the same rows. What its operator reads must be the same;
//! [`talks_in_clear`] has the difference that is on purpose.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

mod called;
mod director;
mod reload;
mod states;
mod storage;

use std::fs;

use bed::{Authority, Bed, BedOptions, ClientOptions, Fd, Folder, Recorded, Relay, Result, in_parallel};
use director::{Row, caller, rows, servers};
use states::{End, Papers, SIDES, STATES};
use storage::Storage;

/// Consoles side by side: most of the time is spent in brakes.
const CONSOLES: usize = 8;

fn daemon_of(side: &str) -> Result<Fd> {
    if side == "reference" { Ok(Fd::Stock) } else { Fd::under_test() }
}

fn papers(folder: &Folder) -> Result<Papers> {
    let path = folder.path();
    let papers = Papers { ours: Authority::new(path, "ca")?, other: Authority::new(path, "other-ca")? };
    papers.ours.sign("fd", &["localhost"])?;
    papers.ours.sign("sd", &["localhost"])?;
    papers.ours.sign("Director", &["localhost"])?;
    papers.ours.sign("elsewhere", &["elsewhere.example.org"])?;
    papers.other.sign("stranger", &["localhost"])?;
    Ok(papers)
}

/// A configuration of OpenSSL that supports nothing newer than TLS 1.2.
fn only_tls_1_2(folder: &Folder) -> (String, String) {
    let path = folder.path().join("tls-1.2.cnf");
    let text = "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = limits\n[limits]\n\
                MaxProtocol = TLSv1.2\n";
    fs::write(&path, text).unwrap();
    ("OPENSSL_CONF".to_owned(), path.display().to_string())
}

/// What a side's row came to.
#[derive(Debug)]
struct Outcome {
    connected: bool,
    /// What the operator reads, without names and ports.
    says: String,
    lines: Vec<Recorded>,
}

/// Something that only a peer that was accepted gets.
const ACCEPTED: &str = "2000 OK Hello";
/// What only the owner of the connection may say.
const COMMAND: &str = "JobId=";

/// Whether the daemon itself said more in clear than the login. The stock daemon does, as a server
/// that requires certificates: it leaves the refusal to the client (reference 01 §10.3).
fn talks_in_clear(outcome: &Outcome) -> bool {
    outcome.lines.iter().any(|line| line.shows(ACCEPTED))
}

fn check(side: &str, stock: bool, row: &Row, outcome: &Outcome) -> std::result::Result<(), String> {
    let cipher = outcome.lines.iter().find_map(Recorded::cipher_chosen_by_called);
    let of_key = matches!(cipher, Some(0x1301 | 0x1303 | 0x008d));
    let clear = talks_in_clear(outcome);
    let commands = outcome.lines.iter().any(|line| line.shows(COMMAND));
    let good = match row.end {
        End::Clear => outcome.connected && clear && cipher.is_none(),
        End::Certificates => outcome.connected && !clear && !commands && cipher.is_some(),
        End::Key => outcome.connected && !clear && !commands && of_key,
        End::ClearAgain => outcome.connected && clear && cipher.is_some(),
        End::Refused(text) => {
            let in_peace = row.end == End::Refused("") || outcome.says.contains(text);
            !outcome.connected && !commands && in_peace && (stock || !clear || row.server == "login-only")
        }
    };
    if good { Ok(()) } else { Err(format!("{side} {row:?}: {outcome:?}, cipher {cipher:x?}")) }
}

/// The library's words for an alert change with its version; the two daemons need not have the
/// same.
fn without_alert(text: &str) -> String {
    text.split("ERR=").next().unwrap_or_default().to_owned()
}

#[test]
fn the_director_calls_in_every_state_of_both_sides() -> Result<()> {
    let folder = Folder::new("tls-papers")?;
    let papers = papers(&folder)?;
    let mut clients = Vec::new();
    for side in SIDES {
        for server in servers(&papers) {
            let mut client = ClientOptions::new(daemon_of(side)?).named(&format!("{side}-{}", server.name));
            client.fd_director = server.lines;
            client.environment.extend(server.old.then(|| only_tls_1_2(&folder)));
            clients.push(client);
        }
    }
    let mut options = BedOptions::new("tls", clients)?;
    let mut calls = Vec::new();
    for (number, row) in rows().into_iter().enumerate() {
        let caller = caller(&papers, row.caller);
        for side in SIDES {
            let relay = Relay::new()?;
            let name = format!("{side}-{number}");
            options.director_resources.push(format!(
                "Client {{\nName = {name}\nAddress = 127.0.0.1\nFDPort = {}\nCatalog = Catalog\nPassword = \"{}\"\n{}\n}}",
                relay.port(),
                caller.password,
                caller.lines.join("\n")
            ));
            calls.push((side, row, name, relay));
        }
    }
    let mut bed = Bed::start(options)?;
    for (side, row, _, relay) in &calls {
        relay.aim(bed.client(&format!("{side}-{}", row.server))?.port());
    }
    let outcomes = in_parallel(CONSOLES, &calls, |(_, _, name, relay)| {
        let answer = bed.console(&[&format!("status client={name}")])?;
        // Whether there are messages depends on the other consoles.
        let says =
            answer.replace("You have messages.\n", "").replace(name, "NAME").replace(&relay.port().to_string(), "PORT");
        let connected = answer.contains("Daemon started ");
        let says = if connected { "connected".to_owned() } else { says };
        Ok(Outcome { connected, says, lines: relay.recorded() })
    })?;
    let mut wrong = Vec::new();
    for (pair, outcomes) in calls.chunks(2).zip(outcomes.chunks(2)) {
        let ([(_, row, ..), _], [reference, test]) = (pair, outcomes) else { continue };
        wrong.extend(check("reference", true, row, reference).err());
        wrong.extend(check("test", Fd::under_test()? == Fd::Stock, row, test).err());
        if without_alert(&reference.says) != without_alert(&test.says) {
            wrong.push(format!("{row:?}: reference says {:?}, test {:?}", reference.says, test.says));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn storage_daemons_are_called_in_every_state_of_both_sides() -> Result<()> {
    let folder = Folder::new("tls-papers")?;
    let papers = papers(&folder)?;
    let mut clients = Vec::new();
    for side in SIDES {
        for state in STATES {
            let mut client = ClientOptions::new(daemon_of(side)?).named(&format!("{side}-{}", state.name));
            client.file_daemon = state.lines(&papers, "fd");
            clients.push(client);
        }
    }
    let mut options = BedOptions::new("tls-storage", clients)?;
    // Most of the time of a job that is refused is spent in brakes.
    options.director.push("Maximum Concurrent Jobs = 100".to_owned());
    fs::write(options.source()?.join("file"), "the data that nobody else may read\n".repeat(100)).unwrap();
    let states = STATES.map(|state| (state.name, storage::lines(state, &papers)));
    let mut storages: Vec<_> = states
        .into_iter()
        .chain(storage::special(&papers))
        .map(|(name, lines)| Storage::prepare(&mut options, name, lines))
        .collect::<Result<_>>()?;
    let bed = Bed::start(options)?;
    let old = only_tls_1_2(&folder);
    for storage in &mut storages {
        storage.start(bed.folder(), bed.root(), &old)?;
    }
    let rows = storage::rows();
    let commands: Vec<_> = rows.iter().map(storage::Row::command).collect();
    let jobs = bed.run_all(&commands)?;
    let mut wrong = Vec::new();
    for (row, job) in rows.iter().zip(jobs) {
        let result = bed.result(job)?;
        let storage = storages.iter().find(|storage| storage.name == row.storage).unwrap();
        let hello = format!("Start Job backup-{}-{}.", row.side, row.client);
        let lines: Vec<_> = storage.relay.recorded().into_iter().filter(|line| line.shows(&hello)).collect();
        wrong.extend(row.check(&result, &lines).err());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
