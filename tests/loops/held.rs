//! Loops whose sockets are owned by the test; machines only lend their tokens. The test suites of
//! the loop crates include this file by its path.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};

use rotor_core::{Backend, EventSet, LoopInstance, Machine, Response, Scope, Time};

/// The events that the machines were notified of.
pub(crate) type Told = Vec<EventSet>;

/// A machine that records each event it gets.
pub(crate) struct Note;

impl Machine for Note {
    type Context = Told;
    type Seed = Infallible;

    fn ready(self, events: EventSet, scope: &mut Scope<'_, Told>) -> Response<Self, Infallible> {
        scope.push(events);
        Response::keep(self)
    }

    fn draining(self, _until: Time, _scope: &mut Scope<'_, Told>) -> Response<Self, Infallible> {
        Response::done()
    }
}

/// Runs `ask` with the scope of a machine that it adds for this.
pub(crate) fn within<T, B: Backend>(
    instance: &mut LoopInstance<Note, B>,
    ask: impl FnOnce(&mut Scope<'_, Told>) -> T,
) -> T {
    let mut answer = None;
    let made = instance.add_machine_with(|scope| {
        answer = Some(ask(scope));
        Response::ok(Note)
    });
    made.expect("there is room");
    answer.expect("the closure ran")
}

/// Reads until `got` holds `count` bytes, until EOF, or until the read would block. Without a count
/// there is no limit. Returns whether `count` bytes or EOF have been reached.
pub(crate) fn read_on(socket: &mut impl Read, count: Option<usize>, got: &mut Vec<u8>) -> bool {
    let mut chunk = [0; 5_000];
    while count.is_none_or(|count| got.len() < count)
        && let Some(read) = not_yet(socket.read(&mut chunk))
    {
        got.extend_from_slice(&chunk[..read]);
        if read == 0 {
            return true;
        }
    }
    count.is_some_and(|count| got.len() >= count)
}

/// Returns `None` for `WouldBlock`. Panics on any other error.
pub(crate) fn not_yet<T>(result: io::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

/// Writes until the socket takes no more. Returns how many bytes it took.
pub(crate) fn fill(socket: &mut impl Write, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < bytes.len()
        && let Some(count) = not_yet(socket.write(&bytes[taken..]))
    {
        taken += count;
    }
    taken
}

/// Bytes whose values depend on their positions, so that a misplaced byte is noticed.
pub(crate) fn text(len: usize) -> Vec<u8> {
    (0..len).map(|byte| (byte % 251) as u8).collect()
}
