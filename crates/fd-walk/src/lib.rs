//! fd-walk
