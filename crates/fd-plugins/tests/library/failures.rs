//! Plugins that fail.

use crate::Test;

pub(crate) const TESTS: &[Test] = &[];
