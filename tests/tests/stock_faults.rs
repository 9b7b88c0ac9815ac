//! Input that ends or blocks the stock daemon and leaves ours running. Each test shows both.

use std::ffi::{OsStr, OsString};
use std::fs::{self, FileTimes};
use std::net::TcpStream;
use std::time::{Duration, UNIX_EPOCH};

use bed::peer::{EOD, Frame, Peer, job_session, packet};
use bed::{Bed, BedOptions, Fd, FileSet, PATIENCE, Process, Result, fd_argv, run, wait_for};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// Both daemons, or none if there is no second one to be compared with the stock daemon.
fn both(label: &str, change: impl FnOnce(&mut BedOptions)) -> Result<Option<BedOptions>> {
    if Fd::under_test()? == Fd::Stock {
        return Ok(None);
    }
    let mut options = BedOptions::side_by_side(label)?.in_clear();
    change(&mut options);
    Ok(Some(options))
}

#[test]
fn an_option_before_any_include_ends_the_stock_daemon_only() -> Result<()> {
    let Some(options) = both("early-option", |_| ())? else { return skip::test(bed::ONLY_OURS) };
    let mut bed = Bed::start(options)?;
    for client in ["reference", "test"] {
        let mut peer = job_session(bed.client(client)?.port(), 3)?;
        peer.send_bytes(&[packet(b"fileset vss=1\n"), packet(b"O M\n"), EOD.to_be_bytes().to_vec()].concat())?;
        if client == "reference" {
            let process = bed.client(client)?.daemon().process()?;
            // Its report of the crash may hang.
            wait_for("the end of the stock daemon", PATIENCE, || {
                let ended = process.try_exit()?.is_some() || process.output().contains("Segmentation violation");
                Ok(if ended { Ok(()) } else { Err(process.output()) })
            })?;
        } else {
            let end = peer.rest()?.into_iter().find_map(|frame| match frame {
                Frame::Data(bytes) if bytes.starts_with(b"2800 End Job") => Some(bytes),
                _ => None,
            });
            assert!(end.is_some_and(|end| end.starts_with(b"2800 End Job TermCode=67 ")));
            assert!(bed.console(&["status client=test-fd"])?.contains("Daemon started"));
        }
    }
    Ok(())
}

/// `KeepAtime` (reference 03 §5.11).
#[test]
fn an_estimate_changes_no_times() -> Result<()> {
    let mut kept = Vec::new();
    let Some(options) = both("keep-atime", |options| {
        for client in ["reference", "test"] {
            let folder = options.folder.make(&format!("source/{client}")).unwrap();
            let file = folder.join("file");
            fs::write(&file, "data").unwrap();
            let modified = UNIX_EPOCH + Duration::new(1_600_000_000, 123_456_789);
            fs::File::open(&file).unwrap().set_times(FileTimes::new().set_modified(modified)).unwrap();
            options.file_sets.push(FileSet::new(client, &["KeepAtime = yes"], &[&folder]));
            kept.push((client, file, modified));
        }
    })?
    else {
        return skip::test(bed::ONLY_OURS);
    };
    let bed = Bed::start(options)?;
    for (client, file, modified) in kept {
        let answer = bed.console(&[&format!("estimate job=backup-{client} fileset={client}")])?;
        assert!(answer.contains("2000 OK estimate files=2 "), "{answer}");
        let now = fs::metadata(&file).and_then(|file| file.modified()).unwrap();
        assert_eq!(now == modified, client == "test", "{client}: {now:?}");
    }
    Ok(())
}

#[test]
fn a_long_word_breaks_the_stock_daemon_only() -> Result<()> {
    let Some(options) = both("long-word", |_| ())? else { return skip::test(bed::ONLY_OURS) };
    let mut bed = Bed::prepare(options)?;
    for client in ["reference", "test"] {
        let config = bed.client(client)?.config.clone();
        let good = fs::read_to_string(&config).unwrap();
        let description = format!("FileDaemon {{\nDescription = {}\n", "x".repeat(5000));
        fs::write(&config, good.replacen("FileDaemon {\n", &description, 1)).unwrap();
        let fd = bed.client(client)?.options.fd;
        let argv = fd_argv(bed.root(), fd, ["-t", "-c"].map(OsStr::new).into_iter().chain([config.as_os_str()]))?;
        if client == "reference" {
            // A group of its own: the process that reports its crash hangs, and outlives it.
            let argv = [&[OsString::from("setsid")], &argv[..]].concat();
            let process = Process::start("bacula-fd -t", &argv, &bed.folder().join("log/long-word.out"))?;
            let damaged = wait_for("its memory to be damaged", PATIENCE, || {
                let said = process.output();
                Ok(if said.contains("Overrun buffer") { Ok(()) } else { Err(said) })
            });
            let killed = killpg(Pid::from_raw(i32::try_from(process.pid()).unwrap()), Signal::SIGKILL);
            damaged?;
            killed.unwrap();
        } else {
            let done = run(&argv, b"")?;
            assert_eq!(done.status.code(), Some(1));
            assert!(done.text().contains(&config.display().to_string()), "{}", done.text());
        }
    }
    Ok(())
}

