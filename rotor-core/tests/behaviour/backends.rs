//! The seam to what a loop waits with: foreign sources, embedding, two loops beside each other, a
//! second backend.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mio::unix::SourceFd;
use rotor_core::foreign::MioSource;
use rotor_core::net::{
    DatagramSocket, ListenOptions, Listener, StreamSocket, TcpListener, TcpStream, UdpSocket,
    UnixDatagram, UnixListener, UnixStream,
};
use rotor_core::{
    Backend, BackendHandle, Config, EVENTS_LIMIT, EarlyScope, EventSet, ExitPolicy, Interest, Loop,
    LoopInstance, Machine, Mio, MioHandle, Notifier, Response, Scope, Source, Time, Token, Wake,
};

use crate::actor::{Actor, Call, Seed, actor, idle};
use crate::manual::{Manual, Socket, settle};

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// What `ask` answers, asked with the scope of a loop on the manual backend.
fn on_manual<T>(ask: impl FnOnce(&mut EarlyScope<'_>) -> T) -> T {
    let mut answer = None;
    let made = Manual::new().creator::<Actor<()>>(&Config::new()).add_machine_with(|scope| {
        answer = Some(ask(scope));
        Response::ok(idle())
    });
    made.expect("there is room");
    answer.expect("the closure ran")
}

/// The same on the default backend.
fn on_mio<T>(ask: impl FnOnce(&mut EarlyScope<'_>) -> T) -> T {
    let mut answer = None;
    let mut creator = Loop::<Actor<()>>::new(&Config::new()).expect("there are descriptors");
    let made = creator.add_machine_with(|scope| {
        answer = Some(ask(scope));
        Response::ok(idle())
    });
    made.expect("there is room");
    answer.expect("the closure ran")
}

#[track_caller]
fn assert_unsupported<T>(result: io::Result<T>, source: &str, backend: &str) {
    let Err(error) = result else { panic!("{source} was accepted by {backend}") };
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(text.contains(source) && text.contains(backend), "{text}");
}

#[test]
fn a_socket_made_for_another_backend_is_unsupported_and_both_are_named() {
    let path = std::path::PathBuf::from("/nowhere");
    on_manual(|scope| {
        let options = ListenOptions::new();
        assert_unsupported(TcpStream::connect(&LOCAL.into(), scope), "a TCP socket", "manual");
        assert_unsupported(
            TcpListener::bind(&LOCAL.into(), &options, scope),
            "a TCP listener",
            "manual",
        );
        assert_unsupported(UdpSocket::bind(&LOCAL.into(), scope), "a UDP socket", "manual");
        assert_unsupported(UnixStream::connect(&path, scope), "a Unix socket", "manual");
        assert_unsupported(UnixListener::bind(&path, &options, scope), "a Unix listener", "manual");
        let address = std::os::unix::net::SocketAddr::from_pathname(&path).expect("it is a path");
        assert_unsupported(UnixDatagram::bind(&address, scope), "a Unix datagram", "manual");
        let listener =
            std::net::TcpListener::bind(std::net::SocketAddr::from(LOCAL)).expect("a port is free");
        assert_unsupported(TcpListener::from_std(listener, scope), "a TCP listener", "manual");
    });
}

#[test]
fn registering_a_foreign_source_is_unsupported_and_both_are_named() {
    assert_unsupported(
        on_mio(|scope| scope.register(&mut Socket, Interest::Both)),
        "a manual socket",
        "mio",
    );
    assert_unsupported(on_mio(|scope| scope.deregister(&mut Socket)), "a manual socket", "mio");
    let mut socket = on_mio(|scope| UdpSocket::bind(&LOCAL.into(), scope)).expect("a port is free");
    let foreign = on_manual(|scope| scope.register(&mut socket, Interest::Both));
    assert_unsupported(foreign, "a UDP socket", "manual");
    let pair = mio::net::UnixStream::pair().expect("descriptors are left");
    let mut source = MioSource::from_mio(pair.0);
    let foreign = on_manual(|scope| scope.register(&mut source, Interest::Both));
    assert_unsupported(foreign, "a source of mio", "manual");
    let foreign = on_manual(|scope| scope.deregister(&mut source));
    assert_unsupported(foreign, "a source of mio", "manual");
    on_mio(|scope| scope.register(&mut source, Interest::Both)).expect("it is unchanged");
    on_mio(|scope| scope.register(&mut socket, Interest::Both)).expect("it is unchanged");
}

#[test]
fn a_source_that_is_registered_already_is_an_error_and_goes_on() {
    on_mio(|scope| {
        let mut socket = UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
        scope.register(&mut socket, Interest::Readable).expect("the first time");
        scope.register(&mut socket, Interest::Readable).expect_err("the second time");
        scope.deregister(&mut socket).expect("it is registered");
        scope.deregister(&mut socket).expect_err("no longer");
        scope.register(&mut socket, Interest::Both).expect("again");
    });
}

#[test]
fn a_second_backend_serves_its_own_sockets_through_the_scope() {
    let manual = Manual::new();
    let mut creator = manual.creator::<Actor<Vec<EventSet>>>(&Config::new());
    let made = creator.add_machine_with(|scope| {
        assert_eq!(scope.backend().name(), "manual");
        let mut socket = Socket;
        scope.register(&mut socket, Interest::Both).expect("it is of this backend");
        Response::ok(actor(|call, scope: &mut Scope<'_, Vec<EventSet>>| {
            if let Call::Ready(events) = call {
                scope.push(events);
            }
            Response::keep(())
        }))
    });
    let token = made.expect("there is room");
    assert_eq!(manual.registered(), [(token, Interest::Both)]);
    let mut instance = creator.instantiate(Vec::new());
    manual.feed(token, EventSet::READABLE | EventSet::READ_CLOSED);
    manual.feed(token, EventSet::EMPTY);
    settle(&mut instance);
    assert_eq!(*instance.context(), [EventSet::READABLE | EventSet::READ_CLOSED, EventSet::EMPTY]);
}

#[test]
fn a_backend_without_a_pool_gives_the_job_back() {
    let manual = Manual::new();
    let mut creator = manual.creator::<Actor<()>>(&Config::new());
    let made = creator.add_machine_with(|scope| {
        let refused = scope.offload(|| 7).expect_err("there is no pool");
        assert_eq!((refused.0)(), 7);
        Response::done()
    });
    made.expect_err("it ended at once");
}

#[test]
fn times_of_two_loops_compare() {
    fn now<M: rotor_core::Machine>(instance: &mut LoopInstance<M>) -> rotor_core::Time {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        instance.now()
    }
    fn instance() -> LoopInstance<Actor<()>> {
        let config = Config::new().exit(ExitPolicy::OnRequest);
        Loop::new(&config).expect("there are descriptors").instantiate(())
    }
    let mut first = instance();
    let mut second =
        thread::spawn(|| on_mio(|scope| scope.now())).join().expect("it does not panic");
    for _ in 0..100 {
        let one = now(&mut first);
        assert!(one >= second);
        second = now(&mut instance());
        assert!(second >= one);
    }
}

/// A loop to be embedded, with a machine that counts its wake-ups.
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

/// Waits for the loop's descriptor with another queue, as an embedding program does.
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
        self.poll.poll(&mut self.events, None).expect("it can wait");
        assert!(!self.events.is_empty());
    }

    fn is_readable(&mut self) -> bool {
        self.poll.poll(&mut self.events, Some(Duration::ZERO)).expect("it can wait");
        !self.events.is_empty()
    }
}

