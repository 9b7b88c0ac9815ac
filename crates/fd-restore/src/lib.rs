//! fd-restore
