//! Builds the test plugins in `tests/plugins/` with the host's C compiler.

use std::ffi::OsString;
use std::path::Path;

use crate::error::{BedError, Result};
use crate::process::run;

/// Compiles `tests/plugins/SOURCE.c` to `target`. Each of `defines` is a `NAME=VALUE` of the
/// preprocessor.
pub fn build_plugin(source: &str, defines: &[&str], target: &Path) -> Result<()> {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins");
    let words = "cc -shared -fPIC -O1 -g -Wall -Wextra -Werror -Wno-format-truncation -o";
    let mut argv: Vec<OsString> = words.split(' ').map(Into::into).collect();
    argv.push(target.into());
    argv.push(plugins.join(source).with_extension("c").into());
    argv.extend(defines.iter().map(|define| format!("-D{define}").into()));
    let done = run(&argv, b"")?;
    if done.status.success() {
        return Ok(());
    }
    Err(BedError::Program { program: "cc".to_owned(), problem: format!("{source}: {}", done.text()) })
}
