//! What is said of plugins where there are none: without a `Plugin Directory`, and with an empty one. Here nothing about
//! plugins is left out of the comparison, as it is elsewhere because the stock daemon of the bed has one. A FileSet that wants a plugin is another matter
//! (docs/limits.md).

use std::fs;

use bed::peer::{Frame, Peer, hello, key_of_password};
use bed::{Bed, BedOptions, ClientOptions, DIRECTOR, FD_PASSWORD, Fd, Result};

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
            heard.extend(told(&frame, client));
            if !matches!(frame, Frame::Data(_)) {
                break;
            }
        }
    }
    peer.finish()?;
    heard.extend(peer.rest()?.iter().filter_map(|frame| told(frame, client)));
    Ok(heard)
}

/// The whole frame where it tells of plugins, else as everywhere.
fn told(frame: &Frame, client: &str) -> Option<String> {
    let Frame::Data(payload) = frame else { return normal::line(frame, client) };
    let text = String::from_utf8_lossy(payload).replace(client, "CLIENT");
    let plugins: Vec<_> = text.split(['\n', ',']).filter(|part| part.to_lowercase().contains("plugin")).collect();
    // The time of a message stands before its text.
    let plugins = plugins.iter().map(|part| part.rsplit("CLIENT-fd").next().unwrap_or_default()).collect::<Vec<_>>();
    if plugins.is_empty() { normal::line(frame, client) } else { Some(format!("{plugins:?}")) }
}

#[test]
fn where_there_are_no_plugins_both_say_so_alike() -> Result<()> {
    let clients = [
        ("refer-no", Fd::Stock),
        ("under-no", Fd::under_test()?),
        ("refer-an", Fd::Stock),
        ("under-an", Fd::under_test()?),
    ];
    let mut options = BedOptions::new("no-plugins", clients.map(|(name, fd)| ClientOptions::new(fd).named(name)))?;
    options.tls_psk = false;
    let empty = options.folder.make("plugins")?;
    let mut bed = Bed::prepare(options)?;
    let mut ports = Vec::new();
    for (name, _) in clients {
        let client = bed.client(name)?;
        let text = fs::read_to_string(&client.config).unwrap();
        let directory = |line: &str| line.starts_with("Plugin Directory = ");
        assert_eq!(text.lines().filter(|line| directory(line)).count(), 1, "{text}");
        let put = if name.ends_with("-no") { String::new() } else { format!("Plugin Directory = {}", empty.display()) };
        let lines: Vec<_> = text.lines().map(|line| if directory(line) { put.as_str() } else { line }).collect();
        fs::write(&client.config, lines.join("\n")).unwrap();
        client.daemon().start()?;
        ports.push((client.port(), name));
    }
    let mut said = Vec::new();
    for (port, name) in ports {
        said.push(session(port, name)?);
    }
    for pair in said.chunks(2) {
        let [stock, ours] = pair else { continue };
        assert!(stock.iter().any(|line| line.contains("lugin")) && stock.len() > 20, "{stock:#?}");
        let differ: Vec<_> = stock.iter().zip(ours).filter(|(stock, ours)| stock != ours).collect();
        assert!(differ.is_empty() && stock.len() == ours.len(), "{differ:#?}");
    }
    Ok(())
}
