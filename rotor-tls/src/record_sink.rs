//! `RecordSink`: the destination of the records that an engine makes.

use rotor_stream::Buf;

/// A buffer to which records are appended.
pub(crate) trait RecordSink {
    /// Lets `write` write one or more records into `room` bytes; it returns how many bytes it has
    /// used.
    ///
    /// # Errors
    ///
    /// The error of `write`; then nothing was appended.
    fn append<E>(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E>;
}

impl RecordSink for Buf {
    fn append<E>(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut room = self.room(room);
        let count = write(&mut room)?;
        room.commit(count);
        Ok(())
    }
}
