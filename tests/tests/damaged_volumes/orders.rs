//! A volume that says which program a restore is to run (stream 26). It is data: such a command is
//! run only if someone who may order programs has said it, too.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bed::peer::{EOD, Frame, Peer};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, Keys, Plugins, Result, build_plugin};

use crate::records::{CONTENT, Record, attributes, record, session_of, whole_file};
use crate::{Outcome, begin_round, director, hear};

/// A second Director of the same client.
const OTHER: &str = "other-dir";

/// A bed of this daemon with these clients: their names, and what each has that others don't.
fn raise(name: &str, clients: impl IntoIterator<Item = ClientOptions>) -> Result<Bed> {
    let options = BedOptions::new(name, clients)?.in_clear();
    Bed::start(options)
}

fn client(name: &str, settings: &[&str]) -> Result<ClientOptions> {
    let mut client = ClientOptions::new(Fd::under_test()?).named(name);
    client.settings = settings.iter().map(|line| (*line).to_owned()).collect();
    Ok(client)
}

/// The writer of a command, and the file that shows that it ran.
fn marker(bed: &Bed, name: &str) -> (String, PathBuf) {
    let marker = bed.folder().join(name);
    (format!("cat >{}", marker.display()), marker)
}

/// A file that this command is to restore.
fn of_command(command: &[u8], name: &str) -> Vec<Record> {
    let start = [b"1 1 1 ", command, b"\0"].concat();
    vec![record(26, start), attributes(3, name, 0o100_700, "", 2), record(2, CONTENT), record(26, b"1 0")]
}

/// What an attacker's volume holds: a file before, that of the command, and one behind it.
fn session(folder: &Path, command: &[u8]) -> Vec<u8> {
    let name = |name: &str| folder.join(name).display().to_string();
    let mut records = whole_file(&name("before"));
    records.extend(of_command(command, &name("of-the-command")));
    records.extend(whole_file(&name("zz-after")));
    session_of(&records)
}

/// What the Director sends of an object: its type, its command and its bytes.
type Object<'o> = (u32, &'o str, &'o str);

