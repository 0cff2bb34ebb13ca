//! `Script`: a client that does what a test wrote down, on any kind of socket.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rotor_core::net::StreamSocket;
use rotor_core::{EventSet, Interest, Machine, Response, Scope, Time, Void};

/// What a client does, step by step, and how often it tries.
///
/// The client that plays it is a machine, generic over its socket: so one script runs on a simulated loop and on one of
/// the kernel, and its [`Transcript`]s can be compared.
///
/// ```
/// use std::time::Duration;
/// use rotor_sim::Script;
///
/// let script = Script::new()
///     .send(b"hello\n")
///     .expect(b"HELLO\n")
///     .pause(Duration::from_secs(1))
///     .shutdown()
///     .expect_end()
///     .attempts(10);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Script {
    steps: Vec<Step>,
    attempts: u32,
    patience: Duration,
    pause: Duration,
}

#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    Expect(Vec<u8>),
    Receive(usize),
    Pause(Duration),
    Shutdown,
    End,
}

/// What became of a script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transcript {
    /// What the last attempt received.
    pub received: Vec<u8>,
    /// How many attempts were begun.
    pub attempts: u32,
    /// How it ended; `None` while it goes on.
    pub outcome: Option<Result<(), String>>,
}

/// Where the transcript of a client is read, from outside of its loop.
#[derive(Clone, Debug, Default)]
pub struct TranscriptHandle(Arc<Mutex<Transcript>>);

impl TranscriptHandle {
    /// The transcript as it is now.
    pub fn read(&self) -> Transcript {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the script was played to its end.
    pub fn is_done(&self) -> bool {
        matches!(self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome, Some(Ok(())))
    }

    /// Whether the client has ended, well or not.
    pub fn has_ended(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).outcome.is_some()
    }

