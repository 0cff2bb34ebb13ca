//! Reading into a buffer: from a socket, any other reader, or a file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use rotor_core::net::{ReadBuf, StreamSocket, is_plain, read_spare};

use super::Buf;
use crate::buffer_pool::{BLOCK_BYTES, large_size, take_pooled_large, with_scratch};

/// The result of a read: how many bytes arrived, and for how many there was room. If fewer arrived,
/// the socket may be [empty](rotor_core::net::StreamSocket::short_read_drains).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Filled {
    /// How many bytes were appended; 0 at the end of the stream.
    pub count: usize,
    /// How many bytes there was room for.
    pub asked: usize,
}

impl Buf {
    /// Reads once, with room for at least `room` bytes (or one, if that is 0), and appends the
    /// bytes.
    ///
    /// A kernel socket reads into all the room there is, although bytes of other connections may be
    /// left in it: the kernel only writes the bytes that it reports. Any other reader could expose
    /// those bytes by claiming more than it wrote, so it gets zeroed memory, at most a block: a
    /// scratch block, from which the bytes are copied; or, if more than a block is requested, a
    /// block that is filled with zeros first, which costs less than copying all of it.
    ///
    /// # Errors
    ///
    /// The reader's error. Also an error if the reader claims to have read more bytes than there
    /// was room for.
    #[inline]
    pub fn read_from<R: Read + 'static>(
        &mut self,
        reader: &mut R,
        room: usize,
    ) -> io::Result<Filled> {
        // A read with no room returns 0, which would look like the end of the stream.
        let room = room.max(1);
        if is_plain::<R>() {
            self.read_direct(reader, room)
        } else if room <= BLOCK_BYTES {
            self.read_via_scratch(reader, room)
        } else {
            self.read_zeroed(reader)
        }
    }

    /// Reads once from a socket, like [`read_from`](Buf::read_from). If the socket cannot see the
    /// memory into which it reads ([`StreamSocket::read_unseen`]), no zeroing or copying is needed,
    /// and it may use all the room there is.
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
            // Nothing arrived, so the block is given back.
            self.clear();
        }
        result.map(|()| Filled { count, asked })
    }

    /// Reads once from a file, at most `count` bytes at `offset`, and appends them. Returns how
    /// many bytes were read; 0 at the end of the file and beyond it.
    ///
    /// Unlike [`room`](Buf::room), this does not fill the memory with zeros first: like a kernel
    /// socket, the file writes only the bytes that it reports.
    ///
    /// # Errors
    ///
    /// The system's error; nothing was appended.
    #[doc(alias = "pread")]
    pub fn read_file_at(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        if self.memory.len() - self.end < count {
            self.make_room(count);
        }
        let filled = self.read_into(&mut FileAt { file, offset }, self.end + count)?;
        Ok(filled.count)
    }

    pub(super) fn read_direct<R: Read + 'static>(
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

    /// Reads into a large block: a pooled one of the thread, or a new one, of which only the part
    /// that the socket did not fill is filled with zeros.
    #[cold]
    fn read_large<R: Read + 'static>(&mut self, reader: &mut R, room: usize) -> io::Result<Filled> {
        let size = large_size(room);
        if let Some(memory) = take_pooled_large(size) {
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

    /// Reads into a block, or the rest of one, after filling that with zeros.
    fn read_zeroed(&mut self, reader: &mut impl Read) -> io::Result<Filled> {
        if self.memory.len() - self.end < BLOCK_BYTES {
            self.make_room(BLOCK_BYTES);
        }
        let to = self.end + BLOCK_BYTES;
        self.memory[self.end..to].fill(0);
        self.read_into(reader, to)
    }

    /// Reads into the existing memory, up to the index `to`.
    #[inline(always)]
    fn read_into(&mut self, reader: &mut impl Read, to: usize) -> io::Result<Filled> {
        let room = &mut self.memory[self.end..to];
        let asked = room.len();
        match check_read_count(reader.read(room), asked) {
            Ok(count) if count > 0 => {
                self.end += count;
                Ok(Filled { count, asked })
            }
            other => {
                // Nothing arrived, so the block is given back.
                if self.is_empty() {
                    self.clear();
                }
                other.map(|count| Filled { count, asked })
            }
        }
    }

    fn read_via_scratch(&mut self, reader: &mut impl Read, room: usize) -> io::Result<Filled> {
        let asked = room.max(self.room_left()).min(BLOCK_BYTES);
        with_scratch(|scratch| {
            let read = check_read_count(reader.read(&mut scratch.memory()[..asked]), asked);
            if let Ok(count) = read {
                self.extend(&scratch.memory()[..count]);
            }
            scratch.clean(&read);
            read.map(|count| Filled { count, asked })
        })
    }

    /// Returns how many bytes may be appended without taking more memory than one block.
    fn room_left(&self) -> usize {
        if self.memory.is_empty() { BLOCK_BYTES } else { self.memory.len() - self.end }
    }
}

/// Checks that a reader does not claim more bytes than there was room for.
#[inline(always)]
fn check_read_count(read: io::Result<usize>, asked: usize) -> io::Result<usize> {
    match read {
        Ok(count) if count > asked => {
            Err(io::Error::other("a socket claims to have read more than it was asked for"))
        }
        other => other,
    }
}

/// A position in a file. It does not advance, because it is read once.
struct FileAt<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for FileAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, self.offset)
    }
}
