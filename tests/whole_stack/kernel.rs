//! Connections over loopback, on mio and on io_uring. The loop's time is shifted, so that a test
//! need not wait for deadlines.
#![expect(clippy::disallowed_methods, reason = "a client outside of any loop")]

use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use rotor::backend::{Backend, BackendHandle, Wake};
use rotor::net::StreamSocket;
use rotor::stream::Stream;
use rotor::{Config, EventSet, ExitPolicy, Loop, LoopInstance, Mio, Scope, Time, Token};
#[cfg(target_os = "linux")]
use rotor_uring::{Uring, UringConfig, UringTcpStream};
use socket2::{Domain, SockRef, Socket, Type};

use crate::rig::{Seen, Serving};
use crate::talks::lock;
use crate::wire::{Machine, Wire};

/// A backend whose clock is ahead of that of the one that it wraps.
struct Shifted<B> {
    inner: B,
    shift: Rc<Cell<Duration>>,
}

struct ShiftedHandle<H> {
    inner: H,
    shift: Rc<Cell<Duration>>,
}

impl<B: Backend> Backend for Shifted<B> {
    type Handle = ShiftedHandle<B::Handle>;

    fn handle(&self) -> io::Result<Self::Handle> {
        Ok(ShiftedHandle { inner: self.inner.handle()?, shift: self.shift.clone() })
    }

    fn waker(&self) -> io::Result<Arc<dyn Wake>> {
        self.inner.waker()
    }

    fn wait(&mut self, until: Option<Time>, ready: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
        let shift = self.shift.get();
        let until = until.map(|until| Time::ZERO + (until - Time::ZERO).saturating_sub(shift));
        self.inner.wait(until, ready)
    }

    fn may_have_more(&self) -> bool {
        self.inner.may_have_more()
    }

    fn full_waits(&self) -> usize {
        self.inner.full_waits()
    }

    fn has_unsent(&self) -> bool {
        self.inner.has_unsent()
    }
}

impl<H: BackendHandle> BackendHandle for ShiftedHandle<H> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn now(&self) -> Time {
        self.inner.now() + self.shift.get()
    }

    fn wall_time(&self) -> SystemTime {
        self.inner.wall_time()
    }

    fn within(&self) -> Option<&dyn BackendHandle> {
        Some(&self.inner)
    }
}

/// How often something is tried that is bound to happen.
const TURNS_MAX: usize = 100_000;

/// Turns without any work after which the loop counts as settled.
const QUIET_TURNS: usize = 3;

/// The send buffer of the machine and the receive buffer of the client, in bytes: less than a
/// WebSocket may have on its way.
const BUFFER_BYTES: usize = 8_192;

/// A connection over loopback.
struct OverLoopback<S: StreamSocket, B: Backend> {
    instance: LoopInstance<Machine<S>, Shifted<B>>,
    shift: Rc<Cell<Duration>>,
    /// `None` once it is closed.
    client: Option<TcpStream>,
    /// Whether the client reads nothing as long as there is a machine.
    is_deaf: bool,
    failures: Arc<Mutex<Vec<String>>>,
}

/// On mio.
pub(crate) fn on_mio(serving: Serving) -> Box<dyn Wire> {
    let mio = Mio::new(1_024).expect("descriptors are left");
    Box::new(OverLoopback::open(mio, serving, rotor::net::TcpStream::from_std))
}

/// On io_uring.
#[cfg(target_os = "linux")]
pub(crate) fn on_uring(serving: Serving) -> Box<dyn Wire> {
    let uring = Uring::open(&UringConfig::new()).expect("it was opened before");
    Box::new(OverLoopback::open(uring, serving, UringTcpStream::from_std))
}

/// Why there is no io_uring, or `None` if there is.
#[cfg(target_os = "linux")]
pub(crate) fn refusal_of_uring() -> Option<String> {
    Uring::open(&UringConfig::new()).err().map(|refused| refused.to_string())
}

/// Both ends of a connection: the machine's, the client's.
fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let client = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    client.set_recv_buffer_size(BUFFER_BYTES)?;
    client.connect(&listener.local_addr()?.into())?;
    let (server, _) = listener.accept()?;
    SockRef::from(&server).set_send_buffer_size(BUFFER_BYTES)?;
    let client = TcpStream::from(client);
    client.set_nonblocking(true)?;
    client.set_nodelay(true)?;
    Ok((server, client))
}

