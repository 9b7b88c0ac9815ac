//! POSIX ACLs: the kernel's attribute value, the long text of libacl in a record, and the
//! conversions.
//!
//! Reference 04 §10 and 05 §9.2. Not here: reading them from files or setting them, and ACLs of
//! other systems.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::text::decimal;
use crate::text::names::{Identities, Names};

/// Whose permissions an entry contains. The order is that of the entries in an ACL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AclTag {
    /// The owner.
    UserObject,
    /// The user of this number.
    User(u32),
    /// The owning group.
    GroupObject,
    /// The group of this number.
    Group(u32),
    /// The most that named entries and the owning group can give.
    Mask,
    /// All others.
    Other,
}

/// One entry of an ACL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AclEntry {
    /// Whose permissions.
    pub tag: AclTag,
    /// The permissions: 4 read, 2 write, 1 execute.
    pub permissions: u8,
}

/// An ACL, its entries ordered by tag and number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Acl {
    entries: Vec<AclEntry>,
}

/// Version of the kernel's form.
const KERNEL_VERSION: u32 = 2;
/// The entries of the longest value that the kernel accepts for an attribute, 64 KiB.
const MOST: usize = (64 * 1024 - 4) / 8;
/// The number of an entry without one.
const NO_NUMBER: u32 = u32::MAX;

impl Acl {
    /// The entries, in order.
    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// Whether the ACL contains no more than mode bits can: owner, group and others only (reference
    /// 04 §10).
    pub fn is_trivial(&self) -> bool {
        self.entries.iter().all(|entry| matches!(entry.tag, AclTag::UserObject | AclTag::GroupObject | AclTag::Other))
    }

    /// Whether the kernel accepts it.
    pub fn is_valid(&self) -> bool {
        let has = |tag: AclTag| self.entries.iter().any(|entry| entry.tag == tag);
        let named = self.entries.iter().any(|entry| matches!(entry.tag, AclTag::User(_) | AclTag::Group(_)));
        [AclTag::UserObject, AclTag::GroupObject, AclTag::Other].into_iter().all(has)
            && (!named || has(AclTag::Mask))
            && self.entries.windows(2).all(|pair| matches!(pair, [first, second] if first.tag != second.tag))
    }

    /// Reads the value of `system.posix_acl_access` or `system.posix_acl_default`; `None` if it is
    /// damaged, or longer than the kernel accepts.
    pub fn from_kernel(value: &[u8]) -> Option<Self> {
        let (chunks, cut) = value.strip_prefix(&KERNEL_VERSION.to_le_bytes())?.as_chunks::<8>();
        if !cut.is_empty() || chunks.len() > MOST {
            return None;
        }
        let mut entries = Vec::with_capacity(chunks.len());
        for [t0, t1, p0, _, n0, n1, n2, n3] in chunks {
            let number = u32::from_le_bytes([*n0, *n1, *n2, *n3]);
            let tag = match u16::from_le_bytes([*t0, *t1]) {
                0x01 => AclTag::UserObject,
                0x02 => AclTag::User(number),
                0x04 => AclTag::GroupObject,
                0x08 => AclTag::Group(number),
                0x10 => AclTag::Mask,
                0x20 => AclTag::Other,
                _ => return None,
            };
            entries.push(AclEntry { tag, permissions: p0 & 7 });
        }
        entries.sort_unstable();
        Some(Self { entries })
    }

    /// Appends the value for `system.posix_acl_access` or `system.posix_acl_default`.
    pub fn to_kernel(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&KERNEL_VERSION.to_le_bytes());
        for entry in &self.entries {
            let (tag, number) = match entry.tag {
                AclTag::UserObject => (0x01_u16, NO_NUMBER),
                AclTag::User(uid) => (0x02, uid),
                AclTag::GroupObject => (0x04, NO_NUMBER),
                AclTag::Group(gid) => (0x08, gid),
                AclTag::Mask => (0x10, NO_NUMBER),
                AclTag::Other => (0x20, NO_NUMBER),
            };
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&u16::from(entry.permissions).to_le_bytes());
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// The permissions that the mode of a file without this ACL may give the owning group and all
    /// others, so that no user gets more than by the ACL: its named users and groups are then
    /// members of these, too.
    pub fn least_without(&self) -> (u8, u8) {
        let of = |tag: AclTag| self.entries.iter().find(|entry| entry.tag == tag).map(|entry| entry.permissions);
        let mask = of(AclTag::Mask).unwrap_or(7);
        let named = self.entries.iter().filter(|entry| matches!(entry.tag, AclTag::User(_) | AclTag::Group(_)));
        let named = named.fold(7, |all, entry| all & entry.permissions & mask);
        (of(AclTag::GroupObject).unwrap_or(0) & mask & named, of(AclTag::Other).unwrap_or(0) & named)
    }

