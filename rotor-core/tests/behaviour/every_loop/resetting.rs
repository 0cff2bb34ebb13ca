//! Connections that end with a reset, which the peer never mistakes for EOF.

use std::io;
use std::net::Shutdown;

use rotor_core::net::{Listener, StreamSocket};
use rotor_core::{Config, EventSet, Exit, Interest, Response, Scope};

use super::TEXT;
use crate::actor::{Actor, Call, Seed, actor};
use crate::loops::{MaybeSend, OnLoop, Rig, on_every_loop};

/// What the client reads before the reset, and how it learns of the reset.
#[derive(Default)]
struct ClientView {
    bytes: Vec<u8>,
    /// How many bytes were written to it.
    written: usize,
    end: Option<Result<(), io::ErrorKind>>,
}

type Machine = Actor<ClientView>;

/// What the resetting side did to the connection before the reset.
#[derive(Clone, Copy, PartialEq)]
enum BeforeReset {
    Nothing,
    /// It has answered, and the client has read the answer: the reset discards nothing.
    Answered,
    /// It has ended its write side.
    Ended,
    /// It has written something in the same handler.
    Written,
    /// It has filled the send buffer in the same handler.
    Filled,
}

/// Reads what the client sends, then resets the connection.
fn resetting_server<S: StreamSocket + MaybeSend>(
    mut socket: S,
    before: BeforeReset,
) -> Seed<ClientView> {
    Seed::new("resetting", move |scope: &mut Scope<'_, ClientView>| {
        scope.register(&mut socket, Interest::Both).expect("it is of this backend");
        let mut has_answered = false;
        Response::ok(actor(move |call, scope: &mut Scope<'_, ClientView>| {
            let Call::Ready(_) = call else { return Response::keep(()) };
            let mut bytes = [0; 64];
            loop {
                match socket.read(&mut bytes) {
                    // The byte that follows the answer confirms that the answer was read.
                    Ok(1..) if before == BeforeReset::Answered && !has_answered => {
                        assert_eq!(socket.write(TEXT).expect("it has room"), TEXT.len());
                        has_answered = true;
                    }
                    Ok(1..) => break,
                    Ok(0) => panic!("the client does not end its side"),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Response::keep(());
                    }
                    Err(error) => return Response::error(error),
                }
            }
            match before {
                BeforeReset::Ended => socket.shutdown(Shutdown::Write).expect("it is connected"),
                BeforeReset::Written => {
                    assert_eq!(socket.write(TEXT).expect("it has room"), TEXT.len());
                }
                BeforeReset::Filled => {
                    while let Ok(count) = socket.write(&[b'z'; 1024]) {
                        scope.written += count;
                    }
                }
                BeforeReset::Nothing | BeforeReset::Answered => {}
            }
            socket.reset().expect("it can be reset");
            Response::done()
        }))
    })
}

fn acceptor<L: Listener<Socket: MaybeSend> + MaybeSend>(
    mut listener: L,
    before: BeforeReset,
) -> Machine {
    actor(move |call, _: &mut Scope<'_, ClientView>| match call {
        Call::Ready(_) => match listener.accept() {
            Ok((socket, _)) => Response::spawn((), resetting_server(socket, before)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Response::keep(()),
            Err(error) => Response::error(error),
        },
        Call::Spawned => Response::done(),
        _ => Response::keep(()),
    })
}

