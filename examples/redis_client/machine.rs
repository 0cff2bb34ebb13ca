//! A Redis client: commands go out as they come, as many as may wait for their answers; answers come back in order.

use std::io::Write;

use rotor::stream::{Exception, Fatal, Intent, Matched, Protocol, Transport};
use rotor::{Notifier, Scope, Time};

use crate::resp::{self, Parsed, Reply};

/// How many commands may wait for their answers. Enough to keep a server on the same machine busy; few enough that
/// what both sides hold stays small.
pub(crate) const PIPELINE_MAX: usize = 128;

/// How long the oldest command may wait for its answer: some commands work for long.
pub(crate) const ANSWER_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// What the client needs of the context: the commands, and somebody who hears the answers.
pub(crate) trait Asks {
    /// The connection stands: from now on this machine is to be woken when there is a command.
    fn connected(&mut self, notifier: Notifier);
    /// The next command, if there is one.
    fn command(&mut self) -> Command;
    /// The answer to the oldest command that has none.
    fn answered(&mut self, reply: Reply);
    /// The connection is gone, or was not made: commands that have no answer will get none.
    fn lost(&mut self, why: String);
    /// How many commands wait for their answers.
    fn waiting(&self) -> usize;
}

/// What there is to do.
pub(crate) enum Command {
    Words(Vec<Vec<u8>>),
    NoneYet,
    /// There will be none any more.
    End,
}

pub(crate) struct Redis<C> {
    /// There are no more commands.
    is_over: bool,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: Asks> Redis<C> {
    /// Sends what there is to be sent; then waits for answers.
    fn send(mut self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let mut commands = Vec::new();
        while !self.is_over && scope.waiting() < PIPELINE_MAX {
            match scope.command() {
                Command::Words(words) => {
                    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                    resp::write_command(&mut commands, &words);
                }
                Command::NoneYet => break,
                Command::End => self.is_over = true,
            }
        }
        if let Err(error) = transport.output.write_all(&commands) {
            return Intent::error(error);
        }
        self.wait(transport.input.len() + 1, scope)
    }

    fn wait(self, bytes: usize, scope: &Scope<'_, C>) -> Intent<Self> {
        match scope.waiting() {
            0 if self.is_over => Intent::done(),
            0 => Intent::of(self).bytes(bytes).no_deadline(),
            _ => Intent::of(self).bytes(bytes).deadline(scope.now() + ANSWER_TIME_MAX),
        }
    }
}

impl<C: Asks> Protocol for Redis<C> {
    type Context = C;
    type Seed = ();

    fn config((): &()) -> std::sync::Arc<rotor::stream::StreamConfig> {
        // A reply of the longest string is read whole.
        rotor::stream::StreamConfig::new().input_max(2 * resp::LENGTH_MAX).share()
    }

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let notifier = scope.notifier();
        scope.connected(notifier);
        Redis { is_over: false, context: std::marker::PhantomData }.send(transport, scope)
    }

    fn bytes_read(self, _: Matched, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        match resp::parse(transport.input) {
            Parsed::Reply(_, _) if scope.waiting() == 0 => {
                Intent::error("the server answers what it was not asked")
            }
            Parsed::Reply(reply, len) => {
                scope.answered(reply);
                transport.input.consume(len);
                if transport.input.is_empty() {
                    return self.send(transport, scope);
                }
                Intent::of(self).bytes(1).keep_deadline()
            }
            Parsed::Needs(bytes) => Intent::of(self).bytes(bytes).keep_deadline(),
            Parsed::Malformed(what) => {
                let why = format!("the server does not speak RESP: {what}");
                scope.lost(why.clone());
                Intent::error(why)
            }
        }
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        self.send(transport, scope)
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        scope.lost(exception.to_string());
        Intent::done()
    }

    fn timeout(self, _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        scope.lost("the server does not answer".into());
        Intent::error("the server does not answer")
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, C>) {
        scope.lost(error.to_string());
    }

    fn not_connected((): (), error: Fatal, scope: &mut Scope<'_, C>) {
        scope.lost(error.to_string());
    }

    fn draining(self, _: Time, _: &mut Transport<'_>, _: &mut Scope<'_, C>) -> Intent<Self> {
        Intent::done()
    }
}
