//! The eighteen message types, their numbers on the wire and their names in the configuration.

/// The type of a message; the number travels in the `Jmsg` line (reference 01 §16.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum MessageType {
    /// The daemon dies; a Director refuses it on the wire.
    Abort = 1,
    /// Debug output.
    Debug = 2,
    /// Events such as `FC0002` (reference 01 §16.5).
    Events = 3,
    /// The job ends with status `f`.
    Fatal = 4,
    /// Counts in `JobErrors`.
    Error = 5,
    /// Something to look at; the job stays good.
    Warning = 6,
    /// Information.
    Info = 7,
    /// A file was saved.
    Saved = 8,
    /// A file could not be saved.
    NotSaved = 9,
    /// A file was skipped.
    Skipped = 10,
    /// A volume is wanted.
    Mount = 11,
    /// The daemon ends because of an error.
    ErrorTerm = 12,
    /// The daemon ends.
    Term = 13,
    /// A file was restored.
    Restored = 14,
    /// An attempt at something that is not allowed.
    Security = 15,
    /// Tape alerts.
    Alert = 16,
    /// Volume management.
    VolMgmt = 17,
    /// A file was verified.
    Verified = 18,
}

impl MessageType {
    /// Every type, in the order of the numbers.
    pub const ALL: [Self; 18] = [
        Self::Abort,
        Self::Debug,
        Self::Events,
        Self::Fatal,
        Self::Error,
        Self::Warning,
        Self::Info,
        Self::Saved,
        Self::NotSaved,
        Self::Skipped,
        Self::Mount,
        Self::ErrorTerm,
        Self::Term,
        Self::Restored,
        Self::Security,
        Self::Alert,
        Self::VolMgmt,
        Self::Verified,
    ];

    /// Its name in a Messages resource (reference 06 §7.1).
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::Abort => "Abort",
            Self::Debug => "Debug",
            Self::Events => "Events",
            Self::Fatal => "Fatal",
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
            Self::Saved => "Saved",
            Self::NotSaved => "NotSaved",
            Self::Skipped => "Skipped",
            Self::Mount => "Mount",
            Self::ErrorTerm => "ErrorTerm",
            Self::Term => "Terminate",
            Self::Restored => "Restored",
            Self::Security => "Security",
            Self::Alert => "Alert",
            Self::VolMgmt => "VolMgmt",
            Self::Verified => "Verified",
        }
    }

    /// The number on the wire, 1 to 18; an old Director's is that of its [`Numbering`].
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// By which numbers a Director knows the types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numbering {
    /// By ours.
    WithEvents,
    /// It has no events, and what comes after them has one less. By our numbers it would take a
    /// fatal error for an error, and an event for a fatal error.
    BeforeEvents,
}

impl Numbering {
    /// The Director's number of the type that is `number` for us; `None`: it has no such type.
    pub const fn of(self, number: u8) -> Option<u8> {
        let events = MessageType::Events.number();
        match self {
            Self::BeforeEvents if number == events || number > MessageType::Verified.number() => None,
            Self::BeforeEvents if number > events => Some(number - 1),
            _ => Some(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_director_without_events_counts_later_types_from_one_less() {
        let old = |kind: MessageType| Numbering::BeforeEvents.of(kind.number());
        assert_eq!(MessageType::ALL.map(old)[..7], [Some(1), Some(2), None, Some(3), Some(4), Some(5), Some(6)]);
        assert_eq!(old(MessageType::Verified), Some(17));
        assert_eq!(Numbering::BeforeEvents.of(19), None, "an administrator's own event");
        assert_eq!(
            [3, 4, 18, 19].map(|number| Numbering::WithEvents.of(number)),
            [Some(3), Some(4), Some(18), Some(19)]
        );
    }
}