/// Plays a Director's restore in one round for each session.
fn play(port: u16, by: &str, place: &str, objects: &[Object<'_>], sessions: &[Vec<u8>]) -> Result<Outcome> {
    let mut peer = director(port, by, 7)?;
    let mut messages = Vec::new();
    for (kind, command, text) in objects {
        let (length, command) = (text.len(), command.replace(' ', "\x01"));
        peer.send(format!("restoreobject JobId=4 {length},{length},0,{kind},0,1,{command}\n").as_bytes())?;
        peer.send(b"RestoreOptions")?;
        peer.send(text.as_bytes())?;
    }
    if !objects.is_empty() {
        peer.send(b"restoreobject end\n")?;
        assert_eq!(hear(&mut peer, &mut messages)?, Frame::Data(b"2000 OK ObjectRestored\n".to_vec()));
    }
    for (round, session) in sessions.iter().enumerate() {
        let (storage, said) = begin_round(&mut peer, place, session.clone(), true)?;
        messages.extend(said);
        let ended = hear(&mut peer, &mut messages)?;
        assert!(matches!(&ended, Frame::Data(bytes) if bytes.starts_with(b"2000 OK storage end")), "{ended:?}");
        if round + 1 == sessions.len() {
            peer.send(b"endrestore")?;
        }
        storage.join().unwrap()?;
    }
    end(peer, messages)
}

fn end(mut peer: Peer, mut messages: Vec<(u32, String)>) -> Result<Outcome> {
    loop {
        if let Frame::Data(bytes) = hear(&mut peer, &mut messages)?
            && bytes.starts_with(b"2800 End Job")
        {
            return Ok(Outcome { messages, end: String::from_utf8(bytes).unwrap() });
        }
    }
}

/// A Director's FileSet with this command, for an estimate.
fn order(port: u16, by: &str, command: &str) -> Result<()> {
    let mut peer = director(port, by, 8)?;
    for line in ["fileset vss=0", "I", "O M", "N", &format!("P {command}"), "N", "N"] {
        peer.send(format!("{line}\n").as_bytes())?;
    }
    peer.signal(EOD)?;
    let mut messages = Vec::new();
    assert_eq!(hear(&mut peer, &mut messages)?, Frame::Data(b"2000 OK include\n".to_vec()), "{messages:?}");
    peer.send(b"estimate listing=0 limit=0\n")?;
    loop {
        match hear(&mut peer, &mut messages)? {
            Frame::Data(bytes) if bytes.starts_with(b"2000 OK estimate files=1 ") => return Ok(()),
            other => assert!(matches!(other, Frame::Data(_)), "{other:?} after {messages:?}"),
        }
    }
}

/// The command was refused, and nothing else of the volume.
fn is_refused(what: &str, outcome: &Outcome, marker: &Path, files: &Path) {
    assert!(!marker.exists(), "{what}: it ran: {outcome:?}");
    let refusals = outcome.messages.iter().filter(|(kind, text)| {
        let is_whole = text.contains(" and not restored: the volume asks for plugin command \"");
        *kind == 5 && is_whole && text.contains("restore_commands")
    });
    assert_eq!((refusals.count(), outcome.field("TermCode")), (1, 69), "{what}: {outcome:?}");
    for (name, is_there) in [("before", true), ("of-the-command", false), ("zz-after", true)] {
        assert_eq!(files.join(name).exists(), is_there, "{what}: {name}: {outcome:?}");
    }
    fs::remove_dir_all(files).unwrap();
}

/// The command was run, and the job's log names it.
fn has_run(what: &str, outcome: &Outcome, marker: &Path, line: &str) {
    assert_eq!(fs::read(marker).unwrap_or_default(), CONTENT, "{what}: {outcome:?}");
    assert!(outcome.messages.iter().any(|(_, text)| text.contains(line)), "{what}: {outcome:?}");
    fs::remove_file(marker).unwrap();
}

/// A client that needs signatures, and whose operator wants any command.
fn signing_client(options: &BedOptions) -> Result<ClientOptions> {
    let keys = Keys::make(&options.folder.make("keys")?, "own")?;
    let mut signed = client("signed", &["plugins.restore_commands = \"any\""])?;
    signed.file_daemon.push("PKI Signatures = yes".to_owned());
    signed.file_daemon.push(format!("PKI Keypair = \"{}\"", keys.pair.display()));
    Ok(signed)
}

/// A bed whose clients are set up in each way that a restore may be limited, and the directory that
/// the strict one may restore into.
fn refusing_bed() -> Result<(Bed, PathBuf)> {
    let mut options = BedOptions::new("volume-orders", [client("plain", &[])?])?.in_clear();
    let allowed = options.folder.make("allowed")?;
    let signed = signing_client(&options)?;
    let mut strict = client("strict", &["plugins.restore_commands = \"known\""])?;
    strict.fd_director.push(format!("Allowed Restore Directories = \"{}\"", allowed.display()));
    strict.fd_director.push("Disable Command = runbefore, runafter, runbeforenow".to_owned());
    let mut library = client("library", &[])?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("cnotes", &[], &plugins.join("cnotes-fd.so"))?;
    library.plugins = Plugins::In(plugins);
    options.clients.extend([signed, strict, library, client("never", &["plugins.restore_commands = \"none\""])?]);
    Ok((Bed::start(options)?, allowed))
}

#[test]
fn no_program_is_run_that_only_the_volume_asks_for() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon runs what the volume says");
    let (mut bed, allowed) = refusing_bed()?;
    let (writer, marker) = marker(&bed, "marker");
    let folder = bed.folder().join("in-place");
    let command = format!("bpipe:/x:true:{writer}");
    for name in ["plain", "signed", "library", "never", "strict"] {
        let port = bed.client(name)?.port();
        let command = if name == "library" { "cnotes:one=text" } else { &command };
        let session = session(&folder, command.as_bytes());
        for below in [Path::new(""), &allowed.join("below")] {
            let files = PathBuf::from(format!("{}{}", below.display(), folder.display()));
            let place = format!("where={}", below.display());
            if name == "strict" && below == Path::new("") {
                continue;
            }
            let outcome = play(port, DIRECTOR, &place, &[], std::slice::from_ref(&session))?;
            is_refused(&format!("{name} {place}"), &outcome, &marker, &files);
        }
        // Each file of a command is refused, and a second round forgets nothing.
        let below = allowed.join("rounds");
        let innocent = session_of(&whole_file("/innocent"));
        let place = format!("where={}", below.display());
        let outcome = play(port, DIRECTOR, &place, &[], &[innocent, session])?;
        is_refused(name, &outcome, &marker, Path::new(&format!("{}{}", below.display(), folder.display())));
    }
    // These name every plugin, or one of another name.
    let port = bed.client("plain")?.port();
    for name in ["*all*", "job", "BPIPE:/x:true:", "bpipe-fd.so:/x:true:", ":/x:true:", " bpipe:/x:true:"] {
        let command = if name.ends_with(':') { format!("{name}{writer}") } else { name.to_owned() };
        let place = format!("where={}", allowed.display());
        let outcome = play(port, DIRECTOR, &place, &[], &[session(&folder, command.as_bytes())])?;
        assert!(!marker.exists(), "{name}: {outcome:?}");
    }
    // A Verify job reads the same volume.
    for level in ["volume", "data"] {
        let outcome = verify(port, level, session(&folder, command.as_bytes()))?;
        assert!(!marker.exists(), "{level}: {outcome:?}");
    }
    Ok(())
}

