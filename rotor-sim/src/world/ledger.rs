//! The watched machines of a host, and their deadlines.

use rotor_core::Time;

/// The watched machines of a host.
#[derive(Default)]
pub(crate) struct Ledger {
    /// By number of the ticket.
    pub(crate) deadlines: Vec<Time>,
    free: Vec<u32>,
    pub(crate) alive: usize,
    /// How many were made since the host started: as many as its loop has made, if all of it are
    /// watched.
    pub(crate) made: u64,
    /// Scans may expire machines, so that time-outs say nothing about deadlines.
    pub(crate) may_expire: bool,
}

impl Ledger {
    /// The earliest deadline that a watched machine answered with.
    pub(crate) fn earliest(&self) -> Option<Time> {
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
