//! What is reported about plugins where there are none: without a `Plugin Directory`, and with an
//! empty one.

use std::fs;

use bed::peer::{Frame, Peer, hello, key_of_password};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, FileSet, Plugins, Result};

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
    let mut peer = Peer::connect("FD", port)?;
    peer.send(hello(DIRECTOR).as_bytes())?;
    peer.log_in(&key_of_password(FD_PASSWORD), DIRECTOR)?;
    peer.expect("2000 OK Hello 15\n")?;
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
fn both_daemons_report_missing_plugins_alike() -> Result<()> {
    let clients = [
        ("refer-no", Fd::Stock),
        ("under-no", Fd::under_test()?),
        ("refer-an", Fd::Stock),
        ("under-an", Fd::under_test()?),
    ];
    let mut options = options("no-plugins", clients)?;
    options.tls_psk = false;
    let mut bed = Bed::prepare(options)?;
    let mut said = Vec::new();
    for (name, _) in clients {
        let client = bed.client(name)?;
        client.daemon().start()?;
        said.push(session(client.port(), name)?);
    }
    for pair in said.chunks(2) {
        let [stock, ours] = pair else { continue };
        assert!(stock.iter().any(|line| line.contains("lugin")) && stock.len() > 20, "{stock:#?}");
        let differ: Vec<_> = stock.iter().zip(ours).filter(|(stock, ours)| stock != ours).collect();
        assert!(differ.is_empty() && stock.len() == ours.len(), "{differ:#?}");
    }
    Ok(())
}

/// A FileSet with a plugin, where the configured Plugin Directory is empty.
#[test]
fn a_missing_plugin_fails_the_job() -> Result<()> {
    let clients = [("refer-an", Fd::Stock), ("under-an", Fd::under_test()?)];
    let mut options = options("no-plugin", clients)?;
    let tree = options.folder.make("tree")?;
    fs::write(tree.join("file"), "saved or not").unwrap();
    let mut set = FileSet::new("Plugin", &["Signature = MD5"], &[&tree]);
    set.lines.insert(set.lines.len() - 1, "Plugin = \"bpipe:/nowhere:cat /etc/hostname:cat\"".to_owned());
    options.file_sets = vec![set];
    let bed = Bed::start(options)?;
    let mut told = Vec::new();
    for (name, _) in clients {
        let job = bed.backup(name, "level=Full")?;
        let lines = job.log.lines().filter(|line| line.contains("Command plugin"));
        let lines: Vec<_> = lines.filter_map(|line| line.split_once("JobId").map(|(_, rest)| rest)).collect();
        let lines: Vec<_> = lines.iter().filter_map(|line| line.split_once(": ")).map(|(_, rest)| rest).collect();
        told.push(format!("{} {} files {lines:?}", job.row.status, job.row.files));
    }
    let [stock, ours] = told.as_slice() else { panic!("{told:?}") };
    assert!(stock.contains("requested, but is not loaded"), "{stock}");
    assert_eq!(stock, ours);
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
fn wishing_bed(clients: &[[(String, Fd); 2]]) -> Result<Bed> {
    let mut options = options("wishes", clients.iter().flatten().map(|(name, fd)| (name.as_str(), *fd)))?;
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
fn told_of_plugins(bed: &Bed, client: &str, set: &str, job: u32) -> Result<String> {
    let result = bed.result(job)?;
    let estimate = bed.console(&[&format!("estimate listing job=backup-{client} fileset={set}")])?;
    let of_job = result.log.lines().filter(|line| line.contains(" JobId ") || line.contains("DE0031"));
    let of_job = of_job.filter(|line| line.contains("plugin") || line.contains("DE0031"));
    let said = estimate.lines().filter(|line| line.contains("plugin") || line.contains("stimate files"));
    let head = format!("{} {} files", result.row.status, result.row.files);
    let lines = of_job.filter_map(|line| line.split_once(": ")).map(|(_, line)| line).chain(said);
    Ok(std::iter::once(head.as_str()).chain(lines).collect::<Vec<_>>().join("\n"))
}

/// Each daemon without a Plugin Directory, with an empty one, and with one that holds another
/// plugin.
#[test]
fn a_file_set_with_plugins_fails_in_the_stock_daemon_s_words() -> Result<()> {
    let fd = Fd::under_test()?;
    let clients = ["no", "an", "bp"].map(|kind| [(format!("refer-{kind}"), Fd::Stock), (format!("under-{kind}"), fd)]);
    let mut bed = wishing_bed(&clients)?;
    let mut wrong = Vec::new();
    let mut runs = Vec::new();
    for (set, _) in WISHES {
        runs.extend(clients.iter().flatten().map(|(name, _)| (set, name)));
    }
    let commands: Vec<_> =
        runs.iter().map(|(set, name)| format!("run job=backup-{name} fileset={set} level=Full yes")).collect();
    let jobs = bed.queue_all(&commands)?;
    // Told that a job has failed before it came to the Storage Daemon, that one takes up to two
    // minutes to give way.
    let is_early = |(set, name): &(&str, &String)| set.ends_with("commands") && name.ends_with("-no");
    let (early, late): (Vec<_>, Vec<_>) = jobs.iter().zip(&runs).partition(|(_, run)| is_early(run));
    let numbers = |jobs: Vec<(&u32, _)>| jobs.into_iter().map(|(job, _)| *job).collect::<Vec<_>>();
    let early = numbers(early);
    bed.wait_for_reports(&numbers(late))?;
    bed.wait_for_messages(&early, "Bad response to Storage command")?;
    bed.storage().kill()?;
    bed.wait_for_reports(&early)?;
    for ((set, _), jobs) in WISHES.iter().zip(jobs.chunks(clients.len() * 2)) {
        for (pair, jobs) in clients.iter().zip(jobs.chunks(2)) {
            let told = pair.iter().zip(jobs).map(|((name, _), job)| told_of_plugins(&bed, name, set, *job));
            let told = told.collect::<Result<Vec<_>>>()?;
            let [stock, ours] = told.as_slice() else { continue };
            let is_plain = ["nothing", "no-files", "another-include"].contains(set);
            assert_eq!(stock.starts_with('T'), is_plain, "{set} {}: {stock}", pair[0].0);
            if stock != ours {
                wrong.push(format!("{set}, {}:\n{stock}\n-- ours\n{ours}", pair[1].0));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}
