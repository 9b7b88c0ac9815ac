//! A plugin and the host of its calls, together.

use fd_messages::MessageType;
use fd_plugins::{Called, Instance, NamedPlugin, Offers};

use crate::exchange::halt::Halt;
use crate::exchange::piece::Event;
use crate::exchange::{Slot, Stopped};
use crate::file::emit::Emitter;
use crate::shared::backup_host::BackupHost;
use crate::shared::job::Job;

/// So many pieces with messages wait for the sender before the plugin waits.
const PIECES_AHEAD: usize = 2;

/// See the module.
pub(crate) struct Guest<'g, 'h> {
    plugin: NamedPlugin<'g>,
    pub(crate) host: BackupHost<'h>,
}

impl<'g, 'h> Guest<'g, 'h> {
    pub(crate) fn new(plugin: NamedPlugin<'g>, host: BackupHost<'h>) -> Self {
        Self { plugin, host }
    }

    /// Which functions the plugin has.
    pub(crate) fn offers(&self) -> Offers {
        self.plugin.offers()
    }

    /// The plugin's file, `bpipe-fd.so`.
    pub(crate) fn file(&self) -> &[u8] {
        &self.plugin.info().file
    }

    /// Calls one of the plugin's functions.
    pub(crate) fn call<T>(
        &mut self,
        call: impl FnOnce(&mut dyn Instance, &mut BackupHost<'h>) -> Called<T>,
    ) -> Result<T, Halt> {
        let Self { plugin, host } = self;
        Ok(plugin.call(|instance| call(instance, host))?)
    }

    /// Puts the plugin's messages into the stream, and has them sent: the next call may take long.
    /// `false` if there are none.
    ///
    /// After a fatal message, which stops the job's threads, they wait until the plugin has ended
    /// its file.
    pub(crate) fn pass_on(&mut self, emitter: &mut Emitter<'_>) -> Result<bool, Stopped> {
        let is_last = self.host.fatal.is_some();
        note(self.host.take_messages(), emitter, is_last)
    }

    /// Whether the plugin's own fatal message ends the job.
    pub(crate) fn check(&mut self) -> Result<(), Halt> {
        self.host.fatal.take().map_or(Ok(()), |text| Err(Halt::Ended(text)))
    }
}

/// Puts messages into the stream while a call goes on, whose worker can't: it may be in the middle
/// of a block. Returns when the sender has few of them left.
pub(crate) fn hand_on(job: &Job, slot: Option<Slot>, messages: Vec<(MessageType, Vec<u8>)>) {
    let Some(slot) = slot else { return };
    // Of a job that is stopped, nothing is said any more.
    let Ok(mut piece) = job.exchange.obtain_beside(slot) else { return };
    for (kind, text) in messages {
        piece.note(Event::Message { kind, text, failed: false });
    }
    job.exchange.publish_beside(slot, piece, PIECES_AHEAD);
}

/// Puts messages into the stream, and has them sent unless they are to wait. `false` if there are
/// none.
pub(crate) fn note(
    messages: Vec<(MessageType, Vec<u8>)>,
    emitter: &mut Emitter<'_>,
    waits: bool,
) -> Result<bool, Stopped> {
    if messages.is_empty() {
        return Ok(false);
    }
    if waits {
        // What was saved before is sent and counted.
        emitter.publish()?;
    }
    for (kind, text) in messages {
        emitter.note(Event::Message { kind, text, failed: false });
    }
    if !waits {
        emitter.publish()?;
    }
    Ok(true)
}
