//! What is tried, and how often.

use super::*;

/// How many of `count` payloads are tried when none compresses.
fn tries(effort: &mut Effort, look: Look, count: usize) -> usize {
    (0..count)
        .filter(|_| {
            let worth = effort.is_worth(look);
            if worth {
                effort.tried(look, 65_536, None);
            }
            worth
        })
        .count()
}

/// Random bytes, the same each time.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn noise_is_tried_less_often_but_never_given_up() {
    let mut effort = Effort::default();
    assert_eq!(tries(&mut effort, Look::Noise, 16), 4, "the 1st, 3rd, 7th and 15th");
    tries(&mut effort, Look::Noise, 1000);
    assert_eq!(tries(&mut effort, Look::Noise, 6400), 100);
    let others = [Look::Data, Look::ShortNoise, Look::ShortData, Look::Record];
    assert!(others.into_iter().all(|look| effort.is_worth(look)), "others are another matter");
}

#[test]
fn a_gain_ends_the_pause_between_tries() {
    let mut effort = Effort::default();
    tries(&mut effort, Look::Data, 100);
    while !effort.is_worth(Look::Data) {}
    effort.tried(Look::Data, 65_536, Some(30_000));
    assert!((0..100).all(|_| {
        let worth = effort.is_worth(Look::Data);
        effort.tried(Look::Data, 65_536, Some(61_440));
        worth
    }));
    effort.tried(Look::Data, 65_536, Some(65_000));
    assert!(!effort.is_worth(Look::Data), "hardly a gain");
}

/// Each small file costs one try at most: that of its data, if that is no noise.
#[test]
fn of_small_files_all_data_is_tried_and_what_is_none_hardly_ever() {
    let mut effort = Effort::default();
    let tried = |count: usize, effort: &mut Effort| {
        [Look::Record, Look::ShortData, Look::Record, Look::ShortNoise].map(|look| tries(effort, look, count))
    };
    let first = tried(300, &mut effort);
    assert_eq!(first[1], 300);
    assert!(first[0] + first[2] + first[3] <= 25, "{first:?}");
    assert_eq!(tried(6400, &mut effort), [100, 6400, 100, 100]);
}

#[test]
fn noise_of_any_length_looks_so_and_words_programs_and_zeros_do_not() {
    let looks = |len| {
        if len < LONG { [Look::ShortNoise, Look::ShortData] } else { [Look::Noise, Look::Data] }
    };
    for len in [32, 64, 100, 200, 400, 512, 900, LONG - 1, LONG, 1500, 20_000, 65_536, 1_000_003] {
        let [noisy, other] = looks(len);
        assert_eq!(Look::of_data(&noise(len)), noisy, "{len}");
        let words: Vec<u8> = b"The quick brown fox, 42 lazy dogs. ".iter().copied().cycle().take(len).collect();
        assert_eq!(Look::of_data(&words), other, "{len}");
        assert_eq!(Look::of_data(&vec![0; len]), other, "{len}");
        let record = if len < LONG { Look::Record } else { other };
        assert_eq!(Look::of_record(&words), record, "{len}");
    }
    assert_eq!(Look::of_data(b""), Look::ShortNoise, "it is not tried");
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let blocks = program.chunks_exact(65_536);
    let (all, noisy) = (blocks.len(), blocks.filter(|block| Look::of_data(block) == Look::Noise).count());
    assert!(noisy * 4 < all, "{noisy} of {all} blocks of a program look like noise");
}
