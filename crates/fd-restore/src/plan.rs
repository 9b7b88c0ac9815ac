//! What a restore is asked to do.

use core::num::NonZeroU16;
use std::sync::Arc;

use fd_crypto::pki::KeyRing;
use fd_crypto::processor::Processor;
use fd_records::{DigestKind, Replace};

use crate::names::OutputNames;
use crate::plugins::PluginAccess;

/// How many small files are made at a time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum WritingDepth {
    /// One, and more where the storage answers late.
    #[default]
    Adaptive,
    /// Always so many; with 1 no thread is started.
    Fixed(NonZeroU16),
}

impl From<Option<NonZeroU16>> for WritingDepth {
    fn from(depth: Option<NonZeroU16>) -> Self {
        depth.map_or(Self::Adaptive, Self::Fixed)
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
    /// The kinds of which the first digest may be, the likely one in front, if they are known. It
    /// follows the data.
    pub digests: Option<Vec<DigestKind>>,
    /// The keys of the PKI directives. With them signatures are checked.
    pub keys: Option<Arc<KeyRing>>,
    /// The instructions that digests may use; the results do not depend on them.
    pub processor: Processor,
    /// How many small files are made at a time.
    pub writing_depth: WritingDepth,
    /// The plugins of the job; `None` where there are none.
    pub plugins: Option<PluginAccess>,
}
