//! A client that shows what a server sends, and sends what is typed.

use std::io::Write;
use std::sync::mpsc::{Receiver, TryRecvError};

use rotor::stream::{Exception, Fatal, Intent, Matched, Protocol, Transport};
use rotor::{Scope, Time};

/// How many typed lines are written to the connection in one event; the rest waits for the next
/// one.
const LINES_PER_EVENT: usize = 64;

/// What the client needs from the context: the typed lines, and a place to show what arrives.
pub(crate) trait Terminal {
    /// The typed lines, whose sender wakes the connection. Disconnected at the end of the input.
    fn typed(&mut self) -> &mut Receiver<Vec<u8>>;
    /// Shows what the server has sent.
    fn show(&mut self, bytes: &[u8]) -> std::io::Result<()>;
    /// Reports why the connection ended, if not normally.
    fn failed(&mut self, why: String);
    /// The connection is established. From now on this machine must be woken when something is
    /// typed.
    fn connected(&mut self, notifier: rotor::Notifier);
}

/// ```text
///             end of typing               the server ends
///   Open ─────────────────────▶ Listening ───────────────▶ end
///    └─────── the server ends ▶ end
/// ```
pub(crate) struct Telnet<C> {
    /// Whether the end of the input was passed on.
    is_shut_down: bool,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: Terminal> Telnet<C> {
    /// Sends what was typed, as far as the server takes it.
    fn send_typed(
        mut self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        for _ in 0..LINES_PER_EVENT {
            match scope.typed().try_recv() {
                // Nothing can be sent after this side has been shut down, and that would be
                // reported again and again.
                _ if self.is_shut_down => break,
                Ok(line) => {
                    if let Err(error) = transport.output.write_all(&line) {
                        return Intent::error(error);
                    }
                }
                Err(TryRecvError::Empty) => return Intent::of(self).bytes(1).no_deadline(),
                Err(TryRecvError::Disconnected) => {
                    // The server may still respond to what it was sent.
                    transport.shutdown_write();
                    self.is_shut_down = true;
                }
            }
        }
        if self.is_shut_down {
            return Intent::of(self).bytes(1).no_deadline();
        }
        // There may be more lines: continue when these have been sent.
        Intent::of(self).bytes(1).or_flush(0).no_deadline()
    }
}

impl<C: Terminal> Protocol for Telnet<C> {
    type Context = C;
    type Seed = ();

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let notifier = scope.notifier();
        scope.connected(notifier);
        Telnet { is_shut_down: false, context: std::marker::PhantomData }
            .send_typed(transport, scope)
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
            // The output is closed.
            Err(_) => Intent::done(),
        }
    }

    fn bytes_flushed(
        self,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        self.send_typed(transport, scope)
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        self.send_typed(transport, scope)
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
