//! Our connection to a Storage Daemon, from the first try to its `TERMINATE`.

use std::cell::RefCell;
use std::time::Duration;

use fd_bsock::{CommCount, MAX_PAYLOAD, Signal};
use fd_session::append::{self, AppendClose};
use fd_session::authenticate::Credentials;
use fd_session::open::{SessionOpen, Ticket};
use fd_session::read::ReadClose;
use fd_session::storage::{HELLO_TIMEOUT, StorageError, StorageGreeting, StorageHello};
use fd_session::{Action, JobStatus, Machine};
use fd_transport::{
    Canceler, Certificates, Channel, ChannelError, ConnectWatch, Farewell, Frames, Gathered, IDLE_LIMIT, Received,
    SILENCE, Unwanted,
};

use crate::connection::dialogue::{self, Secrets, Signals};
use crate::shared::job::Job;
use crate::texts;

/// Between two tries to connect (reference 01 §18.4).
pub(crate) const RETRY_EVERY: Duration = Duration::from_secs(10);

/// What the Storage Daemon says while it gets data is no answer (reference 01 §3.3). It is looked
/// at as often as by the stock daemon.
const UNWANTED: Unwanted = Unwanted { every: Duration::from_secs(5), is_text: |text| !append::is_refusal(text) };

/// An authenticated connection to a Storage Daemon.
#[derive(Debug)]
pub(crate) struct StorageConnection {
    channel: Channel,
    greeting: StorageGreeting,
    compressed: bool,
    secrets: Secrets,
}

/// What [`StorageConnection::gather`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// A frame, which may be empty.
    Frame,
    /// No frame: none is there, or a signal that is dealt with.
    Nothing,
    /// The end of the sequence.
    EndOfData,
}

/// A slow connect: whether it is still wanted, and its warnings, which are said at once. The stock
/// daemon's come with the next message: until then the job seems to hang.
pub(crate) struct Patience<'j> {
    job: &'j Job,
    director: Canceler,
    warn: RefCell<&'j mut dyn FnMut(&str)>,
}

impl<'j> Patience<'j> {
    /// Connecting on behalf of `job`, as long as its Director is there.
    pub(crate) const fn new(job: &'j Job, director: Canceler, warn: &'j mut dyn FnMut(&str)) -> Self {
        Self { job, director, warn: RefCell::new(warn) }
    }
}

impl ConnectWatch for Patience<'_> {
    fn canceled(&self) -> bool {
        self.job.cancel.is_canceled() || self.director.peer_has_left()
    }

    fn retrying(&self, text: &str) {
        (self.warn.borrow_mut())(text);
    }
}

/// A hello that failed.
#[derive(Debug)]
pub(crate) struct Rejected {
    /// Why.
    pub error: StorageError,
    /// The fault of the Storage Daemon's certificates.
    pub certificate_errors: Vec<String>,
}

/// How long the Storage Daemon may take to be told of the cancel.
const CANCELED_TOO: Duration = Duration::from_secs(1);

/// How a job leaves its Storage Daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// All that was to be said has been said, or can't be said any more.
    Said,
    /// The operator has stopped it somewhere.
    Stopped,
    /// The same, and the Director tells the Storage Daemon, too, after us: until then our closing
    /// would be an error there.
    Canceled,
}

impl StorageConnection {
    /// Says hello on a connected channel. With `compression` our side asks for line compression.
    /// `silent` is called once if there is no answer for some seconds, and is waited for further.
    pub(crate) fn greet(
        mut channel: Channel,
        job: &Job,
        credentials: Credentials,
        certificates: Option<Certificates>,
        proxy: bool,
        compression: bool,
        silent: &mut dyn FnMut(),
    ) -> Result<Self, Rejected> {
        let secrets = Secrets { key: credentials.key.clone(), certificates };
        let (mut machine, first) = StorageHello::start(&job.identity.name, credentials, proxy);
        // The hello leaves before its answer is asked for, so that the answer can be missed.
        let (hello, first): (Vec<_>, Vec<_>) = first.into_iter().partition(|action| matches!(action, Action::Send(_)));
        for action in hello {
            if let Action::Send(frame) = action {
                // A broken connection has no answer, either.
                let _shows_at_the_answer = channel.send(&frame).and_then(|()| channel.flush());
            }
        }
        if !channel.canceler().peer_answers_within(SILENCE) {
            silent();
        }
        let led = dialogue::lead(&mut channel, &mut machine, first, &secrets, Signals::All, HELLO_TIMEOUT);
        let greeting =
            led.map_err(|error| Rejected { error, certificate_errors: channel.certificate_errors().to_vec() })?;
        channel.limit_frames(MAX_PAYLOAD);
        let compressed = compression && greeting.version >= 1;
        channel.set_compression(compressed);
        Ok(Self { channel, greeting, compressed, secrets })
    }

