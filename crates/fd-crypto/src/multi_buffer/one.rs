//! A chain of SHA-256 without company. OpenSSL takes its blocks in three quarters of the time that a lane needs.

use std::ffi::c_uint;

use openssl_sys::{SHA256_CTX, SHA256_Update};

use super::{BLOCK, Words};

/// Bytes of a value, which nobody asks OpenSSL for here.
const VALUE_LEN: c_uint = 32;

/// Takes the blocks.
pub(super) fn advance(chain: &mut Words, run: &[[u8; BLOCK]]) {
    let bytes = run.as_flattened();
    let mut context = SHA256_CTX { h: *chain, Nl: 0, Nh: 0, data: [0; 16], num: 0, md_len: VALUE_LEN };
    // SAFETY: the context is whole, as after some blocks, and the bytes are there for as long as the call lasts. Whole
    // blocks are taken at once; nothing of them is kept. It can't fail.
    let _one = unsafe { SHA256_Update(&raw mut context, bytes.as_ptr().cast(), bytes.len()) };
    *chain = context.h;
}
