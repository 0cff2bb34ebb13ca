//! The interface to backends: foreign sources, two loops side by side, a second backend.

mod capacity;
mod embedding;

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rotor_core::foreign::MioSource;
use rotor_core::net::{
    DatagramSocket, ListenOptions, Listener, StreamSocket, TcpListener, TcpStream, UdpSocket,
    UnixDatagram, UnixListener, UnixStream,
};
use rotor_core::{
    Backend, BackendHandle, Config, EarlyScope, EventSet, ExitPolicy, Interest, Loop, LoopInstance,
    Machine, Mio, MioHandle, Response, Scope, Source, Time, Token, Wake,
};

use crate::actor::{Actor, Call, actor, idle};
use crate::manual::{Manual, Socket, settle};

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// The result of `ask`, called with the scope of a loop on the manual backend.
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
fn registering_a_source_twice_fails_and_keeps_it_registered() {
    on_mio(|scope| {
        let mut socket = UdpSocket::bind(&LOCAL.into(), scope).expect("a port is free");
        let _descriptor = socket.as_fd();
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
fn a_backend_without_a_pool_returns_the_job() {
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
fn times_of_two_loops_are_comparable() {
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

#[test]
fn a_backend_error_ends_the_run_and_keeps_the_machines() {
    let manual = Manual::new();
    let mut instance =
        manual.start(&Config::new(), (), |_| Response::ok(actor(|_, _| Response::done())));
    assert_eq!(instance.run().expect_err("it would sleep forever").to_string(), "asleep");
    let token = instance.machines().iter().next().expect("it is still there").0;
    manual.feed(token, EventSet::READABLE);
    assert_eq!(instance.run().expect("there is an event"), rotor_core::Exit::Empty);
}

#[test]
fn a_custom_source_may_contain_several_sources() {
    struct SourcePair(UdpSocket, UdpSocket);
    impl Source for SourcePair {
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
        let mut two = SourcePair(bind(scope), bind(scope));
        scope.register(&mut two, Interest::Both).expect("both are of this backend");
        scope.deregister(&mut two).expect("both are registered");
    });
}

#[test]
fn a_wrapped_mio_source_reports_events_until_it_is_deregistered() {
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

/// Records when it is dropped. Wraps a backend, or is held by machines.
struct DropRecorder<T> {
    inner: T,
    name: &'static str,
    dropped: Arc<Mutex<Vec<&'static str>>>,
}

impl<T> Drop for DropRecorder<T> {
    fn drop(&mut self) {
        self.dropped.lock().expect("nobody panics with it").push(self.name);
    }
}

impl Backend for DropRecorder<Mio> {
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

/// The backend's sockets deregister from it when they are dropped.
#[test]
fn a_backend_is_dropped_after_the_machines_of_its_loop() {
    struct Holder(#[expect(dead_code, reason = "it is to be dropped")] DropRecorder<()>);

    impl Machine for Holder {
        type Context = ();
        type Seed = Infallible;
    }

    let dropped = Arc::new(Mutex::new(Vec::new()));
    let inner = Mio::new(8).expect("there are descriptors");
    let backend = DropRecorder { inner, name: "the backend", dropped: dropped.clone() };
    let config = Config::new();
    let mut instance =
        Loop::<Holder, _>::with_backend(backend, &config).expect("there is room").instantiate(());
    let held = DropRecorder { inner: (), name: "a machine", dropped: dropped.clone() };
    instance.add_machine_with(|_| Response::ok(Holder(held))).expect("there is room");
    drop(instance);
    assert_eq!(*dropped.lock().expect("nobody panics with it"), ["a machine", "the backend"]);
}
