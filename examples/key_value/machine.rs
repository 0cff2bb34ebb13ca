//! The clients' protocol.

use std::io::{self, Write};
use std::time::Duration;

use rotor::stream::{Exception, Intent, Matched, Output, Protocol, Transport};
use rotor::{Scope, Time};

use super::command::{Command, LINE_BYTES_MAX};
use super::shared::{Place, Shared};
use super::store::{Key, Refusal};

/// How long a line may take from its first byte to its end, however slowly it arrives.
pub(crate) const LINE_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a client may send no line at all.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// How many keys a listing checks in one call, so that it does not hold up other clients.
pub(crate) const LISTED_KEYS: usize = 1_024;

/// How many bytes a listing writes in one call, and may leave unsent before it writes more.
pub(crate) const LISTED_BYTES: usize = 16 * 1_024;

/// ```text
///         a byte           its end                   KEYS
///   Idle ────────▶ Line ────────────▶ Idle    Line ───────▶ Listing ──all is said──▶ Idle
///    └── silent ─────┴── too long, too slow, QUIT ──▶ end      └── says a piece ──▶ Listing
/// ```
enum State {
    Idle,
    Line,
    Listing(Listing),
}

/// The response to `KEYS`, in progress.
struct Listing {
    prefix: Box<[u8]>,
    /// The last key that was checked.
    after: Option<Key>,
    listed: usize,
}

/// One client.
pub(crate) struct Client {
    state: State,
    /// Freed when the client is dropped, however it ends.
    _place: Place,
}

/// What follows after a command.
enum Next {
    Line,
    List(Listing),
    End,
}

/// Executes a command and writes the response. An error means that the output was closed.
fn execute(line: &[u8], output: &mut Output, shared: &mut Shared, now: Time) -> io::Result<Next> {
    shared.counts.commands += 1;
    let store = &mut shared.store;
    let answered = match Command::parse(line) {
        Ok(Command::Set { key, value }) => {
            store.set(key, value, now).map(|()| output.write_all(b"OK\n")).map_err(refusal_text)
        }
        Ok(Command::Get(key)) => Ok(match store.get(key, now) {
            Some(value) => output.write_pieces(&[b"VALUE ", value, b"\n"]),
            None => output.write_all(b"NONE\n"),
        }),
        Ok(Command::Delete(key)) => Ok(writeln!(output, "{}", u8::from(store.delete(key, now)))),
        Ok(Command::Increment(key)) => store
            .increment(key, now)
            .map(|number| writeln!(output, "{number}"))
            .map_err(refusal_text),
        Ok(Command::Expire { key, after }) => {
            Ok(writeln!(output, "{}", u8::from(store.expire(key, after, now))))
        }
        Ok(Command::Keys(prefix)) => {
            return Ok(Next::List(Listing { prefix: prefix.into(), after: None, listed: 0 }));
        }
        Ok(Command::Quit) => return output.write_all(b"BYE\n").map(|()| Next::End),
        Err(why) => Err(why),
    };
    let answered = answered.unwrap_or_else(|why| {
        shared.counts.errors += 1;
        writeln!(output, "ERR {why}")
    });
    answered.map(|()| Next::Line)
}

fn refusal_text(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Full => "the store is full",
        Refusal::NotANumber => "the value is not a number",
        Refusal::TooLarge => "the number is too large",
    }
}

impl Client {
    /// Waits for a line; during a drain only for the grace, because a line may be on its way from a
    /// client that does not know about the drain.
    fn idle(mut self, scope: &Scope<'_, Shared>) -> Intent<Client> {
        self.state = State::Idle;
        let until = scope.grace_until().unwrap_or(scope.now() + IDLE_TIME_MAX);
        Intent::of(self).bytes(1).deadline(until)
    }

