//! The wild-card dialect of a FileSet (reference 03 §4.4), which is neither the C library's nor the
//! shell's.
//!
//! Bytes are compared, the whole text must match, `*` matches `/` and a leading dot, `[…]` has no
//! character classes, and only ASCII letters are folded. A pattern is compiled once; matching takes
//! at most pattern length × text length steps.

/// How patterns are read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WildcardFlags {
    /// ASCII letters match in either case (option letter `i`).
    pub fold_case: bool,
    /// `*`, `?` and sets do not match `/` (option letter `W`, reference 03 §4.4.3).
    pub path_name: bool,
}

/// Whether `pattern` matches the whole of `text`. For many texts, keep a [`Wildcard`].
pub fn wildcard(pattern: &[u8], text: &[u8], fold_case: bool) -> bool {
    Wildcard::new(pattern, WildcardFlags { fold_case, path_name: false }).is_match(text)
}

/// A compiled pattern. Every byte string is a valid pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wildcard {
    flags: WildcardFlags,
    /// The part before the first `*`, or everything if there is none.
    head: Segment,
    /// The parts between stars.
    middle: Vec<Segment>,
    /// The part after the last `*`; `None` if there is no star.
    tail: Option<Segment>,
}

/// Part of a pattern without `*`: it matches texts of one length only.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Segment(Vec<Item>);

/// The bytes that match at one place of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Item {
    Byte(u8),
    Any,
    Set(Box<ByteSet>),
}

/// Which of the 256 bytes are in a `[…]`: a bit for each.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ByteSet([u64; 4]);

impl Wildcard {
    /// Compiles a pattern.
    pub fn new(pattern: &[u8], flags: WildcardFlags) -> Self {
        let mut segments = vec![Segment::default()];
        let mut rest = pattern;
        // Where one set is not closed, none behind it is: it need not be looked for once more.
        let mut are_closed = true;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let item = match byte {
                b'*' => {
                    if segments.len() < 2 || segments.last().is_some_and(|segment| !segment.0.is_empty()) {
                        segments.push(Segment::default());
                    }
                    continue;
                }
                b'?' => Item::Any,
                b'[' if are_closed => {
                    if let Some((set, after_set)) = ByteSet::parse(after, flags) {
                        rest = after_set;
                        Item::Set(Box::new(set))
                    } else {
                        are_closed = false;
                        Item::Byte(b'[')
                    }
                }
                b'\\' => match after.split_first() {
                    Some((&quoted, after_quoted)) => {
                        rest = after_quoted;
                        Item::Byte(fold(quoted, flags))
                    }
                    None => Item::Byte(b'\\'),
                },
                other => Item::Byte(fold(other, flags)),
            };
            if let Some(segment) = segments.last_mut() {
                segment.0.push(item);
            }
        }
        let tail = if segments.len() > 1 { segments.pop() } else { None };
        let mut segments = segments.into_iter();
        let head = segments.next().unwrap_or_default();
        Self { flags, head, middle: segments.collect(), tail }
    }

    /// About the memory of the compiled pattern beside its own bytes, in bytes.
    pub(crate) fn memory(pattern: &[u8]) -> usize {
        let sets = pattern.split(|byte| *byte == b'[').count();
        pattern.len().saturating_mul(2 * size_of::<Item>()) + sets.saturating_mul(2 * size_of::<ByteSet>())
    }

    /// Whether a pattern matches itself and nothing else, case apart.
    pub(crate) fn is_plain(pattern: &[u8]) -> bool {
        !pattern.iter().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
    }

    /// Runs of bytes that are in every text that the pattern matches, in lower case if case is
    /// folded.
    pub(crate) fn literals(&self) -> impl Iterator<Item = Vec<u8>> {
        let segments = [&self.head].into_iter().chain(&self.middle).chain(&self.tail);
        let runs = segments.flat_map(|segment| segment.0.split(|item| !matches!(item, Item::Byte(_))));
        runs.filter(|run| !run.is_empty()).map(|run| {
            let bytes = run.iter().filter_map(|item| if let Item::Byte(byte) = item { Some(*byte) } else { None });
            bytes.collect()
        })
    }

    /// Whether the pattern matches the whole of `text`.
    ///
    /// Each part between two stars is taken at its leftmost place. That is enough: a later place
    /// leaves less text for the following parts, and where stars may not match `/`, a part that
    /// contains a `/` fits at one place only.
    pub fn is_match(&self, text: &[u8]) -> bool {
        let Some(tail) = &self.tail else {
            return text.len() == self.head.0.len() && self.starts(&self.head, text);
        };
        let Some(after_head) = text.get(self.head.0.len()..) else { return false };
        let Some((mut rest, end)) =
            after_head.len().checked_sub(tail.0.len()).and_then(|at| after_head.split_at_checked(at))
        else {
            return false;
        };
        if !self.starts(tail, end) || !self.starts(&self.head, text) {
            return false;
        }
        for part in &self.middle {
            match self.after_leftmost(part, rest) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        !self.flags.path_name || !rest.contains(&b'/')
    }

    /// The text behind the leftmost place of `part` that a star may reach.
    fn after_leftmost<'t>(&self, part: &Segment, text: &'t [u8]) -> Option<&'t [u8]> {
        for (at, window) in text.windows(part.0.len().max(1)).enumerate() {
            if self.starts(part, window) {
                return text.get(at.checked_add(part.0.len())?..);
            }
            if self.flags.path_name && window.first() == Some(&b'/') {
                return None;
            }
        }
        None
    }

    /// Whether `segment` matches the front of `text`.
    fn starts(&self, segment: &Segment, text: &[u8]) -> bool {
        text.len() >= segment.0.len()
            && segment.0.iter().zip(text).all(|(item, byte)| match item {
                Item::Byte(wanted) => *wanted == fold(*byte, self.flags),
                Item::Any => !(self.flags.path_name && *byte == b'/'),
                Item::Set(set) => !(self.flags.path_name && *byte == b'/') && set.contains(fold(*byte, self.flags)),
            })
    }
}

