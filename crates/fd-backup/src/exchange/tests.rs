//! The exchange between walker, workers and sender.

use std::sync::mpsc;
use std::thread;

use super::*;

fn exchange(pieces: usize, queue: usize) -> Exchange<u32> {
    Exchange::new(Limits { pieces, few: pieces, base: 2, piece_len: 16, queue }, 1, Arc::default())
}

fn piece(exchange: &Exchange<u32>, slot: Slot, text: &[u8]) -> Piece {
    let mut piece = exchange.obtain(slot).unwrap();
    piece.frames.extend_from_slice(text);
    piece
}

#[test]
fn pieces_come_out_in_the_order_of_submission() {
    let exchange = exchange(8, 8);
    exchange.submit(1).unwrap();
    exchange.submit(2).unwrap();
    exchange.no_more_batches();
    let (first, _) = exchange.take_batch(usize::MAX).unwrap();
    let (second, _) = exchange.take_batch(usize::MAX).unwrap();
    exchange.close(second, piece(&exchange, second, b"second"));
    let next = exchange.publish(first, piece(&exchange, first, b"first a"), None).unwrap();
    exchange.close(first, next);
    let mut sent = None;
    let mut texts = Vec::new();
    while let Some(piece) = exchange.next(sent.take(), &CancelToken::new(), || ()) {
        texts.push(piece.frames.clone());
        sent = Some(piece);
    }
    assert_eq!(texts, [&b"first a"[..], b"", b"second"]);
    assert!(exchange.take_batch(usize::MAX).is_none());
}

/// The case that the watchdog detects: a batch without a worker, while the walker waits for room
/// and the sender for pieces.
#[test]
fn the_watchdog_detects_threads_that_wait_for_each_other() {
    let exchange = &exchange(4, 1);
    let times = Arc::clone(&exchange.times);
    let parts = [times.take_part(), times.take_part()];
    let sender_looks_again = || {
        let before = times.get(Stage::SendWaits);
        while times.get(Stage::SendWaits) == before {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let (quiet, is_quiet) = mpsc::channel();
        let say = move || quiet.send(()).unwrap();
        let sender = scope.spawn(move || exchange.next(None, &CancelToken::new(), say).is_none());
        is_quiet.recv().unwrap();
        while !exchange.lock().waiting.sender {
            thread::yield_now();
        }
        assert_eq!(times.standstill(), None, "the walker is on its way");
        let walker = scope.spawn(|| [1, 2].map(|batch| exchange.submit(batch).is_ok()));
        // From here on no other thread runs.
        while !(exchange.lock().waiting.walker && times.standstill().is_some()) {
            thread::yield_now();
        }
        sender_looks_again();
        let place = times.standstill();
        sender_looks_again();
        let later = times.standstill();
        // Before the test can fail: the scope waits for both.
        exchange.stop();
        assert!(place.is_some() && place == later, "{place:?}, {later:?}");
        assert!(sender.join().unwrap());
        assert_eq!(walker.join().unwrap(), [true, false]);
    });
    drop(parts);
    assert_eq!(times.standstill(), None);
}

#[test]
fn a_worker_that_stays_near_waits_until_half_of_its_pieces_are_sent() {
    let exchange = exchange(16, 8);
    exchange.submit(1).unwrap();
    let (slot, _) = exchange.take_batch(usize::MAX).unwrap();
    let mut next = exchange.obtain(slot).unwrap();
    for _ in 0..4 {
        next = exchange.publish(slot, next, Some(4)).unwrap();
    }
    thread::scope(|scope| {
        let fifth = scope.spawn(|| exchange.publish(slot, next, Some(4)).unwrap());
        while exchange.lock().waiting.for_few.is_none() {
            thread::yield_now();
        }
        let mut sent = exchange.next(None, &CancelToken::new(), || ());
        sent = exchange.next(sent.take(), &CancelToken::new(), || ());
        assert_eq!(exchange.lock().waiting.for_few, Some(2), "three pieces are left");
        sent = exchange.next(sent.take(), &CancelToken::new(), || ());
        let next = fifth.join().unwrap();
        assert_eq!(exchange.lock().waiting.for_few, None);
        assert!(sent.is_some());
        exchange.close(slot, next);
    });
}

#[test]
fn the_last_pieces_are_reserved_for_the_first_slot() {
    let exchange = exchange(4, 8);
    exchange.submit(1).unwrap();
    exchange.submit(2).unwrap();
    let (first, _) = exchange.take_batch(usize::MAX).unwrap();
    let (second, _) = exchange.take_batch(usize::MAX).unwrap();
    let ahead = piece(&exchange, second, b"ahead");
    thread::scope(|scope| {
        // The second slot gets no piece until the first one is closed.
        let waiting = scope.spawn(|| exchange.publish(second, ahead, None).unwrap());
        let mut piece_of_first = piece(&exchange, first, b"1");
        for _ in 0..100 {
            piece_of_first = exchange.publish(first, piece_of_first, None).unwrap();
            let sent = exchange.next(None, &CancelToken::new(), || ()).unwrap();
            assert!(!waiting.is_finished());
            exchange.lock().taken -= 1;
            drop(sent);
        }
        exchange.close(first, piece_of_first);
        let last_of_first = exchange.next(None, &CancelToken::new(), || ());
        assert_eq!(exchange.next(last_of_first, &CancelToken::new(), || ()).unwrap().frames, b"ahead");
        waiting.join().unwrap();
    });
}

