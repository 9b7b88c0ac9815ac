//! Signals: frames that are nothing but a negative number.

use std::fmt;

use crate::texts;

/// A signal frame (reference 01 §2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal {
    /// End of a stream, of a multi-frame command or answer, of all data.
    Eod,
    /// End of data, and the receiver is to answer `2000 OK`.
    EodPoll,
    /// The receiver is to answer `Status OK` and [`Signal::Eod`].
    Status,
    /// The sender will close; nothing may be sent to it any more.
    Terminate,
    /// The receiver is to answer `2000 OK`.
    Poll,
    /// The sender is alive.
    Heartbeat,
    /// Answer to a heartbeat; no daemon sends it.
    HbResponse,
    /// Asks for the time; answered by a `btime` text.
    BTime,
    /// Consoles only.
    Break,
    /// Consoles only.
    StartSelect,
    /// Consoles only.
    EndSelect,
    /// Consoles only.
    InvalidCmd,
    /// A command failed (end of `testnetwork`).
    CmdFailed,
    /// A command succeeded (end of `caps` and `testnetwork`).
    CmdOk,
    /// Consoles only.
    CmdBegin,
    /// Consoles only.
    MsgsPending,
    /// The console may prompt (after the answer to `proxy`).
    MainPrompt,
    /// Consoles only.
    SelectInput,
    /// Consoles only.
    WarningMsg,
    /// An error line for the console follows.
    ErrorMsg,
    /// Consoles only.
    InfoMsg,
    /// Consoles only.
    RunCmd,
    /// Consoles only.
    YesNo,
    /// Consoles only.
    StartRtree,
    /// Consoles only.
    EndRtree,
    /// Consoles only.
    SubPrompt,
    /// Consoles only.
    TextInput,
    /// A result value inside the stock daemons; never on the wire.
    ExtTerminate,
    /// The Director asks to serve a proxy connection as its own.
    FdCalled,
    /// The Director asks whether a connection that we opened still works; answered by the same.
    IsAlive,
    /// A number without a meaning.
    Other(i32),
}

/// Number, signal, name in messages. `IsAlive` has no name there, as in the stock daemon.
const TABLE: [(i32, Signal, Option<&str>); 30] = [
    (-1, Signal::Eod, Some("EOD")),
    (-2, Signal::EodPoll, Some("EOD_POLL")),
    (-3, Signal::Status, Some("STATUS")),
    (-4, Signal::Terminate, Some("TERMINATE")),
    (-5, Signal::Poll, Some("POLL")),
    (-6, Signal::Heartbeat, Some("HEARTBEAT")),
    (-7, Signal::HbResponse, Some("HB_RESPONSE")),
    (-9, Signal::BTime, Some("BTIME")),
    (-10, Signal::Break, Some("BREAK")),
    (-11, Signal::StartSelect, Some("START_SELECT")),
    (-12, Signal::EndSelect, Some("END_SELECT")),
    (-13, Signal::InvalidCmd, Some("INVALID_CMD")),
    (-14, Signal::CmdFailed, Some("CMD_FAILED")),
    (-15, Signal::CmdOk, Some("CMD_OK")),
    (-16, Signal::CmdBegin, Some("CMD_BEGIN")),
    (-17, Signal::MsgsPending, Some("MSGS_PENDING")),
    (-18, Signal::MainPrompt, Some("MAIN_PROMPT")),
    (-19, Signal::SelectInput, Some("SELECT_INPUT")),
    (-20, Signal::WarningMsg, Some("WARNING_MSG")),
    (-21, Signal::ErrorMsg, Some("ERROR_MSG")),
    (-22, Signal::InfoMsg, Some("INFO_MSG")),
    (-23, Signal::RunCmd, Some("RUN_CMD")),
    (-24, Signal::YesNo, Some("YESNO")),
    (-25, Signal::StartRtree, Some("START_RTREE")),
    (-26, Signal::EndRtree, Some("END_RTREE")),
    (-27, Signal::SubPrompt, Some("SUB_PROMPT")),
    (-28, Signal::TextInput, Some("TEXT_INPUT")),
    (-29, Signal::ExtTerminate, Some("EXT_TERMINATE")),
    (-30, Signal::FdCalled, Some("FDCALLED")),
    (-31, Signal::IsAlive, None),
];

impl Signal {
    /// The number on the wire, negative for every signal with a name.
    pub fn code(self) -> i32 {
        match self {
            Self::Other(number) => number,
            named => TABLE.iter().find(|(_, signal, _)| *signal == named).map_or(0, |(number, ..)| *number),
        }
    }

    /// The signal with this number.
    pub fn from_code(code: i32) -> Self {
        TABLE.iter().find(|(number, ..)| *number == code).map_or(Self::Other(code), |(_, signal, _)| *signal)
    }
}

/// As the stock daemons print it: `BNET_EOD`, or `Unknown sig -8`.
impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TABLE.iter().find(|(number, ..)| *number == self.code()) {
            Some((_, _, Some(name))) => write!(f, "{}{name}", texts::SIGNAL_PREFIX),
            _ => write!(f, "{}{}", texts::UNKNOWN_SIGNAL, self.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_signal() {
        for code in -40..=10 {
            assert_eq!(Signal::from_code(code).code(), code);
        }
        for (code, signal, _) in TABLE {
            assert_eq!(signal.code(), code);
            assert_eq!(Signal::from_code(code), signal);
        }
        assert_eq!(Signal::from_code(-8), Signal::Other(-8));
    }

    #[test]
    fn names_are_those_of_messages() {
        assert_eq!(Signal::Eod.to_string(), "BNET_EOD");
        assert_eq!(Signal::HbResponse.to_string(), "BNET_HB_RESPONSE");
        assert_eq!(Signal::Other(-8).to_string(), "Unknown sig -8");
        assert_eq!(Signal::IsAlive.to_string(), "Unknown sig -31");
    }
}
