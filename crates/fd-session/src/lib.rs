//! fd-session
