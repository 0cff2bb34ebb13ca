//! `Line`: which thread has the loop, which threads wait to get it back, and which ones are free to
//! go on with it.
//!
//! ```text
//!   runs the loop ──give()──▶ first of those who wait, else one who is parked
//!        ▲    │
//!        │    └──lend()──▶ lent: whoever wants it takes it
//!        │                   │
//!        └──take_back()──────┘   or waits in line, and tells who has it
//! ```
//!
//! There is a single value, the loop, so the queue is empty while it is lent. Parked threads may be
//! given other work as well, of type `W`. This module does not depend on what either of them is.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::seat::Seat;
use crate::sync::{Mutex, MutexGuard};

pub(crate) struct Line<T, W = T> {
    state: Mutex<State<T, W>>,
    /// Called with whether threads wait, while the lock is held.
    set_wanted: Box<dyn Fn(bool) + Send + Sync>,
}

struct State<T, W> {
    returners: VecDeque<Arc<Seat<T>>>,
    /// The thread that parked last is used first, because its data may still be in the caches.
    parked: Vec<Arc<Seat<W>>>,
    lent: Option<T>,
    /// How often the value was lent.
    lends: u64,
    /// Whether a thread runs the loop, or will do so at once.
    is_run: bool,
    is_closed: bool,
}

/// The value that was taken back, and whether it was used meanwhile.
pub(crate) enum Back<T> {
    /// No other thread had taken it.
    Unused(T),
    Used(T),
}

impl<T, W: From<T>> Line<T, W> {
    /// Makes a line. `set_wanted` is called when threads begin to wait and when none waits any
    /// more. The thread that has the loop checks this.
    pub(crate) fn new(set_wanted: impl Fn(bool) + Send + Sync + 'static) -> Line<T, W> {
        let state = State {
            returners: VecDeque::new(),
            parked: Vec::new(),
            lent: None,
            lends: 0,
            is_run: false,
            is_closed: false,
        };
        Line { state: Mutex::new(state), set_wanted: Box::new(set_wanted) }
    }

    /// Sets whether the loop is run from now on. While it is not, waiting threads go on waiting,
    /// and `set_wanted` is called as if none did.
    pub(crate) fn set_run(&self, is_run: bool) {
        let mut state = self.lock();
        state.is_run = is_run;
        (self.set_wanted)(is_run && !state.returners.is_empty());
    }

    /// Gives the value to the first waiting thread or, if there is none, to a parked one. Returns
    /// the value if there is none either.
    pub(crate) fn give(&self, value: T) -> Result<(), T> {
        let mut state = self.lock();
        if let Some(first) = self.first_in_line(&mut state) {
            drop(state);
            first.give(value);
            return Ok(());
        }
        let parked = state.parked.pop();
        drop(state);
        give_to(parked, value)
    }

    /// Gives work to a parked thread, regardless of the threads that wait for the loop.
    pub(crate) fn give_parked<V: Into<W>>(&self, work: V) -> Result<(), V> {
        let parked = self.lock().parked.pop();
        give_to(parked, work)
    }

    /// Gives the value to the first waiting thread. If there is none, the value is left for any
    /// thread that wants it.
    pub(crate) fn lend(&self, value: T) {
        let mut state = self.lock();
        if let Some(seat) = self.first_in_line(&mut state) {
            drop(state);
            return seat.give(value);
        }
        state.lends += 1;
        state.lent = Some(value);
    }

    /// Takes the lent value, if nothing was lent since the last call. Returns how often a value was
    /// lent, which must be passed to the next call.
    pub(crate) fn take_lent(&self, seen: u64) -> (u64, Option<T>) {
        let mut state = self.lock();
        let lent = if state.lends == seen { state.lent.take() } else { None };
        (state.lends, lent)
    }

    /// Takes the value back: at once if it is lent, otherwise when it is given. `tell` makes the
    /// thread that has the value check whether it is wanted. Returns `None` if the line is closed.
    pub(crate) fn take_back(&self, seat: &Arc<Seat<T>>, tell: impl FnOnce()) -> Option<Back<T>> {
        {
            let mut state = self.lock();
            if let Some(value) = state.lent.take() {
                return Some(Back::Unused(value));
            }
            if state.is_closed {
                return None;
            }
            state.returners.push_back(seat.clone());
            if state.is_run {
                (self.set_wanted)(true);
            }
        }
        tell();
        seat.wait().map(Back::Used)
    }

    /// Parks the thread until it is given something, for at most `keep`. Returns `None` if it was
    /// given nothing; it is then no longer parked.
    pub(crate) fn park(&self, seat: &Arc<Seat<W>>, keep: Duration) -> Option<W> {
        {
            let mut state = self.lock();
            if state.is_closed {
                return None;
            }
            state.parked.push(seat.clone());
        }
        if let Some(value) = seat.wait_for(keep) {
            return value;
        }
        {
            let mut state = self.lock();
            let before = state.parked.len();
            state.parked.retain(|other| !Arc::ptr_eq(other, seat));
            if state.parked.len() < before {
                return None;
            }
        }
        // Another thread has found the seat, and is about to give it something.
        seat.wait()
    }

