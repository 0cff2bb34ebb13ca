//! Sockets as machines see them: traits, and the kernel's sockets that implement them.
//!
//! **Every socket is made through the scope**, which knows the backend; so a machine that is
//! generic over its socket type runs on any backend, and one that is made for the wrong backend
//! gets [`Unsupported`](std::io::ErrorKind::Unsupported) at once, with both names.
//!
//! | trait | the kernel's sockets | |
//! |--|--|--|
//! | [`StreamSocket`] | [`TcpStream`], [`UnixStream`] | bytes, both ways |
//! | [`Listener`] | [`TcpListener`], [`UnixListener`] | makes stream sockets |
//! | [`DatagramSocket`] | [`UdpSocket`], [`UnixDatagram`] | datagrams |
//! | [`Net`], [`IpNet`] | [`Inet`], [`Unix`] | a family of the three, as one type parameter |
//!
//! [`Either`] joins two kinds of socket; [`TcpListeners`] opens one address for several loops.

mod cannot_listen;
mod either;
mod kernel;
mod listeners;
mod registered;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sigpipe;

use std::fs::File;
use std::io::ErrorKind::{Interrupted, InvalidInput, NotConnected, WouldBlock};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

pub use either::Either;
pub use kernel::{
    Inet, TcpListener, TcpStream, UdpSocket, Unix, UnixDatagram, UnixListener, UnixStream, is_plain,
};
pub use listeners::TcpListeners;

use crate::{Scope, Source};

/// A connected, or connecting, byte stream that never blocks.
///
/// `read` and `write` answer [`WouldBlock`] when there is nothing to do, after which the backend
/// reports the next change. A wrapper (TLS, compression) implements this trait around another
/// socket; its `flush` may answer `WouldBlock` while it holds output of its own.
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

    /// Ends one direction or both. `Write` tells the peer that no more will come.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when a wrapper must write first: call again when the socket is writable.
    /// `NotConnected` when the peer has gone already.
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()>;

    /// The address at the other end; `None` where there is none (Unix sockets) or it is not
    /// connected.
    fn peer_address(&self) -> Option<SocketAddr>;

    /// The address at this end; `None` where there is none.
    fn local_address(&self) -> Option<SocketAddr>;

    /// The error that the system keeps for this socket, once: why connecting failed, say.
    ///
    /// # Errors
    ///
    /// When asking fails.
    fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Whether the socket is connected: an event may be spurious.
    ///
    /// To be asked until the attempt to connect has ended, not later: once both sides have ended a
    /// connection the answer is no, while there may still be bytes to read.
    fn is_connected(&self) -> bool {
        self.peer_address().is_some()
    }

    /// Sees what has become of an attempt to connect, and answers whether it has succeeded. To be
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
        if let Some(error) = self.take_error()? {
            return Err(error);
        }
        if self.is_connected() {
            return Ok(true);
        }
        match read_nothing(self) {
            // Some systems answer the last two where others would block.
            Err(error) if !matches!(error.kind(), WouldBlock | NotConnected | InvalidInput) => {
                Err(error)
            }
            _ => Ok(false),
        }
    }

    /// Goes on with what must pass between the two ends before the first byte of the protocol:
    /// nothing, for a kernel socket. Called once the socket is connected, and then again after each
    /// event, until it answers `Ok`.
    ///
    /// # Errors
    ///
    /// `WouldBlock` while it is under way; others end the connection.
    fn handshake(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The name of the protocol that the two ends agreed on in their handshake; `None` where that
    /// is not done.
    fn negotiated(&self) -> Option<&[u8]> {
        None
    }

    /// Sends small writes at once instead of gathering them for a while. Kinds of socket that never
    /// gather ignore it.
    ///
    /// # Errors
    ///
    /// What the system says; the socket goes on as it was.
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
    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        let _ = idle;
        Ok(())
    }

    /// Whether bytes may wait to be read of which no event will tell, since a wrapper took them
    /// from the socket inside while it shook hands. Asked once, after the handshake has ended.
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
    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Whether the read that has just got fewer bytes than it was asked for has emptied the socket,
    /// so that the `WouldBlock` behind them need not be fetched: whatever comes next causes an
    /// event. Asked after such a read only, and not once an end, an error or an urgent byte was
    /// told of.
    ///
    /// No by default, which is always right and costs a read, for the kernel's sockets a system
    /// call, for each event. Of the kernel's sockets those say yes that are known to be plain TCP,
    /// on systems that tell of urgent bytes (Linux): what [`connect`](StreamSocket::connect) made,
    /// and what a [`TcpListener`] accepted. A Unix socket says no: a read of it ends behind bytes
    /// that a descriptor was sent with (`SCM_RIGHTS`; unix(7)), and nothing tells of what follows.
    /// So does what [`TcpStream::from_std`] was given, and what a listener of Multipath TCP
    /// accepted, which may end a read as they like: the kernel's TLS does at each record.
    ///
    /// A wrapper may say yes while it holds nothing, if its own last read of the socket inside was
    /// short and that socket says yes.
    fn short_read_drains(&self) -> bool {
        false
    }

    /// Whether a wrapper waits for its inner socket to become readable before it can go on with
    /// writing.
    fn wants_read(&self) -> bool {
        false
    }

    /// Whether a wrapper holds output that its inner socket has not taken yet, so that it must be
    /// flushed when that becomes writable.
    fn wants_write(&self) -> bool {
        false
    }

    /// Sends up to `count` bytes of a file from `offset` on, and answers how many were taken. 0
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
    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        read_and_write(self, file, offset, count)
    }
}

