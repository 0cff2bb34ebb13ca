//! An outside server that cannot report its port.
#![expect(clippy::disallowed_methods, reason = "a test that waits for the port of another program")]

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rotor_test_kit::{Directory, Process};
use socket2::{Domain, Socket, Type};

use crate::support::PATIENCE;

/// How many ports are tried.
const PORTS_TRIED: usize = 5;

/// An outside server in the foreground, with a directory of its own; killed on drop.
pub(crate) struct Daemon {
    /// Before the directory, which is removed after the process has ended.
    process: Process,
    directory: Directory,
    pub(crate) port: u16,
    /// Keeps the port from all who do not ask for it by its number.
    _reserved: Socket,
}

impl Daemon {
    /// Starts the server that `command` makes for a directory and a port of 127.0.0.1.
    pub(crate) fn start(command: impl Fn(&Path, u16) -> Command) -> Daemon {
        // It exits if another process has taken the port meanwhile.
        let mut why = String::new();
        for _ in 0..PORTS_TRIED {
            match Daemon::start_once(&command) {
                Ok(daemon) => return daemon,
                Err(ended) => why = ended,
            }
        }
        panic!("the server ended: {why}");
    }

    fn start_once(command: impl Fn(&Path, u16) -> Command) -> Result<Daemon, String> {
        let directory = Directory::create();
        let (reserved, port) = reserve_port().expect("a free port");
        let mut command = command(&directory, port);
        let errors = File::create(directory.join("stderr")).expect("a temporary file");
        let process = command.stderr(errors).spawn();
        let process = process.unwrap_or_else(|error| panic!("{command:?}: {error}")).into();
        let mut daemon = Daemon { process, directory, port, _reserved: reserved };
        daemon.wait_until_it_listens()?;
        Ok(daemon)
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "the server does not listen");
            if let Some(status) = self.process.try_wait().expect("it is our child") {
                let errors = fs::read_to_string(self.directory.join("stderr")).unwrap_or_default();
                return Err(format!("{status}\n{errors}"));
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// Finds a free port of 127.0.0.1. As long as the socket is open, the system assigns the port to
/// nobody else, but another socket may listen on it (SO_REUSEADDR of both, socket(7)).
fn reserve_port() -> io::Result<(Socket, u16)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    let address = socket.local_addr()?.as_socket();
    let address = address.ok_or_else(|| io::Error::other("it has no port"))?;
    Ok((socket, address.port()))
}
