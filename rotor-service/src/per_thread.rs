//! `PerThread`: what blocks, one for each thread of the pool that asks it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rotor_async::Unworked;
use rotor_http::Status;

use crate::refused::Refused;

type BoxError = Box<dyn Error + Send + Sync>;

/// Something that blocks whoever asks it, a connection to a database say: each thread of the loop's
/// pool makes one for itself when it is first asked, so there is no lock, and no more of them than
/// [threads](rotor_async::offload).
///
/// One that was in use when a panic came is dropped, and made anew. The others stay with their threads
/// until these end, when the last clone of this is gone too: it is for what lasts as long as the
/// program. A thread of a pool ends when it has been idle for ten seconds, unless the pool keeps it
/// (`OffloadPool::builder`, `keep_idle` and `threads_min`): for what is slow to make, let it. Loops that share
/// a pool share what its threads have; each further pool has its own.
///
/// # Examples
///
/// ```
/// use rotor_service::{PerThread, Refused};
///
/// # struct Connection;
/// # impl Connection {
/// #     fn open(_: &str) -> Result<Connection, std::io::Error> { Ok(Connection) }
/// #     fn count(&self) -> Result<u64, std::io::Error> { Ok(7) }
/// # }
/// async fn count(database: &PerThread<Connection>) -> Result<u64, Refused> {
///     database.ask(|connection| connection.count()).await
/// }
///
/// let database = PerThread::new(|| Connection::open("notes.sqlite"));
/// # let _ = count(&database);
/// ```
pub struct PerThread<T> {
    number: u64,
    make: Arc<Make<T>>,
}

type Make<T> = dyn Fn() -> Result<T, BoxError> + Send + Sync;

static NUMBERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// By the number of whom they belong to.
    static HELD: RefCell<BTreeMap<u64, Box<dyn Any>>> = const { RefCell::new(BTreeMap::new()) };
}

impl<T: 'static> PerThread<T> {
    /// They are made so.
    pub fn new<E: Into<BoxError>>(
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> PerThread<T> {
        let make = Arc::new(move || make().map_err(Into::into));
        PerThread { number: NUMBERS.fetch_add(1, Relaxed), make }
    }

    /// Has a thread of the pool do `work` with its own, and waits for what comes of it: in a future that
    /// a loop drives, as [`rotor_async::offload`].
    ///
    /// # Errors
    ///
    /// 503: more waits already than the pool takes. 500, and the reason in the log: the work has
    /// failed, or panicked, or there is nothing to do it with.
    pub async fn ask<R, E>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, E> + Send + 'static,
    ) -> Result<R, Refused>
    where
        R: Send + 'static,
        E: Into<BoxError>,
    {
        let own = self.clone();
        let error: BoxError = match rotor_async::offload(move || own.with(work)).await {
            Ok(Ok(value)) => return Ok(value),
            Err(Unworked::Full) => {
                return Err(Refused::new(Status::SERVICE_UNAVAILABLE, "busy: try again later"));
            }
            Ok(Err(error)) => error,
            Err(lost) => lost.into(),
        };
        log::error!("a request failed: {error}");
        Err(Refused::new(Status::INTERNAL_SERVER_ERROR, "internal error"))
    }

    /// Does `work` with that of the thread that calls.
    ///
    /// # Errors
    ///
    /// What the work says, or that there is nothing to do it with.
    pub fn with<R, E: Into<BoxError>>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, BoxError> {
        // Out of its place meanwhile: a panic leaves nothing that is half done.
        let held = HELD.with_borrow_mut(|held| held.remove(&self.number));
        let mut held = match held.and_then(|held| held.downcast::<T>().ok()) {
            Some(held) => held,
            None => Box::new((self.make)()?),
        };
        let done = work(&mut held);
        HELD.with_borrow_mut(|all| all.insert(self.number, held));
        done.map_err(Into::into)
    }
}

/// The same, for whoever else asks.
impl<T> Clone for PerThread<T> {
    fn clone(&self) -> PerThread<T> {
        PerThread { number: self.number, make: self.make.clone() }
    }
}

impl<T> fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThread").field("number", &self.number).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the pool: its threads")]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn counted() -> (PerThread<Vec<u32>>, Arc<AtomicU32>) {
        let made = Arc::new(AtomicU32::new(0));
        let counter = made.clone();
        let make = move || match counter.fetch_add(1, Relaxed) {
            9 => Err("there is no tenth"),
            number => Ok(vec![number]),
        };
        (PerThread::new(make), made)
    }

    fn push(own: &mut Vec<u32>) -> Result<usize, &'static str> {
        own.push(7);
        Ok(own.len())
    }

    #[test]
    fn a_thread_has_one_of_each_and_keeps_it() {
        let ((first, made), (second, _)) = (counted(), counted());
        for length in 2..5 {
            assert_eq!(first.with(push).expect("it works"), length);
        }
        assert_eq!(second.with(push).expect("it works"), 2, "one of its own");
        assert_eq!(first.clone().with(push).expect("it works"), 5, "a clone is the same");
        let other = std::thread::spawn(move || first.with(push).expect("it works"));
        assert_eq!((other.join().expect("no panic"), made.load(Relaxed)), (2, 2));
    }

    #[test]
    fn one_that_failed_is_kept_and_one_in_a_panic_is_not() {
        let (own, made) = counted();
        assert!(own.with(|_| Err::<(), _>("as asked")).is_err());
        assert_eq!((own.with(push).expect("it works"), made.load(Relaxed)), (2, 1));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            own.with(|_| -> Result<(), &str> { panic!("as asked") })
        }));
        assert!(panicked.is_err());
        assert_eq!((own.with(push).expect("it works"), made.load(Relaxed)), (2, 2));
        made.store(9, Relaxed);
        let without = own.clone();
        let other = std::thread::spawn(move || without.with(push).map_err(|why| why.to_string()));
        assert_eq!(other.join().expect("no panic"), Err("there is no tenth".to_owned()));
    }
}
