//! `PerThread`: something that blocks, one for each thread of the pool that uses it.

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

/// Something that blocks whoever uses it, for example a connection to a database. Each thread of
/// the loop's pool makes one for itself when it first needs it, so there is no lock, and there are
/// no more of them than [threads](rotor_async::offload).
///
/// If a panic happens while one is in use, that one is dropped and made anew. The others stay with
/// their threads until these end, even when the last clone of this is gone: use it for what lasts
/// as long as the program. A thread of a pool ends when it has been idle for ten seconds, unless
/// the pool keeps it (`OffloadPool::builder`, `keep_idle` and `threads_min`); keep threads whose
/// value is slow to make. Loops that share a pool share the values of its threads; each further
/// pool has its own.
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
    /// Uses `make` to make the value of a thread.
    pub fn new<E: Into<BoxError>>(
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> PerThread<T> {
        let make = Arc::new(move || make().map_err(Into::into));
        PerThread { number: NUMBERS.fetch_add(1, Relaxed), make }
    }

    /// Has a thread of the pool do `work` with its value, and waits for the result, like
    /// [`rotor_async::offload`] in a future that a loop drives.
    ///
    /// # Errors
    ///
    /// 503: the pool's queue is full. 500, with the reason in the log: the work failed or panicked,
    /// or the value could not be made.
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

    /// Does `work` with the value of the calling thread.
    ///
    /// # Errors
    ///
    /// The error of the work, or of making the value.
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

/// Returns the same, for another user.
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
