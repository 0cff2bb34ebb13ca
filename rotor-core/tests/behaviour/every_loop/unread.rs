//! Connections that end while their machine leaves received bytes unread.

use std::io;

use rotor_core::net::{Listener, StreamSocket};
use rotor_core::{Config, EventSet, Interest, Notifier, Response, Scope};

use crate::actor::{Actor, Call, Seed, actor};
use crate::loops::{MaybeSend, OnLoop, Rig, on_every_loop};

#[derive(Default)]
struct UnreadState {
    is_registered: bool,
    read: usize,
    /// The events reported to the machine that does not read.
    reported: Option<EventSet>,
    /// Wakes the machine that writes.
    writer: Option<Notifier>,
}

type Machine = Actor<UnreadState>;

/// The machine's interest, and the maximum number of bytes that it reads.
type ReadPlan = (Interest, usize);

fn partial_reader<S: StreamSocket + MaybeSend>(
    mut socket: S,
    (interest, most): ReadPlan,
) -> Seed<UnreadState> {
    Seed::new("stopping", move |scope: &mut Scope<'_, UnreadState>| {
        scope.register(&mut socket, interest).expect("it is of this backend");
        scope.is_registered = true;
        Response::ok(actor(move |call, scope: &mut Scope<'_, UnreadState>| {
            let Call::Ready(events) = call else { return Response::keep(()) };
            scope.reported = Some(scope.reported.map_or(events, |reported| reported | events));
            let mut bytes = vec![0; 64 * 1024];
            while scope.read < most {
                let asked = bytes.len().min(most - scope.read);
                match socket.read(&mut bytes[..asked]) {
                    Ok(0) => panic!("nobody has ended anything"),
                    Ok(count) => scope.read += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Response::error(error),
                }
            }
            Response::keep(())
        }))
    })
}

fn acceptor<L: Listener<Socket: MaybeSend> + MaybeSend>(
    mut listener: L,
    plan: ReadPlan,
) -> Machine {
    actor(move |call, _: &mut Scope<'_, UnreadState>| match call {
        Call::Ready(_) => match listener.accept() {
            Ok((socket, _)) => Response::spawn((), partial_reader(socket, plan)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Response::keep(()),
            Err(error) => Response::error(error),
        },
        Call::Spawned => Response::done(),
        _ => Response::keep(()),
    })
}

/// Writes as much as the socket accepts. When it is woken, it resets the connection.
fn flooding_writer<S: StreamSocket + MaybeSend>(
    mut socket: S,
    scope: &mut Scope<'_, UnreadState>,
) -> Machine {
    scope.register(&mut socket, Interest::Both).expect("it is of this backend");
    scope.writer = Some(scope.notifier());
    let mut is_connected = false;
    actor(move |call, _: &mut Scope<'_, UnreadState>| {
        Response::attempt(|| {
            if let Call::Wakeup(_) = call {
                socket.reset()?;
                return Ok(Response::done());
            }
            is_connected = is_connected || socket.has_connected()?;
            while is_connected && socket.write(&[b'z'; 16 * 1024]).is_ok() {}
            Ok(Response::keep(()))
        })
    })
}

/// The events reported to a machine whose connection is reset while it has unread bytes.
fn events_after_reset<L: OnLoop>(plan: ReadPlan) -> EventSet {
    let mut rig = Rig::<Machine, L>::new(&Config::new(), UnreadState::default());
    rig.add_both(|listener| acceptor(listener, plan), flooding_writer);
    rig.until(|rig| rig.context(|state| state.is_registered && state.read == plan.1));
    // Until the buffers are full of unread bytes.
    for _ in 0..20 {
        rig.turn();
    }
    rig.context(|state| {
        state.reported = None;
        state.writer.take().expect("it was made").wakeup();
    });
    // Enough turns for any loop that reports the reset at all.
    for _ in 0..100 {
        rig.turn();
    }
    rig.context(|state| state.reported.unwrap_or(EventSet::EMPTY))
}

on_every_loop!(a_reset_is_reported_at_once_despite_much_unread_input);
fn a_reset_is_reported_at_once_despite_much_unread_input<L: OnLoop>() {
    for most in [0, 2 << 20] {
        let events = events_after_reset::<L>((Interest::Both, most));
        assert!(events.is_closing(), "{events:?} behind {most} bytes");
    }
}

on_every_loop!(a_reset_is_reported_to_a_machine_without_read_interest);
fn a_reset_is_reported_to_a_machine_without_read_interest<L: OnLoop>() {
    let events = events_after_reset::<L>((Interest::Writable, 0));
    assert!(events.is_closing(), "{events:?}");
}
