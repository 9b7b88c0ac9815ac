//! LZO1X beside two other implementations: what we write they read, what they write we read, and
//! ours is not longer (reference 08 §14).

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that can't go on fails")]

use std::collections::BTreeSet;

use fd_compress::lzo1x::{self, Error, LzoEncoder};

/// The generator of the reference's §2, from any start.
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }

    /// From 0 to `end` - 1.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next()).unwrap() % end
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }
}

fn random(count: usize) -> Vec<u8> {
    Random(0x1234_5678).bytes(count)
}

fn decompress(stream: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    lzo1x::decompress(stream, limit, &mut out).map(|()| out)
}

/// Our stream of `data`, appended to other bytes.
fn stream_of(encoder: &mut LzoEncoder, data: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    encoder.append(data, &mut out).unwrap();
    assert!(out.starts_with(b"before"));
    out.split_off(6)
}

/// Our stream of `data`, which survived a round trip within the bound of §5.
fn compress(encoder: &mut LzoEncoder, data: &[u8]) -> Vec<u8> {
    let stream = stream_of(encoder, data);
    let n = data.len();
    assert!(stream.len() <= n + n / 22 + 6, "{n} bytes became {}", stream.len());
    assert!(decompress(&stream, n).unwrap() == data, "{n} bytes did not come back: {:02x?}…", &data[..n.min(64)]);
    stream
}

/// `compress`, and both others read it too.
fn judged(encoder: &mut LzoEncoder, data: &[u8]) -> Vec<u8> {
    let stream = compress(encoder, data);
    let mut out = vec![0; data.len()];
    lzo1x::decompress(&stream, data.len(), &mut Vec::new()).unwrap();
    ::lzo1x::decompress(&stream, &mut out).unwrap();
    assert!(out == data, "the C library's port reads something else");
    if !data.is_empty() {
        assert!(lzokay_native::decompress_all(&stream, Some(data.len())).unwrap() == data);
    }
    stream
}

/// `len` bytes with matches of many lengths at many distances: runs of `alphabet` symbols, and
/// copies of what was.
fn made_up(random: &mut Random, len: usize, alphabet: u8) -> Vec<u8> {
    let mut data = Vec::with_capacity(len + 400);
    while data.len() < len {
        if data.is_empty() || random.below(3) == 0 {
            for _ in 0..=random.below(40) {
                data.push(random.byte() % alphabet.max(1));
            }
        } else {
            let reach = [16, 2048, 16384, 49151, 70000][random.below(5)].min(data.len());
            let from = data.len() - 1 - random.below(reach);
            let longest = [8, 40, 350][random.below(3)];
            for at in from..from + 3 + random.below(longest) {
                data.push(data[at]);
            }
        }
    }
    data.truncate(len);
    data
}

#[test]
fn blocks_of_every_size_survive_a_round_trip() {
    let (mut encoder, mut random) = (LzoEncoder::new(), Random(7));
    for alphabet in [1, 2, 16, 255] {
        for len in 0..=2000 {
            let data = made_up(&mut random, len, alphabet);
            compress(&mut encoder, &data);
        }
    }
    for border in [4096, 16384, 32768, 49152, 65536, 131_072] {
        for len in border - 2..border + 3 {
            judged(&mut encoder, &made_up(&mut random, len, 16));
        }
    }
}

#[test]
fn short_literals_and_long_runs_survive_at_every_place() {
    let mut encoder = LzoEncoder::new();
    // Literals first, then a match, then literals again.
    for run in [1, 2, 3, 4, 15, 16, 17, 18, 19, 237, 238, 239, 272, 273, 274, 528, 529, 1000] {
        let fresh = random(2 * run + 64);
        for len in [4, 8, 9, 33, 34, 287, 288, 289, 290, 543, 544, 3000] {
            let mut data = fresh[..run].to_vec();
            data.extend(std::iter::repeat_n(0xaa, len + 1));
            data.extend(&fresh[run..2 * run]);
            data.extend(std::iter::repeat_n(0xaa, len));
            judged(&mut encoder, &data);
            data.extend(&fresh[2 * run..]);
            judged(&mut encoder, &data);
        }
    }
}

/// The contents of a stream that tests check.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Found {
    Run(usize),
    Match { length: usize, distance: usize },
}

