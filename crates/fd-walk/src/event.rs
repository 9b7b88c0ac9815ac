//! The events that the walk passes to its sink.

use std::sync::Arc;

use fd_fileset::EffectiveOptions;
use fd_messages::MessageType;

use crate::entry::Entry;

/// An event of the walk. Events come in the stock daemon's order.
#[derive(Debug)]
pub enum WalkEvent<'a> {
    /// An entry to be saved, counted or verified.
    Entry(Entry),
    /// A message to the operator.
    Message(Message<'a>),
    /// A plugin command of an Include. They follow the names of the Include.
    Plugin(FoundCommand<'a>),
}

/// A plugin command, and what its files have from the walk.
#[derive(Clone, Copy, Debug)]
pub struct FoundCommand<'a> {
    /// The command.
    pub command: &'a [u8],
    /// Number of its Include in the FileSet, from 0 on.
    pub include: usize,
    /// The options of the entry before it, accepted or not, or else of the names of its Include
    /// (reference 07 §5.3).
    pub options: &'a Arc<EffectiveOptions>,
    /// A plugin has added it since the FileSet was complete.
    pub is_added: bool,
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

/// What the walk does after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Continue.
    Continue,
    /// End at once.
    Stop,
}
