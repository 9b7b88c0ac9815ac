//! fd-compress
