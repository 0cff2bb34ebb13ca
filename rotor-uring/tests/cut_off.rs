//! Streams that had taken more than could be sent: their peers never take for complete what was cut off.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rig::{Rig, not_yet, text};
use rotor_core::net::StreamSocket;
use rotor_uring::{UringConfig, UringTcpStream};

/// Written until neither the kernel nor the stream takes more; and how much that was, in bytes.
fn filled(rig: &mut Rig) -> (UringTcpStream, TcpStream, usize) {
    let (mut server, client) = rig.pair();
    server.set_send_buffer(4_096).expect("it can be");
    let (text, mut taken) = (text(16 << 20), 0);
    rig.until(|rig| {
        (0..100).all(|_| {
            let count = not_yet(server.write(&text[taken..taken + 10_000]));
            taken += count.unwrap_or(0);
            rig.turn();
            count.is_none()
        })
    });
    (server, client, taken)
}

/// What a client hears that reads on until there is no more.
fn heard(mut client: TcpStream) -> (Vec<u8>, Result<(), ErrorKind>) {
    client.set_nonblocking(false).expect("it can be");
    client.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    let mut got = Vec::new();
    let end = client.read_to_end(&mut got).map(drop).map_err(|error| error.kind());
    (got, end)
}

#[test]
fn what_a_stream_had_no_time_to_send_ends_by_a_reset() {
    let Some(mut rig) = Rig::open(&UringConfig::new().linger(Duration::ZERO)) else { return };
    let base = rig.stats().sockets;
    let (server, client, taken) = filled(&mut rig);
    drop(server);
    rig.until(|rig| rig.stats().sockets == base);
    // It is closed with the next wait.
    rig.turn();
    assert_eq!(rig.stats().lingered_too_long, 1);
    let (got, end) = heard(client);
    assert!(got.len() < taken, "{taken} bytes came");
    assert_eq!(end, Err(ErrorKind::ConnectionReset), "behind {} of {taken} bytes", got.len());
}

#[test]
fn what_a_loop_that_ends_cannot_send_ends_by_a_reset() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (server, client, taken) = filled(&mut rig);
    drop((server, rig));
    let (got, end) = heard(client);
    assert!(got.len() < taken, "{taken} bytes came");
    assert_eq!(end, Err(ErrorKind::ConnectionReset), "behind {} of {taken} bytes", got.len());
}

#[test]
fn what_has_left_ends_in_order_also_where_the_time_was_over_before_that_was_heard_of() {
    // One completion in a turn: the others are there when the time of their streams is over.
    let config = UringConfig::new().events_max(1).linger(Duration::ZERO);
    let Some(mut rig) = Rig::open(&config) else { return };
    let base = rig.stats().sockets;
    let mut pairs: Vec<_> = (0..8).map(|_| rig.pair()).collect();
    rig.turns(50);
    pairs.iter_mut().for_each(|(server, _)| server.write_all(b"farewell").expect("it is taken"));
    let (servers, clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    drop(servers);
    rig.until(|rig| rig.stats().sockets == base);
    rig.turn();
    for client in clients {
        assert_eq!(heard(client), (b"farewell".to_vec(), Ok(())));
    }
}
