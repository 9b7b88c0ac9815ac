//! A plugin in a plugin host, as the daemon calls it.
//!
//! - `calls`: an instance, and how its functions are called;
//! - `instance`: the functions;
//! - `data`: reading and writing;
//! - `link`: a line to the plugin host; `service`: what the daemon does for the plugin meanwhile;
//! - `limits`: how long a call may take;
//! - `cancel`: the cancel event.

mod calls;
mod cancel;
mod data;
mod instance;
mod limits;
mod link;
mod service;

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fd_os::lock::Mutex;

use self::calls::RemoteInstance;
use super::process::{NotLoaded, Process};
use super::settings::{Confinement, HostSettings};
use super::wire::{Begin, Call};
use crate::api::call::{Called, Gone, Status};
use crate::api::host::{Host, Variable};
use crate::api::plugin::{Instance, Offers, Plugin, PluginInfo};
use crate::texts;

/// A third-party plugin: a library with the C interface, in a plugin host.
#[derive(Debug)]
pub struct Library {
    path: Vec<u8>,
    info: PluginInfo,
    offers: Offers,
    settings: HostSettings,
    confinement: Confinement,
    current: Mutex<Current>,
    /// The daemon has become another user that may read every file.
    reads_all: AtomicBool,
}

/// The plugin host of jobs that begin.
#[derive(Debug)]
struct Current {
    process: Option<Arc<Process>>,
    /// When the last start of one has failed, and the message about it.
    failed: Option<(Instant, Vec<u8>)>,
}

impl Library {
    /// Loads the plugin of this path in a new plugin host.
    ///
    /// # Errors
    /// The message about it, with its final newline; `None` for a plugin that has refused, about
    /// which nothing is said (reference 07 §2.3).
    pub fn load(path: &Path, settings: HostSettings, confinement: Confinement) -> Result<Self, Option<Vec<u8>>> {
        let file = path.file_name().unwrap_or_default().as_bytes().to_vec();
        if cfg!(not(target_arch = "x86_64")) {
            return Err(Some(texts::not_loaded(&file, texts::OTHER_PROCESSOR)));
        }
        let path = path.as_os_str().as_bytes().to_vec();
        let started = Process::start(&settings, &confinement, &path, &file, false);
        let (process, version, offers) = started.map_err(|why| match why {
            NotLoaded::Silently => None,
            NotLoaded::Refused(text) => Some(text),
            why => Some(texts::not_loaded(&file, &why.words())),
        })?;
        let info = PluginInfo { file, version };
        let current = Mutex::new(Current { process: Some(process), failed: None });
        let reads_all = AtomicBool::new(false);
        Ok(Self { path, info, offers, settings, confinement, current, reads_all })
    }

    /// Has the plugin host become this user, as the daemon itself has, unless it has a user of its
    /// own; groups of its own it keeps. Plugin hosts that are started later are that already. With
    /// `reads_all` they may read every file, as the daemon may.
    ///
    /// # Errors
    /// The message about it.
    pub fn become_user(&self, uid: u32, gid: u32, groups: &[u32], reads_all: bool) -> Result<(), Vec<u8>> {
        let (gid, groups) = match &self.confinement.user {
            None => (gid, groups),
            Some((None, own)) => (own.first().copied().unwrap_or(gid), own.as_slice()),
            Some((Some(_), _)) => return Ok(()),
        };
        self.reads_all.store(reads_all, Ordering::Relaxed);
        let Some(process) = self.current.lock().process.clone() else { return Ok(()) };
        process.become_user(uid, gid, groups.to_vec(), reads_all).map_err(|why| self.not_loaded(&why))
    }

    /// The plugin host, started again if it has died; the error is the message. Whoever has asked
    /// before a start failed takes its failure: with one start after the other, the last of many
    /// jobs would wait for all of them.
    fn process(&self) -> Result<Arc<Process>, Vec<u8>> {
        let asked = Instant::now();
        let mut current = self.current.lock();
        if let Some(process) = &current.process
            && process.serves()
        {
            return Ok(Arc::clone(process));
        }
        current.process = None;
        if let Some((failed, text)) = &current.failed
            && asked < *failed
        {
            return Err(text.clone());
        }
        let reads_all = self.reads_all.load(Ordering::Relaxed);
        let started = Process::start(&self.settings, &self.confinement, &self.path, &self.info.file, reads_all);
        let (process, _, _) = started.map_err(|why| {
            let text = self.not_loaded(&why);
            current.failed = Some((Instant::now(), text.clone()));
            text
        })?;
        Ok(Arc::clone(current.process.insert(process)))
    }

    fn not_loaded(&self, why: &NotLoaded) -> Vec<u8> {
        texts::not_loaded(&self.info.file, &why.words())
    }
}

impl Plugin for Library {
    fn info(&self) -> &PluginInfo {
        &self.info
    }

    fn offers(&self) -> Offers {
        self.offers
    }

    fn begin(&self, host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        let failed = |text| Gone { text, canceled: false };
        let process = self.process().map_err(failed)?;
        let line = process.open().map_err(|error| failed(self.not_loaded(&NotLoaded::Failed(error))))?;
        let mut instance = RemoteInstance::new(&self.info.file, process, line, &self.confinement, self.settings.grace);
        let facts = host.facts();
        let values = (0..=i32::from(u8::MAX))
            .filter_map(Variable::from_number)
            .filter_map(|variable| Some((variable.number(), facts.value(variable)?)))
            .collect();
        let allowed = facts.allowed_programs().iter().map(|path| path.as_slice().into()).collect();
        let status = instance.status(host, Call::New(Box::new(Begin { values, allowed })))?;
        Ok((Box::new(instance), status))
    }
}
