//! Tables that are whole, and tables that are damaged.

use super::*;

const INODES: u32 = 16;
const GROUPS: u32 = 3;
const BLOCK: usize = 1024;
const SEED: u32 = 0x1234_5678;

struct Image(Vec<u8>);

impl Device for Image {
    fn read(&self, position: u64, bytes: &mut [u8]) -> std::io::Result<()> {
        let from = usize::try_from(position).ok().and_then(|position| self.0.get(position..position + bytes.len()));
        bytes.copy_from_slice(from.ok_or(std::io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

fn set(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

fn set16(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 2].copy_from_slice(&number.to_le_bytes()[..2]);
}

/// The time of an inode's change; that of its contents is less by one.
fn time(ino: u32) -> u32 {
    1_700_000_000 + ino
}

/// A directory, a link, or a file.
fn mode(ino: u32) -> u32 {
    [Stat::MODE_DIRECTORY, Stat::MODE_SYMLINK, Stat::MODE_REGULAR, Stat::MODE_REGULAR][ino as usize % 4] | 0o644
}

/// Gives a descriptor its checksum.
fn seal(descriptor: &mut [u8], group: u32) {
    set16(descriptor, 0x1e, 0);
    let sum = crc32c(crc32c(SEED, &group.to_le_bytes()), descriptor);
    set16(descriptor, 0x1e, sum);
}

/// A file system of three groups. In each, the first ten inodes are in use, and the third of them
/// has no name.
fn image(inode_len: usize, has_checksums: bool) -> Image {
    let mut image = vec![0; 64 * BLOCK];
    for group in 0..GROUPS {
        let table = 5 + group * 5;
        let descriptor = &mut image[2 * BLOCK + group as usize * 32..][..32];
        set(descriptor, 8, table);
        if has_checksums {
            set16(descriptor, 0x1c, 4);
            set16(descriptor, 0x12, 4);
            seal(descriptor, group);
        }
        for place in 0..10 {
            let ino = group * INODES + place + 1;
            let inode = &mut image[table as usize * BLOCK + place as usize * inode_len..][..inode_len];
            set16(inode, 0, mode(ino));
            set(inode, 0x4, 0x8000_0000 + ino);
            set(inode, 0x6c, if mode(ino) & Stat::MODE_TYPE == Stat::MODE_REGULAR { 3 } else { 0 });
            for (at, half) in [(0x2, ino), (0x78, 1), (0x18, ino + 1), (0x7a, 2)] {
                set16(inode, at, half);
            }
            set(inode, 0xc, time(ino));
            set(inode, 0x10, time(ino) - 1);
            set16(inode, 0x1a, u32::from(place != 2));
            let extra = if inode_len > INODE_LEN { 32 } else { 0 };
            if extra > 0 {
                set16(inode, 0x80, extra);
                set(inode, 0x88, 1);
            }
            if has_checksums {
                let sum = crc32c(crc32c(crc32c(SEED, &ino.to_le_bytes()), &[0; 4]), inode);
                set16(inode, 0x7c, sum);
                if extra > 0 {
                    set16(inode, 0x82, sum >> 16);
                }
            }
        }
    }
    let block = &mut image[BLOCK..2 * BLOCK];
    for (at, word) in [(0, INODES * GROUPS), (4, 64), (0x14, 1), (0x20, 21), (0x28, INODES), (0x4c, 1)] {
        set(block, at, word);
    }
    set16(block, 0x58, u32::try_from(inode_len).unwrap());
    set16(block, 0x38, 0xef53);
    if has_checksums {
        set(block, 0x60, feature::CSUM_SEED);
        set(block, 0x64, feature::METADATA_CSUM);
        block[0x175] = 1;
        set(block, 0x270, SEED);
        let sum = crc32c(!0, &block[..0x3fc]);
        set(block, 0x3fc, sum);
    }
    Image(image)
}

/// All inodes that are found; none if it is refused.
fn found(image: Image) -> Vec<Inode> {
    let mut found = Vec::new();
    let Ok(ext4) = Ext4::new(image) else { return found };
    let mut take = |inode| {
        found.push(inode);
        true
    };
    let is_read = (0..ext4.groups()).all(|group| ext4.group(group, &mut take).is_ok());
    if !is_read || ext4.finish().is_err() {
        return Vec::new();
    }
    found
}

#[test]
fn all_inodes_with_a_name_are_found_with_their_attributes() {
    for (inode_len, has_checksums) in [(128, false), (256, false), (128, true), (256, true)] {
        let found = found(image(inode_len, has_checksums));
        let inodes = (0..GROUPS * INODES).filter(|number| number % INODES < 10 && number % INODES != 2);
        let later = if inode_len > INODE_LEN { 1_i64 << 32 } else { 0 };
        let wanted = inodes.map(|number| {
            let (ino, time) = (number + 1, i64::from(time(number + 1)));
            let is_file = mode(ino) & Stat::MODE_TYPE == Stat::MODE_REGULAR;
            Inode {
                ino: ino.into(),
                ctime: time,
                mtime: time - 1 + later,
                mode: mode(ino),
                nlink: 1,
                uid: 1 << 16 | ino,
                gid: 2 << 16 | (ino + 1),
                size: 0x8000_0000 + i64::from(ino) + if is_file { 3 << 32 } else { 0 },
            }
        });
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{inode_len} {has_checksums}");
    }
}

#[test]
fn what_is_no_file_and_has_a_size_in_two_parts_is_left_out() {
    let mut image = image(256, false);
    for place in 0..10 {
        set(&mut image.0[5 * BLOCK + place * 256..], 0x6c, 3);
    }
    let found = found(image);
    assert!(found.iter().all(|inode| inode.ino > 16 || inode.size >> 32 == 3), "{found:?}");
    assert_eq!(found.iter().filter(|inode| inode.ino <= 16).count(), 4, "{found:?}");
}

#[test]
fn an_encrypted_link_whose_size_a_lookup_tells_in_plain_text_is_left_out() {
    let mut image = image(256, false);
    for place in 0..10 {
        set(&mut image.0[5 * BLOCK + place * 256..], 0x20, 0x800);
    }
    let found = found(image);
    assert!(found.iter().all(|inode| inode.ino > 16 || inode.mode & Stat::MODE_TYPE != Stat::MODE_SYMLINK));
    assert_eq!(found.iter().filter(|inode| inode.ino <= 16).count(), 6, "{found:?}");
}

#[test]
fn how_many_inodes_are_to_be_read_is_known_before_the_first_of_them() {
    for (has_checksums, inodes) in [(false, 48), (true, 36)] {
        let mut image = image(256, has_checksums);
        // As if the tables could not be read.
        image.0.truncate(5 * BLOCK);
        let ext4 = Ext4::new(image).unwrap();
        assert_eq!(ext4.inodes().unwrap(), inodes, "{has_checksums}");
    }
}

#[test]
fn tables_that_the_kernel_has_still_to_zero_are_refused() {
    for (unused, is_refused) in [(4, true), (0, false)] {
        let mut image = image(256, true);
        let descriptor = &mut image.0[2 * BLOCK + 32..][..32];
        set16(descriptor, 0x12, 0);
        set16(descriptor, 0x1c, unused);
        seal(descriptor, 1);
        let inodes = Ext4::new(image).unwrap().inodes();
        assert_eq!(matches!(inodes, Err(Refusal::Unknown(_))), is_refused, "{unused} {inodes:?}");
    }
}

#[test]
fn no_damage_makes_an_inode_look_older() {
    let whole = found(image(256, true));
    let mut lost = 0;
    // The super block, the descriptors, and the first table as far as it is used.
    for at in (BLOCK..2 * BLOCK + 96).chain(5 * BLOCK..5 * BLOCK + 2560) {
        let flip = [1, 0x80, 0xff][at % 3];
        let mut damaged = image(256, true);
        damaged.0[at] ^= flip;
        let found = found(damaged);
        assert!(found.iter().all(|inode| whole.contains(inode)), "byte {at}, {flip:x}: {found:?}");
        lost += usize::from(found.len() < whole.len());
    }
    assert!(lost > 2000, "{lost}");
}

#[test]
fn damaged_tables_without_checksums_are_no_panic() {
    for at in BLOCK..3 * BLOCK {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = image(256, false);
            damaged.0[at] = value;
            let inodes = found(damaged);
            assert!(inodes.iter().all(|inode| inode.ctime >= 0 && inode.mtime >= 0), "byte {at}, {value}");
        }
    }
}

#[test]
fn a_table_beyond_all_disks_is_no_panic() {
    for high in [1, 0xffff, 0x7fff_ffff, u32::MAX] {
        let mut damaged = image(256, false);
        set(&mut damaged.0[BLOCK..], 0x60, feature::BITS_64);
        set16(&mut damaged.0[BLOCK..], 0xfe, 64);
        set(&mut damaged.0[2 * BLOCK..], 0x28, high);
        assert!(found(damaged).iter().all(|inode| inode.ino > u64::from(INODES)), "{high:x}");
    }
}

#[test]
fn a_device_that_ends_early_gives_nothing() {
    for len in 0..15 {
        let mut short = image(256, true);
        short.0.truncate(len * BLOCK);
        assert!(found(short).is_empty(), "{len}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let mut short_owners = image(256, false);
    set(&mut short_owners.0[BLOCK..], 0x100, 0x20);
    assert!(matches!(Ext4::new(short_owners), Err(Refusal::Unknown("mount option"))));
    for (at, bit) in
        [(0x5c, 13), (0x60, 0), (0x60, 3), (0x60, 12), (0x60, 17), (0x60, 18), (0x64, 7), (0x64, 11), (0x64, 17)]
    {
        let mut image = image(256, false);
        set(&mut image.0[BLOCK..], at, 1 << bit);
        assert!(matches!(Ext4::new(image), Err(Refusal::Unknown("feature"))), "{at:x} {bit}");
    }
}
