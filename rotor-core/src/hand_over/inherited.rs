//! Sockets that a service manager has started the process with: `LISTEN_FDS` and `LISTEN_FDNAMES`
//! (sd_listen_fds(3)).

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use socket2::SockRef;

/// The sockets of the environment that were not taken yet.
pub(super) struct Inherited {
    sockets: ListenFd,
    names: Vec<String>,
    /// The first socket that was not taken, if sockets have no names.
    next: usize,
}

impl Inherited {
    pub(super) fn none() -> Inherited {
        Inherited { sockets: ListenFd::empty(), names: Vec::new(), next: 0 }
    }

    pub(super) fn from_env() -> Inherited {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        Inherited { sockets: ListenFd::from_env(), names: names_in(&names), next: 0 }
    }

    /// Returns which sockets belong to a name: all that bear it or, if there are no names, the next
    /// one.
    fn indices(&mut self, name: &str) -> Vec<usize> {
        let count = self.sockets.len();
        if self.names.iter().all(|name| name.is_empty() || name == "unknown") {
            let index = self.next;
            self.next += 1;
            return (index..count).take(1).collect();
        }
        let named = self.names.iter().enumerate().filter(|(_, other)| *other == name);
        named.map(|(index, _)| index).filter(|index| *index < count).collect()
    }

    pub(super) fn tcp(&mut self, name: &str) -> io::Result<Vec<TcpListener>> {
        let indices = self.indices(name);
        let taken = indices.into_iter().map(|index| self.sockets.take_tcp_listener(index));
        taken.filter_map(Result::transpose).map(|taken| listening(name, taken?)).collect()
    }

    pub(super) fn unix(&mut self, name: &str) -> io::Result<Option<UnixListener>> {
        match self.indices(name).first() {
            Some(&index) => {
                let taken = self.sockets.take_unix_listener(index)?;
                taken.map(|taken| listening(name, taken)).transpose()
            }
            None => Ok(None),
        }
    }

    pub(super) fn udp(&mut self, name: &str) -> io::Result<Option<UdpSocket>> {
        match self.indices(name).first() {
            Some(&index) => self.sockets.take_udp_socket(index),
            None => Ok(None),
        }
    }
}

/// Refuses a socket that does not listen: a connection, which inetd and `Accept=yes` pass to a process.
fn listening<S: AsFd>(name: &str, socket: S) -> io::Result<S> {
    if SockRef::from(&socket).is_listener()? {
        return Ok(socket);
    }
    let message =
        format!("the environment has {name:?}, and that is a socket that does not listen");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns a name for each descriptor, in their order; an empty one if it has none.
fn names_in(list: &str) -> Vec<String> {
    list.split(':').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_without_a_name_counts() {
        assert_eq!(names_in("a::b"), ["a", "", "b"]);
    }

    #[test]
    fn a_connection_is_no_listener() {
        let (connection, _) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
        let error = listening("web", connection).expect_err("it does not listen");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn without_sockets_nothing_is_found() {
        let mut none = Inherited::none();
        assert!(none.tcp("web").expect("nothing can fail").is_empty());
        assert!(none.unix("web").expect("nothing can fail").is_none());
        assert!(none.udp("web").expect("nothing can fail").is_none());
    }
}