/// What takes connections.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a listener of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait Listener: Source + Sized + 'static {
    /// What such a listener is bound to: a socket address, a path.
    type Address;
    /// What it makes.
    type Socket: StreamSocket;

    /// Opens the address for connections.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; else what the
    /// system says: the address is in use, or not this machine's, no descriptor left. Those of the
    /// kernel's sockets have the kind of the system's error, name the address (`cannot listen on
    /// 127.0.0.1:80`), and have the system's error as their source;
    /// [`with_causes`](crate::with_causes) prints both.
    fn bind<C>(
        address: &Self::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self>;

    /// The next connection, and where it comes from, if that has an address.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none. What names one connection (`ConnectionAborted`) is past: go
    /// on. What names this process (no descriptor left) leaves the connection waiting: pause, then
    /// go on.
    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)>;

    /// Whether a connection waits to be accepted, as far as that can be known; true, the default,
    /// where it cannot. For a machine that cannot accept now and wants to know whether somebody
    /// minds. A wrapper forwards it.
    fn has_waiting(&self) -> bool {
        true
    }

    /// The address that it is bound to; `None` where there is none.
    fn local_address(&self) -> Option<SocketAddr>;
}

/// What sends and receives datagrams.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a datagram socket of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait DatagramSocket: Source + Sized + 'static {
    /// Where datagrams come from and go to.
    type Address;

    /// Opens the address.
    ///
    /// # Errors
    ///
    /// As for [`Listener::bind`].
    fn bind<C>(address: &Self::Address, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Takes one datagram; what does not fit into `buffer` is lost, and nothing says so. Who needs
    /// to know gives a buffer of one byte more than it takes: a datagram that fills it is too long.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none: the only one that ends a machine's reading, since the next
    /// datagram causes an event only after it. After any other the socket is as good as before, and
    /// more may be waiting: call again, as often as the machine's budget allows.
    ///
    /// * `Interrupted`: a signal came, and nothing was taken (`EINTR`; recv(2)).
    /// * `ConnectionRefused`, and what else the network reports (`HostUnreachable`): nobody took a
    ///   datagram that was *sent* earlier (udp(7)). Linux reports that to sockets which are
    ///   connected or ask for it, other systems also to others; it does not say which datagram, and
    ///   a forged ICMP message can cause it.
    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Self::Address)>;

    /// Sends one datagram, whole or not at all.
    ///
    /// # Errors
    ///
    /// In each case the datagram was not sent, and the socket is as good as before.
    ///
    /// * `WouldBlock`: the system has no room for it. An event follows if the socket was registered
    ///   for writing; most protocols drop the datagram instead, since the network may lose it as
    ///   well.
    /// * `Interrupted`: a signal came first (`EINTR`; send(2)).
    /// * `ConnectionRefused`: of an *earlier* datagram, as for
    ///   [`receive_from`](DatagramSocket::receive_from).
    /// * What names this datagram: too long for the protocol (`EMSGSIZE`), no route to `target`
    ///   (`NetworkUnreachable`), forbidden (`PermissionDenied`). To send it again does not help.
    fn send_to(&mut self, datagram: &[u8], target: &Self::Address) -> io::Result<usize>;

    /// Ties the socket to one peer, as connect(2) does with datagrams: nothing is sent. From now on
    /// [`send`](DatagramSocket::send) sends to it, the system throws away what others send, and a
    /// datagram that nobody there takes is a `ConnectionRefused` soon after, where the system
    /// knows. [`send_to`](DatagramSocket::send_to) is of no more use: some systems refuse it.
    ///
    /// What others sent before stays in the queue, so whoever relies on the sender still looks at
    /// it.
    ///
    /// # Errors
    ///
    /// What the system says (no route, `NetworkUnreachable`); by default `Unsupported`: this kind
    /// of socket has no peer. It is as good as before.
    fn connect(&mut self, peer: &Self::Address) -> io::Result<()> {
        let _ = peer;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram to the peer that the socket is [connected](DatagramSocket::connect) to,
    /// whole or not at all.
    ///
    /// # Errors
    ///
    /// As for [`send_to`](DatagramSocket::send_to). Without a peer: what the system says to that;
    /// by default `NotConnected`.
    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        let _ = datagram;
        Err(io::ErrorKind::NotConnected.into())
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn local_address(&self) -> io::Result<Self::Address>;
}