#[test]
fn the_exchange_works_with_one_piece() {
    let exchange = exchange(1, 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            for batch in 0..50 {
                exchange.submit(batch).unwrap();
            }
            exchange.no_more_batches();
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((slot, batch)) = exchange.take_batch(usize::MAX) {
                    let text = batch.to_string();
                    let next = exchange.publish(slot, piece(&exchange, slot, text.as_bytes()), None).unwrap();
                    exchange.close(slot, next);
                }
            });
        }
        let mut sent = None;
        let mut texts = String::new();
        while let Some(piece) = exchange.next(sent.take(), &CancelToken::new(), || ()) {
            texts.push_str(std::str::from_utf8(&piece.frames).unwrap());
            sent = Some(piece);
        }
        assert_eq!(texts, (0..50).map(|batch| batch.to_string()).collect::<String>());
    });
}

#[test]
fn a_first_file_index_waits_for_the_counts_of_earlier_slots() {
    let exchange = exchange(8, 8);
    for batch in 1..=4 {
        exchange.submit(batch).unwrap();
    }
    let slots: Vec<Slot> = (0..4).map(|_| exchange.take_batch(usize::MAX).unwrap().0).collect();
    assert_eq!(exchange.first_file(slots[0]).unwrap(), 1);
    thread::scope(|scope| {
        let last = scope.spawn(|| exchange.first_file(slots[3]).unwrap());
        exchange.count_files(slots[2], 2);
        let third = scope.spawn(|| exchange.first_file(slots[2]).unwrap());
        exchange.count_files(slots[0], 3);
        assert_eq!(exchange.first_file(slots[1]).unwrap(), 4);
        assert!(!third.is_finished() && !last.is_finished());
        exchange.count_files(slots[1], 10);
        assert_eq!((third.join().unwrap(), last.join().unwrap()), (14, 16));
    });
}

#[test]
fn stopping_wakes_all_threads() {
    let exchange = exchange(1, 1);
    exchange.submit(1).unwrap();
    let (slot, _) = exchange.take_batch(usize::MAX).unwrap();
    let held = exchange.obtain(slot).unwrap();
    exchange.submit(2).unwrap();
    let (ready, go) = mpsc::channel();
    thread::scope(|scope| {
        let waiters: [fn(&Exchange<u32>, Slot); 3] = [
            |exchange, _| assert!(exchange.submit(3).is_err()),
            |exchange, slot| assert!(exchange.obtain(slot).is_err()),
            |exchange, _| assert!(exchange.next(None, &CancelToken::new(), || ()).is_none()),
        ];
        for waiter in waiters {
            let (ready, exchange) = (ready.clone(), &exchange);
            scope.spawn(move || {
                ready.send(()).unwrap();
                waiter(exchange, slot);
            });
        }
        for _ in waiters {
            go.recv().unwrap();
        }
        exchange.stop();
    });
    assert!(exchange.take_batch(usize::MAX).is_none());
    drop(held);
}

#[test]
fn memory_of_a_long_record_is_freed() {
    let exchange = exchange(1, 1);
    exchange.submit(1).unwrap();
    let (slot, _) = exchange.take_batch(usize::MAX).unwrap();
    exchange.close(slot, piece(&exchange, slot, &vec![0; 100_000]));
    exchange.no_more_batches();
    let sent = exchange.next(None, &CancelToken::new(), || ());
    assert!(exchange.next(sent, &CancelToken::new(), || ()).is_none());
    assert!(exchange.lock().spare[0].frames.capacity() < 100_000);
}

#[test]
fn workers_come_for_batches_and_leave_when_there_are_too_many() {
    let exchange = exchange(8, 8);
    assert_eq!(exchange.hire(9), None, "nothing to do");
    exchange.submit(1).unwrap();
    assert_eq!((exchange.hire(9), exchange.hire(9)), (Some(1), None), "the first one is enough");
    (2..=5).for_each(|batch| exchange.submit(batch).unwrap());
    let mut hired = 1;
    while exchange.hire(3).is_some() {
        hired += 1;
    }
    assert_eq!((hired, exchange.workers(), exchange.most_workers()), (3, 3, 3));
    (0..3).for_each(|_| exchange.worker_arrived());
    assert!(exchange.take_batch(3).is_some() && exchange.take_batch(2).is_none(), "the third one leaves");
    assert!(exchange.take_batch(1).is_none() && exchange.take_batch(0).is_some(), "and never the last one");
    assert_eq!((exchange.workers(), exchange.most_workers()), (1, 3));
    assert!(!exchange.join_workers(1) && exchange.join_workers(2));
    assert!(exchange.hire(9).is_some());
    assert_eq!(exchange.no_worker(), 2);
}

#[test]
fn no_more_workers_than_usual_come_while_memory_is_short() {
    let exchange = exchange(4, 8);
    (1..=6).for_each(|batch| exchange.submit(batch).unwrap());
    let slots: Vec<Slot> = (0..2).map(|_| exchange.take_batch(usize::MAX).unwrap().0).collect();
    let held = exchange.obtain(slots[1]).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| assert!(exchange.obtain(slots[1]).is_err()));
        while exchange.lock().waiting.for_memory == 0 {
            thread::yield_now();
        }
        assert_eq!([exchange.hire(9), exchange.hire(9), exchange.hire(9)], [Some(1), Some(2), None]);
        exchange.stop();
    });
    drop(held);
}
