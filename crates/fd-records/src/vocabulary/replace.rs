//! Replace modes of a restore.

/// When a restore replaces something that exists (reference 05 §6.1).
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
    /// Its letter in the `restore` command.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Always => b'a',
            Self::IfNewer => b'w',
            Self::IfOlder => b'o',
            Self::Never => b'n',
        }
    }

    /// The mode of a letter of the `restore` command. Unknown letters are [`Self::Always`], as in
    /// the reference.
    pub const fn from_letter(letter: u8) -> Self {
        match letter {
            b'w' => Self::IfNewer,
            b'o' => Self::IfOlder,
            b'n' => Self::Never,
            _ => Self::Always,
        }
    }
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
