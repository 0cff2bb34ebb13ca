//! `Loss`: why a connection was lost, for each of its requests.

use std::io;
use std::sync::Arc;

use rotor_stream::Fatal;

/// Why a connection was lost. Each of its requests gets a copy of the error.
pub(in crate::client) enum Loss {
    FlushTimeout,
    NoRoom,
    Write(Arc<io::Error>),
    Reset(Arc<io::Error>),
}

impl Loss {
    /// Returns the error for one of the requests.
    pub(super) fn to_fatal(&self) -> Fatal {
        match self {
            Loss::FlushTimeout => Fatal::FlushTimeout,
            Loss::NoRoom => Fatal::NoRoom,
            Loss::Write(error) => Fatal::Write(copy_error(error)),
            Loss::Reset(error) => Fatal::Reset(copy_error(error)),
        }
    }
}

impl From<Fatal> for Loss {
    fn from(error: Fatal) -> Loss {
        match error {
            Fatal::FlushTimeout => Loss::FlushTimeout,
            Fatal::NoRoom => Loss::NoRoom,
            Fatal::Write(error) => Loss::Write(error.into()),
            Fatal::Reset(error) => Loss::Reset(error.into()),
            // The others are not about connections that have been made.
            _ => Loss::Reset(Arc::new(io::ErrorKind::ConnectionAborted.into())),
        }
    }
}

/// Copies an error. One that has another error inside, such as one of TLS, is shared: an
/// `Arc<io::Error>` is inside the new one, which prints the same and has the same source.
fn copy_error(error: &Arc<io::Error>) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None if error.get_ref().is_none() => error.kind().into(),
        None => io::Error::new(error.kind(), error.clone()),
    }
}

#[cfg(test)]
mod tests {
    use rotor_core::with_causes;
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_copy_prints_the_same_and_keeps_kind_and_errno() {
        let inner = Fatal::Write(io::Error::other("the innermost"));
        for error in [
            Errno::TIMEDOUT.into(),
            io::ErrorKind::BrokenPipe.into(),
            io::Error::new(io::ErrorKind::InvalidData, inner),
        ] {
            let (kind, code) = (error.kind(), error.raw_os_error());
            let printed = with_causes(&error).to_string();
            let loss = Loss::from(Fatal::Reset(error));
            for _ in 0..2 {
                let Fatal::Reset(copy) = loss.to_fatal() else { panic!("it is a reset") };
                assert_eq!((copy.kind(), copy.raw_os_error()), (kind, code));
                assert_eq!(with_causes(&copy).to_string(), printed);
            }
        }
    }
}
