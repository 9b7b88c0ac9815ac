//! What a plugin host does ahead: the calls that a backup makes next for a file, which it need not
//! wait for.
//!
//! Both sides work out the same sequence: the plugin host makes the calls and sends the answers one
//! after the other, and the daemon takes each answer when it comes to the call. What the plugin
//! asks meanwhile is answered when the daemon is there, too. So a file costs one wait instead of
//! ten, and nothing comes in another order. What is called ahead is what was called for the file
//! before ([`Plan`]).

use super::wire::{Answer, Bytes, Call, Data, Plan};
use crate::api::packets::SavePacket;

/// `bRC_OK` and `bRC_More`.
const OK: i32 = 0;
const MORE: i32 = 3;
/// Numbers of `xacl_pkt.func` in a backup.
const ACL: i32 = 1;
const XATTR: i32 = 3;
/// Types of files that are saved in any case, with their data (reference 07 §3.2): hard links,
/// files, links, directories.
const SAVED: std::ops::RangeInclusive<i32> = 1..=5;

/// The option flags on which the length of a read depends.
pub(crate) const fn decisive(flags: u64) -> u64 {
    flags & (SavePacket::SPARSE | SavePacket::OFFSETS)
}

/// The calls that come next.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Chain {
    plan: Plan,
    step: Step,
    /// The file that is saved.
    name: Vec<u8>,
    command: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Start,
    CheckStream,
    Open,
    Read,
    Close,
    Xacl(i32),
    Done,
}

impl Chain {
    /// What follows this call, of which the answer is still to come; `None` if nothing does.
    pub(crate) fn behind(call: &Call) -> Option<Self> {
        match call {
            Call::StartBackup(command, true, Some(plan), _) => Some(Self::new(plan, Step::Start, command)),
            // Only a file that goes on is read ahead.
            Call::Read(count, true) => {
                let plan = Plan { read: *count, ..Plan::default() };
                Some(Self::new(&plan, Step::Read, &Bytes::default()))
            }
            Call::EndBackup(Some((command, plan))) => Some(Self::new(plan, Step::Done, command)),
            _ => None,
        }
    }

    fn new(plan: &Plan, step: Step, command: &Bytes) -> Self {
        Self { plan: plan.clone(), step, name: Vec::new(), command: command.0.clone() }
    }

    /// The next call; `None` at the end.
    pub(crate) fn next(&self) -> Option<Call> {
        let plan = &self.plan;
        Some(match self.step {
            Step::Start => {
                let file = Box::new(SavePacket::empty());
                Call::StartBackup(Bytes(self.command.clone()), true, Some(plan.clone()), file)
            }
            Step::CheckStream => Call::CheckStream(plan.check_stream?),
            Step::Open => {
                let (flags, mode) = plan.open?;
                Call::Open { name: Bytes(self.name.clone()), flags, mode }
            }
            Step::Read => Call::Read(plan.read, false),
            Step::Close => Call::Close,
            Step::Xacl(number) => Call::Xacl(number, Bytes::default()),
            Step::Done => return None,
        })
    }

    /// Goes on behind the call that this answers: [`Self::next`], or that of [`Self::behind`].
    pub(crate) fn advance(&mut self, answer: &Answer) {
        self.step = match (self.step, answer) {
            (Step::Done, Answer::Status(MORE)) => Step::Start,
            (Step::Start, Answer::File(OK, Some(file))) => self.begin(file),
            (Step::CheckStream, Answer::Stream(..)) if self.plan.open.is_some() => Step::Open,
            (Step::Open, Answer::Io { status: 0.., .. }) if self.plan.read > 0 => Step::Read,
            (Step::Read, Answer::Io { data: Data::Nothing, .. }) => Step::Close,
            (Step::Read, Answer::Io { .. }) => Step::Read,
            (Step::Close, Answer::Io { .. }) if self.plan.xacl => Step::Xacl(ACL),
            (Step::Xacl(number), Answer::Xacl(OK, content)) if !content.0.is_empty() => Step::Xacl(number),
            (Step::Xacl(ACL), Answer::Xacl(..)) => Step::Xacl(XATTR),
            _ => Step::Done,
        };
    }

    /// The first step for a file.
    fn begin(&mut self, file: &SavePacket) -> Step {
        // A list of metadata that is empty fails the file.
        let is_whole = file.metadata.as_ref().is_none_or(|list| !list.is_empty());
        let is_saved = is_whole && SAVED.contains(&file.file_type) && decisive(file.flags) == self.plan.flags;
        match &file.name {
            Some(name) if is_saved && !file.no_read => self.name.clone_from(name),
            _ => return Step::Done,
        }
        match self.plan {
            Plan { check_stream: Some(_), .. } => Step::CheckStream,
            Plan { open: Some(_), .. } => Step::Open,
            Plan { .. } => Step::Done,
        }
    }
}
