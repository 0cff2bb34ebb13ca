//! The Gregorian calendar: converts days since 1970 to dates and back.
//!
//! Years are counted from March. So the leap day is the last day of a year, and the lengths of the
//! months before it follow one pattern, in which five months have 153 days. Four hundred such
//! years, an era, always have the same number of days.

use std::time::{Duration, SystemTime};

/// Seconds in a day. Leap seconds are not counted, as usual for seconds since 1970.
pub(crate) const DAY_SECONDS: i64 = 86_400;

const ERA_YEARS: i64 = 400;
const ERA_DAYS: i64 = 146_097;

/// Days from the first of March of the year 0 to the first day of 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// A date in UTC. The fields may have any values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: i64,
    /// From 1.
    pub(crate) day: i64,
}

impl Date {
    /// Returns the date that is so many days after 1 January 1970.
    pub(crate) fn from_days(days: i64) -> Date {
        let days = days + DAYS_BEFORE_1970;
        let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
        // Each fourth year is a leap year, each hundredth is not, but each four hundredth is.
        let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (ERA_DAYS - 1);
        let year_of_era = (day_of_era - leap_days) / 365;
        let day_of_year = day_of_era - days_before_year(year_of_era);
        let month = (5 * day_of_year + 2) / 153;
        let is_next_year = month >= 10;
        Date {
            year: era * ERA_YEARS + year_of_era + i64::from(is_next_year),
            month: if is_next_year { month - 9 } else { month + 3 },
            day: day_of_year - days_before_month(month) + 1,
        }
    }

    /// Returns how many days after 1 January 1970 the date is; `None` if there is no such date.
    pub(crate) fn to_days(self) -> Option<i64> {
        let Date { year, month, day } = self;
        let is_in_range = (0..=9999).contains(&year) && (1..=12).contains(&month);
        if !is_in_range || !(1..=31).contains(&day) {
            return None;
        }
        // Counted from March, January and February are the last two months of the year before.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let (era, year_of_era) = (year.div_euclid(ERA_YEARS), year.rem_euclid(ERA_YEARS));
        let days = era * ERA_DAYS + days_before_year(year_of_era) + days_before_month(month) + day
            - 1
            - DAYS_BEFORE_1970;
        // A day that its month does not have converts to a day of another month.
        (Date::from_days(days) == self).then_some(days)
    }
}

/// Returns how many days of an era precede a year of it.
fn days_before_year(year: i64) -> i64 {
    365 * year + year / 4 - year / 100
}

/// Returns how many days of a year precede a month of it; both are counted from March.
fn days_before_month(month: i64) -> i64 {
    (153 * month + 2) / 5
}

/// Returns the whole seconds since 1970, rounded down.
pub(crate) fn unix_seconds(wall: SystemTime) -> i64 {
    let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match wall.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => seconds(since),
        Err(error) => {
            let before = error.duration();
            -seconds(before) - i64::from(before.subsec_nanos() > 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_down_before_1970_as_well() {
        let quarter = Duration::from_millis(250);
        let at = SystemTime::UNIX_EPOCH;
        assert_eq!([at, at + quarter, at + 4 * quarter].map(unix_seconds), [0, 0, 1]);
        assert_eq!(
            [at - quarter, at - 4 * quarter, at - 5 * quarter].map(unix_seconds),
            [-1, -1, -2]
        );
    }

    #[test]
    fn each_day_of_ten_thousand_years_agrees_with_another_calendar() {
        let mut other = time::Date::from_calendar_date(0, time::Month::January, 1).ok();
        let mut days = Date { year: 0, month: 1, day: 1 }.to_days().expect("there was one");
        while let Some(date) = other {
            let own = Date::from_days(days);
            let month = i64::from(u8::from(date.month()));
            assert_eq!((own.year, own.month), (i64::from(date.year()), month), "{date}");
            assert_eq!(own.day, i64::from(date.day()), "{date}");
            assert_eq!(own.to_days(), Some(days), "{date}");
            (days, other) = (days + 1, date.next_day());
        }
        assert_eq!(Date::from_days(days), Date { year: 10_000, month: 1, day: 1 });
        assert_eq!(Date::from_days(0), Date { year: 1970, month: 1, day: 1 });
    }

    #[test]
    fn an_invalid_date_has_no_day_number() {
        for (year, month, day) in [
            (1994, 2, 29),
            (1900, 2, 29),
            (2000, 2, 30),
            (1994, 4, 31),
            (1994, 1, 0),
            (1994, 1, 32),
            (1994, 0, 1),
            (1994, 13, 1),
            (-1, 1, 1),
            (10_000, 1, 1),
        ] {
            assert_eq!(Date { year, month, day }.to_days(), None, "{year} {month} {day}");
        }
    }
}
