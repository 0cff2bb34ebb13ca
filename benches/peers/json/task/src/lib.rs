//! A service that sums the numbers of a JSON array and waits. This is the code that the servers
//! here share, so that each of them contains only its framework and its way.
//!
//! **The response to `POST /` with `[1,2,3]` is `{"sum":6}`, not earlier than the delay after the
//! body was summed.** If the body is not an array of whole numbers, it is 400. Address and
//! announcement are as in `contract`. Everything else is in the environment:
//!
//! | variable | default | |
//! |--|--|--|
//! | `WAY` | `async1` | which [`Way`] |
//! | `POOL` | 4 | threads of the pool, if there is one |
//! | `DELAY_MS` | 20 | the delay, for example of a database call |
#![forbid(unsafe_code)]

use std::env;
use std::io;
use std::thread;
use std::time::Duration;

/// The longest body that is read, in bytes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Where the work of a request is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All of it on a thread of the pool, which sleeps for the delay.
    Sync,
    /// The body is parsed in the handler; the delay is a timer.
    Async1,
    /// The body is parsed on a thread of the pool; the delay is a timer.
    Async2,
}

/// The settings in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub way: Way,
    /// The number of threads of the pool.
    pub pool: usize,
    pub delay: Duration,
}

impl Settings {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    ///
    /// A variable is invalid.
    pub fn from_environment() -> io::Result<Settings> {
        let way = match env::var("WAY").as_deref() {
            Err(_) | Ok("async1") => Way::Async1,
            Ok("async2") => Way::Async2,
            Ok("sync") => Way::Sync,
            Ok(other) => return Err(invalid(format!("WAY={other} is no way"))),
        };
        let pool = number("POOL", 4)?.max(1) as usize;
        Ok(Settings { way, pool, delay: Duration::from_millis(number("DELAY_MS", 20)?) })
    }

    /// Does the work of a request on a thread of the pool. Returns the sum, if the body is valid;
    /// in the synchronous way this includes the delay.
    pub fn on_pool(&self, body: &[u8]) -> Option<i64> {
        let sum = sum(body)?;
        if self.way == Way::Sync {
            thread::sleep(self.delay);
        }
        Some(sum)
    }
}

/// Returns the sum of an array of whole numbers.
pub fn sum(body: &[u8]) -> Option<i64> {
    let numbers: Vec<i64> = serde_json::from_slice(body).ok()?;
    numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number))
}

/// Returns the body of the response.
pub fn answer(sum: i64) -> String {
    format!(r#"{{"sum":{sum}}}"#)
}

fn number(variable: &str, default: u64) -> io::Result<u64> {
    let Ok(text) = env::var(variable) else { return Ok(default) };
    text.parse().map_err(|_| invalid(format!("{variable}={text} is not a number")))
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::{answer, sum};

    #[test]
    fn whole_numbers_are_summed_and_nothing_else_is() {
        assert_eq!(sum(b" [1, 2,-5]\n"), Some(-2));
        assert_eq!(sum(b"[]"), Some(0));
        assert_eq!(sum(b"[9223372036854775807,1]"), None);
        for wrong in ["", "[1", "[1.5]", "{}", "[\"1\"]", "[1] 2"] {
            assert_eq!(sum(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(answer(-2), r#"{"sum":-2}"#);
    }
}
