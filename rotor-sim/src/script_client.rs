//! `ScriptClient`: the machine that plays a script, on any kind of socket.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::Shutdown;

use rotor_core::net::StreamSocket;
use rotor_core::{EventSet, Infallible, Interest, Machine, Response, Scope, Time};

use crate::busy::Busy;
use crate::script::{Script, Step};
use crate::transcript::TranscriptHandle;

impl Script {
    /// Returns a machine that plays the script, to be added to a loop, and the handle of its
    /// transcript.
    pub fn client<S, C>(self, target: S::Target) -> (ScriptClient<S, C>, TranscriptHandle)
    where
        S: StreamSocket,
    {
        let transcript = TranscriptHandle::default();
        let client = ScriptClient {
            run: Box::new(ScriptRun {
                script: self,
                target,
                socket: None,
                is_connected: false,
                is_handshake_done: false,
                step: 0,
                done: 0,
                attempts: 0,
                attempt_ends: Time::NEVER,
                pause_ends: None,
                busy: None,
                transcript: transcript.clone(),
            }),
            context: PhantomData,
        };
        (client, transcript)
    }
}

/// The machine that plays a [`Script`]. Add it to a loop with [`start`](ScriptClient::start).
pub struct ScriptClient<S: StreamSocket, C> {
    run: Box<ScriptRun<S>>,
    context: PhantomData<fn(C)>,
}

/// A script and its progress.
struct ScriptRun<S: StreamSocket> {
    script: Script,
    target: S::Target,
    /// `None` between attempts.
    socket: Option<S>,
    /// Kept once it is true: a socket both of whose halves have ended may deny that it is
    /// connected.
    is_connected: bool,
    /// Whether the handshake of a wrapping socket is complete.
    is_handshake_done: bool,
    step: usize,
    /// How many bytes of the step are done.
    done: usize,
    attempts: u32,
    attempt_ends: Time,
    /// The end of a pause, in a script or between attempts.
    pause_ends: Option<Time>,
    /// Kept during an attempt, except in pauses.
    busy: Option<Busy>,
    transcript: TranscriptHandle,
}

/// Why a script cannot go on for now.
enum StopReason {
    Blocked,
    Pausing(Time),
    Finished,
    /// This attempt has failed; the next may succeed.
    Failed(String),
    /// The peer has sent something that it must not send.
    Wrong(String),
}

impl<S: StreamSocket, C> ScriptClient<S, C> {
    /// Returns the response for the loop to which the client is added. The client begins in the
    /// next turn.
    pub fn start<C2, N>(self, scope: &Scope<'_, C2>) -> Response<Self, N> {
        Response::ok(self).deadline(scope.now())
    }

    fn advance(mut self, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        let now = scope.now();
        let run = &mut *self.run;
        match run.run_steps(scope) {
            StopReason::Blocked => {
                // Read only now: the attempt may have begun in this call.
                let ends = run.attempt_ends;
                Response::ok(self).deadline(ends)
            }
            StopReason::Pausing(until) => Response::ok(self).deadline(until),
            StopReason::Finished => self.finish(Ok(())),
            StopReason::Wrong(what) => self.finish(Err(what)),
            StopReason::Failed(why) if run.attempts >= run.script.attempts => self.finish(Err(why)),
            StopReason::Failed(_) => {
                let again = now + run.script.pause;
                run.socket = None;
                // Until the next attempt the client waits for nothing.
                run.busy = None;
                run.pause_ends = Some(again);
                Response::ok(self).deadline(again)
            }
        }
    }

    fn finish(self, outcome: Result<(), String>) -> Response<Self, Infallible> {
        self.run.transcript.update(|transcript| transcript.outcome = Some(outcome));
        Response::done()
    }
}

