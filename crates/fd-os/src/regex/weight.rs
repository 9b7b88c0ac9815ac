//! What a regular expression costs the C library, found out before it is compiled.
//!
//! The C library compiles an expression by recursion over its parentheses and copies what is
//! repeated; it matches with an automaton whose states it makes when it needs them, and keeps. None
//! of this has a bound. So the same automaton is made here first, without the parts that only
//! matter for an answer, and with a bound for each step. What stays within the bounds is *light*:
//! compiling takes little memory and stack, and matching takes time that grows with the square of
//! the text's length at most. Everything else, back-references before all, belongs into a process
//! that may die.
//!
//! Where the locale decides what a set of characters holds, all of them are taken to be in it, so
//! that the automaton here is not smaller than the real one.

use super::automaton::Automaton;
use super::tree::read;

/// Bytes of a compiled expression, about: what each has, and for each node, and for each that
/// another one reaches.
const BASE: usize = 4096;
const BYTES_OF_NODE: usize = 220;
const BYTES_OF_REACHED: usize = 16;

/// What a light expression costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    /// Memory of the compiled expression, about, in bytes.
    pub compiled: usize,
    /// The most memory that matching adds to it, whatever the texts, about, in bytes.
    pub matching: usize,
}

/// Weighs an extended expression; `None` if it is too heavy to be compiled and matched in this
/// process. Errors in it are the C library's to find.
pub fn weigh(pattern: &[u8], ignore_case: bool) -> Option<Weight> {
    let until_nul = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
    let automaton = Automaton::of(&read(until_nul, ignore_case)?)?;
    let matching = automaton.memory_of_states()?;
    let compiled = BASE + automaton.nodes() * BYTES_OF_NODE + automaton.reached() * BYTES_OF_REACHED;
    Some(Weight { compiled, matching })
}

#[cfg(test)]
mod tests;
