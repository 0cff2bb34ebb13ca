//! Support for tests that are written once and run on every loop. `OnLoop` is a kind of loop; `Rig`
//! runs a test's machines on one. The other end of their connections is driven by the test's
//! thread.
#![allow(dead_code, reason = "each suite uses a part of it")]

mod kernel;

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use rotor_core::net::{IpNet, ListenOptions, Listener, Net, StreamSocket};
use rotor_core::{Backend, Config, Exit, Interest, LoopInstance, Machine, Response, Scope, Token};

#[allow(
    unused_imports,
    reason = "in a crate's own suite the one, on the other loops the other"
)]
pub(crate) use self::kernel::{
    Adopt, Mio, OnKernel, UnixDatagramOn, UnixListenerOn, UnixStreamOn, adopt,
};

/// `Send` where loops may move between threads, that is with `--cfg rotor_handed` (decision 89).
/// The core's own suite is run with it, on mio. Otherwise there is no requirement: the sockets of
/// smoltcp and of the simulator stay on their thread.
#[cfg(rotor_handed)]
pub(crate) trait MaybeSend: Send {}
#[cfg(rotor_handed)]
impl<T: Send + ?Sized> MaybeSend for T {}

#[cfg(not(rotor_handed))]
pub(crate) trait MaybeSend {}
#[cfg(not(rotor_handed))]
impl<T: ?Sized> MaybeSend for T {}

/// The machines of a test.
pub(crate) trait TestMachine:
    Machine<Context: MaybeSend + 'static, Seed: MaybeSend> + MaybeSend + 'static
{
}

impl<M> TestMachine for M where
    M: Machine<Context: MaybeSend + 'static, Seed: MaybeSend> + MaybeSend + 'static
{
}

/// A kind of loop, its sockets, and the other end of their connections.
///
/// On mio and io_uring the other end is a socket of the standard library. On the others it is a
/// socket of the same loop that no machine owns, because nothing outside can reach their stack.
pub(crate) trait OnLoop: Sized + 'static {
    type Backend: Backend;
    type Net: IpNet<Stream: MaybeSend, Listener: MaybeSend, Datagram: MaybeSend>;
    type End: End;
    /// Accepts the connections that machines make.
    type PeerListener;
    /// A running loop.
    type Running<M: TestMachine>;

    /// The maximum number of turns to wait for something that is bound to happen.
    const TURNS_MAX: u32;

    /// Why this loop is not available on this system, or `None` if it is.
    fn refusal() -> Option<String> {
        None
    }

    fn open<M: TestMachine>(config: &Config, context: M::Context) -> Self::Running<M>;

    fn with<M: TestMachine, R>(
        running: &mut Self::Running<M>,
        ask: impl FnOnce(&mut LoopInstance<M, Self::Backend>) -> R,
    ) -> R;

    /// Takes one turn. It waits a few milliseconds at most; with virtual time, a tenth of a
    /// millisecond passes.
    fn turn<M: TestMachine>(running: &mut Self::Running<M>) -> Option<Exit>;

    /// Starts to connect.
    fn connect<M: TestMachine>(running: &mut Self::Running<M>, to: SocketAddr) -> Self::End;

    /// Listens at a free address.
    fn peer_listener<M: TestMachine>(
        running: &mut Self::Running<M>,
    ) -> (Self::PeerListener, SocketAddr);

    /// Accepts the next pending connection.
    fn accept_peer(door: &mut Self::PeerListener) -> io::Result<Self::End>;

    /// An address that refuses connections as long as the returned value is alive.
    fn closed() -> (Box<dyn std::any::Any>, SocketAddr);

    /// An address that never answers as long as the returned value is alive.
    fn silent() -> (Box<dyn std::any::Any>, SocketAddr);
}

/// The other end of a connection. It never blocks.
pub(crate) trait End: Read + Write {
    /// Whether it is connected.
    fn has_connected(&mut self) -> io::Result<bool>;

    /// Shuts down its write side.
    fn end(&mut self) -> io::Result<()>;
}

pub(crate) type StreamOn<L> = <<L as OnLoop>::Net as Net>::Stream;
pub(crate) type ListenerOn<L> = <<L as OnLoop>::Net as Net>::Listener;
pub(crate) type DatagramOn<L> = <<L as OnLoop>::Net as Net>::Datagram;

/// A free port of the loopback address, which each loop can reach.
pub(crate) fn local() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A loop with the machines of a test.
pub(crate) struct Rig<M: TestMachine, L: OnLoop> {
    running: L::Running<M>,
    exit: Option<Exit>,
}

impl<M: TestMachine, L: OnLoop> Rig<M, L> {
    pub(crate) fn new(config: &Config, context: M::Context) -> Rig<M, L> {
        Rig { running: L::open(config, context), exit: None }
    }

    pub(crate) fn with<R>(&mut self, ask: impl FnOnce(&mut LoopInstance<M, L::Backend>) -> R) -> R {
        L::with(&mut self.running, ask)
    }

