//! Hard links whose records come before their first names, in bounded memory. A later job has saved
//! the first name again, or the second part of one that was stopped and resumed.

use std::collections::BTreeMap;

use crate::file::{RestoreItem, Turn};
use crate::tree::OutputPath;

/// The most links that wait.
const MOST_LINKS: usize = 100_000;

/// The most bytes that they may take.
const MOST_BYTES: usize = 64 << 20;

/// The links, by the path of each.
#[derive(Default, Debug)]
pub(super) struct LateLinks {
    links: BTreeMap<OutputPath, RestoreItem>,
    bytes: usize,
    /// Something has been restored since the last one came.
    pub(super) is_followed: bool,
    /// No first name comes any more.
    is_over: bool,
}

impl LateLinks {
    /// When the next one is made.
    pub(super) fn turn(&self) -> Turn {
        let has_room = self.links.len() < MOST_LINKS && self.bytes < MOST_BYTES;
        match (self.is_over, has_room) {
            (true, _) => Turn::Late,
            (false, true) => Turn::MayWait,
            (false, false) => Turn::Now,
        }
    }

    /// Keeps a link.
    pub(super) fn hold(&mut self, link: RestoreItem) {
        let Ok(path) = link.path.clone() else { return };
        self.is_followed = false;
        self.bytes = self.bytes.saturating_add(size(&link));
        self.links.insert(path, link);
    }

    /// The link that is to have this path, which waits no longer.
    pub(super) fn take(&mut self, path: &OutputPath) -> Option<RestoreItem> {
        let link = self.links.remove(path)?;
        self.bytes = self.bytes.saturating_sub(size(&link));
        Some(link)
    }

    /// How many wait.
    pub(super) fn count(&self) -> usize {
        self.links.len()
    }

    /// A link that waits, behind those that make its first name. None may wait from now on.
    pub(super) fn next_chain(&mut self) -> Option<impl Iterator<Item = RestoreItem> + use<>> {
        self.is_over = true;
        let mut chain = vec![self.links.pop_first()?.1];
        // It ends in a circle, too: what is in it waits no longer.
        while let Some(first) = chain.last().and_then(|link| self.take(&link.first_name().ok()?)) {
            chain.push(first);
        }
        Some(chain.into_iter().rev())
    }
}

/// The bytes that a link takes, about.
fn size(link: &RestoreItem) -> usize {
    let path = link.path.as_ref().map_or(0, |path| path.as_bytes().len());
    // The path is there twice.
    size_of::<(OutputPath, RestoreItem)>() + 2 * path + link.name.len() + link.output.len() + link.link.text.len()
}
