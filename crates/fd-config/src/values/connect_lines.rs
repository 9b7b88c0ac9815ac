//! `Connect` lines of a Schedule resource (reference 06 §12.2).

use core::time::Duration;

use crate::resources::ConnectRun;
use crate::syntax::document::Value;
use crate::syntax::error::SyntaxError;
use crate::syntax::reader::{Pass, Reader};
use crate::syntax::token::Token;
use crate::texts::{self, Text};
use crate::values::numbers;

/// What a word of a schedule means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    On,
    At,
    LastDay,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    /// A member of a set; only these can begin or end a range.
    Member(Set, u32),
}

/// The sets that words name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Month,
    WeekDay,
    WeekOfMonth,
}

impl Set {
    const fn size(self) -> u32 {
        match self {
            Self::Month => 12,
            Self::WeekDay => 7,
            Self::WeekOfMonth => 6,
        }
    }
}

const DAYS_OF_MONTH: u32 = 31;
const WEEKS_OF_YEAR: u32 = 54;
const HOURS: u32 = 24;

/// Full names, and how many letters the short ones have.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEK_DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const POSITIONS: [(&str, &str); 6] =
    [("1st", "first"), ("2nd", "second"), ("3rd", "third"), ("4th", "fourth"), ("5th", "fifth"), ("6th", "sixth")];
const SHORT_NAME: usize = 3;

impl Word {
    fn of(text: &[u8]) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let lower = core::str::from_utf8(&lower).ok()?;
        let simple = match lower {
            "on" => Some(Self::On),
            "at" => Some(Self::At),
            "lastday" => Some(Self::LastDay),
            "hourly" => Some(Self::Hourly),
            "daily" => Some(Self::Daily),
            "weekly" => Some(Self::Weekly),
            "monthly" => Some(Self::Monthly),
            _ => None,
        };
        let named = |names: &[&str]| {
            let is = |name: &&str| *name == lower || name.get(..SHORT_NAME) == Some(lower);
            (0_u32..).zip(names).find(|(_, name)| is(name)).map(|(index, _)| index)
        };
        simple
            .or_else(|| named(&MONTHS).map(|index| Self::Member(Set::Month, index)))
            .or_else(|| named(&WEEK_DAYS).map(|index| Self::Member(Set::WeekDay, index)))
            .or_else(|| {
                let found = (0_u32..).zip(&POSITIONS).find(|(_, (short, long))| *short == lower || *long == lower);
                found.map(|(index, _)| Self::Member(Set::WeekOfMonth, index))
            })
    }
}

/// The lowest `count` bits.
const fn all(count: u32) -> u64 {
    (1 << count) - 1
}

/// Bits `first` to `last`; backwards, the range wraps at `size`.
const fn range(first: u32, last: u32, size: u32) -> u64 {
    if first < last { all(last + 1) & !all(first) } else { (all(size) & !all(first)) | all(last + 1) }
}

/// The bits of a set; `None` until a word narrows it down from all.
type Bits = Option<u64>;

fn add_bits(set: &mut Bits, bits: u64) {
    *set.get_or_insert(0) |= bits;
}

/// A run while its line is read.
#[derive(Default)]
struct Builder {
    max_connect_time: Option<Duration>,
    at_seen: bool,
    minute: u8,
    last_day: bool,
    hours: Bits,
    days: Bits,
    months: Bits,
    week_days: Bits,
    weeks_of_month: Bits,
    weeks_of_year: Bits,
}

impl Builder {
    #[expect(clippy::cast_possible_truncation, reason = "the sets have no more bits than their fields")]
    fn build(self) -> ConnectRun {
        ConnectRun {
            max_connect_time: self.max_connect_time,
            hours: self.hours.unwrap_or(all(HOURS)) as u32,
            minute: self.minute,
            days: self.days.unwrap_or(all(DAYS_OF_MONTH)) as u32,
            last_day: self.last_day,
            months: self.months.unwrap_or(all(Set::Month.size())) as u16,
            week_days: self.week_days.unwrap_or(all(Set::WeekDay.size())) as u8,
            weeks_of_month: self.weeks_of_month.unwrap_or(all(Set::WeekOfMonth.size())) as u8,
            weeks_of_year: self.weeks_of_year.unwrap_or(all(WEEKS_OF_YEAR)),
        }
    }

    fn add_members(&mut self, set: Set, bits: u64) {
        let bits_of_set = match set {
            Set::Month => &mut self.months,
            Set::WeekDay => &mut self.week_days,
            Set::WeekOfMonth => &mut self.weeks_of_month,
        };
        add_bits(bits_of_set, bits);
    }

