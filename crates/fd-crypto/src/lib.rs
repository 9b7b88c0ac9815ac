//! fd-crypto
