#![no_main]
//! What a plugin host says, while its functions are called: a plugin may have overwritten its
//! memory, or be somebody else's. The first bytes choose the calls.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (calls, said) = data.split_at(data.len().min(4));
    let taken = fd_plugins::library::listen(calls, said);
    // Each answer has a length and a kind.
    assert!(taken * 5 <= said.len());
});
