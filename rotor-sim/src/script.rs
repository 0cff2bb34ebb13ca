//! `Script`: what a client does, as a test wrote it down.

use std::time::Duration;

/// What a client does, step by step, and how often it tries.
///
/// The client that plays it is a machine, generic over its socket: so one script runs on a
/// simulated loop and on one of the kernel, and its [`Transcript`](crate::Transcript)s can be
/// compared.
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
    /// Between two attempts.
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
    /// Nothing yet; one attempt.
    pub fn new() -> Script {
        Script {
            steps: Vec::new(),
            refusals: Vec::new(),
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

    /// Waits until these bytes have come, whatever came before them; takes nothing that comes
    /// behind them.
    pub fn receive_until(mut self, bytes: &[u8]) -> Script {
        self.steps.push(Step::ReceiveUntil(bytes.to_vec()));
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

    /// An answer that begins with these bytes, where [`expect`](Script::expect) wants others, ends
    /// the attempt like a lost connection, not the script: for servers that say so when they lose
    /// patience.
    pub fn may_refuse(mut self, begins_with: &[u8]) -> Script {
        self.refusals.push(begins_with.to_vec());
        self
    }

    /// How often the whole script is tried, each time on a connection of its own, before the client
    /// gives up. Default 1.
    pub fn attempts(mut self, attempts: u32) -> Script {
        self.attempts = attempts.max(1);
        self
    }

    /// How long an attempt may take. Default 300 s.
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
