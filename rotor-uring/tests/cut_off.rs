//! Streams that have taken more bytes than could be sent: their peers never mistake the truncated
//! output for a complete one.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rig::{Rig, fill_stream};
use rotor_uring::UringConfig;

/// Reads a client until it ends. Returns the bytes, and how it ended.
fn read_to_end(mut client: TcpStream) -> (Vec<u8>, Result<(), ErrorKind>) {
    client.set_nonblocking(false).expect("it can be");
    client.set_read_timeout(Some(Duration::from_secs(60))).expect("it is not zero");
    let mut got = Vec::new();
    let end = client.read_to_end(&mut got).map(drop).map_err(|error| error.kind());
    (got, end)
}

#[test]
fn a_stream_whose_linger_time_ends_is_reset() {
    let Some(mut rig) = Rig::open(&UringConfig::new().linger(Duration::ZERO)) else { return };
    let base = rig.stats().sockets;
    let (server, client, taken) = fill_stream(&mut rig);
    drop(server);
    rig.until(|rig| rig.stats().sockets == base);
    // It is closed at the next wait.
    rig.turn();
    assert_eq!(rig.stats().lingered_too_long, 1);
    let (got, end) = read_to_end(client);
    assert!(got.len() < taken, "{taken} bytes came");
    assert_eq!(end, Err(ErrorKind::ConnectionReset), "behind {} of {taken} bytes", got.len());
}

#[test]
fn a_loop_that_ends_resets_streams_with_unsent_bytes() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (server, client, taken) = fill_stream(&mut rig);
    drop((server, rig));
    let (got, end) = read_to_end(client);
    assert!(got.len() < taken, "{taken} bytes came");
    assert_eq!(end, Err(ErrorKind::ConnectionReset), "behind {} of {taken} bytes", got.len());
}

#[test]
fn a_sent_stream_ends_in_order_although_its_linger_time_is_over() {
    // One completion per turn: the others are pending when the linger time of their streams ends.
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
        assert_eq!(read_to_end(client), (b"farewell".to_vec(), Ok(())));
    }
}

#[test]
fn streams_that_can_send_everything_are_not_too_many() {
    let Some(mut rig) = Rig::open(&UringConfig::new().lingering_max(1)) else { return };
    let base = rig.stats().sockets;
    let mut pairs: Vec<_> = (0..8).map(|_| rig.pair()).collect();
    rig.turns(3);
    pairs.iter_mut().for_each(|(server, _)| server.write_all(b"farewell").expect("it is taken"));
    let (servers, clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    drop(servers);
    rig.until(|rig| rig.stats().sockets == base);
    rig.turn();
    for client in clients {
        assert_eq!(read_to_end(client), (b"farewell".to_vec(), Ok(())));
    }
    assert_eq!(rig.stats().lingered_too_long, 0);
}

#[test]
fn a_stream_of_too_many_that_cannot_send_is_reset() {
    let Some(mut rig) = Rig::open(&UringConfig::new().lingering_max(1)) else { return };
    let base = rig.stats().sockets;
    let (first, client, taken) = fill_stream(&mut rig);
    let (second, mut patient, taken_of_second) = fill_stream(&mut rig);
    drop((first, second));
    rig.turns(3);
    assert_eq!(rig.stats().lingered_too_long, 1);
    let (got, end) = read_to_end(client);
    assert!(got.len() < taken, "{taken} bytes came");
    assert_eq!(end, Err(ErrorKind::ConnectionReset), "behind {} of {taken} bytes", got.len());
    assert_eq!(rig.read(&mut patient, None).len(), taken_of_second);
    rig.until(|rig| rig.stats().sockets == base);
}
