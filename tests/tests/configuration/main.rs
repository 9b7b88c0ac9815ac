//! Configuration files as people and their tools write them: both programs, `bacula-fd -t` and
//! `bfdjson`, print the same for each as the stock ones.
//!
//! The rows are those of reference 06 §15, from the recorded corpus of `fd-config`. Not here: the
//! whole corpus, which that crate runs against the recording.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bed::{Fd, Folder, Result, Root, argv, our_program, run};
use serde::Deserialize;

/// The directory of the recording.
const RECORDED: &str = "/tmp/conf-corpus";

#[derive(Deserialize)]
struct Inputs {
    base: String,
    case: Vec<Input>,
}

#[derive(Deserialize)]
struct Input {
    name: String,
    at: String,
    text: String,
    #[serde(default)]
    files: HashMap<String, String>,
}

/// The two pairs of programs.
struct Programs {
    root: Root,
    ours: PathBuf,
    our_json: PathBuf,
    under_test: Fd,
}

/// How a program ended and what it printed.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    good: bool,
    stdout: String,
}

impl Said {
    /// Whether it is what the stock program says, or that with its passwords hidden.
    fn is_as(&self, stock: &Self) -> bool {
        let mut rest = stock.stdout.as_str();
        let mut is_next = |part| {
            let found = rest.split_once(part);
            rest = found.map_or(rest, |(_, behind)| behind);
            found.is_some()
        };
        let is_hidden = stock.stdout.contains("ssword")
            && self.stdout.contains("(hidden)")
            && self.stdout.split("(hidden)").all(&mut is_next);
        self == stock || (self.good == stock.good && is_hidden)
    }
}

impl Programs {
    fn find(folder: &Folder) -> Result<Self> {
        let (ours, our_json) = (our_program()?, folder.path().join("bfdjson"));
        symlink(&ours, &our_json).unwrap();
        Ok(Self { root: Root::find()?, ours, our_json, under_test: Fd::under_test()? })
    }

    fn daemon(&self, fd: Fd, args: &[&str]) -> Result<Said> {
        self.say(fd, "/usr/sbin/bacula-fd", &self.ours, args)
    }

    fn json(&self, fd: Fd, args: &[&str]) -> Result<Said> {
        self.say(fd, "/usr/sbin/bfdjson", &self.our_json, args)
    }

    fn say(&self, fd: Fd, stock: &str, ours: &Path, args: &[&str]) -> Result<Said> {
        let mut words = argv(["env", "-i", "HOME=/root", "PATH=/usr/bin:/bin"]);
        match fd {
            Fd::Stock => words.extend(self.root.argv(stock, args.iter().copied())?),
            Fd::Ours => {
                words.push(ours.into());
                words.extend(args.iter().map(OsString::from));
            }
        }
        let done = run(&words, b"")?;
        Ok(Said { good: done.status.success(), stdout: normal(&done.stdout) })
    }

    /// Where the two differ on one file; nothing if they don't.
    fn compare(&self, what: &str, args: &[&str], with_json: bool) -> Result<Option<String>> {
        let test = [&["-t"], args].concat();
        let (stock, ours) = (self.daemon(Fd::Stock, &test)?, self.daemon(self.under_test, &test)?);
        // What it reports of its own crash is no part of the interface.
        if !stock.stdout.contains("ABORTING via segfault") && !ours.is_as(&stock) {
            return Ok(Some(format!("{what}:\n stock {stock:#?}\n ours  {ours:#?}")));
        }
        if with_json {
            let (stock, ours) = (self.json(Fd::Stock, args)?, self.json(self.under_test, args)?);
            // Where the stock program writes what no JSON reader accepts, ours writes what was
            // meant.
            let broken = stock.stdout.contains(",}") || stock.stdout.contains("]}");
            if !broken && !stock.stdout.contains("ABORTING") && !ours.is_as(&stock) {
                return Ok(Some(format!("{what}, JSON:\n stock {stock:#?}\n ours  {ours:#?}")));
            }
        }
        Ok(None)
    }
}

/// Without dates, and without the leaks that the stock program reports of itself.
fn normal(stdout: &[u8]) -> String {
    let text = String::from_utf8_lossy(stdout);
    let undated = |line: &str| {
        let date = line.get(..13).filter(|date| date.as_bytes().get(2) == Some(&b'-') && date.ends_with(' '));
        date.filter(|date| date.as_bytes().get(9) == Some(&b':'))
            .map_or(line.to_owned(), |_| format!("DATE {}", line.get(13..).unwrap_or_default()))
    };
    text.lines().filter(|line| !line.contains("smartall.c")).map(undated).collect::<Vec<_>>().join("\n")
}

/// The corpus writes bytes as the characters U+0000 to U+00FF.
fn bytes(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect()
}

