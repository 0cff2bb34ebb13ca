//! The server that is asked, if no other one is named: it answers each text in upper case.

use std::marker::PhantomData;
use std::time::Duration;

use rotor::stream::{Exception, Intent, Matched, Protocol, Transport};
use rotor::{Scope, Time};

use crate::machine::wire;

/// How long a client may send no question. Its connection is then closed.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection of a client.
pub(crate) struct Backend<C>(PhantomData<fn(C)>);

impl<C> Backend<C> {
    fn next(self, scope: &Scope<'_, C>) -> Intent<Self> {
        Intent::of(self)
            .frame(wire::message_length, wire::MESSAGE_BYTES_MAX)
            .deadline(scope.now() + IDLE_TIME_MAX)
    }
}

impl<C> Protocol for Backend<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        Backend(PhantomData).next(scope)
    }

    fn bytes_read(
        self,
        message: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let text = wire::text(message.content(transport.input)).to_ascii_uppercase();
        message.consume(transport.input);
        match wire::write(transport.output, &text) {
            Ok(()) => self.next(scope),
            Err(error) => Intent::error(error),
        }
    }

    fn timeout(self, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }

    fn exception(self, _: Exception, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }

    /// The pool in the same loop may ask until all others have ended.
    fn draining(self, _: Time, _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        match scope.wait_for_others() {
            true => Intent::of(self).keep().keep_deadline(),
            false => Intent::done(),
        }
    }
}
