//! Known values, OpenSSL's values, and what kernels could mix up.

use fd_records::DigestKind;

use super::algorithm::{Algorithm, NARROW, Run, WIDE, Words};
use super::kernels::Kernels;
use super::many::stand_out_of_avx2;
use super::*;
use crate::processor::Processor;
use crate::set::DigestSet;
use crate::{DigestValues, Digester};

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect()
}

fn hex(value: &[u8]) -> String {
    value.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn values(many: Many, messages: &[&[u8]]) -> Vec<String> {
    let mut values = vec![String::new(); messages.len()];
    many.each(messages.iter().copied(), |number, value| {
        assert!(values[number].is_empty(), "message {number} twice");
        values[number] = hex(value.as_bytes());
    });
    values
}

fn by_openssl(algorithm: Algorithm, message: &[u8]) -> String {
    let mut digester = Digester::new(algorithm.kind()).unwrap();
    digester.update(message);
    hex(digester.finish().unwrap().as_bytes())
}

/// The kernels for an algorithm in each variant of the processor that has some.
fn each_variant(algorithm: Algorithm) -> Vec<Many> {
    let all: Vec<_> = Processor::variants().filter_map(|variant| Many::new(algorithm.kind(), variant)).collect();
    if all.is_empty() {
        skip::part(&format!("no kernels for {algorithm:?}"));
    }
    all
}

/// What is chosen is what works; nothing is there that the variant does not have.
#[test]
fn kernels_are_those_of_the_variant() {
    for variant in Processor::variants() {
        let name = variant.to_string();
        let has = |algorithm| Kernels::new(algorithm, variant).map(|kernels| kernels.narrow.is_some());
        let md5 = [("baseline", None), ("avx2", Some(false)), ("avx512", Some(true))];
        let md5 = md5.into_iter().find(|(vectors, _)| name.split(',').next() == Some(vectors)).unwrap().1;
        assert_eq!(has(Algorithm::Md5), md5, "{name}");
        // One by one is faster with instructions for it.
        assert_eq!(has(Algorithm::Sha256), (name == "avx512").then_some(true), "{name}");
        for kind in DigestKind::ALL {
            let has_any = Algorithm::of(kind).and_then(has).is_some();
            assert_eq!(SideBySide::suits(kind, variant), has_any, "{kind} {name}");
        }
        assert_eq!(SideBySide::begin(DigestSet::EMPTY, variant), None);
        let with_another = DigestSet::EMPTY.with(DigestKind::Md5).with(DigestKind::Sha1);
        assert_eq!(SideBySide::begin(with_another, variant), None);
    }
}

/// The examples of RFC 1321.
#[test]
fn known_values_of_md5() {
    let expected = [
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a",
        ),
    ];
    let messages: Vec<&[u8]> = expected.iter().map(|(message, _)| message.as_bytes()).collect();
    for many in each_variant(Algorithm::Md5) {
        assert_eq!(values(many, &messages), expected.map(|(_, value)| value));
        assert_eq!(values(many, &messages[..1]), [expected[0].1]);
        assert!(values(many, &[]).is_empty());
    }
}

/// The examples that belong to FIPS 180-4.
#[test]
fn known_values_of_sha256() {
    let million = vec![b'a'; 1_000_000];
    let expected: [(&[u8], &str); 5] = [
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
        ),
        (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ];
    let messages = expected.map(|(message, _)| message);
    for many in each_variant(Algorithm::Sha256) {
        assert_eq!(values(many, &messages), expected.map(|(_, value)| value));
        assert_eq!(values(many, &messages[1..2]), [expected[1].1]);
    }
}

/// Every length up to some blocks, and random mixes of lengths.
#[test]
fn digests_of_any_length_are_equal_to_those_of_openssl() {
    let bytes = bytes(70_000);
    for many in Algorithm::ALL.into_iter().flat_map(each_variant) {
        let algorithm = many.algorithm();
        let messages: Vec<&[u8]> = (0..=300).map(|len| &bytes[len..2 * len]).collect();
        let expected: Vec<String> = messages.iter().map(|message| by_openssl(algorithm, message)).collect();
        assert_eq!(values(many, &messages), expected);
        let mut random = 7_u32;
        for count in [1, 2, 3, 5, 16, 17, 40] {
            let messages: Vec<&[u8]> = (0..count)
                .map(|_| {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let (len, shift) = ((random >> 16) as usize, (random >> 8) % 12);
                    &bytes[..len >> shift]
                })
                .collect();
            let expected: Vec<String> = messages.iter().map(|message| by_openssl(algorithm, message)).collect();
            assert_eq!(values(many, &messages), expected);
        }
    }
}

