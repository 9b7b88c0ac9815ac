//! The cancel event of an instance, from another thread than that of its job.

use std::sync::Arc;
use std::time::Duration;

use super::limits::Limits;
use super::link::Link;
use super::service::Asker;
use crate::api::event::Event;
use crate::api::host::Host;
use crate::api::plugin::CancelEvent;
use crate::library::process::Process;
use crate::library::wire::{Call, EventValue};

/// How long the thread that cancels waits for a plugin to take note.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// Delivers the cancel event of an instance.
pub(super) struct RemoteCanceler {
    pub(super) asker: Arc<Asker>,
    pub(super) process: Arc<Process>,
    pub(super) number: u64,
}

impl CancelEvent for RemoteCanceler {
    fn cancel(&self, host: &mut dyn Host) {
        // Whoever is in a call of a plugin host that fails hears of it.
        let Ok(stream) = self.process.cancel(self.number) else { return };
        let mut link = Link::new(stream, Arc::clone(&self.process), Arc::clone(&self.asker));
        let call = Call::Event(Event::Cancel.number(), EventValue::Nothing);
        let _told = link.heard(host, Some(&call), &mut Limits::new(Some(CANCEL_LIMIT), CANCEL_LIMIT));
    }
}
