//! What the formats share: the names of fields, and the conversion of times.

use crate::semantics::calendar::{DAY_SECONDS, Date};

/// The fields of a request that a log may show.
pub(super) const REFERER: &str = "Referer";
pub(super) const USER_AGENT: &str = "User-Agent";
pub(super) const TRACEPARENT: &str = "traceparent";

/// Returns the date, and hour, minute and second.
pub(super) fn date_and_time(unix_seconds: i64) -> (Date, [i64; 3]) {
    let second_of_day = unix_seconds.rem_euclid(DAY_SECONDS);
    let date = Date::from_days(unix_seconds.div_euclid(DAY_SECONDS));
    (date, [second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60])
}
