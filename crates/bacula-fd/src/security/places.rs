//! A few places for callers that have not logged in, none of them for longer than a login takes.
//!
//! A caller without a place waits until one is free. So that idle connections can't block it, the
//! oldest that has had its least time is closed for it. A caller that logs in needs a fraction of
//! that time, and is never closed, however many come at once.
//!
//! A closed one gives its place away at once, for it may take long to leave: its name is looked up
//! for `hosts.allow`, say, and who knows it does not answer. Only so many may be leaving.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fd_os::lock::{Condvar, Mutex};

/// So many closed ones may be leaving and take no place.
const MOST_LEAVING: usize = 200;
/// How long is waited for one to leave before the next one is closed, if so many are leaving.
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
    stay: Stay,
}

/// Whether a caller may stay.
enum Stay {
    /// Until another one needs the place. This ends its connection.
    UntilSentAway(Box<dyn FnOnce() + Send>),
    /// It has logged in.
    Certain,
    /// Its connection is closed.
    Leaving,
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
        while held.taken() >= self.most {
            if let Some(patience) = held.make_room(self.least_time) {
                (held, _) = self.freed.wait_timeout(held, patience);
            }
        }
        let number = held.next;
        held.next = held.next.wrapping_add(1);
        held.holders.insert(number, Holder { since: Instant::now(), stay: Stay::UntilSentAway(Box::new(send_away)) });
        drop(held);
        Place { places: Arc::clone(self), number }
    }
}

impl Held {
    /// How many places are taken.
    fn taken(&self) -> usize {
        let leaving = self.holders.values().filter(|holder| matches!(holder.stay, Stay::Leaving)).count();
        self.holders.len() - leaving.min(MOST_LEAVING)
    }

    /// Closes the oldest if it has had its time. Otherwise, and if it must leave before its place
    /// is free, returns how long to wait before the next look.
    fn make_room(&mut self, least_time: Duration) -> Option<Duration> {
        let before = self.taken();
        let may_be_closed = |holder: &&mut Holder| matches!(holder.stay, Stay::UntilSentAway(_));
        let Some(oldest) = self.holders.values_mut().find(may_be_closed) else { return Some(LEAVING) };
        let left = least_time.saturating_sub(oldest.since.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        if let Stay::UntilSentAway(send_away) = std::mem::replace(&mut oldest.stay, Stay::Leaving) {
            send_away();
        }
        (self.taken() == before).then_some(LEAVING)
    }
}

/// A place; free again when this is dropped, also when its thread panics.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
}

impl Place {
    /// Its holder has logged in and may stay.
    pub(crate) fn keep(&self) {
        if let Some(holder) = self.places.held.lock().holders.get_mut(&self.number) {
            holder.stay = Stay::Certain;
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

    #[test]
    fn a_closed_caller_that_does_not_leave_keeps_no_place_but_only_so_many_do() {
        let places = Places::new(1, Duration::ZERO);
        let (take, away) = taker(&places);
        let most = u32::try_from(MOST_LEAVING).unwrap();
        let mut holders: Vec<Place> = (0..=most).map(&take).collect();
        assert!(away.try_iter().eq(0..most));
        thread::scope(|scope| {
            let one_more = scope.spawn(|| take(most + 1));
            assert_eq!(away.recv().unwrap(), most);
            assert!(away.recv_timeout(Duration::from_millis(50)).is_err() && !one_more.is_finished());
            drop(holders.pop());
            drop(one_more.join().unwrap());
        });
    }
}
