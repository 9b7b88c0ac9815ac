//! fd-os
