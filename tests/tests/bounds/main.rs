//! Everything that a job waits for or works at ends: by a cancel, by its own bounds, or by
//! `setdebug`. Its secrets don't outlast it.

#![expect(clippy::unwrap_used, reason = "what helps a test fails the test, like the test itself")]

mod cancel_reaches;
mod cold_files;
mod floods;
mod hang_ups;
mod heavy_expressions;
mod memory_groups;
mod refused_calls;
mod reruns;
mod secrets;
mod slow_storage;
