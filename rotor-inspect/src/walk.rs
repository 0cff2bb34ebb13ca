//! The walk over a loop's machines. Each turn looks at a slice of them, for at most half a
//! millisecond, and only the rows that are shown are kept.
//!
//! ```text
//!   post ──▶ slice of 100 slots ──▶ post ──▶ slice ──▶ … ──▶ Snapshot, to the requester
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use rotor_core::{
    Broadcast, Cursor, Description, GlobalScope, Machine, MachineView, Machines, Phase, Port, Time,
    Token,
};

/// How many slots are looked at in one turn. This takes some 25 µs if the machines describe
/// themselves as fast as rotor's own do. With 500, the 99th percentile of requests on the same loop
/// rose twice as much (doc/decisions/0064).
const SLICE_SLOTS: usize = 100;

/// How long a turn may look at machines. This is checked after each machine, which costs some 20
/// ns, because a machine may take any time to describe itself.
const SLICE_TIME_MAX: Duration = Duration::from_micros(500);

/// How many rows a page has.
const PAGE_ROWS: usize = 100;

/// How many pages can be requested. The last one needs 10,000 rows, some 1 MB, in memory.
const PAGES_MAX: usize = 100;

/// A query for the machines of a loop.
#[derive(Clone, Default, Debug)]
pub(crate) struct Query {
    pub(crate) sort: Sort,
    pub(crate) page: usize,
    /// If set, only machines of this type, and in this state.
    pub(crate) machine: Option<String>,
    pub(crate) state: Option<String>,
    /// If set, only this machine.
    pub(crate) token: Option<usize>,
}

/// The order of the rows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Sort {
    /// The most memory first.
    #[default]
    Held,
    /// The oldest first.
    Age,
    /// The earliest deadline first.
    Deadline,
    /// The most messages first.
    Messages,
}

/// The row of one machine.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Row {
    pub(crate) token: usize,
    pub(crate) machine: &'static str,
    pub(crate) state: &'static str,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) made: Option<Time>,
    pub(crate) deadline: Option<Time>,
    pub(crate) held: usize,
    pub(crate) messages: u64,
    pub(crate) is_due: bool,
}

/// Totals of the machines of one type and state.
#[derive(Clone, Default, Debug)]
pub(crate) struct KindTotals {
    pub(crate) count: u64,
    pub(crate) held: u64,
    pub(crate) messages: u64,
    pub(crate) oldest: Option<Time>,
}

/// The result of a walk. The requester sorts its rows, not the loop that was walked.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) kinds: BTreeMap<(&'static str, &'static str), KindTotals>,
    top_rows: TopRows,
    page: usize,
    /// How many machines matched the query.
    pub(crate) matched: u64,
    pub(crate) phase: Phase,
}

/// The first rows so far, with the last of them on top.
type TopRows = BinaryHeap<Reverse<(u64, Reverse<usize>, Row)>>;

/// The state of a walk.
struct Walk {
    query: Query,
    kinds: BTreeMap<(&'static str, &'static str), KindTotals>,
    top_rows: TopRows,
    matched: u64,
}

/// Begins a walk, whose result is sent to the port. Returns whether the loop accepts it.
pub(crate) fn start_walk<M: Machine + 'static>(
    broadcast: &Broadcast<M>,
    query: Query,
    port: Port<Snapshot>,
) -> bool {
    let walk = Walk { query, kinds: BTreeMap::new(), top_rows: BinaryHeap::new(), matched: 0 };
    let again = broadcast.clone();
    let step = move |machines: Machines<'_, M>, scope: &mut GlobalScope<'_, M::Context>| {
        continue_walk(walk, machines, Cursor::START, scope, port, again);
    };
    broadcast.post(step).is_ok()
}