    pub(crate) fn add(
        &mut self,
        make: impl FnOnce(&mut Scope<'_, M::Context>) -> Response<M>,
    ) -> Token {
        let added = self.with(|instance| {
            instance.add_machine_with(|scope| make(scope)).map_err(|error| error.to_string())
        });
        added.expect("the machine is made")
    }

    /// Adds a machine that listens at a free port, and one that starts to connect to it.
    pub(crate) fn add_both(
        &mut self,
        listening: impl FnOnce(ListenerOn<L>) -> M,
        connecting: impl FnOnce(StreamOn<L>, &mut Scope<'_, M::Context>) -> M,
    ) {
        let mut address = None;
        self.add(|scope| {
            Response::attempt(|| {
                let mut listener = ListenerOn::<L>::bind(&local(), &ListenOptions::new(), scope)?;
                scope.register(&mut listener, Interest::Readable)?;
                address = listener.local_address();
                Ok(Response::ok(listening(listener)))
            })
        });
        let target = address.expect("it is bound");
        self.add(|scope| {
            Response::attempt(|| {
                let socket = StreamOn::<L>::connect(&target, scope)?;
                Ok(Response::ok(connecting(socket, scope)))
            })
        });
    }

    pub(crate) fn context<R>(&mut self, ask: impl FnOnce(&mut M::Context) -> R) -> R {
        self.with(|instance| ask(instance.context_mut()))
    }

    /// The number of machines.
    pub(crate) fn machines(&mut self) -> usize {
        self.with(|instance| instance.machines().len())
    }

    pub(crate) fn turn(&mut self) {
        self.exit = L::turn(&mut self.running).or(self.exit.take());
    }

    /// The exit of the loop, if it has ended.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit.clone()
    }

    /// Takes turns until the condition holds.
    pub(crate) fn until(&mut self, mut is_so: impl FnMut(&mut Rig<M, L>) -> bool) {
        for _ in 0..L::TURNS_MAX {
            if is_so(self) {
                return;
            }
            self.turn();
        }
        panic!("it does not come to that");
    }

    /// Takes turns until the loop ends.
    pub(crate) fn run(&mut self) -> Exit {
        self.until(|rig| rig.exit.is_some());
        self.exit().expect("as asked")
    }

    /// Starts to connect to an address. Where the other end is a socket of the same loop, this
    /// takes a free slot to create it.
    pub(crate) fn begin(&mut self, to: SocketAddr) -> L::End {
        L::connect(&mut self.running, to)
    }

    /// Connects to an address, and takes turns until the connection is established.
    pub(crate) fn connect(&mut self, to: SocketAddr) -> L::End {
        let mut end = self.begin(to);
        self.until(|_| end.has_connected().expect("the listener listens"));
        end
    }

    /// Listens at the other end.
    pub(crate) fn peer_listener(&mut self) -> (L::PeerListener, SocketAddr) {
        L::peer_listener(&mut self.running)
    }

    /// Takes turns until a machine connects to this listener, and returns the connection.
    pub(crate) fn accept_peer(&mut self, door: &mut L::PeerListener) -> L::End {
        let mut end = None;
        self.until(|_| {
            end = not_yet(L::accept_peer(door)).expect("the door is open");
            end.is_some()
        });
        end.expect("as asked")
    }

    /// Writes all bytes. Takes turns while the socket takes none.
    pub(crate) fn send(&mut self, end: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
        let mut failed = None;
        self.until(|_| {
            while !bytes.is_empty() {
                match not_yet(end.write(bytes)) {
                    Ok(Some(count)) => bytes = &bytes[count..],
                    Ok(None) => return false,
                    Err(error) => {
                        failed = Some(error);
                        return true;
                    }
                }
            }
            true
        });
        failed.map_or(Ok(()), Err)
    }

    /// Reads exactly `count` bytes, or everything up to EOF for `None`.
    pub(crate) fn receive(
        &mut self,
        end: &mut impl Read,
        count: Option<usize>,
    ) -> io::Result<Vec<u8>> {
        let (got, failed) = self.hear(end, count);
        failed.map_or(Ok(got), Err)
    }

    /// As `receive`, but also returns the bytes that came before an error.
    pub(crate) fn hear(
        &mut self,
        end: &mut impl Read,
        count: Option<usize>,
    ) -> (Vec<u8>, Option<io::Error>) {
        let (mut got, mut failed) = (Vec::new(), None);
        let mut chunk = vec![0; 256 * 1024];
        self.until(|_| {
            loop {
                let most = count.map_or(chunk.len(), |count| chunk.len().min(count - got.len()));
                if most == 0 {
                    return true;
                }
                match not_yet(end.read(&mut chunk[..most])) {
                    Ok(Some(0)) => return true,
                    Ok(Some(read)) => got.extend_from_slice(&chunk[..read]),
                    Ok(None) => return false,
                    Err(error) => {
                        failed = Some(error);
                        return true;
                    }
                }
            }
        });
        (got, failed)
    }
}

/// Returns `None` for `WouldBlock`.
pub(crate) fn not_yet<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The return value of a test: nothing, or a result.
pub(crate) trait TestOutcome {
    fn check(self);
}

impl TestOutcome for () {
    fn check(self) {}
}

impl<E: std::fmt::Debug> TestOutcome for Result<(), E> {
    fn check(self) {
        self.expect("the test succeeds");
    }
}

/// Runs a test on a loop. If the loop is in the list of loops that cannot pass it, the test must
/// fail. A loop that has learnt to pass it has to be removed from the list.
pub(crate) fn run<L: OnLoop, V: TestOutcome>(name: &str, cannot: &[(&str, &str)], test: fn() -> V) {
    for (excepted, why) in cannot {
        let is_known = ["mio", "io_uring", "smoltcp", "simulated"].contains(excepted);
        assert!(is_known && !why.is_empty(), "{excepted}: {why}");
    }
    if let Some(refusal) = L::refusal() {
        eprintln!("skipped: {refusal}");
        return;
    }
    let Some((_, why)) = cannot.iter().find(|(excepted, _)| *excepted == name) else {
        return test().check();
    };
    let attempt = std::panic::catch_unwind(|| test().check());
    assert!(attempt.is_err(), "it can, though it is said that it cannot: {why}");
}