impl ByteSet {
    /// Reads a set; `text` starts after the `[`. Returns the text behind the `]`, or `None` if the
    /// set is not closed.
    fn parse(text: &[u8], flags: WildcardFlags) -> Option<(Self, &[u8])> {
        let mut set = Self([0; 4]);
        let negated = matches!(text.first(), Some(b'!' | b'^'));
        let mut rest = if negated { text.get(1..)? } else { text };
        let mut first = true;
        loop {
            if let (false, Some((b']', after))) = (first, rest.split_first()) {
                rest = after;
                break;
            }
            first = false;
            let (low, after_low) = member(rest, flags)?;
            rest = after_low;
            match rest {
                [b'-', next, ..] if *next != b']' => {
                    let (high, after_high) = member(rest.get(1..)?, flags)?;
                    rest = after_high;
                    set.insert_range(low, high);
                }
                _ => set.insert_range(low, low),
            }
        }
        if negated {
            set.0 = set.0.map(|bits| !bits);
        }
        Some((set, rest))
    }

    /// Adds every byte from `low` to `high`. Bytes compare as signed numbers, as the reference's
    /// build does.
    fn insert_range(&mut self, low: u8, high: u8) {
        for byte in low.cast_signed()..=high.cast_signed() {
            let byte = byte.cast_unsigned();
            if let Some(bits) = self.0.get_mut(usize::from(byte / 64)) {
                *bits |= 1 << (byte % 64);
            }
        }
    }

    fn contains(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte / 64)).is_some_and(|bits| bits & 1 << (byte % 64) != 0)
    }
}

/// One member or range end of a set, and what follows it.
fn member(text: &[u8], flags: WildcardFlags) -> Option<(u8, &[u8])> {
    let (&byte, rest) = text.split_first()?;
    if byte != b'\\' {
        return Some((fold(byte, flags), rest));
    }
    let (&quoted, rest) = rest.split_first()?;
    Some((fold(quoted, flags), rest))
}

fn fold(byte: u8, flags: WildcardFlags) -> u8 {
    if flags.fold_case { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests;
