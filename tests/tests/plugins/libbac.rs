//! A plugin that uses the distribution's library libbac, in the stock daemon: what a plugin host
//! has to give it, too (`fd-plugins/tests/library/debian.rs`; on a host with another libc that
//! library can be loaded only there).

use std::net::TcpListener;

use bed::{Bed, BedOptions, ClientOptions, Fd, Plugins, Result, build_plugin};

use crate::jobs::{CLIENT, run_all, set};

/// What the plugin says it has done, by the FileSet's name.
const SAID: [(&str, &str); 4] = [
    ("thread", "a thread"),
    ("lock", "a thread"),
    ("timer", "wait: Interrupted system call"),
    ("socket", "connected: 1"),
];

pub(crate) fn wrong() -> Result<Vec<String>> {
    let mut options = BedOptions::new("libbac", [ClientOptions::new(Fd::Stock).named(CLIENT)])?;
    let plugins = options.folder.make("plugins")?;
    build_plugin("lib", &[], &plugins.join("lib-fd.so"))?;
    options.clients[0].plugins = Plugins::In(plugins);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    options.file_sets = SAID.map(|(name, _)| set(name, &[format!("lib:do={name},port={port}")])).to_vec();
    let bed = Bed::start(options)?;
    let jobs = run_all(&bed, &SAID.map(|(name, _)| name.to_owned()))?;
    let is_wrong = |((_, said), job): (&(&str, &str), &bed::JobResult)| {
        let is_right = job.row.status == 'T' && job.log.contains(&format!("lib: {said}"));
        (!is_right).then(|| job.log.clone())
    };
    Ok(SAID.iter().zip(&jobs).filter_map(is_wrong).collect())
}
