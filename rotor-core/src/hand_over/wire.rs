//! The protocol between the two processes, and the sockets that are passed with it.
//!
//! ```text
//!   successor                                 predecessor
//!     connect ───────────────────────────────▶ accept; the user is checked, here and there
//!             ◀─────────────────────────────── greeting, then `+`; or `B`: busy with another one
//!             ◀─────────────────────────────── for each socket: kind, length, name; the descriptor
//!             ◀─────────────────────────────── `.`
//!     makes its loops
//!     `R` ───────────────────────────────────▶
//!             ◀─────────────────────────────── `G`; or before, once it takes too long: `L`
//!     takes the path
//!     `T` ───────────────────────────────────▶ drops its copies, begins to drain
//! ```
//!
//! Without the `T`, the predecessor goes on serving, whatever was sent before.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use socket2::{Domain, SockRef, Type};

use super::error::HandOverErrorKind as Kind;

/// Identifies the protocol. Another version of it has another greeting.
const GREETING: [u8; 8] = *b"rotorHO1";
const LIST: u8 = b'+';
const BUSY: u8 = b'B';
const END: u8 = b'.';
/// The successor serves.
pub(super) const READY: u8 = b'R';
/// The predecessor knows, and will drain once the successor has taken the path.
pub(super) const GO: u8 = b'G';
/// The successor has taken the path: from now on it alone serves.
pub(super) const TAKEN: u8 = b'T';
/// The predecessor has given up this successor.
pub(super) const LATE: u8 = b'L';

/// How long the other process may take for each answer: 10 s. It answers on a separate thread, so a
/// time near that means that the computer is hopelessly overloaded.
pub const ANSWER_TIME: Duration = Duration::from_secs(10);

/// The maximum number of sockets that are received: far more than the listeners of any process.
const SOCKETS_MAX: usize = 4_096;

/// The kind of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SocketKind {
    Tcp,
    Unix,
    Udp,
}

impl SocketKind {
    const ALL: [SocketKind; 3] = [SocketKind::Tcp, SocketKind::Unix, SocketKind::Udp];

    fn letter(self) -> u8 {
        match self {
            SocketKind::Tcp => b't',
            SocketKind::Unix => b'u',
            SocketKind::Udp => b'd',
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            SocketKind::Tcp => "a TCP listener",
            SocketKind::Unix => "a Unix listener",
            SocketKind::Udp => "a UDP socket",
        }
    }

    /// Returns whether the socket is of this kind.
    pub(super) fn matches_socket(self, socket: &impl AsFd) -> bool {
        let socket = SockRef::from(socket);
        let inet = [Some(Domain::IPV4), Some(Domain::IPV6)];
        let (domain, kind) = (socket.domain().ok(), socket.r#type().ok());
        let listens = socket.is_listener().unwrap_or(false);
        match self {
            SocketKind::Tcp => inet.contains(&domain) && kind == Some(Type::STREAM) && listens,
            SocketKind::Unix => {
                domain == Some(Domain::UNIX) && kind == Some(Type::STREAM) && listens
            }
            SocketKind::Udp => inet.contains(&domain) && kind == Some(Type::DGRAM),
        }
    }
}

/// A socket that is passed from one process to the next, with the program's name for it.
#[derive(Debug)]
pub(super) struct NamedSocket {
    pub(super) name: String,
    pub(super) kind: SocketKind,
    pub(super) socket: OwnedFd,
}

impl NamedSocket {
    /// Creates a copy of the socket, with this name.
    pub(super) fn copy(
        name: &str,
        kind: SocketKind,
        socket: &impl AsFd,
    ) -> io::Result<NamedSocket> {
        Ok(NamedSocket::new(name, kind, socket.as_fd().try_clone_to_owned()?))
    }

