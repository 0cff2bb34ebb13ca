//! Containing panics: what unwinds out of a handler becomes a value.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A handler panicked, with this message. A bug in the handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked(pub(crate) String);

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl Error for Panicked {}

impl Panicked {
    /// What the panic said; empty when it said nothing that is text.
    pub fn message(&self) -> &str {
        &self.0
    }

    /// Reads the message off a panic's payload and gets rid of the payload, whose own drop may
    /// panic again.
    pub(crate) fn from_payload(payload: Box<dyn Any + Send>) -> Panicked {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_string());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        // Its drop may panic as well, and so may that one's: the second is leaked, so that there is
        // an end.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(second);
        }
        Panicked(text.unwrap_or_default())
    }
}

/// Runs `f` and turns a panic into an error. What `f` was changing when it panicked is the caller's
/// to judge.
pub(crate) fn guard<T>(f: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(f)).map_err(Panicked::from_payload)
}

/// Logs where nobody would catch a logger that panics: on the thread of a loop or of the pool,
/// which would end with everything on it. What the logger has to say is then lost.
macro_rules! log_guarded {
    ($level:ident, $($message:tt)+) => {{
        let _lost = $crate::guard::guard(|| log::$level!($($message)+));
    }};
}
pub(crate) use log_guarded;

/// Drops what is not ours, and only logs it if that panics: two panics at once would end the
/// process.
pub(crate) fn drop_guarded<T>(value: T, what: &str) {
    if let Err(panicked) = guard(|| drop(value)) {
        log_guarded!(error, "{what} {panicked}, while it was dropped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("second");
        }
    }

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(guard(|| 1), Ok(1));
        assert_eq!(guard(|| panic!("one")), Err::<(), _>(Panicked("one".into())));
        assert_eq!(guard(|| panic!("two {}", 2)), Err::<(), _>(Panicked("two 2".into())));
        let payload = guard(|| std::panic::panic_any(Bomb));
        assert_eq!(payload, Err::<(), _>(Panicked(String::new())));
        assert_eq!(Panicked("x".into()).to_string(), "panicked: x");
    }
}
