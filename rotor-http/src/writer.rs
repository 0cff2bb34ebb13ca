//! `Writer`: the output of a stream as the sink of the message writers, for servers and clients.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use rotor_stream::{Block, Output};

use crate::h1::sink::Sink;
use crate::semantics::error::MessageError;

/// The most bytes around a chunk: its length in hexadecimal digits and two line ends.
const CHUNK_FRAMING_MAX: u64 = 20;

/// The output of a stream as the writer's sink. It accepts everything: once the high-water mark is
/// passed, the connection refuses input instead.
pub(crate) struct Writer<'a>(pub(crate) &'a mut Output);

impl Writer<'_> {
    /// Checks that this many more bytes can wait in the output. Only files can be too long for
    /// that.
    ///
    /// # Errors
    ///
    /// `BodyTooLong`.
    pub(crate) fn check_room(&self, count: u64) -> Result<(), MessageError> {
        let left = (isize::MAX as u64).saturating_sub(self.0.len() as u64 + CHUNK_FRAMING_MAX);
        if count > left { Err(MessageError::BodyTooLong(left)) } else { Ok(()) }
    }

    pub(crate) fn push_block(&mut self, block: Block) {
        check_written(self.0.push_block(block));
    }

    pub(crate) fn push_file(&mut self, file: Arc<File>, offset: u64, count: usize) {
        check_written(self.0.push_file(file, offset, count));
    }

    /// Appends a body: its blocks are shared, a file is sent by the kernel.
    #[cfg(feature = "body")]
    pub(crate) fn push_body(&mut self, body: &rotor_body::Body) {
        if let rotor_body::Body::File(part) = body
            && let Some((file, offset)) = part.file()
        {
            // `check_room` has refused a file that is too long for an output.
            return self.push_file(file, offset, usize::try_from(part.len()).unwrap_or(usize::MAX));
        }
        body.blocks().for_each(|block| self.push_block(block.clone()));
        if !body.is_in_memory() {
            self.push_by_reading(body);
        }
    }

    /// Reads a spool's file that is in memory, which only tests have.
    #[cfg(feature = "body")]
    fn push_by_reading(&mut self, body: &rotor_body::Body) {
        let mut bytes = Vec::new();
        let read = std::io::Read::read_to_end(&mut body.reader(), &mut bytes);
        debug_assert!(read.is_ok(), "memory can be read");
        self.push_block(Block::from(bytes));
    }
}

impl Sink for Writer<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        check_written(self.0.write_all(bytes));
    }

    #[inline(always)]
    fn put_all(&mut self, pieces: &[&[u8]]) {
        check_written(self.0.write_pieces(pieces));
    }
}

/// Checks a write in debug builds. The output refuses bytes only after the connection has ended it,
/// and from then on no handler is called.
#[inline]
fn check_written(result: std::io::Result<()>) {
    debug_assert!(result.is_ok(), "a message was written after the end of the output");
}
