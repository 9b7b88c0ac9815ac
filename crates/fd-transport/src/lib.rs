//! fd-transport
