//! A file system as slow, or as faulty, as is wanted: it shows a folder, with a delay before each
//! operation.
//!
//! `slowfs [--delay-ms N] [--cache-seconds S] [--fault WHAT]… SOURCE MOUNTPOINT` stays in the
//! foreground and prints `ready` when it is mounted. It unmounts and ends with `SIGTERM`, `SIGINT`,
//! or when a pipe on its standard input ends. From that pipe it takes commands, one a line, each
//! answered with `ok`: `delay N`, `fault WHAT`, `clear` (no faults any more), `go` (what was held
//! is answered), `held` (answered when something is).
//!
//! Any number of operations wait at the same time, as with storage at the end of a long line. By
//! default the kernel remembers no name and no attribute, so each lookup pays. Inode numbers, link
//! counts and times are those of the source, so a backup of the mount is that of the source.
//!
//! A fault is `VERB[-OPERATION]:WORD`, for names that contain the word (all, if it is empty) and,
//! if an operation is named, only for that one (`lookup`, `getattr`, `open`, `read`, `readdir`, …):
//!
//! - `error` answers EIO, `unsupported` answers ENOTSUP. For `getxattr` and `setxattr` the name is
//!   `FILE@ATTRIBUTE`.
//! - `stop` does not answer until the command `go`.
//! - `short` ends reads in the middle of the file, whose size stays what it was; a write takes half
//!   of what it gets.
//! - `change` gives other bytes at each read.
//! - `fold` takes a name that is not there for one that differs in small and capital letters.
//!
//! `stop-after:N` stops after so many operations; `partial:N` answers reads with at most N bytes.
//!
//! A tool of tests and of the bench; not for data that anyone needs.

mod faults;
mod passthrough;
mod source;
mod timer;

use std::io::{self, BufRead as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, process, thread};

use clap::Parser;
use fuser::{Config, MountOption, Session, SessionACL};
use nix::mount::{MntFlags, umount2};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};

use faults::Faults;
use passthrough::SlowFs;
use source::Source;
use timer::Timer;

/// Threads that take requests from the kernel; without a delay they also answer them.
const RECEIVERS: usize = 4;

/// Mounts a folder elsewhere, slower.
#[derive(Debug, Parser)]
struct Arguments {
    /// Milliseconds before each operation; decimals are allowed.
    #[arg(long, default_value_t = 0.0)]
    delay_ms: f64,
    /// How long the kernel may remember names and attributes.
    #[arg(long, default_value_t = 0.0)]
    cache_seconds: f64,
    /// What goes wrong: `VERB[-OPERATION]:WORD`.
    #[arg(long)]
    fault: Vec<String>,
    /// What is shown.
    source: PathBuf,
    /// Where it is shown.
    mountpoint: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("slowfs: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<()> {
    // Before any thread: each has them blocked, and one waits for them.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    signals.thread_block()?;
    umask(Mode::empty());
    // Each open file is one here, too.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;

    let faults = Arc::new(Faults::default());
    arguments.fault.iter().try_for_each(|fault| faults.add(fault))?;
    let timer = Arc::new(Timer::new(delay(arguments.delay_ms)?)?);
    let cached = Duration::try_from_secs_f64(arguments.cache_seconds).map_err(io::Error::other)?;
    let source = Arc::new(Source::open(&arguments.source, cached, Arc::clone(&faults))?);
    let system = SlowFs::new(source, Arc::clone(&timer), Arc::clone(&faults));

    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("slowfs".to_owned()),
        MountOption::Subtype("slowfs".to_owned()),
        MountOption::Dev,
        MountOption::Suid,
    ];
    config.acl = SessionACL::All;
    config.n_threads = Some(RECEIVERS);
    let session = Session::new(system, &arguments.mountpoint, &config)?;
    let mountpoint = arguments.mountpoint.canonicalize()?;
    let serving = session.spawn()?;
    say("ready");

    let at_end = mountpoint.clone();
    if fs::metadata("/proc/self/fd/0").is_ok_and(|input| input.file_type().is_fifo()) {
        thread::spawn(move || {
            take_commands(&timer, &faults);
            end(&at_end);
        });
    }
    thread::spawn(move || {
        let _ = signals.wait();
        end(&mountpoint);
    });
    // Another program may unmount it, too.
    serving.join()
}

/// Unmounts, whether it is in use or not, and ends: the kernel then fails what is not answered.
fn end(mountpoint: &Path) {
    let code = i32::from(umount2(mountpoint, MntFlags::MNT_DETACH).is_err());
    #[expect(clippy::exit, reason = "operations that are held have threads that never end")]
    process::exit(code)
}

fn take_commands(timer: &Timer, faults: &Faults) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let (verb, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let done = match verb {
            "delay" => argument.parse().map_err(io::Error::other).and_then(delay).map(|delay| timer.set_delay(delay)),
            "fault" => faults.add(argument),
            "clear" => {
                faults.clear();
                Ok(())
            }
            "go" => {
                faults.release();
                Ok(())
            }
            "held" => {
                faults.wait_until_held();
                Ok(())
            }
            _ => Err(io::Error::other("no such command")),
        };
        say(&done.map_or_else(|error| format!("{line}: {error}"), |()| "ok".to_owned()));
    }
}

fn delay(milliseconds: f64) -> io::Result<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1000.0).map_err(io::Error::other)
}

/// For who started it; that one may have gone.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
