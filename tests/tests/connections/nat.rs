//! Clients behind a router that lets no call in, and that forgets connections: each File Daemon in
//! a network namespace of its own, from which ways lead out to the Director and the Storage Daemon.
//!
//! A way forgets like a firewall whose entry is gone: what is sent is lost for a moment, the far
//! end is not notified, and a daemon that sends on later gets a reset.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use bed::{
    Bed, BedError, BedOptions, ClientOptions, Fd, FileSet, Folder, Noise, PATIENCE, Process, ReservedPort, Result,
    argv, fd_argv, fifo_writer, make_fifo, measure_tree, run, wait_for,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::geteuid;

use super::{CLIENTS, back_up_and_restore, fill, wait_until_registered};

/// What happens first in a namespace. The keepalive interval of TCP on an idle connection is not
/// set by the daemons.
const PREPARE: &str =
    "ip link set lo up && echo 1 >/proc/sys/net/ipv4/tcp_keepalive_intvl && echo up; exec sleep infinity";

/// Data that fills a block on the volume.
const BLOCK: usize = 65_536;

/// A network namespace with a loopback of its own.
struct Inside {
    holder: Process,
}

impl Inside {
    /// `None` where this is not allowed.
    fn new(folder: &Folder) -> Result<Option<Self>> {
        let out = folder.path().join("namespace");
        if !geteuid().is_root() || !run(&argv(["unshare", "-n", "true"]), b"")?.status.success() {
            return Ok(None);
        }
        let words = argv(["unshare", "-n", "sh", "-c", PREPARE]);
        let holder = Process::start("namespace", &words, &out)?;
        wait_for("the namespace", PATIENCE, || {
            Ok(if holder.output().contains("up") { Ok(()) } else { Err(holder.output()) })
        })?;
        fs::remove_file(&out).unwrap();
        Ok(Some(Self { holder }))
    }

    fn network(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.pid())
    }

    /// The command line of what is to run inside.
    fn within(&self, words: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
        argv(["nsenter".to_owned(), format!("--net={}", self.network())]).into_iter().chain(words).collect()
    }

    fn loopback(&self, state: &str) -> Result<()> {
        let done = run(&self.within(argv(["ip", "link", "set", "lo", state])), b"")?;
        assert!(done.status.success(), "{}", done.text());
        Ok(())
    }

    /// Packets that have gone over its loopback.
    fn packets(&self) -> u64 {
        let table = fs::read_to_string(format!("/proc/{}/net/dev", self.holder.pid())).unwrap();
        let line = table.lines().find(|line| line.trim_start().starts_with("lo:")).unwrap();
        line.split_ascii_whitespace().nth(2).unwrap().parse().unwrap()
    }

    /// Packets go both ways although neither side has anything to send.
    fn must_be_kept_warm(&self) -> Result<()> {
        let before = self.packets();
        wait_for("packets on an idle line", PATIENCE, || {
            let now = self.packets();
            Ok(if now >= before + 10 { Ok(()) } else { Err(format!("{before}, then {now}")) })
        })
    }

    /// A way from a port inside to the same port outside.
    fn way(&self, port: u16) -> Result<Way> {
        let network = fs::File::open(self.network()).unwrap();
        let enter = move || -> Result<TcpListener> {
            setns(network, CloneFlags::CLONE_NEWNET).map_err(|source| BedError::System { what: "setns", source })?;
            Ok(TcpListener::bind(("127.0.0.1", port)).unwrap())
        };
        // The thread stays inside, so it is one that ends; the socket that it made stays inside,
        // too.
        let listener = thread::spawn(enter).join().unwrap()?;
        let way = Way::default();
        let lines = Arc::clone(&way.lines);
        thread::spawn(move || {
            for inner in listener.incoming().map_while(std::io::Result::ok) {
                let Ok(outer) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                lines.lock().unwrap().push(Line::new(inner, outer));
            }
        });
        Ok(way)
    }
}

/// A port inside that leads out, and the lines that are open.
#[derive(Default)]
struct Way {
    lines: Arc<Mutex<Vec<Line>>>,
}

impl Way {
    /// All connections are dropped; neither end inside is notified.
    fn forget(&self, inside: &Inside) -> Result<()> {
        inside.loopback("down")?;
        for line in self.lines.lock().unwrap().drain(..) {
            line.vanish();
        }
        inside.loopback("up")
    }
}

struct Line {
    inner: Arc<TcpStream>,
    outer: Arc<TcpStream>,
    passing: [JoinHandle<()>; 2],
}

impl Line {
    fn new(inner: TcpStream, outer: TcpStream) -> Self {
        let (inner, outer) = (Arc::new(inner), Arc::new(outer));
        let pass = |from: &Arc<TcpStream>, to: &Arc<TcpStream>| {
            let (from, to) = (Arc::clone(from), Arc::clone(to));
            thread::spawn(move || {
                let mut buffer = vec![0; 65_536];
                while let Ok(count @ 1..) = (&*from).read(&mut buffer) {
                    if (&*to).write_all(buffer.get(..count).unwrap_or_default()).is_err() {
                        return;
                    }
                }
                // The other side may be gone already.
                let _gone = to.shutdown(Shutdown::Write);
            })
        };
        let passing = [pass(&inner, &outer), pass(&outer, &inner)];
        Self { inner, outer, passing }
    }

    /// Closed without a good-bye; what the system still says of it is lost, because the loopback is
    /// down.
    fn vanish(self) {
        let abort = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&*self.inner, sockopt::Linger, &abort).unwrap();
        // Either may have been closed by its peer before.
        let _closed = (self.inner.shutdown(Shutdown::Read), self.outer.shutdown(Shutdown::Both));
        for passing in self.passing {
            passing.join().unwrap();
        }
    }
}