    /// Appends the long text, one entry a line, without the NUL that ends it in a record. Where the
    /// mask takes rights away, a comment says what is left, as libacl writes it.
    pub fn to_text(&self, out: &mut Vec<u8>, names: &mut dyn Names) {
        let mask = self.entries.iter().find(|entry| entry.tag == AclTag::Mask).map_or(7, |entry| entry.permissions);
        for entry in &self.entries {
            match entry.tag {
                AclTag::UserObject => out.extend_from_slice(b"user:"),
                AclTag::User(uid) => {
                    out.extend_from_slice(b"user:");
                    push_qualifier(out, uid, names.user_name(uid));
                }
                AclTag::GroupObject => out.extend_from_slice(b"group:"),
                AclTag::Group(gid) => {
                    out.extend_from_slice(b"group:");
                    push_qualifier(out, gid, names.group_name(gid));
                }
                AclTag::Mask => out.extend_from_slice(b"mask:"),
                AclTag::Other => out.extend_from_slice(b"other:"),
            }
            out.push(b':');
            push_permissions(out, entry.permissions);
            let is_masked = matches!(entry.tag, AclTag::User(_) | AclTag::GroupObject | AclTag::Group(_));
            if is_masked && entry.permissions & !mask != 0 {
                out.extend_from_slice(b"\t#effective:");
                push_permissions(out, entry.permissions & mask);
            }
            out.push(b'\n');
        }
    }

    /// Reads a text, up to its first NUL or its end, as far as this host can have it: without
    /// entries of users and groups that `identities` does not have. Two entries of the same user or
    /// group become one, with the permissions that both have. Long and short tag words, names and
    /// numbers, line ends, commas and comments are accepted, as by libacl.
    ///
    /// `None` if the text is no ACL, or a larger one than the kernel accepts; then no name is
    /// looked up.
    pub fn from_text_here(text: &[u8], identities: &mut dyn Identities) -> Option<AclHere> {
        let mut permissions = BTreeMap::new();
        let (mut unknown, mut merged) = (Vec::new(), Vec::new());
        for entry in parse(text)? {
            match entry.look_up(identities) {
                None => unknown.push(entry.text.to_vec()),
                Some(AclEntry { tag, permissions: here }) => match permissions.entry(tag) {
                    Entry::Vacant(place) => {
                        place.insert(here);
                    }
                    Entry::Occupied(mut there) => {
                        *there.get_mut() &= here;
                        merged.push(entry.text.to_vec());
                    }
                },
            }
        }
        let entries = permissions.into_iter().map(|(tag, permissions)| AclEntry { tag, permissions });
        Some(AclHere { acl: Self { entries: entries.collect() }, unknown, merged })
    }
}

/// What a host can have of an ACL from elsewhere.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AclHere {
    /// The ACL.
    pub acl: Acl,
    /// The texts of entries that are left out, because there is no such user or group.
    pub unknown: Vec<Vec<u8>>,
    /// The texts of entries for a user or group that an entry before is for, too.
    pub merged: Vec<Vec<u8>>,
}

fn push_permissions(out: &mut Vec<u8>, permissions: u8) {
    for (bit, letter) in [(4, b'r'), (2, b'w'), (1, b'x')] {
        out.push(if permissions & bit == 0 { b'-' } else { letter });
    }
}

/// Appends a user or group, by name if there is one. Bytes that would end the field become `\` and
/// three octal digits, and a `\` is doubled, as libacl writes them.
fn push_qualifier(out: &mut Vec<u8>, number: u32, name: Option<&[u8]>) {
    // A name of digits would be read back as a number, and be another user's.
    let Some(name) = name.filter(|name| !name.iter().all(u8::is_ascii_digit)) else {
        decimal::push_u64(out, u64::from(number));
        return;
    };
    for byte in name {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b':' | b',' | b' ' | b'\t' | b'\n' | b'\r' => {
                out.push(b'\\');
                for shift in [6, 3, 0] {
                    out.push(b'0' + (byte >> shift & 7));
                }
            }
            _ => out.push(*byte),
        }
    }
}

/// A name with its `\` and octal digits undone.
fn unquote(quoted: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', behind @ ..]) => {
                name.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                rest = behind;
            }
            (b'\\', [b'\\', behind @ ..]) => {
                name.push(b'\\');
                rest = behind;
            }
            _ => name.push(*byte),
        }
    }
    name
}

