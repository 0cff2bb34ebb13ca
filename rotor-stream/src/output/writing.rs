//! Writing the output to a socket: bytes and blocks together, each file by itself.

use std::fs::File;
use std::io::{self, IoSlice};

use rotor_core::net::StreamSocket;
use rotor_core::{LogLimit, Time};

use super::{Output, Segment};
use crate::error::is_connection_lost;

/// Limits how often it is logged that a file cannot be sent: a failing disk fails every request.
static FILE_FAILURES: LogLimit = LogLimit::new();

/// The maximum number of slices for one `write_vectored`: the responses to 32 requests, each a head
/// and a block. They take 1 KiB of the stack. With so many slices, another system call costs little
/// compared with the writing.
pub(super) const SLICES_MAX: usize = 64;

impl Output {
    /// Writes once, as much as the socket takes and at most `most` bytes. Returns the number of
    /// bytes written.
    ///
    /// # Errors
    ///
    /// The socket's error; `WriteZero` if it takes nothing; `UnexpectedEof` if a file has become
    /// shorter. Unwritten bytes stay in the output.
    #[inline(always)]
    pub(crate) fn write_to<S: StreamSocket>(
        &mut self,
        socket: &mut S,
        most: usize,
    ) -> io::Result<usize> {
        if self.later.is_some() {
            return self.write_segments(socket, most);
        }
        let bytes = &self.bytes[..self.bytes.len().min(most)];
        let count = check_write_count(socket.write(bytes), bytes.len())?;
        self.bytes.consume(count);
        Ok(count)
    }

    /// Writes the output as the last bytes of this side, if it is contiguous and at most `most`
    /// bytes long; otherwise returns `None`.
    pub(crate) fn write_last_to<S: StreamSocket>(
        &mut self,
        socket: &mut S,
        most: usize,
    ) -> Option<io::Result<usize>> {
        let len = self.bytes.len();
        if self.later.is_some() || len == 0 || len > most {
            return None;
        }
        let written = check_write_count(socket.write_last(&self.bytes), len);
        self.bytes.consume(*written.as_ref().unwrap_or(&0));
        Some(written)
    }

    #[cold]
    fn write_segments<S: StreamSocket>(
        &mut self,
        socket: &mut S,
        most: usize,
    ) -> io::Result<usize> {
        let front = self.front_file().map(|(file, offset, left)| (file, offset, left.min(most)));
        let count = match front {
            Some((file, offset, left)) => match socket.send_file(file, offset, left) {
                // This must not be tried again: the peer was promised bytes that do not exist.
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "a file became shorter while it was sent",
                    ));
                }
                Ok(count) if count > left => return Err(write_overrun_error()),
                other => other?,
            },
            None => {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let (used, len) = self.collect_slices(&mut slices, most);
                check_write_count(socket.write_vectored(&slices[..used]), len)?
            }
        };
        self.consume(count);
        Ok(count)
    }

    /// Logs that writing has failed, if the cause is the file that was to be sent, and not the
    /// connection: the file has become shorter, or the disk cannot read it. The fault is at this
    /// end, and nobody else is told of it.
    #[cold]
    pub(crate) fn log_file_failure(&self, error: &io::Error, now: Time) {
        use io::ErrorKind::{InvalidData, Other, OutOfMemory, WriteZero};
        let Some((file, ..)) = self.front_file() else { return };
        // A lack of memory is the kernel's; the others are errors of wrapping sockets.
        let is_elsewhere = matches!(error.kind(), OutOfMemory | InvalidData | Other | WriteZero);
        if is_connection_lost(error) || is_elsewhere {
            return;
        }
        if let Some(others) = FILE_FAILURES.try_pass(now) {
            log::warn!(
                "a connection was reset because a file cannot be sent whole: {error}: {file:?} \
                 (before, {others} more could not)"
            );
        }
    }

    /// Returns the file that will be sent next, if a file is next.
    fn front_file(&self) -> Option<(&File, u64, usize)> {
        if !self.bytes.is_empty() {
            return None;
        }
        match self.later.as_ref()?.segments.front()? {
            Segment::File { file, offset, left } => Some((file, *offset, *left)),
            _ => None,
        }
    }

    /// Fills in the first bytes, up to the first file and at most `most` bytes. Returns the numbers
    /// of slices and of bytes.
    pub(super) fn collect_slices<'a>(
        &'a self,
        slices: &mut [IoSlice<'a>; SLICES_MAX],
        most: usize,
    ) -> (usize, usize) {
        let later = self.later.iter().flat_map(|later| &later.segments);
        let later = later.map_while(|segment| match segment {
            Segment::Bytes(bytes) => Some(&bytes[..]),
            Segment::Block(block) => Some(&block[..]),
            // A file is sent by a call of its own (sendfile(2)), which takes no slices.
            Segment::File { .. } => None,
        });
        let first = (!self.bytes.is_empty()).then_some(&self.bytes[..]);
        let (mut used, mut len) = (0, 0);
        for (slot, bytes) in slices.iter_mut().zip(first.into_iter().chain(later)) {
            if len == most {
                break;
            }
            let bytes = &bytes[..bytes.len().min(most - len)];
            *slot = IoSlice::new(bytes);
            used += 1;
            len += bytes.len();
        }
        (used, len)
    }
}

/// Checks that a write took at least 1 byte and no more than it was given.
#[inline]
pub(super) fn check_write_count(written: io::Result<usize>, given: usize) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::Error::new(
            io::ErrorKind::WriteZero,
            "a socket took no byte and did not say why",
        )),
        Ok(count) if count > given => Err(write_overrun_error()),
        other => other,
    }
}

fn write_overrun_error() -> io::Error {
    io::Error::other("a socket claims to have written more than it was given")
}
