//! ACLs in both forms, and texts that are refused.

use super::*;
use crate::test_bytes::hex;

/// A machine with two users and two groups.
struct Machine;

const USERS: [(&[u8], u32); 3] = [(b"daemon", 1), (b"domain admin", 5000), (b"20231234", 5017)];
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

/// The ACL of a text of which this host has all.
fn read(text: &str) -> Option<Acl> {
    let AclHere { acl, unknown, merged } = Acl::from_text_here(text.as_bytes(), &mut Machine)?;
    (unknown.is_empty() && merged.is_empty()).then_some(acl)
}

const KERNEL: &str =
    "02000000 01000600ffffffff 0200060001000000 04000400ffffffff 0800040002000000 10000600ffffffff 20000400ffffffff";
const TEXT: &str = "user::rw-\nuser:daemon:rw-\ngroup::r--\ngroup:bin:r--\nmask::rw-\nother::r--\n";

#[test]
fn the_kernel_value_of_the_reference_becomes_its_text_and_back() {
    let acl = Acl::from_kernel(&hex(KERNEL)).unwrap();
    assert_eq!(text_of(&acl), TEXT);
    assert!(!acl.is_trivial());
    assert!(acl.is_valid());
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
    assert_eq!(Acl::from_text_here(&payload, &mut Machine).unwrap().acl, Acl::from_kernel(&hex(KERNEL)).unwrap());
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
        read("other::r--\nmask::rwx\ngroup:9:---\ngroup:3:r-x\nuser:8:r--\nuser:7:-w-\ngroup::---\nuser::rwx").unwrap();
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

/// Its name would be read as the number of somebody else.
#[test]
fn a_user_whose_name_has_digits_only_is_saved_by_number() {
    let text = "user::rw-\nuser:5017:rw-\ngroup::r--\nmask::rw-\nother::r--\n";
    let acl = read(text).unwrap();
    assert_eq!(text_of(&acl), text);
    assert_eq!(read(&text_of(&acl)), Some(acl));
}

#[test]
fn other_spellings_are_accepted() {
    let plain = read(TEXT).unwrap();
    for text in [
        "u::rw-,u:1:rw-,g::r--,g:2:r--,m::rw-,o::r--",
        "# file: x\nuser::rw-\nuser:daemon:rw-\t#effective:rw-\ngroup::r--\ngroup:bin:r--\nmask:rw-\nother:r--",
        "user::rw\n user : daemon : rw\ngroup::r\ngroup:bin:r\nmask:rw\nother:r\n\n",
    ] {
        assert_eq!(read(text), Some(plain.clone()), "{text}");
    }
}

#[test]
fn text_that_is_not_an_acl_is_refused() {
    for text in [
        "user::rw-\nrubbish",
        "user:",
        "user::",
        "user::rwz",
        "user::rwxr",
        "owner::rwx",
        "user::rwx other",
        ":::",
        "user::6",
    ] {
        assert_eq!(Acl::from_text_here(text.as_bytes(), &mut Machine), None, "{text}");
    }
    assert_eq!(read(""), Some(Acl::default()));
}

#[test]
fn validity_is_that_of_the_kernel() {
    let is_valid = |text: &str| read(text).unwrap().is_valid();
    assert!(is_valid("u::rwx,g::r-x,o::r-x"));
    assert!(is_valid("u::rwx,g::r-x,m::r-x,o::r-x"));
    assert!(!is_valid(""));
    assert!(!is_valid("u::rwx,o::r-x"));
    assert!(!is_valid("u::rwx,u:1:rwx,g::r-x,o::r-x"), "no mask");
    let mut twice = read(TEXT).unwrap();
    assert!(twice.is_valid());
    twice.entries.insert(1, twice.entries[1]);
    assert!(!twice.is_valid(), "a user has two entries");
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
        assert_eq!(Acl::from_kernel(&good[..end]).is_some(), whole_entries, "cut at {end}");
    }
    let mut wrong = good.clone();
    wrong[0] = 3;
    assert_eq!(Acl::from_kernel(&wrong), None, "another version");
    let mut wrong = good;
    wrong[4] = 0x40;
    assert_eq!(Acl::from_kernel(&wrong), None, "an unknown tag");
}

/// As libacl writes it: behind the entries that the mask limits, and only if it takes something
/// away.
#[test]
fn effective_rights_stand_behind_entries_that_the_mask_limits() {
    let text = "user::rwx\nuser:daemon:rwx\t#effective:r--\nuser:8:r--\ngroup::r-x\t#effective:r--\n\
                group:bin:-wx\t#effective:---\nmask::r--\nother::rwx\n";
    let acl = read("u::rwx,u:1:rwx,u:8:r,g::rx,g:2:wx,m::r,o::rwx").unwrap();
    assert_eq!(text_of(&acl), text);
    assert_eq!(read(text), Some(acl));
}

#[test]
fn an_acl_of_another_host_becomes_what_this_one_can_have() {
    let here = |text: &str| Acl::from_text_here(text.as_bytes(), &mut Machine);
    let found =
        here("user::rw-,user:gone:rwx,user:daemon:rw-,user:1:r-x,group::r--,group:gone:r--,mask::rwx,other::---")
            .unwrap();
    assert_eq!(text_of(&found.acl), "user::rw-\nuser:daemon:r--\ngroup::r--\nmask::rwx\nother::---\n");
    assert_eq!(found.unknown, [b"user:gone:rwx".as_slice(), b"group:gone:r--"]);
    assert_eq!(here("group:99999999999:r--").unwrap().unknown, [b"group:99999999999:r--"]);
    assert_eq!(found.merged, [b"user:1:r-x"]);
    assert_eq!(here(TEXT).unwrap(), AclHere { acl: read(TEXT).unwrap(), ..AclHere::default() });
    assert_eq!(here("user:gone:rwz"), None);
}

/// A directory service may take milliseconds for each.
#[test]
fn of_a_text_that_is_refused_no_name_is_looked_up() {
    #[derive(Default)]
    struct Asked(usize);
    impl Identities for Asked {
        fn user_number(&mut self, _name: &[u8]) -> Option<u32> {
            self.0 += 1;
            None
        }
        fn group_number(&mut self, name: &[u8]) -> Option<u32> {
            self.user_number(name)
        }
    }
    let here = |entries: usize, behind: &str| {
        let text = ["u:someone:r,".repeat(entries), behind.to_owned()].concat();
        let mut asked = Asked::default();
        (Acl::from_text_here(text.as_bytes(), &mut asked).map(|here| here.unknown.len()), asked.0)
    };
    // As many as the kernel accepts.
    assert_eq!(here(8191, ""), (Some(8191), 8191));
    assert_eq!(here(8191, "o::r"), (None, 0));
    assert_eq!(here(100_000, ""), (None, 0));
    assert_eq!(here(2, "rubbish"), (None, 0));
}

#[test]
fn a_mode_without_the_acl_gives_no_user_more() {
    let least = |text: &str| read(text).unwrap().least_without();
    assert_eq!(least("u::rwx,g::r-x,o::r--"), (5, 4));
    assert_eq!(least("u::rwx,g::rwx,m::r-x,o::rwx"), (5, 7), "the mask does not limit others");
    assert_eq!(least("u::rwx,u:1:rwx,g::rwx,m::rwx,o::rwx"), (7, 7));
    assert_eq!(least("u::rwx,u:1:r--,g::rwx,m::rwx,o::rwx"), (4, 4), "the user is one of the others, too");
    assert_eq!(least("u::rwx,g::r-x,g:2:---,m::rwx,o::r-x"), (0, 0));
    assert_eq!(least(""), (0, 0));
}
