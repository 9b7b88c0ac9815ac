//! fd-plugins
