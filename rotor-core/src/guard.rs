//! Containing panics: a panic in a handler becomes a value.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The error of a handler that panicked: a bug in the handler. It contains the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked(pub(crate) String);

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl Error for Panicked {}

impl Panicked {
    /// Returns the message of the panic, or an empty string if the panic had no text.
    pub fn message(&self) -> &str {
        &self.0
    }

    /// Takes the message from a panic's payload and drops the payload, whose drop may panic again.
    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> Panicked {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        // The drop may panic, and the drop of that panic's payload too. The second payload is
        // leaked, so that this ends.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(second);
        }
        Panicked(text.unwrap_or_default())
    }
}

/// Runs `f` and turns a panic into an error. The caller must know whether values that `f` was
/// changing are still usable.
pub(crate) fn guard<T>(f: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(f)).map_err(Panicked::from_payload)
}

/// Logs where a panic of the logger would not be caught: on the thread of a loop or of a pool,
/// which would end together with everything that runs on it. The message is then lost.
macro_rules! log_guarded {
    ($level:ident, $($message:tt)+) => {{
        let _lost = $crate::guard::guard(|| log::$level!($($message)+));
    }};
}
pub(crate) use log_guarded;

/// Drops a value of the user's type and logs a panic of that drop: two panics at once would abort
/// the process.
pub(crate) fn drop_guarded<T>(value: T, what: &str) {
    if let Err(panicked) = guard(|| drop(value)) {
        log_guarded!(error, "{what} {panicked}, while it was dropped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsOnDrop;

    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            panic!("second");
        }
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(guard(|| 1), Ok(1));
        assert_eq!(guard(|| panic!("one")), Err::<(), _>(Panicked("one".into())));
        assert_eq!(guard(|| panic!("two {}", 2)), Err::<(), _>(Panicked("two 2".into())));
        let payload = guard(|| std::panic::panic_any(PanicsOnDrop));
        assert_eq!(payload, Err::<(), _>(Panicked(String::new())));
        assert_eq!(Panicked("x".into()).to_string(), "panicked: x");
    }
}
