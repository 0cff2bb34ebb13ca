//! How much a loop does in a turn, and how much it may do.

/// The work of one turn of a loop, or of one call of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Work {
    /// Connections accepted.
    pub accepts: u64,
    /// Bytes read from streams.
    pub read: u64,
    /// Bytes written to streams.
    pub written: u64,
    /// Deadlines that fired. Counted for turns only.
    pub timeouts: u64,
    /// Wake-ups passed to machines. Counted for turns only.
    pub wakeups: u64,
    /// Calls of [`Watched`](crate::Watched) machines, of any handler. Counted for turns only.
    pub calls: u64,
}

/// How much a loop may do in one turn, and one of its machines in one call, according to its
/// limits. [`Sim::bound_work`](crate::Sim::bound_work) makes a simulation check them, as the
/// property [`WORK_IS_BOUNDED`](crate::property::WORK_IS_BOUNDED).
///
/// Time stands still in the turns of a simulation, so nothing else shows that a turn does too much.
///
/// ```
/// use rotor_sim::WorkBounds;
///
/// // For a loop with `Config::timeouts_per_turn(8)` and streams with
/// // `StreamConfig::write_budget(4096)`. In addition to the deadlines that fire, at most as many
/// // are called that had already passed when they were set.
/// let bounds = WorkBounds::new().timeouts_per_turn(2 * 8).written_per_call(4_096);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct WorkBounds {
    pub(crate) turn: Work,
    pub(crate) call: Work,
}

const UNBOUNDED: Work = Work {
    accepts: u64::MAX,
    read: u64::MAX,
    written: u64::MAX,
    timeouts: u64::MAX,
    wakeups: u64::MAX,
    calls: u64::MAX,
};

impl WorkBounds {
    /// Creates bounds that allow any amount of everything.
    pub fn new() -> WorkBounds {
        WorkBounds { turn: UNBOUNDED, call: UNBOUNDED }
    }

    /// Sets how many connections all listeners of the host together may accept in one turn.
    pub fn accepts_per_turn(mut self, connections: u64) -> WorkBounds {
        self.turn.accepts = connections;
        self
    }

    /// Sets how many deadlines may fire in one turn.
    pub fn timeouts_per_turn(mut self, deadlines: u64) -> WorkBounds {
        self.turn.timeouts = deadlines;
        self
    }

    /// Sets how many wake-ups one turn may have.
    pub fn wakeups_per_turn(mut self, wakeups: u64) -> WorkBounds {
        self.turn.wakeups = wakeups;
        self
    }

    /// Sets how many calls of [`Watched`](crate::Watched) machines one turn may have.
    pub fn calls_per_turn(mut self, calls: u64) -> WorkBounds {
        self.turn.calls = calls;
        self
    }

    /// Sets how many bytes may be read from streams in one turn.
    pub fn read_per_turn(mut self, bytes: u64) -> WorkBounds {
        self.turn.read = bytes;
        self
    }

    /// Sets how many bytes may be written to streams in one turn.
    pub fn written_per_turn(mut self, bytes: u64) -> WorkBounds {
        self.turn.written = bytes;
        self
    }

    /// Sets how many bytes one call of a [`Watched`](crate::Watched) machine may read.
    pub fn read_per_call(mut self, bytes: u64) -> WorkBounds {
        self.call.read = bytes;
        self
    }

    /// Sets how many bytes one call of a [`Watched`](crate::Watched) machine may write.
    pub fn written_per_call(mut self, bytes: u64) -> WorkBounds {
        self.call.written = bytes;
        self
    }
}

impl Default for WorkBounds {
    fn default() -> WorkBounds {
        WorkBounds::new()
    }
}

impl Work {
    /// Returns the larger number of each kind.
    pub(crate) fn max(self, other: Work) -> Work {
        Work {
            accepts: self.accepts.max(other.accepts),
            read: self.read.max(other.read),
            written: self.written.max(other.written),
            timeouts: self.timeouts.max(other.timeouts),
            wakeups: self.wakeups.max(other.wakeups),
            calls: self.calls.max(other.calls),
        }
    }

    /// Names the first kind of which there is more than allowed.
    pub(crate) fn first_excess(self, most: Work) -> Option<String> {
        let all = [
            ("connections accepted", self.accepts, most.accepts),
            ("bytes read", self.read, most.read),
            ("bytes written", self.written, most.written),
            ("deadlines fired", self.timeouts, most.timeouts),
            ("wake-ups", self.wakeups, most.wakeups),
            ("calls of machines", self.calls, most.calls),
        ];
        let (what, done, most) = all.into_iter().find(|(_, done, most)| done > most)?;
        Some(format!("{done} {what}, where {most} are the most"))
    }
}

/// The work of a host at the moment, and the most of it so far.
#[derive(Default)]
pub(crate) struct WorkAccount {
    pub(crate) turn: Work,
    pub(crate) call: Work,
    pub(crate) most_of_turns: Work,
    pub(crate) most_of_calls: Work,
    pub(crate) bounds: Option<WorkBounds>,
}

impl WorkAccount {
    #[inline]
    pub(crate) fn add_read(&mut self, bytes: usize) {
        self.turn.read += bytes as u64;
        self.call.read += bytes as u64;
    }

    #[inline]
    pub(crate) fn add_written(&mut self, bytes: usize) {
        self.turn.written += bytes as u64;
        self.call.written += bytes as u64;
    }

    #[inline]
    pub(crate) fn add_accept(&mut self) {
        self.turn.accepts += 1;
        self.call.accepts += 1;
    }

    /// Ends a call, and returns what was too much in it.
    #[inline]
    pub(crate) fn end_call(&mut self) -> Option<String> {
        let bounds = self.bounds?;
        self.turn.calls += 1;
        let call = std::mem::take(&mut self.call);
        self.most_of_calls = self.most_of_calls.max(call);
        call.first_excess(bounds.call)
    }

    /// Ends a turn, and returns what was too much in it.
    pub(crate) fn end_turn(&mut self, timeouts: u64, wakeups: u64) -> Option<String> {
        let turn = Work { timeouts, wakeups, ..std::mem::take(&mut self.turn) };
        self.most_of_turns = self.most_of_turns.max(turn);
        turn.first_excess(self.bounds?.turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_up_to_the_bound_is_allowed_and_more_is_not() {
        let most = WorkBounds::new().written_per_call(10).call;
        for (written, is_beyond) in [(9, false), (10, false), (11, true)] {
            let work = Work { written, read: 1_000_000, ..Work::default() };
            assert_eq!(work.first_excess(most).is_some(), is_beyond, "{written}");
        }
    }

    #[test]
    fn work_of_several_calls_counts_towards_the_bound_of_the_turn() {
        let bounds = WorkBounds::new().read_per_turn(10).written_per_turn(10).calls_per_turn(2);
        let mut account = WorkAccount { bounds: Some(bounds), ..WorkAccount::default() };
        for (calls, bytes, is_beyond) in [(2, 5, false), (2, 6, true), (3, 3, true)] {
            for _ in 0..calls {
                account.add_read(bytes);
                account.add_written(bytes);
                assert_eq!(account.end_call(), None);
            }
            assert_eq!(account.end_turn(0, 0).is_some(), is_beyond, "{calls} times {bytes}");
        }
    }
}
