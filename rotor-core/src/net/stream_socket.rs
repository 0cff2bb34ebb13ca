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
/// `read` and `write` return [`WouldBlock`] if they can do nothing now; after that the backend
/// reports the next change. A wrapper (TLS, compression) implements this trait around another
/// socket. Its `flush` may return `WouldBlock` while it holds output of its own. Its `read` returns
/// [`UnexpectedEof`] if the inner socket ends without the wrapper's own end mark.
/// [`rotor_forward_socket!`](crate::rotor_forward_socket) defines the methods that a wrapper
/// forwards to the inner socket unchanged.
#[doc(alias = "AsyncRead")]
#[doc(alias = "AsyncWrite")]
#[doc(alias = "transport")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream socket of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's; a wrapper implements \
            `StreamSocket` around one of them"
)]
pub trait StreamSocket: Read + Write + Source + Sized + 'static {
    /// The type of target to which such a socket connects: a socket address, a path.
    type Target;

    /// Whether streams should read by [`read_unseen`](StreamSocket::read_unseen). Default: no.
    const READS_UNSEEN: bool = false;

    /// Begins to connect. Register the socket, and call
    /// [`has_connected`](StreamSocket::has_connected) after each event.
    ///
    /// # Errors
    ///
    /// Errors that the system reports at once: no descriptor left, no route, connection refused (by
    /// local sockets), and `WouldBlock` if the queue of a Unix listener is full: no event follows.
    fn connect<C>(target: &Self::Target, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Returns whether a connection to `target` offers this protocol in its handshake, so that both
    /// ends may agree on it ([`negotiated`](StreamSocket::negotiated)). Default: no.
    #[doc(alias = "ALPN")]
    fn may_agree_on(target: &Self::Target, protocol: &[u8]) -> bool {
        let _ = (target, protocol);
        false
    }

    /// Returns the same target without this protocol: connections to it offer only the others in
    /// their handshakes. The result is an equal target each time, so that connections can be
    /// shared. `None` if the protocol is not offered, or is the only one. Default: `None`.
    fn without(target: Self::Target, protocol: &[u8]) -> Option<Self::Target> {
        let _ = (target, protocol);
        None
    }

    /// Reads like [`read`](Read::read), but without access to the old content of the memory:
    /// received bytes are put into `buf`, or the system receives into it. If
    /// [`READS_UNSEEN`](StreamSocket::READS_UNSEEN) is set, a stream calls this method, because its
    /// memory may have been used by other connections before. If not, the stream passes zeroed
    /// memory to `read` and copies the received bytes once more, unless the socket is one of the
    /// kernel's sockets without a wrapper.
    ///
    /// This is called with room for at least one byte. The result is what was put into `buf`: if
    /// `Ok` is returned and nothing was put there, the stream has ended. If the caller is itself a
    /// wrapper, `buf` may already contain bytes.
    ///
    /// # Errors
    ///
    /// As for `read`; nothing was put into `buf`. The default returns `Unsupported`.
    #[doc(alias = "poll_read")]
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let _ = buf;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Shuts down one direction or both. [`Shutdown::Write`] tells the peer that no more bytes
    /// follow.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if a wrapper must write first: call again when the socket is writable.
    /// `NotConnected` if the peer is gone already.
    #[doc(alias = "half-close")]
    #[doc(alias = "FIN")]
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()>;

    /// Sets that the connection ends with a reset instead of an orderly end: after the bytes that
    /// have arrived, or instead of them, the peer's read returns [`ConnectionReset`] and not the
    /// end of the stream. So the peer does not take a message that was cut off for a complete one
    /// (RFC 9293 §3.10.5, ABORT).
    ///
    /// Drop the socket next. The reset is sent then at the latest; if the backend sends all output
    /// at the end of the turn, at that time. Operations on the socket before that may fail. Output
    /// that has not been sent yet is discarded, by the system too, and the peer may lose what it
    /// has not read. The peer does not learn why: a TLS wrapper sends no alert.
    ///
    /// By default this is not supported. A wrapper forwards it
    /// ([`rotor_forward_socket!`](crate::rotor_forward_socket) does).
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if there are no resets (Unix sockets), otherwise the system's error. The
    /// socket is unchanged: if it is dropped, it ends in an orderly way.
    #[doc(alias = "SO_LINGER")]
    #[doc(alias = "RST")]
    #[doc(alias = "abort")]
    fn reset(&mut self) -> io::Result<()> {
        Err(Unsupported.into())
    }

    /// Writes the last bytes of this side. If all of them are taken, only
    /// [`shutdown`](StreamSocket::shutdown) follows, which must always be called. A wrapper that
    /// sends something at its end may send it along, if all bytes are taken. The default calls
    /// [`write`](Write::write).
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

    /// Returns the local address; `None` if there is none.
    fn local_address(&self) -> Option<SocketAddr>;

    /// Takes the error that the system keeps for this socket, for example why connecting failed.
    /// Each error is returned once.
    ///
    /// # Errors
    ///
    /// The system's error if this query fails.
    #[doc(alias = "SO_ERROR")]
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Returns whether the socket is connected. An event alone does not prove that, since it may be
    /// spurious.
    ///
    /// Call this only until the attempt to connect has ended: after both sides have ended a
    /// connection, this returns `false`, although there may still be bytes to read.
    fn is_connected(&self) -> bool {
        self.peer_address().is_some()
    }

    /// Checks an attempt to connect, and returns whether it has succeeded. Call this after each
    /// event until it returns `true` or an error. The event itself proves nothing: it may be
    /// spurious, or belong to another socket that the machine had before.
    ///
    /// A refused attempt is reported by [`take_error`](StreamSocket::take_error). If there is no
    /// such error and the socket is not connected, this tries a read of no bytes, which returns
    /// errors that a wrapper does not forward from its inner socket otherwise.
    ///
    /// # Errors
    ///
    /// The reason why the attempt has failed; the socket cannot be used any more.
    /// [`ConnectionRefused`] also if the socket is connected to itself: nothing listens at a port
    /// of this computer, and the system has just chosen that port as the socket's own (a
    /// simultaneous open, RFC 9293 §3.5).
    fn has_connected(&mut self) -> io::Result<bool> {
        // Checked first: only `SO_ERROR` says why a connection failed, and only once (socket(7)).
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        if self.is_connected() {
            return if is_connected_to_itself(self) {
                Err(refuse_self_connection(self))
            } else {
                Ok(true)
            };
        }
        match probe_read(self) {
            // Some systems return the last two errors instead of `WouldBlock`.
            Err(error) if !matches!(error.kind(), WouldBlock | NotConnected | InvalidInput) => {
                Err(error)
            }
            _ => Ok(false),
        }
    }

    /// Continues the handshake, which comes before the first byte of the protocol. Kernel sockets
    /// have none. This is called once the socket is connected, and then again after each event of
    /// the socket and each wake-up of the machine, until it returns `Ok`. Events and wake-ups may
    /// be spurious. [`handshake_has_drained`](StreamSocket::handshake_has_drained) tells which
    /// calls may be left out, and which must be repeated.
    ///
    /// The scope is the machine's. Certificates are checked against its time. A slow step may be
    /// [offloaded](Scope::offload): keep the future and return `WouldBlock`; its wake-up leads to
    /// another call of this method. Numbers from [`secure_random`](Scope::secure_random) are the
    /// same in each run of a simulation.
    ///
    /// # Errors
    ///
    /// `WouldBlock` while the handshake is in progress; other errors end the connection. After such
    /// an error, output that the wrapper holds for the peer (an alert that says why) is flushed,
    /// `shutdown(Write)` is called, and what the peer still sends is read and discarded for a
    /// while, because otherwise a reset might overtake the alert. Therefore `read` must then return
    /// what the inner socket returns, undecoded, and `shutdown` must add nothing. After an error
    /// that says that the connection is gone, or has ended ([`UnexpectedEof`]), the socket is
    /// dropped at once.
    #[doc(alias = "TLS")]
    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        let _ = scope;
        Ok(())
    }

    /// Returns whether the handshake has nothing left to read before the next event. This is so in
    /// two cases. The last call stopped after a short read that
    /// [drains](StreamSocket::short_read_drains) the inner socket, and did not read on until
    /// `WouldBlock`. Or there was no call yet, the handshake begins with a message of the peer, and
    /// registering the socket will report that message.
    ///
    /// Then no call is needed until an event reports that the socket is readable. But an end, an
    /// error or an urgent byte that was reported along with those bytes was not read. So after such
    /// an event, or if events are not examined, call [`handshake`](StreamSocket::handshake) again
    /// until this returns `false`. After the end of the handshake, this says the same about the
    /// inner socket, and [`holds_input`](StreamSocket::holds_input) about bytes that were read
    /// ahead.
    ///
    /// Default: no, which is right for a wrapper that itself reads until `WouldBlock`. A wrapper
    /// that forwards `handshake` forwards this, too.
    fn handshake_has_drained(&self) -> bool {
        false
    }

    /// Gives up a handshake that took too long. Returns whether the peer should be told: if so,
    /// output that the wrapper holds for the peer (an alert) is sent, and the connection is closed
    /// as after a failed handshake. If not, the connection is dropped at once. This is the default,
    /// and also right if it is not yet known which protocol the peer speaks, because it could not
    /// understand an alert.
    ///
    /// This is called at most once, while [`handshake`](StreamSocket::handshake) returns
    /// `WouldBlock`; after that `handshake` is not called any more.
    fn cancel_handshake(&mut self) -> bool {
        false
    }

    /// Returns the name of the protocol on which both ends agreed in their handshake; `None` if
    /// nothing was negotiated.
    #[doc(alias = "ALPN")]
    fn negotiated(&self) -> Option<&[u8]> {
        None
    }

    /// Returns what a wrapper knows from its handshake, as a type of its own: the certificate of
    /// the peer, the version, the requested name. `None` if there is nothing: before the end of the
    /// handshake, and on the kernel's sockets.
    #[doc(alias = "SSL_SESSION")]
    #[doc(alias = "peer_certificates")]
    fn session(&self) -> Option<&dyn Any> {
        None
    }

    /// Returns what a wrapper knows from its handshake as the wanted type, which may be its own or
    /// that of an inner socket. So with TLS around a socket whose balancer has described the
    /// connection, both types can be requested.
    ///
    /// The default only knows [`session`](StreamSocket::session). A wrapper forwards this if the
    /// wanted type is not its own.
    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        self.session().filter(|session| (**session).type_id() == wanted)
    }

    /// Returns whether bytes cannot be read or changed on their way to the other end, so that HTTP
    /// on this socket is `https`. The default, also for the kernel's sockets, is `false`. A wrapper
    /// that encrypts returns `true` once its handshake is done; other wrappers forward the call.
    #[doc(alias = "https")]
    fn is_secure(&self) -> bool {
        false
    }

    /// Sets whether small writes are sent at once (`true`) or collected for a while. Kinds of
    /// socket that never collect them ignore it.
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

    /// Lets the system probe a peer that has been silent for `idle`; `None` turns that off. Kinds
    /// of socket without this feature ignore it. The kernel's sockets count whole seconds, from 1
    /// to 32,767; other values are changed to the nearest of these. A userspace stack has only the
    /// minimum.
    ///
    /// # Errors
    ///
    /// The system's error; the peer may then be probed at the system's own intervals.
    #[doc(alias = "SO_KEEPALIVE")]
    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        let _ = idle;
        Ok(())
    }

    /// Returns whether there may be bytes to read that no event will report, because a wrapper has
    /// read them from its inner socket during the handshake. This is called once, after the end of
    /// the handshake.
    ///
    /// Default: yes, which is always correct and costs a read for each new connection. The kernel's
    /// sockets, which read nothing ahead, return `false`.
    fn holds_input(&self) -> bool {
        true
    }

    /// Sets about how many bytes that the peer has not acknowledged the system keeps at most
    /// (`SO_SNDBUF`). Linux doubles the number, for its own bookkeeping, and adjusts the size of
    /// the buffer automatically only if none is set. Kinds of socket without such a buffer ignore
    /// it.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "SO_SNDBUF")]
    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Sets about how many received but unread bytes the system keeps at most (`SO_RCVBUF`), as
    /// [`set_send_buffer`](StreamSocket::set_send_buffer) does for the other direction. The peer
    /// may have been promised more when it connected.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "SO_RCVBUF")]
    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Sets that the system takes no more output once it keeps this many bytes that it has not sent
    /// yet (`TCP_NOTSENT_LOWAT`), or one if that is 0, however many its send buffer might hold.
    /// Bytes on their way to the peer do not count, so this does not slow down a peer that reads.
    /// Kinds of socket other than TCP, and systems other than Linux, ignore it.
    ///
    /// # Errors
    ///
    /// The system's error; the socket goes on as it was.
    #[doc(alias = "TCP_NOTSENT_LOWAT")]
    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Returns whether a short read (one that got fewer bytes than it asked for) has emptied the
    /// socket, so that the read that would return `WouldBlock` can be left out: whatever comes next
    /// causes an event. This is called only right after such a read, and not once an end, an error
    /// or an urgent byte was reported.
    ///
    /// Default: no, which is always correct and costs one more read for each event, a system call
    /// for the kernel's sockets. The kernel's sockets return `true` if they are known to be plain
    /// TCP, on systems that report urgent bytes (Linux): those made by
    /// [`connect`](StreamSocket::connect), and those accepted by a
    /// [`TcpListener`](super::TcpListener). A Unix socket returns `false`: its read ends after
    /// bytes that were sent along with a descriptor (`SCM_RIGHTS`; unix(7)), and no event reports
    /// the bytes that follow. So do sockets from
    /// [`TcpStream::from_std`](super::TcpStream::from_std), and those that a listener for Multipath
    /// TCP accepted: their reads may end anywhere, for example at each record with the kernel's
    /// TLS.
    ///
    /// A wrapper may return `true` only if all of the following hold: it holds nothing to be read,
    /// decoded or not; the read that was just made has itself read the inner socket; that inner
    /// read was short; and the inner socket returns `true`. If the read only returned bytes that
    /// the wrapper held, it must return `false`: more may have arrived since it read the inner
    /// socket, and the event for that is over.
    fn short_read_drains(&self) -> bool {
        false
    }

    /// Returns how many bytes of the inner socket a wrapper has used for the result of the last
    /// read, if those may be far more than it returned: the peer of a TLS connection may send
    /// records with one byte, or with padding only. A stream counts the larger of both numbers
    /// against its read budget.
    ///
    /// Default: 0, so that the returned bytes count.
    fn read_cost(&self) -> usize {
        0
    }

    /// Returns whether a wrapper must wait until its inner socket is readable before it can go on
    /// writing. It may read for that purpose within a write, and keep what it gets. While this is
    /// so, a stream reads after each attempt to write.
    fn wants_read(&self) -> bool {
        false
    }

    /// Returns whether a wrapper holds output that its inner socket has not taken yet, so that it
    /// must be flushed when the inner socket becomes writable. A wrapper that must write before it
    /// can read returns `WouldBlock` for reads meanwhile; a stream reads again when this is no
    /// longer so.
    fn wants_write(&self) -> bool {
        false
    }

    /// Returns whether a wrapper has received only part of a unit that becomes input when the rest
    /// arrives, such as the beginning of a record. So a peer that seems silent may be about to send
    /// something.
    fn awaits_rest(&self) -> bool {
        false
    }

    /// Returns how many bytes of output a wrapper holds that its inner socket has not taken yet.
    /// From this a stream learns whether a slow peer takes anything at all.
    fn unsent_len(&self) -> usize {
        0
    }

    /// Returns how many bytes of memory a wrapper's input and output take while it waits, or the
    /// unread input that a loop keeps for the socket: for a limit on what all connections hold
    /// together. Memory that it always holds does not count.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Sends up to `count` bytes of a file, from `offset` on, and returns how many were taken. 0
    /// means that the file ends at or before `offset`.
    ///
    /// By default the bytes are read and written, at most 16 KiB at a time. The kernel's sockets
    /// let the kernel send them (`sendfile` on Linux), except in two cases: if it cannot (files of
    /// procfs and of some file systems in user space), or if the process does not ignore SIGPIPE,
    /// which would end it when a peer hangs up. Rust's runtime ignores that signal before `main`. A
    /// program with another `main` that sends files should also ignore it, before it sends the
    /// first file.
    ///
    /// # Errors
    ///
    /// As for `write`, and the error of reading the file.
    #[doc(alias = "sendfile")]
    #[doc(alias = "zero-copy")]
    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        copy_file_chunk(self, file, offset, count)
    }
}

