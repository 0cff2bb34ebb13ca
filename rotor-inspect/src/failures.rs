//! `Failures`: the latest failures of machines.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rotor_core::MachineFailure;

/// How many failures are kept.
const FAILURES_MAX: usize = 100;

/// How many bytes of a failure's text are kept; an error may quote what a peer sent.
const TEXT_MAX: usize = 1_000;

/// The last 100 machines that ended with an error or a panic, on all loops that have this list's
/// [observer](rotor_core::Config::observer).
///
/// ```
/// # use rotor_core as rotor;
/// let failures = rotor_inspect::Failures::new();
/// let config = rotor::Config::new().observer(failures.observer());
/// ```
#[derive(Clone, Default)]
pub struct Failures {
    last: Arc<Mutex<VecDeque<Failure>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) at: SystemTime,
    pub(crate) machine: &'static str,
    pub(crate) text: String,
}

impl Failures {
    /// Makes an empty list.
    pub fn new() -> Failures {
        Failures::default()
    }

    /// Returns the function that records failures, for `Config::observer`.
    pub fn observer(&self) -> impl Fn(&MachineFailure<'_>) + Send + Sync + 'static {
        let last = self.last.clone();
        move |failure| {
            let mut text = failure.to_string();
            let end = (0..=TEXT_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or(0));
            #[expect(clippy::disallowed_methods, reason = "an observer has no scope")]
            let at = SystemTime::now();
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            last.truncate(FAILURES_MAX - 1);
            last.push_front(Failure { at, machine: failure.machine, text });
        }
    }

    /// Returns the failures, newest first.
    pub(crate) fn read(&self) -> Vec<Failure> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failures({})", self.read().len())
    }
}

#[cfg(test)]
mod tests {
    use rotor_core::{Config, Infallible, Loop, Machine, Response, Scope};

    use super::*;

    /// Fails with a long error text that starts with a number.
    struct Fails(usize);

    impl Machine for Fails {
        type Context = ();
        type Seed = Infallible;

        fn timeout(self, _: &mut Scope<'_, ()>) -> Response<Self> {
            Response::error(format!("{} {}", self.0, "\u{e4}".repeat(TEXT_MAX)))
        }
    }

    #[test]
    fn the_latest_failures_are_retained_with_truncated_texts() {
        let failures = Failures::new();
        let config = Config::new().observer(failures.observer());
        let mut creator = Loop::<Fails>::new(&config).expect("a descriptor is left");
        for number in 0..FAILURES_MAX + 50 {
            let made =
                creator.add_machine_with(|scope| Response::ok(Fails(number)).deadline(scope.now()));
            made.expect("there is room");
        }
        creator.instantiate(()).run().expect("it runs");
        let read = failures.read();
        assert_eq!(read.len(), FAILURES_MAX);
        let mut numbers = std::collections::BTreeSet::new();
        for failure in &read {
            assert!(failure.text.len() > TEXT_MAX - 4 && failure.text.len() <= TEXT_MAX);
            let number = failure.text.split(' ').find_map(|word| word.parse::<usize>().ok());
            numbers.insert(number.expect("its number"));
        }
        assert_eq!(numbers.len(), FAILURES_MAX, "each once");
    }
}
