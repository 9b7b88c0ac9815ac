//! A plugin that uses the distribution's library libbac, as those do that are made with the
//! daemon's own headers: threads, locks, timers and sockets of that library; and the distribution's
//! own `bpipe-fd.so`. Ours runs with the `/usr` of the distribution that the bed has unpacked,
//! because that library needs its libc.

use std::fs;
use std::net::TcpListener;

use bed::{Bed, BedOptions, ClientOptions, Fd, Plugins, Result, Root, StockRecord, build_plugin};

use crate::jobs::set;
use crate::stage::NAME;

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

/// What is wrong with the jobs.
pub(crate) fn wrong() -> Result<Vec<String>> {
    let mut client = ClientOptions::new(Fd::under_test()?).named(NAME);
    let root = Root::find()?;
    if client.fd == Fd::Ours {
        let (script, usr) = ("mount --bind \"$0\" /usr && exec \"$@\"", root.inside("usr"));
        client.wrapper = ["unshare", "--mount", "sh", "-c", script, &usr.to_string_lossy()].map(str::to_owned).to_vec();
    }
    client.settings.push("plugins.bpipe = \"library\"".to_owned());
    let mut options = BedOptions::new("libbac", [client])?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("lib", &[], &plugins.join("lib-fd.so"))?;
    fs::copy(root.inside("usr/lib/bacula/bpipe-fd.so"), plugins.join("bpipe-fd.so")).unwrap();
    options.clients[0].plugins = Plugins::In(plugins);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = |name| if name == "bpipe" { BPIPE.to_owned() } else { format!("lib:do={name},port={port}") };
    options.file_sets = SAID.map(|(name, _)| set(name, &[command(name)])).to_vec();
    let bed = Bed::start(options)?;
    let record = StockRecord::open("plugins")?;
    let mut wrong = Vec::new();
    for (set, said) in SAID {
        let job = bed.backup(NAME, &format!("fileset={set} level=Full"))?.must_be_good()?;
        let files = bed.catalog().files(job.row.id)?;
        let line = |path: &[u8], digest| format!("{} {digest:?}", path.escape_ascii());
        let saved: Vec<_> = files.iter().map(|file| line(&file.path, &file.digest)).collect();
        wrong.extend(record.differences("libbac", set, said, &saved)?);
        if !job.messages_of(&format!("{NAME}-fd")).iter().any(|line| line == said) {
            wrong.push(job.log);
        }
    }
    Ok(wrong)
}