    /// What a word means. Sets that `hourly`, `weekly` or `monthly` open stay open; so do the days
    /// of the month after `daily`.
    fn add_word(&mut self, word: Word) {
        match word {
            Word::On => {}
            Word::At => self.at_seen = true,
            Word::LastDay => {
                self.days.get_or_insert(0);
                self.last_day = true;
            }
            Word::Hourly => self.hours = Some(all(HOURS)),
            Word::Daily => {
                self.days.get_or_insert(all(DAYS_OF_MONTH));
                if let Some(week_days) = &mut self.week_days {
                    *week_days = all(Set::WeekDay.size());
                }
            }
            Word::Weekly => {
                self.days = Some(all(DAYS_OF_MONTH));
                self.weeks_of_month = Some(all(Set::WeekOfMonth.size()));
                self.weeks_of_year = Some(all(WEEKS_OF_YEAR));
            }
            Word::Monthly => self.months = Some(all(Set::Month.size())),
            Word::Member(set, index) => self.add_members(set, 1 << index),
        }
    }

    /// One word that is not a plain number.
    fn add(&mut self, text: &[u8]) -> Result<(), (&'static Text, Option<Vec<u8>>)> {
        if let Some(dash) = text.iter().position(|byte| *byte == b'-') {
            let (first, second) = (text.get(..dash).unwrap_or_default(), text.get(dash + 1..).unwrap_or_default());
            return self.add_range(first, second).map_err(|failure| (failure, None));
        }
        if let Some(colon) = text.iter().position(|byte| *byte == b':') {
            let (hour, minute) = (text.get(..colon).unwrap_or_default(), text.get(colon + 1..).unwrap_or_default());
            return self.add_clock(hour, minute).map_err(|failure| (failure, None));
        }
        if let Some(week) = week_number(text) {
            if week >= WEEKS_OF_YEAR {
                return Err((&texts::BAD_WEEK, None));
            }
            add_bits(&mut self.weeks_of_year, 1 << week);
            return Ok(());
        }
        let word = Word::of(text).ok_or_else(|| (&texts::UNKNOWN_WORD, Some(text.to_vec())))?;
        self.add_word(word);
        Ok(())
    }

    fn add_range(&mut self, first: &[u8], second: &[u8]) -> Result<(), &'static Text> {
        if let (Some(first), Some(second)) = (plain_number(first), plain_number(second)) {
            let day = |number: u32| number.checked_sub(1).filter(|day| *day < DAYS_OF_MONTH);
            let (Some(first), Some(second)) = (day(first), day(second)) else {
                return Err(&texts::BAD_DAY_RANGE);
            };
            add_bits(&mut self.days, range(first, second, DAYS_OF_MONTH));
            return Ok(());
        }
        if let (Some(first), Some(second)) = (week_number(first), week_number(second)) {
            if first >= WEEKS_OF_YEAR || second >= WEEKS_OF_YEAR {
                return Err(&texts::BAD_WEEK_RANGE);
            }
            add_bits(&mut self.weeks_of_year, range(first, second, WEEKS_OF_YEAR));
            return Ok(());
        }
        let Some(Word::Member(set, first)) = Word::of(first) else {
            return Err(&texts::BAD_RANGE_START);
        };
        match Word::of(second) {
            Some(Word::Member(same, second)) if same == set && second != first => {
                self.add_members(set, range(first, second, set.size()));
                Ok(())
            }
            _ => Err(&texts::BAD_RANGE_END),
        }
    }

    /// `HH:MM`, `HH:MMam`, `HH:MMpm`; what is no digit counts as 0.
    fn add_clock(&mut self, hour: &[u8], minute: &[u8]) -> Result<(), &'static Text> {
        if !self.at_seen {
            return Err(&texts::AT_MISSING);
        }
        let Some((digits, half)) = minute.split_at_checked(2) else {
            return Err(&texts::BAD_MINUTE);
        };
        let hour = numbers::leading_number(hour);
        let hour = match half.to_ascii_lowercase().as_slice() {
            b"" => hour,
            b"am" => {
                if hour == 12 {
                    0
                } else {
                    hour
                }
            }
            b"pm" => {
                if hour == 12 {
                    12
                } else {
                    hour.saturating_add(12)
                }
            }
            _ => return Err(&texts::BAD_MINUTE),
        };
        let minute = u8::try_from(numbers::leading_number(digits)).ok().filter(|minute| *minute < 60);
        let hour = u32::try_from(hour).ok().filter(|hour| *hour < HOURS);
        let (Some(hour), Some(minute)) = (hour, minute) else {
            return Err(&texts::BAD_TIME);
        };
        add_bits(&mut self.hours, 1 << hour);
        self.minute = minute;
        Ok(())
    }
}

