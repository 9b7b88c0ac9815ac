#![no_main]
//! The settings file: it is taken, or the error is put into words for the operator.

use std::path::Path;

use fd_config::Settings;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = Settings::parse(Path::new("bacula-fd.toml"), &text) {
        assert!(error.to_string().contains("bacula-fd.toml"), "{error}");
    }
});
