//! fd-records
