//! `RecordSink`: where records go that an engine makes.

use rotor_stream::Buf;

/// Where records are appended.
pub(crate) trait RecordSink {
    /// Has a record, or several, written into so much room; the answer says how many bytes it has
    /// become.
    ///
    /// # Errors
    ///
    /// What the writing says; then nothing was appended.
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
