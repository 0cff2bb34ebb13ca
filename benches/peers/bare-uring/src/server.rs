//! The server, which does the same as `bare-loop` does on mio.
//!
//! Each connection has a multishot receive. The received bytes are searched for blank lines in
//! place, and the responses of a turn are sent with the call that waits for the next one.

use std::error::Error;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use crate::answer::Answer;
use crate::config::UringConfig;
use crate::inbox::Lender;
use crate::key::{Id, Kind};
use crate::requests::Requests;
use crate::ring::{Completion, Payload, Ring, Wait, Watch};
use crate::slots::Slots;

/// The longest request head held in pieces, in bytes, as in `bare-loop`.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves until the process ends.
pub fn serve() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(contract::address()?)?;
    listener.set_nonblocking(true)?;
    rustix::net::listen(&listener, contract::BACKLOG.into())?;
    let mut server = Server {
        ring: Ring::open(&UringConfig::new())?,
        answer: Answer::from_env()?,
        connections: Slots::new(),
        spare: Vec::new(),
        listener,
    };
    // The only operation that belongs to no connection; nothing else wakes this loop.
    server.ring.poll(server.listener.as_fd(), Watch::Waker);
    contract::announce(server.listener.local_addr()?)?;
    loop {
        server.ring.enter(Wait::Forever)?;
        while let Some(completion) = server.ring.next_completion() {
            if let Some(completion) = completion {
                server.complete(completion)?;
            }
        }
    }
}

struct Server {
    ring: Ring,
    answer: Answer,
    connections: Slots<Connection>,
    /// Buffers that were sent and can be used again.
    spare: Vec<Vec<u8>>,
    listener: TcpListener,
}

struct Connection {
    /// `None` once it is closed.
    socket: Option<OwnedFd>,
    requests: Requests,
    /// Requests that arrived while responses were being sent.
    owed: usize,
    is_receiving: bool,
    is_sending: bool,
    /// What waits for room in the socket.
    unsent: Option<Vec<u8>>,
}

impl Server {
    fn complete(&mut self, completion: Completion) -> io::Result<()> {
        let Completion { key, result, is_last, payload } = completion;
        match key.kind() {
            Kind::Wake => {
                if is_last {
                    self.ring.poll(self.listener.as_fd(), Watch::Waker);
                }
                return self.accept();
            }
            Kind::Receive => self.received(key.id(), result, is_last, payload),
            Kind::Send => self.sent(key.id(), result, payload),
            Kind::Room => self.send_unsent(key.id()),
            _ => {}
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) => return Err(e),
            };
            // This fails if the peer is gone already, which affects only this connection.
            if socket.set_nodelay(true).is_err() {
                continue;
            }
            let id = self.connections.insert(Connection {
                socket: Some(socket.into()),
                requests: Requests::default(),
                owed: 0,
                is_receiving: false,
                is_sending: false,
                unsent: None,
            });
            self.receive(id);
        }
    }

    fn receive(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(socket) = &connection.socket else { return };
        connection.is_receiving = true;
        self.ring.receive(socket.as_fd(), id);
    }

    fn received(&mut self, id: Id, result: i32, is_last: bool, payload: Payload) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_receiving = !is_last;
        let mut is_too_long = false;
        if let Payload::Piece(piece) = payload {
            connection.owed += connection.requests.take(self.ring.bytes(&piece));
            is_too_long = connection.requests.begun_bytes() > HEAD_BYTES_MAX;
            self.ring.release(piece);
        }
        // If no buffer was free, the receive is repeated.
        let has_ended = result <= 0 && result != -rustix::io::Errno::NOBUFS.raw_os_error();
        if has_ended || is_too_long {
            return self.close(id);
        }
        if is_last {
            self.receive(id);
        }
        self.send_owed(id);
    }

    /// Sends the next responses, once the previous ones have been sent.
    fn send_owed(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.is_sending || connection.owed == 0 {
            return;
        }
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        for _ in 0..std::mem::take(&mut connection.owed) {
            memory.extend_from_slice(&self.answer.bytes);
        }
        self.send(id, memory);
    }

    fn send(&mut self, id: Id, memory: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(socket) = &connection.socket else { return };
        connection.is_sending = true;
        self.ring.send(socket.as_fd(), memory, id);
    }

    fn sent(&mut self, id: Id, result: i32, payload: Payload) {
        let Payload::Memory(mut memory) = payload else { return };
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_sending = false;
        let is_full = result == -rustix::io::Errno::AGAIN.raw_os_error();
        match usize::try_from(if is_full { 0 } else { result }) {
            Ok(count) if count < memory.len() => {
                memory.drain(..count);
                return self.wait_for_room(id, memory);
            }
            Ok(_) if !self.answer.close => {}
            _ => self.close(id),
        }
        self.spare.push(memory);
        self.send_owed(id);
        self.forget(id);
    }

    /// Sends the rest when the socket has room: the ring's sends do not wait for that.
    fn wait_for_room(&mut self, id: Id, memory: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some(socket) = &connection.socket else { return self.forget(id) };
        connection.is_sending = true;
        connection.unsent = Some(memory);
        self.ring.poll(socket.as_fd(), Watch::Room(id));
    }

    fn send_unsent(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.is_sending = false;
        let Some(memory) = connection.unsent.take() else { return };
        self.send(id, memory);
        self.forget(id);
    }

    fn close(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if let Some(socket) = connection.socket.take() {
            if connection.is_receiving {
                self.ring.cancel(id.key(Kind::Receive));
            }
            if connection.unsent.is_some() {
                self.ring.cancel(id.key(Kind::Room));
            }
            self.ring.close(socket);
        }
        self.forget(id);
    }

    /// Removes a connection that is closed and has no operation in the kernel.
    fn forget(&mut self, id: Id) {
        let is_over = self.connections.get(id).is_some_and(|connection| {
            connection.socket.is_none() && !connection.is_receiving && !connection.is_sending
        });
        if is_over {
            self.connections.remove(id);
        }
    }
}
