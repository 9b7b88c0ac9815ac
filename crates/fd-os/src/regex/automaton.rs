//! The automaton that the C library makes of an expression, each repetition copied, with a bound
//! for each step.

use std::collections::HashSet;

use super::set::Set;
use super::tree::Tree;

/// Most nodes of the automaton; repetitions count as often as they are copied.
const MOST_NODES: usize = 4000;
/// Most nodes that can be reached without reading, summed over all nodes. The C library keeps lists
/// of them.
const MOST_REACHED: usize = 500_000;
/// Most states of the automaton that reads.
const MOST_STATES: usize = 2000;
/// Most steps to find them.
const MOST_WORK: usize = 1_000_000;

/// Bytes of a state that the C library makes while it matches, about: its tables, and its lists for
/// each node in it.
const BYTES_OF_STATE: usize = 6144;
const BYTES_OF_STATE_S_NODE: usize = 24;

struct Node {
    /// What it reads; `None` if nothing.
    set: Option<Set>,
    next: Vec<usize>,
}

/// The automaton as the C library builds it, each repetition copied.
pub(super) struct Automaton {
    nodes: Vec<Node>,
    start: usize,
    reached: Reached,
}

/// An automaton in the making.
#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    built: usize,
}

impl Builder {
    fn add(&mut self, set: Option<Set>, next: Vec<usize>) -> Option<usize> {
        self.nodes.push(Node { set, next });
        (self.nodes.len() <= MOST_NODES).then(|| self.nodes.len() - 1)
    }

    /// Adds the nodes of `tree` in front of `next`; returns the first.
    fn build(&mut self, tree: &Tree, next: usize) -> Option<usize> {
        self.built += 1;
        if self.built > MOST_WORK {
            return None;
        }
        match tree {
            Tree::Set(set) => self.add(Some(*set), vec![next]),
            Tree::Place => self.add(None, vec![next]),
            Tree::Group(inner) => {
                let close = self.add(None, vec![next])?;
                let inner = self.build(inner, close)?;
                self.add(None, vec![inner])
            }
            Tree::Sequence(all) => all.iter().rev().try_fold(next, |next, tree| self.build(tree, next)),
            Tree::Alternatives(all) => {
                let mut entry = None;
                for tree in all {
                    let one = self.build(tree, next)?;
                    entry = Some(match entry {
                        None => one,
                        Some(before) => self.add(None, vec![before, one])?,
                    });
                }
                entry
            }
            Tree::Repeat { tree, least, most } => {
                let rest = match most {
                    None => {
                        let again = self.add(None, vec![next])?;
                        let body = self.build(tree, again)?;
                        self.nodes.get_mut(again)?.next.insert(0, body);
                        again
                    }
                    Some(most) => self.optional(tree, most.saturating_sub(*least), next)?,
                };
                (0..*least).try_fold(rest, |next, _| self.build(tree, next))
            }
        }
    }

    /// Up to `most` copies: `(((x)?x)?x)?`.
    fn optional(&mut self, tree: &Tree, most: u32, next: usize) -> Option<usize> {
        let mut ends = Vec::new();
        let mut entry = next;
        for _ in 0..most {
            ends.push(entry);
            entry = self.build(tree, entry)?;
        }
        ends.into_iter().rev().try_fold(entry, |inner, end| self.add(None, vec![inner, end]))
    }
}

impl Automaton {
    /// `None` if it has more nodes, or more of them are reached without reading, than an expression
    /// may have.
    pub(super) fn of(tree: &Tree) -> Option<Self> {
        let mut builder = Builder::default();
        let end = builder.add(None, Vec::new())?;
        let start = builder.build(tree, end)?;
        let reached = Reached::of(&builder.nodes)?;
        Some(Self { nodes: builder.nodes, start, reached })
    }

    /// How many nodes it has.
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// How many nodes are reached without reading, summed over all nodes.
    pub(super) fn reached(&self) -> usize {
        self.reached.total
    }

    /// Memory of all states of the automaton that reads one byte after the other, about, in bytes;
    /// `None` if there are too many.
    pub(super) fn memory_of_states(&self) -> Option<usize> {
        let bytes = self.distinct_bytes();
        let mut known = HashSet::new();
        let reached = &self.reached;
        let first = reached.readers.get(self.start)?.clone();
        known.insert(first.clone());
        let mut open = vec![first];
        let mut work = 0_usize;
        while let Some(state) = open.pop() {
            for byte in &bytes {
                let mut target = Vec::new();
                for &reader in &state {
                    work += 1;
                    let node = self.nodes.get(reader)?;
                    let Some(set) = node.set.filter(|set| set.has(*byte)) else { continue };
                    let next = node.next.first().and_then(|next| reached.readers.get(*next));
                    target.extend_from_slice(next.map_or(&[], Vec::as_slice));
                    if set.wide && *byte >= 128 {
                        target.push(reader);
                    }
                }
                target.sort_unstable();
                target.dedup();
                work = work.saturating_add(target.len());
                if work > MOST_WORK {
                    return None;
                }
                if known.insert(target.clone()) {
                    open.push(target);
                }
            }
            if known.len() > MOST_STATES {
                return None;
            }
        }
        let nodes: usize = known.iter().map(Vec::len).sum();
        Some(known.len() * BYTES_OF_STATE + nodes * BYTES_OF_STATE_S_NODE)
    }

    /// One byte of each class that no node distinguishes.
    fn distinct_bytes(&self) -> Vec<u8> {
        let sets: HashSet<Set> = self.nodes.iter().filter_map(|node| node.set).collect();
        let sets: Vec<Set> = sets.into_iter().collect();
        let mut seen = HashSet::new();
        let signature = |byte: u8| -> Vec<u64> {
            let words = sets.chunks(64);
            let word = |sets: &[Set]| sets.iter().fold(0, |word, set| word << 1 | u64::from(set.has(byte)));
            words.map(word).chain([u64::from(byte >= 128)]).collect()
        };
        (0..=u8::MAX).filter(|byte| seen.insert(signature(*byte))).collect()
    }
}

/// What each node reaches without reading.
struct Reached {
    /// The nodes that read, in order.
    readers: Vec<Vec<usize>>,
    total: usize,
}

impl Reached {
    fn of(nodes: &[Node]) -> Option<Self> {
        let mut all = Self { readers: Vec::with_capacity(nodes.len()), total: 0 };
        let mut seen = vec![usize::MAX; nodes.len()];
        for start in 0..nodes.len() {
            let mut readers = Vec::new();
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                let mark = seen.get_mut(at)?;
                if std::mem::replace(mark, start) == start {
                    continue;
                }
                all.total += 1;
                if all.total > MOST_REACHED {
                    return None;
                }
                let node = nodes.get(at)?;
                if node.set.is_some() {
                    readers.push(at);
                } else {
                    open.extend(&node.next);
                }
            }
            readers.sort_unstable();
            all.readers.push(readers);
        }
        Some(all)
    }
}
