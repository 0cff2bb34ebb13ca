//! Loops whose sockets the test holds: machines only lend their tokens. For the crates of loops,
//! whose suites have this by its path.

use std::convert::Infallible;
use std::io::{self, ErrorKind, Read, Write};

use rotor_core::{Backend, EventSet, LoopInstance, Machine, Response, Scope};

/// The events that machines were told of.
pub(crate) type Told = Vec<EventSet>;

/// What notes that it was told something.
pub(crate) struct Note;

impl Machine for Note {
    type Context = Told;
    type Seed = Infallible;

    fn ready(self, events: EventSet, scope: &mut Scope<'_, Told>) -> Response<Self, Infallible> {
        scope.push(events);
        Response::keep(self)
    }
}

/// Runs something with the scope of a machine of its own.
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

/// Reads what is there. Returns whether that was all: so many bytes, or whatever there is up to the
/// end.
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

/// Nothing where it would block.
pub(crate) fn not_yet<T>(result: io::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

/// Writes as much as is taken.
pub(crate) fn fill(socket: &mut impl Write, bytes: &[u8]) -> usize {
    let mut taken = 0;
    while taken < bytes.len()
        && let Some(count) = not_yet(socket.write(&bytes[taken..]))
    {
        taken += count;
    }
    taken
}

/// Bytes that show where they belong.
pub(crate) fn text(len: usize) -> Vec<u8> {
    (0..len).map(|byte| (byte % 251) as u8).collect()
}