impl<S: StreamSocket> ScriptRun<S> {
    fn run_steps<C>(&mut self, scope: &Scope<'_, C>) -> StopReason {
        if let Some(until) = self.pause_ends {
            if scope.now() < until {
                return StopReason::Pausing(until);
            }
            self.pause_ends = None;
        }
        self.busy.get_or_insert_with(|| Busy::new(scope));
        if self.socket.is_none() {
            if let Err(error) = self.start_attempt(scope) {
                return StopReason::Failed(error.to_string());
            }
        } else if scope.now() >= self.attempt_ends {
            return StopReason::Failed("it took too long".into());
        }
        loop {
            match self.step(scope) {
                Ok(()) => {
                    self.step += 1;
                    self.done = 0;
                }
                Err(stop) => return self.flush_before_stop(stop),
            }
        }
    }

    /// Flushes before the client waits: a wrapping socket may hold bytes that it has taken.
    fn flush_before_stop(&mut self, stop: StopReason) -> StopReason {
        let socket = self.socket.as_mut().filter(|_| self.is_connected);
        match socket.map(io::Write::flush) {
            Some(Err(error)) if matches!(stop, StopReason::Blocked | StopReason::Pausing(_)) => {
                match stop_for(&error) {
                    StopReason::Blocked => stop,
                    failed => failed,
                }
            }
            _ => stop,
        }
    }

    fn start_attempt<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        self.attempts += 1;
        (self.step, self.done, self.is_connected, self.is_handshake_done) = (0, 0, false, false);
        self.attempt_ends = scope.now() + self.script.patience;
        let attempts = self.attempts;
        self.transcript.update(|transcript| {
            transcript.attempts = attempts;
            transcript.received.clear();
        });
        let mut socket = S::connect(&self.target, scope)?;
        scope.register(&mut socket, Interest::Both)?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Does as much of the step as is possible now.
    fn step<C>(&mut self, scope: &Scope<'_, C>) -> Result<(), StopReason> {
        let ScriptRun {
            script,
            socket,
            is_connected,
            is_handshake_done,
            step,
            done,
            transcript,
            ..
        } = self;
        let Some(socket) = socket else {
            return Err(StopReason::Failed("there is no socket".into()));
        };
        if !*is_connected && !socket.is_connected() {
            let error = socket.take_error().unwrap_or_else(Some);
            return Err(
                error.map_or(StopReason::Blocked, |error| StopReason::Failed(error.to_string()))
            );
        }
        *is_connected = true;
        if !*is_handshake_done {
            while let Err(stop) = retry_interrupted(|| socket.handshake(scope)) {
                // The client does not look at events, so it tries again until the socket is
                // drained.
                if !matches!(stop, StopReason::Blocked) || !socket.handshake_has_drained() {
                    return Err(stop);
                }
            }
            *is_handshake_done = true;
        }
        match script.steps.get(*step) {
            None => Err(StopReason::Finished),
            Some(Step::Send(bytes)) => send(socket, &bytes[*done..], done),
            Some(Step::Expect(bytes)) => expect(socket, bytes, &script.refusals, done, transcript),
            Some(Step::Receive(count)) => receive(socket, *count, done, transcript),
            Some(Step::ReceiveUntil(bytes)) => receive_until(socket, bytes, done, transcript),
            Some(Step::Pause(time)) => {
                // Counted here, since the caller does not count a step that stops.
                self.step += 1;
                let until = scope.now() + *time;
                self.busy = None;
                self.pause_ends = Some(until);
                Err(StopReason::Pausing(until))
            }
            Some(Step::Shutdown) => {
                // Otherwise the end would overtake bytes that a wrapping socket holds.
                retry_interrupted(|| socket.flush())?;
                retry_interrupted(|| socket.shutdown(Shutdown::Write))
            }
            Some(Step::End) => match retry_interrupted(|| socket.read(&mut [0; 64]))? {
                0 => Ok(()),
                count => {
                    Err(StopReason::Wrong(format!("{count} bytes came where the end was expected")))
                }
            },
        }
    }
}

fn send(
    socket: &mut impl StreamSocket,
    mut bytes: &[u8],
    done: &mut usize,
) -> Result<(), StopReason> {
    while !bytes.is_empty() {
        match retry_interrupted(|| socket.write(bytes))? {
            0 => return Err(StopReason::Failed("the socket takes nothing".into())),
            count => {
                *done += count;
                bytes = &bytes[count..];
            }
        }
    }
    Ok(())
}

