//! Under which name a file is restored: `where` and `regexwhere` (reference 05 §5).

mod output_names;
mod regex_where;

pub use output_names::OutputNames;
pub use regex_where::{CompileName, NameRegex, RegexWhere, Undecided};

pub(crate) use output_names::OutputName;
