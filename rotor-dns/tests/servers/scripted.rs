//! A scripted name server, on UDP and TCP at one loopback port.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// What the server does with one query.
pub(crate) enum Act {
    /// Sends a message: on UDP a datagram, on TCP with its length in front.
    Send(Vec<u8>),
    /// Sends a datagram from another port.
    SendFromElsewhere(Vec<u8>),
    /// Sends a datagram from the same port of another address.
    #[cfg(target_os = "linux")]
    SendFromNextAddress(Vec<u8>),
    /// On TCP: sends these bytes unchanged, one by one.
    Dribble(Vec<u8>),
    /// On TCP: keeps the connection open until the client ends it.
    Hang,
}

pub(crate) type Script = dyn Fn(&[u8], bool) -> Vec<Act> + Send + Sync;

/// A server whose threads end when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) udp_queries: Arc<AtomicUsize>,
    pub(crate) tcp_queries: Arc<AtomicUsize>,
    pub(crate) queries: Arc<Mutex<Vec<Vec<u8>>>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(
        script: impl Fn(&[u8], bool) -> Vec<Act> + Send + Sync + 'static,
    ) -> Server {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().expect("bound");
        let script: Arc<Script> = Arc::new(script);
        let mut server = Server {
            address,
            udp_queries: Arc::default(),
            tcp_queries: Arc::default(),
            queries: Arc::default(),
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        let (count, over, seen, act) = (
            server.udp_queries.clone(),
            server.is_over.clone(),
            server.queries.clone(),
            script.clone(),
        );
        server.threads.push(thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((length, from)) = udp.recv_from(&mut buffer) {
                if over.load(SeqCst) {
                    return;
                }
                count.fetch_add(1, SeqCst);
                seen.lock().expect("no panic").push(buffer[..length].to_vec());
                answer_datagram(&udp, from, act(&buffer[..length], false));
            }
        }));
        let (count, over) = (server.tcp_queries.clone(), server.is_over.clone());
        server.threads.push(thread::spawn(move || {
            while let Ok((connection, _)) = tcp.accept() {
                if over.load(SeqCst) {
                    return;
                }
                count.fetch_add(1, SeqCst);
                // The client may have ended the connection already.
                let _ = answer_stream(connection, &*script);
            }
        }));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        let knock = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        knock.send_to(b"end", self.address).expect("loopback takes it");
        drop(TcpStream::connect(self.address));
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the scripted server panicked");
        }
    }
}

fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = udp.local_addr().expect("bound");
        if let Ok(tcp) = TcpListener::bind(address) {
            return (udp, tcp);
        }
    }
    panic!("no port is free for both UDP and TCP");
}

fn answer_datagram(udp: &UdpSocket, to: SocketAddr, acts: Vec<Act>) {
    for act in acts {
        let _sent = match act {
            Act::Send(message) => udp.send_to(&message, to),
            Act::SendFromElsewhere(message) => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
                .and_then(|other| other.send_to(&message, to)),
            // On Linux, all of 127.0.0.0/8 is this machine.
            #[cfg(target_os = "linux")]
            Act::SendFromNextAddress(message) => {
                let port = udp.local_addr().expect("bound").port();
                UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), port))
                    .and_then(|other| other.send_to(&message, to))
            }
            Act::Dribble(_) | Act::Hang => Ok(0),
        };
    }
}

fn answer_stream(mut connection: TcpStream, script: &Script) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut length = [0; 2];
    connection.read_exact(&mut length)?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    connection.read_exact(&mut query)?;
    for act in script(&query, true) {
        match act {
            Act::Send(message) => {
                connection.write_all(&(message.len() as u16).to_be_bytes())?;
                connection.write_all(&message)?;
            }
            Act::Dribble(bytes) => {
                bytes.iter().try_for_each(|byte| connection.write_all(&[*byte]))?
            }
            Act::Hang => drop(connection.read(&mut [0; 16])?),
            Act::SendFromElsewhere(_) => {}
            #[cfg(target_os = "linux")]
            Act::SendFromNextAddress(_) => {}
        }
    }
    Ok(())
}
