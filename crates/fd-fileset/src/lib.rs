//! The FileSet as the Director sends it: lines parsed to types, and a path matched against them
//! (reference 03 §1–4).
//!
//! The crate does no input or output: where a line names a list file or a program, the [`Parser`]
//! returns a [`ListRequest`], and the caller feeds the names to it. Regular expressions are
//! compiled by the caller's [`RegexCompiler`]. Not here: walking a tree, running a program, reading
//! a file.

mod candidates;
mod effective;
mod fileset;
mod flags;
mod letters;
mod line;
mod lists;
mod literals;
mod options;
mod parser;
mod patterns;
mod plain_path;
mod program;
mod regex;
mod strip;
pub mod texts;
mod wildcard;

pub use effective::EffectiveOptions;
pub use fileset::{Exclude, FileSet, Include, Verdict};
pub use flags::Flags;
pub use line::Line;
pub use lists::NameSplitter;
pub use options::Options;
pub use parser::{BadFileSet, LineError, ListFailure, ListKind, ListRequest, Parser, Reaction};
pub use plain_path::{lies_in, plain_path};
pub use program::{ProgramNotAllowed, check_allowed};
pub use regex::{Regex, RegexCompiler};
pub use strip::strip_path;
pub use wildcard::{Wildcard, WildcardFlags, wildcard};
