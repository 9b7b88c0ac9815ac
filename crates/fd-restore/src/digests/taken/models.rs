//! The thread that makes digests, in many orders.

use ::models::{Count, allow_threads, at_step, explore, pick, running};
use fd_crypto::Digester;

use super::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Nothing,
    Panic,
    NoThread,
}

#[test]
fn digests_are_those_of_the_data_or_there_are_none() {
    let kind = DigestKind::Md5;
    let data: Vec<u8> = (0..1_100_000_u32).map(|n| (n / 7).to_le_bytes()[0]).collect();
    let mut digester = Digester::new(kind).unwrap();
    digester.update(&data);
    let expected = digester.finish().unwrap();
    explore("digests of a restore", Count::Of(200), move || {
        let fate = [Fate::Nothing, Fate::Panic, Fate::NoThread][pick(3)];
        match fate {
            Fate::Nothing => {}
            // Not `panic!`: the scheduler would take it for a failure of the model.
            Fate::Panic => at_step("digests", pick(12), || std::panic::resume_unwind(Box::new("on purpose"))),
            Fate::NoThread => allow_threads(0),
        }
        let mut streamed = StreamedDigests::default();
        let mut lost = 0;
        for _file in 0..3 {
            streamed.begin([kind].into_iter().collect());
            data.chunks(65_536).for_each(|piece| streamed.update(piece));
            if pick(4) == 0 {
                continue;
            }
            match streamed.finish(kind) {
                Some(value) => assert_eq!(value, expected),
                None => lost += 1,
            }
        }
        assert!(lost <= usize::from(fate == Fate::Panic), "{fate:?}: {lost} digests are lost");
        drop(streamed);
        // The thread ends when its channels are gone.
        while running() > 0 {
            fd_os::sync::thread::yield_now();
        }
    });
}
