//! What comes back from a call to a plugin.

/// The result of a call, or the reason why the plugin can't be called any more. A plugin that is
/// compiled in always answers.
pub type Called<T> = Result<T, Gone>;

/// A plugin in a process of its own has ended, or speaks nonsense. The instance is of no more use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", String::from_utf8_lossy(text))]
pub struct Gone {
    /// The message for the operator: the plugin, the call, and what has happened, such as the
    /// signal. With its final newline.
    pub text: Vec<u8>,
    /// The job was canceled while it waited for the plugin; nothing is wrong with the plugin.
    pub canceled: bool,
}

/// What a function of a plugin or of the daemon returns (`bRC`, reference 07 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Done (0).
    Ok,
    /// Stop (1).
    Stop,
    /// Error (2).
    Error,
    /// There is more (3).
    More,
    /// The plugin is unloaded (4).
    Term,
    /// The file is known (5).
    Seen,
    /// The daemon is to do it itself (6).
    Core,
    /// The file is to be left out (7).
    Skip,
    /// The job was canceled (8).
    Cancel,
    /// Any other number.
    Other(i32),
}

impl Status {
    const NAMED: [Self; 9] =
        [Self::Ok, Self::Stop, Self::Error, Self::More, Self::Term, Self::Seen, Self::Core, Self::Skip, Self::Cancel];

    /// The status of this number.
    pub fn from_code(code: i32) -> Self {
        usize::try_from(code).ok().and_then(|index| Self::NAMED.get(index)).copied().unwrap_or(Self::Other(code))
    }

    /// Its number.
    pub fn code(self) -> i32 {
        match self {
            Self::Other(code) => code,
            named => Self::NAMED.iter().zip(0..).find(|(status, _)| **status == named).map_or(0, |(_, code)| code),
        }
    }

    /// Whether it is [`Status::Ok`].
    pub fn is_ok(self) -> bool {
        self == Self::Ok
    }
}

/// What `pluginIO` is to do (`io_pkt`, reference 07 §3.3, §5.6, §7.4).
#[derive(Debug)]
pub enum Io<'a> {
    /// Open the file.
    Open {
        /// Its name; an option plugin gets the path inside the snapshot.
        name: &'a [u8],
        /// Flags of `open`.
        flags: i32,
        /// Mode of a new file.
        mode: u32,
    },
    /// Read at most so many bytes.
    Read {
        /// Where they go.
        buffer: &'a mut [u8],
    },
    /// Write these bytes.
    Write {
        /// The bytes.
        data: &'a [u8],
    },
    /// Go to an address.
    Seek {
        /// Bytes from the place that `whence` names.
        offset: i64,
        /// 0: the beginning of the file.
        whence: i32,
    },
    /// Close the file.
    Close,
}

/// The answer to an [`Io`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoDone {
    /// What the function returned.
    pub returned: Status,
    /// Bytes read or written, or a descriptor; below 0: an error.
    pub status: i32,
    /// The error's number (`errno`), if there was one.
    pub errno: i32,
    /// Address in the file of the bytes that were read, for a file with offsets.
    pub offset: i64,
}

impl IoDone {
    /// Success, with this number of bytes.
    pub const fn bytes(status: i32) -> Self {
        Self { returned: Status::Ok, status, errno: 0, offset: 0 }
    }

    /// An error with this number.
    pub const fn error(errno: i32) -> Self {
        Self { returned: Status::Error, status: -1, errno, offset: 0 }
    }

    /// Whether it says, as the answer to a close, that this has failed. A plugin that has nothing
    /// to say leaves the status as it is: -1, without a number (reference 07 §5.6).
    pub const fn has_failed_to_close(self) -> bool {
        matches!(self.returned, Status::Error) || self.status < 0 && self.errno != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_number() {
        for code in -1..11 {
            assert_eq!(Status::from_code(code).code(), code);
        }
        assert_eq!(Status::from_code(5), Status::Seen);
        assert_eq!(Status::from_code(9999), Status::Other(9999));
    }
}