/// A signature stands behind the data that it is of, so only commands that were ordered are run at
/// all; what they get may be anything, and is named.
#[test]
fn where_signatures_are_needed_an_ordered_command_runs_and_its_file_is_an_error() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon runs what the volume says");
    let mut options = BedOptions::new("signed-orders", [])?.in_clear();
    let signed = signing_client(&options)?;
    options.clients.push(signed);
    let mut bed = Bed::start(options)?;
    let (writer, marker) = marker(&bed, "marker");
    let command = format!("bpipe:/x:true:{writer}");
    let folder = bed.folder().join("files");
    let port = bed.client("signed")?.port();
    let run = || play(port, DIRECTOR, "where=", &[], &[session(&folder, command.as_bytes())]);
    is_refused("not ordered", &run()?, &marker, &folder);
    order(port, DIRECTOR, &command)?;
    let outcome = run()?;
    let unsigned = format!("Missing cryptographic signature for {}\n", folder.join("of-the-command").display());
    assert!(outcome.messages.iter().any(|(_, text)| text.contains(&unsigned)), "{outcome:?}");
    has_run("ordered", &outcome, &marker, &format!("The volume asks plugin bpipe to run: {writer}\n"));
    Ok(())
}

/// Plays the Director of a Verify job of a volume.
fn verify(port: u16, level: &str, session: Vec<u8>) -> Result<Outcome> {
    let mut peer = director(port, DIRECTOR, 9)?;
    let (storage, messages) =
        crate::begin_reading(&mut peer, session, true, &format!("verify level={level}\n"), b"2000 OK verify\n")?;
    let outcome = end(peer, messages)?;
    storage.join().unwrap()?;
    Ok(outcome)
}