/// The whole file, as the recording of the corpus makes it.
fn whole(base: &str, input: &Input) -> String {
    let text = &input.text;
    let lines: Vec<&str> = base.split('\n').collect();
    let replaced = |from: usize, to: usize| {
        let (head, tail) = (lines.get(..from).unwrap(), lines.get(to..).unwrap());
        [head, &[format!("  {text}").as_str()], tail].concat().join("\n")
    };
    match input.at.as_str() {
        "top" => format!("{text}\n{base}"),
        "director" => format!("Director {{\n Name = q\n Password = p\n {text}\n}}\n{base}"),
        "schedule" => format!("Schedule {{\n Name = s\n {text}\n}}\n{base}"),
        "statistics" => format!("Statistics {{\n Name = s\n {text}\n}}\n{base}"),
        "daemon" => replaced(10, 10),
        "addresses" => replaced(6, 8),
        "messages" => replaced(13, 14),
        _ => text.clone(),
    }
}

/// What a few threads find wrong with many things.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<Option<String>> + Sync) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    bed::in_parallel(threads, items, work).unwrap().into_iter().flatten().collect()
}

#[test]
fn every_row_of_the_table_is_answered_as_the_stock_programs_answer_it() -> Result<()> {
    let inputs: Inputs = toml::from_str(include_str!("../../../crates/fd-config/tests/corpus/inputs.toml")).unwrap();
    let rows: Vec<&Input> = inputs.case.iter().filter(|input| input.name.starts_with("row ")).collect();
    assert!(rows.len() >= 170, "{}", rows.len());
    let folder = Folder::new("rows")?;
    let programs = Programs::find(&folder)?;
    let wrong = in_parallel(&rows, |row| {
        let number: String = row.name.chars().filter(char::is_ascii_digit).take(3).collect();
        let place = folder.make(&format!("{number}-{}", row.text.len()))?;
        for directory in ["work", "run"] {
            fs::create_dir_all(place.join(directory)).unwrap();
        }
        let here = |text: &str| bytes(&text.replace(RECORDED, &place.to_string_lossy()));
        for (name, text) in &row.files {
            fs::write(place.join(name), here(text)).unwrap();
        }
        let file = place.join("fd.conf");
        fs::write(&file, here(&whole(&inputs.base, row))).unwrap();
        programs.compare(&row.name, &["-c", &file.to_string_lossy()], true)
    });
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    Ok(())
}

