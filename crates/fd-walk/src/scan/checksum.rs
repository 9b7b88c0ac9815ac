//! The checksums of ext4's structures. As the kernel has them there: without a final inversion.

use crc::{CRC_16_ARC, CRC_32_ISCSI, Crc, Table};

static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);
static CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_ARC);

/// CRC32C of what had `so_far` and these bytes.
pub(super) fn crc32c(so_far: u32, bytes: &[u8]) -> u32 {
    let mut digest = CRC32C.digest_with_initial(so_far.reverse_bits());
    digest.update(bytes);
    !digest.finalize()
}

/// CRC16 of what had `so_far` and these bytes.
pub(super) fn crc16(so_far: u16, bytes: &[u8]) -> u16 {
    let mut digest = CRC16.digest_with_initial(so_far.reverse_bits());
    digest.update(bytes);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_their_definitions() {
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(crc32c(!0, b"12345678901"), b"234567890"), crc32c(!0, b"12345678901234567890"));
        assert_eq!(crc16(0, b"123456789"), 0xbb3d);
    }
}
