//! `Echo`: a protocol that sends back what it receives. The test suites of the loop crates include
//! this file by its path.

use std::io::Write;

use rotor::Scope;
use rotor::stream::{Intent, Matched, Protocol, Transport};

pub(crate) struct Echo;

impl Protocol for Echo {
    type Context = ();
    type Seed = ();

    fn create((): (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::of(Echo).bytes(1).no_deadline()
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        if let Err(error) = transport.output.write_all(&transport.input[..]) {
            return Intent::error(error);
        }
        transport.input.clear();
        Intent::of(self).keep().no_deadline()
    }
}
