#![no_main]
//! A byte stream cut into frames: whatever arrives, in one piece or byte by byte, gives the same
//! frames, and each frame encodes back to the bytes it came from.

use fd_bsock::{Encoder, HEADER_LEN, MAX_PAYLOAD, Parsed, Signal, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Ok(parsed) = parse(rest) {
        let consumed = match parsed {
            Parsed::Need(total) => {
                assert!(total > rest.len(), "asks for what is there");
                assert!(total <= HEADER_LEN + 4 + MAX_PAYLOAD);
                break;
            }
            Parsed::Data { payload, consumed, .. } => {
                assert!(!payload.is_empty() && payload.len() <= MAX_PAYLOAD);
                let mut again = Vec::new();
                Encoder::new(false).data(&mut again, payload).expect("it fits: it came in a frame");
                assert_eq!(parse(&again), Ok(Parsed::Data { payload, compressed: false, consumed: again.len() }));
                consumed
            }
            Parsed::Empty { consumed } => consumed,
            Parsed::Signal { signal, consumed } => {
                assert_eq!(Signal::from_code(signal.code()), signal);
                let mut again = Vec::new();
                Encoder::new(false).signal(&mut again, signal);
                assert_eq!(again, rest[..consumed]);
                consumed
            }
        };
        assert!(consumed >= HEADER_LEN && consumed <= rest.len());
        // One byte less is not enough, and says so.
        assert!(matches!(parse(&rest[..consumed - 1]), Ok(Parsed::Need(_))));
        rest = &rest[consumed..];
    }
});
