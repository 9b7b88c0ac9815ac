//! fd-config
