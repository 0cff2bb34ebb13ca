//! `RingUnavailable`: why there is no ring, and what can be done about it.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;

use rotor_core::with_causes;
use rustix::io::Errno;

/// The system provides no ring. Nothing was changed; a loop on mio does the same
/// ([`choose`](crate::choose())).
///
/// `Debug` shows the message with its causes, because `main` prints the error that it returns with
/// `Debug`.
#[doc(alias = "Refused")]
pub struct RingUnavailable {
    step: Step,
    error: io::Error,
    /// The value of `kernel.io_uring_disabled`.
    disabled: Option<u8>,
}

/// The step that the system has refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// io_uring_setup(2).
    Setup,
    /// Memory for the buffers.
    Memory,
    /// Registering the buffers.
    Buffers,
    /// io_uring_enter(2), with the first operation.
    Enter,
    /// The waker's descriptor.
    Waker,
    /// An operation that the kernel does not have, by its name.
    Operation(&'static str),
    /// A missing feature, by its name: without it completions might be lost, for example.
    Feature(&'static str),
}

impl RingUnavailable {
    pub(crate) fn at(step: Step) -> impl FnOnce(io::Error) -> RingUnavailable {
        move |error| RingUnavailable { step, error, disabled: read_disabled() }
    }

    /// Logs that the program runs without a ring, and why.
    pub(crate) fn warn(&self) {
        log::warn!("the loop runs on mio: {}", with_causes(self));
    }

    /// Returns what the administrator or the caller can do, as one sentence.
    fn advice(&self) -> &'static str {
        let errno = self.error.raw_os_error().map(Errno::from_raw_os_error);
        match (self.step, errno, self.disabled) {
            (_, Some(Errno::PERM), Some(2)) => {
                "the sysctl kernel.io_uring_disabled is 2: nobody may use it"
            }
            (_, Some(Errno::PERM), Some(1)) => {
                "the sysctl kernel.io_uring_disabled is 1: only kernel.io_uring_group may use it"
            }
            // A filter may forbid any of the three calls, and usually forbids all.
            (_, Some(Errno::PERM | Errno::ACCESS), _) => {
                "a seccomp filter forbids it (that of a container, for one)"
            }
            (_, Some(Errno::NOSYS), _) => {
                "the kernel was built without it, or a seccomp filter hides it"
            }
            (Step::Setup, Some(Errno::INVAL), _)
            | (Step::Operation(_) | Step::Feature(_), ..)
            | (Step::Buffers, Some(Errno::INVAL), _) => "Linux 6.1 or later is needed",
            // The queues count towards the user's locked memory, for all rings together; the
            // buffers do not.
            (Step::Setup | Step::Buffers, Some(Errno::NOMEM), _) => {
                "there is no memory to lock: raise RLIMIT_MEMLOCK, or make the queues smaller"
            }
            (_, Some(Errno::NOMEM), _) => "there is no memory: make its buffers fewer or smaller",
            (_, Some(Errno::MFILE | Errno::NFILE), _) => {
                "no descriptor is left: raise RLIMIT_NOFILE"
            }
            _ => "a loop on mio does the same",
        }
    }

    /// Returns the error of the system.
    pub fn error(&self) -> &io::Error {
        &self.error
    }
}

fn read_disabled() -> Option<u8> {
    fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok()?.trim().parse().ok()
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Setup => f.write_str("a ring"),
            Step::Memory => f.write_str("memory for its buffers"),
            Step::Buffers => f.write_str("a ring of buffers"),
            Step::Enter => f.write_str("a first call"),
            Step::Waker => f.write_str("a descriptor to be woken by"),
            Step::Operation(name) => write!(f, "the operation {name}"),
            Step::Feature(name) => write!(f, "the feature {name}"),
        }
    }
}

impl fmt::Display for RingUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "io_uring refused: {}: {}", self.step, self.advice())
    }
}

impl fmt::Debug for RingUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", with_causes(self))
    }
}

impl Error for RingUnavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

impl From<RingUnavailable> for io::Error {
    fn from(refused: RingUnavailable) -> io::Error {
        io::Error::new(refused.error.kind(), refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_names_its_cause_and_a_remedy() {
        let of =
            |step, errno: Errno, disabled| RingUnavailable { step, error: errno.into(), disabled };
        let cases = [
            (of(Step::Setup, Errno::PERM, Some(2)), "io_uring_disabled is 2"),
            (of(Step::Setup, Errno::PERM, Some(1)), "io_uring_group"),
            (of(Step::Setup, Errno::PERM, Some(0)), "seccomp"),
            (of(Step::Setup, Errno::PERM, None), "seccomp"),
            (of(Step::Setup, Errno::NOSYS, None), "built without it"),
            (of(Step::Setup, Errno::INVAL, None), "Linux 6.1"),
            (of(Step::Setup, Errno::NOMEM, None), "RLIMIT_MEMLOCK"),
            (of(Step::Setup, Errno::MFILE, None), "RLIMIT_NOFILE"),
            (of(Step::Memory, Errno::NOMEM, None), "make its buffers fewer"),
            (of(Step::Buffers, Errno::INVAL, None), "Linux 6.1"),
            (of(Step::Buffers, Errno::PERM, Some(0)), "seccomp"),
            (of(Step::Enter, Errno::PERM, Some(0)), "a first call: a seccomp filter"),
            (of(Step::Enter, Errno::NOSYS, Some(0)), "hides it"),
            (of(Step::Waker, Errno::MFILE, None), "RLIMIT_NOFILE"),
            (of(Step::Operation("ACCEPT"), Errno::OPNOTSUPP, None), "the operation ACCEPT"),
            (of(Step::Feature("NODROP"), Errno::OPNOTSUPP, None), "the feature NODROP"),
            (of(Step::Buffers, Errno::IO, None), "mio"),
        ];
        for (refused, text) in cases {
            let said = refused.to_string();
            assert!(said.starts_with("io_uring refused: ") && said.contains(text), "{said}");
            assert!(refused.source().is_some());
            assert_eq!(format!("{refused:?}"), with_causes(&refused).to_string());
            let kind = refused.error().kind();
            assert_eq!(io::Error::from(refused).kind(), kind);
        }
    }
}
