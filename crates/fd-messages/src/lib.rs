//! fd-messages
