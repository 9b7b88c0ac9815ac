//! fd-bsock
