//! `SystemResolver`: the system's `getaddrinfo`, run on other threads, with the same handle as a
//! resolver.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rotor_core::{
    Call, Calls, Future, Infallible, Machine, Outcome, ReceiveError, Response, Scope, Time,
};
use rotor_stream::{AddressService, HostName, ResolveError, ResolveResult};

use crate::lookup::resolve_error;
use crate::name::check_host;

/// How many names are looked up at a time; the others wait. The thread pool has its own limit.
const JOBS_MAX: usize = 64;
/// How many lookups are started before the other machines of the loop get their turn.
const LOOKUPS_PER_EVENT: usize = 128;

/// Implements an [`AddressService`] with the system's resolver (getaddrinfo(3)), and thereby with
/// everything that `/etc/nsswitch.conf` names: LDAP, mDNS, containers. Each name is a job of
/// [`Scope::offload`]; equal names that wait are looked up once. Nothing is cached.
///
/// If a lookup fails, the error is [`Failed`](ResolveError::Failed), even if the name does not
/// exist, since only the text of the system's error tells these cases apart. Two errors come
/// without a lookup: [`Name`](ResolveError::Name) for a text with a colon that is not an address,
/// and [`Busy`](ResolveError::Busy) if the thread pool has no room for the job. On a simulated
/// loop, too, the real system is asked.
///
/// ```no_run
/// # mod rotor { pub use rotor_core::*; pub use rotor_dns as dns; }
/// use rotor::{Config, Loop};
/// use rotor::dns::SystemResolver;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::<SystemResolver<()>>::new(&Config::new())?;
/// // For the context.
/// let addresses =
///     creator.add_part(|resolver| resolver, |scope| Ok(SystemResolver::new(1024, scope)))?;
/// # drop(addresses);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "getaddrinfo")]
pub struct SystemResolver<C> {
    calls: Calls<HostName, ResolveResult>,
    jobs: Vec<Job>,
    lookups_max: usize,
    is_draining: bool,
    /// Looks up a name on another thread.
    resolve: fn(&str) -> io::Result<Vec<IpAddr>>,
    context: PhantomData<fn(C)>,
}

struct Job {
    name: HostName,
    found: Future<io::Result<Vec<IpAddr>>>,
    waiters: Vec<Call<HostName, ResolveResult>>,
    /// Whether a thread has begun it.
    has_begun: Arc<AtomicBool>,
}

impl<C> SystemResolver<C> {
    /// Creates a resolver and its handle. `lookups_max` lookups (at least 1) may be in progress, and
    /// as many more may wait to be started; beyond that, asking returns
    /// [`Full`](rotor_core::SendError::Full).
    pub fn new<X>(
        lookups_max: usize,
        scope: &Scope<'_, X>,
    ) -> (AddressService, Response<SystemResolver<C>>) {
        let (service, calls) = scope.create_service(lookups_max);
        // With 0, no lookup would ever be started, and no caller would be told.
        let (jobs, lookups_max) = (Vec::new(), lookups_max.max(1));
        let resolver = SystemResolver {
            calls,
            jobs,
            lookups_max,
            is_draining: false,
            resolve: resolve_blocking,
            context: PhantomData,
        };
        (service, Response::ok(resolver))
    }

    fn deliver_finished(&mut self) {
        for Job { name, found, mut waiters, has_begun } in std::mem::take(&mut self.jobs) {
            let resolved = match found.take() {
                Outcome::Pending(found) => {
                    waiters.retain(|call| !call.is_cancelled());
                    // Dropping the future drops a job that no thread has begun. One that has begun
                    // occupies its thread to the end, and must not get a second one for its name.
                    if !waiters.is_empty() || has_begun.load(Relaxed) {
                        self.jobs.push(Job { name, found, waiters, has_begun });
                    }
                    continue;
                }
                Outcome::Value(Ok(found)) => Ok(found.into()),
                Outcome::Value(Err(error)) => Err(ResolveError::Failed(Arc::new(error))),
                Outcome::Lost(lost) => Err(ResolveError::Failed(Arc::new(lost))),
            };
            for call in waiters {
                let _nobody_waits = call.answer(resolved.clone());
            }
        }
    }

