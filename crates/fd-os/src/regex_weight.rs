//! What a regular expression costs the C library, found out before it is compiled.
//!
//! The C library compiles an expression by recursion over its parentheses and copies what is repeated; it matches with an
//! automaton whose states it makes when it needs them, and keeps. None of this has a bound. So the same automaton is made
//! here first, without the parts that only matter for an answer, and with a bound for each step. What stays within the
//! bounds is *light*: compiling takes little memory and stack, and matching takes time that grows with the square of the
//! text's length at most. Everything else, back-references before all, belongs into a process that may die.
//!
//! Where the locale decides what a set of characters holds, all of them are taken to be in it, so that the automaton here
//! is not smaller than the real one.

use std::collections::HashSet;

/// Deepest nesting of groups, and of repetitions of repetitions.
const MOST_NESTING: usize = 100;
/// Most nodes of the automaton; repetitions count as often as they are copied.
const MOST_NODES: usize = 4000;
/// Most nodes that can be reached without reading, summed over all nodes. The C library keeps lists of them.
const MOST_REACHED: usize = 500_000;
/// Most states of the automaton that reads.
const MOST_STATES: usize = 2000;
/// Most steps to find them.
const MOST_WORK: usize = 1_000_000;
/// Highest number of a repetition; more is an error.
const MOST_REPEATS: u32 = 0x7fff;

/// Bytes of a compiled expression, about: what each has, and for each node, and for each that another one reaches.
const BASE: usize = 4096;
const BYTES_OF_NODE: usize = 220;
const BYTES_OF_REACHED: usize = 16;
/// Bytes of a state that the C library makes while it matches, about: its tables, and its lists for each node in it.
const BYTES_OF_STATE: usize = 6144;
const BYTES_OF_STATE_S_NODE: usize = 24;

/// What a light expression costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weight {
    /// Memory of the compiled expression, about, in bytes.
    pub compiled: usize,
    /// The most memory that matching adds to it, whatever the texts, about, in bytes.
    pub matching: usize,
}

/// Weighs an extended expression; `None` if it is too heavy to be compiled and matched in this process. Errors in it are
/// the C library's to find.
pub fn weigh(pattern: &[u8], ignore_case: bool) -> Option<Weight> {
    let until_nul = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
    let tree = Reader { rest: until_nul, depth: 0, ignore_case }.alternatives()?;
    let mut automaton = Automaton { nodes: Vec::new(), built: 0 };
    let end = automaton.add(None, Vec::new())?;
    let start = automaton.build(&tree, end)?;
    let reached = Reached::of(&automaton.nodes)?;
    let matching = automaton.memory_of_states(start, &reached)?;
    let compiled = BASE + automaton.nodes.len() * BYTES_OF_NODE + reached.total * BYTES_OF_REACHED;
    Some(Weight { compiled, matching })
}

/// Bytes of one place of a text. `wide` ones may be characters of several bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Set {
    bytes: [u64; 4],
    wide: bool,
}

impl Set {
    const NONE: Self = Self { bytes: [0; 4], wide: false };
    const ALL: Self = Self { bytes: [u64::MAX; 4], wide: true };