/// A position in the text of an ACL.
struct TextReader<'a> {
    text: &'a [u8],
    at: usize,
}

/// An entry of a text, whose user or group is not looked up yet.
struct TextEntry<'a> {
    text: &'a [u8],
    who: Who<'a>,
    permissions: u8,
}

/// Whose permissions an entry of a text contains.
enum Who<'a> {
    User(&'a [u8]),
    Group(&'a [u8]),
    /// The owner, the owning group, the mask or all others.
    Unnamed(AclTag),
}

impl TextEntry<'_> {
    /// The entry with the number of its user or group; `None` if this host does not have it.
    fn look_up(&self, identities: &mut dyn Identities) -> Option<AclEntry> {
        let tag = match self.who {
            Who::User(name) => AclTag::User(number_of(name, |name| identities.user_number(name))?),
            Who::Group(name) => AclTag::Group(number_of(name, |name| identities.group_number(name))?),
            Who::Unnamed(tag) => tag,
        };
        Some(AclEntry { tag, permissions: self.permissions })
    }
}

/// The entries of a text; `None` if it is no ACL.
fn parse(text: &[u8]) -> Option<Vec<TextEntry<'_>>> {
    let mut reader = TextReader::new(text);
    let mut entries = Vec::new();
    while reader.skip_to_entry() {
        if entries.len() >= MOST {
            return None;
        }
        entries.push(reader.entry()?);
    }
    Some(entries)
}

impl<'a> TextReader<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text: text.split(|byte| *byte == 0).next().unwrap_or_default(), at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips the separators between entries: blanks, line ends, one comma, comments. Returns false
    /// at the end.
    fn skip_to_entry(&mut self) -> bool {
        self.skip_blanks();
        if self.at != 0 && self.peek() == Some(b',') {
            self.at += 1;
            self.skip_blanks();
        }
        while self.peek() == Some(b'#') {
            while self.peek().is_some_and(|byte| byte != b'\n') {
                self.at += 1;
            }
            self.skip_blanks();
        }
        self.peek().is_some()
    }

    /// The bytes up to the next colon, which is taken too; without blanks around them.
    fn field(&mut self) -> Option<&'a [u8]> {
        let rest = self.text.get(self.at..)?;
        let end = rest.iter().position(|byte| matches!(byte, b':' | b',' | b'\n'))?;
        if rest.get(end) != Some(&b':') {
            return None;
        }
        self.at += end + 1;
        Some(rest.get(..end)?.trim_ascii())
    }

    fn entry(&mut self) -> Option<TextEntry<'a>> {
        let start = self.at;
        let who = match self.field()? {
            b"u" | b"user" => match self.field()? {
                b"" => Who::Unnamed(AclTag::UserObject),
                name => Who::User(name),
            },
            b"g" | b"group" => match self.field()? {
                b"" => Who::Unnamed(AclTag::GroupObject),
                name => Who::Group(name),
            },
            b"m" | b"mask" => {
                self.skip_empty_field();
                Who::Unnamed(AclTag::Mask)
            }
            b"o" | b"other" => {
                self.skip_empty_field();
                Who::Unnamed(AclTag::Other)
            }
            _ => return None,
        };
        let permissions = self.permissions()?;
        Some(TextEntry { text: self.text.get(start..self.at).unwrap_or_default(), who, permissions })
    }

    /// Mask and others may be written with or without their empty qualifier.
    fn skip_empty_field(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b':') {
            self.at += 1;
        }
    }

    fn permissions(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let mut permissions = 0;
        let mut letters = 0;
        while letters < 3 {
            permissions |= match self.peek() {
                Some(b'r') => 4,
                Some(b'w') => 2,
                Some(b'x') => 1,
                Some(b'-') => 0,
                _ => break,
            };
            self.at += 1;
            letters += 1;
        }
        let ended = self.peek().is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b'#'));
        (letters > 0 && ended).then_some(permissions)
    }
}

/// The number of a qualifier: the number itself, or that of the name.
fn number_of(qualifier: &[u8], lookup: impl FnOnce(&[u8]) -> Option<u32>) -> Option<u32> {
    let name = unquote(qualifier);
    match u32::try_from(decimal::take_i64(&name).0) {
        Ok(number) if name.iter().all(u8::is_ascii_digit) => Some(number),
        _ => lookup(&name),
    }
}

#[cfg(test)]
mod tests;