/// As many as a daemon serves at a time.
const SILENT: usize = 20;

#[test]
fn silent_callers_block_the_stock_daemon_only() -> Result<()> {
    let settings = |options: &mut BedOptions| {
        for client in &mut options.clients {
            client.settings.push("connection.login = 10".to_owned());
        }
    };
    let Some(options) = both("silent", settings)? else { return skip::test(bed::ONLY_OURS) };
    let mut bed = Bed::start(options)?;
    let ports = [bed.client("reference")?.port(), bed.client("test")?.port()];
    let silent = ports
        .map(|port| -> Vec<_> { (0..2 * SILENT).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect() });
    let ask = |port: u16| -> Result<Peer> {
        let mut peer = Peer::connect("FD", port)?;
        peer.send(b"Ping")?;
        Ok(peer)
    };
    let mut peers = [ask(ports[0])?, ask(ports[1])?];
    // Ours comes to it when the silent ones have had their ten seconds; the stock daemon does not.
    peers[1].expect("2000 Ping OK\n")?;
    let [asked_stock, _] = &mut peers;
    asked_stock.must_be_silent()?;
    drop(silent);
    asked_stock.expect("2000 Ping OK\n").map(drop)
}

/// Names in a list on the host, or that a program prints, are limited as those of the FileSet are.
#[test]
fn a_list_keeps_a_limited_director_in_its_directories() -> Result<()> {
    let Some(options) = both("limited-list", |options| {
        let folder = options.folder.path().to_owned();
        let at = |name: &str| folder.join(name).display().to_string();
        for name in ["ok", "ok-evil", "other"] {
            fs::create_dir(folder.join(name)).unwrap();
            fs::write(folder.join(name).join("file"), name).unwrap();
        }
        std::os::unix::fs::symlink(at("other"), folder.join("ok/link")).unwrap();
        let names = ["ok/file", "ok/../other/file", "ok-evil/file", "ok/link/file", "ok/./file"];
        fs::write(folder.join("list"), names.map(|name| format!("{}\n", at(name))).concat()).unwrap();
        fs::write(folder.join("secret"), "root:x:0:0:secret\nPassword = x\nkey\n").unwrap();
        for client in &mut options.clients {
            client.fd_director = vec![format!("Allowed Backup Directories = \"{}\"", at("ok"))];
        }
        for (name, list) in [("file", "<"), ("program", "|/bin/cat ")] {
            let list = format!("\\{list}{}", at("list"));
            options.file_sets.push(FileSet::new(name, &["Signature = MD5"], &[list.as_ref()]));
        }
        let secret = format!("\\<{}", at("secret"));
        options.file_sets.push(FileSet::new("secret", &["Signature = MD5"], &[secret.as_ref()]));
        fs::write(folder.join("ok/commands"), "bpipe:/p:/bin/echo:/bin/cat\n").unwrap();
        for (name, list) in [("told", at("secret")), ("commands", at("ok/commands"))] {
            let lines = ["Include {", &format!("Plugin = \"\\\\<{list}\""), "}"].map(str::to_owned).to_vec();
            options.file_sets.push(FileSet { name: name.to_owned(), lines });
        }
    })?
    else {
        return skip::test(bed::ONLY_OURS);
    };
    let bed = Bed::start(options)?;
    for file_set in ["file", "program"] {
        // The stock daemon saves all but what is named outright.
        for (client, files) in [("reference", 5), ("test", 2)] {
            let job = bed.backup(client, &format!("fileset={file_set}"))?.must_be_good()?;
            assert_eq!(job.row.files, files, "{client} {file_set}: {}", job.log);
        }
    }
    // Nor are the lines of a list that are no names sent.
    for client in ["reference", "test"] {
        assert!(!bed.backup(client, "fileset=secret")?.log.contains("root:x:"), "{client}");
    }
    // Of commands each line that is none is told, so such a list must lie in the directories.
    let told = |said: &str| said.contains("Password = x") || said.contains("\"key\"");
    let job = bed.backup("test", "fileset=told")?.must_be('f')?;
    assert!(job.log.contains("ERR=it is not in the Allowed Backup Directories") && !told(&job.log), "{}", job.log);
    assert!(!told(&bed.console(&["estimate job=backup-test fileset=told"])?));
    bed.backup("test", "fileset=commands")?.must_be_good()?;
    Ok(())
}

