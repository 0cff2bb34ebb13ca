//! A name server made of machines, on UDP and TCP at one address of any loop. A test scripts its
//! answers.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;

use rotor_core::net::{DatagramSocket, IpNet, ListenOptions, Listener, StreamSocket};
use rotor_core::{EventSet, Interest, Machine, Response, Scope, SpawnError};

/// Maps a query, whether it came over TCP, and a random number to the messages that are sent back,
/// in order.
type Script = dyn Fn(&[u8], bool, u64) -> Vec<Vec<u8>>;

/// What the machines of a server share.
#[derive(Clone)]
pub(crate) struct Served {
    script: Rc<Script>,
    /// The received queries.
    pub(crate) queries: Rc<RefCell<Vec<Vec<u8>>>>,
    /// The source ports of the queries that came by datagram.
    pub(crate) ports: Rc<RefCell<Vec<u16>>>,
}

impl Served {
    pub(crate) fn new(script: impl Fn(&[u8], bool, u64) -> Vec<Vec<u8>> + 'static) -> Served {
        Served { script: Rc::new(script), queries: Rc::default(), ports: Rc::default() }
    }

    fn answers(&self, query: &[u8], is_tcp: bool, random: u64) -> Vec<Vec<u8>> {
        self.queries.borrow_mut().push(query.to_vec());
        (self.script)(query, is_tcp, random)
    }
}

pub(crate) enum NameServer<N: IpNet> {
    Udp(N::Datagram),
    Listener(N::Listener),
    Connection(Connection<N::Stream>),
}

/// One query and its answers over TCP.
pub(crate) struct Connection<S> {
    socket: S,
    query: Vec<u8>,
    output: Vec<u8>,
    is_answered: bool,
}

impl<N: IpNet> NameServer<N> {
    pub(crate) fn udp<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> Response<NameServer<N>> {
        Response::attempt(|| {
            let mut socket = N::Datagram::bind(address, scope)?;
            scope.register(&mut socket, Interest::Both)?;
            Ok(Response::ok(NameServer::Udp(socket)))
        })
    }

    /// The address at which datagrams are served.
    #[allow(dead_code, reason = "a simulated one is at port 53")]
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            NameServer::Udp(socket) => socket.local_address().ok(),
            _ => None,
        }
    }

    pub(crate) fn tcp<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> Response<NameServer<N>> {
        Response::attempt(|| {
            let mut listener = N::Listener::bind(address, &ListenOptions::new(), scope)?;
            scope.register(&mut listener, Interest::Readable)?;
            Ok(Response::ok(NameServer::Listener(listener)))
        })
    }
}

/// Answers datagrams until there are no more. An answer that the system has no room for is lost, as
/// a datagram may be.
fn datagrams<D: DatagramSocket<Address = SocketAddr>>(socket: &mut D, scope: &Scope<'_, Served>) {
    let mut buffer = [0; 512];
    loop {
        match socket.receive_from(&mut buffer) {
            Ok((length, from)) => {
                scope.ports.borrow_mut().push(from.port());
                for message in scope.answers(&buffer[..length], false, scope.random_u64()) {
                    let _ = socket.send_to(&message, &from);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

impl<N: IpNet> NameServer<N> {
    fn accept(mut self) -> Response<NameServer<N>, N::Stream> {
        while let NameServer::Listener(listener) = &mut self {
            match listener.accept() {
                Ok((socket, _)) => return Response::spawn(self, socket),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The connection is already gone, or the system lacks a resource: the next one.
                Err(_) => {}
            }
        }
        Response::ok(self)
    }
}

impl<S: StreamSocket> Connection<S> {
    fn advance(&mut self, scope: &Scope<'_, Served>) -> io::Result<()> {
        let mut chunk = [0; 64];
        while !self.is_answered {
            match self.socket.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.query.extend(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            let Some((length, query)) = self.query.split_first_chunk() else { continue };
            if query.len() < usize::from(u16::from_be_bytes(*length)) {
                continue;
            }
            for message in scope.answers(query, true, scope.random_u64()) {
                self.output.extend((message.len() as u16).to_be_bytes());
                self.output.extend(message);
            }
            self.is_answered = true;
        }
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // The client ends the connection.
        match self.socket.read(&mut chunk) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => Err(io::Error::other(format!("{more} bytes after the question"))),
            Err(error) => Err(error),
        }
    }
}

impl<N: IpNet> Machine for NameServer<N> {
    type Context = Served;
    type Seed = N::Stream;

    fn create(mut socket: N::Stream, scope: &mut Scope<'_, Served>) -> Response<NameServer<N>> {
        Response::attempt(|| {
            scope.register(&mut socket, Interest::Both)?;
            let connection =
                Connection { socket, query: Vec::new(), output: Vec::new(), is_answered: false };
            Ok(Response::ok(NameServer::Connection(connection)))
        })
    }

    fn ready(
        mut self,
        _: EventSet,
        scope: &mut Scope<'_, Served>,
    ) -> Response<NameServer<N>, N::Stream> {
        match &mut self {
            NameServer::Udp(socket) => datagrams(socket, scope),
            NameServer::Listener(_) => return self.accept(),
            NameServer::Connection(connection) => match connection.advance(scope) {
                Err(error)
                    if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    return Response::done();
                }
                _ => {}
            },
        }
        Response::ok(self)
    }

    fn spawned(self, _: &mut Scope<'_, Served>) -> Response<NameServer<N>, N::Stream> {
        self.accept()
    }

    fn spawn_error(
        self,
        _: SpawnError<N::Stream>,
        _: &mut Scope<'_, Served>,
    ) -> Response<NameServer<N>, N::Stream> {
        self.accept()
    }
}
