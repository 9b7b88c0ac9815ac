//! fd-metadata