    pub(super) fn new(name: &str, kind: SocketKind, socket: impl Into<OwnedFd>) -> NamedSocket {
        NamedSocket { name: name.to_owned(), kind, socket: socket.into() }
    }
}

/// Limits how long each single read from and write to the other process may take.
pub(super) fn set_timeouts(peer: &UnixStream) -> io::Result<()> {
    peer.set_read_timeout(Some(ANSWER_TIME))?;
    peer.set_write_timeout(Some(ANSWER_TIME))
}

/// Tells a successor that another one came first.
pub(super) fn send_busy(mut peer: &UnixStream) -> io::Result<()> {
    peer.write_all(&GREETING)?;
    peer.write_all(&[BUSY])
}

/// Sends copies of all sockets to a successor.
pub(super) fn send_sockets(mut peer: &UnixStream, sockets: &[NamedSocket]) -> io::Result<()> {
    peer.write_all(&GREETING)?;
    peer.write_all(&[LIST])?;
    for NamedSocket { name, kind, socket } in sockets {
        let length = u8::try_from(name.len()).map_err(io::Error::other)?;
        // One at a time: the number of descriptors per message is limited (SCM_MAX_FD, unix(7)).
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [socket.as_fd()];
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::other("a descriptor does not fit into its message"));
        }
        let record = [kind.letter(), length];
        // With a time limit, the system does not resume a call after a signal (signal(7)).
        let sent = retry_on_intr(|| {
            sendmsg(peer, &[IoSlice::new(&record)], &mut ancillary, SendFlags::NOSIGNAL)
        })?;
        peer.write_all(&record[sent..])?;
        peer.write_all(name.as_bytes())?;
    }
    peer.write_all(&[END])
}

/// Receives the sockets of a predecessor.
pub(super) fn receive_sockets(peer: &UnixStream) -> Result<Vec<NamedSocket>, Kind> {
    let mut greeting = [0; GREETING.len() + 1];
    read_exact(peer, &mut greeting)?;
    match greeting.split_last() {
        Some((&LIST, received)) if received == GREETING => {}
        Some((&BUSY, received)) if received == GREETING => return Err(Kind::Busy),
        _ => return Err(Kind::Nonsense("it greets otherwise")),
    }
    let mut sockets = Vec::new();
    loop {
        let (kind, socket) = receive_one(peer)?;
        if kind == END {
            return Ok(sockets);
        }
        let known = SocketKind::ALL.into_iter().find(|known| known.letter() == kind);
        let kind = known.ok_or(Kind::Nonsense("it hands over what is no kind of socket"))?;
        let socket = socket.ok_or(Kind::Nonsense("a name came without its socket"))?;
        let mut length = [0];
        read_exact(peer, &mut length)?;
        let mut name = vec![0; usize::from(length[0])];
        read_exact(peer, &mut name)?;
        let name = String::from_utf8(name).map_err(|_| Kind::Nonsense("a name is no text"))?;
        if !kind.matches_socket(&socket) {
            return Err(Kind::Nonsense("a socket is not what it is said to be"));
        }
        sockets.push(NamedSocket { name, kind, socket });
        if sockets.len() > SOCKETS_MAX {
            return Err(Kind::Nonsense("there is no end to its sockets"));
        }
    }
}

/// Receives a byte, and the descriptor that came with it.
fn receive_one(peer: &UnixStream) -> Result<(u8, Option<OwnedFd>), Kind> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        recvmsg(peer, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
    })
    .map_err(|error| peer_error()(error.into()))?;
    if received.bytes == 0 {
        return Err(Kind::Gone);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    // This also happens if this process can open no further descriptor: the kernel drops the excess
    // ones (unix(7)).
    if received.flags.contains(ReturnFlags::CTRUNC) || descriptors.len() > 1 {
        let cause = io::Error::other("more than one came, or there is no descriptor left");
        return Err(Kind::Refused { what: "take a socket", cause });
    }
    Ok((byte[0], descriptors.pop()))
}

fn read_exact(mut peer: &UnixStream, bytes: &mut [u8]) -> Result<(), Kind> {
    peer.read_exact(bytes).map_err(peer_error())
}

fn peer_error() -> impl Fn(io::Error) -> Kind {
    Kind::peer_error("hear of the other process", ANSWER_TIME)
}

/// Reports that this process serves, and waits for the other one's answer.
pub(super) fn report_ready(mut peer: &UnixStream) -> Result<(), Kind> {
    // If this fails, the other process has closed the connection, and may have sent the reason
    // before.
    let sent = peer.write_all(&[READY]);
    let mut answer = [0];
    read_exact(peer, &mut answer)?;
    match answer[0] {
        LATE => Err(Kind::Late),
        GO if sent.is_ok() => Ok(()),
        _ => Err(Kind::Nonsense("it answers otherwise")),
    }
}

/// Reports that this process has taken the path; then the other one drains.
pub(super) fn report_taken(mut peer: &UnixStream) -> io::Result<()> {
    peer.write_all(&[TAKEN])
}

/// Reads a byte from a successor; `None` at the end of the stream.
pub(super) fn read_byte(mut peer: &UnixStream) -> io::Result<Option<u8>> {
    let mut byte = [0];
    match peer.read_exact(&mut byte) {
        Ok(()) => Ok(Some(byte[0])),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
