//! `ThreadQueue`: which thread has the loop, which threads wait to get it back, and which ones are
//! free to go on with it.
//!
//! ```text
//!   runs the loop ──give()──▶ first of those who wait, else one who is parked
//!        ▲    │
//!        │    └──lend()──▶ lent: whoever wants it takes it
//!        │                   │
//!        └──reclaim()────────┘   or waits in the queue, and notifies the thread that has it
//! ```
//!
//! There is a single value, the loop, so the queue is empty while it is lent. Parked threads may be
//! given other work as well, of type `W`. This module does not depend on what either of them is.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::parker::Parker;
use crate::sync::{Mutex, MutexGuard};

pub(crate) struct ThreadQueue<T, W = T> {
    state: Mutex<State<T, W>>,
    /// Called with whether threads wait, while the lock is held.
    set_wanted: Box<dyn Fn(bool) + Send + Sync>,
}

struct State<T, W> {
    waiting: VecDeque<Arc<Parker<T>>>,
    /// The thread that parked last is used first, because its data may still be in the caches.
    parked: Vec<Arc<Parker<W>>>,
    lent: Option<T>,
    /// How often the value was lent.
    lend_count: u64,
    /// Whether a thread runs the loop, or will do so at once.
    is_running: bool,
    is_closed: bool,
}

impl<T, W: From<T>> ThreadQueue<T, W> {
    /// Makes a queue. `set_wanted` is called when threads begin to wait and when none waits any
    /// more. The thread that has the loop checks this.
    pub(crate) fn new(set_wanted: impl Fn(bool) + Send + Sync + 'static) -> ThreadQueue<T, W> {
        let state = State {
            waiting: VecDeque::new(),
            parked: Vec::new(),
            lent: None,
            lend_count: 0,
            is_running: false,
            is_closed: false,
        };
        ThreadQueue { state: Mutex::new(state), set_wanted: Box::new(set_wanted) }
    }

    /// Sets whether the loop is run from now on. While it is not, waiting threads go on waiting,
    /// and `set_wanted` is called as if none did.
    pub(crate) fn set_running(&self, is_running: bool) {
        let mut state = self.lock();
        state.is_running = is_running;
        (self.set_wanted)(is_running && !state.waiting.is_empty());
    }

    /// Gives the value to the first waiting thread or, if there is none, to a parked one. Returns
    /// the value if there is none either.
    pub(crate) fn give(&self, value: T) -> Result<(), T> {
        let mut state = self.lock();
        if let Some(first) = self.pop_waiting(&mut state) {
            drop(state);
            first.give(value);
            return Ok(());
        }
        let parked = state.parked.pop();
        drop(state);
        give_or_return(parked, value)
    }

    /// Gives work to a parked thread, regardless of the threads that wait for the loop.
    pub(crate) fn give_to_parked<V: Into<W>>(&self, work: V) -> Result<(), V> {
        let parked = self.lock().parked.pop();
        give_or_return(parked, work)
    }

    /// Gives the value to the first waiting thread. If there is none, the value is left for any
    /// thread that wants it.
    pub(crate) fn lend(&self, value: T) {
        let mut state = self.lock();
        if let Some(parker) = self.pop_waiting(&mut state) {
            drop(state);
            return parker.give(value);
        }
        state.lend_count += 1;
        state.lent = Some(value);
    }

    /// Takes the lent value, if nothing was lent since the last call. Returns how often a value was
    /// lent, which must be passed to the next call.
    pub(crate) fn take_lent(&self, seen: u64) -> (u64, Option<T>) {
        let mut state = self.lock();
        let lent = if state.lend_count == seen { state.lent.take() } else { None };
        (state.lend_count, lent)
    }

    /// Takes the value back: at once if it is lent, by whichever thread, otherwise when it is given.
    /// `notify` makes the thread that has the value check whether it is wanted. Returns `None` if
    /// the queue is closed.
    pub(crate) fn reclaim(&self, parker: &Arc<Parker<T>>, notify: impl FnOnce()) -> Option<T> {
        {
            let mut state = self.lock();
            if let Some(value) = state.lent.take() {
                return Some(value);
            }
            if state.is_closed {
                return None;
            }
            state.waiting.push_back(parker.clone());
            if state.is_running {
                (self.set_wanted)(true);
            }
        }
        notify();
        parker.wait()
    }

    /// Parks the thread until it is given something, for at most `keep`. Returns `None` if it was
    /// given nothing; it is then no longer parked.
    pub(crate) fn park(&self, parker: &Arc<Parker<W>>, keep: Duration) -> Option<W> {
        {
            let mut state = self.lock();
            if state.is_closed {
                return None;
            }
            state.parked.push(parker.clone());
        }
        if let Some(value) = parker.wait_timeout(keep) {
            return value;
        }
        {
            let mut state = self.lock();
            let before = state.parked.len();
            state.parked.retain(|other| !Arc::ptr_eq(other, parker));
            if state.parked.len() < before {
                return None;
            }
        }
        // Another thread has found the parker, and is about to give it something.
        parker.wait()
    }

