//! fd-backup
