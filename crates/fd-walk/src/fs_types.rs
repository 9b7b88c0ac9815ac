//! Names of file-system types for the `FsType` option (reference 03 §5.8).

/// `statfs` type numbers and their names. ext3 and ext4 have the number of ext2, vfat that of
/// msdos.
const NAMES: &[(u32, &str)] = &[
    (0xef53, "ext2"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6969, "nfs"),
    (0x517b, "smbfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "cifs2"),
    (0x4d44, "msdos"),
    (0x5346_544e, "ntfs"),
    (0x9660, "iso9660"),
    (0x1501_3346, "udf"),
    (0x2fc1_2fc1, "zfs"),
    (0x7461_636f, "ocfs2"),
    (0x5265_4973, "reiserfs"),
    (0x3153_464a, "jfs"),
    (0x28cd_3d45, "cramfs"),
    (0x7275, "romfs"),
    (0x72b6, "jffs2"),
    (0x9584_58f6, "hugetlbfs"),
    (0x9fa2, "usbdevfs"),
    (0x1373, "devfs"),
    (0xef51, "oldext2"),
    (0x137d, "ext"),
    (0x2468, "minix"),
    (0x2478, "minix"),
    (0x137f, "minix"),
    (0x138f, "minix"),
    (0xadf5, "adfs"),
    (0xadff, "affs"),
    (0x4246_5331, "befs"),
    (0x7375_7245, "coda"),
    (0x012f_f7b7, "coherent"),
    (0x0041_4a53, "efs"),
    (0x4244, "hfs"),
    (0xf995_e849, "hpfs"),
    (0x564c, "ncpfs"),
    (0x9fa1, "openpromfs"),
    (0x002f, "qnx4"),
    (0x012f_f7b6, "sysv2"),
    (0x012f_f7b5, "sysv4"),
    (0x0001_1954, "ufs"),
    (0xa501_fcf5, "vxfs"),
    (0x012f_f7b4, "xenix"),
    (0x012f_d16d, "xiafs"),
];

/// The name of a type number; `None` for those without a name in `FsType` (overlay, fuse, squashfs
/// and others).
fn name(number: u32) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// The type of the file system that holds `path`, if `list` leaves it out; an empty list leaves out
/// none. If the system does not tell the type, it is not left out: that would be lost.
pub fn left_out(list: &[Vec<u8>], path: &[u8]) -> Option<&'static str> {
    if list.is_empty() {
        return None;
    }
    let found = rustix::fs::statfs(path).ok()?;
    let name = u32::try_from(found.f_type).ok().and_then(name);
    (!is_listed(list, name)).then(|| name.unwrap_or("unknown"))
}

fn is_listed(list: &[Vec<u8>], name: Option<&str>) -> bool {
    name.is_some_and(|name| list.iter().any(|listed| listed == name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext4_is_called_ext2() {
        assert_eq!(name(0xef53), Some("ext2"));
        assert!(!is_listed(&[b"ext4".to_vec()], name(0xef53)));
        assert!(is_listed(&[b"xfs".to_vec(), b"ext2".to_vec()], name(0xef53)));
    }

    #[test]
    fn unknown_types_are_in_no_list() {
        assert_eq!(name(0x794c_7630), None);
        assert!(!is_listed(&[b"overlay".to_vec()], None));
    }

    #[test]
    fn what_the_system_does_not_tell_is_not_left_out() {
        let list = [b"ext2".to_vec()];
        assert_eq!(left_out(&list, b"/proc"), Some("proc"));
        assert_eq!(left_out(&list, b"/proc/none"), None);
        assert_eq!(left_out(&[], b"/proc"), None);
    }
}
