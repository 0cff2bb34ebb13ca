//! `SpawnError`: why a machine was not made, with the seed if it was not used.

use std::error::Error;
use std::fmt;

use crate::causes::with_causes;
use crate::guard::Panicked;
use crate::response::BoxError;

/// The error of a machine that was not made: the cause, and the seed if it was not used.
///
/// `Debug` shows the message with its causes, because `main` prints the error that it returns with
/// `Debug`.
pub struct SpawnError<S> {
    /// Why the machine was not made.
    pub cause: SpawnCause,
    /// The seed, if it was not used, so that what it owns (such as an accepted socket) is not lost.
    pub seed: Option<S>,
}

/// The reason why a machine was not made.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnCause {
    /// Every slot is in use (`Config::machines_max`), or reserved for a machine that has waited for
    /// it. This is nobody's mistake: wait for a slot with `Scope::wake_on_free_slot`.
    #[doc(alias = "NoSlot")]
    SlabFull,
    /// `create` answered `done`: the machine ended at once.
    Ended,
    /// `create` answered with this error.
    Failed(BoxError),
    /// `create` panicked, with this message. A bug in the machine.
    Panicked(Panicked),
}

impl<S> SpawnError<S> {
    /// Converts the seed of the error. A wrapper passes the error to its inner machine in this way.
    pub fn map<S2>(self, seed: impl FnOnce(S) -> S2) -> SpawnError<S2> {
        SpawnError { cause: self.cause, seed: self.seed.map(seed) }
    }
}

impl<S> fmt::Debug for SpawnError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.source().map_or(Ok(()), |cause| write!(f, ": {}", with_causes(cause)))
    }
}

impl<S> fmt::Display for SpawnError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            SpawnCause::SlabFull => f.write_str("no slot is free (Config::machines_max)"),
            SpawnCause::Ended => f.write_str("the machine ended while it was made"),
            // The cause is not printed, because it is the `source`: a printed chain would contain
            // it twice.
            SpawnCause::Failed(_) => f.write_str("the machine could not be made"),
            SpawnCause::Panicked(panicked) => {
                write!(f, "making the machine panicked: {}", panicked.message())
            }
        }
    }
}

impl<S> Error for SpawnError<S> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            SpawnCause::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spawn_error_prints_its_reason_and_has_the_cause_as_source() {
        let error = |cause| SpawnError::<u8> { cause, seed: Some(1) };
        let cases = [
            (SpawnCause::SlabFull, "no slot is free (Config::machines_max)"),
            (SpawnCause::Ended, "the machine ended while it was made"),
            (SpawnCause::Failed("port in use".into()), "the machine could not be made"),
            (
                SpawnCause::Panicked(Panicked("index 7".into())),
                "making the machine panicked: index 7",
            ),
        ];
        for (cause, text) in cases {
            assert_eq!(error(cause).to_string(), text);
        }
        let source = error(SpawnCause::Failed("port in use".into()));
        assert_eq!(source.source().map(|cause| cause.to_string()).as_deref(), Some("port in use"));
        assert!(error(SpawnCause::Ended).source().is_none());
        assert_eq!(format!("{source:?}"), "the machine could not be made: port in use");
        let ended = error(SpawnCause::Ended);
        assert_eq!(format!("{ended:?}"), "the machine ended while it was made");
    }
}