/// The instructions of a valid stream without M1, which the encoder does not write.
fn instructions(stream: &[u8]) -> Vec<Found> {
    let (mut found, mut at) = (Vec::new(), 0);
    let extended = |at: &mut usize, field: usize, longest: usize| {
        let mut length = field;
        if field == 0 {
            length = longest;
            while stream[*at] == 0 {
                length += 255;
                *at += 1;
            }
            length += usize::from(stream[*at]);
            *at += 1;
        }
        length
    };
    if stream[0] > 17 {
        at = 1 + usize::from(stream[0] - 17);
        found.push(Found::Run(at - 1));
    }
    loop {
        let op = usize::from(stream[at]);
        at += 1;
        if op < 16 {
            let run = 3 + extended(&mut at, op, 15);
            found.push(Found::Run(run));
            at += run;
            continue;
        }
        let (length, distance, trailing) = if op >= 64 {
            at += 1;
            ((op >> 5) + 1, 8 * usize::from(stream[at - 1]) + ((op >> 2) & 7) + 1, op & 3)
        } else {
            let near = op >= 32;
            let length = 2 + if near { extended(&mut at, op & 31, 31) } else { extended(&mut at, op & 7, 7) };
            let word = usize::from(stream[at]) + 256 * usize::from(stream[at + 1]);
            at += 2;
            let distance = (word >> 2) + if near { 1 } else { 16384 + 2048 * (op & 8) };
            if !near && distance == 16384 {
                return found;
            }
            (length, distance, word & 3)
        };
        found.push(Found::Match { length, distance });
        at += trailing;
    }
}

#[test]
fn each_distance_class_and_length_is_written() {
    let mut encoder = LzoEncoder::new();
    let pattern: Vec<u8> = random(300).iter().map(|byte| byte | 0x80).collect();
    let distances = (1..=16)
        .chain([17, 1024, 1025, 2047, 2048, 2049, 2050, 16383, 16384, 16385, 32767, 32768, 32769, 49150, 49151]);
    for distance in distances {
        for length in [4, 5, 7, 8, 9, 10, 33, 34, 35, 288, 289] {
            // A pattern, zeros, the pattern again, and an end that no match reaches. Where the
            // distance is shorter than the match, the pattern repeats itself.
            let mut data = vec![0x7f];
            data.extend(pattern.iter().take(distance.min(length)));
            data.resize(1 + distance, 0);
            for at in 1..=length {
                data.push(data[at]);
            }
            data.extend(0x20..0x60);
            let wanted = Found::Match { length, distance };
            let found = instructions(&judged(&mut encoder, &data));
            assert!(found.contains(&wanted), "{wanted:?} is not in {found:?}");
        }
    }
}

#[test]
fn every_written_distance_can_be_read() {
    let (mut encoder, mut random) = (LzoEncoder::new(), Random(3));
    let mut seen = BTreeSet::new();
    for distance in [49152, 49153, 65535, 65536, 65537, 98304] {
        let mut data = b"0123456789ABCDEF".to_vec();
        data.resize(distance, 0);
        data.extend(b"0123456789ABCDEF");
        data.extend(random.bytes(40));
        for found in instructions(&judged(&mut encoder, &data)) {
            if let Found::Match { distance, .. } = found {
                seen.insert(distance);
            }
        }
    }
    assert!(seen.iter().all(|&distance| distance <= 49151), "{seen:?}");
}

#[test]
fn blocks_above_64_kib_survive_a_round_trip() {
    let (mut encoder, mut random) = (LzoEncoder::new(), Random(11));
    let data = made_up(&mut random, 1 << 20, 255);
    let stream = judged(&mut encoder, &data);
    assert!(stream.len() < data.len());
    let mut with_borders = random.bytes(60_000);
    for _ in 0..4 {
        with_borders.extend_from_within(with_borders.len() - 40_000..);
    }
    judged(&mut encoder, &with_borders);
    judged(&mut encoder, &vec![0; 300_001]);
}

#[test]
fn streams_of_the_worst_inputs_stay_within_the_bound() {
    // Matches of four bytes at a distance that costs three, each followed by 19 fresh bytes (§5).
    let mut random = Random(5);
    let mut data = random.bytes(4096);
    while data.len() < 60_000 {
        let from = data.len() - 2500 - random.below(1000);
        data.extend_from_within(from..from + 4);
        data.extend(random.bytes(19));
    }
    let mut encoder = LzoEncoder::new();
    judged(&mut encoder, &data);
    for gap in 1..40 {
        let mut data = random.bytes(4096);
        while data.len() < 20_000 {
            let from = data.len() - 2500 - random.below(1000);
            data.extend_from_within(from..from + 4);
            data.extend(random.bytes(gap));
        }
        compress(&mut encoder, &data);
    }
}

#[test]
fn a_block_does_not_depend_on_the_blocks_before() {
    let (mut random, mut used) = (Random(13), LzoEncoder::new());
    for len in [10, 70_000, 300, 65_536, 20, 1000, 65_535] {
        let data = made_up(&mut random, len, 64);
        assert_eq!(stream_of(&mut used, &data), stream_of(&mut LzoEncoder::new(), &data));
    }
}

