//! Each field of a configuration at its extremes, with a small real exchange: at an extreme that
//! restricts nothing it succeeds, and at any other it succeeds or fails with an error.
#![forbid(unsafe_code)]

mod rig;

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use rig::{Rig, SERVER, config, text};
use rotor_core::net::{Listener, StreamSocket};
use rotor_smoltcp::{Medium, MemoryConfig, SmoltcpTcpStream, StackConfig};

type Set<V> = fn(StackConfig, V) -> StackConfig;

const SIZES: [(&str, Set<usize>); 9] = [
    ("receive_buffer_bytes", StackConfig::receive_buffer_bytes),
    ("send_buffer_bytes", StackConfig::send_buffer_bytes),
    ("datagrams_max", StackConfig::datagrams_max),
    ("backlog_max", StackConfig::backlog_max),
    ("lingering_max", StackConfig::lingering_max),
    ("time_wait_max", StackConfig::time_wait_max),
    ("connections_max", StackConfig::connections_max),
    ("packets_max", StackConfig::packets_max),
    ("rejections_per_second", |config, n| config.rejections_per_second(n as u32)),
];

const TIMES: [(&str, Set<Duration>); 4] = [
    ("half_open_timeout", StackConfig::half_open_timeout),
    ("connect_timeout", StackConfig::connect_timeout),
    ("user_timeout", StackConfig::user_timeout),
    ("linger", StackConfig::linger),
];

/// Each field with each of its extremes at both ends, and whether that restricts nothing; then all
/// of them together.
fn extremes() -> Vec<(String, [StackConfig; 2], bool)> {
    let mut all = Vec::new();
    let new = || [config(1), config(2)];
    let [mut least, mut greatest] = [new(), new()];
    for (name, set) in SIZES {
        for size in [0, 1, usize::MAX] {
            let configs = new().map(|config| set(config, size));
            all.push((format!("{name}({size})"), configs, size == usize::MAX));
        }
        least = least.map(|config| set(config, 0));
        greatest = greatest.map(|config| set(config, usize::MAX));
    }
    for (name, set) in TIMES {
        for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            let configs = new().map(|config| set(config, time));
            all.push((format!("{name}({time:?})"), configs, time == Duration::MAX));
        }
        least = least.map(|config| set(config, Duration::ZERO));
        greatest = greatest.map(|config| set(config, Duration::MAX));
    }
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

/// `None` for `WouldBlock`.
fn unless_blocked<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

/// The server's end of a connection: sends everything back, and ends after the client.
struct Echo {
    socket: SmoltcpTcpStream,
    unsent: Vec<u8>,
    has_ended: bool,
    is_done: bool,
}

impl Echo {
    fn proceed(&mut self) -> io::Result<()> {
        let mut chunk = [0; 5_000];
        while !self.has_ended
            && let Some(len) = unless_blocked(self.socket.read(&mut chunk))?
        {
            self.unsent.extend_from_slice(&chunk[..len]);
            self.has_ended = len == 0;
        }
        while !self.unsent.is_empty()
            && let Some(len) = unless_blocked(self.socket.write(&self.unsent))?
        {
            self.unsent.drain(..len);
        }
        if self.has_ended && self.unsent.is_empty() && !std::mem::replace(&mut self.is_done, true) {
            self.socket.shutdown(Shutdown::Write)?;
        }
        Ok(())
    }
}

/// Sends a text to the server, which sends it back, and ends both sides.
fn exchange(rig: &mut Rig, len: usize) -> io::Result<Vec<u8>> {
    let mut listener = rig.server.listen_on((SERVER, 80).into(), 8);
    let mut client = rig.client.connect((SERVER, 80).into());
    let all = text(len);
    let (mut server, mut sent, mut got) = (None, 0, Vec::new());
    let mut chunk = [0; 5_000];
    for _ in 0..100_000 {
        if server.is_none()
            && let Some((mut socket, _)) = unless_blocked(listener.accept())?
        {
            rig.server.register(&mut socket);
            server = Some(Echo { socket, unsent: Vec::new(), has_ended: false, is_done: false });
        }
        if let Some(server) = &mut server {
            server.proceed()?;
        }
        if client.has_connected()? {
            while sent < len
                && let Some(count) = unless_blocked(client.write(&all[sent..]))?
            {
                sent += count;
                if sent == len {
                    client.shutdown(Shutdown::Write)?;
                }
            }
            while let Some(count) = unless_blocked(client.read(&mut chunk))? {
                got.extend_from_slice(&chunk[..count]);
                if count == 0 {
                    return Ok(got);
                }
            }
        }
        rig.turn();
    }
    panic!("it does not end, with {sent} sent and {} back: {rig:?}", got.len());
}

fn check(case: &str, rig: &mut Rig, len: usize, is_greatest: bool) {
    match exchange(rig, len) {
        Ok(got) => assert!(got == text(len), "{case}: {} bytes", got.len()),
        Err(error) => {
            let is_known =
                [ErrorKind::TimedOut, ErrorKind::ConnectionReset].contains(&error.kind());
            assert!(is_known && !is_greatest, "{case}: {error}");
        }
    }
}

#[test]
fn with_any_field_at_its_extremes_a_text_comes_back_or_the_connection_fails() {
    for (case, [server, client], is_greatest) in extremes() {
        let mut rig = Rig::with(MemoryConfig::new(), server, client);
        check(&case, &mut rig, 200_000, is_greatest);
    }
}

/// The shortest packets are too short for IPv6.
fn only_ipv4(last: u8) -> StackConfig {
    let config = StackConfig::new().hardware_address([2, 0, 0, 0, 0, last]).seed(last.into());
    config.address([10, 0, 0, last].into(), 24)
}

/// A cable, and whether it delivers every packet in the end.
fn cables() -> Vec<(MemoryConfig, bool)> {
    let new = MemoryConfig::new;
    let soon = Duration::from_millis(5);
    vec![
        (new().mtu(0), true),
        (new().mtu(usize::MAX), true),
        (new().packets_max(0), true),
        (new().packets_max(usize::MAX), true),
        (new().latency(Duration::from_nanos(1)), true),
        (new().latency(Duration::MAX), false),
        (new().lost(u16::MAX), false),
        (new().doubled(u16::MAX), true),
        (new().delayed(u16::MAX, Duration::ZERO), true),
        (new().delayed(u16::MAX, soon), true),
        (new().delayed(500, Duration::MAX), false),
        (new().corrupted(u16::MAX), false),
    ]
}

#[test]
fn over_a_cable_at_its_extremes_a_text_comes_back_or_the_connection_fails() {
    let small = |config: StackConfig| config.receive_buffer_bytes(0).send_buffer_bytes(0);
    for (at, (cable, delivers)) in cables().into_iter().enumerate() {
        for medium in [Medium::Ip, Medium::Ethernet] {
            let cable = cable.clone().medium(medium);
            let mut rig = Rig::with(cable.clone(), only_ipv4(1), only_ipv4(2));
            check(&format!("cable {at}"), &mut rig, 20_000, delivers);
            let mut rig = Rig::with(cable, small(only_ipv4(1)), small(only_ipv4(2)));
            check(&format!("cable {at} with small buffers"), &mut rig, 20_000, delivers);
        }
    }
}
