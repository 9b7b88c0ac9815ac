//! Two hundred requests for the status while ten jobs run.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bed::peer::{EOD, Frame, director_session};
use bed::{Bed, BedOptions, ClientOptions, Fd, FileSet, Noise, Result, fifo_writer, make_fifo};

const SESSIONS: usize = 200;
const JOBS: usize = 10;
const PIECE: usize = 65_536;
/// As much as one job is given.
const MOST: u64 = 16 << 20;

fn stage(fd: Fd) -> Result<(Bed, Vec<PathBuf>)> {
    let mut client = ClientOptions::new(fd).named("test");
    client.file_daemon = vec!["Maximum Concurrent Jobs = 250".to_owned()];
    client.job = vec!["Maximum Concurrent Jobs = 20".to_owned()];
    let mut options = BedOptions::new("sessions", [client])?.in_clear();
    options.device = vec!["Maximum Concurrent Jobs = 20".to_owned()];
    let fifos: Vec<PathBuf> = (0..JOBS).map(|number| options.folder.path().join(format!("fifo{number}"))).collect();
    for (number, fifo) in fifos.iter().enumerate() {
        make_fifo(fifo)?;
        let options_of_set = ["Signature = MD5", "ReadFifo = yes"];
        options.file_sets.push(FileSet::new(&format!("fifo{number}"), &options_of_set, &[fifo]));
    }
    Ok((Bed::start(options)?, fifos))
}

/// Logs in, waits until all the others have, asks, and counts the running jobs in the answer.
fn ask(port: u16, all: &Barrier) -> Result<usize> {
    let session = director_session(port, 0);
    all.wait();
    let mut peer = session?;
    peer.send(b"status")?;
    let mut text = Vec::new();
    loop {
        match peer.receive()? {
            Frame::Data(bytes) => text.extend(bytes),
            Frame::Signal(EOD) => break,
            other => panic!("expected the status, got {other:?}"),
        }
    }
    Ok(String::from_utf8_lossy(&text).matches(" is running.").count())
}

/// The jobs read FIFOs, which are written for as long as there are sessions.
#[test]
fn two_hundred_status_requests_are_answered_while_ten_jobs_run() -> Result<()> {
    let (mut bed, fifos) = stage(Fd::under_test()?)?;
    let port = bed.client("test")?.port();
    let run = |number| format!("run job=backup-test fileset=fifo{number} yes");
    let jobs = bed.queue_all(&(0..JOBS).map(run).collect::<Vec<_>>())?;
    let writers: Vec<File> = fifos.iter().map(|fifo| fifo_writer(fifo)).collect::<Result<_>>()?;
    let enough = AtomicBool::new(false);
    let feed = |(seed, mut file): (u64, File)| {
        let mut noise = Noise::new(seed);
        let mut size = 0;
        while !enough.load(Ordering::Relaxed) && size < MOST {
            file.write_all(&noise.bytes(PIECE)).unwrap();
            size += PIECE as u64;
        }
        // Closed when all have been answered.
        (file, size)
    };
    let (feed, all) = (&feed, &Barrier::new(SESSIONS));
    let (shown, sizes) = thread::scope(|scope| {
        let feeding: Vec<_> = (0..).zip(writers).map(|pair| scope.spawn(move || feed(pair))).collect();
        let asking: Vec<_> = (0..SESSIONS).map(|_| scope.spawn(move || ask(port, all))).collect();
        let shown: Vec<Result<usize>> = asking.into_iter().map(|asking| asking.join().unwrap()).collect();
        enough.store(true, Ordering::Relaxed);
        let sizes: Vec<u64> = feeding.into_iter().map(|feeding| feeding.join().unwrap().1).collect();
        (shown, sizes)
    });
    for (job, size) in jobs.into_iter().zip(sizes) {
        let result = bed.wait(job)?.must_be_good()?;
        assert_eq!((result.row.files, result.row.read_bytes), (1, size), "{}", result.log);
    }
    let shown = shown.into_iter().collect::<Result<Vec<_>>>()?;
    assert_eq!(shown, [JOBS; SESSIONS]);
    Ok(())
}
