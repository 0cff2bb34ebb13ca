//! A loop embedded in another loop, which watches its descriptor and runs its turns.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use mio::unix::SourceFd;
use rotor_core::net::{DatagramSocket, UdpSocket};
use rotor_core::{Config, ExitPolicy, Interest, Loop, LoopInstance, Notifier, Response, Scope};

use super::LOCAL;
use crate::actor::{Actor, Call, actor};
use crate::manual::Manual;

/// A loop to embed, with a machine that counts its wake-ups.
fn embedded() -> (LoopInstance<Actor<u32>>, Notifier) {
    let mut kept = None;
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        Response::ok(actor(|call, scope: &mut Scope<'_, u32>| {
            **scope += u32::from(matches!(call, Call::Wakeup(_)));
            Response::keep(())
        }))
    });
    made.expect("there is room");
    (creator.instantiate(0), kept.expect("the closure ran"))
}

/// Waits for the loop's descriptor with another poller, as an embedding program does.
struct Outer {
    poll: mio::Poll,
    events: mio::Events,
}

impl Outer {
    fn of(instance: &LoopInstance<Actor<u32>>) -> Outer {
        let poll = mio::Poll::new().expect("there are descriptors");
        let descriptor = instance.as_fd().as_raw_fd();
        let interest = mio::Interest::READABLE;
        poll.registry()
            .register(&mut SourceFd(&descriptor), mio::Token(0), interest)
            .expect("it is polled");
        Outer { poll, events: mio::Events::with_capacity(8) }
    }

    /// Blocks until the descriptor is readable.
    fn wait(&mut self) {
        self.poll(None);
        assert!(!self.events.is_empty());
    }

    fn is_readable(&mut self) -> bool {
        self.poll(Some(Duration::ZERO));
        !self.events.is_empty()
    }

    /// Polls again if the process was stopped and continued in between: that interrupts the call
    /// (signal(7)).
    fn poll(&mut self, time: Option<Duration>) {
        while let Err(error) = self.poll.poll(&mut self.events, time) {
            assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        }
    }
}

#[test]
fn a_wakeup_between_turns_makes_the_descriptor_readable() {
    let (mut instance, notifier) = embedded();
    let mut outer = Outer::of(&instance);
    for round in 1..100 {
        while instance.next_deadline().is_some() || round == 1 && instance.stats().read().turns == 0
        {
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        }
        thread::scope(|threads| {
            threads.spawn(|| notifier.wakeup());
        });
        outer.wait();
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(*instance.context(), round);
    }
}

#[test]
fn an_idle_embedded_loop_leaves_its_descriptor_unreadable() {
    let (mut instance, _notifier) = embedded();
    let mut outer = Outer::of(&instance);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(instance.next_deadline(), None);
    while outer.is_readable() {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert!(!outer.is_readable());
}

#[test]
fn a_datagram_makes_the_descriptor_of_an_embedded_loop_readable() {
    let (mut instance, _notifier) = embedded();
    let mut address = None;
    let made = instance.add_machine_with(|scope| {
        let mut socket = UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
        address = socket.local_address().ok();
        scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
        Response::ok(actor(move |call, scope: &mut Scope<'_, u32>| {
            if matches!(call, Call::Ready(_)) && socket.receive_from(&mut [0; 8]).is_ok() {
                **scope += 100;
            }
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let mut outer = Outer::of(&instance);
    let sender =
        std::net::UdpSocket::bind(std::net::SocketAddr::from(LOCAL)).expect("a port is free");
    sender.send_to(b"x", address.expect("it is bound")).expect("it can be sent");
    while *instance.context() == 0 {
        outer.wait();
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!(*instance.context(), 100);
}

/// A loop whose machines count one datagram each, and the addresses to send the datagrams to.
fn receivers(
    sockets: usize,
    events_max: usize,
) -> (LoopInstance<Actor<u32>>, Vec<std::net::SocketAddr>) {
    let config = Config::new().exit(ExitPolicy::OnRequest).events_max(events_max);
    let mut creator = Loop::new(&config).expect("there are descriptors");
    let mut addresses = Vec::new();
    for _ in 0..sockets {
        let made = creator.add_machine_with(|scope| {
            let mut socket = UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
            addresses.push(socket.local_address().expect("it is bound"));
            scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
            Response::ok(actor(move |_, scope: &mut Scope<'_, u32>| {
                **scope += u32::from(socket.receive_from(&mut [0; 8]).is_ok());
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    (creator.instantiate(0), addresses)
}

#[test]
fn an_embedded_loop_requests_turns_while_its_backend_may_have_events() {
    for (sockets, events_max) in [(1, 1), (2, 1), (5, 2), (6, 2), (7, 8), (8, 8)] {
        let (mut instance, addresses) = receivers(sockets, events_max);
        while instance.turn(Some(Duration::ZERO)).is_ok() && instance.next_deadline().is_some() {}
        let mut outer = Outer::of(&instance);
        let sender =
            std::net::UdpSocket::bind(std::net::SocketAddr::from(LOCAL)).expect("a port is free");
        for address in addresses {
            sender.send_to(b"x", address).expect("it can be sent");
        }
        outer.wait();
        let before = instance.stats().read().turns;
        // The edge was reported and will not come again, so the loop itself must say that there is
        // more.
        while instance.turn(Some(Duration::ZERO)).is_ok() && instance.next_deadline().is_some() {}
        assert_eq!(*instance.context(), sockets as u32, "{events_max} in one look");
        let turns = (instance.stats().read().turns - before) as usize;
        assert!(turns <= sockets / events_max + 1, "{turns} turns: nothing spins");
    }
}

#[test]
fn the_time_limit_of_a_turn_counts_from_its_call() {
    let manual = Manual::new();
    let mut instance =
        manual.creator::<Actor<()>>(&Config::new().exit(ExitPolicy::OnRequest)).instantiate(());
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    // The embedding program was busy with something else.
    manual.advance(Duration::from_secs(60));
    manual.take_waits();
    let called = manual.now();
    instance.turn(Some(Duration::from_secs(1))).expect("there is a time to wait for");
    assert_eq!(manual.take_waits(), [Some(called + Duration::from_secs(1))]);
    instance.turn(Some(Duration::MAX)).expect("there is a time to wait for");
}

#[test]
fn the_wait_of_an_embedding_program_is_what_is_left_now() {
    let manual = Manual::new();
    let mut instance =
        manual.creator::<Actor<()>>(&Config::new().exit(ExitPolicy::OnRequest)).instantiate(());
    assert_eq!(instance.max_wait(), None);
    let mut kept = None;
    let made = instance.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        Response::ok(actor(|_, _: &mut Scope<'_, ()>| Response::keep(())))
            .deadline(scope.now() + Duration::from_millis(100))
    });
    made.expect("there is room");
    assert_eq!(instance.max_wait(), Some(Duration::from_millis(100)));
    // The embedding program is busy with something else, and then asks again.
    manual.advance(Duration::from_millis(30));
    assert_eq!(instance.max_wait(), Some(Duration::from_millis(70)));
    manual.advance(Duration::from_secs(1));
    assert_eq!(instance.max_wait(), Some(Duration::ZERO));
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(instance.max_wait(), None);
    assert!(kept.expect("the closure ran").wakeup());
    assert_eq!(instance.max_wait(), Some(Duration::ZERO), "it is due");
}