impl<S: StreamSocket, B: Backend> OverLoopback<S, B> {
    fn open(
        backend: B,
        serving: Serving,
        adopt: fn(TcpStream, &Scope<'_, Seen>) -> io::Result<S>,
    ) -> OverLoopback<S, B> {
        let shift = Rc::new(Cell::new(Duration::ZERO));
        let failures = Arc::new(Mutex::new(Vec::new()));
        let observed = failures.clone();
        let config = Config::new().exit(ExitPolicy::OnRequest).observer(move |failure| {
            lock(&observed).push(failure.cause.to_string());
        });
        let backend = Shifted { inner: backend, shift: shift.clone() };
        let creator = Loop::with_backend(backend, &config).expect("descriptors are left");
        let mut instance = creator.instantiate(Seen::default());
        let (server, client) = connection().expect("a port is free");
        let added = instance.add_machine_with(|scope| {
            rotor::Response::attempt(|| {
                let socket = serving.wrap(adopt(server, scope)?);
                Ok(Stream::connected(socket, serving.seed, scope))
            })
        });
        added.expect("the machine is made");
        OverLoopback { instance, shift, client: Some(client), is_deaf: false, failures }
    }

    /// How much the loop has done so far.
    fn work(&self) -> u64 {
        let stats = self.instance.stats().read();
        stats.events + stats.wakeups + stats.timeouts + stats.stale + stats.spawned
    }

    fn turn(&mut self, wait: Duration) {
        self.instance.turn(Some(wait)).expect("the backend waits");
    }
}

impl<S: StreamSocket, B: Backend> Wire for OverLoopback<S, B> {
    fn send(&mut self, mut bytes: &[u8]) {
        for _ in 0..TURNS_MAX {
            let Some(client) = &mut self.client else { return };
            match client.write(bytes) {
                Ok(count) if count == bytes.len() => return,
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.settle(),
                // The machine has closed it.
                Err(_) => return,
            }
        }
        panic!("the machine does not read");
    }

    fn take_received(&mut self) -> Vec<u8> {
        let mut received = Vec::new();
        let is_dropped = self.is_dropped();
        if self.is_deaf && !is_dropped {
            return received;
        }
        for _ in 0..TURNS_MAX {
            let Some(client) = &mut self.client else { return received };
            let mut bytes = [0; 16 * 1_024];
            match client.read(&mut bytes) {
                Ok(count @ 1..) => received.extend(&bytes[..count]),
                // What the machine has written is still on its way.
                Err(error) if error.kind() == ErrorKind::WouldBlock && is_dropped => {
                    self.turn(Duration::from_millis(10));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return received,
                // The end, or a reset.
                Ok(0) | Err(_) => return received,
            }
        }
        panic!("the connection of a machine that is gone does not end");
    }

    fn fill(&mut self) {
        self.is_deaf = true;
    }

    fn end(&mut self) {
        if let Some(client) = &self.client {
            // The machine may have closed it.
            let _gone = client.shutdown(Shutdown::Write);
        }
    }

    fn reset(&mut self) {
        if let Some(client) = self.client.take() {
            SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("it is a socket");
        }
    }

    /// A peer that has closed its socket answers what comes then with a reset.
    fn fail_writes(&mut self) {
        self.client = None;
    }

    fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..TURNS_MAX {
            let before = self.work();
            self.turn(Duration::ZERO);
            let next = self.instance.next_deadline();
            let is_due = next.is_some_and(|next| next <= self.instance.now());
            quiet = if is_due || self.work() > before { 0 } else { quiet + 1 };
            if quiet == QUIET_TURNS {
                return;
            }
        }
        panic!("the loop does not come to rest: {:?}", self.instance.stats().read());
    }

    fn advance_to_deadline(&mut self) -> bool {
        let timeouts = self.instance.stats().read().timeouts;
        self.settle();
        for _ in 0..TURNS_MAX {
            let stats = self.instance.stats().read();
            if stats.timeouts > timeouts {
                return true;
            }
            let next = self.instance.next_deadline().filter(|_| stats.armed > 0);
            let Some(next) = next else { return false };
            self.shift.set(self.shift.get() + (next - self.instance.now()));
            self.settle();
        }
        panic!("a deadline does not fire");
    }

    fn drain(&mut self, time: Duration) {
        self.instance.handle().drain(time);
        self.settle();
    }

    fn is_dropped(&mut self) -> bool {
        self.instance.machines().is_empty()
    }

    fn context(&self) -> &Seen {
        self.instance.context()
    }

    fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }
}
