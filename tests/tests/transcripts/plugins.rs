//! What is reported about plugins where there are none: without a `Plugin Directory`, and with an
//! empty one.

use std::fs;

use bed::peer::{Frame, logged_in};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, Fd, FileSet, Plugins, Result, StockRecord};

use crate::normal;

/// What is asked, each until a signal comes.
const QUESTIONS: [&[u8]; 6] = [
    b"PluginFeatures\n",
    b"query parameter=\"x\" plugin=\"bpipe\" value=\"\"\n",
    b"status",
    b".status header",
    b".status header api=2 api_opts=j",
    b".status header api=2 api_opts=o",
];

/// A bed whose clients' Plugin Directory depends on the end of their names: none (`no`), an empty
/// one (`an`), or the packages' one.
fn options<'c>(label: &str, clients: impl IntoIterator<Item = (&'c str, Fd)>) -> Result<BedOptions> {
    let mut options = BedOptions::new(label, clients.into_iter().map(|(name, fd)| ClientOptions::new(fd).named(name)))?;
    let empty = options.folder.make("plugins")?;
    for client in &mut options.clients {
        client.plugins = match client.name.rsplit('-').next() {
            Some("no") => Plugins::NoDirectory,
            Some("an") => {
                // Ours needs no file for it.
                client.settings.push("plugins.bpipe = \"off\"".to_owned());
                Plugins::In(empty.clone())
            }
            _ => Plugins::OfThePackages,
        };
    }
    Ok(options)
}

fn session(port: u16, client: &str) -> Result<Vec<String>> {
    let mut peer = logged_in(port, DIRECTOR)?;
    peer.send(b"JobId=7 Job=b.2026-11-21_02.19.56_04 SDid=1 SDtime=2 Authorization=dummy\n")?;
    let job = peer.expect("2000 OK Job 15.0.3 ")?;
    // Behind the platform.
    let mut heard = vec![job.split_once(';').map_or("no semicolon", |(_, plugins)| plugins).to_owned()];
    for question in QUESTIONS {
        peer.send(question)?;
        loop {
            let frame = peer.receive()?;
            heard.push(normal::line(&frame, client));
            if !matches!(frame, Frame::Data(_)) {
                break;
            }
        }
    }
    peer.finish()?;
    heard.extend(peer.rest()?.iter().map(|frame| normal::line(frame, client)));
    Ok(heard)
}

