//! `StreamSocket`: a byte stream, as machines see it.

use std::any::{Any, TypeId};
use std::fs::File;
#[cfg(doc)]
use std::io::ErrorKind::UnexpectedEof;
use std::io::ErrorKind::{Interrupted, InvalidInput, NotConnected, WouldBlock};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use crate::backend::Source;
use crate::scope::Scope;

/// A connected, or connecting, byte stream that never blocks.
///
/// `read` and `write` return [`WouldBlock`] when there is nothing to do, after which the backend
/// reports the next change. A wrapper (TLS, compression) implements this trait around another
/// socket; its `flush` may return `WouldBlock` while it holds output of its own, and its `read`
/// returns [`UnexpectedEof`] where the socket inside ends without what the wrapper ends with.
#[doc(alias = "AsyncRead")]
#[doc(alias = "AsyncWrite")]
#[doc(alias = "transport")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stream socket of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's; a wrapper implements \
            `StreamSocket` around one of them"
)]
pub trait StreamSocket: Read + Write + Source + Sized + 'static {
    /// What such a socket connects to: a socket address, a path.
    type Target;

    /// Begins to connect. Register the socket; after each event,
    /// [`has_connected`](StreamSocket::has_connected) says how it goes.
    ///
    /// # Errors
    ///
    /// What the system says at once: no descriptor left, no route, refused (by local sockets).
    fn connect<C>(target: &Self::Target, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Returns whether a connection to there may agree on this protocol in its handshake
    /// ([`negotiated`](StreamSocket::negotiated)): whether it is offered at all. Default: no.
    #[doc(alias = "ALPN")]
    fn may_agree_on(target: &Self::Target, protocol: &[u8]) -> bool {
        let _ = (target, protocol);
        false
    }

    /// Returns the same target, to which connections do not offer this protocol in their
    /// handshakes, and offer another: the same each time, so that they can be shared. `None` where
    /// it is not offered, or nothing else is. Default: none.
    fn without(target: Self::Target, protocol: &[u8]) -> Option<Self::Target> {
        let _ = (target, protocol);
        None
    }

    /// Ends one direction or both. `Write` tells the peer that no more will come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when a wrapper must write first: call again when the socket is writable.
    /// `NotConnected` when the peer has gone already.
    #[doc(alias = "half-close")]
    #[doc(alias = "FIN")]
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()>;

    /// Writes the last bytes of this side: where all of them are taken, nothing follows but
    /// [`shutdown`](StreamSocket::shutdown), which is called whatever this has done. A wrapper that
    /// says something at its end may send it along, if it takes them all. Default: as
    /// [`write`](Write::write) does.
    ///
    /// # Errors
    ///
    /// As for `write`.
    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    /// Returns the address at the other end; `None` where there is none (Unix sockets) or it is not
    /// connected.
    fn peer_address(&self) -> Option<SocketAddr>;

    /// Returns the address at this end; `None` where there is none.
    fn local_address(&self) -> Option<SocketAddr>;

    /// Takes the error that the system keeps for this socket, once: why connecting failed, say.
    ///
    /// # Errors
    ///
    /// When asking fails.
    #[doc(alias = "SO_ERROR")]
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Returns whether the socket is connected: an event may be spurious.
    ///
    /// To be asked until the attempt to connect has ended, not later: once both sides have ended a
    /// connection the answer is no, while there may still be bytes to read.
    fn is_connected(&self) -> bool {
        self.peer_address().is_some()
    }

    /// Sees what has become of an attempt to connect, and returns whether it has succeeded. To be
    /// asked after each event until it says yes or fails. What the event says is no answer: it may
    /// be spurious, or be of another socket that the machine had before.
    ///
    /// A refused attempt is known from [`take_error`](StreamSocket::take_error). Where that says
    /// nothing and the socket is not connected, a read of no bytes is tried: what a wrapper does
    /// not pass on of the socket inside, that tells.
    ///
    /// # Errors
    ///
    /// Why the attempt has failed; the socket is of no use any more.
    fn has_connected(&mut self) -> io::Result<bool> {
        // First: only `SO_ERROR` says why a connection failed, and only once (socket(7)).
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        if self.is_connected() {
            return Ok(true);
        }
        match read_nothing(self) {
            // Some systems return the last two where others would block.
            Err(error) if !matches!(error.kind(), WouldBlock | NotConnected | InvalidInput) => {
                Err(error)
            }
            _ => Ok(false),
        }
    }

    /// Goes on with what must pass between the two ends before the first byte of the protocol:
    /// nothing, for a kernel socket. Called once the socket is connected, and then again after each
    /// event of the socket and each wake-up of the machine, until it returns `Ok`. Either may be
    /// spurious.
    ///
    /// The scope is the machine's: its time is what certificates are checked against, a slow step
    /// may be [offloaded](Scope::offload) (keep the future, return `WouldBlock`, and the wake-up
    /// leads back to this call), and what is drawn from [`secure_random`](Scope::secure_random) is
    /// the same in each run of a simulation.
    ///
    /// # Errors
    ///
    /// `WouldBlock` while it is under way; others end the connection. What the wrapper then holds
    /// for the peer (an alert that says why) is flushed, `shutdown(Write)` is called, and what the
    /// peer still sends is read and thrown away for a while, or a reset might overtake the alert.
    /// So after such an error `read` gives what the socket inside gives, undecoded, and `shutdown`
    /// adds nothing. After an error that says that the connection is gone, or has ended
    /// ([`UnexpectedEof`]), it is dropped at once.
    #[doc(alias = "TLS")]
    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        let _ = scope;
        Ok(())
    }

    /// Gives up a handshake whose time is over. Returns whether the peer is to hear of it: what the
    /// wrapper then holds for it (an alert) is sent, and the connection closed in order, as after a
    /// handshake that has failed. Else it is dropped at once: by default, and wherever the peer has
    /// not said yet what it is, so that it could not understand a word.
    ///
    /// Called at most once, while [`handshake`](StreamSocket::handshake) says `WouldBlock`, which
    /// is not called any more behind this.
    fn cancel_handshake(&mut self) -> bool {
        false
    }

    /// Returns the name of the protocol that the two ends agreed on in their handshake; `None`
    /// where that is not done.
    #[doc(alias = "ALPN")]
    fn negotiated(&self) -> Option<&[u8]> {
        None
    }

    /// Returns what a wrapper tells of its handshake, as a type of its own: the certificate of the
    /// peer, the version, the name that was asked for. `None` where there is nothing to tell:
    /// before the end of the handshake, and by the kernel's sockets.
    #[doc(alias = "SSL_SESSION")]
    #[doc(alias = "peer_certificates")]
    fn session(&self) -> Option<&dyn Any> {
        None
    }

    /// Returns what a wrapper tells of its handshake as this type, its own or that of a socket
    /// inside: with TLS around a socket that a balancer has told of, both can be asked for.
    ///
    /// By default there is nothing but [`session`](StreamSocket::session). A wrapper whose own is
    /// of another type passes the question on.
    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        self.session().filter(|session| (**session).type_id() == wanted)
    }

    /// Returns whether what is written cannot be read or changed on its way to the other end, so
    /// that HTTP on it is `https`: no by default, and for the kernel's sockets. A wrapper that
    /// encrypts says yes once it has shaken hands; one that does not forwards the question.
    #[doc(alias = "https")]
    fn is_secure(&self) -> bool {
        false
    }

    /// Sends small writes at once instead of gathering them for a while. Kinds of socket that never
    /// gather ignore it.
    ///
    /// # Errors
    ///
    /// What the system says; the socket goes on as it was.
    #[doc(alias = "TCP_NODELAY")]
    #[doc(alias = "Nagle")]
    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        let _ = yes;
        Ok(())
    }

    /// Has the system probe a peer that has been silent for `idle`; `None` turns it off. Kinds of
    /// socket that cannot ignore it.
    ///
    /// # Errors
    ///
    /// What the system says; the socket goes on as it was.
    #[doc(alias = "SO_KEEPALIVE")]
    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        let _ = idle;
        Ok(())
    }

    /// Returns whether bytes may wait to be read of which no event will tell, since a wrapper took
    /// them from the socket inside while it shook hands. Asked once, after the handshake has ended.
    ///
    /// Yes by default, which is always right and costs a read of each new connection; the kernel's
    /// sockets, which read nothing ahead, say no.
    fn holds_input(&self) -> bool {
        true
    }

    /// Has the system keep at most so many bytes, or about as many, that the peer has not
    /// acknowledged (`SO_SNDBUF`). Linux doubles the number, for its own bookkeeping, and lets the
    /// buffer grow by itself only where none is set. Kinds of socket without such a buffer ignore
    /// it.
    ///
    /// # Errors
    ///
    /// What the system says; the socket goes on as it was.
    #[doc(alias = "SO_SNDBUF")]
    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Has the system keep at most so many bytes, or about as many, that came and were not read
    /// (`SO_RCVBUF`), as [`set_send_buffer`](StreamSocket::set_send_buffer) does for the other
    /// direction. The peer may have been promised more when it connected.
    ///
    /// # Errors
    ///
    /// What the system says; the socket goes on as it was.
    #[doc(alias = "SO_RCVBUF")]
    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Has the system take no more to be written once it keeps so many bytes that it has not sent
    /// yet (`TCP_NOTSENT_LOWAT`), however much its send buffer might hold. What is on its way to
    /// the peer does not count, so this costs a peer that reads nothing. Ignored by kinds of socket
    /// other than TCP, and by systems other than Linux.
    ///
    /// # Errors
    ///
    /// What the system says; the socket goes on as it was.
    #[doc(alias = "TCP_NOTSENT_LOWAT")]
    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Returns whether the read that has just got fewer bytes than it was asked for has emptied the
    /// socket, so that the `WouldBlock` behind them need not be fetched: whatever comes next causes
    /// an event. Asked after such a read only, and not once an end, an error or an urgent byte was
    /// told of.
    ///
    /// No by default, which is always right and costs a read, for the kernel's sockets a system
    /// call, for each event. Of the kernel's sockets those say yes that are known to be plain TCP,
    /// on systems that tell of urgent bytes (Linux): what [`connect`](StreamSocket::connect) made,
    /// and what a [`TcpListener`](super::TcpListener) accepted. A Unix socket says no: a read of it
    /// ends behind bytes that a descriptor was sent with (`SCM_RIGHTS`; unix(7)), and nothing tells
    /// of what follows. So does what [`TcpStream::from_std`](super::TcpStream::from_std) was given,
    /// and what a listener of Multipath TCP accepted, which may end a read as they like: the
    /// kernel's TLS does at each record.
    ///
    /// A wrapper may say yes while it holds nothing to be read, decoded or not, if the read that
    /// has just been made of it has itself read the socket inside, and that was short, and that
    /// socket says yes. Where it only handed out what it held, it must say no: more may have come
    /// since it read, and the event of that is over.
    fn short_read_drains(&self) -> bool {
        false
    }

    /// Returns whether a wrapper waits for its inner socket to become readable before it can go on
    /// with writing.
    fn wants_read(&self) -> bool {
        false
    }

    /// Returns whether a wrapper holds output that its inner socket has not taken yet, so that it
    /// must be flushed when that becomes writable.
    fn wants_write(&self) -> bool {
        false
    }

    /// Returns whether a wrapper has got a part of what is input only once the rest has come, such
    /// as the beginning of a record: then a peer that seems to say nothing is about to.
    fn awaits_rest(&self) -> bool {
        false
    }

    /// Returns how many bytes of its own a wrapper holds that its inner socket has not taken yet: a
    /// stream sees by it whether a slow peer takes anything at all.
    fn unsent_len(&self) -> usize {
        0
    }

    /// Returns how many bytes of memory a wrapper's input and output take while it waits, for those
    /// who limit what all connections hold together. What it always has does not count.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Sends up to `count` bytes of a file from `offset` on, and returns how many were taken. 0
    /// means that the file ends before `offset`.
    ///
    /// By default they are read and written, 16 KiB at most at a time. The kernel's sockets have
    /// the kernel send them (`sendfile` on Linux), unless it cannot (a file of procfs, and of some
    /// file systems in user space) or the process does not ignore SIGPIPE, which would then end it
    /// when a peer hangs up. Rust's runtime ignores that signal before `main`; a program with
    /// another `main` that sends files had better do so as well, before the first one.
    ///
    /// # Errors
    ///
    /// As for `write`, and what reading the file says.
    #[doc(alias = "sendfile")]
    #[doc(alias = "zero-copy")]
    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        read_and_write(self, file, offset, count)
    }
}

/// How many bytes of a file are copied at a time where the kernel cannot send it by itself.
const FILE_CHUNK: usize = 16 * 1024;

/// Reads no bytes: whether a read would fail, without taking anything.
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
    // Not `read`: the file's own offset is shared with all who have it open.
    let read = file.read_at(&mut chunk[..wanted], offset)?;
    // At the end of the file nothing is written: a socket may refuse even that.
    if read == 0 { Ok(0) } else { socket.write(&chunk[..read]) }
}