/// A client and its surroundings.
struct Behind {
    inside: Inside,
    director: Way,
    storage: Way,
    _daemon: Process,
}

/// A bed whose clients nobody can call. `None` where namespaces are not allowed.
fn stage(mut options: BedOptions) -> Result<Option<(Bed, Vec<Behind>)>> {
    let nowhere = ReservedPort::new()?;
    for client in &mut options.clients {
        client.director_port = Some(nowhere.number());
        client.dir_client = vec!["Allow FD Connections = yes".to_owned()];
        client.file_daemon.push("Heartbeat Interval = 1".to_owned());
        client.fd_director = ["Connect To Director = yes", "Address = 127.0.0.1", "DIR Port = @director-port@"]
            .map(ToOwned::to_owned)
            .to_vec();
    }
    let mut insides = Vec::new();
    for _client in CLIENTS {
        let Some(inside) = Inside::new(&options.folder)? else { return Ok(None) };
        insides.push(inside);
    }
    let mut bed = Bed::prepare(options)?;
    bed.storage().start()?;
    bed.director().start()?;
    let (director, storage) = (bed.director().port(), bed.storage().port());
    let mut behind = Vec::new();
    for (name, inside) in CLIENTS.into_iter().zip(insides) {
        let ways = (inside.way(director)?, inside.way(storage)?);
        let client = bed.client(name)?;
        let (fd, config) = (client.options.fd, client.config.clone());
        let words = fd_argv(bed.root(), fd, ["-c".as_ref(), config.as_os_str(), "-f".as_ref()])?;
        let output = bed.folder().join(format!("log/{name}.out"));
        let daemon = Process::start(name, &inside.within(words), &output)?;
        behind.push(Behind { inside, director: ways.0, storage: ways.1, _daemon: daemon });
    }
    for client in CLIENTS {
        wait_until_registered(&bed, client)?;
    }
    Ok(Some((bed, behind)))
}

#[test]
fn a_client_behind_a_router_is_backed_up_and_reconnects_when_dropped() -> Result<()> {
    let options = BedOptions::side_by_side("nat")?;
    fill(&options)?;
    let Some((bed, behind)) = stage(options)? else {
        return skip::test("no network namespaces here, or not for this user");
    };
    back_up_and_restore(&bed)?;
    skip::when!(Fd::under_test()? == Fd::Stock, bed::ONLY_OURS);
    // The connection that waits for the Director to use it.
    behind[1].inside.must_be_kept_warm()?;
    for client in &behind {
        client.director.forget(&client.inside)?;
    }
    wait_until_registered(&bed, "test")?;
    bed.backup("test", "")?.must_be_good()?;
    // The stock daemon has not noticed yet that its connection was dropped.
    let lost = bed.console(&["status client=reference-fd"])?;
    assert!(!lost.contains("Daemon started "), "{lost}");
    Ok(())
}

#[test]
fn a_job_whose_connection_the_router_drops_ends_with_one_message() -> Result<()> {
    let clients = CLIENTS.into_iter().zip([Fd::Stock, Fd::under_test()?]);
    let mut options = BedOptions::new("forgotten", clients.map(|(name, fd)| ClientOptions::new(fd).named(name)))?;
    for client in CLIENTS {
        let fifo = options.folder.path().join(client);
        make_fifo(&fifo)?;
        options.file_sets.push(FileSet::new(client, &["Signature = MD5", "ReadFifo = yes"], &[&fifo]));
    }
    let Some((bed, behind)) = stage(options)? else {
        return skip::test("no network namespaces here, or not for this user");
    };
    let mut said = Vec::new();
    for (client, behind) in CLIENTS.into_iter().zip(&behind) {
        let job = bed.queue(&format!("run job=backup-{client} fileset={client} yes"))?;
        let mut fifo = fifo_writer(&bed.folder().join(client))?;
        fifo.write_all(&Noise::new(1).bytes(64 * BLOCK)).unwrap();
        fcntl(&fifo, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        // What waits for its place on the volume is data, and no longer the Storage Daemon's word
        // that it may come: ours reads ahead of that.
        let volumes = bed.folder().join("volumes").join(client);
        wait_for("data on the volume", PATIENCE, || {
            let size = measure_tree(&volumes)?.1;
            Ok(if size > BLOCK as u64 { Ok(()) } else { Err(format!("{size} bytes")) })
        })?;
        // Neither side has anything to send, and yet the router sees that the connection is in use.
        behind.inside.must_be_kept_warm()?;
        behind.storage.forget(&behind.inside)?;
        // The system still takes data for a connection that is gone. Only what is sent later ends
        // the job, so there has to be more until then.
        wait_for("the daemon to close the FIFO", PATIENCE, || {
            let written = fifo.write_all(&Noise::new(2).bytes(BLOCK));
            let is_closed = written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
            Ok(if is_closed { Ok(()) } else { Err(format!("{written:?}")) })
        })?;
        drop(fifo);
        let result = bed.wait(job)?;
        println!("{client}: {}\n{}", result.row.status, result.log);
        said.push((result.row.status, result.messages_of(&format!("{client}-fd"))));
    }
    let [stock, ours] = said.as_slice() else { panic!("two sides, not {}", said.len()) };
    assert_eq!(stock.0, ours.0);
    let fatal: Vec<&String> = ours.1.iter().filter(|line| line.starts_with("Fatal error: ")).collect();
    assert_eq!(fatal.len(), 1, "{ours:?}");
    assert!(fatal[0].contains("Network send error to SD. ERR="), "{fatal:?}");
    Ok(())
}
