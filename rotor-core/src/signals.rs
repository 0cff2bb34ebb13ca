//! Ending well when the system asks: SIGINT and SIGTERM; doing what it asks besides: SIGHUP.

use std::io;
use std::thread::Builder;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::drain::Drain;
use crate::guard::{guard, log_guarded};
use crate::threads::GroupHandle;

/// Drains the loops, for at most `time`, when the process is asked to end (SIGINT or SIGTERM); a
/// second request stops them at once.
///
/// A third one ends the process as if there were no handler. It is for a process that hangs all the
/// same: in a handler that never returns, or in what it does after its loops.
///
/// A [`LoopHandle`](crate::LoopHandle) becomes a group of one. A small thread waits for the signals
/// as long as the process lives.
///
/// # Errors
///
/// When the system refuses the handlers, or has no thread or descriptor left.
#[doc(alias = "graceful shutdown")]
#[doc(alias = "SIGTERM")]
#[doc(alias = "SIGINT")]
#[doc(alias = "ctrl_c")]
pub fn drain_on_termination(loops: impl Into<GroupHandle>, time: Duration) -> io::Result<()> {
    drain_on_termination_with(loops, Drain::new(time))
}

/// Drains the loops in phases when the process is asked to end; the rest is as for
/// [`drain_on_termination`].
///
/// ```no_run
/// # use rotor_core as rotor;
/// # use rotor::Drain;
/// # use std::time::Duration;
/// # fn with(group: rotor::threads::GroupHandle) -> std::io::Result<()> {
/// // Under Kubernetes: for five seconds the endpoint is still found by those who look for it.
/// let drain = Drain::new(Duration::from_secs(20)).announce(Duration::from_secs(5));
/// rotor::signals::drain_on_termination_with(group, drain)
/// # }
/// ```
///
/// # Errors
///
/// As for [`drain_on_termination`].
#[doc(alias = "preStop")]
pub fn drain_on_termination_with(loops: impl Into<GroupHandle>, drain: Drain) -> io::Result<()> {
    let loops = loops.into();
    // Not in the thread: the caller is to hear of a refusal, and from here on no signal kills.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        for (number, signal) in signals.forever().enumerate() {
            match number {
                0 => {
                    log_guarded!(info, "asked to end: {drain:?}");
                    loops.drain_with(drain);
                }
                1 => loops.stop(),
                _ => {
                    // It comes back only if the system knows no such signal, and it has just sent
                    // it.
                    let _unknown = emulate_default_handler(signal);
                }
            }
        }
    };
    Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// Calls `f` at each SIGHUP, on a small thread that lives as long as the process: to open log files
/// again, or to read a configuration. A panic of `f` is logged, and it is called at the next one all
/// the same.
///
/// # Errors
///
/// As for [`drain_on_termination`].
#[doc(alias = "SIGHUP")]
#[doc(alias = "logrotate")]
pub fn on_hangup(f: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP])?;
    let wait = move || {
        for _ in signals.forever() {
            // Without the thread the process would hear no hangup any more: the handler stays.
            if let Err(panicked) = guard(&f) {
                log_guarded!(error, "the function of `on_hangup` {panicked}");
            }
        }
    };
    Builder::new().name("hangup".into()).spawn(wait).map(drop)
}
