//! Known values, OpenSSL's values, and what lanes could mix up.

use super::*;
use crate::Digester;
use fd_records::DigestKind;

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0]).collect()
}

fn hex(value: &[u8]) -> String {
    value.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn values(lanes: Lanes, messages: &[&[u8]]) -> Vec<String> {
    let mut values = vec![String::new(); messages.len()];
    lanes.each(messages.iter().copied(), |number, value| {
        assert!(values[number].is_empty(), "message {number} twice");
        values[number] = hex(value.as_bytes());
    });
    values
}

fn by_openssl(algorithm: Algorithm, message: &[u8]) -> String {
    let mut digester = Digester::new(match algorithm {
        Algorithm::Md5 => DigestKind::Md5,
        Algorithm::Sha256 => DigestKind::Sha256,
    });
    let digester = digester.as_mut().unwrap();
    digester.update(message);
    hex(digester.finish().unwrap().as_bytes())
}

/// The lanes for a digest in each variant of the processor that has some.
fn each_lanes(algorithm: Algorithm) -> Vec<Lanes> {
    let all: Vec<_> = Processor::variants().filter_map(|variant| algorithm.lanes(variant)).collect();
    if all.is_empty() {
        skip::part(&format!("no lanes for {algorithm:?}"));
    }
    all
}

fn each_few_lanes() -> Vec<FewLanes> {
    let of = |variant| Algorithm::ALL.into_iter().filter_map(move |algorithm| algorithm.few_lanes(variant));
    Processor::variants().flat_map(of).collect()
}

/// What is chosen is what works; nothing is there that the variant does not have.
#[test]
fn lanes_are_those_of_the_variant() {
    for variant in Processor::variants() {
        let name = variant.to_string();
        let has = |lanes: Option<Lanes>| lanes.map(|lanes| lanes.width.narrow().is_some());
        let md5 = [("baseline", None), ("avx2", Some(false)), ("avx512", Some(true))];
        let md5 = md5.into_iter().find(|(vectors, _)| name.split(',').next() == Some(vectors)).unwrap().1;
        assert_eq!(has(Algorithm::Md5.lanes(variant)), md5, "{name}");
        // One by one is faster with instructions for it.
        assert_eq!(has(Algorithm::Sha256.lanes(variant)), (name == "avx512").then_some(true), "{name}");
        for algorithm in Algorithm::ALL {
            let few = has(algorithm.lanes(variant)) == Some(true);
            assert_eq!(algorithm.few_lanes(variant).map(FewLanes::algorithm), few.then_some(algorithm), "{name}");
        }
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
    for lanes in each_lanes(Algorithm::Md5) {
        assert_eq!(values(lanes, &messages), expected.map(|(_, value)| value));
        assert_eq!(values(lanes, &messages[..1]), [expected[0].1]);
        assert!(values(lanes, &[]).is_empty());
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
    for lanes in each_lanes(Algorithm::Sha256) {
        assert_eq!(values(lanes, &messages), expected.map(|(_, value)| value));
        assert_eq!(values(lanes, &messages[1..2]), [expected[1].1]);
    }
}

/// Every length up to some blocks, and random mixes of lengths.
#[test]
fn openssl_makes_the_same_of_any_length() {
    let bytes = bytes(70_000);
    for lanes in Algorithm::ALL.into_iter().flat_map(each_lanes) {
        let algorithm = lanes.algorithm;
        let messages: Vec<&[u8]> = (0..=300).map(|len| &bytes[len..2 * len]).collect();
        let expected: Vec<String> = messages.iter().map(|message| by_openssl(algorithm, message)).collect();
        assert_eq!(values(lanes, &messages), expected);
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
            assert_eq!(values(lanes, &messages), expected);
        }
    }
}

/// Chains that begin and end at different times, and the borders of padding.
#[test]
fn chains_side_by_side_make_the_same_values() {
    let bytes = bytes(20_000);
    let lengths = [0, 1, 55, 56, 63, 64, 65, 128, 6400, 9999, 19_999];
    let messages: Vec<&[u8]> = lengths.map(|len| &bytes[bytes.len() - len..]).into();
    let all = each_few_lanes();
    if all.is_empty() {
        return skip::test("needs AVX-512");
    }
    for lanes in all {
        let algorithm = lanes.algorithm();
        let counts = (1..=messages.len()).flat_map(|count| [(count, false), (count, true)]);
        for (count, some) in counts {
            let messages = &messages[messages.len() - count..];
            let mut chains = vec![lanes.begin(); count];
            let blocks = messages.iter().map(|message| message.as_chunks::<BLOCK>().0);
            let mut given: Vec<_> = chains.iter_mut().zip(blocks).map(Some).collect();
            if some {
                Chain::advance_some(&mut given);
            } else {
                Chain::advance_few(&mut given);
            }
            assert!(given.iter().flatten().all(|(_, left)| left.is_empty()));
            let ends = chains
                .iter()
                .zip(messages)
                .map(|(chain, message)| chain.finish(message.as_chunks::<BLOCK>().1, message.len() as u64));
            let ends: Vec<String> = ends.map(|value| hex(value.as_bytes())).collect();
            let expected: Vec<String> = messages.iter().map(|message| by_openssl(algorithm, message)).collect();
            assert_eq!(ends, expected);
        }
    }
}

/// A chain stays with its own digest, whatever stands beside it.
#[test]
fn chains_of_both_digests_go_side_by_side() {
    let bytes = bytes(5000);
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let both = Processor::variants().find_map(|variant| {
        let [md5, sha256] = Algorithm::ALL.map(|algorithm| algorithm.few_lanes(variant));
        Some([md5?, sha256?])
    });
    let Some([md5, sha256]) = both else { return skip::test("needs AVX-512") };
    let mut chains: Vec<Chain> =
        (0..11).map(|number| if number % 3 == 0 { sha256.begin() } else { md5.begin() }).collect();
    let mut given: Vec<_> = chains.iter_mut().map(|chain| Some((chain, blocks))).collect();
    given.insert(4, None);
    Chain::advance_some(&mut given);
    for chain in chains {
        let value = chain.finish(rest, bytes.len() as u64);
        assert_eq!(hex(value.as_bytes()), by_openssl(chain.algorithm(), &bytes));
    }
}

/// Registers of every width that this processor has.
#[cfg(target_arch = "x86_64")]
#[test]
fn every_width_makes_the_same() {
    let Some(Width::Avx512(narrow)) = Processor::variants().find_map(|variant| {
        let lanes = Algorithm::Sha256.lanes(variant)?;
        Some(lanes.width)
    }) else {
        return skip::test("needs AVX-512");
    };
    let bytes = bytes(LANES * 3 * BLOCK);
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let runs: Runs<'_> = std::array::from_fn(|lane| &blocks[3 * lane..3 * lane + 3]);
    let start: State = std::array::from_fn(|word| std::array::from_fn(|lane| SHA256_START[(word + lane) % 8]));
    for algorithm in Algorithm::ALL {
        let (mut avx2, mut wide) = (start, start);
        // SAFETY: the processor has AVX-512.
        unsafe { wide::advance(algorithm, &mut wide, &runs) }
        if algorithm == Algorithm::Md5 {
            // SAFETY: who has AVX-512 has AVX2.
            unsafe { avx2::advance(&mut avx2, &runs) }
            assert_eq!(avx2, wide);
        }
        for (eight, runs) in runs.as_chunks::<SOME>().0.iter().enumerate() {
            let mut chains: [Words; SOME] = std::array::from_fn(|lane| words(&start, SOME * eight + lane));
            narrow.advance_eight(algorithm, &mut chains, runs);
            assert_eq!(chains, std::array::from_fn(|lane| words(&wide, SOME * eight + lane)));
        }
        for (four, runs) in runs.as_chunks::<FEW>().0.iter().enumerate() {
            let mut chains: [Words; FEW] = std::array::from_fn(|lane| words(&start, FEW * four + lane));
            narrow.advance_four(algorithm, &mut chains, runs);
            assert_eq!(chains, std::array::from_fn(|lane| words(&wide, FEW * four + lane)));
        }
    }
}

/// Lengths around the borders of blocks, more messages than lanes, in every lane.
#[test]
fn a_value_does_not_depend_on_its_neighbours() {
    let bytes = bytes(5000);
    let lengths: Vec<usize> = (0..200).chain([4096, 0, 1000, 4999, 55, 56, 63, 64, 119, 120]).collect();
    for lanes in Algorithm::ALL.into_iter().flat_map(each_lanes) {
        let alone: Vec<String> = lengths.iter().map(|len| values(lanes, &[&bytes[..*len]]).remove(0)).collect();
        for turn in (0..lengths.len()).step_by(23) {
            let messages: Vec<&[u8]> =
                (0..lengths.len()).map(|at| &bytes[..lengths[(at + turn) % lengths.len()]]).collect();
            let mut expected = alone.clone();
            expected.rotate_left(turn);
            assert_eq!(values(lanes, &messages), expected);
        }
    }
}

#[test]
fn a_long_message_does_not_hold_up_the_lanes() {
    let apart = |lengths: &[usize]| stand_out_of_avx2(lengths.iter().copied());
    assert_eq!(apart(&[8192; 32]), 0, "all are alike");
    assert_eq!(apart(&[200_000, 5000, 5000, 5000, 5000, 5000, 5000, 5000]), 1);
    assert_eq!(apart(&[100, 100]), 2, "two are too few");
    assert_eq!(apart(&[100_000]), 1);
    assert_eq!(apart(&[]), 0);
}
