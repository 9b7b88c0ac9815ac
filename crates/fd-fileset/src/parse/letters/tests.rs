//! Option lines, letter by letter.

use super::*;

const MD5: Flags = Flags::of_digest(DigestKind::Md5);

fn block(letters: &str) -> (Options, String) {
    let mut options = Options::default();
    let unknown = read(letters.as_bytes(), &mut options);
    (options, String::from_utf8(unknown).unwrap())
}

#[test]
fn a_line_with_every_option_sets_every_flag() {
    let (options, unknown) = block("S2Z9fhsHwrpmk0AXiRKKcNd2Vpins1:Cmcs:Jpm:P2:");
    assert_eq!(unknown, "");
    let on = [
        Flags::of_digest(DigestKind::Sha256),
        Flags::COMPRESS,
        Flags::MULTI_FS,
        Flags::NO_RECURSION,
        Flags::SPARSE,
        Flags::NO_HARD_LINK,
        Flags::IF_NEWER,
        Flags::READ_FIFO,
        Flags::PORTABLE,
        Flags::MTIME_ONLY,
        Flags::KEEP_ATIME,
        Flags::ACL,
        Flags::XATTR,
        Flags::IGNORE_CASE,
        Flags::HFS_PLUS,
        Flags::NO_ATIME,
        Flags::CHECK_CHANGES,
        Flags::HONOR_NO_DUMP,
        Flags::DEDUP,
        Flags::STRIP_PATH,
    ];
    assert_eq!(options.flags, on.into_iter().fold(Flags::NONE, Flags::union));
    assert_eq!(options.compression, Some(Compression::Gzip(9)));
    assert_eq!(options.dedup_level, 2);
    assert_eq!(options.verify, b"Vpins1");
    assert_eq!(options.accurate, b"Cmcs");
    assert_eq!(options.base_job, b"Jpm");
    assert_eq!(options.strip_path, 2);
}

#[test]
fn the_first_digest_in_order_of_precedence_is_made() {
    let kind = |letters| block(letters).0.flags.digest();
    assert_eq!(kind(""), None);
    assert_eq!(kind("M"), Some(DigestKind::Md5));
    assert_eq!(kind("S"), Some(DigestKind::Sha1));
    assert_eq!(kind("S1"), Some(DigestKind::Sha1));
    assert_eq!(kind("S2"), Some(DigestKind::Sha256));
    assert_eq!(kind("S3"), Some(DigestKind::Sha512));
    assert_eq!(kind("S5"), Some(DigestKind::Xxh64));
    assert_eq!(kind("S6"), Some(DigestKind::Xxh3_64));
    assert_eq!(kind("S7"), Some(DigestKind::Xxh3_128));
    assert_eq!(kind("S7S6S5S3S2SM"), Some(DigestKind::Md5));
    assert_eq!(kind("S7S6S5S3S2S"), Some(DigestKind::Sha1));
    assert_eq!(kind("S7S6S5S3S2"), Some(DigestKind::Sha256));
    assert_eq!(kind("S7S6S5S3"), Some(DigestKind::Sha512));
    assert_eq!(kind("S7S6S5"), Some(DigestKind::Xxh64));
    assert_eq!(kind("S7S6"), Some(DigestKind::Xxh3_64));
}

#[test]
fn s_takes_only_known_digits() {
    let (options, unknown) = block("SM");
    assert!(options.flags.contains(Flags::of_digest(DigestKind::Sha1) | MD5));
    assert_eq!(unknown, "");
    assert_eq!(block("S4").1, "4");
}

#[test]
fn each_compression_letter_has_its_algorithm_and_level() {
    for level in 0..=9 {
        let (options, _) = block(&format!("Z{level}"));
        assert_eq!(options.compression, Some(Compression::Gzip(level)));
    }
    assert_eq!(block("Zo").0.compression, Some(Compression::Lzo));
    assert_eq!(block("Zr").0.compression, Some(Compression::Zstd(1)));
    assert_eq!(block("Zs").0.compression, Some(Compression::Zstd(3)));
    assert_eq!(block("Zu").0.compression, Some(Compression::Zstd(10)));
    assert_eq!(block("Zt").0.compression, Some(Compression::Zstd(19)));
    assert_eq!(block("Z3Zo").0.compression, Some(Compression::Lzo), "the last one holds");
}

#[test]
fn unknown_compression_is_ignored_silently() {
    let (options, unknown) = block("ZqM");
    assert_eq!((options.compression, unknown.as_str()), (None, ""));
    assert_eq!(options.flags, MD5);
    assert_eq!(block("Z6Zq").0.compression, Some(Compression::Gzip(6)));
    assert_eq!(block("Z").0.flags, Flags::NONE);
}

#[test]
fn the_dedup_letter_always_takes_one_character() {
    assert_eq!(block("d0").0.flags, Flags::DEDUP);
    let (options, unknown) = block("dqM");
    assert_eq!((options.flags, unknown.as_str()), (MD5, ""));
    assert_eq!(block("d").0.flags, Flags::NONE);
}

#[test]
fn numbers_and_texts_end_at_the_colon_or_at_the_line_s_end() {
    assert_eq!(block("P:").0.strip_path, 0);
    assert_eq!(block("P3").0.strip_path, 3);
    assert_eq!(block("P-1:").0.strip_path, 0);
    assert_eq!(block("P99999999999:").0.strip_path, u32::MAX);
    assert_eq!(block("Cmc").0.accurate, b"Cmc");
    assert_eq!(block("C:M").0.accurate, b"C");
    assert_eq!(block("Vp:Vi:").0.verify, b"Vi");
    assert_eq!(block(&format!("V{}:", "p".repeat(60))).0.verify.len(), LONGEST_TEXT);
}

#[test]
fn unknown_letters_are_named_one_by_one() {
    let (options, unknown) = block("qMTz ");
    assert_eq!(unknown, "qTz ");
    assert_eq!(options.flags, MD5);
}
