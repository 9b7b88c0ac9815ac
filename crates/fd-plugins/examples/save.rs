//! Loads a plugin in a plugin host and saves what a command makes, without any daemon: for those
//! who write plugins. `cargo run -p fd-plugins --example save -- ./my-fd.so my:command` prints what
//! the plugin says, and the names and lengths of its files.

#![allow(clippy::print_stdout, reason = "it is a program that prints")]

use std::error::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fd_messages::MessageType;
use fd_plugins::library::{self, Confinement, HostSettings, Library};
use fd_plugins::{Event, Host, Io, JobFacts, Plugin as _, SavePacket, Status, Value, Variable};

/// A daemon that has one job, a Full.
#[derive(Debug)]
struct Printer {
    allowed: Vec<Vec<u8>>,
}

impl JobFacts for Printer {
    fn value(&self, variable: Variable) -> Option<Value> {
        Some(match variable {
            Variable::JobId => Value::Number(1),
            Variable::Level => Value::Number(i32::from(b'F')),
            Variable::Type => Value::Number(i32::from(b'B')),
            _ => return None,
        })
    }

    fn is_canceled(&self) -> bool {
        false
    }

    fn allowed_programs(&self) -> &[Vec<u8>] {
        &self.allowed
    }

    fn debug(&self, level: i32, text: &[u8]) {
        println!("debug {level}: {}", String::from_utf8_lossy(text).trim_end());
    }
}

impl Host for Printer {
    fn facts(&self) -> &dyn JobFacts {
        self
    }

    fn message(&mut self, kind: MessageType, text: &[u8]) {
        println!("{kind:?}: {}", String::from_utf8_lossy(text).trim_end());
    }
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if library::is_meant(&arguments) {
        return ExitCode::from(library::serve());
    }
    let saved = match arguments.as_slice() {
        [_, path, command, allowed @ ..] => save(Path::new(path), command, allowed),
        _ => Err("arguments: a plugin, a command, and directories of programs that it may run".into()),
    };
    match saved {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn save(path: &Path, command: &OsString, allowed: &[OsString]) -> Result<(), Box<dyn Error>> {
    let settings = HostSettings {
        program: fd_os::process::own_program(),
        daemon: b"example-fd".to_vec(),
        working_directory: b"/tmp".to_vec(),
        general: vec![(Variable::WorkingDir, Value::Text(Some(b"/tmp".to_vec())))],
        grace: HostSettings::GRACE,
        output: Arc::new(|_, line| println!("printed: {}", String::from_utf8_lossy(line))),
    };
    let plugin = Library::load(path, settings, Confinement::default())
        .map_err(|why| String::from_utf8_lossy(&why.unwrap_or_default()).into_owned())?;
    println!("{} version {}", path.display(), String::from_utf8_lossy(&plugin.info().version));
    let mut host = Printer { allowed: allowed.iter().map(|path| path.as_bytes().to_vec()).collect() };
    let (mut instance, status) = plugin.begin(&mut host)?;
    if !status.is_ok() {
        return Err(format!("newPlugin: {status:?}").into());
    }
    for event in [Event::JobStart(b"JobId=1 Job=example"), Event::Level(b'F'), Event::StartBackupJob] {
        instance.event(&mut host, &event)?;
    }
    let command = command.as_bytes();
    if !instance.event(&mut host, &Event::BackupCommand(command))?.is_ok() {
        return Err("the plugin refuses the command".into());
    }
    loop {
        let mut file = SavePacket::empty();
        if !instance.start_backup_file(&mut host, command, true, &mut file)?.is_ok() {
            break;
        }
        let name = file.name.or(file.object.name).unwrap_or_default();
        let mut length = file.object.data.len();
        if !file.no_read && file.object.data.is_empty() {
            let opened = instance.io(&mut host, Io::Open { name: &name, flags: 0, mode: 0 })?;
            let mut buffer = vec![0; 65_536];
            let mut goes_on = opened.status >= 0;
            while goes_on {
                let read = instance.io(&mut host, Io::Read { buffer: &mut buffer })?;
                let count = usize::try_from(read.status).unwrap_or_default();
                length += count;
                goes_on = count > 0;
            }
            instance.io(&mut host, Io::Close)?;
        }
        println!("type {}, {length} bytes: {}", file.file_type, String::from_utf8_lossy(&name));
        if instance.end_backup_file(&mut host)? != Status::More {
            break;
        }
    }
    for event in [Event::EndBackupJob, Event::JobEnd] {
        instance.event(&mut host, &event)?;
    }
    Ok(instance.end(&mut host)?)
}