/// The rows whose input is a file that does not exist, or that needs more than `-t`. Standard
/// output is compared; `@` is replaced by the file.
#[test]
fn failed_starts_print_the_stock_words() -> Result<()> {
    let folder = Folder::new("starts")?;
    let programs = Programs::find(&folder)?;
    let tls = "TLS Enable = yes\nTLS CA Certificate File = /nonexist";
    let certificate = "TLS Enable = yes\nTLS Verify Peer = no\nTLS Certificate = /nonexist\nTLS Key = /nonexist";
    let pki = "PKI Encryption = yes\nPKI Key Pair = /nonexist";
    let (pid, plugins) = ("Pid Directory = /nonexist", "Plugin Directory = /nonexist");
    // For the Director's resource, for the daemon's, arguments.
    let rows: [(&str, &str, &[&str]); 9] = [
        ("", tls, &["-t", "-c", "@"]),
        ("", pki, &["-t", "-c", "@"]),
        (certificate, "", &["-t", "-c", "@"]),
        ("", "", &["-f", "-u", "nosuch", "-c", "@"]),
        ("", "", &["-f", "-g", "nosuch", "-c", "@"]),
        ("", pid, &["-f", "-c", "@"]),
        ("", plugins, &["-f", "-c", "@"]),
        // Plugins are not loaded for a test.
        ("", plugins, &["-t", "-c", "@"]),
        ("}\nFoo {", "", &["-c", "@"]),
    ];
    let next = AtomicUsize::new(0);
    let wrong = in_parallel(&rows, |(director, daemon, args)| {
        let work = folder.make(&format!("work{}", next.fetch_add(1, Ordering::Relaxed)))?;
        let file = work.join("fd.conf");
        let (work, pid) = (work.display(), if daemon.starts_with("Pid") { "" } else { "Pid Directory = @" });
        let pid = pid.replace('@', &work.to_string());
        let text = format!(
            "FileDaemon {{\nName = x-fd\nWorking Directory = {work}\n{pid}\nFD Port = 20602\n{daemon}\n}}\n\
             Director {{\nName = d\nPassword = p\n{director}\n}}\n\
             Messages {{\nName = Standard\ndirector = d = all\n}}\n"
        );
        fs::write(&file, text).unwrap();
        let file = file.to_string_lossy();
        let args: Vec<&str> = args.iter().map(|arg| if *arg == "@" { &*file } else { arg }).collect();
        let said = |fd| -> Result<Said> {
            let said = programs.daemon(fd, &args)?;
            // Which of its parts had no file is in OpenSSL's text, which differs with its versions.
            let lines = said.stdout.lines().filter(|line| !line.contains(":x509 certificate routines::"));
            Ok(Said { stdout: lines.collect::<Vec<_>>().join("\n"), ..said })
        };
        let (stock, ours) = (said(Fd::Stock)?, said(programs.under_test)?);
        Ok((stock != ours).then(|| format!("{args:?}:\n stock {stock:#?}\n ours  {ours:#?}")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn arguments_are_taken_as_the_stock_daemon_takes_them() -> Result<()> {
    let folder = Folder::new("arguments")?;
    let programs = Programs::find(&folder)?;
    let file = folder.path().join("fd.conf");
    let work = folder.make("work")?;
    fs::write(&file, include_str!("tools/debian.conf").replace("@WORK@", &work.to_string_lossy())).unwrap();
    let file = file.to_string_lossy().into_owned();
    let pipe = format!("|cat {file}");
    let rows: [&[&str]; 20] = [
        &[&file],
        &["-c", "/nope", &file],
        &["-c", "/nope"],
        &["-c", "fd.conf"],
        &["-k", "-c", &file],
        &["-u", "nosuch", "-g", "nosuch", "-c", &file],
        &["-c", &file, "extra"],
        &["-c", "/"],
        &["-c", ""],
        &["-c", &pipe],
        &["-vfPsT", "-c", &file],
        &["-m", "-c", &file],
        &["-d", "10,scheduler", "-c", &file],
        &["-d", "8,lock,!sql,nosuch+all", "-c", &file],
        &["-d", "8,lock,,sql-", "-c", &file],
        &["-d", "8,lock1,sql", "-c", &file],
        &["-d", "7,lock", "-c", &file],
        &["-?"],
        &["-D", "5"],
        &["-c"],
    ];
    let wrong = in_parallel(&rows, |row| programs.compare(&format!("{row:?}"), row, false));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn the_json_view_takes_the_options_of_the_stock_one() -> Result<()> {
    let folder = Folder::new("json")?;
    let programs = Programs::find(&folder)?;
    let work = folder.make("work")?.to_string_lossy().into_owned();
    let file = folder.path().join("fd.conf");
    fs::write(&file, include_str!("tools/upstream.conf").replace("@WORK@", &work)).unwrap();
    let file = file.to_string_lossy().into_owned();
    let options = [
        "",
        "-D",
        "-r Director",
        "-r director",
        "-r Client",
        "-r nosuch",
        "-n bacula-dir",
        "-r Director -n BACULA-DIR",
        "-r Director -n nosuch",
        "-r Director -l Name",
        "-r Director -l ^Allowed",
        "-r Messages -l .",
        "-D -r Director",
        "-D -n bacula-dir",
        "-D -r Director -n bacula-dir",
        "-D -r Director -l Name",
        "-l Name",
        "-r Director -l [",
        "-t",
        "-t -v",
        "-vv -t",
        "-v",
        "-?",
        "-z",
        "-r",
        "-R",
        "-s",
        "-dt",
        "-d 5,network",
        "extra",
        "--help",
        "-c nodir.conf",
        "-r Statistics",
        "-r Console",
        "-r Schedule",
        "-r Director -r Console",
        "-D -D",
        "-t -D",
    ];
    assert_eq!(programs.json(programs.under_test, &["-c", ""])?, programs.json(Fd::Stock, &["-c", ""])?);
    let wrong = in_parallel(&options, |option| {
        let mut args: Vec<&str> = option.split_whitespace().collect();
        args.push(&file);
        let (stock, ours) = (programs.json(Fd::Stock, &args)?, programs.json(programs.under_test, &args)?);
        Ok((stock != ours).then(|| format!("{option}:\n stock {stock:#?}\n ours  {ours:#?}")))
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn configurations_of_common_tools_load_alike() -> Result<()> {
    let folder = Folder::new("tools")?;
    let programs = Programs::find(&folder)?;
    let work = folder.make("work")?;
    folder.make("work/conf.d")?;
    let mounted = "Director { Name = bacula-dir; Password = \"from the environment\" }\n";
    fs::write(work.join("conf.d/10-director.conf"), mounted).unwrap();
    let tools = [
        ("puppet", include_str!("tools/puppet.conf")),
        ("ansible", include_str!("tools/ansible.conf")),
        ("nixos", include_str!("tools/nixos.conf")),
        ("debian", include_str!("tools/debian.conf")),
        ("container", include_str!("tools/container.conf")),
        ("upstream", include_str!("tools/upstream.conf")),
    ];
    let wrong = in_parallel(&tools, |(tool, text)| {
        let file = folder.path().join(format!("{tool}.conf"));
        fs::write(&file, text.replace("@WORK@", &work.to_string_lossy())).unwrap();
        let args = ["-c", &file.to_string_lossy()];
        let loaded = programs.daemon(Fd::Stock, &["-t", args[0], args[1]])?;
        if !loaded.good {
            return Ok(Some(format!("{tool} does not load in the stock daemon: {loaded:#?}")));
        }
        programs.compare(tool, &args, true)
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