    /// Puts this parker first in the queue.
    #[cfg(rotor_handed)]
    pub(crate) fn push_front(&self, parker: &Arc<Parker<T>>) {
        let mut state = self.lock();
        state.waiting.push_front(parker.clone());
        (self.set_wanted)(true);
    }

    /// Takes this parker out of the queue again.
    #[cfg(rotor_handed)]
    pub(crate) fn remove(&self, parker: &Arc<Parker<T>>) {
        let mut state = self.lock();
        state.waiting.retain(|other| !Arc::ptr_eq(other, parker));
        (self.set_wanted)(state.is_running && !state.waiting.is_empty());
    }

    /// Closes the queue: all waiting and parked threads, and all that come later, learn that there
    /// will be no value any more.
    pub(crate) fn close(&self) {
        let (waiting, parked) = {
            let mut state = self.lock();
            state.is_closed = true;
            (self.set_wanted)(false);
            (mem::take(&mut state.waiting), mem::take(&mut state.parked))
        };
        waiting.into_iter().for_each(|parker| parker.close());
        parked.into_iter().for_each(|parker| parker.close());
    }

    fn pop_waiting(&self, state: &mut State<T, W>) -> Option<Arc<Parker<T>>> {
        let first = state.waiting.pop_front()?;
        if state.waiting.is_empty() {
            (self.set_wanted)(false);
        }
        Some(first)
    }

    fn lock(&self) -> MutexGuard<'_, State<T, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn give_or_return<W, V: Into<W>>(parker: Option<Arc<Parker<W>>>, work: V) -> Result<(), V> {
    match parker {
        Some(parker) => {
            parker.give(work.into());
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

    fn queue() -> (ThreadQueue<u32>, Arc<AtomicBool>) {
        let wanted = Arc::new(AtomicBool::new(false));
        let set = wanted.clone();
        let queue = ThreadQueue::new(move |is_wanted| set.store(is_wanted, SeqCst));
        queue.set_running(true);
        (queue, wanted)
    }

    #[test]
    fn an_untaken_lent_value_is_reclaimed_at_once() {
        let (queue, wanted) = queue();
        queue.lend(7);
        let parker = Parker::new();
        assert_eq!(queue.reclaim(&parker, || panic!("nobody has it")), Some(7));
        assert!(!wanted.load(SeqCst));
    }

    #[test]
    fn a_lent_value_is_taken_at_the_second_check() {
        let (queue, _) = queue();
        queue.lend(7);
        let (seen, lent) = queue.take_lent(0);
        assert!(lent.is_none(), "it was lent since");
        let parker = Parker::new();
        assert!(queue.reclaim(&parker, || {}).is_some());
        queue.lend(8);
        let (seen, lent) = queue.take_lent(seen);
        assert!(lent.is_none(), "it is another time");
        assert_eq!(queue.take_lent(seen).1, Some(8));
        assert_eq!(queue.take_lent(seen).1, None);
    }

    #[test]
    fn waiting_threads_are_served_in_order_before_parked_ones() {
        let (queue, wanted) = queue();
        let (first, second) = (Parker::new(), Parker::new());
        // The part of `reclaim` that precedes its wait.
        for parker in [&first, &second] {
            queue.lock().waiting.push_back(Arc::clone(parker));
            wanted.store(true, SeqCst);
        }
        let parked = Parker::new();
        queue.lock().parked.push(parked.clone());
        assert_eq!(queue.give(1), Ok(()));
        assert!(wanted.load(SeqCst));
        queue.lend(2);
        assert!(!wanted.load(SeqCst));
        assert_eq!((queue.give(3), queue.give(4)), (Ok(()), Err(4)));
        assert_eq!((first.wait(), second.wait(), parked.wait()), (Some(1), Some(2), Some(3)));
    }

    #[test]
    fn set_wanted_reports_waiting_threads_only_while_the_loop_runs() {
        let (queue, wanted) = queue();
        queue.lock().waiting.push_back(Parker::new());
        for is_running in [false, true] {
            queue.set_running(is_running);
            assert_eq!(wanted.load(SeqCst), is_running);
        }
        assert_eq!(queue.give(1), Ok(()));
        queue.set_running(true);
        assert!(!wanted.load(SeqCst));
    }

    #[test]
    fn a_thread_whose_parking_timed_out_is_given_nothing() {
        let (queue, _) = queue();
        let parker = Parker::new();
        assert_eq!(queue.park(&parker, Duration::ZERO), None);
        assert_eq!(queue.give(1), Err(1));
    }

    #[test]
    fn closing_the_queue_releases_all_threads() {
        let (queue, wanted) = queue();
        let (notified, is_waiting) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                queue.reclaim(&Parker::new(), || notified.send(()).expect("it hears")).is_none()
            });
            is_waiting.recv().expect("it waits");
            queue.close();
            assert!(waits.join().expect("it does not panic"));
        });
        assert!(!wanted.load(SeqCst), "nobody waits any more");
        assert!(queue.reclaim(&Parker::new(), || {}).is_none());
        assert_eq!(queue.park(&Parker::new(), Duration::MAX), None);
    }
}
