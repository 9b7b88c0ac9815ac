//! How the Director's clock and ours are compared before an incremental backup (reference 02 §4.2,
//! step 3).
//!
//! Ten rounds of question and answer; the first two only warm up. The caller gives the time, in
//! microseconds. The stock daemon waits for each answer before it asks again. We do so once; then
//! nine questions leave together, for ten round trips are a second of a job over a slow line, and
//! no clock is compared the better for them: what counts are seconds.

/// Rounds asked.
const ROUNDS: u32 = 10;
/// Rounds that do not count.
const WARM_UP: u32 = 2;
/// Clocks are equal if ours seems to be behind by less than this, in microseconds: by as much as
/// the answers take, it always does.
const EQUAL: i128 = 50_000;

/// One comparison: note the time, send signal `BTIME` [`ClockSync::rounds_at_once`] times, receive
/// as many answers, and [`ClockSync::answer`] each; again while it [`ClockSync::wants_more`].
#[derive(Debug, Default)]
pub struct ClockSync {
    round: u32,
    counted: i64,
    sum: i128,
    last: i64,
}

impl ClockSync {
    /// Whether another round is to be asked.
    pub const fn wants_more(&self) -> bool {
        self.round < ROUNDS
    }

    /// How many rounds are asked without waiting for their answers: one, to see that there is one,
    /// and then the rest.
    pub const fn rounds_at_once(&self) -> u32 {
        if self.round == 0 { 1 } else { ROUNDS.saturating_sub(self.round) }
    }

    /// Notes one answer; `asked` and `now` are our clock in microseconds, `theirs` the Director's.
    pub fn answer(&mut self, asked: i64, now: i64, theirs: i64) {
        let round_trip = i128::from(now) - i128::from(asked);
        if self.round >= WARM_UP && theirs >= self.last && round_trip >= 0 {
            self.sum += i128::from(asked) - i128::from(theirs) - round_trip / 2;
            self.counted += 1;
        }
        self.last = theirs;
        self.round += 1;
    }

    /// Seconds to add to the Director's times, rounded down: files that change between the start of
    /// a job and a later time that the next one takes for it would be lost.
    pub fn adjustment(&self) -> i64 {
        if self.counted == 0 {
            return 0;
        }
        let mean = self.sum / i128::from(self.counted);
        if (-EQUAL..0).contains(&mean) { 0 } else { i64::try_from(mean.div_euclid(1_000_000)).unwrap_or(0) }
    }
}

/// The Director's microseconds in `btime <n>\n`.
pub fn parse_btime(frame: &[u8]) -> Option<i64> {
    let digits = frame.strip_prefix(b"btime ")?.trim_ascii();
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adjustment(skew: i64, round_trip: i64) -> i64 {
        let mut sync = ClockSync::default();
        let mut now = 1_795_228_000_000_000;
        while sync.wants_more() {
            sync.answer(now, now + round_trip, now + round_trip / 2 - skew);
            now += 1000;
        }
        sync.adjustment()
    }

    #[test]
    fn all_questions_but_the_first_leave_together() {
        let mut sync = ClockSync::default();
        let mut groups = Vec::new();
        while sync.wants_more() {
            let rounds = sync.rounds_at_once();
            groups.push(rounds);
            // Answers of one group come one behind the other; what the later ones waited for is no
            // difference of clocks.
            for round in 0..i64::from(rounds) {
                sync.answer(1_000_000, 1_200_000 + round * 300, 1_100_000 + round * 300 - 4_500_000);
            }
        }
        assert_eq!(groups, [1, 9]);
        assert_eq!(sync.adjustment(), 4);
    }

    #[test]
    fn equal_clocks_need_no_adjustment() {
        assert_eq!(adjustment(0, 400), 0);
        assert_eq!(adjustment(999_000, 400), 0, "less than a second is cut off");
    }

    #[test]
    fn a_difference_of_seconds_is_adjusted() {
        assert_eq!(adjustment(4_500_000, 400), 4);
        assert_eq!(adjustment(-4_500_000, 400), -5);
    }

    #[test]
    fn no_time_of_the_director_becomes_a_later_one() {
        assert_eq!(adjustment(-900_000, 400), -1);
        assert_eq!(adjustment(-2_010_000, 400), -3);
        assert_eq!(adjustment(-40_000, 400), 0, "equal, but for the way of the answers");
    }

    #[test]
    fn the_first_two_rounds_do_not_count() {
        let mut sync = ClockSync::default();
        sync.answer(0, 60_000_000, 1);
        sync.answer(0, 60_000_000, 2);
        for round in 0..8 {
            sync.answer(10_000_000 + round, 10_000_000 + round, 3 + round);
        }
        assert_eq!(sync.adjustment(), 9);
    }

    #[test]
    fn btime_must_be_a_number() {
        assert_eq!(parse_btime(b"btime 1795228000000000\n"), Some(1_795_228_000_000_000));
        assert_eq!(parse_btime(b"btime \n"), None);
        assert_eq!(parse_btime(b"btime 12x\n"), None);
        assert_eq!(parse_btime(b"btime 99999999999999999999\n"), None);
        assert_eq!(parse_btime(b"2000 OK\n"), None);
    }
}
