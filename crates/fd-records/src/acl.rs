//! POSIX ACLs: the kernel's attribute value, the long text of libacl that stands in a record, and what is between.
//!
//! Reference 04 §10 and 05 §9.2. Not here: reading them from files or setting them, and ACLs of other systems.

use crate::decimal;
use crate::names::{Identities, Names};

/// Whose permissions an entry says. The order is that in which entries stand in an ACL.
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
    /// Everybody else.
    Other,
}

/// One entry of an ACL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AclEntry {
    /// Whose.
    pub tag: AclTag,
    /// What: 4 read, 2 write, 1 execute.
    pub permissions: u8,
}

/// An ACL, its entries ordered by tag and number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Acl {
    entries: Vec<AclEntry>,
}

/// Why bytes are no ACL.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AclError {
    /// The kernel's value has another version than 2, or is cut.
    #[error("kernel ACL of {length} bytes and version {version}, expected version 2 and entries of 8 bytes")]
    Kernel {
        /// Length of the value.
        length: usize,
        /// The version in it.
        version: u32,
    },
    /// The kernel's value has an entry with an unknown tag.
    #[error("unknown tag {0:#x} in a kernel ACL")]
    Tag(u16),
    /// The text can't be read.
    #[error("no ACL entry at byte {0} of the text")]
    Text(usize),
    /// The text names somebody whom this machine does not know.
    #[error("no {kind} called {name:?}")]
    Unknown {
        /// `user` or `group`.
        kind: &'static str,
        /// The name.
        name: String,
    },
}

/// Why an ACL can't be set on a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidAcl {
    /// Owner, owning group or others lack an entry.
    #[error("an entry that every ACL needs is missing")]
    Missing,
    /// Somebody has two.
    #[error("two entries for the same")]
    Duplicate,
    /// There are entries for named users or groups, but no mask.
    #[error("named entries without a mask")]
    MaskMissing,
}

/// Version of the kernel's form.
const KERNEL_VERSION: u32 = 2;
/// The number of an entry without one.
const NO_NUMBER: u32 = u32::MAX;

impl Acl {
    /// An ACL of these entries, which are brought into order.
    pub fn new(mut entries: Vec<AclEntry>) -> Self {
        entries.sort_unstable();
        Self { entries }
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// Whether the ACL says no more than mode bits can: owner, group and others only (reference 04 §10).
    pub fn is_trivial(&self) -> bool {
        self.entries.iter().all(|entry| matches!(entry.tag, AclTag::UserObject | AclTag::GroupObject | AclTag::Other))
    }

    /// Whether the kernel would take it.
    pub fn validate(&self) -> Result<(), InvalidAcl> {
        if self.entries.windows(2).any(|pair| matches!(pair, [first, second] if first.tag == second.tag)) {
            return Err(InvalidAcl::Duplicate);
        }
        let has = |tag: AclTag| self.entries.iter().any(|entry| entry.tag == tag);
        if !(has(AclTag::UserObject) && has(AclTag::GroupObject) && has(AclTag::Other)) {
            return Err(InvalidAcl::Missing);
        }
        let named = self.entries.iter().any(|entry| matches!(entry.tag, AclTag::User(_) | AclTag::Group(_)));
        if named && !has(AclTag::Mask) { Err(InvalidAcl::MaskMissing) } else { Ok(()) }
    }

    /// Reads the value of `system.posix_acl_access` or `system.posix_acl_default`.
    pub fn from_kernel(value: &[u8]) -> Result<Self, AclError> {
        let (version, rest) =
            value.split_first_chunk().map_or((0, value), |(version, rest)| (u32::from_le_bytes(*version), rest));
        let (chunks, cut) = rest.as_chunks::<8>();
        if version != KERNEL_VERSION || !cut.is_empty() {
            return Err(AclError::Kernel { length: value.len(), version });
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
                other => return Err(AclError::Tag(other)),
            };
            entries.push(AclEntry { tag, permissions: p0 & 7 });
        }
        Ok(Self::new(entries))
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

    /// Appends the long text, one entry a line, without the NUL that ends it in a record.
    pub fn to_text(&self, out: &mut Vec<u8>, names: &mut dyn Names) {
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
            for (bit, letter) in [(4, b'r'), (2, b'w'), (1, b'x')] {
                out.push(if entry.permissions & bit == 0 { b'-' } else { letter });
            }
            out.push(b'\n');
        }
    }

    /// Reads a text, up to its first NUL or its end. Long and short tag words, names and numbers, line ends,
    /// commas and comments are understood, as by libacl.
    pub fn from_text(text: &[u8], identities: &mut dyn Identities) -> Result<Self, AclError> {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut reader = TextReader { text, at: 0 };
        let mut entries = Vec::new();
        while reader.skip_to_entry() {
            entries.push(reader.entry(identities)?);
        }
        Ok(Self::new(entries))
    }
}

