#![no_main]
#![expect(dead_code, reason = "of the program's files only what is fuzzed is called")]
//! Super block, descriptors and inode tables of ext4: whatever a device holds, inodes have numbers
//! that the file system has, and times that can be trusted.

#[path = "../../crates/fd-walk/src/scan/checksum.rs"]
mod checksum;
#[path = "../../crates/fd-walk/src/scan/ext4.rs"]
#[rustfmt::skip]
mod ext4;
#[path = "../../crates/fd-walk/src/scan/table.rs"]
mod table;

use ext4::{Device, Ext4};
use libfuzzer_sys::fuzz_target;

struct Image<'i>(&'i [u8]);

impl Device for Image<'_> {
    fn read(&self, position: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let rest = usize::try_from(position).ok().and_then(|position| self.0.get(position..));
        let from = rest.and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(from.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(ext4) = Ext4::new(Image(data)) else { return };
    for group in 0..ext4.groups().min(8) {
        let mut last = 0;
        let is_read = ext4.group(group, &mut |inode| {
            assert!(inode.ino > last && inode.ino <= u64::from(u32::MAX));
            assert!(inode.mtime >= 0 && inode.ctime >= 0);
            last = inode.ino;
            true
        });
        if is_read.is_err() {
            break;
        }
    }
    let _ = ext4.finish();
});
