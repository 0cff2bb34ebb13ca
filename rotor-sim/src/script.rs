//! `Script`: the steps of a client, written down by a test.

use std::time::Duration;

/// The steps that a client takes, one after the other, and how often it tries.
///
/// The client is a machine that is generic over its socket. So one script runs on a simulated loop
/// and on a loop of the kernel, and the [`Transcript`](crate::Transcript)s can be compared.
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
    pub(crate) steps: Vec<Step>,
    pub(crate) refusals: Vec<Vec<u8>>,
    pub(crate) attempts: u32,
    pub(crate) patience: Duration,
    /// The time between two attempts.
    pub(crate) pause: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Expect(Vec<u8>),
    Receive(usize),
    ReceiveUntil(Vec<u8>),
    Pause(Duration),
    Shutdown,
    End,
}

impl Script {
    /// Creates a script without steps, to be tried once.
    pub fn new() -> Script {
        Script {
            steps: Vec::new(),
            refusals: Vec::new(),
            attempts: 1,
            patience: Duration::from_secs(300),
            pause: Duration::from_millis(500),
        }
    }

    /// Adds a step: sends all of `bytes`.
    pub fn send(mut self, bytes: &[u8]) -> Script {
        self.steps.push(Step::Send(bytes.to_vec()));
        self
    }

    /// Adds a step: waits for these bytes. Other bytes end the script.
    pub fn expect(mut self, bytes: &[u8]) -> Script {
        self.steps.push(Step::Expect(bytes.to_vec()));
        self
    }

    /// Adds a step: waits for `count` bytes, whatever they are.
    pub fn receive(mut self, count: usize) -> Script {
        self.steps.push(Step::Receive(count));
        self
    }

    /// Adds a step: waits until these bytes have come, whatever came before them. Does not read
    /// anything after them.
    pub fn receive_until(mut self, bytes: &[u8]) -> Script {
        self.steps.push(Step::ReceiveUntil(bytes.to_vec()));
        self
    }

    /// Adds a step: does nothing for some time.
    pub fn pause(mut self, time: Duration) -> Script {
        self.steps.push(Step::Pause(time));
        self
    }

    /// Adds a step: ends the client's output.
    pub fn shutdown(mut self) -> Script {
        self.steps.push(Step::Shutdown);
        self
    }

    /// Adds a step: waits for the end of the input.
    pub fn expect_end(mut self) -> Script {
        self.steps.push(Step::End);
        self
    }

    /// Declares that the server may refuse with a message that begins with these bytes, where
    /// [`expect`](Script::expect) waits for others. Such a refusal ends the attempt, as a lost
    /// connection does, and not the script. Use it for servers that say so before they close a slow
    /// connection.
    pub fn may_refuse(mut self, begins_with: &[u8]) -> Script {
        self.refusals.push(begins_with.to_vec());
        self
    }

    /// Sets how often the whole script is tried before the client gives up, each time on a new
    /// connection. Default 1, at least 1.
    pub fn attempts(mut self, attempts: u32) -> Script {
        self.attempts = attempts.max(1);
        self
    }

    /// Sets how long an attempt may take. Default 300 s.
    pub fn patience(mut self, time: Duration) -> Script {
        self.patience = time;
        self
    }
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}
