//! A Redis client. It sends commands as they arrive, up to a limit of unanswered ones; the answers
//! come back in the same order.

use std::io::Write;

use rotor::stream::{Exception, Fatal, Intent, Matched, Protocol, Transport};
use rotor::{Notifier, Scope, Time, with_causes};

use crate::resp::{self, Parsed, Reader, Reply};

/// The maximum number of unanswered commands. It is large enough to keep a server on the same
/// machine busy, and small enough that both sides need little memory.
pub(crate) const PIPELINE_MAX: usize = 128;

/// How long the oldest command may wait for its answer, counted from when it became the oldest:
/// some commands take long.
pub(crate) const ANSWER_TIME_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// What the client needs from the context: commands, and a receiver of the answers.
pub(crate) trait CommandSource {
    /// The connection is established. From now on this machine must be woken when there is a
    /// command.
    fn connected(&mut self, notifier: Notifier);
    /// Returns the next command, if there is one.
    fn command(&mut self) -> Command;
    /// Receives the answer to the oldest unanswered command.
    fn answered(&mut self, reply: Reply);
    /// The connection is gone, or could not be made. Unanswered commands will get no answer.
    fn lost(&mut self, why: String);
    /// Returns how many commands wait for their answers.
    fn unanswered_count(&self) -> usize;
}

/// The next thing to do.
pub(crate) enum Command {
    Words(Vec<Vec<u8>>),
    NoneYet,
    /// There will be no further commands.
    End,
}

pub(crate) struct Redis<C> {
    /// There are no more commands.
    is_over: bool,
    reader: Reader,
    /// How many unread bytes there must be before parsing is worth another attempt.
    needs: usize,
    context: std::marker::PhantomData<fn(C)>,
}

impl<C: CommandSource> Redis<C> {
    /// Sends commands, then waits for answers. `is_answered` says that the oldest command is
    /// another one than before.
    fn send(
        mut self,
        is_answered: bool,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let is_oldest_new = is_answered || scope.unanswered_count() == 0;
        let mut commands = Vec::new();
        while !self.is_over && scope.unanswered_count() < PIPELINE_MAX {
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
        self.wait(is_oldest_new, scope)
    }

    /// Waits for more answers. A later command does not extend the time limit of the oldest one.
    fn wait(self, is_oldest_new: bool, scope: &Scope<'_, C>) -> Intent<Self> {
        let needs = self.needs;
        match scope.unanswered_count() {
            0 if self.is_over => Intent::done(),
            0 => Intent::of(self).bytes(needs).no_deadline(),
            _ if is_oldest_new => {
                Intent::of(self).bytes(needs).deadline(scope.now() + ANSWER_TIME_MAX)
            }
            _ => Intent::of(self).bytes(needs).keep_deadline(),
        }
    }
}

impl<C: CommandSource> Protocol for Redis<C> {
    type Context = C;
    type Seed = ();

    fn config((): &()) -> std::sync::Arc<rotor::stream::StreamConfig> {
        // Enough for the longest string, together with its length and line ends.
        rotor::stream::StreamConfig::new().input_max(resp::LENGTH_MAX + 64).share()
    }

    fn create((): (), transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        let notifier = scope.notifier();
        scope.connected(notifier);
        let (reader, context) = (Reader::default(), std::marker::PhantomData);
        Redis { is_over: false, reader, needs: 1, context }.send(false, transport, scope)
    }

    fn bytes_read(
        mut self,
        _: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        let (taken, parsed) = self.reader.read(transport.input);
        transport.input.consume(taken);
        self.needs = 1;
        match parsed {
            Parsed::Reply(_) if scope.unanswered_count() == 0 => {
                Intent::error("the server answers what it was not asked")
            }
            Parsed::Reply(reply) => {
                scope.answered(reply);
                // Input that has arrived already is handled before more commands are sent.
                if transport.input.is_empty() {
                    return self.send(true, transport, scope);
                }
                self.wait(true, scope)
            }
            Parsed::Needs(bytes) => {
                self.needs = bytes;
                self.wait(false, scope)
            }
            Parsed::Malformed(what) => {
                let why = format!("the server does not speak RESP: {what}");
                scope.lost(why.clone());
                Intent::error(why)
            }
        }
    }

    fn wakeup(self, transport: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        self.send(false, transport, scope)
    }

    fn exception(
        self,
        exception: Exception,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        scope.lost(with_causes(&exception).to_string());
        Intent::done()
    }

    fn timeout(self, _: &mut Transport<'_>, scope: &mut Scope<'_, C>) -> Intent<Self> {
        scope.lost("the server does not answer".into());
        Intent::error("the server does not answer")
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, C>) {
        scope.lost(with_causes(&error).to_string());
    }

    fn not_connected((): (), error: Fatal, scope: &mut Scope<'_, C>) {
        scope.lost(with_causes(&error).to_string());
    }

    /// Sends no further commands; those that were sent are still answered.
    fn draining(
        mut self,
        _: Time,
        _: &mut Transport<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Intent<Self> {
        self.is_over = true;
        self.wait(false, scope)
    }
}
