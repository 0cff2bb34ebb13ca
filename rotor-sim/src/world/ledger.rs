//! The watched machines of a host, and their deadlines.

use rotor_core::Time;

/// The watched machines of a host.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By the number of the ticket.
    pub(crate) deadlines: Vec<Time>,
    free: Vec<u32>,
    pub(crate) alive: usize,
    /// How many were made since the host started. If all machines of its loop are watched, the loop
    /// has made as many.
    pub(crate) created: u64,
    /// How many handlers the simulation has made panic since the host started.
    pub(crate) injected_panics: u64,
    /// Scans may expire machines, so a time-out need not mean that a deadline has passed.
    pub(crate) may_expire: bool,
    /// The test has allowed handlers to panic.
    pub(crate) may_panic: bool,
}

impl Ledger {
    /// Returns the earliest deadline that a watched machine has set.
    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        self.deadlines.iter().copied().min().filter(|deadline| *deadline != Time::NEVER)
    }

    pub(crate) fn enter(&mut self) -> u32 {
        self.alive += 1;
        if let Some(number) = self.free.pop() {
            return number;
        }
        self.deadlines.push(Time::NEVER);
        self.deadlines.len() as u32 - 1
    }

    pub(crate) fn leave(&mut self, number: u32) {
        self.alive -= 1;
        self.deadlines[number as usize] = Time::NEVER;
        self.free.push(number);
    }
}
