//! A client that shows what a server says, and tells it what is typed.

use std::io::Write;
use std::sync::mpsc::{Receiver, TryRecvError};

use rotor::stream::{Exception, Fatal, Intent, Matched, Protocol, Transport};
use rotor::{Scope, Time};

/// How much of what was typed is handed to the connection in one event, in lines; the rest waits
/// for the next.
const LINES_PER_EVENT: usize = 64;

/// What the client needs of the context: what is typed, and somewhere to show what comes.
pub(crate) trait Terminal {
    /// What is typed; wakes the connection. Disconnected at its end.
    fn typed(&mut self) -> &mut Receiver<Vec<u8>>;
    /// Shows what the server says.
    fn show(&mut self, bytes: &[u8]) -> std::io::Result<()>;
    /// Says why it ended, if not well.
    fn failed(&mut self, why: String);
    /// The connection stands: from now on this machine is to be woken when something is typed.
    fn connected(&mut self, notifier: rotor::Notifier);
}

/// ```text
///             end of typing               the server ends
///   Open ─────────────────────▶ Listening ───────────────▶ end
///    └─────── the server ends ▶ end
/// ```
pub(crate) struct Telnet<C> {
    /// Nothing more will be typed.
    is_told: bool,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: Terminal> Telnet<C> {
    /// Hands on what was typed, as far as the server takes it.
    fn hand_on(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        for _ in 0..LINES_PER_EVENT {
            match scope.typed().try_recv() {
                // The half that is closed takes nothing more, and says so to no end.
                _ if self.is_told => break,
                Ok(line) => {
                    if let Err(error) = transport.output.write_all(&line) {
                        return Intent::error(error);
                    }
                }
                Err(TryRecvError::Empty) => return Intent::of(self).bytes(1).no_deadline(),
                Err(TryRecvError::Disconnected) => {
                    // The server may still have something to say to what it was told.
                    transport.shutdown_write();
                    self.is_told = true;
                }
            }
        }
        if self.is_told {
            return Intent::of(self).bytes(1).no_deadline();
        }
        // There may be more: when this much has gone out.
        Intent::of(self).bytes(1).or_flush(0).no_deadline()
    }
}

impl<C: Terminal> Protocol for Telnet<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let notifier = scope.notifier();
        scope.connected(notifier);
        Telnet { is_told: false, context: std::marker::PhantomData }.hand_on(transport, scope)
    }

    fn bytes_read(
        self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let shown = scope.show(transport.input);
        transport.input.clear();
        match shown {
            Ok(()) => Intent::of(self).keep().keep_deadline(),
            // Nobody reads any more.
            Err(_) => Intent::done(),
        }
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        self.hand_on(transport, scope)
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        self.hand_on(transport, scope)
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        if !matches!(exception, Exception::EndOfStream) {
            scope.failed(exception.to_string());
        }
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, C>) {
        scope.failed(describe(&error));
    }

    fn not_connected((): (), error: Fatal, scope: &mut Scope<'_, C>) {
        scope.failed(describe(&error));
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }
}

fn describe(error: &Fatal) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
