//! The exchange in many orders of its threads: a walker, workers and a sender that do nothing else.

use std::sync::Mutex as Ground;

use ::models::{Count, explore, pass, pick};

use super::*;
use fd_os::sync::thread;

/// What a batch of these models is: how many records it has, in how many pieces, and how.
#[derive(Clone, Copy, Debug)]
struct Work {
    number: u32,
    files: u32,
    pieces: usize,
    /// It begins when all before it is sent, and the walker waits for its end.
    in_turn: bool,
    /// It waits until the batch before it announces that it has begun.
    follows: bool,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// A worker leaves this batch as if by a panic.
    Panic(u32),
    /// Another thread stops all at any moment.
    Stop,
    /// The job is canceled at any moment; only the clock wakes the sender.
    Cancel,
}

struct Model {
    exchange: Exchange<Work>,
    cancel: CancelToken,
    most_ahead: Option<usize>,
    fault: Fault,
    /// The number of the last batch that has announced that it has begun.
    begun: Ground<Vec<u32>>,
    /// What the sender has sent.
    stream: Ground<String>,
    /// What it is to send before each batch, and at the end.
    expected: Vec<String>,
    /// The most workers that may stay; it changes.
    varies: bool,
    is_over: Ground<bool>,
}

/// The text of a piece.
fn text(work: Work, file: u32, piece: usize) -> String {
    format!("batch {} file {file} piece {piece};", work.number)
}

impl Model {
    fn walk(&self, works: &[Work]) -> Result<(), Stopped> {
        for work in works {
            self.exchange.submit(*work)?;
            let state = self.exchange.lock();
            // As long as when most workers were there.
            let most = self.exchange.limits.queue.max(state.most_workers * 2);
            assert!(state.batches.len() <= most, "the queue is too long");
            drop(state);
            if work.in_turn {
                self.exchange.wait_until_sent()?;
            }
        }
        self.exchange.no_more_batches();
        Ok(())
    }

    fn work(&self) {
        let stop = StopUnlessDone(&self.exchange);
        self.exchange.join_workers(usize::MAX);
        let allowed = || if self.varies { 1 + pick(2) } else { usize::MAX };
        while let Some((slot, work)) = self.exchange.take_batch(allowed()) {
            if self.save(slot, work).is_err() {
                break;
            }
        }
        stop.done();
    }

    fn save(&self, slot: Slot, work: Work) -> Result<(), Stopped> {
        let exchange = &self.exchange;
        if work.in_turn {
            exchange.wait_for_turn(slot)?;
            assert_eq!(*self.stream.lock().unwrap(), self.before(work), "it is not its turn");
        }
        let first = exchange.first_file(slot)?;
        if !work.in_turn {
            exchange.count_files(slot, work.files);
        }
        if work.follows {
            let before = work.number - 1;
            exchange.wait_for(|| self.begun.lock().unwrap().contains(&before).then_some(()))?;
        }
        self.begun.lock().unwrap().push(work.number);
        exchange.announce();
        let mut piece = exchange.obtain(slot)?;
        for number in 0..work.pieces {
            if self.fault == Fault::Panic(work.number) {
                exchange.stop();
                return Err(Stopped);
            }
            if self.cancel.is_canceled() {
                exchange.stop();
                return Err(Stopped);
            }
            piece.frames.extend_from_slice(text(work, first, number).as_bytes());
            if number + 1 < work.pieces {
                piece = exchange.publish(slot, piece, self.most_ahead)?;
            }
        }
        if work.in_turn {
            exchange.count_files(slot, work.files);
        }
        exchange.close(slot, piece);
        Ok(())
    }

    /// What is sent before this batch.
    fn before(&self, work: Work) -> &str {
        &self.expected[usize::try_from(work.number).unwrap() - 1]
    }

    fn send(&self) {
        let mut sent = None;
        while let Some(piece) = self.exchange.next(sent.take(), &self.cancel, || ()) {
            self.stream.lock().unwrap().push_str(std::str::from_utf8(&piece.frames).unwrap());
            let state = self.exchange.lock();
            let waiting: usize = state.outputs.iter().map(|output| output.pieces.len()).sum();
            assert!(waiting < state.taken && state.taken <= self.exchange.limits.pieces, "more pieces than there are");
            drop(state);
            sent = Some(piece);
        }
    }
}

struct StopUnlessDone<'e>(&'e Exchange<Work>);

impl StopUnlessDone<'_> {
    fn done(self) {
        let _no_drop = std::mem::ManuallyDrop::new(self);
    }
}

