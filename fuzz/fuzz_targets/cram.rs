#![no_main]
//! CRAM-MD5: no answer from outside upsets the check, only the right one passes, and ours always
//! does.

use fd_bsock::cram;
use libfuzzer_sys::fuzz_target;

// Challenge and answer, separated by the first NUL.
fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (challenge, answer) = data.split_at(at);
    let key = cram::key_from_password(b"secret");
    for compatible in [false, true] {
        let right = cram::respond(key.as_bytes(), challenge, compatible);
        assert!(cram::verify(key.as_bytes(), challenge, right.as_bytes(), true));
        assert!(!cram::verify(b"another key", challenge, right.as_bytes(), true));
        let _ = cram::verify(key.as_bytes(), challenge, answer, compatible);
    }
});
