//! The servers: each with its own HTTP implementation and default settings, with two threads if the
//! number can be set.

mod async_std;
mod hyper;
mod may;
mod rotor;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::BoxError;

/// The response of most requests.
pub(crate) const FAST: &str = "not held up";

/// The response after a handler has blocked.
pub(crate) const SLOW: &str = "was held up";

/// One in this many requests blocks.
const EACH: u64 = 100;
const TIME: Duration = Duration::from_millis(20);

/// The number of threads of servers that run handlers on several.
const THREADS: usize = 2;

pub(crate) const WAYS: &[&str] = &[
    "rotor, as it is",
    "rotor, declared",
    "rotor, taken over",
    "tokio, as it is",
    "tokio, block_in_place",
    "may",
    "async-std",
];

pub(crate) fn serve(way: &str) -> Result<(), BoxError> {
    match way {
        "rotor, as it is" => rotor::serve(rotor::Way::AsItIs),
        "rotor, declared" => rotor::serve(rotor::Way::Declared),
        "rotor, taken over" => rotor::serve(rotor::Way::TakenOver),
        "tokio, as it is" => hyper::serve(false),
        "tokio, block_in_place" => hyper::serve(true),
        "may" => may::serve(),
        "async-std" => async_std::serve(),
        _ => Err("one of the names in the table".into()),
    }
}

/// Returns whether this request is one that blocks.
fn is_slow() -> bool {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    REQUESTS.fetch_add(1, Relaxed) % EACH == EACH - 1
}

/// Blocks, without any declaration.
fn block() {
    thread::sleep(TIME);
}

/// The work of a handler that declares nothing.
fn answer() -> &'static str {
    if !is_slow() {
        return FAST;
    }
    block();
    SLOW
}
