//! Dates: a written date is read back, and a date that was read is one of the three spellings of
//! the result.

use rotor_http::h1::{DateCache, format_date, parse_date};

use super::input::Input;

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// 1970-01-01 and 10000-01-01, in days since the year 0.
const EPOCH: i64 = 719_528;
const END: i64 = 3_652_425;

/// The current time, another time, then a text.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let now = choices.long() as i64;
    let second = choices.long() as i64;
    check_written(second, now);
    check_written(second.rem_euclid(END * 86_400), now);
    check_read(choices.rest(), now);
}

fn check_written(second: i64, now: i64) {
    let written = format_date(second);
    let fitting = second.clamp(0, (END - EPOCH) * 86_400 - 1);
    let date = Date::of(fitting);
    assert_eq!(written.as_slice(), date.fixdate().as_bytes());
    assert_eq!(parse_date(&written, now), Some(fitting));
    assert_eq!(parse_date(date.asctime().as_bytes(), now), Some(fitting));
    let with_leap_second = date.fixdate().replace(":59 ", ":60 ");
    assert_eq!(parse_date(with_leap_second.as_bytes(), now), Some(fitting));
    let mut cache = DateCache::new(now);
    cache.update(second);
    assert_eq!(cache.unix_seconds(), second);
    assert_eq!(cache.line(), format!("Date: {}\r\n", date.fixdate()).as_bytes());
    let year_now = Date::of(now.clamp(0, (END - EPOCH) * 86_400 - 1)).year;
    if date.year / 100 == year_now / 100 && date.year - year_now < 50 {
        assert_eq!(parse_date(date.rfc850().as_bytes(), now), Some(fitting));
    }
}

/// Formats each result again and compares it; the weekday and a leap second are not checked.
fn check_read(text: &[u8], now: i64) {
    let Some(second) = parse_date(text, now) else { return };
    let text = std::str::from_utf8(text).expect("a date is ASCII");
    let date = Date::of(second);
    let spelling = match text.find(',') {
        Some(3) => date.fixdate(),
        Some(_) => date.rfc850(),
        None => date.asctime(),
    };
    let (day, rest) = text.split_once([',', ' ']).expect("a weekday");
    let is_long = DAYS.contains(&day);
    assert!(is_long || DAYS.iter().any(|name| name[..3] == *day));
    let (_, spelled) = spelling.split_once([',', ' ']).expect("a weekday");
    let rest = rest.replace(":60 ", ":59 ");
    // asctime pads the day with a space; a zero is accepted, too.
    let is_padded_with_zero = !text.contains(',') && text.as_bytes()[8] == b'0';
    let rest = if is_padded_with_zero { rest.replacen(" 0", "  ", 1) } else { rest };
    assert_eq!(rest, spelled, "{text} is {second}");
    if text.contains(',') && is_long {
        // A current time that does not fit the format is clamped.
        let now = now.clamp(0, (END - EPOCH) * 86_400 - 1);
        assert!(second <= now + 51 * 366 * 86_400, "no more than fifty years ahead");
    }
    let fitting = second.clamp(0, (END - EPOCH) * 86_400 - 1);
    assert_eq!(parse_date(&format_date(second), now), Some(fitting));
}

/// A date computed by counting days.
struct Date {
    weekday: usize,
    year: i64,
    month: usize,
    day: i64,
    clock: String,
}

impl Date {
    fn of(second: i64) -> Date {
        let days = second.div_euclid(86_400) + EPOCH;
        let clock = second.rem_euclid(86_400);
        let clock = format!("{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60);
        // The year 0 began on a Saturday.
        let weekday = (days + 5).rem_euclid(7) as usize;
        let mut year = days.div_euclid(146_097) * 400;
        let mut rest = days.rem_euclid(146_097);
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        while rest >= 365 + i64::from(is_leap(year)) {
            rest -= 365 + i64::from(is_leap(year));
            year += 1;
        }
        let february = 28 + i64::from(is_leap(year));
        let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let mut month = 0;
        while rest >= months[month] {
            rest -= months[month];
            month += 1;
        }
        Date { weekday, year, month, day: rest + 1, clock }
    }

    fn fixdate(&self) -> String {
        let (day, month) = (&DAYS[self.weekday][..3], MONTHS[self.month]);
        format!("{day}, {:02} {month} {:04} {} GMT", self.day, self.year, self.clock)
    }

    fn rfc850(&self) -> String {
        let (day, month) = (DAYS[self.weekday], MONTHS[self.month]);
        format!("{day}, {:02}-{month}-{:02} {} GMT", self.day, self.year % 100, self.clock)
    }

    fn asctime(&self) -> String {
        let (day, month) = (&DAYS[self.weekday][..3], MONTHS[self.month]);
        format!("{day} {month} {:2} {} {:04}", self.day, self.clock, self.year)
    }
}
