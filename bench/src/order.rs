//! Which daemon comes first. Two replicas form a pair of pairs: stock, ours, ours, stock, or the
//! other way round (ABBA), as a coin says. So what grows or shrinks with time favours neither, and
//! whatever repeats itself does not fall in step with the daemons.

use std::time::Duration;

use crate::sample::Side;
use crate::statistics::{Draws, seed_of};

/// The two daemons in the order of their turns in a replica of a cell; replicas count from 1.
pub fn turns(seed: u64, cell: &str, replica: u32) -> [Side; 2] {
    let pair = replica.saturating_sub(1) / 2;
    let coin = Draws::new(seed_of(seed, &format!("{cell}#{pair}"))).below(2) == 1;
    let is_second = replica.is_multiple_of(2);
    if coin == is_second { [Side::Stock, Side::Ours] } else { [Side::Ours, Side::Stock] }
}

/// The Director looks for jobs so often.
const POLL: Duration = Duration::from_secs(2);

/// How long to wait before a job of a replica of a cell, drawn: what comes before a job takes about
/// as long each time, and by itself would choose how long the job waits for the Director's poll.
pub fn delay(cell: &str, replica: u32) -> Duration {
    let milliseconds = usize::try_from(POLL.as_millis()).unwrap_or_default();
    let drawn = Draws::new(seed_of(0, &format!("{cell}#{replica} waits"))).below(milliseconds);
    Duration::from_millis(drawn as u64)
}

/// The same items in an order drawn anew.
pub fn shuffled<T>(seed: u64, name: &str, mut items: Vec<T>) -> Vec<T> {
    Draws::new(seed_of(seed, name)).shuffle(&mut items);
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_daemon_is_first_once_in_two_replicas_and_the_order_is_drawn() {
        let first = |replica| turns(7, "mixed1 full default", replica)[0];
        for pair in 0..20 {
            assert_ne!(first(2 * pair + 1), first(2 * pair + 2));
        }
        let stock = (0..100).filter(|pair| first(2 * pair + 1) == Side::Stock).count();
        assert!((30..70).contains(&stock), "{stock}");
    }

    #[test]
    fn waits_are_drawn_from_all_of_a_poll_and_are_those_of_the_replica() {
        let waits: Vec<_> = (1..=200).map(|replica| delay("mixed1 full default", replica)).collect();
        let early = waits.iter().filter(|wait| **wait < POLL / 2).count();
        assert!((80..120).contains(&early) && waits.iter().all(|wait| *wait < POLL), "{early}");
        assert_eq!(waits[6], delay("mixed1 full default", 7));
    }

    #[test]
    fn shuffling_keeps_every_item_and_depends_on_the_seed() {
        let all: Vec<u32> = (0..20).collect();
        let (one, other) = (shuffled(1, "x", all.clone()), shuffled(2, "x", all.clone()));
        assert!(one != other && one == shuffled(1, "x", all.clone()));
        let mut back = one;
        back.sort_unstable();
        assert_eq!(back, all);
    }
}
