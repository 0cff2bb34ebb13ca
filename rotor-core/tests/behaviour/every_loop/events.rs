//! How many events one wait takes, what happens to the rest, and machines for which there are none.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rotor_core::net::{DatagramSocket, StreamSocket};
use rotor_core::{Config, Exit, ExitPolicy, Interest, Notifier, Response, Scope};

use crate::actor::{Actor, Call, actor, idle};
use crate::loops::{DatagramOn, OnLoop, Rig, StreamOn, local, not_yet, on_every_loop};

const SOCKETS: usize = 50;

/// A loop that takes seven events at a time; its machines count what they receive. Also returns
/// their addresses, and a socket that belongs to no machine.
fn counting_receivers<L: OnLoop>() -> (Rig<Actor<usize>, L>, Vec<SocketAddr>, DatagramOn<L>) {
    let config = Config::new().events_max(7).exit(ExitPolicy::OnRequest);
    let mut rig = Rig::<Actor<usize>, L>::new(&config, 0);
    let (mut addresses, mut sender) = (Vec::new(), None);
    for _ in 0..SOCKETS {
        rig.add(|scope| {
            let mut socket = DatagramOn::<L>::bind(&local(), scope).expect("a port is free");
            scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
            addresses.push(socket.local_address().expect("it is bound"));
            sender = Some(DatagramOn::<L>::bind(&local(), scope).expect("a port is free"));
            Response::ok(actor(move |call, scope: &mut Scope<'_, usize>| {
                if matches!(call, Call::Draining(_)) {
                    return Response::done();
                }
                **scope += usize::from(socket.receive_from(&mut [0; 8]).is_ok());
                Response::keep(())
            }))
        });
    }
    (rig, addresses, sender.expect("as asked"))
}

on_every_loop!(events_beyond_the_limit_of_a_wait_come_in_later_waits);
fn events_beyond_the_limit_of_a_wait_come_in_later_waits<L: OnLoop>() {
    let (mut rig, addresses, mut sender) = counting_receivers::<L>();
    rig.turn();
    for address in addresses {
        sender.send_to(b"x", &address).expect("it can be sent");
    }
    rig.until(|rig| rig.context(|received| *received == SOCKETS));
}

on_every_loop!(
    a_drain_notification_follows_the_events_of_all_sockets,
    not simulated: "what was sent is on its way when the drain begins"
);
fn a_drain_notification_follows_the_events_of_all_sockets<L: OnLoop>() {
    let (mut rig, addresses, mut sender) = counting_receivers::<L>();
    rig.turn();
    for address in addresses {
        sender.send_to(b"x", &address).expect("it can be sent");
    }
    rig.with(|instance| instance.handle().drain(Duration::from_secs(60)));
    assert_eq!(rig.run(), Exit::Drained { dropped: 0 });
    rig.context(|received| assert_eq!(*received, SOCKETS));
}

/// How many bytes the machines of [`conversing_streams`] have received, and what wakes them.
#[derive(Default)]
struct Conversation {
    received: usize,
    notifiers: Vec<Notifier>,
}

/// A loop that takes seven events at a time. Each of its machines writes a byte when it is woken,
/// and counts what it receives from its peer.
fn conversing_streams<L: OnLoop>() -> (Rig<Actor<Conversation>, L>, Vec<L::End>) {
    let config = Config::new().events_max(7).exit(ExitPolicy::OnRequest);
    let mut rig = Rig::<Actor<Conversation>, L>::new(&config, Conversation::default());
    let (mut door, target) = rig.peer_listener();
    let mut connect = |rig: &mut Rig<Actor<Conversation>, L>| {
        rig.add(|scope: &mut Scope<'_, Conversation>| {
            let mut socket = StreamOn::<L>::connect(&target, scope).expect("it only begins");
            scope.register(&mut socket, Interest::Both).expect("it is of this backend");
            let notifier = scope.notifier();
            scope.notifiers.push(notifier);
            Response::ok(actor(move |call, scope: &mut Scope<'_, Conversation>| {
                match call {
                    Call::Draining(_) => return Response::done(),
                    Call::Wakeup(_) => assert_eq!(socket.write(b"y").expect("there is room"), 1),
                    _ => {}
                }
                scope.received += not_yet(socket.read(&mut [0; 8])).expect("it lasts").unwrap_or(0);
                Response::keep(())
            }))
        });
        rig.accept_peer(&mut door)
    };
    let ends = (0..SOCKETS).map(|_| connect(&mut rig)).collect();
    (rig, ends)
}

on_every_loop!(
    a_drain_notification_follows_the_input_of_streams_that_are_written_to,
    not simulated: "what was sent is on its way when the drain begins"
);
fn a_drain_notification_follows_the_input_of_streams_that_are_written_to<L: OnLoop>() {
    let (mut rig, mut ends) = conversing_streams::<L>();
    for end in &mut ends {
        rig.send(end, b"x").expect("there is room");
    }
    rig.until(|rig| rig.context(|conversation| conversation.received == SOCKETS));
    // Now a backend has to do with each stream: what it writes leaves in the next wait.
    rig.context(|conversation| assert!(conversation.notifiers.iter().all(Notifier::wakeup)));
    rig.turn();
    for end in &mut ends {
        rig.send(end, b"x").expect("there is room");
    }
    rig.with(|instance| instance.handle().drain(Duration::from_secs(60)));
    assert_eq!(rig.run(), Exit::Drained { dropped: 0 });
    rig.context(|conversation| assert_eq!(conversation.received, 2 * SOCKETS));
}

on_every_loop!(dropped_and_deregistered_sockets_report_no_events);
fn dropped_and_deregistered_sockets_report_no_events<L: OnLoop>() {
    let mut rig = Rig::<Actor<u32>, L>::new(&Config::new(), 0);
    let mut sender = None;
    rig.add(|scope| {
        sender = Some(DatagramOn::<L>::bind(&local(), scope).expect("a port is free"));
        Response::ok(idle())
    });
    let mut sender = sender.expect("the closure ran");
    for is_dropped in [true, false] {
        rig.add(|scope| {
            let mut socket = DatagramOn::<L>::bind(&local(), scope).expect("a port is free");
            scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
            let address = socket.local_address().expect("it is bound");
            sender.send_to(b"x", &address).expect("it can be sent");
            let kept = if is_dropped {
                drop(socket);
                None
            } else {
                scope.deregister(&mut socket).expect("it is registered");
                Some(socket)
            };
            Response::ok(actor(move |call, scope: &mut Scope<'_, u32>| {
                let _kept = &kept;
                **scope += u32::from(matches!(call, Call::Ready(_)));
                Response::keep(())
            }))
        });
    }
    for _ in 0..20 {
        rig.turn();
    }
    rig.context(|events| assert_eq!(*events, 0));
}
