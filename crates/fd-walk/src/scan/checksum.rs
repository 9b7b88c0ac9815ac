//! The checksums of ext4's structures. As the kernel has them there: without a final inversion.

/// Of CRC32C and of CRC16, the low bit first.
const CASTAGNOLI: u32 = 0x82f6_3b78;
const ARC: u16 = 0xa001;

/// The remainders of each byte, with up to seven zero bytes behind it.
static TABLES: [[u32; 256]; 8] = tables();

#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "computed by the compiler; a byte")]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = rest >> 1 ^ if rest & 1 == 1 { CASTAGNOLI } else { 0 };
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = before >> 8 ^ tables[0][before as usize & 0xff];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

fn of(zeros: usize, byte: u8) -> u32 {
    TABLES.get(zeros).and_then(|table| table.get(usize::from(byte))).copied().unwrap_or(0)
}

/// CRC32C of what had `so_far` and these bytes.
pub(super) fn crc32c(so_far: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut crc = so_far;
    for &[a, b, c, d, e, f, g, h] in eights {
        let [p, q, r, s] = crc.to_le_bytes();
        crc = of(7, a ^ p) ^ of(6, b ^ q) ^ of(5, c ^ r) ^ of(4, d ^ s) ^ of(3, e) ^ of(2, f) ^ of(1, g) ^ of(0, h);
    }
    rest.iter().fold(crc, |crc, byte| crc >> 8 ^ of(0, crc.to_le_bytes()[0] ^ byte))
}

/// CRC16 of what had `so_far` and these bytes.
pub(super) fn crc16(so_far: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(so_far, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { ARC } else { 0 })
    })
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