/// A FileSet whose list is a directory would save nothing of what it should, and nobody would know.
#[test]
fn a_directory_is_no_list_of_names() -> Result<()> {
    let Some(options) = both("directory-list", |options| {
        let folder = options.folder.path().to_owned();
        fs::create_dir(folder.join("names")).unwrap();
        fs::write(folder.join("file"), "saved").unwrap();
        let list = format!("\\<{}", folder.join("names").display());
        let file = folder.join("file").display().to_string();
        options.file_sets.push(FileSet::new("directory", &["Signature = MD5"], &[list.as_ref(), file.as_ref()]));
    })?
    else {
        return skip::test(bed::ONLY_OURS);
    };
    let bed = Bed::start(options)?;
    let job = bed.backup("reference", "fileset=directory")?.must_be_good()?;
    assert_eq!(job.row.files, 1, "{}", job.log);
    let job = bed.backup("test", "fileset=directory")?.must_be('f')?;
    assert!(job.log.contains("Is a directory"), "{}", job.log);
    Ok(())
}

/// A list of names that are not there would tell the Director, name by name, what is in a file that
/// it may not save.
#[test]
fn an_excluded_file_is_no_list_of_names() -> Result<()> {
    let Some(options) = both("excluded-list", |options| {
        let folder = options.folder.path().to_owned();
        let at = |name: &str| folder.join(name).display().to_string();
        for name in ["secret", "ok"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        fs::write(folder.join("secret/key"), "the key of the host\n").unwrap();
        fs::write(folder.join("ok/list"), "a name that is not there\n").unwrap();
        std::os::unix::fs::symlink(at("secret/key"), folder.join("ok/link")).unwrap();
        for client in &mut options.clients {
            client.fd_director = vec![format!("Excluded Backup Directories = \"{}\"", at("secret"))];
        }
        for (name, list) in [("direct", "secret/key"), ("linked", "ok/link"), ("good", "ok/list")] {
            let list = format!("\\<{}", at(list));
            options.file_sets.push(FileSet::new(name, &["Signature = MD5"], &[list.as_ref()]));
        }
    })?
    else {
        return skip::test(bed::ONLY_OURS);
    };
    let bed = Bed::start(options)?;
    for (file_set, shown) in [("direct", "the key of the host"), ("linked", "the key of the host")] {
        assert!(bed.backup("reference", &format!("fileset={file_set}"))?.log.contains(shown), "{file_set}");
        let job = bed.backup("test", &format!("fileset={file_set}"))?;
        assert!(!job.log.contains(shown), "{file_set}: {}", job.log);
        assert!(job.log.contains("Excluded Backup Directories"), "{file_set}: {}", job.log);
    }
    for client in ["reference", "test"] {
        assert!(bed.backup(client, "fileset=good")?.log.contains("a name that is not there"), "{client}");
    }
    Ok(())
}

/// A slash ends an item for both daemons. What an item leads to over a link is excluded by ours
/// only, and nothing that begins so.
#[test]
fn excluded_directories_end_at_their_slash_and_count_where_they_lead_to() -> Result<()> {
    let Some(options) = both("excluded-slash", |options| {
        let tree = options.folder.make("source/tree").unwrap();
        for name in ["a/in/f", "ab/f", "real/f", "real-2/f"] {
            let path = tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        fs::write(tree.join("a.tar"), "x").unwrap();
        std::os::unix::fs::symlink(tree.join("real"), tree.join("link")).unwrap();
        for client in &mut options.clients {
            let items = ["a/", "link"].map(|item| format!("\"{}/{item}\"", tree.display()));
            client.fd_director = vec![format!("Excluded Backup Directories = {}", items.join(", "))];
        }
        let in_a = tree.join("a");
        options.file_sets.push(FileSet::new("tree", &["Signature = MD5"], &[&tree]));
        options.file_sets.push(FileSet::new("name", &["Signature = MD5"], &[&in_a]));
    })?
    else {
        return skip::test(bed::ONLY_OURS);
    };
    let bed = Bed::start(options)?;
    let saved = |client: &str, file_set: &str| -> Result<Vec<String>> {
        let job = bed.backup(client, &format!("fileset={file_set}"))?.must_be_good()?;
        let files = bed.catalog().files(job.row.id)?;
        let mut names: Vec<String> = files
            .iter()
            .map(|file| {
                String::from_utf8_lossy(&file.path).split_once("/tree/").map_or("", |(_, name)| name).to_owned()
            })
            .collect();
        names.sort();
        Ok(names)
    };
    let ours = ["", "a.tar", "a/", "ab/", "ab/f", "real-2/", "real-2/f"];
    let mut stock = [&ours[..], &["real/", "real/f"]].concat();
    stock.sort_unstable();
    assert_eq!(saved("reference", "tree")?, stock);
    assert_eq!(saved("test", "tree")?, ours);
    for client in ["reference", "test"] {
        assert_eq!(saved(client, "name")?, ["a/"], "{client}");
    }
    Ok(())
}