    fn add(&mut self, byte: u8) {
        if let Some(word) = self.bytes.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    fn add_range(&mut self, range: std::ops::RangeInclusive<u8>) {
        range.for_each(|byte| self.add(byte));
    }

    fn has(&self, byte: u8) -> bool {
        self.bytes.get(usize::from(byte >> 6)).is_some_and(|word| word >> (byte & 63) & 1 == 1)
    }

    fn literal(byte: u8, ignore_case: bool) -> Self {
        let mut set = Self::NONE;
        set.add(byte);
        if ignore_case {
            set.fold_case();
        }
        set
    }

    /// Which letters belong together is for the locale to say beyond ASCII, and there even `k` has a third form.
    fn fold_case(&mut self) {
        for byte in 0..=u8::MAX {
            if self.has(byte) && byte.is_ascii_alphabetic() {
                self.add(byte ^ 0x20);
                self.widen();
            }
        }
        if (128..=u8::MAX).any(|byte| self.has(byte)) {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.add_range(128..=u8::MAX);
        self.wide = true;
    }
}

enum Tree {
    Set(Set),
    /// Matches no character: a place such as `^`.
    Place,
    Group(Box<Tree>),
    Sequence(Vec<Tree>),
    Alternatives(Vec<Tree>),
    Repeat {
        tree: Box<Tree>,
        least: u32,
        most: Option<u32>,
    },
}

/// Reads an expression as the C library does. `None`: too deep, or a back-reference.
struct Reader<'p> {
    rest: &'p [u8],
    depth: usize,
    ignore_case: bool,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn alternatives(&mut self) -> Option<Tree> {
        let mut all = vec![self.sequence()?];
        while self.rest.first() == Some(&b'|') {
            self.next();
            all.push(self.sequence()?);
        }
        Some(if all.len() == 1 { all.pop()? } else { Tree::Alternatives(all) })
    }

    fn sequence(&mut self) -> Option<Tree> {
        let mut all = Vec::new();
        loop {
            match self.rest.first() {
                None | Some(b'|') => break,
                Some(b')') if self.depth > 0 => break,
                Some(_) => {}
            }
            let atom = self.atom()?;
            all.push(self.repeated(atom)?);
        }
        Some(Tree::Sequence(all))
    }

    fn atom(&mut self) -> Option<Tree> {
        let literal = |byte| Tree::Set(Set::literal(byte, self.ignore_case));
        Some(match self.rest.split_first()? {
            (b'(', rest) => {
                self.rest = rest;
                self.depth += 1;
                if self.depth > MOST_NESTING {
                    return None;
                }
                let inner = self.alternatives()?;
                // Without it the expression is an error.
                if self.rest.first() == Some(&b')') {
                    self.next();
                }
                self.depth -= 1;
                Tree::Group(Box::new(inner))
            }
            (b'[', rest) => {
                self.rest = rest;
                Tree::Set(self.bracket())
            }
            (b'.', rest) => {
                self.rest = rest;
                Tree::Set(Set::ALL)
            }
            (b'^' | b'$', rest) => {
                self.rest = rest;
                Tree::Place
            }
            (b'\\', rest) => {
                let (&byte, behind) = rest.split_first().unwrap_or((&b'\\', &[]));
                self.rest = behind;
                match byte {
                    b'1'..=b'9' => return None,
                    b'w' | b'W' | b's' | b'S' => Tree::Set(Set::ALL),
                    b'<' | b'>' | b'b' | b'B' | b'`' | b'\'' => Tree::Place,
                    byte => literal(byte),
                }
            }
            (&byte, rest) => {
                self.rest = rest;
                literal(byte)
            }
        })
    }

    /// The repetitions behind an atom.
    fn repeated(&mut self, mut tree: Tree) -> Option<Tree> {
        for _ in 0..=MOST_NESTING {
            let (least, most) = match self.rest.first() {
                Some(b'*') => (0, None),
                Some(b'+') => (1, None),
                Some(b'?') => (0, Some(1)),
                Some(b'{') => match interval(self.rest) {
                    Some((least, most, behind)) => {
                        self.rest = behind;
                        tree = Tree::Repeat { tree: Box::new(tree), least, most };
                        continue;
                    }
                    // Either an error or a brace that stands for itself.
                    None => return Some(tree),
                },
                _ => return Some(tree),
            };
            self.next();
            tree = Tree::Repeat { tree: Box::new(tree), least, most };
        }
        None
    }

    /// What stands behind `[`. Classes and everything that is not plain ASCII are taken to be all bytes.
    fn bracket(&mut self) -> Set {
        let mut set = Set::NONE;
        let negated = self.rest.first() == Some(&b'^');
        if negated {
            self.next();
        }
        let mut first = true;
        let mut before = None;
        while let Some(byte) = self.next() {
            match (byte, self.rest.first()) {
                (b']', _) if !first => break,
                (b'[', Some(&kind @ (b':' | b'.' | b'='))) => {
                    self.next();
                    let mut last = 0;
                    while let Some(byte) = self.next() {
                        if last == kind && byte == b']' {
                            break;
                        }
                        last = byte;
                    }
                    set = Set::ALL;
                }
                (b'-', Some(&end)) if before.is_some() && end != b']' => {
                    match before {
                        Some(start) if start < 128 && end < 128 && end != b'[' => {
                            set.add_range(start..=end);
                            self.next();
                        }
                        _ => set = Set::ALL,
                    }
                    before = None;
                    first = false;
                    continue;
                }
                _ => {
                    set.add(byte);
                    if byte >= 128 {
                        set.widen();
                    }
                }
            }
            before = Some(byte);
            first = false;
        }
        if negated {
            // What is left out makes the automaton distinguish it; the rest may be anything.
            let bytes = if set == Set::ALL { set.bytes } else { set.bytes.map(|word| !word) };
            set = Set { bytes, wide: true };
            set.widen();
        }
        if self.ignore_case {
            set.fold_case();
        }
        set
    }
}

/// `{n}`, `{n,}`, `{,m}` or `{n,m}`, and what stands behind it.
fn interval(text: &[u8]) -> Option<(u32, Option<u32>, &[u8])> {
    let text = text.strip_prefix(b"{")?;
    let end = text.iter().position(|byte| *byte == b'}')?;
    let (inner, behind) = (text.get(..end)?, text.get(end + 1..)?);
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok().map(|n: u32| n.min(MOST_REPEATS));
    let mut parts = inner.splitn(2, |byte| *byte == b',');
    let (first, second) = (parts.next()?, parts.next());
    let least = if first.is_empty() && second.is_some() { 0 } else { number(first)? };
    let most = match second {
        None => Some(least),
        Some(b"") => None,
        Some(digits) => Some(number(digits)?),
    };
    Some((least, most, behind))
}

struct Node {
    /// What it reads; `None` if nothing.
    set: Option<Set>,
    next: Vec<usize>,
}

/// The automaton as the C library builds it, each repetition copied.
struct Automaton {
    nodes: Vec<Node>,
    built: usize,
}

impl Automaton {
    fn add(&mut self, set: Option<Set>, next: Vec<usize>) -> Option<usize> {
        self.nodes.push(Node { set, next });
        (self.nodes.len() <= MOST_NODES).then(|| self.nodes.len() - 1)
    }

