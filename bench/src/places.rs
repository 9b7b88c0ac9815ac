//! Where the daemons see the tree and what they restore: where both are, or through slowfs.

use std::fs;
use std::path::{Path, PathBuf};

use bed::{BedError, Result, SlowStorage};

use crate::cell::Variant;
use crate::programs::own;
use crate::restored::Restored;
use crate::tree::{Standing, file};

/// The places of one cell.
#[derive(Debug)]
pub struct Places {
    /// The tree that is saved.
    pub tree: PathBuf,
    /// The folder of all restores.
    pub restored: PathBuf,
    /// What makes them slow; unmounted with this value.
    _slow: Vec<SlowStorage>,
}

impl Places {
    /// The places as this variant wants them.
    pub fn of(variant: Variant, tree: &Standing, restored: &Restored) -> Result<Self> {
        let Some(delay) = variant.delay() else {
            return Ok(Self { tree: tree.path.clone(), restored: restored.all().to_owned(), _slow: Vec::new() });
        };
        if let Some(missing) = SlowStorage::missing() {
            return Err(BedError::Usage(format!("{variant}: {missing}")));
        }
        // Both are in the target folder, and built together.
        let program = own()?.with_file_name("slowfs");
        let delay = format!("--delay-ms={delay}");
        let mut slow = Vec::new();
        let mut mount = |source: &Path, name: &str| -> Result<PathBuf> {
            let place = restored.all().with_file_name(name);
            fs::create_dir_all(&place).map_err(file("create", &place))?;
            slow.push(SlowStorage::mount(&program, &[&delay], source, &place)?);
            Ok(place)
        };
        let (tree, restored) = (mount(&tree.path, "slow-tree")?, mount(restored.all(), "slow-restored")?);
        Ok(Self { tree, restored, _slow: slow })
    }
}
