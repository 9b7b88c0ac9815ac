//! The cancel event of an instance, from another thread than that of its job.

use std::sync::Arc;
use std::time::Duration;

use super::limits::{Limits, read, write};
use super::service::{Asker, message, reply};
use crate::api::event::Event;
use crate::api::host::Host;
use crate::api::plugin::CancelEvent;
use crate::library::conversation::Conversation;
use crate::library::process::Process;
use crate::library::wire::{self, Call, EventValue, FromHost, Note, ToHost};

/// How long the thread that cancels waits for a plugin to take note.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// Delivers the cancel event of an instance.
pub(super) struct RemoteCanceler {
    pub(super) asker: Asker,
    pub(super) process: Arc<Process>,
    pub(super) number: u64,
}

impl CancelEvent for RemoteCanceler {
    fn cancel(&self, host: &mut dyn Host) {
        // Whoever is in a call of a plugin host that fails hears of it.
        let Ok(stream) = self.process.cancel(self.number) else { return };
        let mut conversation = Conversation::default();
        let mut limits = Limits::new(Some(CANCEL_LIMIT), CANCEL_LIMIT);
        let call = Call::Event(Event::Cancel.number(), EventValue::Nothing);
        while read(&stream, &mut conversation).is_ok() {
            loop {
                // After nonsense the line is of no more use.
                let Ok(heard) = conversation.next(Some(&call)) else { return };
                let Some(heard) = heard else { break };
                match heard {
                    FromHost::Note(Note::Message(kind, text)) => message(host, kind, &text.0),
                    FromHost::Note(Note::Debug(level, text)) => host.debug(level, &text.0),
                    FromHost::Request(request) => {
                        let reply = reply(host, &self.asker, request);
                        let Ok(bytes) = wire::encode(&ToHost::Reply(reply)) else { return };
                        if write(&stream, &bytes, host, &self.process, &mut limits).is_err() {
                            return;
                        }
                    }
                    FromHost::Note(Note::Verifies) | FromHost::Halted => {}
                    FromHost::Answer(_) => return,
                }
            }
            if limits.look(host, &self.process).is_err() {
                return;
            }
        }
    }
}
