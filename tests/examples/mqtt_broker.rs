//! The MQTT broker, with and without TLS, with a minimal client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use rotor_bench::server::Server;

use crate::certificates::Certificates;
use crate::support::{PATIENCE, again, connect, example};

/// A client that knows only short packets.
struct Client(TcpStream);

impl Client {
    /// Connects without a session.
    fn connect(address: SocketAddr, name: &str) -> Client {
        let mut client = Client(connect(address));
        client.say(0x10, &[b"\0\x04MQTT\x04\x02\0\0", &string(name)]);
        assert_eq!(client.hear(), [0x20, 2, 0, 0]);
        client
    }

    fn subscribe(&mut self, filter: &str, qos: u8, granted: u8) {
        self.say(0x82, &[&[0, 1], &string(filter), &[qos]]);
        assert_eq!(self.hear(), [0x90, 3, 0, 1, granted]);
    }

    fn say(&mut self, first: u8, parts: &[&[u8]]) {
        let rest = parts.concat();
        let packet = [&[first, rest.len() as u8], &rest[..]].concat();
        self.0.write_all(&packet).expect("the broker takes it");
    }

    /// The next packet, or nothing at EOF.
    fn hear(&mut self) -> Vec<u8> {
        let mut head = [0; 2];
        match again(|| self.0.read(&mut head[..1])).expect("a packet, or a good end") {
            0 => return Vec::new(),
            _ => self.0.read_exact(&mut head[1..]).expect("a length"),
        }
        let mut packet = head.to_vec();
        packet.resize(2 + usize::from(head[1]), 0);
        self.0.read_exact(&mut packet[2..]).expect("the rest");
        packet
    }
}

fn string(text: &str) -> Vec<u8> {
    [&[0, text.len() as u8], text.as_bytes()].concat()
}

#[test]
fn messages_pass_between_plaintext_and_tls_clients() {
    let certificates = Certificates::for_names(&["127.0.0.1"]);
    let broker = certificates.shown_by(example("mqtt_broker"));
    let broker = Server::start(broker, PATIENCE).expect("it starts");
    let line = broker.next_line(PATIENCE).expect("a second line");
    let encrypted = line.strip_prefix("listening with TLS on ").expect("a certificate was named");
    // Adds TLS to the connection of a client without TLS.
    let mut tunnel = Command::new("sh");
    tunnel.args(["-c", "exec \"$0\" \"$2\" \"$1\""]);
    tunnel.arg(example("tcp_proxy").get_program()).arg(format!("tls://{encrypted}"));
    let tunnel = Server::start(certificates.trusted_by(tunnel), PATIENCE).expect("it starts");

    let mut clients = ["clear", "tls"].map(|name| {
        let address = if name == "tls" { tunnel.address() } else { broker.address() };
        let mut client = Client::connect(address, name);
        client.subscribe("rooms/+", 1, 1);
        client
    });
    for (speaker, id) in [(0, 1), (1, 2)] {
        clients[speaker].say(0x32, &[&string("rooms/1"), &[0, 9], b"warm"]);
        let heard = [&[0x32, 15][..], &string("rooms/1"), &[0, id], b"warm"].concat();
        // Its own message and the acknowledgement, in either order.
        let both = [clients[speaker].hear(), clients[speaker].hear()];
        assert!(both.contains(&vec![0x40, 2, 0, 9]) && both.contains(&heard), "{both:x?}");
        assert_eq!(clients[1 - speaker].hear(), heard);
    }
}

#[test]
fn the_broker_prints_its_totals_at_the_end() {
    let mut broker = example("mqtt_broker");
    broker.env("REFUSED_FILTERS", "secret/# private");
    let broker = Server::start(broker, PATIENCE).expect("it starts");
    let (ip, port) = (broker.address().ip(), broker.address().port());
    for try_this in ["sub -h IP -p PORT -v -t '#'", "pub -h IP -p PORT -t rooms/kitchen -m 21.5"] {
        let expected = format!("try: mosquitto_{try_this}");
        let expected = expected.replace("IP", &ip.to_string()).replace("PORT", &port.to_string());
        assert_eq!(broker.next_line(PATIENCE), Some(expected));
    }
    let mut hearer = Client::connect(broker.address(), "hearer");
    hearer.subscribe("secret/#", 2, 0x80);
    hearer.subscribe("#", 2, 2);
    // Connects with a will, and then sends an invalid packet.
    let mut speaker = Client(connect(broker.address()));
    speaker.say(0x10, &[b"\0\x04MQTT\x04\x06\0\0", &string("x"), &string("w"), &string("gone")]);
    assert_eq!(speaker.hear(), [0x20, 2, 0, 0]);
    speaker.say(0x31, &[&string("kept"), b"!"]);
    speaker.say(0xf0, &[]);
    assert_eq!(speaker.hear(), b"");
    assert_eq!(hearer.hear(), [&[0x30, 7][..], &string("kept"), b"!"].concat());
    assert_eq!(hearer.hear(), [&[0x30, 7][..], &string("w"), b"gone"].concat());
    let signal = Command::new("kill").arg(broker.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
    let counts = "at the end: 2 connected, 0 refused, 1 malformed, 0 late, 0 forgotten; \
                  2 published, 1 of them wills, 2 delivered, 0 dropped";
    assert_eq!(broker.next_line(PATIENCE).as_deref(), Some(counts));
    let rest = "0 clients, 0 clients away, 1 retained";
    assert_eq!(broker.next_line(PATIENCE).as_deref(), Some(rest));
    assert_eq!(hearer.hear(), b"");
}
