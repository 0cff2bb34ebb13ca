//! Streams whose peer resets while something is sent to it: the send takes the error from the
//! kernel, and then a receive finds an end, as if the peer had sent everything.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rig::{Rig, connect, fill_stream, not_yet, read_on};
use rotor_core::Interest;
use rotor_core::net::StreamSocket;
use rotor_uring::{UringConfig, UringUnixStream};
use socket2::SockRef;

fn reset(client: TcpStream) {
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("it can be");
}

/// Reads to the end. Returns the bytes, and how they ended.
fn read_to_end(rig: &mut Rig, stream: &mut impl Read) -> (Vec<u8>, Result<(), ErrorKind>) {
    let (mut got, mut buffer) = (Vec::new(), [0; 100]);
    let mut end = Ok(());
    rig.until(|_| {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => got.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                end = Err(error.kind());
                return true;
            }
        }
        false
    });
    (got, end)
}

/// Streams that receive by an operation, and ones that are read by calls.
fn configs() -> [UringConfig; 2] {
    [UringConfig::new(), UringConfig::new().unread_bytes_max(1)]
}

#[test]
fn a_reset_is_read_although_a_send_of_the_same_turn_fails() {
    for config in configs() {
        let Some(mut rig) = Rig::open(&config) else { return };
        // The turns between the part and the reset.
        for turns in [0, 3] {
            let (mut server, mut client) = rig.pair();
            rig.turns(3);
            client.write_all(b"part").expect("it fits");
            rig.turns(turns);
            reset(client);
            server.write_all(&[0; 100]).expect("it is taken");
            let expected = (b"part".to_vec(), Err(ErrorKind::ConnectionReset));
            assert_eq!(read_to_end(&mut rig, &mut server), expected);
            assert_eq!(server.read(&mut [0; 9]).ok(), Some(0), "it is told once");
            let written = server.write(b"more").map_err(|error| error.kind());
            assert_eq!(written, Err(ErrorKind::ConnectionReset));
        }
    }
}

#[test]
fn a_reset_is_read_although_it_cuts_off_a_send() {
    for config in configs() {
        let Some(mut rig) = Rig::open(&config) else { return };
        let (mut server, mut client, _) = fill_stream(&mut rig);
        client.write_all(b"part").expect("it fits");
        assert_eq!(rig.read(&mut server, Some(4)), b"part");
        rig.turns(3);
        reset(client);
        let end = (Vec::new(), Err(ErrorKind::ConnectionReset));
        assert_eq!(read_to_end(&mut rig, &mut server), end);
        assert_eq!(server.read(&mut [0; 9]).ok(), Some(0), "it is told once");
    }
}

#[test]
fn a_reset_that_fails_a_send_is_taken_once() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, client) = rig.pair();
    rig.turns(3);
    reset(client);
    server.write_all(&[0; 100]).expect("it is taken");
    rig.turns(3);
    let errors = [(); 2].map(|()| server.take_error().expect("it can be asked"));
    let kinds = errors.map(|error| error.map(|error| error.kind()));
    assert_eq!(kinds, [Some(ErrorKind::ConnectionReset), None]);
}

#[test]
fn an_end_before_a_reset_is_read_as_an_end() {
    for config in configs() {
        let Some(mut rig) = Rig::open(&config) else { return };
        let (mut server, mut client) = rig.pair();
        client.write_all(b"all").expect("it fits");
        client.shutdown(Shutdown::Write).expect("it is there");
        server.write_all(b"unread").expect("it is taken");
        rig.until(|_| not_yet(client.peek(&mut [0; 6])) == Some(6));
        // It has not read that, so its kernel resets.
        drop(client);
        server.write_all(&[0; 100]).expect("it is taken");
        assert_eq!(read_to_end(&mut rig, &mut server), (b"all".to_vec(), Ok(())));
        rig.until(|_| {
            let written = server.write(&[0; 100]).map_err(|error| error.kind());
            written == Err(ErrorKind::BrokenPipe)
        });
    }
}

