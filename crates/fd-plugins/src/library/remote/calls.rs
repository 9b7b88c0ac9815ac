//! An instance in a plugin host, and how its functions are called: asked for, or taken from what
//! was called ahead.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use super::cancel::RemoteCanceler;
use super::limits::{Failure, Limits};
use super::link::Link;
use super::service::Asker;
use crate::api::call::{Called, Gone};
use crate::api::host::Host;
use crate::library::chain::Chain;
use crate::library::process::{Line, Process, signal_or_status};
use crate::library::settings::Confinement;
use crate::library::wire::{Answer, Call, EventValue, Function, Nonsense, Plan, ToHost, marks};
use crate::texts;

/// An instance in a plugin host.
pub(super) struct RemoteInstance {
    file: Vec<u8>,
    pub(super) link: Link,
    /// Memory that the plugin host has mapped; here it is a file.
    pub(super) shared: Arc<File>,
    pub(super) canceler: Arc<RemoteCanceler>,
    start_timeout: Duration,
    call_timeout: Option<Duration>,
    pub(super) grace: Duration,
    /// It has failed, which was reported.
    pub(super) dead: bool,
    /// The job has work for it: not only events for all plugins.
    is_used: bool,
    /// The plugin host has died in another job while this one had no work for it: what was said.
    lost: Option<Gone>,
    /// What is called ahead.
    pub(super) chain: Option<Chain>,
    /// What was called for the file before.
    pub(super) plan: Option<Plan>,
    /// What is called for this file.
    pub(super) learned: Plan,
    /// The command whose files are saved.
    pub(super) command: Vec<u8>,
    /// Full reads of this file.
    pub(super) full_reads: u32,
    /// Slots that were emptied, of which the plugin host does not know.
    pub(super) emptied: u32,
    /// What a read ahead has brought beyond what was wanted, and its address.
    pub(super) rest: (Vec<u8>, i64),
}

impl RemoteInstance {
    /// A new instance of the plugin in this file, which is called over this line.
    pub(super) fn new(
        file: &[u8],
        process: Arc<Process>,
        line: Line,
        confinement: &Confinement,
        grace: Duration,
    ) -> Self {
        let asker = Arc::new(Asker { file: file.to_vec(), has_own_user: confinement.user.is_some() });
        Self {
            file: file.to_vec(),
            shared: line.shared,
            canceler: Arc::new(RemoteCanceler {
                asker: Arc::clone(&asker),
                process: Arc::clone(&process),
                number: line.number,
            }),
            link: Link::new(line.stream, process, asker),
            start_timeout: confinement.start_timeout,
            call_timeout: confinement.call_timeout,
            grace,
            dead: false,
            is_used: false,
            lost: None,
            chain: None,
            plan: None,
            learned: Plan::default(),
            command: Vec::new(),
            full_reads: 0,
            emptied: 0,
            rest: (Vec::new(), 0),
        }
    }

    /// Calls a function, or takes the answer of one that was called ahead.
    pub(super) fn call(&mut self, host: &mut dyn Host, call: Call) -> Called<Answer> {
        let function = call.function();
        if self.dead {
            return Err(Gone { text: Vec::new(), canceled: true });
        }
        let begins_or_ends = matches!(&call, Call::New(_) | Call::Free | Call::Event(1 | 2, _));
        let most = if begins_or_ends { Some(self.start_timeout) } else { self.call_timeout };
        let mut limits = Limits::new(most, self.grace);
        let is_for_all = is_for_all(&call);
        self.is_used |= !is_for_all;
        if let Some(gone) = self.lost.take() {
            // Whoever has no work for it loses nothing.
            if is_for_all {
                self.lost = Some(gone);
                return Ok(Answer::Status(0));
            }
            self.dead = true;
            return Err(gone);
        }
        self.exchange(host, call, &mut limits).or_else(|failure| {
            let is_closed = matches!(failure, Failure::Closed);
            let (gone, elsewhere) = self.gone(failure, function);
            if is_closed && elsewhere && !self.is_used {
                self.dead = false;
                self.lost = Some(gone);
                return Ok(Answer::Status(0));
            }
            Err(gone)
        })
    }

    fn exchange(&mut self, host: &mut dyn Host, call: Call, limits: &mut Limits) -> Result<Answer, Failure> {
        if let Some(chain) = self.chain.take() {
            if let Some(ahead) = chain.next().filter(|ahead| is_same(ahead, &call)) {
                return self.take(host, &ahead, chain, limits);
            }
            let closed = self.halt(host, chain, limits)?;
            if let (Some(answer), Call::Close) = (closed, &call) {
                return Ok(answer);
            }
        }
        self.ask(host, call, limits)
    }

