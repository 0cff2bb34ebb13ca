//! Reading into a buffer: from a socket, any other reader, or a file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use rotor_core::net::{ReadBuf, StreamSocket, is_plain, read_spare};

use super::Buf;
use crate::buffer_pool::{BLOCK_BYTES, large_size, pooled_large, with_scratch};

/// The result of a read: how many bytes came, and how many it asked for. If fewer came, the socket
/// may be [empty](rotor_core::net::StreamSocket::short_read_drains).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Filled {
    /// How many bytes were appended; 0 at the end of the stream.
    pub count: usize,
    /// How many bytes there was room for.
    pub asked: usize,
}

impl Buf {
    /// Reads once, with room for at least `room` bytes, or one if that is 0, and appends what came.
    ///
    /// A kernel socket reads into all the room that there is, although bytes of other connections
    /// may be left there: it only writes what it says that it has written. Any other reader could
    /// show those bytes by claiming more, so it is lent zeros, at most a block of them: a scratch
    /// block, from which what came is copied; or, if more than a block is expected, a block that is
    /// filled with zeros first, which costs less than copying all of it.
    ///
    /// # Errors
    ///
    /// The reader's error; also an error if the reader claims more bytes than it was lent room for.
    #[inline]
    pub fn read_from<R: Read + 'static>(
        &mut self,
        reader: &mut R,
        room: usize,
    ) -> io::Result<Filled> {
        // A read into no room gives 0, as the end of the stream does.
        let room = room.max(1);
        if is_plain::<R>() {
            self.read_here(reader, room)
        } else if room <= BLOCK_BYTES {
            self.read_by_scratch(reader, room)
        } else {
            self.read_filled(reader)
        }
    }

    /// Reads once from a socket as [`read_from`](Buf::read_from) does; without zeros and a second copy
    /// from one that does not see the memory it reads into
    /// ([`StreamSocket::read_unseen`]), and then into all the room that there is.
    ///
    /// # Errors
    ///
    /// As for [`read_from`](Buf::read_from).
    #[inline]
    pub fn read_from_socket<S: StreamSocket>(
        &mut self,
        socket: &mut S,
        room: usize,
    ) -> io::Result<Filled> {
        if S::READS_UNSEEN {
            self.read_in_place(socket, room.max(1))
        } else {
            self.read_from(socket, room)
        }
    }

    fn read_in_place(&mut self, socket: &mut impl StreamSocket, room: usize) -> io::Result<Filled> {
        if self.memory.len() - self.end < room {
            self.make_room(room);
        }
        let mut count = 0;
        let mut buf = ReadBuf::new(&mut self.memory[self.end..], &mut count);
        let asked = buf.remaining();
        let result = socket.read_unseen(&mut buf);
        self.end += count;
        if count == 0 && self.is_empty() {
            // Nothing came, so the block is not kept.
            self.clear();
        }
        result.map(|()| Filled { count, asked })
    }

    /// Reads once from a file, at `offset` and at most `count` bytes, and appends what came. Returns
    /// how many bytes came; 0 at the end of the file, and behind it.
    ///
    /// The room is not filled with zeros first, as that of [`room`](Buf::room) is: as with a kernel
    /// socket, only what has come is written.
    ///
    /// # Errors
    ///
    /// The system's; nothing was appended.
    #[doc(alias = "pread")]
    pub fn read_file_at(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        if self.memory.len() - self.end < count {
            self.make_room(count);
        }
        let filled = self.read_into(&mut FileAt { file, offset }, self.end + count)?;
        Ok(filled.count)
    }

    pub(super) fn read_here<R: Read + 'static>(
        &mut self,
        reader: &mut R,
        room: usize,
    ) -> io::Result<Filled> {
        if self.memory.len() - self.end < room {
            if self.memory.is_empty() && room > BLOCK_BYTES {
                return self.read_large(reader, room);
            }
            self.make_room(room);
        }
        self.read_into(reader, self.memory.len())
    }

    /// Reads into a large block: one of the thread's, or a new one, of which only the part that the
    /// socket leaves is filled with zeros.
    #[cold]
    fn read_large<R: Read + 'static>(&mut self, reader: &mut R, room: usize) -> io::Result<Filled> {
        let size = large_size(room);
        if let Some(memory) = pooled_large(size) {
            self.memory = memory;
            return self.read_into(reader, size);
        }
        let mut bytes = Vec::with_capacity(size);
        let asked = bytes.capacity();
        let Some(read) = read_spare(reader, &mut bytes) else {
            self.make_room(room);
            return self.read_into(reader, self.memory.len());
        };
        let count = read?;
        if count > 0 {
            bytes.resize(asked, 0);
            (self.memory, self.end) = (bytes.into_boxed_slice(), count);
        }
        Ok(Filled { count, asked })
    }

    /// Reads into a block, or the rest of one, that is filled with zeros first.
    fn read_filled(&mut self, reader: &mut impl Read) -> io::Result<Filled> {
        if self.memory.len() - self.end < BLOCK_BYTES {
            self.make_room(BLOCK_BYTES);
        }
        let to = self.end + BLOCK_BYTES;
        self.memory[self.end..to].fill(0);
        self.read_into(reader, to)
    }

    /// Reads into the existing memory, up to the place `to`.
    #[inline(always)]
    fn read_into(&mut self, reader: &mut impl Read, to: usize) -> io::Result<Filled> {
        let room = &mut self.memory[self.end..to];
        let asked = room.len();
        match checked(reader.read(room), asked) {
            Ok(count) if count > 0 => {
                self.end += count;
                Ok(Filled { count, asked })
            }
            other => {
                // Nothing came, so the block is not kept.
                if self.is_empty() {
                    self.clear();
                }
                other.map(|count| Filled { count, asked })
            }
        }
    }

    fn read_by_scratch(&mut self, reader: &mut impl Read, room: usize) -> io::Result<Filled> {
        let asked = room.max(self.room_left()).min(BLOCK_BYTES);
        with_scratch(|scratch| {
            let read = checked(reader.read(&mut scratch.lent()[..asked]), asked);
            if let Ok(count) = read {
                self.extend(&scratch.lent()[..count]);
            }
            scratch.clean(&read);
            read.map(|count| Filled { count, asked })
        })
    }

    /// Returns how much may be appended before more memory than one block is taken.
    fn room_left(&self) -> usize {
        if self.memory.is_empty() { BLOCK_BYTES } else { self.memory.len() - self.end }
    }
}

/// Checks that a reader does not claim more bytes than it was asked for.
#[inline(always)]
fn checked(read: io::Result<usize>, asked: usize) -> io::Result<usize> {
    match read {
        Ok(count) if count > asked => {
            Err(io::Error::other("a socket claims to have read more than it was asked for"))
        }
        other => other,
    }
}

/// A place in a file, which is not moved on: it is read once.
struct FileAt<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, self.offset)
    }
}
