//! `SmoltcpTcpListener`: accepts connections.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rotor_core::net::{ListenError, ListenOptions, Listener};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};

use crate::stack::SocketKind;
use crate::stack_socket::StackSocket;
use crate::stream::SmoltcpTcpStream;

/// A TCP listener of a stack in user space.
///
/// `0.0.0.0` stands for all IPv4 addresses of the stack, and `[::]` for all its IPv6 addresses. A
/// listener on one of them does not accept connections to the other.
pub struct SmoltcpTcpListener(StackSocket);

const WHAT: &str = "a TCP listener of smoltcp";

impl Source for SmoltcpTcpListener {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.0.register(backend, token, interest, WHAT)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.0.deregister(backend, WHAT)
    }
}

impl Listener for SmoltcpTcpListener {
    type Address = SocketAddr;
    type Socket = SmoltcpTcpStream;

    fn bind<C>(
        address: &SocketAddr,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<SmoltcpTcpListener> {
        let backlog = usize::try_from(options.backlog_len()).unwrap_or(usize::MAX);
        let socket = StackSocket::new(SocketKind::Listener, WHAT, scope, |stack| {
            let bound = match options.is_reuse_port() {
                // Each loop has a stack and addresses of its own.
                true => Err(io::ErrorKind::Unsupported.into()),
                false => stack.listen(*address, backlog),
            };
            bound.map_err(ListenError::on(address))
        });
        socket.map(SmoltcpTcpListener)
    }

    fn accept(&mut self) -> io::Result<(SmoltcpTcpStream, Option<SocketAddr>)> {
        let (id, peer) = self.0.stack().accept(self.0.id())?;
        Ok((SmoltcpTcpStream::from_socket(self.0.on_same_stack(id)), Some(peer)))
    }

    fn has_waiting(&self) -> bool {
        self.0.stack().has_waiting(self.0.id())
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.0.stack().listener_address(self.0.id())
    }
}

impl fmt::Debug for SmoltcpTcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmoltcpTcpListener({:?})", self.0)
    }
}
