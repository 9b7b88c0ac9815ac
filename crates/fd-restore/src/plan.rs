//! What a restore is asked to do.

use core::num::NonZeroU16;
use std::sync::Arc;

use fd_crypto::pki::KeyRing;
use fd_crypto::processor::Processor;
use fd_records::{DigestKind, Replace};

use crate::names::OutputNames;
use crate::plugins::PluginAccess;

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
    /// How many small files are made at a time; with 1 no thread is started. `None`: one, and more
    /// where the storage answers late.
    pub writing_depth: Option<NonZeroU16>,
    /// The plugins of the job; `None` where there are none.
    pub plugins: Option<PluginAccess>,
}