    fn change(&self, f: impl FnOnce(&mut Transcript)) {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Script {
    /// Nothing yet; one attempt.
    pub fn new() -> Script {
        Script {
            steps: Vec::new(),
            attempts: 1,
            patience: Duration::from_secs(300),
            pause: Duration::from_millis(500),
        }
    }

    /// Sends all of `bytes`.
    pub fn send(mut self, bytes: &[u8]) -> Script {
        self.steps.push(Step::Send(bytes.to_vec()));
        self
    }

    /// Waits for these bytes, and for no others.
    pub fn expect(mut self, bytes: &[u8]) -> Script {
        self.steps.push(Step::Expect(bytes.to_vec()));
        self
    }

    /// Waits for that many bytes, whatever they are.
    pub fn receive(mut self, count: usize) -> Script {
        self.steps.push(Step::Receive(count));
        self
    }

    /// Does nothing for some time.
    pub fn pause(mut self, time: Duration) -> Script {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Ends its own output.
    pub fn shutdown(mut self) -> Script {
        self.steps.push(Step::Shutdown);
        self
    }

    /// Waits for the end of the input.
    pub fn expect_end(mut self) -> Script {
        self.steps.push(Step::End);
        self
    }

    /// How often the whole script is tried, each time on a connection of its own, before the client gives up. Default 1.
    pub fn attempts(mut self, attempts: u32) -> Script {
        self.attempts = attempts.max(1);
        self
    }

    /// How long an attempt may take. Default 300 s.
    pub fn patience(mut self, time: Duration) -> Script {
        self.patience = time;
        self
    }

    /// The client that plays the script, as a machine to be added to a loop, and the handle of its transcript.
    pub fn client<S, C>(self, target: S::Target) -> (ScriptClient<S, C>, TranscriptHandle)
    where
        S: StreamSocket,
    {
        let transcript = TranscriptHandle::default();
        let client = ScriptClient {
            play: Box::new(Play {
                script: self,
                target,
                socket: None,
                is_connected: false,
                step: 0,
                done: 0,
                attempts: 0,
                attempt_ends: Time::NEVER,
                pause_ends: None,
                transcript: transcript.clone(),
            }),
            context: PhantomData,
        };
        (client, transcript)
    }
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

/// The machine that plays a [`Script`]. Add it to a loop with [`start`](ScriptClient::start).
pub struct ScriptClient<S: StreamSocket, C> {
    play: Box<Play<S>>,
    context: PhantomData<fn(C)>,
}

/// A script and where it has got to.
struct Play<S: StreamSocket> {
    script: Script,
    target: S::Target,
    /// None between attempts.
    socket: Option<S>,
    /// Asked once: a socket whose two halves have ended may say that it is not.
    is_connected: bool,
    step: usize,
    /// Bytes of the step that are done.
    done: usize,
    attempts: u32,
    attempt_ends: Time,
    /// The end of a pause, in a script or between attempts.
    pause_ends: Option<Time>,
    transcript: TranscriptHandle,
}

/// Why a script does not go on for now.
enum Stop {
    Blocked,
    Pausing(Time),
    Finished,
    /// This attempt has failed; the next may not.
    Failed(String),
    /// The peer said something that it must not say.
    Wrong(String),
}

impl<S: StreamSocket, C> ScriptClient<S, C> {
    /// What to answer to the loop that the client is added to: it begins in the next turn.
    pub fn start<C2, N>(self, scope: &Scope<'_, C2>) -> Response<Self, N> {
        Response::ok(self).deadline(scope.now())
    }

    fn go_on(mut self, scope: &Scope<'_, C>) -> Response<Self, Void> {
        let now = scope.now();
        let play = &mut *self.play;
        let ends = play.attempt_ends;
        match play.go_on(scope) {
            Stop::Blocked => Response::ok(self).deadline(ends.max(now)),
            Stop::Pausing(until) => Response::ok(self).deadline(until),
            Stop::Finished => self.end(Ok(())),
            Stop::Wrong(what) => self.end(Err(what)),
            Stop::Failed(why) if play.attempts >= play.script.attempts => self.end(Err(why)),
            Stop::Failed(_) => {
                let again = now + play.script.pause;
                play.socket = None;
                play.pause_ends = Some(again);
                Response::ok(self).deadline(again)
            }
        }
    }

    fn end(self, outcome: Result<(), String>) -> Response<Self, Void> {
        self.play.transcript.change(|transcript| transcript.outcome = Some(outcome));
        Response::done()
    }
}

impl<S: StreamSocket> Play<S> {
    fn go_on<C>(&mut self, scope: &Scope<'_, C>) -> Stop {
        if let Some(until) = self.pause_ends {
            if scope.now() < until {
                return Stop::Pausing(until);
            }
            self.pause_ends = None;
        }
        if self.socket.is_none() {
            if let Err(error) = self.begin(scope) {
                return Stop::Failed(error.to_string());
            }
        } else if scope.now() >= self.attempt_ends {
            return Stop::Failed("it took too long".into());
        }
        loop {
            match self.step(scope) {
                Ok(()) => {
                    self.step += 1;
                    self.done = 0;
                }
                Err(stop) => return stop,
            }
        }
    }

    fn begin<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        self.attempts += 1;
        (self.step, self.done, self.is_connected) = (0, 0, false);
        self.attempt_ends = scope.now() + self.script.patience;
        let attempts = self.attempts;
        self.transcript.change(|transcript| {
            transcript.attempts = attempts;
            transcript.received.clear();
        });
        let mut socket = S::connect(&self.target, scope)?;
        scope.register(&mut socket, Interest::Both)?;
        self.socket = Some(socket);
        Ok(())
    }

    /// Does the step as far as it can be done.
    fn step<C>(&mut self, scope: &Scope<'_, C>) -> Result<(), Stop> {
        let Play { script, socket, is_connected, step, done, transcript, .. } = self;
        let Some(socket) = socket else { return Err(Stop::Failed("there is no socket".into())) };
        if !*is_connected && !socket.is_connected() {
            let error = socket.take_error().unwrap_or_else(Some);
            return Err(error.map_or(Stop::Blocked, |error| Stop::Failed(error.to_string())));
        }
        *is_connected = true;
        match script.steps.get(*step) {
            None => Err(Stop::Finished),
            Some(Step::Send(bytes)) => send(socket, &bytes[*done..], done),
            Some(Step::Expect(bytes)) => receive(socket, bytes.len(), done, transcript, Some(bytes)),
            Some(Step::Receive(count)) => receive(socket, *count, done, transcript, None),
            Some(Step::Pause(time)) => {
                self.step += 1;
                let until = scope.now() + *time;
                self.pause_ends = Some(until);
                Err(Stop::Pausing(until))
            }
            Some(Step::Shutdown) => {
                socket.shutdown(std::net::Shutdown::Write).map_err(|error| Stop::Failed(error.to_string()))
            }
            Some(Step::End) => match read(socket, &mut [0; 64])? {
                0 => Ok(()),
                count => Err(Stop::Wrong(format!("{count} bytes came where the end was expected"))),
            },
        }
    }
}

fn send(socket: &mut impl StreamSocket, mut bytes: &[u8], done: &mut usize) -> Result<(), Stop> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(Stop::Failed("the socket takes nothing".into())),
            Ok(count) => {
                *done += count;
                bytes = &bytes[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(stop(&error)),
        }
    }
    Ok(())
}

fn receive(
    socket: &mut impl StreamSocket,
    count: usize,
    done: &mut usize,
    transcript: &TranscriptHandle,
    expected: Option<&[u8]>,
) -> Result<(), Stop> {
    let mut buffer = [0; 512];
    while *done < count {
        let most = (count - *done).min(buffer.len());
        let taken = read(socket, &mut buffer[..most])?;
        if taken == 0 {
            return Err(Stop::Failed(format!("the end came after {done} of {count} bytes")));
        }
        let bytes = &buffer[..taken];
        transcript.change(|transcript| transcript.received.extend(bytes));
        if let Some(expected) = expected
            && expected[*done..*done + taken] != *bytes
        {
            let expected = String::from_utf8_lossy(&expected[*done..]);
            let bytes = String::from_utf8_lossy(bytes);
            return Err(Stop::Wrong(format!("{bytes:?} came where {expected:?} was expected")));
        }
        *done += taken;
    }
    Ok(())
}

fn read(socket: &mut impl StreamSocket, buffer: &mut [u8]) -> Result<usize, Stop> {
    loop {
        match socket.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map_err(|error| stop(&error)),
        }
    }
}

fn stop(error: &io::Error) -> Stop {
    if error.kind() == io::ErrorKind::WouldBlock { Stop::Blocked } else { Stop::Failed(error.to_string()) }
}

impl<S: StreamSocket, C> Machine for ScriptClient<S, C> {
    type Context = C;
    type Seed = Void;

    fn create(seed: Void, _: &mut Scope<'_, C>) -> Response<Self> {
        match seed {}
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Void> {
        self.go_on(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Void> {
        self.go_on(scope)
    }

    fn draining(self, _: Time, _: &mut Scope<'_, C>) -> Response<Self, Void> {
        self.end(Err("the client's loop was drained".into()))
    }
}

impl<S: StreamSocket, C> fmt::Debug for ScriptClient<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptClient(step {} of {})", self.play.step, self.play.script.steps.len())
    }
}
