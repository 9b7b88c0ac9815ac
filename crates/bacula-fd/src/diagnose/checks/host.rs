//! The kernel's page cache, and the clock.

use std::path::Path;

use super::case::Case;
use crate::diagnose::finding::Finding;
use crate::diagnose::texts::{self, CLOCK, PAGE_CACHE};
use crate::diagnose::world::World;

/// The file of which the page cache is asked where the configuration is no file.
const ANY_FILE: &str = "/proc/self/exe";

pub(super) fn page_cache(case: &Case<'_>) -> Vec<Finding> {
    let file = case.read.files.first().map_or(Path::new(ANY_FILE), |file| file.as_path());
    let is_root = case.world.process().rights.uid == 0;
    vec![if is_root || case.world.is_told_of_any_page(file) {
        Finding::good(PAGE_CACHE, texts::WATCHES_PAGES)
    } else {
        Finding::warning(PAGE_CACHE, texts::PAGES_STAY, texts::HINT_PAGES_STAY)
    }]
}

pub(super) fn clock(world: &dyn World) -> Vec<Finding> {
    let date = crate::clock::iso_date(world.now());
    vec![match world.clock() {
        Ok(true) => Finding::good(CLOCK, texts::synchronized(&date)),
        Ok(false) => Finding::warning(CLOCK, texts::not_synchronized(&date), texts::HINT_CLOCK),
        Err(_) => Finding::good(CLOCK, texts::clock_unknown(&date)),
    }]
}