/// Reads exactly these bytes.
fn expect(
    socket: &mut impl StreamSocket,
    expected: &[u8],
    refusals: &[Vec<u8>],
    done: &mut usize,
    transcript: &TranscriptHandle,
) -> Result<(), StopReason> {
    while let Some(left) = expected.get(*done..).filter(|left| !left.is_empty()) {
        let bytes = read_some(socket, left.len(), transcript)?;
        if bytes.is_empty() {
            return Err(StopReason::Failed(format!(
                "the end came after {done} of {} bytes",
                expected.len()
            )));
        }
        if !left.starts_with(&bytes) {
            let received = [&expected[..*done], &bytes].concat();
            // The refusal may have arrived in part, so either of the two may be the longer one.
            let is_refusal =
                |refusal: &Vec<u8>| received.starts_with(refusal) || refusal.starts_with(&received);
            let (received, expected) =
                (String::from_utf8_lossy(&received), String::from_utf8_lossy(expected));
            let what = format!("{received:?} came where {expected:?} was expected");
            return Err(if refusals.iter().any(is_refusal) {
                StopReason::Failed(what)
            } else {
                StopReason::Wrong(what)
            });
        }
        *done += bytes.len();
    }
    Ok(())
}

/// Reads `count` bytes.
fn receive(
    socket: &mut impl StreamSocket,
    count: usize,
    done: &mut usize,
    transcript: &TranscriptHandle,
) -> Result<(), StopReason> {
    while *done < count {
        match read_some(socket, count - *done, transcript)?.len() {
            0 => {
                return Err(StopReason::Failed(format!(
                    "the end came after {done} of {count} bytes"
                )));
            }
            taken => *done += taken,
        }
    }
    Ok(())
}

/// Reads bytes until the delimiter has come. `done` is how much of the delimiter the last bytes
/// matched. Each read asks for no more than the rest, so nothing after the delimiter is taken.
fn receive_until(
    socket: &mut impl StreamSocket,
    delimiter: &[u8],
    done: &mut usize,
    transcript: &TranscriptHandle,
) -> Result<(), StopReason> {
    while *done < delimiter.len() {
        let bytes = read_some(socket, delimiter.len() - *done, transcript)?;
        if bytes.is_empty() {
            let delimiter = String::from_utf8_lossy(delimiter);
            return Err(StopReason::Failed(format!("the end came before {delimiter:?}")));
        }
        let last = [&delimiter[..*done], &bytes].concat();
        let begins = (0..=last.len()).find(|from| delimiter.starts_with(&last[*from..]));
        *done = last.len() - begins.unwrap_or(last.len());
    }
    Ok(())
}

/// Reads at most `most` bytes and adds them to the transcript. Returns none at the end of the
/// input.
fn read_some(
    socket: &mut impl StreamSocket,
    most: usize,
    transcript: &TranscriptHandle,
) -> Result<Vec<u8>, StopReason> {
    let mut buffer = [0; 512];
    let most = most.min(buffer.len());
    let taken = retry_interrupted(|| socket.read(&mut buffer[..most]))?;
    transcript.update(|transcript| transcript.received.extend(&buffer[..taken]));
    Ok(buffer[..taken].to_vec())
}

/// Repeats an operation while signals interrupt it.
fn retry_interrupted<T>(mut operation: impl FnMut() -> io::Result<T>) -> Result<T, StopReason> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(|error| stop_for(&error)),
        }
    }
}

fn stop_for(error: &io::Error) -> StopReason {
    if error.kind() == io::ErrorKind::WouldBlock {
        StopReason::Blocked
    } else {
        StopReason::Failed(error.to_string())
    }
}

impl<S: StreamSocket, C> Machine for ScriptClient<S, C> {
    type Context = C;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.advance(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.advance(scope)
    }

    /// Called if the handshake of a wrapping socket has waited for another thread.
    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.advance(scope)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.finish(Err("the client's loop was drained".into()))
    }
}

impl<S: StreamSocket, C> fmt::Debug for ScriptClient<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptClient(step {} of {})", self.run.step, self.run.script.steps.len())
    }
}
