//! fd-fileset
