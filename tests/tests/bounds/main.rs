//! Whatever a job waits for or works at has an end: by its operator's word, by its own bounds, or by `setdebug`. Nor does
//! what it knew outlast it.

mod cancel_reaches;
mod hang_ups;
mod heavy_expressions;
mod secrets;