fn continue_walk<M: Machine + 'static>(
    mut walk: Walk,
    mut machines: Machines<'_, M>,
    from: Cursor,
    scope: &GlobalScope<'_, M::Context>,
    port: Port<Snapshot>,
    broadcast: Broadcast<M>,
) {
    if port.is_cancelled() {
        return;
    }
    // Measured from now, not from the beginning of the turn, because earlier posts may have taken
    // time.
    let until = scope.exact_now() + SLICE_TIME_MAX;
    let next = machines.scan_some(from, SLICE_SLOTS, |machines, token, seen| {
        walk.visit(machines, token, seen);
        if scope.exact_now() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let Some(next) = next else {
        // The requester may be gone.
        let _gone = port.set(walk.finish(scope.phase()));
        return;
    };
    let again = broadcast.clone();
    // If the loop refuses the post, the port is dropped, and the requester learns that.
    let _refused = broadcast.post(move |machines, scope| {
        continue_walk(walk, machines, next, scope, port, again);
    });
}

impl Walk {
    fn visit<M: Machine>(
        &mut self,
        machines: &Machines<'_, M>,
        token: Token,
        seen: MachineView<'_, M>,
    ) {
        let mut description = Description::new();
        let machine = match seen {
            MachineView::Waiting(machine) => {
                // Otherwise one machine's bug would hide all machines.
                let describe = AssertUnwindSafe(|| machine.describe(&mut description));
                if panic::catch_unwind(describe).is_err() {
                    log::error!("{token:?} {} panicked in `describe`", machine.type_name());
                    description.set_state("panicked in describe");
                }
                machine.type_name()
            }
            MachineView::Busy => {
                description.set_state("with its handler");
                std::any::type_name::<M>()
            }
        };
        let Some(details) = machines.details(token) else { return };
        let state = description.state();
        let kind = self.kinds.entry((machine, state)).or_default();
        kind.count += 1;
        // Machines may report any figures, and a wrong one must not make the loop panic.
        kind.held = kind.held.saturating_add(description.held() as u64);
        kind.messages = kind.messages.saturating_add(description.messages());
        kind.oldest = match (kind.oldest, details.made) {
            (Some(oldest), Some(made)) => Some(oldest.min(made)),
            (oldest, made) => oldest.or(made),
        };
        if !self.query.matches(token, machine, state) {
            return;
        }
        self.matched += 1;
        self.add_row(Row {
            token: token.into_usize(),
            machine,
            state,
            peer: description.peer(),
            made: details.made,
            deadline: details.deadline,
            held: description.held(),
            messages: description.messages(),
            is_due: details.is_due,
        });
    }

    /// Keeps a row if it is among the first ones.
    fn add_row(&mut self, row: Row) {
        let rank = self.query.sort.rank(&row);
        let entry = Reverse((rank, Reverse(row.token), row));
        let most = (self.query.page() + 1) * PAGE_ROWS;
        if self.top_rows.len() < most {
            self.top_rows.push(entry);
        } else if self.top_rows.peek().is_some_and(|last| entry < *last) {
            self.top_rows.pop();
            self.top_rows.push(entry);
        }
    }

    fn finish(self, phase: Phase) -> Snapshot {
        let page = self.query.page();
        Snapshot { kinds: self.kinds, top_rows: self.top_rows, page, matched: self.matched, phase }
    }
}

impl Snapshot {
    /// Returns the number of the page, from 0.
    pub(crate) fn page(&self) -> u64 {
        self.page as u64
    }

    /// Returns how many pages can be requested.
    pub(crate) fn pages(&self) -> u64 {
        self.matched.div_ceil(PAGE_ROWS as u64).min(PAGES_MAX as u64)
    }

    /// Returns the rows of the page, in order.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = Row> {
        let rows = self.top_rows.into_sorted_vec().into_iter().map(|Reverse((_, _, row))| row);
        rows.skip(self.page * PAGE_ROWS)
    }
}

impl Query {
    /// Returns the requested page, or the last one that can be requested.
    fn page(&self) -> usize {
        self.page.min(PAGES_MAX - 1)
    }

    fn matches(&self, token: Token, machine: &str, state: &str) -> bool {
        self.token.is_none_or(|wanted| wanted == token.into_usize())
            && self.machine.as_ref().is_none_or(|wanted| wanted == machine)
            && self.state.as_ref().is_none_or(|wanted| wanted == state)
    }
}

impl Sort {
    /// Returns the rank of a row; higher ranks come first.
    fn rank(self, row: &Row) -> u64 {
        let early = |time: Option<Time>| time.map_or(0, |time| u64::MAX - time.as_nanos());
        match self {
            Sort::Held => row.held as u64,
            Sort::Age => early(row.made),
            Sort::Deadline => early(row.deadline),
            Sort::Messages => row.messages,
        }
    }
}

#[cfg(test)]
mod tests {
    use rotor_core::{Compose2, Config, EventSet, Infallible, Outcome, Response, Scope};
    use rotor_stream::testing::{TestLoop, World};

    use super::*;

    /// A machine that takes a while to describe itself.
    struct SlowToDescribe(World, Duration);

    impl Machine for SlowToDescribe {
        type Context = ();
        type Seed = Infallible;

        fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
            Response::ok(self)
        }

        fn wakeup(self, _: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
            Response::ok(self)
        }

        fn describe(&self, to: &mut Description) {
            self.0.advance(self.1);
            to.set_state("slow");
        }
    }

    #[test]
    fn a_slice_ends_after_half_a_millisecond_or_100_slots() {
        for (micros, turns) in [(0, 12), (1, 12), (10, 24), (100, 240), (10_000, 1_200)] {
            let mut test =
                TestLoop::<SlowToDescribe>::with_config((), Config::new().machines_max(2_000));
            let (world, time) = (test.world().clone(), Duration::from_micros(micros));
            let mut requested = None;
            for _ in 0..1_200 {
                test.add(|scope| {
                    requested.get_or_insert_with(|| scope.create_future());
                    Response::ok(SlowToDescribe(world.clone(), time))
                });
            }
            test.settle();
            let (port, future) = requested.expect("there is a machine");
            assert!(start_walk(&test.instance().broadcast(), Query::default(), port));
            let mut longest = Duration::ZERO;
            let mut count = 0;
            while !future.is_ready() {
                let before = world.now();
                test.turn();
                longest = longest.max(world.now() - before);
                count += 1;
            }
            assert!(longest <= SLICE_TIME_MAX.max(time), "{micros} us each: {longest:?}");
            assert_eq!(count, turns, "{micros} us each");
            let Outcome::Value(snapshot) = future.take() else { panic!("it is lost") };
            assert_eq!(snapshot.matched, 1_200, "each once");
        }
    }

    /// A machine that reports impossible figures.
    struct HugeFigures;

    impl Machine for HugeFigures {
        type Context = ();
        type Seed = Infallible;

        fn describe(&self, to: &mut Description) {
            to.add_held(usize::MAX);
            to.add_messages(u64::MAX);
        }
    }

    #[test]
    fn totals_saturate_at_the_maximum() {
        let mut test = TestLoop::<HugeFigures>::new(());
        let mut requested = None;
        for _ in 0..2 {
            test.add(|scope| {
                requested.get_or_insert_with(|| scope.create_future());
                Response::ok(HugeFigures)
            });
        }
        test.settle();
        let (port, future) = requested.expect("there is a machine");
        assert!(start_walk(&test.instance().broadcast(), Query::default(), port));
        test.settle();
        let Outcome::Value(snapshot) = future.take() else { panic!("it is lost") };
        let sums = snapshot.kinds.values().map(|kind| (kind.count, kind.held, kind.messages));
        assert_eq!(sums.collect::<Vec<_>>(), [(2, usize::MAX as u64, u64::MAX)]);
    }

    /// A machine whose description has a bug.
    struct CannotDescribe;

    impl Machine for CannotDescribe {
        type Context = ();
        type Seed = Infallible;

        fn describe(&self, to: &mut Description) {
            to.add_held(1);
            panic!("as asked");
        }
    }

    #[test]
    fn a_machine_that_panics_in_describe_is_listed_as_such() {
        let mut test = TestLoop::<Compose2<CannotDescribe, HugeFigures>>::new(());
        let mut requested = None;
        test.add(|scope| {
            requested = Some(scope.create_future());
            Response::ok(Compose2::A(CannotDescribe))
        });
        test.add(|_| Response::ok(Compose2::B(HugeFigures)));
        test.settle();
        let (port, future) = requested.expect("there is a machine");
        assert!(start_walk(&test.instance().broadcast(), Query::default(), port));
        test.settle();
        let Outcome::Value(snapshot) = future.take() else { panic!("it is lost") };
        let states: Vec<_> = snapshot.into_rows().map(|row| (row.state, row.held)).collect();
        assert_eq!(states, [("", usize::MAX), ("panicked in describe", 1)]);
    }

    fn row(token: usize, held: usize) -> Row {
        let (machine, state) = ("a", "b");
        Row {
            token,
            machine,
            state,
            peer: None,
            made: None,
            deadline: None,
            held,
            messages: 0,
            is_due: false,
        }
    }

    fn pages(page: usize, rows: impl Iterator<Item = Row>) -> Vec<usize> {
        let query = Query { page, ..Query::default() };
        let (kinds, top_rows) = (BTreeMap::new(), BinaryHeap::new());
        let mut walk = Walk { query, kinds, top_rows, matched: 0 };
        rows.for_each(|row| walk.add_row(row));
        walk.finish(Phase::Serving).into_rows().map(|row| row.token).collect()
    }

    #[test]
    fn rows_are_sorted_by_held_memory_and_divided_into_pages() {
        let rows = || (0..250).map(|token| row(token, (token * 7) % 250));
        let mut expected: Vec<_> = rows().collect();
        expected.sort_by_key(|row| Reverse(row.held));
        let expected: Vec<_> = expected.iter().map(|row| row.token).collect();
        assert_eq!(pages(0, rows()), expected[..100]);
        assert_eq!(pages(1, rows()), expected[100..200]);
        assert_eq!(pages(2, rows()), expected[200..]);
        assert!(pages(3, rows()).is_empty());
    }

    #[test]
    fn rows_of_equal_rank_are_sorted_by_token() {
        let rows = (0..300).rev().map(|token| row(token, 1));
        assert_eq!(pages(0, rows), (0..100).collect::<Vec<_>>());
        assert_eq!(pages(usize::MAX, (0..9).map(|token| row(token, 1))), []);
    }

    #[test]
    fn the_reported_pages_are_limited_to_those_that_can_be_requested() {
        for (matched, requested, pages, page) in
            [(0, 0, 0, 0), (100, 0, 1, 0), (101, 1, 2, 1), (1_000_000, usize::MAX, 100, 99)]
        {
            let query = Query { page: requested, ..Query::default() };
            let (kinds, top_rows) = (BTreeMap::new(), BinaryHeap::new());
            let snapshot = Walk { query, kinds, top_rows, matched }.finish(Phase::Serving);
            assert_eq!((snapshot.pages(), snapshot.page()), (pages, page), "{matched}");
        }
    }
}