    /// Starts a lookup. Returns whether the call waits now.
    fn start_lookup(&mut self, call: Call<HostName, ResolveResult>, scope: &Scope<'_, C>) -> bool {
        // It was cancelled while it waited, and would take the place of another one.
        if call.is_cancelled() {
            return false;
        }
        let name = call.request().clone();
        // One thread for equal names: otherwise many lookups of a slow name would occupy all
        // threads.
        if let Some(job) = self.jobs.iter_mut().find(|job| job.name == name) {
            job.waiters.push(call);
            return true;
        }
        // The system would accept a zone, which the answer cannot contain.
        if let (Err(error), Err(_)) = (check_host(&name), name.parse::<IpAddr>()) {
            let _nobody_waits = call.answer(Err(resolve_error(error.into())));
            return false;
        }
        let (asked, resolve) = (name.clone(), self.resolve);
        let has_begun = Arc::<AtomicBool>::default();
        let begins = has_begun.clone();
        let job = move || {
            begins.store(true, Relaxed);
            resolve(&asked)
        };
        match scope.offload(job) {
            Ok(found) => {
                self.jobs.push(Job { name, found, waiters: vec![call], has_begun });
                true
            }
            // The pool is full. The caller is told now, because nothing would wake this machine
            // when the pool has room.
            Err(_) => {
                let _nobody_waits = call.answer(Err(ResolveError::Busy));
                false
            }
        }
    }
}

/// Looks up a name. Blocks: runs on another thread.
fn resolve_blocking(name: &str) -> io::Result<Vec<IpAddr>> {
    let found = match name.parse::<IpAddr>() {
        Ok(address) => vec![address],
        // A port is required; it is discarded.
        Err(_) => (name, 0).to_socket_addrs()?.map(|address| address.ip()).collect(),
    };
    if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
}

impl<C> Machine for SystemResolver<C> {
    type Context = C;
    type Seed = Infallible;

    fn wakeup(mut self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.deliver_finished();
        let (mut is_closed, mut budget) = (false, LOOKUPS_PER_EVENT);
        let mut in_flight: usize = self.jobs.iter().map(|job| job.waiters.len()).sum();
        // A lookup that ends makes room, and wakes this machine.
        while self.jobs.len() < JOBS_MAX && in_flight < self.lookups_max {
            if budget == 0 {
                // There may be more; the other machines get their turn first.
                scope.wake_self();
                break;
            }
            budget -= 1;
            match self.calls.try_receive() {
                Ok(call) => in_flight += usize::from(self.start_lookup(call, scope)),
                Err(error) => {
                    is_closed = error == ReceiveError::Closed;
                    break;
                }
            }
        }
        let is_last_of_drain = self.is_draining && self.calls.is_empty();
        let is_over = in_flight == 0 && (is_closed || is_last_of_drain);
        if is_over { Response::done() } else { Response::ok(self) }
    }

    fn draining(mut self, _: Time, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        // Machines that are still at work may still ask.
        self.is_draining = !scope.wait_for_others();
        let nobody_waits =
            self.calls.is_empty() && self.jobs.iter().all(|job| job.waiters.is_empty());
        if self.is_draining && nobody_waits { Response::done() } else { Response::keep(self) }
    }
}

impl<C> fmt::Debug for SystemResolver<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemResolver").field("jobs", &self.jobs.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use rotor_core::{Config, Loop};

    use super::*;

    /// How many lookups have begun.
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    /// Whether lookups may end.
    static MAY_END: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    fn resolve_slowly(_: &str) -> io::Result<Vec<IpAddr>> {
        let may_end = MAY_END.0.lock().expect("no panic");
        BEGUN.fetch_add(1, Relaxed);
        MAY_END.1.notify_all();
        drop(MAY_END.1.wait_while(may_end, |may_end| !*may_end).expect("no panic"));
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }

    /// Otherwise a name that the system looks up slowly would occupy one thread after the other,
    /// as often as its callers lose patience and ask again.
    #[test]
    fn a_name_asked_for_again_after_a_cancellation_occupies_no_second_thread() {
        let mut creator = Loop::<SystemResolver<()>>::new(&Config::new()).expect("a loop");
        let made = creator.add_part(
            |resolver| SystemResolver { resolve: resolve_slowly, ..resolver },
            |scope| Ok(SystemResolver::new(16, scope)),
        );
        let addresses = made.expect("a slot is free");
        let mut instance = creator.instantiate(());
        let mut ask = || {
            let asked = addresses.ask_from_thread("slow.example".into()).expect("there is room");
            instance.turn(Some(Duration::ZERO)).expect("nothing goes wrong");
            asked
        };
        let cancelled = ask();
        let state = MAY_END.0.lock().expect("no panic");
        let begun = |_: &mut bool| BEGUN.load(Relaxed) == 0;
        drop(MAY_END.1.wait_while(state, begun).expect("no panic"));
        drop(cancelled);
        let awaited = ask();
        *MAY_END.0.lock().expect("no panic") = true;
        MAY_END.1.notify_all();
        drop(addresses);
        instance.run().expect("it runs until the resolver ends");
        assert!(awaited.wait().expect("an answer").is_ok());
        assert_eq!(BEGUN.load(Relaxed), 1);
    }
}