    /// Has a function called, and takes its answer.
    fn ask(&mut self, host: &mut dyn Host, call: Call, limits: &mut Limits) -> Result<Answer, Failure> {
        let chain = Chain::behind(&call);
        self.emptied = 0;
        let message = ToHost::Call(Box::new(call));
        self.link.send(host, &message, limits)?;
        let ToHost::Call(call) = message else { return Err(Failure::Closed) };
        match chain {
            Some(chain) => self.take(host, &call, chain, limits),
            None => self.answer(host, &call, limits),
        }
    }

    /// Takes the answer to a call of this chain.
    fn take(
        &mut self,
        host: &mut dyn Host,
        call: &Call,
        mut chain: Chain,
        limits: &mut Limits,
    ) -> Result<Answer, Failure> {
        let answer = self.answer(host, call, limits)?;
        chain.advance(&answer);
        self.chain = chain.next().is_some().then_some(chain);
        Ok(answer)
    }

    /// Has nothing called ahead any more. What was called already is undone where there is a
    /// function for it; the answer to a close, if the plugin host has come to that.
    fn halt(&mut self, host: &mut dyn Host, mut chain: Chain, limits: &mut Limits) -> Result<Option<Answer>, Failure> {
        self.rest.0.clear();
        self.shared.write_all_at(&[1], marks::HALT as u64).map_err(Failure::System)?;
        self.link.send(host, &ToHost::Halt, limits)?;
        let (mut started, mut opened, mut closed) = (false, false, None);
        while let Some(answer) = self.link.heard(host, chain.next().as_ref(), limits)? {
            match (&chain.next(), &answer) {
                (Some(Call::StartBackup(..)), Answer::File(0, Some(_))) => started = true,
                (Some(Call::Open { .. }), Answer::Io { status: 0.., .. }) => opened = true,
                (Some(Call::Close), _) => {
                    opened = false;
                    closed = Some(answer.clone());
                }
                _ => {}
            }
            chain.advance(&answer);
        }
        if opened {
            closed = Some(self.ask(host, Call::Close, limits)?);
        }
        if started {
            self.ask(host, Call::EndBackup(None), limits)?;
        }
        Ok(closed)
    }

    /// Waits for the answer to a call, and serves the plugin meanwhile.
    fn answer(&mut self, host: &mut dyn Host, call: &Call, limits: &mut Limits) -> Result<Answer, Failure> {
        self.link.heard(host, Some(call), limits)?.ok_or(Failure::Nonsense(Nonsense::Order))
    }

    /// The instance has failed: what is to be said, once, and whether another one is to blame.
    pub(super) fn gone(&mut self, failure: Failure, function: Function) -> (Gone, bool) {
        self.dead = true;
        self.link.process.retire();
        let file = &self.file;
        let mut is_elsewhere = false;
        let (text, canceled) = match failure {
            Failure::Canceled => (texts::still_runs(file, function.name(), self.grace.as_secs()), true),
            Failure::Late(limit) => {
                self.link.process.kill_for(function);
                (texts::late(file, function.name(), limit.as_secs()), false)
            }
            Failure::Nonsense(nonsense) => {
                self.link.process.kill_for(function);
                (texts::nonsense(file, function.name(), &nonsense.to_string()), false)
            }
            Failure::System(error) => {
                self.link.process.kill_for(function);
                (texts::nonsense(file, function.name(), &fd_os::io_error_text(&error)), false)
            }
            Failure::Closed => {
                // If it goes on, so do the instances of other jobs in it.
                let end = self.link.process.ends_soon();
                let (running, elsewhere) = self.link.process.died_in(&self.shared);
                is_elsewhere = elsewhere;
                let place = match running {
                    // Nothing tells where.
                    Function::None => function.name().to_owned(),
                    _ if elsewhere => texts::of_another_job(running.name()),
                    _ => running.name().to_owned(),
                };
                match end {
                    Some(status) => (texts::died(file, &place, &texts::ended(signal_or_status(status))), false),
                    None => (texts::hung_up(file, &place), false),
                }
            }
        };
        (Gone { text, canceled }, is_elsewhere)
    }
}

impl Drop for RemoteInstance {
    fn drop(&mut self) {
        self.link.process.leave();
    }
}

/// Whether this call is made for each plugin of a job, also for one that it has no work for.
fn is_for_all(call: &Call) -> bool {
    matches!(
        call,
        Call::New(_)
            | Call::Free
            | Call::Event(1..=8 | 12 | 13 | 14 | 19 | 25, EventValue::Nothing | EventValue::Number(_))
    ) || matches!(call, Call::Event(1 | 25, _))
}

/// Whether this call was made ahead for that one.
fn is_same(ahead: &Call, call: &Call) -> bool {
    match (ahead, call) {
        (Call::StartBackup(ahead, _, _, empty), Call::StartBackup(command, true, _, file)) => {
            ahead == command && empty == file
        }
        // If it has brought more than is wanted, the rest is for the next one.
        (Call::Read(..), Call::Read(..)) => true,
        _ => ahead == call,
    }
}
