//! The plugin host: the process that has loaded a plugin and calls it for the daemon.
//!
//! One thread obeys the daemon's orders; each instance has a thread of its own, as in the stock
//! daemon, where a plugin is called by the job's thread (reference 07 §3.8). Addresses that come
//! from the plugin are followed here and nowhere else: a wrong one ends this process.
#![allow(unsafe_code, reason = "it calls functions of C and reads structures of C")]

mod calls;
mod companions;
mod confine;
mod convert;
mod exports;
mod fault;
mod functions;
mod group;
mod instance;
mod libbac;
mod line;
mod loader;
mod mapping;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use self::calls::Calls;
use self::instance::{GENERAL, Kept, Shared};
use self::line::{Line, print};
use self::loader::Loaded;
use super::orders;
use super::wire::{self, Bytes, Load, Order, Report};
use crate::texts;

/// The stack of a thread that calls the plugin, bytes: what a thread of the stock daemon has.
const STACK: usize = 8 << 20;

/// Runs a plugin host; returns its exit status. It ends with the daemon.
pub fn serve() -> u8 {
    match run() {
        Ok(()) => 0,
        Err(error) => {
            print(texts::host_failed(&error).as_bytes());
            1
        }
    }
}

fn run() -> io::Result<()> {
    fault::watch();
    libbac::survive_timers()?;
    group::end_with_the_daemon()?;
    let control = confine::take_control_line()?;
    let Some((bytes, _)) = orders::receive(control.as_fd())? else { return Ok(()) };
    let Ok(Order::Load(load)) = wire::decode(&bytes) else { return Err(io::ErrorKind::InvalidData.into()) };
    let loaded = match confine::confine(&load).map_err(Some).and_then(|()| begin(&load)) {
        Ok(loaded) => loaded,
        Err(why) => return report(&control, &Report::Refused(why.map(Bytes))),
    };
    report(&control, &Report::Loaded { version: Bytes(loaded.version.clone()), offers: loaded.offers() })?;
    loop {
        let Some((bytes, descriptors)) = orders::receive(control.as_fd())? else {
            // The daemon is gone.
            group::end();
            return Ok(());
        };
        let order = wire::decode(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let mut descriptors = descriptors.into_iter();
        match order {
            Order::Open(number) => {
                let (Some(line), Some(memory)) = (descriptors.next(), descriptors.next()) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                // The daemon sees that the line of this one is closed. The others go on.
                if let Err(error) = open(number, line, memory, &loaded, load.file.0.clone()) {
                    print(texts::host_failed(&error).as_bytes());
                }
            }
            Order::Cancel(number) => {
                let line = descriptors.next().ok_or(io::ErrorKind::InvalidData)?;
                if let Err(error) = cancel(number, line, &loaded) {
                    print(texts::host_failed(&error).as_bytes());
                }
            }
            Order::Become { uid, gid, groups, reads_all } => {
                let done = match confine::become_user(uid, gid, &groups, reads_all) {
                    Ok(()) => Report::Done,
                    Err(error) => Report::Refused(Some(Bytes(error.to_string().into_bytes()))),
                };
                report(&control, &done)?;
            }
            Order::Unload => {
                loaded.unload();
                return Ok(());
            }
            Order::Load(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn begin(load: &Load) -> Result<Loaded, Option<Vec<u8>>> {
    let general = load.general.iter().map(|(number, value)| (*number, Kept::from(value.clone()))).collect();
    GENERAL.get_or_init(|| general);
    Loaded::load(load)
}

fn report(control: &OwnedFd, report: &Report) -> io::Result<()> {
    let bytes = wire::encode_bare(report).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    orders::send(control.as_fd(), &bytes, &[])
}

/// Starts the thread of a new instance.
fn open(number: u64, line: OwnedFd, memory: OwnedFd, loaded: &Loaded, file: Vec<u8>) -> io::Result<()> {
    let shared = Shared::begin(number, &File::from(memory))?;
    let unused = Arc::clone(&shared);
    let functions = loaded.functions;
    let line = Line::new(UnixStream::from(line));
    let work = move || {
        shared.enter(line);
        fault::note_at(shared.memory.fault_mark());
        libbac::enter();
        // The daemon closes the line of an instance that it gives up.
        let _gone = Calls::new(Arc::clone(&shared), functions, file).serve();
        libbac::leave();
        shared.end();
        fault::note_at(std::ptr::null_mut());
        Shared::leave();
    };
    let thread = thread::Builder::new().name("instance".to_owned()).stack_size(STACK).spawn(work);
    thread.map(drop).inspect_err(|_| unused.end())
}

/// Starts the thread that tells an instance of a cancel.
fn cancel(number: u64, line: OwnedFd, loaded: &Loaded) -> io::Result<()> {
    // One that has just ended needs no telling.
    let Some(shared) = Shared::of_number(number) else { return Ok(()) };
    let functions = loaded.functions;
    let line = Line::new(UnixStream::from(line));
    let work = move || {
        shared.enter(line);
        fault::note_at(shared.memory.fault_mark());
        libbac::enter();
        calls::cancel(&shared, functions);
        libbac::leave();
        fault::note_at(std::ptr::null_mut());
        Shared::leave();
    };
    thread::Builder::new().name("cancel".to_owned()).stack_size(STACK).spawn(work).map(drop)
}
