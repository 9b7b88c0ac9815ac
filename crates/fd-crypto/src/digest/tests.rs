//! Known values, and digesters that are used again.

use super::*;

const HELLO: &[u8] = b"Hello, Bacula!\n";

fn hex(value: &DigestValue) -> String {
    value.as_bytes().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn digest(kind: DigestKind, bytes: &[u8]) -> String {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(bytes);
    hex(&digester.finish().unwrap())
}

/// The values that the stock daemon put on a volume (reference 04 §9).
#[test]
fn known_values_of_the_example_file() {
    let expected = [
        (DigestKind::Md5, "9d61aad300b569bbd6c0fac3fbd10d74"),
        (DigestKind::Sha1, "c5060b62ef2d131242144df49e484e063d9aa1b9"),
        (DigestKind::Sha256, "5c4e8258afa022f9c7e5d3d1fb3905b95d43a61d48daa1e94f9e354e387a86a5"),
        (
            DigestKind::Sha512,
            "ba72e2de2bc2b6d6a34c787cd3ec4a0a21add3aefbd736361705dd57641f37f2\
             082c9ba59af221dc2f524bc2e3e753fbeca2ccf1238657c1914c249ebb27eca8",
        ),
        (DigestKind::Xxh64, "c7ae58c933d142ec"),
        (DigestKind::Xxh3_128, "fac0b2449d777006525069b187a16877"),
    ];
    for (kind, value) in expected {
        assert_eq!(digest(kind, HELLO), value, "{kind}");
    }
}

#[test]
fn known_values_of_no_bytes() {
    let expected = [
        (DigestKind::Md5, "d41d8cd98f00b204e9800998ecf8427e"),
        (DigestKind::Sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (DigestKind::Sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (
            DigestKind::Sha512,
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce\
             47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        ),
        (DigestKind::Xxh64, "ef46db3751d8e999"),
        (DigestKind::Xxh3_64, "2d06800538d394c2"),
        (DigestKind::Xxh3_128, "99aa06d3014798d86001c324468d497f"),
    ];
    for kind in DigestKind::ALL {
        let value = expected.iter().find(|(known, _)| *known == kind).map(|(_, value)| (*value).to_owned());
        assert_eq!(Some(digest(kind, b"")), value, "{kind}");
    }
}

/// Long data takes another way through the algorithm than short data. The values are those of
/// libxxhash 0.8.1.
#[test]
fn known_values_of_long_data() {
    let data: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let expected = [
        (DigestKind::Xxh64, "f7a005162637d2fa"),
        (DigestKind::Xxh3_64, "39cf9d035d60ad58"),
        (DigestKind::Xxh3_128, "077f8d86a61f4d7439cf9d035d60ad58"),
    ];
    for (kind, value) in expected {
        assert_eq!(digest(kind, &data), value, "{kind}");
    }
}

#[test]
fn a_digester_serves_many_files_and_any_split_of_the_bytes() {
    let data: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for kind in DigestKind::ALL {
        let mut digester = Digester::new(kind).unwrap();
        digester.update(&data);
        let whole = digester.finish().unwrap();
        assert_eq!(whole.as_bytes().len(), kind.len());
        data.chunks(977).for_each(|part| digester.update(part));
        assert_eq!(digester.finish().unwrap(), whole, "{kind}");
        digester.update(b"the beginning of a file that is given up");
        digester.restart();
        digester.update(&data);
        assert_eq!(digester.finish().unwrap(), whole, "{kind}");
    }
}
