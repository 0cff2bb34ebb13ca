//! `SocketPool`: sockets of ended connections, for new connections.
//!
//! A socket owns its buffers, which are zeroed when they are made: with 64 KiB for each direction,
//! that is a third of the cost of a short connection. smoltcp cannot take the buffers out of a
//! socket, but can reuse a socket whose connection has ended.

use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};

use crate::config::{Congestion, StackConfig};

/// How many bytes of buffers are kept at most. Larger buffers are not kept: they come from the
/// system, which has zeroed them already.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long smoltcp delays an acknowledgement by default.
const ACK_DELAY: smoltcp::time::Duration = smoltcp::time::Duration::from_millis(10);

pub(super) struct SocketPool {
    sockets: Vec<Socket<'static>>,
    max: usize,
    receive_buffer_bytes: usize,
    send_buffer_bytes: usize,
    congestion: CongestionControl,
}

impl SocketPool {
    pub(super) fn new(config: &StackConfig) -> SocketPool {
        let StackConfig { receive_buffer_bytes, send_buffer_bytes, .. } = *config;
        SocketPool {
            sockets: Vec::new(),
            max: BYTES_MAX / (receive_buffer_bytes + send_buffer_bytes).max(1),
            receive_buffer_bytes,
            send_buffer_bytes,
            congestion: match config.congestion {
                Congestion::Cubic => CongestionControl::Cubic,
                Congestion::Off => CongestionControl::None,
            },
        }
    }

    /// Returns a socket without a connection: the last one that was given back, while it is in the
    /// cache.
    pub(super) fn acquire(&mut self) -> Socket<'static> {
        let mut socket = self.sockets.pop().unwrap_or_else(|| {
            let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
            Socket::new(buffer(self.receive_buffer_bytes), buffer(self.send_buffer_bytes))
        });
        // What the previous connection has learned of its path does not apply to the next one.
        socket.set_congestion_control(self.congestion);
        socket
    }

    /// Takes back the socket of a forgotten connection. It is in no set any more, so its abort
    /// sends nothing.
    pub(super) fn release(&mut self, mut socket: Socket<'static>) {
        if self.sockets.len() == self.max {
            return;
        }
        // Listening and connecting reset the state of a connection, but not its settings.
        socket.abort();
        socket.set_timeout(None);
        socket.set_keep_alive(None);
        socket.set_nagle_enabled(true);
        socket.set_ack_delay(Some(ACK_DELAY));
        self.sockets.push(socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: u16 = 80;

    fn with(buffer_bytes: usize) -> SocketPool {
        let config = StackConfig::new().receive_buffer_bytes(buffer_bytes);
        SocketPool::new(&config.send_buffer_bytes(buffer_bytes))
    }

    #[test]
    fn a_reused_socket_has_default_settings() {
        let mut socket_pool = with(4_096);
        let mut socket = socket_pool.acquire();
        let of = |socket: &Socket<'_>| {
            let set = (socket.timeout(), socket.keep_alive(), socket.nagle_enabled());
            (set, socket.ack_delay(), socket.state())
        };
        let fresh = of(&socket);
        socket.listen(PORT).expect("it has no connection");
        let long = Some(smoltcp::time::Duration::from_secs(9));
        socket.set_timeout(long);
        socket.set_keep_alive(long);
        socket.set_nagle_enabled(false);
        socket.set_ack_delay(None);
        let used = of(&socket);
        assert!(used.0.0 != fresh.0.0 && used.0.1 != fresh.0.1 && used.0.2 != fresh.0.2);
        assert!(used.1 != fresh.1 && used.2 != fresh.2);
        socket_pool.release(socket);
        let mut again = socket_pool.acquire();
        assert_eq!(of(&again), fresh);
        assert_eq!(socket_pool.sockets.len(), 0, "it is the same one");
        again.listen(PORT).expect("it has no connection");
        assert_eq!((again.recv_capacity(), again.send_capacity()), (4_096, 4_096));
    }

    #[test]
    fn sockets_are_kept_up_to_a_number_of_bytes() {
        for (buffer_bytes, kept) in [(2_048, 2_048), (64 * 1_024, 64), (4 << 20, 1), (5 << 20, 0)] {
            let mut socket_pool = with(buffer_bytes);
            let sockets: Vec<_> = (0..kept + 3).map(|_| socket_pool.acquire()).collect();
            sockets.into_iter().for_each(|socket| socket_pool.release(socket));
            assert_eq!(socket_pool.sockets.len(), kept, "{buffer_bytes}");
        }
    }
}
