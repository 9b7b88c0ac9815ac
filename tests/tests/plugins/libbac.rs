//! A plugin that uses the distribution's library libbac, as those do that are made with the
//! daemon's own headers: threads, locks, timers and sockets of that library; and the distribution's
//! own `bpipe-fd.so`. Ours runs with the `/usr` of the distribution that the bed has unpacked,
//! because that library needs its libc.

use std::fs;
use std::net::TcpListener;

use bed::{Bed, BedOptions, ClientOptions, Fd, Plugins, Result, Root, build_plugin};

use crate::jobs::set;
use crate::stage::NAMES;

/// What the plugin says in the job's log, by the FileSet's name.
const SAID: [(&str, &str); 5] = [
    ("thread", "Warning: lib: a thread"),
    ("lock", "Warning: lib: a thread"),
    ("timer", "Warning: lib: wait: Interrupted system call"),
    ("socket", "Warning: lib: connected: 1"),
    ("bpipe", "/@bpipe/numbers: to standard error"),
];
/// The command of the last one.
const BPIPE: &str = "bpipe:/@bpipe/numbers:sh -c 'seq 100000; echo to standard error >&2':cat >%w/numbers";

/// What is wrong with the jobs of both daemons.
pub(crate) fn wrong() -> Result<Vec<String>> {
    let daemons = [Fd::Stock, Fd::under_test()?];
    let clients = daemons.into_iter().zip(NAMES).map(|(fd, name)| ClientOptions::new(fd).named(name));
    let mut options = BedOptions::new("libbac", clients)?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("lib", &[], &plugins.join("lib-fd.so"))?;
    let root = Root::find()?;
    fs::copy(root.inside("usr/lib/bacula/bpipe-fd.so"), plugins.join("bpipe-fd.so")).unwrap();
    let usr = root.inside("usr").to_string_lossy().into_owned();
    for client in &mut options.clients {
        client.plugins = Plugins::In(plugins.clone());
        client.settings.push("plugins.bpipe = \"library\"".to_owned());
        if client.fd == Fd::Ours {
            let script = "mount --bind \"$0\" /usr && exec \"$@\"";
            client.wrapper = ["unshare", "--mount", "sh", "-c", script, &usr].map(str::to_owned).to_vec();
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = |name| if name == "bpipe" { BPIPE.to_owned() } else { format!("lib:do={name},port={port}") };
    options.file_sets = SAID.map(|(name, _)| set(name, &[command(name)])).to_vec();
    let bed = Bed::start(options)?;
    let mut wrong = Vec::new();
    for (set, said) in SAID {
        let commands = NAMES.map(|client| format!("run job=backup-{client} fileset={set} level=Full yes"));
        let jobs = bed.queue_all(&commands)?;
        bed.wait_for_reports(&jobs)?;
        let mut saved = Vec::new();
        for (job, client) in jobs.into_iter().zip(NAMES) {
            let files = bed.catalog().files(job)?;
            saved.push(files.into_iter().map(|file| (file.path, file.digest)).collect::<Vec<_>>());
            let job = bed.result(job)?;
            let is_said = job.messages_of(&format!("{client}-fd")).iter().any(|line| line == said);
            if job.row.status != 'T' || !is_said {
                wrong.push(job.log);
            }
        }
        if saved[0].is_empty() || saved[0] != saved[1] {
            wrong.push(format!("{set}: {saved:?}"));
        }
    }
    Ok(wrong)
}
