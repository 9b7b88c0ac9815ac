//! bed