    /// Whether the connection is encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.greeting.encrypted
    }

    /// Whether what we send is compressed where that pays.
    pub(crate) const fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The Storage Daemon's largest and smallest block of deduplication, bytes.
    pub(crate) const fn dedup_blocks(&self) -> (u64, u64) {
        self.greeting.dedup_blocks
    }

    /// The channel.
    pub(crate) const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Asks for a backup session; what is sent next is data.
    pub(crate) fn open_append(&mut self) -> Result<Ticket, StorageError> {
        let (mut machine, first) = SessionOpen::append();
        let ticket = self.lead(&mut machine, first)?;
        self.channel.drop_what_comes(Some(UNWANTED));
        Ok(ticket)
    }

    /// The end of a backup's data: what comes next is an answer.
    pub(crate) fn end_append(&mut self) -> Result<(), ChannelError> {
        self.channel.drop_what_came();
        let ended = self.end_of_data();
        self.channel.drop_what_comes(None);
        ended
    }

    /// After the last data: asks for the Storage Daemon's verdict.
    pub(crate) fn close_append(&mut self, ticket: Ticket) -> Result<JobStatus, StorageError> {
        let (mut machine, first) = AppendClose::start(ticket);
        self.lead(&mut machine, first)
    }

    /// Asks for the records of this job's session; what comes next are records.
    pub(crate) fn open_read(&mut self, job: &Job) -> Result<Ticket, StorageError> {
        let (mut machine, first) = SessionOpen::read(job.identity.vol_session_id, job.identity.vol_session_time);
        self.lead(&mut machine, first)
    }

    /// Ends the read session.
    pub(crate) fn close_read(&mut self, ticket: Ticket) -> Result<(), StorageError> {
        let (mut machine, first) = ReadClose::start(ticket);
        self.lead(&mut machine, first)
    }

    fn lead<M: Machine>(
        &mut self,
        machine: &mut M,
        first: Vec<Action<M::Done, M::Error>>,
    ) -> Result<M::Done, M::Error> {
        dialogue::lead(&mut self.channel, machine, first, &self.secrets, Signals::Storage, IDLE_LIMIT)
    }

    /// Polls the Storage Daemon and waits for its answer. Heartbeats may come before.
    pub(crate) fn ask_whether_it_follows(&mut self) -> Result<(), ChannelError> {
        self.channel.signal(Signal::Poll)?;
        loop {
            match self.channel.recv(IDLE_LIMIT)? {
                Received::Data(answer) if answer == texts::STORE_OK => return Ok(()),
                // As in the stock daemon whatever else it says meanwhile is dropped
                // (reference 01 §3.3).
                Received::Data(_) | Received::Empty | Received::Signal(_) => {}
            }
        }
    }

    /// The end of all data.
    pub(crate) fn end_of_data(&mut self) -> Result<(), ChannelError> {
        dialogue::end_of_data(&mut self.channel)?;
        self.channel.flush()
    }

    /// Ends the session between two records, with a good-bye and nothing more.
    pub(crate) fn hang_up(&mut self) {
        if let Err(error) = self.end_of_data().and_then(|()| self.channel.signal(Signal::Terminate)) {
            tracing::debug!(%error, "the Storage daemon's connection ended with an error");
        }
    }

    /// Appends the next frame of a sequence to `frames`. Signals that need an answer get it.
    /// Without patience it takes only what is there; with it, a wait that is too long is a timeout,
    /// after which one can go on. [`Self::deliver`] must be called before they are read.
    pub(crate) fn gather(&mut self, frames: &mut Frames, patience: Option<Duration>) -> Result<Arrival, ChannelError> {
        match self.channel.gather(frames, patience)? {
            None => Ok(Arrival::Nothing),
            Some(Gathered::Frame) => Ok(Arrival::Frame),
            Some(Gathered::Signal(signal)) => {
                let ended = dialogue::answer_storage_signal(&mut self.channel, signal)?.is_some();
                Ok(if ended { Arrival::EndOfData } else { Arrival::Nothing })
            }
        }
    }

    /// Hands over what was gathered.
    pub(crate) fn deliver(&mut self, frames: &mut Frames) {
        self.channel.deliver(frames);
    }

    /// Says good-bye. Returns what was sent on the connection, the good-bye included. The Storage
    /// Daemon closes when it has done its own part of the job's end, which the caller need not wait
    /// for at once.
    pub(crate) fn terminate(mut self, end: End) -> (CommCount, Option<Farewell>) {
        let said = match end {
            // A Storage Daemon that has gone needs no good-bye.
            End::Said => self.channel.signal(Signal::Terminate),
            // The connection may be in the middle of a frame, and a signal would be taken for its
            // rest.
            End::Stopped => Ok(()),
            End::Canceled => {
                if !self.channel.canceler().peer_leaves_within(CANCELED_TOO) {
                    tracing::debug!("the Storage daemon was not told yet that the job is canceled");
                }
                Ok(())
            }
        };
        let count = self.channel.counts();
        let left = said.and_then(|()| self.channel.leave());
        let farewell =
            left.inspect_err(|error| tracing::debug!(%error, "the Storage daemon's connection did not end cleanly"));
        (count, farewell.ok())
    }
}
