//! The name of a job as part of the name of a volume. LVM and ZFS permit few characters and bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// At most so many bytes of the name, others than the permitted ones replaced by `_`. The end is
/// kept: there are the time and the number that make the Director's name unique.
pub(super) fn permitted(name: &OsStr, others: &str, most: usize) -> String {
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || others.as_bytes().contains(byte);
    let name = name.as_bytes();
    let end = name.get(name.len().saturating_sub(most)..).unwrap_or_default();
    end.iter().map(|byte| if good(byte) { char::from(*byte) } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_what_is_permitted_and_its_end() {
        assert_eq!(
            permitted(OsStr::new("My Job:x.2026-11-21_02.13.24_12"), ".-_", 100),
            "My_Job_x.2026-11-21_02.13.24_12"
        );
        assert_eq!(permitted(OsStr::from_bytes(b"a@b%c,d\"\n\xff;$(x)"), ".-_:", 100), "a_b_c_d______x_");
        assert_eq!(permitted(OsStr::new("Job.2026-11-21_02.13.24_12"), ".-_", 5), "24_12");
    }
}
