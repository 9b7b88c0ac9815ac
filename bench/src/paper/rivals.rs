//! Other programs that save trees, beside both daemons: the steps of a benchmark that Cloudstic has
//! published. A first copy, nothing new, one file changed, two fifths more, the same once more, and
//! what is stored in the end.

pub mod adapter;
pub mod numbers;
pub mod published;
pub mod rival;
pub mod row;
pub mod run;
pub mod set;
