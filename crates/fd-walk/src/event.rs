//! What the walk says to its sink.

use std::sync::Arc;

use fd_fileset::EffectiveOptions;
use fd_messages::MessageType;

use crate::entry::Entry;

/// One thing that the walk has to say. Events come in the reference's order.
#[derive(Debug)]
pub enum WalkEvent<'a> {
    /// An entry to be saved, counted or verified.
    Entry(Entry),
    /// Something the operator may want to know.
    Message(Message<'a>),
    /// A plugin command of an Include; all of them come after the Include's names.
    Plugin {
        /// The command.
        command: &'a [u8],
        /// Options of the Include.
        options: &'a Arc<EffectiveOptions>,
    },
}

/// A message of the walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Its type.
    pub kind: MessageType,
    /// Its text, with the final newline.
    pub text: &'a [u8],
    /// Whether it adds one to the job's errors, delivered or not (reference 03 §8).
    pub error: bool,
}

/// What the sink wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Go on.
    Continue,
    /// End the walk at once.
    Stop,
}