    /// Puts this seat first in the queue.
    #[cfg(rotor_handed)]
    pub(crate) fn stand_first(&self, seat: &Arc<Seat<T>>) {
        let mut state = self.lock();
        state.returners.push_front(seat.clone());
        (self.set_wanted)(true);
    }

    /// Takes this seat out of the queue again.
    #[cfg(rotor_handed)]
    pub(crate) fn step_out(&self, seat: &Arc<Seat<T>>) {
        let mut state = self.lock();
        state.returners.retain(|other| !Arc::ptr_eq(other, seat));
        (self.set_wanted)(state.is_run && !state.returners.is_empty());
    }

    /// Closes the line: all waiting and parked threads, and all that come later, learn that there
    /// will be no value any more.
    pub(crate) fn close(&self) {
        let (returners, parked) = {
            let mut state = self.lock();
            state.is_closed = true;
            (self.set_wanted)(false);
            (mem::take(&mut state.returners), mem::take(&mut state.parked))
        };
        returners.into_iter().for_each(|seat| seat.close());
        parked.into_iter().for_each(|seat| seat.close());
    }

    fn first_in_line(&self, state: &mut State<T, W>) -> Option<Arc<Seat<T>>> {
        let first = state.returners.pop_front()?;
        if state.returners.is_empty() {
            (self.set_wanted)(false);
        }
        Some(first)
    }

    fn lock(&self) -> MutexGuard<'_, State<T, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn give_to<W, V: Into<W>>(seat: Option<Arc<Seat<W>>>, work: V) -> Result<(), V> {
    match seat {
        Some(seat) => {
            seat.give(work.into());
            Ok(())
        }
        None => Err(work),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use super::*;

    fn line() -> (Line<u32>, Arc<AtomicBool>) {
        let wanted = Arc::new(AtomicBool::new(false));
        let set = wanted.clone();
        let line = Line::new(move |is_wanted| set.store(is_wanted, SeqCst));
        line.set_run(true);
        (line, wanted)
    }

    #[test]
    fn what_was_lent_and_not_taken_comes_back_unused() {
        let (line, wanted) = line();
        line.lend(7);
        let seat = Seat::new();
        let back = line.take_back(&seat, || panic!("nobody has it"));
        assert!(matches!(back, Some(Back::Unused(7))) && !wanted.load(SeqCst));
    }

    #[test]
    fn what_is_lent_is_taken_at_the_second_look() {
        let (line, _) = line();
        line.lend(7);
        let (seen, lent) = line.take_lent(0);
        assert!(lent.is_none(), "it was lent since");
        let seat = Seat::new();
        assert!(line.take_back(&seat, || {}).is_some());
        line.lend(8);
        let (seen, lent) = line.take_lent(seen);
        assert!(lent.is_none(), "it is another time");
        assert_eq!(line.take_lent(seen).1, Some(8));
        assert_eq!(line.take_lent(seen).1, None);
    }

    #[test]
    fn who_waits_comes_before_who_is_parked_and_in_order() {
        let (line, wanted) = line();
        let (first, second) = (Seat::new(), Seat::new());
        // What `take_back` does before it waits.
        for seat in [&first, &second] {
            line.lock().returners.push_back(Arc::clone(seat));
            wanted.store(true, SeqCst);
        }
        let parked = Seat::new();
        line.lock().parked.push(parked.clone());
        assert_eq!(line.give(1), Ok(()));
        assert!(wanted.load(SeqCst));
        line.lend(2);
        assert!(!wanted.load(SeqCst));
        assert_eq!((line.give(3), line.give(4)), (Ok(()), Err(4)));
        assert_eq!((first.wait(), second.wait(), parked.wait()), (Some(1), Some(2), Some(3)));
    }

    #[test]
    fn who_waits_is_told_of_while_it_is_run() {
        let (line, wanted) = line();
        line.lock().returners.push_back(Seat::new());
        for is_run in [false, true] {
            line.set_run(is_run);
            assert_eq!(wanted.load(SeqCst), is_run);
        }
        assert_eq!(line.give(1), Ok(()));
        line.set_run(true);
        assert!(!wanted.load(SeqCst));
    }

    #[test]
    fn who_was_of_no_use_is_no_longer_there() {
        let (line, _) = line();
        let seat = Seat::new();
        assert_eq!(line.park(&seat, Duration::ZERO), None);
        assert_eq!(line.give(1), Err(1));
    }

    #[test]
    fn when_it_is_closed_all_are_told() {
        let (line, wanted) = line();
        let (told, hears) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                line.take_back(&Seat::new(), || told.send(()).expect("it hears")).is_none()
            });
            hears.recv().expect("it waits");
            line.close();
            assert!(waits.join().expect("it does not panic"));
        });
        assert!(!wanted.load(SeqCst), "nobody waits any more");
        assert!(line.take_back(&Seat::new(), || {}).is_none());
        assert_eq!(line.park(&Seat::new(), Duration::MAX), None);
    }
}