#[test]
fn missing_plugins_are_reported_as_by_the_stock_daemon() -> Result<()> {
    let fd = Fd::under_test()?;
    let clients = [("under-no", fd), ("under-an", fd)];
    let options = options("no-plugins", clients)?.in_clear();
    let mut bed = Bed::prepare(options)?;
    let record = StockRecord::open("transcripts")?;
    let mut wrong = Vec::new();
    for (name, _) in clients {
        let client = bed.client(name)?;
        client.daemon().start()?;
        let said = session(client.port(), name)?;
        assert!(said.iter().any(|line| line.contains("lugin")) && said.len() > 20, "{said:#?}");
        wrong.extend(record.differences("missing plugins", name, &format!("{QUESTIONS:?}"), &said)?);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// A FileSet with a plugin, where the configured Plugin Directory is empty.
#[test]
fn a_missing_plugin_fails_the_job() -> Result<()> {
    let name = "under-an";
    let mut options = options("no-plugin", [(name, Fd::under_test()?)])?;
    let tree = options.folder.make("tree")?;
    fs::write(tree.join("file"), "saved or not").unwrap();
    let set = FileSet::new("Plugin", &["Signature = MD5"], &[&tree]);
    options.file_sets = vec![set.with("Plugin = \"bpipe:/nowhere:cat /etc/hostname:cat\"")];
    let bed = Bed::start(options)?;
    let job = bed.backup(name, "level=Full")?;
    let lines = job.log.lines().filter(|line| line.contains("Command plugin"));
    let lines: Vec<_> = lines.filter_map(|line| line.split_once("JobId").map(|(_, rest)| rest)).collect();
    let lines: Vec<_> = lines.iter().filter_map(|line| line.split_once(": ")).map(|(_, rest)| rest).collect();
    // As the stock daemon ends it, and with what it says.
    let [line] = lines.as_slice() else { panic!("{}", job.log) };
    assert!(line.contains("requested, but is not loaded"), "{line}");
    let told = [format!("{} {} files {line}", job.row.status, job.row.files)];
    let wrong = StockRecord::open("transcripts")?.differences("a missing plugin", "job", "bpipe:/nowhere", &told)?;
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// `FileSets` with plugins, `T` being a tree and `B` one without files.
const WISHES: [(&str, &str); 9] = [
    ("block", "Include { ; Options { ; Plugin = rot13 ; } ; File = T ; }"),
    (
        "one-block-of-two",
        "Include { ; Options { ; Plugin = rot13 ; WildFile = \"*.none\" ; } ; Options { ; Signature = MD5 ; } ; File = T ; }",
    ),
    (
        "two-blocks",
        "Include { ; Options { ; Plugin = rot13 ; WildFile = \"*.none\" ; } ; Options { ; Plugin = \"rot26:x\" ; } ; File = T ; }",
    ),
    ("no-files", "Include { ; Options { ; Plugin = rot13 ; } ; File = B ; }"),
    (
        "another-include",
        "Include { ; Options { ; Plugin = rot13 ; } ; File = B ; } ; Include { ; Options { ; Signature = MD5 ; } ; File = T ; }",
    ),
    (
        "later-include",
        "Include { ; Options { ; Signature = MD5 ; } ; File = B ; } ; Include { ; Options { ; Plugin = rot13 ; } ; File = T ; }",
    ),
    ("commands", "Include { ; File = B ; Plugin = \"nope:/x:y\" ; Plugin = \"nope2:/x:y\" ; }"),
    ("block-and-commands", "Include { ; Options { ; Plugin = rot13 ; } ; File = T ; Plugin = \"nope:/x:y\" ; }"),
    ("nothing", "Include { ; File = T ; }"),
];

/// A bed with these clients and the `FileSets` of [`WISHES`].
fn wishing_bed(clients: &[String], fd: Fd) -> Result<Bed> {
    let mut options = options("wishes", clients.iter().map(|name| (name.as_str(), fd)))?;
    options.every_message = true;
    let [tree, bare] = ["tree", "bare"].map(|name| options.folder.make(name));
    let (tree, bare) = (tree?, bare?);
    for name in ["one.txt", "two.txt", "three.txt"] {
        fs::write(tree.join(name), name).unwrap();
    }
    for directory in [&tree, &bare] {
        fs::create_dir(directory.join("sub")).unwrap();
        std::os::unix::fs::symlink("one.txt", directory.join("link")).unwrap();
    }
    let here = |line: &str| match line {
        "File = T" => format!("File = \"{}\"", tree.display()),
        "File = B" => format!("File = \"{}\"", bare.display()),
        line => line.to_owned(),
    };
    let set =
        |(name, text): (&str, &str)| FileSet { name: name.to_owned(), lines: text.split(" ; ").map(here).collect() };
    options.file_sets = WISHES.map(set).to_vec();
    Bed::start(options)
}

/// What a job and its estimate report about plugins, and how the job ended.
fn told_of_plugins(bed: &Bed, client: &str, set: &str, job: u32) -> Result<Vec<String>> {
    let result = bed.result(job)?;
    let estimate = bed.console(&[&format!("estimate listing job=backup-{client} fileset={set}")])?;
    let of_job = result.log.lines().filter(|line| line.contains(" JobId ") || line.contains("DE0031"));
    let of_job = of_job.filter(|line| line.contains("plugin") || line.contains("DE0031"));
    let said = estimate.lines().filter(|line| line.contains("plugin") || line.contains("stimate files"));
    let head = format!("{} {} files", result.row.status, result.row.files);
    let lines = of_job.filter_map(|line| line.split_once(": ")).map(|(_, line)| line).chain(said);
    Ok(std::iter::once(head.as_str()).chain(lines).map(str::to_owned).collect())
}

/// A daemon without a Plugin Directory, with an empty one, and with one that holds another plugin.
#[test]
fn a_file_set_with_plugins_fails_in_the_stock_daemon_s_words() -> Result<()> {
    let clients = ["no", "an", "bp"].map(|kind| format!("under-{kind}"));
    let mut bed = wishing_bed(&clients, Fd::under_test()?)?;
    let record = StockRecord::open("transcripts")?;
    let runs: Vec<_> =
        WISHES.iter().flat_map(|(set, lines)| clients.iter().map(move |name| (*set, *lines, name))).collect();
    let commands: Vec<_> =
        runs.iter().map(|(set, _, name)| format!("run job=backup-{name} fileset={set} level=Full yes")).collect();
    let jobs = bed.queue_all(&commands)?;
    // Told that a job has failed before it came to the Storage Daemon, that one takes up to two
    // minutes to give way.
    let is_early = |(set, _, name): &(&str, &str, &String)| set.ends_with("commands") && name.ends_with("-no");
    let (early, late): (Vec<_>, Vec<_>) = jobs.iter().zip(&runs).partition(|(_, run)| is_early(run));
    let numbers = |jobs: Vec<(&u32, _)>| jobs.into_iter().map(|(job, _)| *job).collect::<Vec<_>>();
    let early = numbers(early);
    bed.wait_for_reports(&numbers(late))?;
    bed.wait_for_messages(&early, "Bad response to Storage command")?;
    bed.storage().kill()?;
    bed.wait_for_reports(&early)?;
    let folder = bed.folder().display().to_string();
    let mut wrong = Vec::new();
    for ((set, lines, name), job) in runs.iter().zip(&jobs) {
        let told = told_of_plugins(&bed, name, set, *job)?;
        let told: Vec<_> = told.iter().map(|line| line.replace(&folder, "@")).collect();
        let is_plain = ["nothing", "no-files", "another-include"].contains(set);
        assert_eq!(told[0].starts_with('T'), is_plain, "{set} {name}: {told:#?}");
        let told = record.differences(&format!("{set} {name}"), "plugins", lines, &told)?;
        wrong.extend(told.into_iter().map(|text| format!("{set} {name}: {text}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
