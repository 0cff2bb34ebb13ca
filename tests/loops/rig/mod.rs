//! What a test needs that is written once and runs on every loop: `OnLoop` is a loop, `Rig` one that
//! runs a test's machines, and the other end of their connections is in the thread of the test.
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

/// What may go from thread to thread, where loops do: with `--cfg rotor_handed` (decision 89), which the
/// core's own suite is run with, on mio. Else it is anything: the sockets of smoltcp and of the
/// simulator stay on their thread.
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

/// A loop of some kind, its sockets, and the other end of their connections.
///
/// On mio and io_uring the other end is a socket of the standard library. Else it is one of the same
/// loop that no machine has: its stack is the only one that can be reached.
pub(crate) trait OnLoop: Sized + 'static {
    type Backend: Backend;
    type Net: IpNet<Stream: MaybeSend, Listener: MaybeSend, Datagram: MaybeSend>;
    type End: End;
    /// Takes the connections that machines make.
    type PeerListener;
    /// A loop that runs.
    type Running<M: TestMachine>;

    /// How many turns a test may wait for something that is bound to come.
    const TURNS_MAX: u32;

    /// Why it cannot be had on this system, if it cannot.
    fn refusal() -> Option<String> {
        None
    }

    fn open<M: TestMachine>(config: &Config, context: M::Context) -> Self::Running<M>;

    fn with<M: TestMachine, R>(
        running: &mut Self::Running<M>,
        ask: impl FnOnce(&mut LoopInstance<M, Self::Backend>) -> R,
    ) -> R;

    /// A turn, which waits for no longer than some milliseconds; where time is virtual, a tenth of
    /// one passes.
    fn turn<M: TestMachine>(running: &mut Self::Running<M>) -> Option<Exit>;

    /// Begins to connect.
    fn connect<M: TestMachine>(running: &mut Self::Running<M>, to: SocketAddr) -> Self::End;

    /// Listens at an address of its own.
    fn peer_listener<M: TestMachine>(
        running: &mut Self::Running<M>,
    ) -> (Self::PeerListener, SocketAddr);

    /// The next connection, if one is there.
    fn accept_peer(door: &mut Self::PeerListener) -> io::Result<Self::End>;

    /// An address where nobody listens, as long as the value beside it is there.
    fn closed() -> (Box<dyn std::any::Any>, SocketAddr);

    /// An address from which nothing comes, as long as the value beside it is there.
    fn silent() -> (Box<dyn std::any::Any>, SocketAddr);
}

/// The other end of a connection. It never blocks.
pub(crate) trait End: Read + Write {
    /// Whether it is connected by now.
    fn has_connected(&mut self) -> io::Result<bool>;

    /// Ends its side.
    fn end(&mut self) -> io::Result<()>;
}

pub(crate) type StreamOn<L> = <<L as OnLoop>::Net as Net>::Stream;
pub(crate) type ListenerOn<L> = <<L as OnLoop>::Net as Net>::Listener;
pub(crate) type DatagramOn<L> = <<L as OnLoop>::Net as Net>::Datagram;

/// A port of its own, where each loop reaches itself.
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

    /// Adds a machine that listens at a port of its own, and one that begins to connect to it.
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

    /// How many machines there are.
    pub(crate) fn machines(&mut self) -> usize {
        self.with(|instance| instance.machines().len())
    }

    pub(crate) fn turn(&mut self) {
        self.exit = L::turn(&mut self.running).or(self.exit.take());
    }

    /// Why the loop has ended, if it has.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit.clone()
    }

    /// Takes turns until it is so.
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

    /// Begins to connect to an address. Where the other end is a socket of the loop, it takes a free
    /// slot to make one.
    pub(crate) fn begin(&mut self, to: SocketAddr) -> L::End {
        L::connect(&mut self.running, to)
    }

    /// A connection to an address, as soon as it stands.
    pub(crate) fn connect(&mut self, to: SocketAddr) -> L::End {
        let mut end = self.begin(to);
        self.until(|_| end.has_connected().expect("the listener listens"));
        end
    }

    /// Listens at the other end.
    pub(crate) fn peer_listener(&mut self) -> (L::PeerListener, SocketAddr) {
        L::peer_listener(&mut self.running)
    }

    /// The next connection that a machine makes to a door.
    pub(crate) fn accept_peer(&mut self, door: &mut L::PeerListener) -> L::End {
        let mut end = None;
        self.until(|_| {
            end = not_yet(L::accept_peer(door)).expect("the door is open");
            end.is_some()
        });
        end.expect("as asked")
    }

    /// Writes all of it, with turns while there is no room.
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

    /// Reads so many bytes and no more, or, for `None`, everything up to the end.
    pub(crate) fn receive(
        &mut self,
        end: &mut impl Read,
        count: Option<usize>,
    ) -> io::Result<Vec<u8>> {
        let (got, failed) = self.hear(end, count);
        failed.map_or(Ok(got), Err)
    }

    /// The same, with what came before it failed.
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

/// Nothing where it would block.
pub(crate) fn not_yet<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a test answers: nothing, or why it failed.
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

/// Runs a test on a loop. Where the loop is said not to be able to, the test has to fail: a loop that
/// has learnt it is to be taken off the list.
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