#[test]
fn a_command_is_run_that_the_same_director_has_sent_letter_by_letter() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon runs what the volume says");
    let mut plain = client("plain", &[])?;
    plain.file_daemon.extend(
        ["}", "Director {", &format!("Name = {OTHER}"), &format!("Password = \"{FD_PASSWORD}\"")].map(str::to_owned),
    );
    let mut bed = raise("known-orders", [plain, client("any", &["plugins.restore_commands = \"any\""])?])?;
    let (writer, marker) = marker(&bed, "marker");
    let command = format!("bpipe:/x:true:{writer}");
    let folder = bed.folder().join("files");
    let port = bed.client("plain")?.port();
    let run = |by: &str, command: &[u8]| play(port, by, "where=", &[], &[session(&folder, command)]);
    is_refused("at first", &run(DIRECTOR, command.as_bytes())?, &marker, &folder);
    order(port, DIRECTOR, &command)?;
    let known = bed.folder().join(format!("work/plain/bacula-fd.{port}.commands"));
    assert_eq!(fs::metadata(&known).unwrap().permissions().mode() & 0o7777, 0o600);
    let line = format!("The volume asks plugin bpipe to run: {writer}\n");
    for again in 0..2 {
        let outcome = run(DIRECTOR, command.as_bytes())?;
        assert_eq!(outcome.field("TermCode"), 84, "{outcome:?}");
        has_run(&format!("known, {again}"), &outcome, &marker, &line);
    }
    is_refused("another Director", &run(OTHER, command.as_bytes())?, &marker, &folder);
    let cat = writer.replace("cat", "/bin/cat");
    for other in [
        command.strip_suffix('r').unwrap().to_owned(),
        format!("{command} "),
        format!("{command}\n"),
        format!("{command}; id"),
        format!("bpipe:/x:true:{cat}"),
        format!("bpipe:/x:true:true;{writer}"),
        format!("bpipe:/x:false:{writer}"),
        format!("bpipe:/y:true:{writer}"),
        format!("bpipe:/x:TRUE:{writer}"),
        format!("bpipe:/x:true: {writer}"),
    ] {
        is_refused(&other, &run(DIRECTOR, other.as_bytes())?, &marker, &folder);
    }
    // What is behind a NUL is no part of the command.
    let outcome = run(DIRECTOR, format!("{command}\0; id").as_bytes())?;
    has_run("NUL", &outcome, &marker, &line);
    // Each program that is started has its line.
    let mut records = of_command(command.as_bytes(), "/one");
    records.extend(of_command(command.as_bytes(), "/two"));
    let outcome = play(port, DIRECTOR, "where=", &[], &[session_of(&records)])?;
    assert_eq!(outcome.messages.iter().filter(|(_, text)| text.contains(&line)).count(), 2, "{outcome:?}");
    has_run("two files", &outcome, &marker, &line);
    // It is the operator's wish.
    let outcome = play(bed.client("any")?.port(), DIRECTOR, "where=", &[], &[session(&folder, command.as_bytes())])?;
    has_run("any", &outcome, &marker, &line);
    Ok(())
}

#[test]
fn a_command_is_run_with_options_of_the_user_or_a_program_of_an_allowed_directory() -> Result<()> {
    skip::when!(Fd::under_test()? == Fd::Stock, "the stock daemon runs what the volume says");
    let mut options = BedOptions::new("other-orders", [client("plain", &[])?])?.in_clear();
    let scripts = options.folder.make("scripts")?;
    let script = scripts.join("take");
    scripts::write(&script, "exec cat >\"$1\"").unwrap();
    let mut limited = client("limited", &[])?;
    limited.fd_director.push(format!("Allowed Script Directories = \"{}\"", scripts.display()));
    options.clients.push(limited);
    let mut bed = Bed::start(options)?;
    let (writer, marker) = marker(&bed, "marker");
    let (of_user, by_user) = (format!("{writer}-of-the-user"), bed.folder().join("marker-of-the-user"));
    let command = format!("bpipe:/x:true:{writer}");
    let text = format!("restore_command=\"{of_user}\"\n");
    let folder = bed.folder().join("files");
    let port = bed.client("plain")?.port();
    let sessions = [session(&folder, command.as_bytes())];
    // An object that an earlier backup has saved is data, too, whatever its name.
    let outcome = play(port, DIRECTOR, "where=", &[(25, &command, &text)], &sessions)?;
    assert!(!by_user.exists());
    is_refused("a saved object", &outcome, &marker, &folder);
    let outcome = play(port, DIRECTOR, "where=", &[(28, &format!("{command} "), &text)], &sessions)?;
    assert!(!by_user.exists());
    is_refused("options of another command", &outcome, &marker, &folder);
    let outcome = play(port, DIRECTOR, "where=", &[(28, &command, &text)], &sessions)?;
    assert!(!marker.exists());
    has_run("the user's writer", &outcome, &by_user, "Using user supplied restore command: ");

    let port = bed.client("limited")?.port();
    let run = |writer: &str| {
        let command = format!("bpipe:/x:true:{writer}");
        play(port, DIRECTOR, "where=", &[], &[session(&folder, command.as_bytes())])
    };
    let take = format!("{} {}", script.display(), marker.display());
    has_run("an allowed program", &run(&take)?, &marker, &format!("The volume asks plugin bpipe to run: {take}"));
    for other in [writer, format!("{take}; id"), format!("{}/../take x", scripts.display()), format!("{take}\nid")] {
        is_refused(&other, &run(&other)?, &marker, &folder);
    }
    Ok(())
}