/// Sends a byte, a second one once the first was answered, and reads until nothing is left. If the
/// peer ends its write side before the reset, waits past EOF until an event reports an error.
fn reader<S: StreamSocket + MaybeSend>(
    mut socket: S,
    before: BeforeReset,
    scope: &Scope<'_, ClientView>,
) -> Machine {
    scope.register(&mut socket, Interest::Both).expect("it is of this backend");
    let mut is_connected = false;
    actor(move |call, scope: &mut Scope<'_, ClientView>| {
        let Call::Ready(events) = call else { return Response::keep(()) };
        Response::attempt(|| {
            if !is_connected {
                is_connected = socket.has_connected()?;
                if !is_connected {
                    return Ok(Response::keep(()));
                }
                assert_eq!(socket.write(b"x")?, 1);
            }
            let mut bytes = [0; 64];
            loop {
                match socket.read(&mut bytes) {
                    Ok(0) if before != BeforeReset::Ended => {
                        scope.end = Some(Ok(()));
                        return Ok(Response::done());
                    }
                    // Each read returns EOF here. An event reports the reset that follows, even if
                    // one event reports both.
                    Ok(0) if events.contains(EventSet::ERROR) => {
                        scope.end = socket.take_error()?.map(|error| Err(error.kind()));
                        return Ok(Response::done());
                    }
                    Ok(0) => return Ok(Response::keep(())),
                    Ok(len) => {
                        scope.bytes.extend_from_slice(&bytes[..len]);
                        if before == BeforeReset::Answered && scope.bytes == TEXT {
                            assert_eq!(socket.write(b"y")?, 1);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Ok(Response::keep(()));
                    }
                    Err(error) => {
                        scope.end = Some(Err(error.kind()));
                        return Ok(Response::done());
                    }
                }
            }
        })
    })
}

/// How a client's connection that the server resets ends for the client.
fn run_reset<L: OnLoop>(before: BeforeReset) -> ClientView {
    let mut rig = Rig::<Machine, L>::new(&Config::new(), ClientView::default());
    rig.add_both(
        |listener| acceptor(listener, before),
        |socket, scope| reader(socket, before, scope),
    );
    // Fewer turns than the loop's maximum: without a reset nothing comes.
    for _ in 0..L::TURNS_MAX / 100 {
        if rig.exit().is_none() {
            rig.turn();
        }
    }
    assert_eq!(rig.exit(), Some(Exit::Empty));
    assert_eq!(rig.with(|instance| instance.stats().read().failed), 0);
    rig.context(std::mem::take)
}

on_every_loop!(the_peer_of_a_reset_connection_reads_an_error_and_no_end);
fn the_peer_of_a_reset_connection_reads_an_error_and_no_end<L: OnLoop>() {
    let reset = Some(Err(io::ErrorKind::ConnectionReset));
    let nothing = run_reset::<L>(BeforeReset::Nothing);
    assert_eq!((nothing.end, nothing.bytes.len()), (reset, 0));
    let answered = run_reset::<L>(BeforeReset::Answered);
    assert_eq!((answered.end, &*answered.bytes), (reset, TEXT));
}

on_every_loop!(a_reset_after_a_write_reaches_the_peer_as_an_error);
fn a_reset_after_a_write_reaches_the_peer_as_an_error<L: OnLoop>() {
    let written = run_reset::<L>(BeforeReset::Written);
    assert_eq!(written.end, Some(Err(io::ErrorKind::ConnectionReset)));
    assert!(TEXT.starts_with(&written.bytes), "a part of it may come, or none");
}

on_every_loop!(
    unsent_bytes_are_discarded_by_a_reset,
    not simulated: "what is written is on its way at once"
);
fn unsent_bytes_are_discarded_by_a_reset<L: OnLoop>() {
    let filled = run_reset::<L>(BeforeReset::Filled);
    assert_eq!(filled.end, Some(Err(io::ErrorKind::ConnectionReset)));
    assert!(filled.bytes.len() < filled.written, "all of {} bytes came", filled.written);
}

on_every_loop!(a_connection_can_be_reset_after_its_write_side_has_ended);
fn a_connection_can_be_reset_after_its_write_side_has_ended<L: OnLoop>() {
    // Also if the peer has already seen EOF; Linux then reports a broken pipe.
    let ended = run_reset::<L>(BeforeReset::Ended).end.and_then(Result::err);
    let is_reset =
        |kind| matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
    assert!(ended.is_some_and(is_reset), "{ended:?}");
}