/// How many bytes of a file are copied at a time if the kernel cannot send it itself.
const FILE_CHUNK: usize = 16 * 1024;

/// Returns whether both ends of a connection are this socket. A client that connects again and
/// again to a local port at which nothing listens gets such a connection sooner or later. The
/// connection would then keep a server from listening at that port.
fn is_connected_to_itself(socket: &impl StreamSocket) -> bool {
    let peer = socket.peer_address();
    peer.is_some() && peer == socket.local_address()
}

/// Ends a connection to itself by a reset, because an orderly end would keep its port for another
/// minute.
#[cold]
fn refuse_self_connection(socket: &mut impl StreamSocket) -> io::Error {
    // If resets are not supported, the connection ends in an orderly way.
    let _ = socket.reset();
    io::Error::new(ConnectionRefused, "nobody listens there: the socket was connected to itself")
}

/// Reads no bytes, to find out whether a read would fail without taking anything.
fn probe_read(socket: &mut impl Read) -> io::Result<usize> {
    loop {
        match socket.read(&mut []) {
            // A signal, which says nothing about the socket.
            Err(error) if error.kind() == Interrupted => {}
            other => return other,
        }
    }
}

/// Sends a part of a file by reading and writing it.
pub(super) fn copy_file_chunk(
    socket: &mut impl Write,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut chunk = [0; FILE_CHUNK];
    let wanted = count.min(FILE_CHUNK);
    // Not `read`, because all who have the file open share its own offset.
    let read = file.read_at(&mut chunk[..wanted], offset)?;
    // At the end of the file nothing is written: a socket may refuse even an empty write.
    if read == 0 { Ok(0) } else { socket.write(&chunk[..read]) }
}
