//! `StreamSocket`: the trait of byte streams.

use std::any::{Any, TypeId};
use std::fs::File;
use std::io::ErrorKind::{
    ConnectionRefused, Interrupted, InvalidInput, NotConnected, Unsupported, WouldBlock,
};
#[cfg(doc)]
use std::io::ErrorKind::{ConnectionReset, UnexpectedEof};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use super::read_buf::ReadBuf;
use crate::backend::Source;
use crate::scope::Scope;

/// A byte stream that is connected, or connecting, and never blocks.
///
/// `read` and `write` return [`WouldBlock`] when there is nothing to do; after that the backend
/// reports the next change. A wrapper (TLS, compression) implements this trait around another
/// socket. Its `flush` may return `WouldBlock` while it holds output of its own. Its `read` returns
/// [`UnexpectedEof`] if the inner socket ends without the wrapper's own end. What it leaves to the
/// inner socket as it is, [`rotor_forward_socket!`](crate::rotor_forward_socket) writes.
#[doc(alias = "AsyncRead")]
#[doc(alias = "AsyncWrite")]
#[doc(alias = "transport")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream socket of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's; a wrapper implements \
            `StreamSocket` around one of them"
)]
pub trait StreamSocket: Read + Write + Source + Sized + 'static {
    /// The type of target that such a socket connects to: a socket address, a path.
    type Target;

    /// Whether it reads by [`read_unseen`](StreamSocket::read_unseen). Default: no.
    const READS_UNSEEN: bool = false;

    /// Begins to connect. Register the socket; after each event,
    /// [`has_connected`](StreamSocket::has_connected) reports the progress.
    ///
    /// # Errors
    ///
    /// The errors that the system reports at once: no descriptor left, no route, refused (by local
    /// sockets).
    fn connect<C>(target: &Self::Target, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Returns whether a connection to `target` offers this protocol in its handshake, so that both
    /// ends may agree on it ([`negotiated`](StreamSocket::negotiated)). Default: no.
    #[doc(alias = "ALPN")]
    fn may_agree_on(target: &Self::Target, protocol: &[u8]) -> bool {
        let _ = (target, protocol);
        false
    }

    /// Returns the same target without this protocol: connections to it offer only the others in
    /// their handshakes. It returns an equal target each time, so that connections can be shared.
    /// `None` if the protocol is not offered, or nothing else is. Default: `None`.
    fn without(target: Self::Target, protocol: &[u8]) -> Option<Self::Target> {
        let _ = (target, protocol);
        None
    }

    /// Reads as [`read`](Read::read) does, but without seeing the memory: what came is put into `buf`,
    /// or received into it by the system. A stream, whose memory other connections had before, asks for
    /// that where [`READS_UNSEEN`](StreamSocket::READS_UNSEEN) says so. `read` it lends zeros, and copies
    /// what came once more, unless it is a bare socket of the kernel's.
    ///
    /// It is called with room for a byte at least. What it puts into `buf` is what counts: `Ok` with
    /// nothing put there is the end of the stream. Whoever wraps a socket may have put something into it
    /// before.
    ///
    /// # Errors
    ///
    /// As for `read`, and nothing was put into `buf`. Default: `Unsupported`.
    #[doc(alias = "poll_read")]
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let _ = buf;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends one direction or both. [`Shutdown::Write`] tells the peer that no more will come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when a wrapper must write first: call again when the socket is writable.
    /// `NotConnected` when the peer has gone already.
    #[doc(alias = "half-close")]
    #[doc(alias = "FIN")]
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()>;

    /// Has the connection end by a reset, not in order: what the peer reads next, or behind what
    /// has come to it already, is [`ConnectionReset`] and not an end. So it does not take for
    /// complete what was cut off (RFC 9293 §3.10.5, ABORT).
    ///
    /// Drop the socket next: the reset is sent by then, or at the end of the turn where all else is
    /// sent then, too; and what is done with the socket before may fail. What was written and has not
    /// left yet is thrown away, by the system too, and the peer may lose what it has not read. It is
    /// not told why: a wrapper of TLS sends no alert for it.
    ///
    /// Default: no kind of socket can. A wrapper passes this on
    /// ([`rotor_forward_socket!`](crate::rotor_forward_socket) does).
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where there are no resets (Unix sockets), else the system's error. Then the
    /// socket is as it was: dropped, it ends in order.
    #[doc(alias = "SO_LINGER")]
    #[doc(alias = "RST")]
    #[doc(alias = "abort")]
    fn reset(&mut self) -> io::Result<()> {
        Err(Unsupported.into())
    }

    /// Writes the last bytes of this side. If all of them are taken, only
    /// [`shutdown`](StreamSocket::shutdown) follows, which is called whatever this has done. A
    /// wrapper that sends something at its end may send it along, if all bytes are taken. Default:
    /// the same as [`write`](Write::write).
    ///
    /// # Errors
    ///
    /// As for `write`.
    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    /// Returns the address of the peer; `None` if it has none (Unix sockets) or the socket is not
    /// connected.
    fn peer_address(&self) -> Option<SocketAddr>;

    /// Returns the address at this end; `None` if there is none.
    fn local_address(&self) -> Option<SocketAddr>;

    /// Takes the error that the system keeps for this socket, such as why connecting failed. Each
    /// error is returned once.
    ///
    /// # Errors
    ///
    /// The system's error, if asking fails.
    #[doc(alias = "SO_ERROR")]
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Returns whether the socket is connected; an event alone does not tell, since it may be
    /// spurious.
    ///
    /// Ask this only until the attempt to connect has ended: once both sides have ended a
    /// connection the answer is `false`, though bytes may still be left to read.
    fn is_connected(&self) -> bool {
        self.peer_address().is_some()
    }

    /// Checks an attempt to connect, and returns whether it has succeeded. Ask this after each
    /// event, until it returns `true` or an error. The event itself is no answer: it may be
    /// spurious, or be of another socket that the machine had before.
    ///
    /// [`take_error`](StreamSocket::take_error) tells of a refused attempt. If it has no error and
    /// the socket is not connected, a read of no bytes is tried: it tells what a wrapper does not
    /// pass on from its inner socket.
    ///
    /// # Errors
    ///
    /// Why the attempt has failed; the socket is useless then. [`ConnectionRefused`] also where the
    /// socket is connected to itself: nobody listens at a port of this computer which the system
    /// has just chosen as the socket's own (a simultaneous open, RFC 9293 §3.5).
    fn has_connected(&mut self) -> io::Result<bool> {
        // This comes first: only `SO_ERROR` says why a connection failed, and only once
        // (socket(7)).
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        if self.is_connected() {
            return if is_its_own_peer(self) { Err(nobody_listens(self)) } else { Ok(true) };
        }
        match read_nothing(self) {
            // Some systems return the last two errors where others return `WouldBlock`.
            Err(error) if !matches!(error.kind(), WouldBlock | NotConnected | InvalidInput) => {
                Err(error)
            }
            _ => Ok(false),
        }
    }

    /// Goes on with what must pass between the two ends before the first byte of the protocol; for
    /// a kernel socket that is nothing. It is called once the socket is connected, and then again
    /// after each event of the socket and each wake-up of the machine, until it returns `Ok`.
    /// Either may be spurious. [`handshake_has_drained`](StreamSocket::handshake_has_drained) tells
    /// which calls may be left out, and which must be repeated.
    ///
    /// The scope is the machine's. Its time is what certificates are checked against. A slow step
    /// may be [offloaded](Scope::offload): keep the future and return `WouldBlock`; the wake-up
    /// leads back to this call. What is drawn from [`secure_random`](Scope::secure_random) is the
    /// same in each run of a simulation.
    ///
    /// # Errors
    ///
    /// `WouldBlock` while it is under way; other errors end the connection. Then what the wrapper
    /// holds for the peer (an alert that says why) is flushed, `shutdown(Write)` is called, and
    /// what the peer still sends is read and thrown away for a while, because otherwise a reset
    /// might overtake the alert. So after such an error `read` must return what the inner socket
    /// returns, undecoded, and `shutdown` must add nothing. After an error that says that the
    /// connection is gone, or has ended ([`UnexpectedEof`]), the socket is dropped at once.
    #[doc(alias = "TLS")]
    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        let _ = scope;
        Ok(())
    }

    /// Returns whether nothing is left to be read for the handshake before the next event: its last
    /// call stopped after a short read that [drains](StreamSocket::short_read_drains) the inner
    /// socket, without asking for the `WouldBlock` behind it; or there was no call yet, it begins
    /// with what the peer says, and registering the socket will report that.
    ///
    /// Then no call is due until an event reports the socket readable. But an end, an error or an
    /// urgent byte that was reported along with those bytes was not read: after such an event, and
    /// wherever events are not looked at, call [`handshake`](StreamSocket::handshake) again until
    /// this returns `false`. After the handshake has ended it tells the same of the inner socket,
    /// and [`holds_input`](StreamSocket::holds_input) of what was read ahead.
    ///
    /// Default: no, which is right for a wrapper that itself reads until `WouldBlock`. One that
    /// passes `handshake` on passes this on, too.
    fn handshake_has_drained(&self) -> bool {
        false
    }

    /// Gives up a handshake that took too long. Returns whether the peer should be told: then what
    /// the wrapper holds for it (an alert) is sent, and the connection is closed in order, as after
    /// a failed handshake. Else it is dropped at once: by default, and if the peer has not shown
    /// yet what it speaks, so that it could not understand an alert.
    ///
    /// It is called at most once, while [`handshake`](StreamSocket::handshake) returns
    /// `WouldBlock`; after that `handshake` is not called any more.
    fn cancel_handshake(&mut self) -> bool {
        false
    }

    /// Returns the name of the protocol that the two ends agreed on in their handshake; `None` if
    /// nothing was negotiated.
    #[doc(alias = "ALPN")]
    fn negotiated(&self) -> Option<&[u8]> {
        None
    }

    /// Returns what a wrapper knows from its handshake, as a type of its own: the certificate of
    /// the peer, the version, the name that was asked for. `None` if there is nothing to tell:
    /// before the end of the handshake, and on the kernel's sockets.
    #[doc(alias = "SSL_SESSION")]
    #[doc(alias = "peer_certificates")]
    fn session(&self) -> Option<&dyn Any> {
        None
    }

    /// Returns what a wrapper knows from its handshake as the wanted type, be it its own or that of
    /// an inner socket. So with TLS around a socket that a balancer has described, both can be
    /// asked for.
    ///
    /// By default this only knows [`session`](StreamSocket::session). A wrapper whose own type is
    /// another one passes the question on.
    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        self.session().filter(|session| (**session).type_id() == wanted)
    }

    /// Returns whether nobody can read or change what is written on its way to the other end, so
    /// that HTTP on it is `https`. By default, and on the kernel's sockets, it is `false`. A
    /// wrapper that encrypts returns `true` once its handshake is done; one that does not forwards
    /// the question.
    #[doc(alias = "https")]
    fn is_secure(&self) -> bool {
        false
    }

    /// Sets whether small writes are sent at once (`true`) or gathered for a while. Kinds of socket
    /// that never gather ignore it.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "TCP_NODELAY")]
    #[doc(alias = "Nagle")]
    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        let _ = yes;
        Ok(())
    }

    /// Has the system probe a peer that has been silent for `idle`; `None` turns that off. Kinds of
    /// socket without this ignore it. The kernel's count whole seconds, from 1 to 32,767; what is
    /// less or more is the nearest of these.
    ///
    /// # Errors
    ///
    /// The system's error; the peer may then be probed at the system's own intervals.
    #[doc(alias = "SO_KEEPALIVE")]
    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        let _ = idle;
        Ok(())
    }

    /// Returns whether bytes may wait to be read that no event will report, since a wrapper took
    /// them from its inner socket during the handshake. This is asked once, after the handshake has
    /// ended.
    ///
    /// Default: yes, which is always right and costs a read of each new connection. The kernel's
    /// sockets, which read nothing ahead, return `false`.
    fn holds_input(&self) -> bool {
        true
    }

    /// Sets about how many bytes, at most, the system keeps that the peer has not acknowledged
    /// (`SO_SNDBUF`). Linux doubles the number, for its own bookkeeping, and lets the buffer grow
    /// by itself only if none is set. Kinds of socket without such a buffer ignore it.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "SO_SNDBUF")]
    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Sets about how many bytes, at most, the system keeps that came and were not read
    /// (`SO_RCVBUF`), as [`set_send_buffer`](StreamSocket::set_send_buffer) does for the other
    /// direction. The peer may have been promised more when it connected.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "SO_RCVBUF")]
    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Has the system accept no more output once it keeps this many bytes that it has not sent yet
    /// (`TCP_NOTSENT_LOWAT`), however much its send buffer might hold. Bytes on their way to the
    /// peer do not count, so this does not slow down a peer that reads. Kinds of socket other than
    /// TCP, and systems other than Linux, ignore it.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "TCP_NOTSENT_LOWAT")]
    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Returns whether a read that got fewer bytes than it asked for has emptied the socket, so
    /// that the `WouldBlock` after them need not be fetched: whatever comes next causes an event.
    /// This is asked only right after such a read, and not once an end, an error or an urgent byte
    /// was reported.
    ///
    /// Default: no, which is always right and costs a read for each event, for the kernel's sockets
    /// a system call. Of the kernel's sockets, those return `true` that are known to be plain TCP,
    /// on systems that report urgent bytes (Linux): what [`connect`](StreamSocket::connect) made,
    /// and what a [`TcpListener`](super::TcpListener) accepted. A Unix socket returns `false`: a
    /// read of it ends after bytes that a descriptor was sent with (`SCM_RIGHTS`; unix(7)), and
    /// nothing reports what follows. So do sockets from
    /// [`TcpStream::from_std`](super::TcpStream::from_std) and those that a listener of Multipath
    /// TCP accepted, whose reads may end anywhere: with the kernel's TLS they end at each record.
    ///
    /// A wrapper may return `true` only if it holds nothing to be read, decoded or not; if the read
    /// just made of it has itself read the inner socket; if that read was short; and if the inner
    /// socket returns `true`. If the read only handed out what the wrapper held, it must return
    /// `false`: more may have come since it read, and the event of that is over.
    fn short_read_drains(&self) -> bool {
        false
    }

    /// Returns of how many bytes of the inner socket a wrapper has made what the last read handed out,
    /// where those may be far more: of TLS, whose peer may send records of a byte, or of padding. A
    /// stream counts the larger number against its share of an event.
    ///
    /// Default: 0, so that what was handed out counts.
    fn read_cost(&self) -> usize {
        0
    }

    /// Returns whether a wrapper must wait for its inner socket to become readable before it can go
    /// on writing. It may read for that within a write, and hold what it gets beside: a stream reads
    /// after each write that it tries while this is so.
    fn wants_read(&self) -> bool {
        false
    }

    /// Returns whether a wrapper holds output that its inner socket has not taken yet, so that it
    /// must be flushed when the inner socket becomes writable. A wrapper that has to write before it
    /// can read says `WouldBlock` to a read meanwhile: a stream reads again when this is no longer
    /// so.
    fn wants_write(&self) -> bool {
        false
    }

    /// Returns whether a wrapper has got only part of something that becomes input when the rest
    /// has come, such as the beginning of a record: then a peer that seems silent is about to say
    /// something.
    fn awaits_rest(&self) -> bool {
        false
    }

    /// Returns how many bytes of its own a wrapper holds that its inner socket has not taken yet.
    /// By this a stream sees whether a slow peer takes anything at all.
    fn unsent_len(&self) -> usize {
        0
    }

    /// Returns how many bytes of memory a wrapper's input and output take while it waits: for a
    /// limit on what all connections hold together. What it always holds does not count.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Sends up to `count` bytes of a file from `offset` on, and returns how many were taken; 0
    /// means that the file ends before `offset`.
    ///
    /// By default they are read and written, at most 16 KiB at a time. The kernel's sockets let the
    /// kernel send them (`sendfile` on Linux), unless it cannot (a file of procfs, and of some file
    /// systems in user space) or the process does not ignore SIGPIPE, which would then end it when
    /// a peer hangs up. Rust's runtime ignores that signal before `main`; a program with another
    /// `main` that sends files should do so as well, before it sends the first one.
    ///
    /// # Errors
    ///
    /// As for `write`, and the error of reading the file.
    #[doc(alias = "sendfile")]
    #[doc(alias = "zero-copy")]
    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        read_and_write(self, file, offset, count)
    }
}

