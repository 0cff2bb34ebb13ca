//! Sockets that the process got from a service manager when it was started: `LISTEN_FDS` and
//! `LISTEN_FDNAMES` (sd_listen_fds(3)).

use std::collections::BTreeSet;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;
use socket2::SockRef;

/// The sockets of the environment that were not taken yet.
pub(super) struct Inherited {
    sockets: ListenFd,
    names: Vec<String>,
    /// If the sockets have no names: the names that were requested, in the order of the sockets.
    requested: Vec<String>,
    /// The names whose sockets were refused: they stay refused, whatever is left of them.
    refused: BTreeSet<String>,
    /// Not to be taken, because another process has handed over its sockets.
    unused: ListenFd,
}

impl Inherited {
    #[cfg(test)]
    fn none() -> Inherited {
        Inherited::new(ListenFd::empty(), ListenFd::empty())
    }

    fn new(sockets: ListenFd, unused: ListenFd) -> Inherited {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let names = parse_names(&names);
        Inherited { sockets, names, requested: Vec::new(), refused: BTreeSet::new(), unused }
    }

    pub(super) fn from_env() -> Inherited {
        Inherited::new(ListenFd::from_env(), ListenFd::empty())
    }

    /// Returns an empty set, and keeps the sockets of the environment from other code.
    pub(super) fn unused_from_env() -> Inherited {
        Inherited::new(ListenFd::empty(), ListenFd::from_env())
    }

    /// Fails if a socket with this name was refused before. A second call, perhaps for another
    /// address, must not open a listener beside it.
    pub(super) fn check_name(&self, name: &str) -> io::Result<()> {
        match self.refused.contains(name) {
            true => Err(refusal(name)),
            false => Ok(()),
        }
    }

    /// Logs which TCP, UDP and Unix sockets (streams and datagrams) nobody has requested, if that
    /// `is_mistake`. None of them is passed on to the processes that this one starts
    /// (sd_listen_fds(3) sets FD_CLOEXEC, too). They stay open: the manager has them as well, so
    /// closing them here would refuse no client.
    pub(super) fn report_rest(mut self, is_mistake: bool) {
        for index in 0..self.sockets.len() {
            if keep_from_children(&mut self.sockets, index) && is_mistake {
                let name = self.names.get(index).map_or("", String::as_str);
                log::warn!(
                    "socket {index} of the environment ({name:?}) was not requested: \
                     whoever connects to it waits in vain"
                );
            }
        }
        for index in 0..self.unused.len() {
            keep_from_children(&mut self.unused, index);
        }
    }

    /// Returns the indices of the sockets with this name. If sockets have no names, each new name
    /// gets the next socket, and the same name gets the same one again, so that a call can be
    /// repeated after an error.
    fn indices(&mut self, name: &str) -> Vec<usize> {
        let count = self.sockets.len();
        if self.names.iter().all(|name| name.is_empty() || name == "unknown") {
            let index =
                self.requested.iter().position(|requested| requested == name).unwrap_or_else(
                    || {
                        self.requested.push(name.to_owned());
                        self.requested.len() - 1
                    },
                );
            return (index..count).take(1).collect();
        }
        let named = self.names.iter().enumerate().filter(|(_, other)| *other == name);
        named.map(|(index, _)| index).filter(|index| *index < count).collect()
    }

    /// Takes the listeners with this name. They are returned even if another socket with the name
    /// is refused.
    pub(super) fn tcp(&mut self, name: &str) -> (Vec<TcpListener>, io::Result<()>) {
        let (mut listeners, mut result) = (Vec::new(), Ok(()));
        for index in self.indices(name) {
            match self.sockets.take_tcp_listener(index) {
                Ok(None) => {}
                Ok(Some(taken)) => match require_listening(name, taken) {
                    Ok(listener) => listeners.push(listener),
                    Err(error) => result = Err(self.note_refusal(name, error)),
                },
                // Of another kind: it is still there, to be requested as what it is.
                Err(error) => result = Err(error),
            }
        }
        (listeners, result)
    }

    pub(super) fn unix(&mut self, name: &str) -> io::Result<Option<UnixListener>> {
        match self.indices(name).first() {
            Some(&index) => {
                let taken = self.sockets.take_unix_listener(index)?;
                taken
                    .map(|taken| require_listening(name, taken))
                    .transpose()
                    .map_err(|error| self.note_refusal(name, error))
            }
            None => Ok(None),
        }
    }

    fn note_refusal(&mut self, name: &str, error: io::Error) -> io::Error {
        if error.kind() == io::ErrorKind::InvalidInput {
            self.refused.insert(name.to_owned());
        }
        error
    }

    pub(super) fn udp(&mut self, name: &str) -> io::Result<Option<UdpSocket>> {
        match self.indices(name).first() {
            Some(&index) => self.sockets.take_udp_socket(index),
            None => Ok(None),
        }
    }
}

/// Refuses a socket that does not listen: a connection, as inetd and `Accept=yes` pass it to a
/// process.
fn require_listening<S: AsFd>(name: &str, socket: S) -> io::Result<S> {
    if SockRef::from(&socket).is_listener()? {
        return Ok(socket);
    }
    Err(refusal(name))
}

fn refusal(name: &str) -> io::Error {
    let message =
        format!("the environment has {name:?}, and that is a socket that does not listen");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Sets FD_CLOEXEC for a socket that was not taken, which `listenfd` does when a socket is taken.
/// Returns whether there was one. It is not closed.
fn keep_from_children(sockets: &mut ListenFd, index: usize) -> bool {
    // Only the number is dropped, so nothing is closed.
    fn keep<S: IntoRawFd>(taken: io::Result<Option<S>>) -> bool {
        taken.ok().flatten().map(IntoRawFd::into_raw_fd).is_some()
    }
    keep(sockets.take_tcp_listener(index))
        || keep(sockets.take_unix_listener(index))
        || keep(sockets.take_udp_socket(index))
        || keep(sockets.take_unix_datagram(index))
}

/// Returns the name of each descriptor, in their order; empty for one without a name.
fn parse_names(list: &str) -> Vec<String> {
    list.split(':').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unnamed_descriptor_keeps_its_place_in_the_list() {
        assert_eq!(parse_names("a::b"), ["a", "", "b"]);
    }

    #[test]
    fn a_connection_is_rejected_as_a_listener() {
        let (connection, _) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
        let error = require_listening("web", connection).expect_err("it does not listen");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_repeated_request_takes_no_further_socket() {
        let mut unnamed = Inherited::none();
        let mut request = |name| {
            unnamed.indices(name);
            unnamed.requested.clone()
        };
        assert_eq!((request("web"), request("web")), (vec!["web".into()], vec!["web".into()]));
        assert_eq!(request("admin"), ["web", "admin"]);
        assert_eq!(request("web"), ["web", "admin"]);
    }

    #[test]
    fn an_empty_environment_has_no_sockets() {
        let mut none = Inherited::none();
        assert!(matches!(none.tcp("web"), (listeners, Ok(())) if listeners.is_empty()));
        assert!(none.unix("web").expect("nothing can fail").is_none());
        assert!(none.udp("web").expect("nothing can fail").is_none());
    }
}
