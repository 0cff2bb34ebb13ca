//! The operations of streams: connect, read, write, shut down.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::Duration;

use rotor_core::net::ReadBuf;
use smoltcp::iface::Interface;
use smoltcp::socket::tcp::{RecvError, Socket, State};

use super::connection::{Connection, Phase};
use super::flow::Flow;
use super::listener_socket::{FIRST_PORT, free_port, random_port};
use super::opening::new_interface;
use super::{Stack, normalize, not_connected, to_duration};
use crate::slots::Id;

/// How many ports are tried at random before a connection in TIME-WAIT has to give up its own. With
/// nine ports of ten in use, one attempt to connect of a thousand finds none of these free.
const PORT_ATTEMPTS: usize = 64;

/// The shortest time without a sign of the peer before it is probed.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);

impl Stack {
    /// Begins to connect.
    pub(crate) fn connect(&mut self, target: SocketAddr) -> io::Result<Id> {
        let remote = normalize(target);
        // RFC 9293 §3.9.2.3.
        let is_group = remote.ip().is_multicast() || self.is_broadcast(remote.ip());
        if remote.ip().is_unspecified() || remote.port() == 0 || is_group {
            let message = format!("{remote} is no address to connect to");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.check_room()?;
        let source = self.source_for(remote.ip())?;
        let mut first_interface = self.first_packet_interface()?;
        let flow = self.choose_flow(remote, source)?;
        let mut connection = Connection::new(flow, Phase::Connecting, self.socket_pool.acquire());
        let socket = connection.socket();
        socket.set_timeout(Some(to_duration(self.config.connect_timeout)));
        let begun = socket.connect(first_interface.context(), flow.remote, flow.local);
        begun.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let id = self.insert_connection(connection);
        self.mark_dirty(id);
        Ok(id)
    }

    /// Chooses the port from which to connect. If no free one is found soon, the oldest connection
    /// to that target in TIME-WAIT is forgotten, as when there are too many of those. If there is
    /// none, all ports are looked at.
    fn choose_flow(&mut self, remote: SocketAddr, source: IpAddr) -> io::Result<Flow> {
        let Stack { random, flows, time_wait, bound_listeners, stats, .. } = self;
        let flow = |port| Flow { remote, local: SocketAddr::new(source, port) };
        let is_in_use =
            |flow: &Flow| flows.contains_key(flow) || bound_listeners.is_taken(flow.local);
        for _ in 0..PORT_ATTEMPTS {
            let flow = flow(random_port(random)?);
            if !is_in_use(&flow) && !time_wait.contains(&flow) {
                return Ok(flow);
            }
        }
        let is_reusable = |ended: &Flow| {
            let is_ours = ended.local.port() >= FIRST_PORT && !is_in_use(ended);
            is_ours && *ended == flow(ended.local.port())
        };
        if let Some(ended) = time_wait.remove_first(is_reusable) {
            stats.time_wait_overflowed += 1;
            return Ok(ended);
        }
        free_port(random, |port| is_in_use(&flow(port))).map(flow)
    }

    /// Makes an interface for the first packet of a connection, and for nothing else.
    ///
    /// The packet's number comes from the interface's generator, an sPCG32 with 64 bits of state.
    /// An attacker who has seen three numbers of one generator can compute all that follow in some
    /// seconds (RFC 6528 §2).
    pub(super) fn first_packet_interface(&mut self) -> io::Result<Box<Interface>> {
        let (seed, now) = (self.random.next_number()?, self.now());
        Ok(Box::new(new_interface(&self.config, &mut self.wire, seed, now)))
    }

    /// Whether there may be one more connection.
    pub(super) fn has_room(&self) -> bool {
        self.connections.len() < self.config.connections_max
    }

    fn check_room(&self) -> io::Result<()> {
        if self.has_room() {
            return Ok(());
        }
        let message = "the stack has as many connections as it may: StackConfig::connections_max";
        Err(io::Error::new(io::ErrorKind::OutOfMemory, message))
    }

    pub(super) fn insert_connection(&mut self, mut connection: Connection) -> Id {
        if self.wire.has_header() {
            // smoltcp waits for a second segment, but a large packet has many in one. It is
            // acknowledged at the end of the turn, together with a response if there is one.
            connection.socket().set_ack_delay(None);
        }
        let flow = connection.flow;
        let id = self.connections.insert(Box::new(connection));
        self.flows.insert(flow, id);
        id
    }

    /// Reads what has arrived.
    pub(crate) fn read(&mut self, id: Id, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let connection = self.connections.get_mut(id).ok_or_else(not_connected)?;
        if connection.phase == Phase::Connecting {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // What had arrived can still be read, as on Linux.
        if connection.is_read_shut_down && connection.socket().recv_queue() == 0 {
            return Ok(());
        }
        let (is_probe, before) = (buf.remaining() == 0, buf.filled());
        let result = receive(connection.socket(), buf);
        connection.record_read(buf.filled() - before);
        match result {
            Ok(()) if is_probe => connection.failure.map_or(Ok(()), |kind| Err(kind.into())),
            Ok(()) if buf.filled() == before => Err(io::ErrorKind::WouldBlock.into()),
            Ok(()) => {
                // The peer may have to be told that there is room again.
                self.mark_dirty(id);
                Ok(())
            }
            Err(RecvError::Finished) => Ok(()),
            // The connection was reset or given up; or both sides have ended it some time ago.
            Err(RecvError::InvalidState) => match connection.failure.take() {
                Some(kind) => Err(kind.into()),
                None => Ok(()),
            },
        }
    }

    /// Takes bytes, to be sent at the end of the turn.
    pub(crate) fn write(&mut self, id: Id, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let connection = self.connections.get_mut(id).ok_or_else(not_connected)?;
        if connection.phase == Phase::Connecting {
            connection.wants_room = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if let Some(kind) = connection.failure.take() {
            return Err(kind.into());
        }
        let (mut taken, mut wanted) = (0, 0);
        for slice in slices {
            wanted += slice.len();
            let count = connection.socket().send_slice(slice);
            taken += count.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            if taken < wanted {
                break;
            }
        }
        // A machine that could not write everything waits for room, even if it tries again before.
        connection.wants_room |= taken < wanted;
        if taken == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.mark_dirty(id);
        Ok(taken)
    }

    /// Shuts down one direction or both. Our end is sent after what was written.
    pub(crate) fn shutdown(&mut self, id: Id, how: Shutdown) -> io::Result<()> {
        let connection = self.connections.get_mut(id).ok_or_else(not_connected)?;
        // After both sides have ended, nobody is there to be told, as on Linux.
        let has_ended = matches!(connection.state(), State::TimeWait | State::Closed);
        if connection.phase == Phase::Connecting || has_ended {
            return Err(io::ErrorKind::NotConnected.into());
        }
        if how != Shutdown::Write {
            connection.is_read_shut_down = true;
        }
        if how != Shutdown::Read {
            connection.socket().close();
            self.mark_dirty(id);
        }
        Ok(())
    }

    /// Aborts the connection with a reset, which is sent at the end of the turn.
    pub(crate) fn reset(&mut self, id: Id) -> io::Result<()> {
        self.with_socket(id, |socket| socket.abort())?;
        self.mark_dirty(id);
        Ok(())
    }

    pub(crate) fn is_connected(&self, id: Id) -> bool {
        self.connections.get(id).is_some_and(|connection| {
            connection.phase == Phase::Open && !connection.has_failed && !connection.is_over()
        })
    }

    /// Returns the addresses of both ends, the local one first.
    pub(crate) fn addresses(&self, id: Id) -> Option<(SocketAddr, SocketAddr)> {
        let flow = self.connections.get(id)?.flow;
        Some((flow.local, flow.remote))
    }

    pub(crate) fn take_error(&mut self, id: Id) -> Option<io::Error> {
        self.connections.get_mut(id)?.failure.take().map(io::Error::from)
    }

    pub(crate) fn set_nodelay(&mut self, id: Id, yes: bool) -> io::Result<()> {
        self.with_socket(id, |socket| socket.set_nagle_enabled(!yes))
    }

    pub(crate) fn set_keepalive(&mut self, id: Id, idle: Option<Duration>) -> io::Result<()> {
        let connection = self.connections.get_mut(id).ok_or_else(not_connected)?;
        connection.probes_window = false;
        // As on the other loops. Without a minimum it could send a probe in each turn.
        let idle = idle.map(|idle| idle.max(KEEPALIVE_MIN));
        connection.socket().set_keep_alive(idle.map(to_duration));
        self.mark_dirty(id);
        Ok(())
    }

    fn with_socket(&mut self, id: Id, change: impl FnOnce(&mut Socket<'_>)) -> io::Result<()> {
        change(self.connections.get_mut(id).ok_or_else(not_connected)?.socket());
        Ok(())
    }
}

/// Copies what has arrived into `buf`, as far as there is room. It is in two parts where the
/// stack's ring buffer wraps around.
fn receive(socket: &mut Socket<'_>, buf: &mut ReadBuf<'_>) -> Result<(), RecvError> {
    let mut put = |bytes: &mut [u8]| (buf.put_slice(bytes), ());
    socket.recv(&mut put)?;
    // If there is an end after the first part, the next read reports it.
    let _end = socket.recv(put);
    Ok(())
}

#[cfg(test)]
mod tests {
    use smoltcp::wire::TcpSeqNumber;

    use super::super::packets::{ACK, FIN};
    use super::super::test_peer::for_each_case;
    use super::super::tests::stack_with_cable;
    use super::super::time_wait::Numbers;
    use super::*;
    use crate::config::StackConfig;
    use crate::device::Medium;

    #[test]
    fn unread_bytes_outlive_time_wait() {
        for_each_case(|mut peer| {
            peer.stack.shutdown(peer.id, Shutdown::Write).expect("it is connected");
            peer.received_acks();
            peer.send(FIN | ACK, b"0123456789");
            for _ in 0..40 {
                peer.clock.advance(Duration::from_secs(1));
                peer.stack.begin_wait(None).expect("the cable is in");
                peer.stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
            }
            assert_eq!(peer.stack.next_deadline(None), None, "nothing is due meanwhile");
            assert_eq!((peer.read(), peer.read()), (10, 0));
            assert!(
                peer.stack.read(peer.id, &mut ReadBuf::new(&mut [0], &mut 0)).is_ok(),
                "the end"
            );
            peer.received_acks();
            assert!(!peer.stack.is_connected(peer.id), "TIME-WAIT was over long ago");
        });
    }

    #[test]
    fn bytes_behind_the_end_of_a_peer_are_ignored() {
        for (is_ended, is_acknowledged) in [(false, true), (true, true), (true, false)] {
            for_each_case(|mut peer| {
                if is_ended {
                    peer.stack.shutdown(peer.id, Shutdown::Write).expect("it is connected");
                }
                if is_acknowledged {
                    peer.received_acks();
                }
                peer.send(FIN | ACK, b"0123456789");
                let after_end = peer.number;
                for _ in 0..2 {
                    peer.number = after_end;
                    peer.send(ACK, b"more");
                    peer.send(FIN | ACK, b"and more");
                    // Partly from before.
                    peer.number = after_end.wrapping_sub(5);
                    peer.send(ACK, b"56789");
                    peer.received_acks();
                    peer.clock.advance(Duration::from_secs(1));
                }
                assert_eq!((peer.read(), peer.read()), (10, 0));
                peer.number = after_end;
                peer.send(ACK, b"more");
                assert_eq!(peer.read(), 0);
            });
        }
    }

    /// TIME-WAIT is over before the peer's end is acknowledged.
    #[test]
    fn unread_bytes_outlive_a_turn_that_takes_longer_than_time_wait() {
        for_each_case(|mut peer| {
            peer.stack.shutdown(peer.id, Shutdown::Write).expect("it is connected");
            peer.received_acks();
            peer.send(FIN | ACK, b"0123456789");
            peer.clock.advance(Duration::from_secs(20));
            for _ in 0..3 {
                peer.stack.begin_wait(None).expect("the cable is in");
                peer.stack.end_wait(None, false, &mut Vec::new()).expect("the cable is in");
            }
            assert_eq!(peer.received_acks(), [peer.number]);
            assert_eq!((peer.read(), peer.read()), (10, 0));
            peer.received_acks();
            assert!(!peer.stack.is_connected(peer.id), "TIME-WAIT was over long ago");
        });
    }

    #[test]
    fn the_last_writes_of_a_loop_are_limited_by_congestion_control() {
        for_each_case(|mut peer| {
            peer.window = 60_000;
            peer.send(ACK, b"");
            peer.received_acks();
            peer.stack.write(peer.id, &[IoSlice::new(&[7; 14_000])]).expect("it is connected");
            let before = peer.acknowledges;
            peer.stack.send_last();
            peer.received_acks();
            let sent = peer.acknowledges.wrapping_sub(before);
            assert!((1..=2_048).contains(&sent), "{sent}");
        });
    }

    #[test]
    fn a_free_port_is_searched_for_only_if_no_connection_is_in_time_wait() {
        let target = ([10, 0, 0, 1], 80).into();
        let numbers = Numbers { sent: TcpSeqNumber(0), expected: TcpSeqNumber(0) };
        for is_in_time_wait in [true, false] {
            let (mut stack, _clock, _cable) = stack_with_cable(Medium::Ip, StackConfig::new());
            let (now, free) = (stack.now(), 60_000);
            let other = stack.connect(([10, 0, 0, 1], 81).into()).expect("there is room");
            for port in (FIRST_PORT..=u16::MAX).filter(|port| *port != free) {
                let flow = Flow { remote: target, local: ([10, 0, 0, 2], port).into() };
                if is_in_time_wait {
                    stack.time_wait.insert(flow, numbers, now, usize::MAX);
                } else {
                    stack.flows.insert(flow, other);
                }
            }
            let id = stack.connect(target).expect("there is a port");
            let port = stack.addresses(id).map(|(local, _)| local.port());
            assert_eq!(port, Some(if is_in_time_wait { FIRST_PORT } else { free }));
            assert_eq!(stack.stats().time_wait_overflowed, u64::from(is_in_time_wait));
        }
    }
}
