//! Settings that are no more. A file that has one is still good.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

/// Whether a file has a setting that is no more. Its value may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed(bool);

impl Removed {
    /// Whether it has.
    pub(crate) const fn is_there(self) -> bool {
        self.0
    }
}

impl<'de> Deserialize<'de> for Removed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}
