//! The `Messages` resource: which message goes where.
//!
//! Only the routing table; the program builds, sends and stores messages.

use fd_messages::MessageType;

/// A `Messages` resource (reference 06 §3.3, §7.2, §7.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Messages {
    /// Its name.
    pub name: String,
    /// No effect.
    pub description: Vec<u8>,
    /// In the order of first appearance; no two with the same kind and place.
    pub destinations: Vec<Destination>,
    /// All types ever added to any destination; negation does not remove from it. A message whose
    /// type is not in it returns before any other effect, even before it fails the job.
    pub union: TypeSet,
    /// Names of custom event types (`events.NAME`); the first has number 20.
    pub custom_events: Vec<Vec<u8>>,
}

impl Messages {
    /// Whether messages of this type have any effect. Abort (1) and `ErrorTerm` (12) always have.
    pub const fn wants(&self, number: u8) -> bool {
        number == MessageType::Abort.number()
            || number == MessageType::ErrorTerm.number()
            || self.union.contains(number)
    }

    /// The destinations that get messages of this type.
    pub fn destinations_of(&self, number: u8) -> impl Iterator<Item = &Destination> {
        self.destinations.iter().filter(move |destination| destination.types.contains(number))
    }

    /// The type number of an event of this kind (`job`, `daemon`, `connection` …): its custom
    /// number, else 3.
    pub fn event_number(&self, kind: &[u8]) -> u8 {
        self.custom_events
            .iter()
            .position(|name| name.eq_ignore_ascii_case(kind))
            .and_then(|index| u8::try_from(index).ok())
            .map_or(MessageType::Events.number(), |index| TypeSet::FIRST_CUSTOM.saturating_add(index))
    }
}

/// One destination and the types that it gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// What it is.
    pub kind: DestinationKind,
    /// File name, or recipients joined by single blanks; empty for Stdout, Stderr, Syslog, Console
    /// and Catalog.
    pub place: Vec<u8>,
    /// What it gets.
    pub types: TypeSet,
    /// `MailCommand` or `OperatorCommand` in force when the destination first appeared.
    pub command: Option<Vec<u8>>,
}

/// The kinds of destinations, in the order of reference 06 §3.3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DestinationKind {
    /// syslog(3).
    Syslog,
    /// Mail at every end of a session.
    Mail,
    /// As `Mail` in a File Daemon.
    MailOnError,
    /// Never sends in a File Daemon.
    MailOnSuccess,
    /// A file, truncated by the first message of each session.
    File,
    /// A file, appended to.
    Append,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The Director that the job is connected to, whatever the place is.
    Director,
    /// No effect in a File Daemon.
    Console,
    /// One program run per message.
    Operator,
    /// No effect in a File Daemon.
    Catalog,
}

/// A set of message types: 1 to 18, and custom events from 20 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TypeSet(u64);

impl TypeSet {
    /// The number of the first custom event type; 19 is the pseudo type `All`.
    pub(crate) const FIRST_CUSTOM: u8 = 20;
    /// How many custom event types one Messages resource can have.
    pub(crate) const MAX_CUSTOM: usize = 13;
    /// What `all` sets: everything but Debug (2), Events (3), Saved (8); with the pseudo type 19.
    pub(crate) const ALL: Self = Self(0b1111_1111_1110_1111_0010);

    /// Whether the type of this number is in the set.
    pub const fn contains(self, number: u8) -> bool {
        number < 64 && self.0 & (1 << number) != 0
    }

    /// Adds a type by its number, below 64.
    pub const fn insert(&mut self, number: u8) {
        if number < 64 {
            self.0 |= 1 << number;
        }
    }

    pub(crate) const fn remove(&mut self, number: u8) {
        if number < 64 {
            self.0 &= !(1 << number);
        }
    }

    pub(crate) const fn extend(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A set of these numbers; those from 64 on are left out.
impl FromIterator<u8> for TypeSet {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        let mut set = Self(0);
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_everything_but_debug_saved_and_events() {
        let expected: Vec<u8> = (1..=19).filter(|number| ![2, 3, 8].contains(number)).collect();
        let got: Vec<u8> = (0..64).filter(|number| TypeSet::ALL.contains(*number)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn abort_and_error_term_are_never_filtered() {
        let messages = Messages::default();
        assert!(messages.wants(1) && messages.wants(12));
        assert!(!messages.wants(4));
    }

    #[test]
    fn custom_events_are_numbered_by_first_appearance() {
        let messages = Messages { custom_events: vec![b"job".to_vec(), b"daemon".to_vec()], ..Messages::default() };
        assert_eq!(messages.event_number(b"daemon"), 21);
        assert_eq!(messages.event_number(b"command"), 3);
    }
}