/// Appends a user or group, by name if there is one. Bytes that would end the field stand as `\` and three octal
/// digits and a `\` is doubled, as libacl writes them.
fn push_qualifier(out: &mut Vec<u8>, number: u32, name: Option<&[u8]>) {
    let Some(name) = name else {
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

/// Walks over the text of an ACL.
struct TextReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> TextReader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Skips what may stand between entries: blanks, line ends, one comma, comments. False at the end.
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

    fn error(&self) -> AclError {
        AclError::Text(self.at)
    }

    /// The bytes up to the next colon, which is taken too; without blanks around them.
    fn field(&mut self) -> Result<&'a [u8], AclError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|byte| matches!(byte, b':' | b',' | b'\n')).ok_or_else(|| self.error())?;
        if rest.get(end) != Some(&b':') {
            return Err(self.error());
        }
        self.at += end + 1;
        Ok(rest.get(..end).unwrap_or_default().trim_ascii())
    }

    fn entry(&mut self, identities: &mut dyn Identities) -> Result<AclEntry, AclError> {
        let start = self.at;
        let tag = match self.field()? {
            b"u" | b"user" => match self.field()? {
                b"" => AclTag::UserObject,
                name => AclTag::User(number_of(name, "user", |name| identities.user_number(name))?),
            },
            b"g" | b"group" => match self.field()? {
                b"" => AclTag::GroupObject,
                name => AclTag::Group(number_of(name, "group", |name| identities.group_number(name))?),
            },
            b"m" | b"mask" => {
                self.skip_empty_field();
                AclTag::Mask
            }
            b"o" | b"other" => {
                self.skip_empty_field();
                AclTag::Other
            }
            _ => return Err(AclError::Text(start)),
        };
        let permissions = self.permissions()?;
        Ok(AclEntry { tag, permissions })
    }

    /// Mask and others may be written with or without their empty qualifier.
    fn skip_empty_field(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b':') {
            self.at += 1;
        }
    }

    fn permissions(&mut self) -> Result<u8, AclError> {
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
        if letters == 0 || !ended { Err(self.error()) } else { Ok(permissions) }
    }
}

/// The number of a qualifier: the number itself, or that of the name.
fn number_of(qualifier: &[u8], kind: &'static str, lookup: impl FnOnce(&[u8]) -> Option<u32>) -> Result<u32, AclError> {
    let name = unquote(qualifier);
    if let (Ok(number), true) = (decimal_number(&name), name.iter().all(u8::is_ascii_digit)) {
        return Ok(number);
    }
    lookup(&name).ok_or_else(|| AclError::Unknown { kind, name: String::from_utf8_lossy(&name).into_owned() })
}