impl Drop for StopUnlessDone<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs these batches with so many workers and compares what is sent.
fn check(works: &[Work], workers: usize, limits: Limits, most_ahead: Option<usize>, fault: Fault) {
    let mut expected = vec![String::new()];
    let mut file = 1;
    for work in works {
        let pieces: String = (0..work.pieces).map(|piece| text(*work, file, piece)).collect();
        expected.push([expected.last().unwrap().as_str(), pieces.as_str()].concat());
        file += work.files;
    }
    let all = expected.last().unwrap().clone();
    let model = Arc::new(Model {
        exchange: Exchange::new(limits, 1, Arc::default()),
        cancel: CancelToken::new(),
        most_ahead,
        fault,
        begun: Ground::default(),
        stream: Ground::default(),
        expected,
        varies: pick(2) == 0,
        is_over: Ground::new(false),
    });
    let of_walker = Arc::clone(&model);
    let works = works.to_vec();
    let mut threads = vec![thread::spawn(move || drop(of_walker.walk(&works)))];
    for _ in 0..workers {
        let model = Arc::clone(&model);
        threads.push(thread::spawn(move || model.work()));
    }
    if matches!(fault, Fault::Stop | Fault::Cancel) {
        let model = Arc::clone(&model);
        threads.push(thread::spawn(move || {
            if fault == Fault::Stop {
                model.exchange.stop();
                return;
            }
            model.cancel.cancel();
            while !*model.is_over.lock().unwrap() {
                pass(GLANCE);
                thread::yield_now();
            }
        }));
    }
    model.send();
    *model.is_over.lock().unwrap() = true;
    // As the job's own thread does when the sender has ended.
    model.exchange.stop();
    for thread in threads {
        thread.join().unwrap();
    }
    let stream = model.stream.lock().unwrap();
    assert!(all.starts_with(&*stream), "{stream} instead of {all}");
    if fault == Fault::None {
        assert_eq!(*stream, all);
        assert_eq!(model.exchange.lock().taken, 0, "a piece is lost");
    }
}

fn limits(pieces: usize, queue: usize) -> Limits {
    Limits { pieces, few: pieces, base: 0, piece_len: 16, queue }
}

/// A worker and the sender, with a batch of two pieces and memory for one.
fn two_pieces(is_slow: bool) {
    let exchange = Arc::new(Exchange::new(limits(1, 1), 1, Arc::default()));
    exchange.submit(()).unwrap();
    exchange.no_more_batches();
    let of_worker = Arc::clone(&exchange);
    let worker = thread::spawn(move || {
        let (slot, ()) = of_worker.take_batch(1).unwrap();
        let piece = of_worker.obtain(slot).unwrap();
        let piece = of_worker.publish(slot, piece, None).unwrap();
        of_worker.close(slot, piece);
    });
    let clock = is_slow.then(|| thread::spawn(|| pass(GLANCE)));
    let mut pieces = 0;
    let mut sent = None;
    while let Some(piece) = exchange.next(sent.take(), &CancelToken::new(), || ()) {
        pieces += 1;
        sent = Some(piece);
    }
    worker.join().unwrap();
    if let Some(clock) = clock {
        clock.join().unwrap();
    }
    assert_eq!(pieces, 2);
}

/// Every order that there is; and many in which the sender's wait is over at any moment, also when
/// a piece comes.
#[test]
fn two_pieces_in_all_orders() {
    explore("exchange, two pieces", Count::All, || two_pieces(false));
    explore("exchange, two pieces, slowly", Count::Of(2000), || two_pieces(true));
}

#[test]
fn batches_of_any_kind_come_out_in_order() {
    explore("exchange", Count::Of(6000), || {
        let works: Vec<Work> = (1..=2 + u32::try_from(pick(3)).unwrap())
            .map(|number| Work {
                number,
                files: u32::try_from(pick(3)).unwrap(),
                pieces: 1 + pick(3),
                in_turn: pick(5) == 0,
                follows: number > 1 && pick(3) == 0,
            })
            .collect();
        let limits = Limits { few: pick(5), base: pick(3), ..limits(1 + pick(5), 1 + pick(2)) };
        let most_ahead = (pick(3) == 0).then_some(1 + pick(2));
        let number = 1 + u32::try_from(pick(works.len())).unwrap();
        let fault = [Fault::None, Fault::None, Fault::Panic(number), Fault::Stop, Fault::Cancel][pick(5)];
        check(&works, 1 + pick(3), limits, most_ahead, fault);
    });
}