    /// Adds what `tree` stands for in front of `next`; its first node.
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

    /// Memory of all states of the automaton that reads one byte after the other.
    fn memory_of_states(&self, start: usize, reached: &Reached) -> Option<usize> {
        let bytes = self.distinct_bytes();
        let mut known = HashSet::new();
        let first = reached.readers.get(start)?.clone();
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

    /// One of each kind of bytes that no node tells apart.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn light(pattern: &str) -> Option<Weight> {
        let sensitive = weigh(pattern.as_bytes(), false);
        let insensitive = weigh(pattern.as_bytes(), true);
        assert_eq!(sensitive.is_some(), insensitive.is_some(), "{pattern}");
        sensitive
    }

    #[test]
    fn what_file_sets_have_is_light() {
        let long = format!("^/srv/({})/.*", (0..150).map(|n| format!("project{n:03}")).collect::<Vec<_>>().join("|"));
        for pattern in [
            "",
            r".*\.o$",
            r"\.(jpg|jpeg|png|gif|mp3|mp4|avi|mkv|iso)$",
            r"^/home/[^/]+/\.(cache|thumbnails|local/share/Trash)(/|$)",
            r"^/var/lib/[a-z0-9_-]+/.*/(tmp|cache)/.*\.[0-9]{1,5}$",
            r"[[:digit:]]{4}-[[:digit:]]{2}-[[:digit:]]{2}",
            r"(^|/)\.git(/|$)",
            r".*/(core|vgcore)\.[0-9]+$",
            r"/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/",
            r"^/home/(a|b|c).*/.*Größe.*\.[Tt][Xx][Tt]$",
            r"\<tmp\>|~$|^#.*#$",
            &long,
        ] {
            let weight = light(pattern).unwrap_or_else(|| panic!("{pattern}"));
            assert!(weight.compiled < 2 << 20 && weight.matching < 16 << 20, "{pattern}: {weight:?}");
        }
    }

    #[test]
    fn what_takes_memory_stack_or_time_without_bound_is_not() {
        let deep = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
        let dense = "a?".repeat(3000);
        for pattern in [
            r"(a)\1",
            r"((a*)*)*\1c",
            "((a{1,200}){1,200}){1,20}",
            "a{32767}",
            "a{0}{32767}{32767}{32767}",
            "(|){32767}",
            "(a?){2000}",
            ".*a.{30}x$",
            "[ab]*a[ab]{20}x$",
            &deep,
            &"(".repeat(5000),
            &format!("a{}", "*".repeat(5000)),
            &dense,
            &"x".repeat(100_000),
        ] {
            assert_eq!(light(pattern), None, "{}", pattern.get(..40).unwrap_or(pattern));
        }
    }

    #[test]
    fn odd_expressions_are_read_to_their_end() {
        for pattern in [
            "(", ")", "[", "[]", "[^", "[[:", "[a-", "[]-a]", "[z-a]", "{", "a{", "a{1", "a{,}", "a{2,1}", "\\", "*a",
            "|", "()", "^*",
        ] {
            assert!(light(pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn a_nul_ends_an_expression() {
        assert_eq!(weigh(b"ab\0\\1(", false), weigh(b"ab", false));
    }
}