fn decimal_number(digits: &[u8]) -> Result<u32, std::num::TryFromIntError> {
    u32::try_from(decimal::take_i64(digits).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_bytes::hex;

    /// A machine with two users and two groups.
    struct Machine;

    const USERS: [(&[u8], u32); 2] = [(b"daemon", 1), (b"domain admin", 5000)];
    const GROUPS: [(&[u8], u32); 2] = [(b"bin", 2), (b"a:b\\c", 6000)];

    fn name_of(list: &'static [(&'static [u8], u32)], number: u32) -> Option<&'static [u8]> {
        list.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
    }

    fn find(list: &[(&[u8], u32)], name: &[u8]) -> Option<u32> {
        list.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    impl Names for Machine {
        fn user_name(&mut self, uid: u32) -> Option<&[u8]> {
            name_of(&USERS, uid)
        }
        fn group_name(&mut self, gid: u32) -> Option<&[u8]> {
            name_of(&GROUPS, gid)
        }
    }

    impl Identities for Machine {
        fn user_number(&mut self, name: &[u8]) -> Option<u32> {
            find(&USERS, name)
        }
        fn group_number(&mut self, name: &[u8]) -> Option<u32> {
            find(&GROUPS, name)
        }
    }

    fn text_of(acl: &Acl) -> String {
        let mut out = Vec::new();
        acl.to_text(&mut out, &mut Machine);
        String::from_utf8(out).unwrap()
    }

    fn read(text: &str) -> Result<Acl, AclError> {
        Acl::from_text(text.as_bytes(), &mut Machine)
    }

    const KERNEL: &str = "02000000 01000600ffffffff 0200060001000000 04000400ffffffff 0800040002000000 10000600ffffffff 20000400ffffffff";
    const TEXT: &str = "user::rw-\nuser:daemon:rw-\ngroup::r--\ngroup:bin:r--\nmask::rw-\nother::r--\n";

    #[test]
    fn the_kernel_value_of_the_reference_becomes_its_text_and_back() {
        let acl = Acl::from_kernel(&hex(KERNEL)).unwrap();
        assert_eq!(text_of(&acl), TEXT);
        assert!(!acl.is_trivial());
        assert_eq!(acl.validate(), Ok(()));
        let again = read(TEXT).unwrap();
        assert_eq!(again, acl);
        let mut kernel = Vec::new();
        again.to_kernel(&mut kernel);
        assert_eq!(kernel, hex(KERNEL));
    }

    #[test]
    fn the_payload_of_the_volume_is_the_text_with_its_nul() {
        let payload = hex(
            "757365723a3a72772d0a757365723a6461656d6f6e3a72772d0a67726f75703a3a722d2d0a67726f75703a62696e3a722d2d0a6d61736b3a3a72772d0a6f746865723a3a722d2d0a00",
        );
        assert_eq!(Acl::from_text(&payload, &mut Machine).unwrap(), Acl::from_kernel(&hex(KERNEL)).unwrap());
        assert_eq!(payload, [TEXT.as_bytes(), b"\0"].concat());
    }

    #[test]
    fn the_kernel_form_of_a_restore_is_that_of_the_reference() {
        let acl = read("user::rw-\nuser:1234:rw-\ngroup::r--\nmask::rw-\nother::r--\n").unwrap();
        let mut kernel = Vec::new();
        acl.to_kernel(&mut kernel);
        assert_eq!(
            kernel,
            hex("02000000 01000600ffffffff 02000600d2040000 04000400ffffffff 10000600ffffffff 20000400ffffffff")
        );
    }

    #[test]
    fn entries_are_brought_into_order() {
        let acl =
            read("other::r--\nmask::rwx\ngroup:9:---\ngroup:3:r-x\nuser:8:r--\nuser:7:-w-\ngroup::---\nuser::rwx")
                .unwrap();
        assert_eq!(
            text_of(&acl),
            "user::rwx\nuser:7:-w-\nuser:8:r--\ngroup::---\ngroup:3:r-x\ngroup:9:---\nmask::rwx\nother::r--\n"
        );
    }

    #[test]
    fn names_with_separators_are_quoted() {
        let text = "user::rwx\nuser:domain\\040admin:r--\ngroup::---\ngroup:a\\072b\\\\c:r-x\nmask::r-x\nother::---\n";
        let acl = read(text).unwrap();
        assert_eq!(acl.entries()[1].tag, AclTag::User(5000));
        assert_eq!(acl.entries()[3].tag, AclTag::Group(6000));
        assert_eq!(text_of(&acl), text);
    }

    #[test]
    fn other_spellings_are_understood() {
        let plain = read(TEXT).unwrap();
        for text in [
            "u::rw-,u:1:rw-,g::r--,g:2:r--,m::rw-,o::r--",
            "# file: x\nuser::rw-\nuser:daemon:rw-\t#effective:rw-\ngroup::r--\ngroup:bin:r--\nmask:rw-\nother:r--",
            "user::rw\n user : daemon : rw\ngroup::r\ngroup:bin:r\nmask:rw\nother:r\n\n",
        ] {
            assert_eq!(read(text), Ok(plain.clone()), "{text}");
        }
    }

    #[test]
    fn what_is_no_acl_is_refused() {
        assert_eq!(read("user::rw-\nrubbish"), Err(AclError::Text(10)));
        for text in ["user:", "user::", "user::rwz", "user::rwxr", "owner::rwx", "user::rwx other", ":::", "user::6"] {
            assert!(matches!(read(text), Err(AclError::Text(_))), "{text}");
        }
        assert_eq!(
            read("user:nobody-here:r--"),
            Err(AclError::Unknown { kind: "user", name: "nobody-here".to_owned() })
        );
        assert!(read("group:99999999999:r--").is_err());
        assert_eq!(read(""), Ok(Acl::default()));
    }

    #[test]
    fn validity_is_that_of_the_kernel() {
        let check = |text: &str| read(text).unwrap().validate();
        assert_eq!(check("u::rwx,g::r-x,o::r-x"), Ok(()));
        assert_eq!(check("u::rwx,g::r-x,m::r-x,o::r-x"), Ok(()));
        assert_eq!(check(""), Err(InvalidAcl::Missing));
        assert_eq!(check("u::rwx,o::r-x"), Err(InvalidAcl::Missing));
        assert_eq!(check("u::rwx,u:1:rwx,g::r-x,o::r-x"), Err(InvalidAcl::MaskMissing));
        assert_eq!(check("u::rwx,u:1:rwx,u:1:r--,g::r-x,m::rwx,o::r-x"), Err(InvalidAcl::Duplicate));
        assert_eq!(check("u::rwx,g::r-x,o::r-x,o::r-x"), Err(InvalidAcl::Duplicate));
    }

    #[test]
    fn a_mode_alone_is_trivial() {
        assert!(read("u::rwx,g::r-x,o::r-x").unwrap().is_trivial());
        assert!(Acl::default().is_trivial());
        assert!(!read("u::rwx,g::r-x,m::r-x,o::r-x").unwrap().is_trivial());
    }

    #[test]
    fn damaged_kernel_values_are_refused() {
        let good = hex(KERNEL);
        for end in 0..good.len() {
            let whole_entries = end >= 4 && (end - 4) % 8 == 0;
            assert_eq!(Acl::from_kernel(&good[..end]).is_ok(), whole_entries, "cut at {end}");
        }
        let mut wrong = good.clone();
        wrong[0] = 3;
        assert!(matches!(Acl::from_kernel(&wrong), Err(AclError::Kernel { version: 3, .. })));
        let mut wrong = good;
        wrong[4] = 0x40;
        assert_eq!(Acl::from_kernel(&wrong), Err(AclError::Tag(0x40)));
    }
}