#[test]
fn a_wake_up_between_turns_makes_the_descriptor_readable() {
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
fn an_embedded_loop_with_nothing_to_do_is_quiet() {
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

/// A loop whose machines each count one datagram, and the addresses to send these to.
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
fn an_embedded_loop_asks_for_a_turn_as_long_as_its_backend_may_have_more() {
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
        // The edge was told of and will not come again: it is for the loop to say that there is
        // more.
        while instance.turn(Some(Duration::ZERO)).is_ok() && instance.next_deadline().is_some() {}
        assert_eq!(*instance.context(), sockets as u32, "{events_max} in one look");
        let turns = (instance.stats().read().turns - before) as usize;
        assert!(turns <= sockets / events_max + 1, "{turns} turns: nothing spins");
    }
}

#[test]
fn a_turn_waits_for_the_time_it_is_given_from_when_it_is_called() {
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
fn an_error_of_the_backend_ends_the_run_and_leaves_the_machines_as_they_were() {
    let manual = Manual::new();
    let mut instance =
        manual.start(&Config::new(), (), |_| Response::ok(actor(|_, _| Response::done())));
    assert_eq!(instance.run().expect_err("it would sleep for ever").to_string(), "asleep");
    let token = instance.machines().iter().next().expect("it is still there").0;
    manual.feed(token, EventSet::READABLE);
    assert_eq!(instance.run().expect("there is an event"), rotor_core::Exit::Empty);
}

#[test]
fn more_events_than_one_wait_takes_come_in_the_next_ones() {
    const SOCKETS: usize = 50;
    let mut creator = Loop::new(&Config::new().events_max(7)).expect("there are descriptors");
    let sender =
        std::net::UdpSocket::bind(std::net::SocketAddr::from(LOCAL)).expect("a port is free");
    for _ in 0..SOCKETS {
        let made = creator.add_machine_with(|scope| {
            let mut socket = UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
            scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
            sender
                .send_to(b"x", socket.local_address().expect("it is bound"))
                .expect("it can be sent");
            Response::ok(actor(move |_, scope: &mut Scope<'_, usize>| {
                match socket.receive_from(&mut [0; 8]) {
                    Ok(_) => **scope += 1,
                    Err(_) => return Response::keep(()),
                }
                Response::done()
            }))
        });
        made.expect("there is room");
    }
    let mut instance = creator.instantiate(0);
    assert_eq!(instance.run().expect("the backend can wait"), rotor_core::Exit::Empty);
    assert_eq!(*instance.context(), SOCKETS);
}

#[test]
fn a_drain_is_told_behind_the_events_of_all_sockets_also_if_they_take_several_waits() {
    const SOCKETS: usize = 50;
    let mut creator = Loop::new(&Config::new().events_max(7)).expect("there are descriptors");
    let sender =
        std::net::UdpSocket::bind(std::net::SocketAddr::from(LOCAL)).expect("a port is free");
    let mut addresses = Vec::new();
    for _ in 0..SOCKETS {
        let made = creator.add_machine_with(|scope| {
            let mut socket = UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
            scope.register(&mut socket, Interest::Readable).expect("it is of this backend");
            addresses.push(socket.local_address().expect("it is bound"));
            Response::ok(actor(move |call, scope: &mut Scope<'_, usize>| {
                if matches!(call, Call::Draining(_)) {
                    return Response::done();
                }
                **scope += usize::from(socket.receive_from(&mut [0; 8]).is_ok());
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    let mut instance = creator.instantiate(0);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    for address in addresses {
        sender.send_to(b"x", address).expect("it can be sent");
    }
    instance.handle().drain(Duration::from_secs(60));
    assert_eq!(instance.run().expect("it can wait"), rotor_core::Exit::Drained { dropped: 0 });
    assert_eq!(*instance.context(), SOCKETS);
}

#[test]
fn a_loop_that_is_to_take_any_number_of_events_or_none_is_made_and_runs() {
    for events_max in [0, 1, EVENTS_LIMIT, EVENTS_LIMIT + 1, 200_000_000, usize::MAX] {
        let config = Config::new().events_max(events_max);
        let mut creator = Loop::new(&config).expect("there is memory for it");
        creator.add_machine_with(|_| Response::ok(idle())).expect("there is room");
        let mut instance = creator.instantiate(());
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        let backend = Mio::new(events_max).expect("there is memory for it");
        let mut instance =
            Loop::with_backend(backend, &config).expect("there is room").instantiate(());
        instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
}

#[test]
fn every_number_of_a_config_may_be_the_least_or_the_greatest() {
    let least = Config::new()
        .machines_max(0)
        .events_max(0)
        .spawns_per_event(0)
        .wakeups_per_turn(0)
        .timeouts_per_turn(0)
        .posts_max(0)
        .scan_budget(0);
    let greatest = Config::new()
        .events_max(usize::MAX)
        .spawns_per_event(u32::MAX)
        .wakeups_per_turn(u32::MAX)
        .timeouts_per_turn(u32::MAX)
        .posts_max(usize::MAX)
        .scan_budget(usize::MAX);
    for config in [least, greatest] {
        let manual = Manual::new();
        let mut instance = manual.start(&config, 0, |scope| {
            scope.notifier().wakeup();
            Response::again(actor(|call, scope: &mut Scope<'_, u32>| {
                **scope += 1;
                match call {
                    Call::Ready(_) => {
                        Response::spawn((), Seed::idle("child")).deadline(scope.now())
                    }
                    Call::Timeout if **scope > 3 => Response::done(),
                    Call::Timeout => Response::ok(()).deadline(scope.now()),
                    _ => Response::keep(()),
                }
            }))
        });
        let posted = instance.broadcast().post(|mut machines, scope| {
            **scope += 10;
            machines.scan(rotor_core::Cursor::START, |_, _| rotor_core::Verdict::Wake);
        });
        posted.expect("there is room");
        settle(&mut instance);
        instance.handle().drain(Duration::ZERO);
        settle(&mut instance);
        assert!(*instance.context() > 13, "{config:?}");
        assert_eq!(instance.machines().len(), 0, "{config:?}");
    }
}

#[test]
fn a_custom_source_may_hold_several_of_the_backend() {
    struct Two(UdpSocket, UdpSocket);
    impl Source for Two {
        fn register(
            &mut self,
            backend: &dyn BackendHandle,
            token: rotor_core::Token,
            interest: Interest,
        ) -> io::Result<()> {
            Source::register(&mut self.0, backend, token, interest)?;
            Source::register(&mut self.1, backend, token, interest)
        }
        fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
            Source::deregister(&mut self.0, backend)?;
            Source::deregister(&mut self.1, backend)
        }
    }
    on_mio(|scope| {
        let bind =
            |scope: &EarlyScope<'_>| UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
        let mut two = Two(bind(scope), bind(scope));
        scope.register(&mut two, Interest::Both).expect("both are of this backend");
        scope.deregister(&mut two).expect("both are registered");
    });
}

#[test]
fn what_mio_can_register_reports_to_its_machine_until_it_is_taken_back() {
    let (mut peer, end) = std::os::unix::net::UnixStream::pair().expect("descriptors are left");
    end.set_nonblocking(true).expect("it can be");
    let mut source = Some(MioSource::from_mio(mio::net::UnixStream::from_std(end)));
    let mut creator = Loop::<Actor<Vec<u8>>>::new(&Config::new()).expect("descriptors are left");
    let made = creator.add_machine_with(|scope| {
        let registered = source.as_mut().expect("it is there");
        scope.register(registered, Interest::Readable).expect("it is of this backend");
        assert_eq!(
            registered.inner().peer_addr().ok().map(|address| address.is_unnamed()),
            Some(true)
        );
        Response::ok(actor(move |call, scope: &mut Scope<'_, Vec<u8>>| {
            let Call::Ready(_) = call else { return Response::keep(()) };
            let Some(mut registered) = source.take() else { return Response::done() };
            let mut bytes = [0; 9];
            let read = registered.inner_mut().read(&mut bytes).expect("something has come");
            scope.extend_from_slice(&bytes[..read]);
            scope.deregister(&mut registered).expect("it is registered");
            drop(registered.into_inner());
            Response::done()
        }))
    });
    made.expect("there is room");
    peer.write_all(b"hello").expect("there is room");
    let mut instance = creator.instantiate(Vec::new());
    instance.run().expect("the backend can wait");
    assert_eq!(instance.context(), b"hello");
}

/// Notes when it is dropped: a backend, and what machines hold.
struct Noted<T> {
    inner: T,
    name: &'static str,
    dropped: Rc<RefCell<Vec<&'static str>>>,
}

impl<T> Drop for Noted<T> {
    fn drop(&mut self) {
        self.dropped.borrow_mut().push(self.name);
    }
}

impl Backend for Noted<Mio> {
    type Handle = MioHandle;

    fn handle(&self) -> io::Result<MioHandle> {
        self.inner.handle()
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.inner.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        self.inner.wait(until, ready)
    }
}

/// Its sockets deregister with it as they are dropped.
#[test]
fn a_backend_is_dropped_after_the_machines_of_its_loop() {
    struct Holder(#[expect(dead_code, reason = "it is to be dropped")] Noted<()>);

    impl Machine for Holder {
        type Context = ();
        type Seed = Infallible;
    }

    let dropped = Rc::new(RefCell::new(Vec::new()));
    let inner = Mio::new(8).expect("there are descriptors");
    let backend = Noted { inner, name: "the backend", dropped: dropped.clone() };
    let config = Config::new();
    let mut instance =
        Loop::<Holder, _>::with_backend(backend, &config).expect("there is room").instantiate(());
    let held = Noted { inner: (), name: "a machine", dropped: dropped.clone() };
    instance.add_machine_with(|_| Response::ok(Holder(held))).expect("there is room");
    drop(instance);
    assert_eq!(*dropped.borrow(), ["a machine", "the backend"]);
}
