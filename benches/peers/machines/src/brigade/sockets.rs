//! Members joined by Unix sockets, because there are no pipes on a ring of io_uring: on the bare
//! loops of both kinds, and the same machines on mio and on io_uring.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream as StdStream;

use mio::net::UnixStream as MioStream;
use rotor_core::net::{StreamSocket, UnixStream};
use rotor_core::{
    Backend, Config, EventSet, Infallible, Interest, Loop, LoopInstance, Machine, Mio, Response,
    Scope,
};
use rotor_uring::{Uring, UringConfig, UringUnixStream};

use super::machines::Ring;
use super::{Brigade, bare};

pub(crate) fn on_bare_loop(members: usize) -> bare::Joined<MioStream, MioStream> {
    let members = ring(members).into_iter();
    let ends =
        members.map(|(input, output)| (MioStream::from_std(input), MioStream::from_std(output)));
    bare::Joined::of(ends.collect())
}

pub(crate) fn on_mio(members: usize) -> OnSockets<UnixStream, Mio> {
    let mio = Mio::new(1_024).expect("there are descriptors");
    // The outputs are not registered: epoll would report room after each byte that was read.
    OnSockets::new(mio, members, |(input, output), scope| {
        let input = UnixStream::from_std(input, scope).expect("a socket");
        (input, UnixStream::from_std(output, scope).expect("a socket"))
    })
}

/// Returns `None`, and prints why, if the system refuses.
pub(crate) fn on_uring(members: usize) -> Option<OnSockets<UringUnixStream, Uring>> {
    let opened = Uring::open(&UringConfig::new());
    let uring = opened.map_err(|refused| eprintln!("without io_uring: {refused}")).ok()?;
    Some(OnSockets::new(uring, members, |(input, output), scope| {
        let input = UringUnixStream::from_std(input, scope).expect("a socket");
        let mut output = UringUnixStream::from_std(output, scope).expect("a socket");
        // Otherwise each byte would be sent by a separate call, because its errors could not be
        // reported. Room is reported only after a write has found none.
        scope.register(&mut output, Interest::Writable).expect("of this loop");
        (input, output)
    }))
}

/// Makes the bare loop on io_uring. Returns `None`, and prints why, if the system refuses.
pub(crate) fn on_bare_uring(members: usize) -> Option<bare_uring::brigade::Joined> {
    let joined = bare_uring::brigade::Joined::of(ring(members));
    joined.map_err(|refused| eprintln!("without io_uring: {refused}")).ok()
}

impl Brigade for bare_uring::brigade::Joined {
    fn hops(&mut self, hops: u64) {
        self.hops(hops);
    }
}

/// Reads a byte and writes it to the next member's socket.
struct Linked<S> {
    input: S,
    output: S,
}

impl<S: StreamSocket + 'static> Machine for Linked<S> {
    type Context = Ring;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, Ring>) -> Response<Self, Infallible> {
        // Read with one call: a short read has emptied the socket.
        let mut bytes = [0; 8];
        match self.input.read(&mut bytes) {
            Ok(_) if Ring::goes_on(scope) => self.pass_on(),
            Ok(_) => Response::ok(self),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Response::ok(self),
            Err(error) => Response::error(error),
        }
    }

    fn wakeup(self, _: &mut Scope<'_, Ring>) -> Response<Self, Infallible> {
        self.pass_on()
    }
}

impl<S: StreamSocket + 'static> Linked<S> {
    fn pass_on(mut self) -> Response<Self, Infallible> {
        match self.output.write_all(&[1]) {
            Ok(()) => Response::ok(self),
            Err(error) => Response::error(error),
        }
    }
}

/// A loop with a brigade. A wake-up starts it.
pub(crate) struct OnSockets<S: StreamSocket + 'static, B: Backend> {
    instance: LoopInstance<Linked<S>, B>,
}

impl<S: StreamSocket + 'static, B: Backend> OnSockets<S, B> {
    fn new(backend: B, members: usize, take: Take<S>) -> Self {
        let config = Config::new().machines_max(members);
        let creator = Loop::with_backend(backend, &config).expect("a loop");
        let mut instance = creator.instantiate(Ring::default());
        let mut first = None;
        for ends in ring(members) {
            let added = instance.add_machine_with(|scope: &mut Scope<'_, Ring>| {
                first.get_or_insert_with(|| scope.notifier());
                let (mut input, output) = take(ends, scope);
                scope.register(&mut input, Interest::Readable).expect("of this loop");
                Response::ok(Linked { input, output })
            });
            added.expect("there is room");
        }
        instance.context_mut().start_with(first);
        OnSockets { instance }
    }
}

impl<S: StreamSocket + 'static, B: Backend> Brigade for OnSockets<S, B> {
    fn hops(&mut self, hops: u64) {
        self.instance.context_mut().begin(hops);
        self.instance.run().expect("it runs");
        self.instance.context().check();
    }
}

/// Turns both into sockets of a loop.
type Take<S> = fn(Ends, &Scope<'_, Ring>) -> (S, S);

/// What a member reads from, and what it writes to.
type Ends = (StdStream, StdStream);

/// Makes the sockets: the first member writes to the second one, the last to the first.
fn ring(members: usize) -> Vec<Ends> {
    let pair = |_| {
        let (output, input) = StdStream::pair().expect("there are descriptors");
        for end in [&output, &input] {
            end.set_nonblocking(true).expect("it is a socket");
        }
        (output, input)
    };
    let (outputs, mut inputs): (Vec<_>, Vec<_>) = (0..members).map(pair).unzip();
    inputs.rotate_right(1);
    inputs.into_iter().zip(outputs).collect()
}