/// Messages that begin and end at different times, of one digest or both, and the borders of
/// padding.
#[test]
fn messages_side_by_side_have_their_own_digests() {
    let bytes = bytes(20_000);
    let lengths = [0, 1, 55, 56, 63, 64, 65, 128, 6400, 9999, 19_999, 12_345, 20_000];
    let messages: Vec<&[u8]> = lengths.map(|len| &bytes[bytes.len() - len..]).into();
    let md5 = DigestSet::EMPTY.with(DigestKind::Md5);
    let all = [md5, DigestSet::EMPTY.with(DigestKind::Sha256), md5.with(DigestKind::Sha256)];
    let mut is_tested = false;
    for (variant, turn) in Processor::variants().flat_map(|variant| (0..all.len()).map(move |turn| (variant, turn))) {
        for count in 1..=messages.len() {
            let messages = &messages[messages.len() - count..];
            let kinds = |number: usize| if turn == 2 { all[number % 3] } else { all[turn] };
            let begun: Option<Vec<_>> = (0..count).map(|number| SideBySide::begin(kinds(number), variant)).collect();
            let Some(mut begun) = begun else { continue };
            is_tested = true;
            for half in [0, 1] {
                let part = messages.iter().map(|message| {
                    let blocks = message.as_chunks::<BLOCK>().0;
                    let (first, second) = blocks.split_at(blocks.len() / 3);
                    if half == 0 { first } else { second }
                });
                SideBySide::advance(begun.iter_mut().zip(part));
            }
            for (number, (message, begun)) in messages.iter().zip(begun).enumerate() {
                let values: DigestValues = begun.finish(message.as_chunks::<BLOCK>().1, message.len() as u64);
                for algorithm in Algorithm::ALL {
                    let value = values.get(algorithm.kind()).map(|value| hex(value.as_bytes()));
                    let expected = kinds(number).contains(algorithm.kind()).then(|| by_openssl(algorithm, message));
                    assert_eq!(value, expected, "{algorithm:?} of {}", message.len());
                }
            }
        }
    }
    if !is_tested {
        skip::test::<()>("needs AVX2");
    }
}

#[test]
fn both_kernels_of_md5_make_the_same_state() {
    let kernels = Processor::variants().filter_map(|variant| Kernels::new(Algorithm::Md5, variant)).last();
    let Some(Kernels { wide: Some(wide), narrow: Some(narrow) }) = kernels else {
        return skip::test("needs AVX-512");
    };
    let bytes = bytes(WIDE * 3 * BLOCK);
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let runs: Vec<Run<'_>> = blocks.chunks(3).collect();
    let start: [Words; WIDE] = std::array::from_fn(|message| {
        let mut words = Algorithm::Md5.start();
        words[..4].rotate_left(message % 4);
        words
    });
    let (mut one, mut other) = (start, start);
    wide.advance(one.iter_mut().zip(runs.iter().copied()));
    for (group, runs) in other.chunks_mut(NARROW).zip(runs.chunks(NARROW)) {
        narrow.advance(Algorithm::Md5, group.iter_mut().zip(runs.iter().copied()));
    }
    assert_eq!(one, other);
    assert_ne!(one, start);
}

/// Lengths around the borders of blocks, more messages than a kernel takes, at each place.
#[test]
fn a_digest_does_not_depend_on_the_messages_beside_it() {
    let bytes = bytes(5000);
    let lengths: Vec<usize> = (0..200).chain([4096, 0, 1000, 4999, 55, 56, 63, 64, 119, 120]).collect();
    for many in Algorithm::ALL.into_iter().flat_map(each_variant) {
        let alone: Vec<String> = lengths.iter().map(|len| values(many, &[&bytes[..*len]]).remove(0)).collect();
        for turn in (0..lengths.len()).step_by(23) {
            let messages: Vec<&[u8]> =
                (0..lengths.len()).map(|at| &bytes[..lengths[(at + turn) % lengths.len()]]).collect();
            let mut expected = alone.clone();
            expected.rotate_left(turn);
            assert_eq!(values(many, &messages), expected);
        }
    }
}

#[test]
fn a_much_longer_message_is_left_out_of_the_avx2_kernel() {
    let apart = |lengths: &[usize]| stand_out_of_avx2(lengths.iter().copied());
    assert_eq!(apart(&[8192; 32]), 0, "all are alike");
    assert_eq!(apart(&[200_000, 5000, 5000, 5000, 5000, 5000, 5000, 5000]), 1);
    assert_eq!(apart(&[100, 100]), 2, "two are too few");
    assert_eq!(apart(&[100_000]), 1);
    assert_eq!(apart(&[]), 0);
}
