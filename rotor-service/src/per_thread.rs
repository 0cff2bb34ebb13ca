//! `PerThread`: a blocking resource, one for each thread of the pool that uses it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rotor_async::OffloadError;
use rotor_core::with_causes;
use rotor_http::Status;

use crate::refused::Rejection;

type BoxError = Box<dyn Error + Send + Sync>;

/// A resource whose use blocks, for example a connection to a database. Each thread of the loop's
/// pool makes its own value when it first needs one. So there is no lock, and there are never more
/// values than [threads](rotor_async::offload).
///
/// If a panic happens while a value is in use, the value is dropped, and the thread makes another
/// one when needed. The other values live until their threads end, even if the last clone of the
/// `PerThread` is dropped, so use it for resources that last as long as the program. A thread of a
/// pool ends when it has been idle for ten seconds, unless the pool keeps it
/// (`OffloadPool::builder`, `keep_idle` and `threads_min`); keep the threads if a value is slow to
/// make. Loops that share a pool share the values of its threads; separate pools have separate
/// values.
///
/// # Examples
///
/// ```
/// use rotor_service::{PerThread, Rejection};
///
/// # struct Connection;
/// # impl Connection {
/// #     fn open(_: &str) -> Result<Connection, std::io::Error> { Ok(Connection) }
/// #     fn count(&self) -> Result<u64, std::io::Error> { Ok(7) }
/// # }
/// async fn count(database: &PerThread<Connection>) -> Result<u64, Rejection> {
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

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Keyed by the number of the `PerThread`.
    static VALUES: RefCell<BTreeMap<u64, Box<dyn Any>>> = const { RefCell::new(BTreeMap::new()) };
}

impl<T: 'static> PerThread<T> {
    /// Makes a `PerThread` that calls `make` for the value of each thread.
    pub fn new<E: Into<BoxError>>(
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> PerThread<T> {
        let make = Arc::new(move || make().map_err(Into::into));
        PerThread { number: NEXT_NUMBER.fetch_add(1, Relaxed), make }
    }

    /// Runs `work` on a thread of the pool, with that thread's value, and waits for the result.
    /// Like [`rotor_async::offload`], it works only in a future that a loop drives.
    ///
    /// # Errors
    ///
    /// 503: the pool's queue is full. 500, with the reason in the log: the work failed or panicked,
    /// or the value could not be made.
    pub async fn ask<R, E>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, E> + Send + 'static,
    ) -> Result<R, Rejection>
    where
        R: Send + 'static,
        E: Into<BoxError>,
    {
        let own = self.clone();
        let error: BoxError = match rotor_async::offload(move || own.with(work)).await {
            Ok(Ok(value)) => return Ok(value),
            Err(OffloadError::Full) => {
                return Err(Rejection::new(Status::SERVICE_UNAVAILABLE, "busy: try again later"));
            }
            Ok(Err(error)) => error,
            Err(lost) => lost.into(),
        };
        log::error!("a request failed: {}", with_causes(&*error));
        Err(Rejection::new(Status::INTERNAL_SERVER_ERROR, "internal error"))
    }

    /// Runs `work` with the value of the calling thread, and blocks until it is done.
    ///
    /// # Errors
    ///
    /// The error of `work`, or of making the value.
    pub fn with<R, E: Into<BoxError>>(
        &self,
        work: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, BoxError> {
        // Removed during the work, so that a panic leaves no half-changed value behind.
        let value = VALUES.with_borrow_mut(|values| values.remove(&self.number));
        let mut value = match value.and_then(|value| value.downcast::<T>().ok()) {
            Some(value) => value,
            None => Box::new((self.make)()?),
        };
        let done = work(&mut value);
        VALUES.with_borrow_mut(|values| values.insert(self.number, value));
        done.map_err(Into::into)
    }
}

/// Returns another handle to the same values.
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
    fn each_thread_keeps_one_value_per_handle() {
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
    fn a_value_survives_an_error_but_not_a_panic() {
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
