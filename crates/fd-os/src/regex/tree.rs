//! An expression as a tree, read as the C library reads it.

use super::set::Set;

/// Deepest nesting of groups, and most repetitions of repetitions in all. What reads the tree goes
/// down into both.
const MOST_NESTING: usize = 100;
/// Highest number of a repetition; more is an error.
const MOST_REPEATS: u32 = 0x7fff;

/// The structure of an expression.
pub(super) enum Tree {
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

/// Reads an expression up to its end; errors in it are the C library's to find. `None`: too deep,
/// or a back-reference.
pub(super) fn read(pattern: &[u8], ignore_case: bool) -> Option<Tree> {
    Reader { rest: pattern, depth: 0, repeated_again: 0, ignore_case }.alternatives()
}

struct Reader<'p> {
    rest: &'p [u8],
    depth: usize,
    /// How many repetitions there are of what is a repetition already.
    repeated_again: usize,
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
        let mut is_repeated = false;
        while let Some((least, most, behind)) = repetition(self.rest) {
            self.rest = behind;
            self.repeated_again += usize::from(is_repeated);
            if self.repeated_again > MOST_NESTING {
                return None;
            }
            is_repeated = true;
            tree = Tree::Repeat { tree: Box::new(tree), least, most };
        }
        Some(tree)
    }

    /// What follows `[`. Classes and everything that is not plain ASCII are taken to be all bytes.
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

/// How often, and what follows. A brace that is none is either an error or a literal one.
fn repetition(text: &[u8]) -> Option<(u32, Option<u32>, &[u8])> {
    match text.split_first()? {
        (b'*', behind) => Some((0, None, behind)),
        (b'+', behind) => Some((1, None, behind)),
        (b'?', behind) => Some((0, Some(1), behind)),
        (b'{', _) => interval(text),
        _ => None,
    }
}

/// `{n}`, `{n,}`, `{,m}` or `{n,m}`, and what follows.
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