/// A number of digits only; too big ones stay too big.
fn plain_number(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    digits.then(|| u32::try_from(numbers::leading_number(text)).unwrap_or(u32::MAX))
}

/// `w` and two digits.
fn week_number(text: &[u8]) -> Option<u32> {
    match text {
        [b'w' | b'W', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
        }
        _ => None,
    }
}

impl Reader<'_> {
    /// Reads one line up to its end.
    pub(crate) fn connect(&mut self, runs: &mut Vec<ConnectRun>) -> Result<Option<Value>, SyntaxError> {
        self.lexer.no_identifiers = true;
        let run = self.connect_run();
        self.lexer.no_identifiers = false;
        let run = run?;
        if self.pass == Pass::Second {
            runs.push(run);
        }
        Ok(Some(Value::Elsewhere))
    }

    fn connect_run(&mut self) -> Result<ConnectRun, SyntaxError> {
        let mut builder = Builder::default();
        let mut token = self.lexer.name()?;
        while self.lexer.text().eq_ignore_ascii_case(b"MaxConnectTime") {
            if self.lexer.next()? != Token::Equals {
                return Err(self.lexer.fail_with_text(&texts::CONNECT_NO_EQUALS));
            }
            self.lexer.next()?;
            let seconds = numbers::duration(self.lexer.text())
                .map_err(|bad| self.lexer.fail(&texts::CONNECT_NOT_A_DURATION, [bad.0]))?;
            builder.max_connect_time = Some(Duration::from_secs(seconds));
            // The stock daemon converts the text in place and leaves it empty.
            self.lexer.clear_text();
            token = self.lexer.name()?;
        }
        loop {
            match token {
                Token::EndOfLine => return Ok(builder.build()),
                Token::Comma => {}
                Token::Number => match plain_number(self.lexer.text()) {
                    Some(day @ 1..=DAYS_OF_MONTH) => add_bits(&mut builder.days, 1 << (day - 1)),
                    _ => return Err(self.lexer.fail(&texts::BAD_DAY, [])),
                },
                Token::Identifier | Token::UnquotedString => {
                    builder.add(self.lexer.text()).map_err(|(failure, value)| match value {
                        Some(value) => self.lexer.fail(failure, [value]),
                        None => self.lexer.fail(failure, []),
                    })?;
                }
                _ => {
                    let number = token.number_and_name().0.to_string().into();
                    return Err(self.lexer.fail(&texts::UNEXPECTED_RUN_TOKEN, [number, self.lexer.text().to_vec()]));
                }
            }
            token = self.lexer.next()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(words: &[&str]) -> ConnectRun {
        let mut builder = Builder::default();
        for word in words {
            builder.add(word.as_bytes()).map_err(|(failure, _)| failure.template).unwrap();
        }
        builder.build()
    }

    #[test]
    fn hours_accumulate_and_the_last_minute_wins() {
        let run = built(&["at", "10:05", "at", "12:07pm", "1:30am"]);
        assert_eq!((run.hours, run.minute), (1 << 10 | 1 << 12 | 1 << 1, 30));
        assert_eq!(built(&["hourly", "at", "1:15"]).hours, 0xff_ffff);
        assert_eq!(built(&["at", "12:00am"]).hours, 1);
    }

    #[test]
    fn ranges_wrap_and_equal_days_mean_all() {
        assert_eq!(built(&["mon-fri"]).week_days, 0b011_1110);
        assert_eq!(built(&["fri-monday"]).week_days, 0b110_0011);
        assert_eq!(built(&["nov-feb"]).months, 0b1100_0000_0011);
        assert_eq!(built(&["2nd-fourth"]).weeks_of_month, 0b1110);
        assert_eq!(built(&["5-5"]).days, 0x7fff_ffff);
        assert_eq!(built(&["10-3"]).days, 0x7fff_fe07);
        assert_eq!(built(&["w05-W10"]).weeks_of_year, 0b111_1110_0000);
    }

    #[test]
    fn words_open_sets_again() {
        assert_eq!(built(&["mon", "daily"]).week_days, 0x7f);
        assert_eq!(built(&["daily", "mon"]).week_days, 0b10);
        assert_eq!(built(&["jan", "monthly"]).months, 0xfff);
        assert_eq!(built(&["monthly", "jan"]).months, 0xfff);
        assert_eq!(built(&["w05", "weekly"]).weeks_of_year, (1 << 54) - 1);
        assert_eq!(built(&["weekly", "w05"]).weeks_of_year, (1 << 54) - 1);
        assert_eq!(built(&["daily", "5-6"]).days, 0x7fff_ffff);
        assert_eq!(built(&["5-6", "daily"]).days, 0b11_0000);
        let run = built(&["lastday"]);
        assert_eq!((run.days, run.last_day), (0, true));
    }
}
