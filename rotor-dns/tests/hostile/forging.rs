//! Forged answers, and how hard it is to forge one.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;

use rotor_core::net::{DatagramSocket, Net, TcpListener, TcpStream, UdpSocket};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};
use rotor_dns::{Kind, LookupResult};

use crate::scripted::{Act, Server};
use crate::wire::{AAAA, address, found};
use crate::{PATIENCE, config, is_right, one, question, records, right_answer, run_on};

#[test]
fn answers_that_do_not_match_are_ignored() {
    type Forge = fn(Vec<u8>) -> Act;
    let other_id = |mut message: Vec<u8>| {
        message[1] ^= 1;
        Act::Send(message)
    };
    let other_name = |mut message: Vec<u8>| {
        message[13] ^= 0x07;
        Act::Send(message)
    };
    let no_response = |mut message: Vec<u8>| {
        message[2] &= 0x7f;
        Act::Send(message)
    };
    let two_questions = |mut message: Vec<u8>| {
        message[5] = 2;
        Act::Send(message)
    };
    // The question has 13 bytes of name, then the type and the class; the second byte of each says
    // A and IN.
    let other_type = |mut message: Vec<u8>| {
        message[26] = AAAA as u8;
        Act::Send(message)
    };
    let other_class = |mut message: Vec<u8>| {
        message[28] = 3;
        Act::Send(message)
    };
    let forgeries: [(&str, Forge); 8] = [
        ("another id", other_id),
        ("another name", other_name),
        ("another type", other_type),
        ("another class", other_class),
        ("no response", no_response),
        ("two questions", two_questions),
        ("another port", Act::SendFromElsewhere),
        ("nearly nothing", |message| Act::Send(message[..11].to_vec())),
    ];
    #[cfg(target_os = "linux")]
    let forgeries = [&forgeries[..], &[("another address", Act::SendFromNextAddress)]].concat();
    for (what, forge) in forgeries {
        let server = Server::start(move |query, _| {
            let forged = found(query, &[address("www.example", 66)]);
            vec![forge(forged), Act::Send(right_answer(query))]
        });
        let reply = one(&server, PATIENCE);
        assert!(is_right(&reply), "{what}: {reply:?}");
        assert_eq!(server.tcp_queries.load(SeqCst), 0, "{what}");
    }
}

#[test]
fn a_flood_of_forged_answers_leads_to_tcp() {
    let server = Server::start(|query, is_tcp| {
        if is_tcp {
            return vec![Act::Send(right_answer(query))];
        }
        let forged = |id: u8| {
            let mut message = found(query, &[address("www.example", 66)]);
            message[0] ^= 1 + id;
            Act::Send(message)
        };
        (0..40).map(forged).collect()
    });
    assert!(is_right(&one(&server, PATIENCE)));
    assert_eq!(server.tcp_queries.load(SeqCst), 1);
}

#[test]
fn a_server_that_changes_the_case_is_asked_over_tcp() {
    let server = Server::start(|query, _| {
        let mut message = right_answer(query);
        message[12..25].make_ascii_lowercase();
        vec![Act::Send(message)]
    });
    // By chance, all thirteen letters are lower case once in some thousand questions; then UDP is
    // enough.
    let replies: Vec<LookupResult> = (0..4).map(|_| one(&server, PATIENCE)).collect();
    assert!(replies.iter().all(is_right));
    assert!(server.tcp_queries.load(SeqCst) > 0);
}

/// Datagram sockets that cannot be connected to a peer: the defaults of the trait.
struct UnconnectedSocket(UdpSocket);

impl Source for UnconnectedSocket {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.0.register(backend, token, interest)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.0.deregister(backend)
    }
}

impl DatagramSocket for UnconnectedSocket {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<UnconnectedSocket> {
        UdpSocket::bind(address, scope).map(UnconnectedSocket)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.receive_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.0.send_to(datagram, target)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_address()
    }
}

struct UnconnectedNet;

impl Net for UnconnectedNet {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Datagram = UnconnectedSocket;
}

#[test]
fn datagrams_of_strangers_are_ignored_on_an_unconnected_socket() {
    let server = Server::start(|query, _| {
        let mut forged = right_answer(query);
        *forged.last_mut().expect("not empty") = 66;
        vec![Act::SendFromElsewhere(forged), Act::Send(right_answer(query))]
    });
    let config = config(&[server.address], PATIENCE);
    let reply = run_on::<UnconnectedNet, _>(config, |dns| {
        dns.records().ask_from_thread(question("www.example", Kind::A)).expect("there is room")
    });
    let reply = reply.wait().expect("none goes unanswered");
    assert!(is_right(&reply), "{reply:?}");
}

#[test]
fn ids_ports_and_cases_differ_from_query_to_query() {
    let server = Server::start(|query, _| vec![Act::Send(right_answer(query))]);
    for _ in 0..8 {
        assert!(is_right(&one(&server, PATIENCE)));
    }
    let queries = server.queries.lock().expect("no panic").clone();
    let distinct = |part: std::ops::Range<usize>| {
        let mut parts: Vec<&[u8]> = queries.iter().map(|query| &query[part.clone()]).collect();
        parts.sort();
        parts.dedup();
        parts.len()
    };
    assert!(distinct(0..2) >= 6 && distinct(12..25) >= 4, "{queries:?}");
}

#[test]
fn names_stay_in_lower_case_if_mixed_case_is_off() {
    let server = Server::start(|query, _| vec![Act::Send(right_answer(query))]);
    let config = config(&[server.address], PATIENCE).mixed_case(false);
    for number in 0..4 {
        let name = format!("letters{number}.example");
        assert!(
            records(config.clone(), &[question(&name, Kind::A)])[0].is_err(),
            "it has another name's"
        );
    }
    let queries = server.queries.lock().expect("no panic");
    assert!(
        queries.iter().all(|query| !query[12..].iter().any(u8::is_ascii_uppercase)),
        "{queries:?}"
    );
}