#[test]
fn bytes_that_no_wait_has_taken_count_as_unread_when_dropped() {
    // One completion per turn, so those of the other streams are not taken.
    let Some(mut rig) = Rig::open(&UringConfig::new().events_max(1)) else { return };
    let mut pairs: Vec<_> = (0..4).map(|_| rig.pair()).collect();
    rig.turns(50);
    pairs.iter_mut().for_each(|(_, client)| client.write_all(b"unread").expect("it fits"));
    rig.turn();
    let (servers, mut clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    drop(servers);
    for client in &mut clients {
        let mut end = Ok(1);
        rig.until(|_| {
            end = client.read(&mut [0; 9]).map_err(|error| error.kind());
            end != Err(ErrorKind::WouldBlock)
        });
        assert_eq!(end, Err(ErrorKind::ConnectionReset));
    }
    rig.until(|rig| rig.stats().sockets == 0);
}

/// The completion queue has room for two, so the kernel keeps the others.
#[test]
fn bytes_that_the_kernel_keeps_in_completions_count_as_unread_when_dropped() {
    let config = UringConfig::new().submissions(2).completions(2).events_max(1);
    let Some(mut rig) = Rig::open(&config) else { return };
    let mut pairs: Vec<_> = (0..8).map(|_| rig.pair()).collect();
    rig.turns(50);
    pairs.iter_mut().for_each(|(_, client)| client.write_all(b"unread").expect("it fits"));
    rig.turn();
    let (servers, mut clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    drop(servers);
    for client in &mut clients {
        assert_eq!(read_to_end(&mut rig, client).1, Err(ErrorKind::ConnectionReset));
    }
    assert!(rig.stats().completions_overflowed > 0);
    rig.until(|rig| rig.stats().sockets == 0);
}

/// The submission queue has room for the operations of one drop, so the kernel executes those of the
/// others later.
#[test]
fn bytes_of_many_streams_count_as_unread_when_dropped_in_one_turn() {
    let config = UringConfig::new().submissions(4);
    // With the second one, the calls that make room complete more than a turn takes, too.
    for config in [config.clone(), config.events_max(1)] {
        let Some(mut rig) = Rig::open(&config) else { return };
        let mut pairs: Vec<_> = (0..8).map(|_| rig.pair()).collect();
        rig.turns(50);
        pairs.iter_mut().for_each(|(_, client)| client.write_all(b"unread").expect("it fits"));
        let (servers, mut clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        drop(servers);
        for client in &mut clients {
            assert_eq!(read_to_end(&mut rig, client).1, Err(ErrorKind::ConnectionReset));
        }
        rig.until(|rig| rig.stats().sockets == 0);
    }
}

/// What has completed for other streams is taken first, and makes them send more.
#[test]
fn room_for_the_operations_of_a_drop_is_not_used_up_by_other_streams() {
    let Some(mut rig) = Rig::open(&UringConfig::new().submissions(4)) else { return };
    let mut others = rig.with(|scope| {
        [(); 8].map(|()| {
            let (own, peer) = UnixStream::pair().expect("descriptors are left");
            peer.set_nonblocking(true).expect("it can be");
            let mut own = UringUnixStream::from_std(own, scope).expect("of this backend");
            scope.register(&mut own, Interest::Both).expect("of this backend");
            (own, peer)
        })
    });
    for (own, _) in &mut others {
        // Until neither the kernel nor the stream takes more.
        let mut taken = true;
        while std::mem::take(&mut taken) {
            while not_yet(own.write(&[7; 10_000])).is_some() {
                taken = true;
            }
            rig.turns(4);
        }
    }
    let pairs: Vec<_> = (0..4).map(|_| rig.pair()).collect();
    rig.turns(50);
    for (_, peer) in &mut others {
        read_on(peer, None, &mut Vec::new());
    }
    let (servers, mut clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    for (server, client) in servers.into_iter().zip(&mut clients) {
        drop(server);
        client.write_all(b"unread").expect("it fits");
    }
    for client in &mut clients {
        assert_eq!(read_to_end(&mut rig, client).1, Err(ErrorKind::ConnectionReset));
    }
}

/// The kernel executes the receive of such a stream, and closes it then.
#[test]
fn bytes_that_waited_count_as_unread_when_dropped_in_the_turn_of_registration() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    for output in [&b""[..], b"farewell"] {
        let mut client = connect(address);
        client.write_all(b"unread").expect("it fits");
        let mut server = rig.accept(&mut listener);
        rig.with(|scope| {
            scope.register(&mut server, Interest::Both).expect("of this backend");
            assert_eq!(server.write(output).ok(), Some(output.len()));
            drop(server);
        });
        assert_eq!(read_to_end(&mut rig, &mut client).1, Err(ErrorKind::ConnectionReset));
    }
}

/// Otherwise the kernel would execute the receive of such a stream when the turn ends, and close it
/// then.
#[test]
fn bytes_that_come_after_a_drop_in_the_turn_of_registration_count_as_unread() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    for output in [&b""[..], b"farewell"] {
        let mut client = connect(address);
        let mut server = rig.accept(&mut listener);
        rig.with(|scope| {
            scope.register(&mut server, Interest::Both).expect("of this backend");
            assert_eq!(server.write(output).ok(), Some(output.len()));
            drop(server);
            client.write_all(b"late").expect("it fits");
        });
        assert_eq!(read_to_end(&mut rig, &mut client).1, Err(ErrorKind::ConnectionReset));
    }
}

/// The kernel is only called by itself for a receive that may take bytes.
#[test]
fn drops_of_streams_that_have_ended_or_are_reset_make_no_call() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut listener, address) = rig.listen();
    for (ends, resets, calls) in [(false, false, 1), (true, false, 0), (false, true, 0)] {
        let mut client = connect(address);
        if ends {
            client.shutdown(Shutdown::Write).expect("it is there");
        }
        let mut server = rig.accept(&mut listener);
        let before = rig.stats().enters;
        rig.with(|scope| {
            scope.register(&mut server, Interest::Both).expect("of this backend");
            let mut read = not_yet(server.read(&mut [0; 9]));
            while ends && read.is_none() {
                thread::yield_now();
                read = not_yet(server.read(&mut [0; 9]));
            }
            assert_eq!(read, ends.then_some(0));
            if resets {
                server.reset().expect("it can be");
            }
            drop(server);
        });
        assert_eq!(rig.stats().enters - before, calls, "ends {ends}, resets {resets}");
        let end = read_to_end(&mut rig, &mut client);
        let expected = if resets { Err(ErrorKind::ConnectionReset) } else { Ok(()) };
        assert_eq!(end, (Vec::new(), expected));
    }
}
