//! The servers: each with the HTTP of its own, at its own defaults, on two threads where it asks
//! how many.

mod async_std;
mod hyper;
mod may;
mod rotor;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::BoxError;

/// What is answered to most.
pub(crate) const FAST: &str = "not held up";

/// What is answered behind a handler that has blocked.
pub(crate) const SLOW: &str = "was held up";

/// Each request in so many blocks for so long.
const EACH: u64 = 100;
const TIME: Duration = Duration::from_millis(20);

/// The threads of those that run handlers on several.
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

/// Whether this request is one that blocks.
fn is_slow() -> bool {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    REQUESTS.fetch_add(1, Relaxed) % EACH == EACH - 1
}

/// What nobody has said of the handler.
fn block() {
    thread::sleep(TIME);
}

/// What a handler does that says nothing of it.
fn answer() -> &'static str {
    if !is_slow() {
        return FAST;
    }
    block();
    SLOW
}
