//! `UringKind`: the kind of loop of io_uring, for code that makes the loops of a program.

use std::io;
use std::net::TcpListener;

use rotor_core::{Config, LoopKind, Scope};

use crate::backend::Uring;
use crate::choose::Choice;
use crate::config::UringConfig;
use crate::family::UringInet;
use crate::listener::UringTcpListener;
use crate::refused::RingUnavailable;

/// The kind of loop that waits with io_uring, for code that makes loops for a program, such as
/// `rotor::http::server::Serve::loop_kind`.
///
/// Each loop has a ring of its own, with the sizes of the [`UringConfig`]. If that has no
/// [pool](UringConfig::offload_pool), the pool of the loop's [`Config`](Config::offload_pool) is
/// used. The ring takes no more events at a time than the loop does ([`Config::events_max`]).
///
/// ```no_run
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Reply, Response, Scope, Serve};
/// use rotor_uring::{Choice, UringConfig, UringKind};
///
/// fn hello(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
///     response.reply(Status::OK, "text/plain", b"Hello, World!")
/// }
///
/// fn main() -> Result<(), rotor::BoxError> {
///     let serve = Serve::new("127.0.0.1:3000").threads(2);
///     match UringKind::chosen(Choice::from_env()?, &UringConfig::new()) {
///         Some(uring) => serve.loop_kind(uring).run_fn(hello, || ())?,
///         None => serve.run_fn(hello, || ())?,
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct UringKind(UringConfig);

impl UringKind {
    /// Returns the kind whose rings have these sizes. Whether the system allows them shows only
    /// when the first one is opened.
    pub fn new(config: &UringConfig) -> UringKind {
        UringKind(config.clone())
    }

    /// Returns the kind if it is [chosen](Choice::Uring) and the system provides a ring for this
    /// thread, which is closed again. If the system refuses, a warning is logged once: the program
    /// should then run on mio, as after [`choose`](crate::choose()).
    pub fn chosen(choice: Choice, config: &UringConfig) -> Option<UringKind> {
        if choice != Choice::Uring {
            return None;
        }
        let kind = UringKind::new(config);
        match kind.probe() {
            Ok(()) => Some(kind),
            Err(refused) => {
                refused.warn();
                None
            }
        }
    }

    /// Opens a ring with these sizes, and closes it.
    ///
    /// # Errors
    ///
    /// Why the system provides none, and what can be done about it.
    pub fn probe(&self) -> Result<(), RingUnavailable> {
        Uring::open(&self.0).map(drop)
    }

    /// Returns the sizes of the ring of a loop with this configuration.
    fn ring_config(&self, config: &Config) -> UringConfig {
        let UringKind(sizes) = self;
        let pool = sizes.pool.clone().unwrap_or_else(|| config.pool().clone());
        let events = sizes.events_max.min(config.events_len());
        sizes.clone().events_max(events).offload_pool(pool)
    }
}

impl LoopKind for UringKind {
    type Backend = Uring;
    type Net = UringInet;

    fn open(&self, config: &Config) -> io::Result<Uring> {
        Ok(Uring::open(&self.ring_config(config))?)
    }

    fn take_listener<C>(
        &self,
        listener: TcpListener,
        scope: &Scope<'_, C>,
    ) -> io::Result<UringTcpListener> {
        UringTcpListener::from_std(listener, scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rotor_core::OffloadPool;

    #[test]
    fn a_ring_takes_missing_settings_from_its_loop() {
        let pool_of = |jobs| OffloadPool::builder().jobs_max(jobs).build().expect("it is small");
        let is_of = |sizes: &UringConfig, jobs: &str| format!("{:?}", sizes.pool).contains(jobs);
        let config = Config::new().events_max(7).offload_pool(pool_of(71));
        let sizes = UringKind::new(&UringConfig::new()).ring_config(&config);
        assert_eq!(sizes.events_max, 7);
        assert!(is_of(&sizes, "71 jobs"), "{sizes:?}");
        let told = UringConfig::new().events_max(3).offload_pool(pool_of(31));
        let sizes = UringKind::new(&told).ring_config(&config);
        assert_eq!(sizes.events_max, 3);
        assert!(is_of(&sizes, "31 jobs"), "{sizes:?}");
    }
}