/// A family of sockets, for code that needs more than one kind and would rather have one type
/// parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a family of sockets",
    note = "`rotor_core::net` has `Inet` and `Unix`; implement `Net` for an empty type to name three kinds of your own"
)]
pub trait Net: 'static {
    /// Byte streams.
    type Stream: StreamSocket;
    /// What makes them.
    type Listener: Listener<Socket = Self::Stream>;
    /// Datagrams.
    type Datagram: DatagramSocket;
}

/// A [`Net`] whose sockets have addresses of IP and port: the bound of a program that listens,
/// connects and exchanges datagrams, in place of one for each kind of socket.
///
/// [`Inet`] is one, and the simulated network; every `Net` that can be is, by itself.
///
/// ```
/// use rotor_core::net::{IpNet, Listener, ListenOptions};
/// use rotor_core::Scope;
/// use std::net::SocketAddr;
///
/// fn listen<N: IpNet, C>(address: SocketAddr, scope: &Scope<'_, C>) -> std::io::Result<N::Listener> {
///     N::Listener::bind(&address, &ListenOptions::new(), scope)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a family of sockets with IP addresses",
    note = "`Inet` is one; a `Net` is one by itself when the addresses of all its sockets are `SocketAddr`"
)]
pub trait IpNet:
    Net<
        Stream: StreamSocket<Target = SocketAddr>,
        Listener: Listener<Address = SocketAddr>,
        Datagram: DatagramSocket<Address = SocketAddr>,
    >
{
}

impl<N> IpNet for N
where
    N: Net,
    N::Stream: StreamSocket<Target = SocketAddr>,
    N::Listener: Listener<Address = SocketAddr>,
    N::Datagram: DatagramSocket<Address = SocketAddr>,
{
}

/// How a listener is opened.
#[derive(Clone, Debug)]
#[must_use]
pub struct ListenOptions {
    pub(crate) backlog: u32,
    pub(crate) reuse_port: bool,
}

impl ListenOptions {
    /// The defaults.
    pub fn new() -> ListenOptions {
        ListenOptions { backlog: 4096, reuse_port: false }
    }

    /// How many connections the system keeps until they are accepted. Default 4,096, as much as
    /// Linux allows by default: one that finds the queue full tries again a second later at the
    /// earliest. The system may keep fewer (`net.core.somaxconn`; listen(2)).
    pub fn backlog(mut self, connections: u32) -> ListenOptions {
        self.backlog = connections;
        self
    }

    /// Whether several listeners may share the address, so that the system spreads connections over
    /// them (`SO_REUSEPORT`). Default: no. Where the system has no such option, binding answers
    /// `Unsupported`.
    pub fn reuse_port(mut self, yes: bool) -> ListenOptions {
        self.reuse_port = yes;
        self
    }

    /// The number of [`backlog`](ListenOptions::backlog), for those who implement listeners.
    pub fn backlog_len(&self) -> u32 {
        self.backlog
    }

    /// Whether [`reuse_port`](ListenOptions::reuse_port) was asked for, for those who implement
    /// listeners.
    pub fn is_reuse_port(&self) -> bool {
        self.reuse_port
    }
}

impl Default for ListenOptions {
    fn default() -> ListenOptions {
        ListenOptions::new()
    }
}

/// How many bytes of a file are copied at a time where the kernel cannot send it by itself.
const FILE_CHUNK: usize = 16 * 1024;

/// Reads no bytes: whether a read would fail, without taking anything.
fn read_nothing(socket: &mut impl Read) -> io::Result<usize> {
    loop {
        match socket.read(&mut []) {
            Err(error) if error.kind() == Interrupted => {}
            other => return other,
        }
    }
}

/// Sends a piece of a file by reading and writing it.
fn read_and_write(
    socket: &mut impl Write,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut chunk = [0; FILE_CHUNK];
    let wanted = count.min(FILE_CHUNK);
    let read = file.read_at(&mut chunk[..wanted], offset)?;
    if read == 0 { Ok(0) } else { socket.write(&chunk[..read]) }
}