/// The inputs of §11.2 with the sizes of the C library's `lzo1x_1_compress`.
fn small_inputs() -> Vec<(&'static str, Vec<u8>, usize)> {
    const LEN: usize = 65536;
    let random = random(LEN);
    let cut = |mut data: Vec<u8>| {
        data.truncate(LEN);
        data
    };
    let words: Vec<&[u8]> =
        b"the of and to in is that for it as was with be by on not".split(|byte| *byte == b' ').collect();
    vec![
        ("random", random.clone(), 65797),
        ("four symbols", random.iter().map(|byte| byte & 3).collect(), 32722),
        ("hex digits", random.iter().map(|byte| b"0123456789abcdef"[usize::from(byte >> 4)]).collect(), 65797),
        ("decimal numbers", cut((0..20_000).flat_map(|i| format!("{i}\n").into_bytes()).collect()), 48253),
        ("counters", (0..16384_u32).flat_map(u32::to_le_bytes).collect(), 65797),
        ("words", cut(random.iter().flat_map(|b| [words[usize::from(b >> 4)], b" "].concat()).collect()), 27414),
        (
            "random and zeros",
            random.chunks(4096).step_by(2).flat_map(|part| [part, &[0; 4096]].concat()).collect(),
            33936,
        ),
        ("zeros", vec![0; LEN], 311),
    ]
}

#[test]
fn streams_are_at_most_one_percent_larger_than_the_c_library_s() {
    let mut encoder = LzoEncoder::new();
    for (name, data, stock) in small_inputs() {
        assert_eq!(data.len(), 65536, "{name}");
        // The port makes streams of the same sizes as the C library.
        assert_eq!(::lzo1x::compress(&data, ::lzo1x::CompressLevel::default()).len(), stock, "{name}");
        let ours = judged(&mut encoder, &data).len();
        println!("{name}: {ours}, C library {stock}");
        assert!(ours * 100 <= stock * 101, "{name}: {ours} bytes, the C library needs {stock}");
    }
}

#[test]
fn real_files_are_not_larger_than_with_the_c_library() {
    // This program: code, tables and debug information, in the daemon's blocks.
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let source = [
        include_str!("lzo1x.rs"),
        include_str!("../src/lzo1x/decode.rs"),
        include_str!("../src/lzo1x/encode.rs"),
        include_str!("../src/lzo1x/fast.rs"),
        include_str!("../src/lzo1x/tests.rs"),
        include_str!("../src/lzo1x/write.rs"),
    ]
    .concat();
    let mut encoder = LzoEncoder::new();
    for (name, data) in [("program", &program[..program.len().min(4 << 20)]), ("source", source.as_bytes())] {
        let (mut ours, mut stock) = (0, 0);
        for block in data.chunks(65536) {
            ours += judged(&mut encoder, block).len();
            stock += ::lzo1x::compress(block, ::lzo1x::CompressLevel::default()).len();
        }
        println!("{name}: {} bytes, ours {ours}, C library {stock}", data.len());
        assert!(ours <= stock, "{name}: {ours} bytes, the C library needs {stock}");
    }
}

#[test]
fn streams_of_other_encoders_are_decoded() {
    let mut random = Random(17);
    let mut inputs: Vec<Vec<u8>> = small_inputs().into_iter().map(|(_, data, _)| data).collect();
    inputs.extend((0..40).map(|i| made_up(&mut random, 1 + 1500 * i, [2, 16, 255][i % 3])));
    for data in &inputs {
        // 1 to 4 are LZO1X-1 with tables of several sizes, 5 to 13 LZO1X-999, which writes every
        // kind of match.
        for level in [1, 3, 4, 8, 13] {
            let stream = ::lzo1x::compress(data, ::lzo1x::CompressLevel::new(level));
            assert!(decompress(&stream, data.len()).unwrap() == *data, "level {level}");
        }
        assert!(decompress(&lzokay_native::compress(&data[..data.len().min(4096)]).unwrap(), 4096).is_ok());
    }
}

#[test]
fn damaged_streams_have_the_same_result_as_with_other_decoders() {
    let (mut random, mut encoder) = (Random(19), LzoEncoder::new());
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..3000 {
        let data = made_up(&mut random, 1 + round % 700, [2, 16, 255][round % 3]);
        let mut stream = if round % 2 == 0 {
            stream_of(&mut encoder, &data)
        } else {
            ::lzo1x::compress(&data, ::lzo1x::CompressLevel::new(13))
        };
        for _ in 0..=random.below(3) {
            let at = random.below(stream.len());
            match random.below(4) {
                0 => stream[at] = random.byte(),
                1 => stream[at] ^= 1 << random.below(8),
                2 => stream.insert(at, random.byte()),
                _ => {
                    stream.remove(at);
                }
            }
            if stream.is_empty() {
                stream.push(0x11);
            }
        }
        for limit in [data.len(), data.len() / 2, 4 * data.len() + 300] {
            let ours = decompress(&stream, limit);
            assert!(ours.as_ref().map_or(0, Vec::len) <= limit);
            // The port needs a buffer of the right length, so it can only confirm accepted streams.
            if let Ok(out) = ours {
                let mut theirs = vec![0; out.len()];
                ::lzo1x::decompress(&stream, &mut theirs).unwrap();
                assert_eq!(out, theirs);
                accepted += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(accepted > 200 && refused > 200, "{accepted} accepted, {refused} refused");
}

#[test]
fn inputs_that_once_failed_survive_a_round_trip() {
    judged(&mut LzoEncoder::new(), include_bytes!("../../../fuzz/seeds/lzo/round-trip-overrun"));
}