    /// Waits for the next line; during a drain, only if it has arrived at least in part.
    fn next_line(mut self, transport: &Transport<'_>, scope: &Scope<'_, Shared>) -> Intent<Client> {
        if !transport.input.is_empty() {
            self.state = State::Line;
            return Intent::of(self)
                .delimiter(b"\n", LINE_BYTES_MAX)
                .deadline(scope.now() + LINE_TIME_MAX);
        }
        if scope.draining_until().is_some() {
            return Intent::done();
        }
        self.idle(scope)
    }

    /// Writes the next piece of a listing.
    fn list(
        mut self,
        mut listing: Listing,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        let mut piece = Vec::new();
        let Listing { prefix, after, listed } = &mut listing;
        *after = scope.store.list(prefix, after.as_ref(), LISTED_KEYS, scope.now(), |key| {
            for part in [b"KEY ", key, b"\n"] {
                piece.extend_from_slice(part);
            }
            *listed += 1;
            piece.len() < LISTED_BYTES
        });
        let is_last = after.is_none();
        if is_last {
            piece.extend_from_slice(format!("END {listed}\n").as_bytes());
        }
        if let Err(error) = transport.output.write_all(&piece) {
            return Intent::error(error);
        }
        if is_last {
            return self.next_line(transport, scope);
        }
        self.state = State::Listing(listing);
        if piece.is_empty() {
            // All of the checked keys have expired. There is nothing to wait for: the listing goes
            // on in the next turn, after the other machines.
            scope.wake_self();
            return Intent::of(self).sleep().no_deadline();
        }
        // The stream closes the connection to a peer that does not read (`flush_timeout`).
        Intent::of(self).flush(LISTED_BYTES).no_deadline()
    }

    fn continue_listing(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Listing(listing) => self.list(listing, transport, scope),
            state => {
                self.state = state;
                Intent::of(self).keep().keep_deadline()
            }
        }
    }
}

impl Protocol for Client {
    type Context = Shared;
    type Seed = ();

    fn create(
        (): (),
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        if let Some(place) = scope.places.take() {
            return Client { state: State::Idle, _place: place }.idle(scope);
        }
        scope.counts.refused += 1;
        match transport.output.write_all(b"ERR too many clients\n") {
            Ok(()) => Intent::done(),
            Err(error) => Intent::error(error),
        }
    }

    fn bytes_read(
        self,
        matched: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        if let State::Idle = self.state {
            // The first byte of a line: the time limit begins now.
            return self.next_line(transport, scope);
        }
        let (now, line) = (scope.now(), matched.content(transport.input));
        // telnet ends lines in this way.
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let next = execute(line, transport.output, scope, now);
        matched.consume(transport.input);
        match next {
            Ok(Next::Line) => self.next_line(transport, scope),
            Ok(Next::List(listing)) => self.list(listing, transport, scope),
            Ok(Next::End) => Intent::done(),
            Err(error) => Intent::error(error),
        }
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        self.continue_listing(transport, scope)
    }

    fn wakeup(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        self.continue_listing(transport, scope)
    }

    fn timeout(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        if transport.is_input_held() {
            // The client's lines may have arrived already, and wait until it has read more. The
            // stream limits how slowly it may read.
            return Intent::of(self).keep().deadline(scope.now() + LINE_TIME_MAX);
        }
        if matches!(self.state, State::Idle) && scope.draining_until().is_some() {
            return Intent::done();
        }
        scope.counts.late += 1;
        // For people who debug a client; the program does not wait until it is read.
        let _ended = transport.output.write_all(b"ERR too late\n");
        Intent::done()
    }

    fn exception(
        self,
        exception: Exception,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        if let Exception::Limit(bytes) = exception {
            scope.counts.errors += 1;
            let _ended = writeln!(transport.output, "ERR a line of more than {bytes} bytes");
        }
        Intent::done()
    }

    fn draining(
        self,
        _: Time,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Intent<Client> {
        match self.state {
            // A line that has begun is waited for, because the client assumes that it will be
            // executed.
            State::Idle if transport.input.is_empty() => self.idle(scope),
            _ => Intent::of(self).keep().keep_deadline(),
        }
    }
}
