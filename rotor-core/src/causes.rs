//! `with_causes`: an error with its causes, on one line.

use std::error::Error;
use std::fmt;

/// Prints an error with its causes, from the outermost to the innermost: `cannot connect:
/// Connection refused`.
///
/// The `Display` of an error in this library contains only what that error adds; the cause is in
/// [`source`](Error::source). Use this function if the error is shown to a person, but not if it is
/// passed on.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::with_causes;
///
/// let error = std::io::Error::other("out of luck");
/// assert_eq!(with_causes(&error).to_string(), "out of luck");
/// ```
#[doc(alias = "error chain")]
#[doc(alias = "backtrace")]
pub fn with_causes<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    WithCauses(error)
}

struct WithCauses<'a>(&'a (dyn Error + 'static));

impl fmt::Display for WithCauses<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        std::iter::successors(self.0.source(), |&cause| cause.source())
            .try_for_each(|cause| write!(f, ": {cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn_error::{SpawnCause, SpawnError};

    #[test]
    fn causes_are_printed_in_order() {
        let inner = std::io::Error::new(std::io::ErrorKind::AddrInUse, "port in use");
        let error = SpawnError::<()> { cause: SpawnCause::Failed(inner.into()), seed: None };
        assert_eq!(with_causes(&error).to_string(), "the machine could not be made: port in use");
    }
}
