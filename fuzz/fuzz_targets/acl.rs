#![no_main]
//! ACLs from a volume (text) and from the kernel (binary): what is understood survives both forms.

use fd_records::{Acl, Identities, Names};
use libfuzzer_sys::fuzz_target;

/// Knows three users, one of them with a name that needs quoting, and no groups.
struct Few;

impl Names for Few {
    fn user_name(&mut self, uid: u32) -> Option<&[u8]> {
        match uid {
            0 => Some(b"root"),
            1000 => Some(b"a b:c\\d"),
            _ => None,
        }
    }

    fn group_name(&mut self, _: u32) -> Option<&[u8]> {
        None
    }
}

impl Identities for Few {
    fn user_number(&mut self, name: &[u8]) -> Option<u32> {
        match name {
            b"root" => Some(0),
            b"a b:c\\d" => Some(1000),
            _ => None,
        }
    }

    fn group_number(&mut self, _: &[u8]) -> Option<u32> {
        None
    }
}

fuzz_target!(|data: &[u8]| {
    let read = [Acl::from_text_here(data, &mut Few).map(|here| here.acl), Acl::from_kernel(data)];
    for acl in read.into_iter().flatten() {
        let (mut text, mut kernel) = (Vec::new(), Vec::new());
        acl.to_text(&mut text, &mut Few);
        acl.to_kernel(&mut kernel);
        let here = Acl::from_text_here(&text, &mut Few).expect("our own text");
        assert!(here.unknown.is_empty());
        // The kernel's value may have two entries of the same user.
        assert!(here.acl == acl || !here.merged.is_empty(), "{}", text.escape_ascii());
        assert_eq!(Acl::from_kernel(&kernel).as_ref(), Some(&acl));
        let _ = (acl.is_trivial(), acl.is_valid());
    }
});
