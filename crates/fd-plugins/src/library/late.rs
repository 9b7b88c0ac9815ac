//! Plugins whose plugin host is started only when a job uses them: a daemon that has them starts no
//! slower, and jobs without them pay nothing.

use std::sync::{Arc, Mutex, PoisonError};

use super::remote::Library;
use super::settings::{Confinement, HostSettings};
use crate::api::call::{Called, Io, IoDone, Status};
use crate::api::event::Event;
use crate::api::host::Host;
use crate::api::packets::{CreateStatus, MetadataPacket, RestoreFile, SavePacket};
use crate::api::plugin::{CancelEvent, Instance, Offers, Plugin, PluginInfo};

/// The plugin `s3`.
#[cfg(target_arch = "x86_64")]
pub fn s3(settings: HostSettings, confinement: Confinement) -> Option<Arc<dyn Plugin>> {
    let library = Library::own(&crate::s3::S3Plugin::new(), settings, confinement);
    Some(Arc::new(Late { library: Arc::new(library) }))
}

/// See the module.
#[derive(Debug)]
struct Late {
    library: Arc<Library>,
}

impl Plugin for Late {
    fn info(&self) -> &PluginInfo {
        self.library.info()
    }

    fn offers(&self) -> Offers {
        self.library.offers()
    }

    fn is_announced(&self) -> bool {
        // The stock daemon has no such plugin, and its Director would list it.
        false
    }

    fn begin(&self, _host: &mut dyn Host) -> Called<(Box<dyn Instance>, Status)> {
        let instance = LateInstance {
            library: Arc::clone(&self.library),
            level: None,
            since: None,
            canceller: Arc::default(),
            begun: None,
        };
        Ok((Box::new(instance), Status::Ok))
    }
}

/// Its context in a job, of which the plugin may not know.
struct LateInstance {
    library: Arc<Library>,
    /// What the plugin is told when it begins.
    level: Option<u8>,
    since: Option<i64>,
    canceller: Arc<LateCanceller>,
    begun: Option<Box<dyn Instance>>,
}

#[derive(Default)]
struct LateCanceller(Mutex<Option<Arc<dyn CancelEvent>>>);

impl CancelEvent for LateCanceller {
    fn cancel(&self, host: &mut dyn Host) {
        let canceller = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(canceller) = canceller {
            canceller.cancel(host);
        }
    }
}

impl LateInstance {
    /// The plugin's context, which begins if it has not.
    fn begin(&mut self, host: &mut dyn Host) -> Called<Option<&mut Box<dyn Instance>>> {
        if self.begun.is_none() {
            let (mut instance, status) = self.library.begin(host)?;
            if !status.is_ok() {
                instance.end(host)?;
                return Ok(None);
            }
            *self.canceller.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(instance.canceller());
            if let Some(since) = self.since {
                instance.event(host, &Event::Since(since))?;
            }
            if let Some(level) = self.level {
                instance.event(host, &Event::Level(level))?;
            }
            self.begun = Some(instance);
        }
        Ok(self.begun.as_mut())
    }
}

impl Instance for LateInstance {
    fn canceller(&self) -> Arc<dyn CancelEvent> {
        Arc::clone(&self.canceller) as Arc<dyn CancelEvent>
    }

    fn end(self: Box<Self>, host: &mut dyn Host) -> Called<()> {
        self.begun.map_or(Ok(()), |instance| instance.end(host))
    }

    fn event(&mut self, host: &mut dyn Host, event: &Event<'_>) -> Called<Status> {
        match event {
            Event::Level(level) => self.level = Some(*level),
            Event::Since(since) => self.since = Some(*since),
            Event::BackupCommand(_)
            | Event::EstimateCommand(_)
            | Event::RestoreCommand(_)
            | Event::RestoreObject(Some(_)) => {
                return match self.begin(host)? {
                    Some(instance) => instance.event(host, event),
                    None => Ok(Status::Error),
                };
            }
            _ => {}
        }
        self.begun.as_mut().map_or(Ok(Status::Ok), |instance| instance.event(host, event))
    }

    fn start_backup_file(
        &mut self,
        host: &mut dyn Host,
        command: &[u8],
        reads: bool,
        file: &mut SavePacket,
    ) -> Called<Status> {
        let Some(instance) = &mut self.begun else { return Ok(Status::Error) };
        instance.start_backup_file(host, command, reads, file)
    }

    fn end_backup_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.begun.as_mut().map_or(Ok(Status::Ok), |instance| instance.end_backup_file(host))
    }

    fn io(&mut self, host: &mut dyn Host, io: Io<'_>) -> Called<IoDone> {
        self.begun.as_mut().map_or(Ok(IoDone::error(libc::EBADF)), |instance| instance.io(host, io))
    }

    fn start_restore_file(&mut self, host: &mut dyn Host, command: &[u8]) -> Called<Status> {
        self.begun.as_mut().map_or(Ok(Status::Error), |instance| instance.start_restore_file(host, command))
    }

    fn end_restore_file(&mut self, host: &mut dyn Host) -> Called<Status> {
        self.begun.as_mut().map_or(Ok(Status::Ok), |instance| instance.end_restore_file(host))
    }

    fn create_file(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        let without = Ok((Status::Error, CreateStatus::Error));
        self.begun.as_mut().map_or(without, |instance| instance.create_file(host, file))
    }

    fn set_attributes(&mut self, host: &mut dyn Host, file: &RestoreFile) -> Called<(Status, CreateStatus)> {
        let without = Ok((Status::Ok, CreateStatus::Core));
        self.begun.as_mut().map_or(without, |instance| instance.set_attributes(host, file))
    }

    fn restore_metadata(&mut self, host: &mut dyn Host, packet: &MetadataPacket) -> Called<Status> {
        self.begun.as_mut().map_or(Ok(Status::Ok), |instance| instance.restore_metadata(host, packet))
    }
}