/// How many bytes of a file are copied at a time if the kernel cannot send it by itself.
const FILE_CHUNK: usize = 16 * 1024;

/// Returns whether both ends of a connection are this socket. Whoever connects again and again to a
/// port from which nobody answers gets such a connection in the end, and would keep whoever wants to
/// listen there from doing so.
fn is_its_own_peer(socket: &impl StreamSocket) -> bool {
    let peer = socket.peer_address();
    peer.is_some() && peer == socket.local_address()
}

/// Ends such a connection by a reset: one that ended in order would keep its port for a minute more.
#[cold]
fn nobody_listens(socket: &mut impl StreamSocket) -> io::Error {
    // Where there are no resets it ends as it can.
    let _ = socket.reset();
    io::Error::new(ConnectionRefused, "nobody listens there: the socket was connected to itself")
}

/// Reads no bytes, to find out whether a read would fail without taking anything.
fn read_nothing(socket: &mut impl Read) -> io::Result<usize> {
    loop {
        match socket.read(&mut []) {
            // A signal, which says nothing of the socket.
            Err(error) if error.kind() == Interrupted => {}
            other => return other,
        }
    }
}

/// Sends a piece of a file by reading and writing it.
pub(super) fn read_and_write(
    socket: &mut impl Write,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut chunk = [0; FILE_CHUNK];
    let wanted = count.min(FILE_CHUNK);
    // Not `read`: all who have the file open share its own offset.
    let read = file.read_at(&mut chunk[..wanted], offset)?;
    // At the end of the file nothing is written: a socket may refuse even that.
    if read == 0 { Ok(0) } else { socket.write(&chunk[..read]) }
}
