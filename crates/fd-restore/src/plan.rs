//! What a restore is asked to do.

use std::sync::Arc;

use fd_crypto::pki::KeyRing;
use fd_crypto::processor::Processor;

use crate::names::OutputNames;

/// When something that exists is replaced (reference 05 §6.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// Always.
    Always,
    /// If the saved one is newer.
    IfNewer,
    /// If the saved one is older.
    IfOlder,
    /// Never.
    Never,
}

impl Replace {
    /// The mode of a letter of the `restore` command. Unknown letters mean always, as in the reference.
    pub const fn from_letter(letter: u8) -> Self {
        match letter {
            b'w' => Self::IfNewer,
            b'o' => Self::IfOlder,
            b'n' => Self::Never,
            _ => Self::Always,
        }
    }
}

/// A `restore` command.
#[derive(Debug)]
pub struct RestorePlan {
    /// Where everything goes.
    pub output: OutputNames,
    /// Whether the targets of symbolic links are changed like the names.
    pub prelinks: bool,
    /// What happens to what exists.
    pub replace: Replace,
    /// Whether the data is compared with the digests on the volume. The stock daemon does not.
    pub check_digests: bool,
    /// The keys of the PKI directives. With them signatures are checked.
    pub keys: Option<Arc<KeyRing>>,
    /// What of the processor the digests may use; what is found does not depend on it.
    pub processor: Processor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_the_command() {
        for (letter, mode) in [
            (b'a', Replace::Always),
            (b'w', Replace::IfNewer),
            (b'o', Replace::IfOlder),
            (b'n', Replace::Never),
            (b'?', Replace::Always),
        ] {
            assert_eq!(Replace::from_letter(letter), mode);
        }
    }
}
