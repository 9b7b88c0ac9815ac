//! A few places for callers that have not logged in, none of them for longer than a login takes.
//!
//! A caller without a place waits until one is free. So that idle connections can't block it, the
//! oldest that has had its least time is closed for it. A caller that logs in needs a fraction of
//! that time, and is never closed, however many come at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_os::lock::{Condvar, Mutex};

/// How long a closed one may take to leave before the next one is closed.
const LEAVING: Duration = Duration::from_millis(500);

/// A fixed number of places.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    least_time: Duration,
    held: Mutex<Held>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    /// By number, and so the oldest first.
    holders: BTreeMap<u64, Holder>,
}

/// A caller that has a place.
struct Holder {
    since: Instant,
    /// Ends its connection; `None` if it may stay, or was closed already.
    send_away: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder").field("since", &self.since).finish_non_exhaustive()
    }
}

impl Places {
    /// `most` places; each may be kept for `least_time`, however many others wait.
    pub(crate) fn new(most: usize, least_time: Duration) -> Arc<Self> {
        Arc::new(Self { most, least_time, held: Mutex::default(), freed: Condvar::new() })
    }

    /// Waits for a place, and closes an older connection for it if none gets free. `send_away` ends
    /// the new holder's connection; it is called at most once, and must not wait.
    pub(crate) fn take(self: &Arc<Self>, send_away: impl FnOnce() + Send + 'static) -> Place {
        let mut held = self.held.lock();
        while held.holders.len() >= self.most {
            let patience = held.make_room(self.least_time);
            (held, _) = self.freed.wait_timeout(held, patience);
        }
        let number = held.next;
        held.next = held.next.wrapping_add(1);
        held.holders.insert(number, Holder { since: Instant::now(), send_away: Some(Box::new(send_away)) });
        drop(held);
        Place { places: Arc::clone(self), number }
    }
}

impl Held {
    /// Closes the oldest if it has had its time; returns how long to wait before the next look.
    fn make_room(&mut self, least_time: Duration) -> Duration {
        let Some(oldest) = self.holders.values_mut().find(|holder| holder.send_away.is_some()) else {
            return LEAVING;
        };
        match least_time.checked_sub(oldest.since.elapsed()) {
            Some(left) if !left.is_zero() => left,
            _ => {
                if let Some(send_away) = oldest.send_away.take() {
                    send_away();
                }
                LEAVING
            }
        }
    }
}

/// A place; free again when this is dropped, also when its thread panics.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Place {
    /// Whether its holder was sent away.
    pub(crate) fn is_sent_away(&self) -> bool {
        self.places.held.lock().holders.get(&self.number).is_none_or(|holder| holder.send_away.is_none())
    }

    /// Its holder has logged in and may stay.
    pub(crate) fn keep(&self) {
        if let Some(holder) = self.places.held.lock().holders.get_mut(&self.number) {
            holder.send_away = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.held.lock().holders.remove(&self.number);
        self.places.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    const LONG: Duration = Duration::from_secs(3600);

    /// The number of each one that is closed.
    fn taker(places: &Arc<Places>) -> (impl Fn(u32) -> Place, mpsc::Receiver<u32>) {
        let (sent, away) = mpsc::channel();
        let places = Arc::clone(places);
        let take = move |number| {
            let sent = sent.clone();
            places.take(move || sent.send(number).unwrap())
        };
        (take, away)
    }

    #[test]
    fn a_caller_within_its_least_time_is_not_closed() {
        let places = Places::new(2, LONG);
        let (take, away) = taker(&places);
        let (first, second) = (take(1), take(2));
        thread::scope(|scope| {
            let third = scope.spawn(|| take(3));
            assert!(away.recv_timeout(Duration::from_millis(50)).is_err());
            drop(first);
            drop(third.join().unwrap());
        });
        drop(second);
        assert!(away.try_recv().is_err() && places.held.lock().holders.is_empty());
    }

    #[test]
    fn the_oldest_caller_without_a_login_is_closed_first() {
        let places = Places::new(3, Duration::ZERO);
        let (take, away) = taker(&places);
        let mut holders: BTreeMap<u32, Place> = (1..=3).map(|number| (number, take(number))).collect();
        holders[&1].keep();
        thread::scope(|scope| {
            for newcomer in 4..=9 {
                let waiting = scope.spawn({
                    let take = &take;
                    move || take(newcomer)
                });
                let gone = away.recv().unwrap();
                assert_eq!(gone, newcomer - 2);
                drop(holders.remove(&gone));
                holders.insert(newcomer, waiting.join().unwrap());
            }
        });
        assert!(holders.contains_key(&1) && holders.len() == 3);
    }
}
