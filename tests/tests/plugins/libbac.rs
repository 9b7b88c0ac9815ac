//! A plugin that uses the distribution's library libbac, as those do that are made with the
//! daemon's own headers: threads, locks, timers and sockets of that library. Ours runs with the
//! `/usr` of the distribution that the bed has unpacked, because that library needs its libc.

use std::net::TcpListener;

use bed::{Bed, BedOptions, ClientOptions, Fd, Plugins, Result, Root, build_plugin};

use crate::jobs::set;
use crate::stage::NAMES;

/// What the plugin says it has done, by the FileSet's name.
const SAID: [(&str, &str); 4] = [
    ("thread", "a thread"),
    ("lock", "a thread"),
    ("timer", "wait: Interrupted system call"),
    ("socket", "connected: 1"),
];

/// What is wrong with the jobs of both daemons.
pub(crate) fn wrong() -> Result<Vec<String>> {
    let daemons = [Fd::Stock, Fd::under_test()?];
    let clients = daemons.into_iter().zip(NAMES).map(|(fd, name)| ClientOptions::new(fd).named(name));
    let mut options = BedOptions::new("libbac", clients)?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("lib", &[], &plugins.join("lib-fd.so"))?;
    let usr = Root::find()?.inside("usr").to_string_lossy().into_owned();
    for client in &mut options.clients {
        client.plugins = Plugins::In(plugins.clone());
        if client.fd == Fd::Ours {
            let script = "mount --bind \"$0\" /usr && exec \"$@\"";
            client.wrapper = ["unshare", "--mount", "sh", "-c", script, &usr].map(str::to_owned).to_vec();
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    options.file_sets = SAID.map(|(name, _)| set(name, &[format!("lib:do={name},port={port}")])).to_vec();
    let bed = Bed::start(options)?;
    let rows: Vec<_> = NAMES.iter().flat_map(|client| SAID.map(|(set, said)| (client, set, said))).collect();
    let command = |(client, set, _): &(&&str, _, _)| format!("run job=backup-{client} fileset={set} level=Full yes");
    let jobs = bed.queue_all(&rows.iter().map(command).collect::<Vec<_>>())?;
    bed.wait_for_reports(&jobs)?;
    let mut wrong = Vec::new();
    for (job, (client, _, said)) in jobs.into_iter().zip(rows) {
        let job = bed.result(job)?;
        if job.row.status != 'T' || !job.messages_of(&format!("{client}-fd")).contains(&format!("Warning: lib: {said}"))
        {
            wrong.push(job.log);
        }
    }
    Ok(wrong)
}
