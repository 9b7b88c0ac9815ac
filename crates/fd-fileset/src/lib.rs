//! The FileSet as the Director sends it: lines parsed to types, and a path matched against them
//! (reference 03 §1–4).
//!
//! The crate does no input or output: where a line names a list file or a program, the [`Parser`]
//! returns a [`ListRequest`], and the caller feeds the names to it. Regular expressions are
//! compiled by the caller's [`RegexCompiler`]. Not here: walking a tree, running a program, reading
//! a file.

mod effective;
mod fileset;
mod matching;
mod parse;
mod path;
pub mod texts;

pub use effective::EffectiveOptions;
pub use fileset::{Exclude, FileSet, Include, Verdict};
pub use matching::regex::{Regex, RegexCompiler};
pub use matching::wildcard::{Wildcard, WildcardFlags, wildcard};
pub use parse::draft::{Added, Addition, Draft, NewCommand};
pub use parse::flags::Flags;
pub use parse::line::Line;
pub use parse::options::Options;
pub use parse::parser::{Parser, Reaction};
pub use parse::problem::{BadFileSet, LineError, ListFailure, ListKind, ListRequest};
pub use path::plain_path::{lies_in, plain_path};
pub use path::program::{ProgramNotAllowed, check_allowed};
pub use path::strip::strip_path;
