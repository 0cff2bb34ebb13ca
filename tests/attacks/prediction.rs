//! An off-path attacker sees a random number that a service shows to everybody, computes the next
//! query of its resolver, and gets a forged answer there first.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream as Client, UdpSocket};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rotor::dns::{Data, Dns, Kind, Question, ResolvConf, Resolver, ResolverConfig};
use rotor::http::files::{FilesConfig, StaticFiles};
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{Inet, ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, LoopHandle, rotor_compose};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(100);

/// The host that is looked up, and its labels as in a DNS message.
const HOST: &str = "login.bank.example";
const LABELS: [&str; 3] = ["login", "bank", "example"];
const HONEST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FORGED: Ipv4Addr = Ipv4Addr::new(6, 6, 6, 6);

rotor_compose! {
    enum App <()> {
        Files(HttpAccept<StaticFiles<()>, TcpListener>),
        Names(Resolver<Inet, ()>),
    }
}

/// A service that serves files to everybody and does its own DNS lookups. Both run in one loop, on
/// its own thread.
struct Service {
    http: SocketAddr,
    dns: Dns,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    fn start(name_server: SocketAddr) -> Service {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut creator = Loop::new(&Config::new()).expect("a loop");
            let files = FilesConfig::new(env!("CARGO_MANIFEST_DIR")).open().expect("a directory");
            let http = creator.add_part(App::Files, |scope| {
                let any = (Ipv4Addr::LOCALHOST, 0).into();
                let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
                let address = listener.local_address().ok_or("it is bound")?;
                Ok((
                    address,
                    server::listen(listener, HttpSeed::new(files, ServerConfig::new()), scope),
                ))
            });
            let config = ResolverConfig::new(ResolvConf::default()).servers(vec![name_server]);
            let dns = creator.add_part(App::Names, |scope| Ok(Resolver::new(config, scope)));
            let parts = (http.expect("a listener"), dns.expect("a resolver"), creator.handle());
            sender.send(parts).expect("the test waits");
            creator.instantiate(()).run().expect("it runs");
        });
        let (http, dns, handle) = receiver.recv_timeout(PATIENCE).expect("it starts");
        Service { http, dns, handle, thread: Some(thread) }
    }

    /// The multipart boundary that anybody gets who requests two ranges of a file.
    fn boundary(&self) -> String {
        let mut client = Client::connect(self.http).expect("it listens");
        client.set_read_timeout(Some(PATIENCE)).expect("not zero");
        let fields = "Host: a\r\nConnection: close\r\nRange: bytes=0-0,9-9";
        write!(client, "GET /Cargo.toml HTTP/1.1\r\n{fields}\r\n\r\n").expect("it is taken");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("it is answered");
        let answer = String::from_utf8(answer).expect("text");
        let (_, boundary) = answer.split_once("; boundary=").expect("several parts");
        boundary.lines().next().unwrap_or_default().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || thread::panicking(), "the service panicked");
        }
    }
}

/// SplitMix64. Every step is invertible: the state follows from the output.
struct SplitMix64(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTORS: [u64; 2] = [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];
/// The inverses of the factors modulo 2^64.
const INVERSES: [u64; 2] = [0x96DE_1B17_3F11_9089, 0x3196_42B2_D24D_8EC3];

impl SplitMix64 {
    fn after(output: u64) -> SplitMix64 {
        let undo_shift = |z: u64, by: u32| (0..64 / by).fold(z, |undone, _| z ^ (undone >> by));
        let z = undo_shift(output, 31).wrapping_mul(INVERSES[1]);
        let z = undo_shift(z, 27).wrapping_mul(INVERSES[0]);
        SplitMix64(undo_shift(z, 30))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(FACTORS[0]);
        let z = (z ^ (z >> 27)).wrapping_mul(FACTORS[1]);
        z ^ (z >> 31)
    }
}

/// What distinguishes a query from others.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Marks {
    port: u16,
    id: u16,
    /// The name on the wire, with its mixed case.
    name: Vec<u8>,
}

impl Marks {
    /// Predicts the next query of a loop whose generator continues with these numbers. It assumes
    /// that ids, letter case and ports are drawn as they were when this attack was found: from the
    /// upper bits of each number.
    fn predicted(numbers: &mut SplitMix64) -> Marks {
        let mut bits = || (numbers.next() >> 32) as u32;
        // A query is built once more before it is sent.
        let (_, _, id, case, port) = (bits(), bits(), bits(), bits(), bits());
        let mut name = Vec::new();
        let mut left = 32;
        for label in LABELS {
            name.push(label.len() as u8);
            name.extend(label.bytes().map(|byte| {
                left -= 1;
                if case >> left & 1 == 1 { byte.to_ascii_uppercase() } else { byte }
            }));
        }
        name.push(0);
        Marks { port: 1024 + (port % (65_536 - 1024)) as u16, id: (id >> 16) as u16, name }
    }

    /// The marks of a real query, which the attacker cannot see.
    fn seen(query: &[u8], from: SocketAddr) -> Marks {
        let end = 12 + HOST.len() + 2;
        Marks {
            port: from.port(),
            id: u16::from_be_bytes([query[0], query[1]]),
            name: query[12..end].into(),
        }
    }

    /// An answer that matches: one address, with a TTL of a minute.
    fn answer(&self, address: Ipv4Addr) -> Vec<u8> {
        let id = self.id.to_be_bytes();
        let head = [id[0], id[1], 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
        let (question, record) = ([0, 1, 0, 1], [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        [&head[..], &self.name, &question, &record, &address.octets()].concat()
    }
}

#[test]
fn a_visible_multipart_boundary_does_not_reveal_the_next_dns_query() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    server.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let service = Service::start(server.local_addr().expect("bound"));

    let boundary = service.boundary();
    let halves: Vec<u64> = [&boundary[..16], &boundary[16..]]
        .into_iter()
        .map(|half| u64::from_str_radix(half, 16).expect("hexadecimal digits"))
        .collect();

    let question = Question { name: HOST.parse().expect("a name"), kind: Kind::A };
    let reply = service.dns.records().ask_from_thread(question).expect("there is room");
    let mut query = [0; 512];
    let (length, asker) = loop {
        match server.recv_from(&mut query) {
            // The process was stopped and continued meanwhile (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => break received.expect("it asks"),
        }
    };
    // The attacker spoofs the server's address, as anybody can who can send forged datagrams at
    // all, and is faster than the server.
    let predicted = Marks::predicted(&mut SplitMix64::after(halves[1]));
    let to = SocketAddr::new(asker.ip(), predicted.port);
    server.send_to(&predicted.answer(FORGED), to).expect("loopback takes it");
    let seen = Marks::seen(&query[..length], asker);
    server.send_to(&seen.answer(HONEST), asker).expect("loopback takes it");

    let answer = reply.wait().expect("a reply").expect("an answer");
    assert_eq!(answer.data, [Data::A(HONEST)]);
    assert_ne!(predicted, seen);
    // The second half would have confirmed the attacker's guess.
    assert_ne!(SplitMix64::after(halves[0]).next(), halves[1]);
}
