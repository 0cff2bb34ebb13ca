//! The sockets of a process, by name.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use super::HandOver;
use super::wire::{NamedSocket, SocketKind};

impl HandOver {
    pub(super) fn check_name(&self, name: &str) -> io::Result<()> {
        let wrong = |what: &str| {
            let message = format!("the name {name:?} of a socket to hand over {what}");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        };
        if name.is_empty() || name.len() > usize::from(u8::MAX) {
            return wrong("is to have 1 to 255 bytes");
        }
        if self.sockets.iter().any(|socket| socket.name == name) {
            return wrong("was asked for before: each needs its own");
        }
        Ok(())
    }

    /// Returns copies of the TCP listeners with this name that were handed over.
    pub(super) fn tcp_copies(&self, name: &str) -> io::Result<Vec<TcpListener>> {
        self.check_kind(name, SocketKind::Tcp)?;
        let received = self.received.iter().filter(|socket| socket.name == name);
        received.map(|socket| socket.socket.try_clone().map(TcpListener::from)).collect()
    }

    /// Takes the sockets with this name that were handed over.
    pub(super) fn take_received(
        &mut self,
        name: &str,
        kind: SocketKind,
    ) -> io::Result<Vec<OwnedFd>> {
        self.check_kind(name, kind)?;
        let taken = self.received.extract_if(.., |socket| socket.name == name);
        Ok(taken.map(|socket| socket.socket).collect())
    }

    fn check_kind(&self, name: &str, kind: SocketKind) -> io::Result<()> {
        let Some(other) =
            self.received.iter().find(|socket| socket.name == name && socket.kind != kind)
        else {
            return Ok(());
        };
        let (other, kind) = (other.kind.name(), kind.name());
        let message = format!("{name:?} is {other} as it was handed over, and {kind} here");
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// Keeps a copy of a socket for the next process. If that fails, keeps the socket itself for a
    /// second call.
    pub(super) fn keep_copy<S: AsFd + Into<OwnedFd>>(
        &mut self,
        name: &str,
        kind: SocketKind,
        socket: S,
    ) -> io::Result<S> {
        match NamedSocket::copy(name, kind, &socket) {
            Ok(copy) => {
                self.sockets.push(copy);
                Ok(socket)
            }
            Err(error) => {
                self.received.push(NamedSocket::new(name, kind, socket));
                Err(error)
            }
        }
    }
}
