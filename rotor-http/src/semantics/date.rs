//! HTTP dates (RFC 9110 §5.6.7): writes one format, reads three, and caches the current date.

use std::ops::Range;

use super::calendar::{DAY_SECONDS, Date};

const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The last second of the year 9999, the last that fits the format.
const LAST_SECOND: i64 = 253_402_300_799;

/// Formats a time as `Sun, 06 Nov 1994 08:49:37 GMT`. The time is in seconds since 1970, UTC. A
/// time before 1970 or after the year 9999 is replaced by the nearest one that fits.
#[doc(alias = "IMF-fixdate")]
#[doc(alias = "HTTP-date")]
pub fn format_date(unix_seconds: i64) -> [u8; 29] {
    // A wrong clock must not make a response fail.
    let seconds = unix_seconds.clamp(0, LAST_SECOND);
    let (days, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let date = Date::from_days(days);
    let mut text = *b"ddd, 00 mmm 0000 00:00:00 GMT";
    // 1 January 1970 was a Thursday.
    let weekday = WEEKDAYS[((days + 3) % 7) as usize];
    text[..3].copy_from_slice(&weekday.as_bytes()[..3]);
    put_number(&mut text[5..7], date.day);
    text[8..11].copy_from_slice(MONTHS[date.month as usize - 1].as_bytes());
    put_number(&mut text[12..16], date.year);
    put_number(&mut text[17..19], second / 3_600);
    put_number(&mut text[20..22], second / 60 % 60);
    put_number(&mut text[23..25], second % 60);
    text
}

fn put_number(place: &mut [u8], mut number: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Parses a date in any of the three formats, and returns it in seconds since 1970.
///
/// The obsolete format of RFC 850 has years of two digits. `now`, also in seconds since 1970,
/// decides their century: a date that would be more than 50 years ahead is in the past. Returns
/// `None` if the text is malformed; a recipient ignores such a date.
#[doc(alias = "HTTP-date")]
#[doc(alias = "RFC 850")]
#[doc(alias = "asctime")]
pub fn parse_date(text: &[u8], now: i64) -> Option<i64> {
    let comma = text.iter().position(|&byte| byte == b',');
    match comma {
        Some(3) => parse_fixdate(text),
        Some(_) => parse_rfc850(text, comma?, now),
        None => parse_asctime(text),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn parse_fixdate(text: &[u8]) -> Option<i64> {
    let is_shaped = has_shape(text, b"___, __ ___ ____ ________ GMT");
    is_shaped.then_some(())?;
    check_weekday(&text[..3], 3)?;
    to_unix_seconds(
        parse_number(text, 12..16)?,
        parse_month(&text[8..11])?,
        parse_number(text, 5..7)?,
        &text[17..25],
    )
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &[u8], comma: usize, now: i64) -> Option<i64> {
    // The length of the weekday's name varies, so the shape is counted from the comma.
    check_weekday(&text[..comma], usize::MAX)?;
    let rest = &text[comma..];
    has_shape(rest, b", __-___-__ ________ GMT").then_some(())?;
    // Outside these bounds there is no year from which to take the century.
    let now = now.clamp(0, LAST_SECOND);
    let this_year = Date::from_days(now / DAY_SECONDS).year;
    let in_century = |century: i64| {
        let year = century + parse_number(rest, 9..11)?;
        to_unix_seconds(year, parse_month(&rest[5..8])?, parse_number(rest, 2..4)?, &rest[12..20])
    };
    let century = this_year / 100 * 100;
    let date = in_century(century)?;
    // RFC 9110 §5.6.7. Fifty years have 12 leap days, or 13.
    let fifty_years_ahead = now + 50 * 365 * 86_400 + 12 * 86_400;
    if date > fifty_years_ahead { in_century(century - 100) } else { Some(date) }
}

/// `Sun Nov  6 08:49:37 1994`
fn parse_asctime(text: &[u8]) -> Option<i64> {
    has_shape(text, b"___ ___ __ ________ ____").then_some(())?;
    check_weekday(&text[..3], 3)?;
    // asctime pads a day of one digit with a space.
    let day = if text[8] == b' ' { parse_number(text, 9..10)? } else { parse_number(text, 8..10)? };
    to_unix_seconds(parse_number(text, 20..24)?, parse_month(&text[4..7])?, day, &text[11..19])
}

/// Returns whether the text has the length of the shape, and its characters wherever the shape is
/// not `_`.
fn has_shape(text: &[u8], shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.iter().zip(shape).all(|(byte, shape)| *shape == b'_' || byte == shape)
}

fn parse_number(text: &[u8], range: Range<usize>) -> Option<i64> {
    super::grammar::parse_decimal(&text[range]).and_then(|number| i64::try_from(number).ok())
}

/// Checks the name of a weekday, of which the first `len` letters are used. Whether it is the right
/// weekday for the date is not checked.
fn check_weekday(text: &[u8], len: usize) -> Option<()> {
    WEEKDAYS.iter().any(|name| &name.as_bytes()[..len.min(name.len())] == text).then_some(())
}

/// Returns the number of a month, starting with 1.
fn parse_month(text: &[u8]) -> Option<i64> {
    let index = MONTHS.iter().position(|name| name.as_bytes() == text)?;
    Some(index as i64 + 1)
}

/// Returns a date with a clock time `hh:mm:ss` in seconds since 1970. A leap second counts as the
/// second before it.
fn to_unix_seconds(year: i64, month: i64, day: i64, clock: &[u8]) -> Option<i64> {
    has_shape(clock, b"__:__:__").then_some(())?;
    let days = Date { year, month, day }.to_days()?;
    let (hour, minute) = (parse_number(clock, 0..2)?, parse_number(clock, 3..5)?);
    let second = match parse_number(clock, 6..8)? {
        // RFC 9110 §5.6.7 allows 60 for a leap second, which does not exist in seconds since 1970.
        60 => 59,
        second => second,
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then_some(days * DAY_SECONDS + hour * 3_600 + minute * 60 + second)
}

/// The `Date` field line of the current second. It is formatted only when the second changes.
#[derive(Debug, Clone)]
pub struct DateCache {
    second: i64,
    /// The line, with the end of the line before it and the empty line after it, so that it can be
    /// written in one piece if it is the last field.
    text: [u8; 41],
}

/// Where the field line is in the text of a [`DateCache`], and where its value is.
const LINE: Range<usize> = 2..39;
const VALUE: Range<usize> = 8..37;

impl DateCache {
    /// Makes a cache for this second, counted since 1970.
    pub fn new(unix_seconds: i64) -> DateCache {
        let mut cache = DateCache {
            second: unix_seconds,
            text: *b"\r\nDate: ddd, 00 mmm 0000 00:00:00 GMT\r\n\r\n",
        };
        cache.format();
        cache
    }

    /// Moves to this second. If it is the same, this costs one comparison.
    #[inline]
    pub fn update(&mut self, unix_seconds: i64) {
        if self.second != unix_seconds {
            self.second = unix_seconds;
            self.format();
        }
    }

    #[cold]
    fn format(&mut self) {
        self.text[VALUE].copy_from_slice(&format_date(self.second));
    }

    /// Returns the second that the cache holds.
    pub fn unix_seconds(&self) -> i64 {
        self.second
    }

    /// The number of words that hold the whole value, for sharing it between threads.
    pub(crate) const WORDS: usize = 7;

    #[inline]
    pub(crate) fn to_words(&self) -> [u64; DateCache::WORDS] {
        let mut words = [self.second.cast_unsigned(); DateCache::WORDS];
        for (word, bytes) in words[1..].iter_mut().zip(self.text.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
        words
    }

    /// Makes a cache from the words that [`to_words`](DateCache::to_words) returned.
    #[inline]
    pub(crate) fn from_words(words: &[u64; DateCache::WORDS]) -> DateCache {
        let mut cache = DateCache { second: words[0].cast_signed(), text: [0; 41] };
        for (word, bytes) in words[1..].iter().zip(cache.text.chunks_mut(8)) {
            bytes.copy_from_slice(&word.to_ne_bytes()[..bytes.len()]);
        }
        cache
    }

    /// Returns the field line with its line end.
    #[inline]
    pub fn line(&self) -> &[u8] {
        &self.text[LINE]
    }

    /// Returns the end of the line before, the field line, and the empty line that ends the fields.
    #[inline]
    pub(crate) fn end_of_fields(&self) -> &[u8; 41] {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: i64 = 784_111_777;
    const NOW: i64 = 1_790_000_000;

    #[test]
    fn all_three_formats_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse_date(text.as_bytes(), NOW), Some(EXAMPLE), "{text}");
        }
        assert_eq!(parse_date(b"Sun Nov 16 08:49:37 1994", NOW), Some(EXAMPLE + 10 * 86_400));
    }

    #[test]
    fn a_formatted_date_is_parsed_back() {
        for second in [0, 1, 951_782_400, EXAMPLE, NOW, 4_102_444_800, LAST_SECOND] {
            assert_eq!(parse_date(&format_date(second), NOW), Some(second));
        }
        assert_eq!(&format_date(EXAMPLE), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&format_date(951_782_400), b"Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(format_date(i64::MIN), format_date(0));
        assert_eq!(&format_date(i64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn two_digit_years_lie_at_most_fifty_years_ahead() {
        let year =
            |text: &[u8]| parse_date(text, NOW).map(|second| format_date(second)[12..16].to_vec());
        assert_eq!(year(b"Friday, 01-Jan-70 00:00:00 GMT").as_deref(), Some(&b"2070"[..]));
        assert_eq!(year(b"Friday, 01-Jan-77 00:00:00 GMT").as_deref(), Some(&b"1977"[..]));
        assert_eq!(year(b"Friday, 01-Jan-99 00:00:00 GMT").as_deref(), Some(&b"1999"[..]));
        for now in [i64::MIN, -1, 0] {
            assert_eq!(
                parse_date(b"Thursday, 01-Jan-70 00:00:01 GMT", now),
                Some(1),
                "a clock that is not set"
            );
        }
    }

    #[test]
    fn malformed_dates_are_none() {
        for text in [
            "",
            ",",
            "Sun",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08-49-37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sund, 06-Nov-94 08:49:37 GMT",
            "0",
            "-1",
            "Sun Nov  6 08:49:37 94",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "\u{661}, ",
        ] {
            assert_eq!(parse_date(text.as_bytes(), NOW), None, "{text:?}");
        }
        assert_eq!(parse_date(b"Sun, 06 Nov 1994 08:49:60 GMT", NOW), Some(EXAMPLE + 22));
    }

    #[test]
    fn the_cache_follows_the_second() {
        let mut cache = DateCache::new(EXAMPLE);
        assert_eq!(cache.line(), b"Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
        cache.update(EXAMPLE + 1);
        assert_eq!(cache.line(), b"Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
        assert_eq!(cache.unix_seconds(), EXAMPLE + 1);
    }
}
