//! Reactions to signals: a drain on SIGINT and SIGTERM, and a callback on SIGHUP.

use std::ffi::c_int;
use std::io;
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::drain::Drain;
use crate::guard::{guard, log_guarded};
use crate::threads::GroupHandle;

/// Drains the loops, for at most `time`, when the process is asked to end (SIGINT or SIGTERM). A
/// second signal stops them at once.
///
/// A third signal ends the process as if there were no handler. It is for a process that hangs
/// nevertheless: in a handler that never returns, or in what it does after its loops.
///
/// A [`LoopHandle`](crate::LoopHandle) becomes a group of one. A small thread waits for the signals
/// as long as the process lives.
///
/// # Errors
///
/// The system refuses the signal handlers, or no thread or descriptor is left. The signals then
/// have the effect that they had before.
#[doc(alias = "graceful shutdown")]
#[doc(alias = "SIGTERM")]
#[doc(alias = "SIGINT")]
#[doc(alias = "ctrl_c")]
pub fn drain_on_termination(loops: impl Into<GroupHandle>, time: Duration) -> io::Result<()> {
    drain_on_termination_with(loops, Drain::new(time))
}

/// Drains the loops in phases when the process is asked to end. Everything else is as for
/// [`drain_on_termination`].
///
/// ```no_run
/// # use rotor_core as rotor;
/// # use rotor::Drain;
/// # use std::time::Duration;
/// # fn with(group: rotor::threads::GroupHandle) -> std::io::Result<()> {
/// // Under Kubernetes, clients may still find the endpoint for five seconds.
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
    handle_signals("signals", [SIGINT, SIGTERM], move |mut signals| {
        for (number, signal) in signals.forever().enumerate() {
            match number {
                0 => {
                    log_guarded!(info, "asked to end: {drain:?}");
                    loops.drain_with(drain);
                }
                1 => loops.stop(),
                _ => {
                    // This returns only if the system does not know the signal, which it has just
                    // sent.
                    let _unknown = emulate_default_handler(signal);
                }
            }
        }
    })
}

/// Calls `f` at each SIGHUP, for example to reopen log files or to read a configuration. A small
/// thread, which lives as long as the process, waits for the signals. If `f` panics, that is
/// logged, and the next SIGHUP calls it again.
///
/// `f` runs on that thread. To change the context of a loop, it posts the change to the loop:
///
/// ```
/// # use rotor_core as rotor;
/// # use rotor::{LoopInstance, Machine, signals};
/// struct Context {
///     greeting: String,
/// }
///
/// # fn read_file() -> String { String::new() }
/// # fn set_up<M: Machine<Context = Context> + 'static>(instance: &LoopInstance<M>) -> std::io::Result<()> {
/// let broadcast = instance.broadcast();
/// signals::on_hangup(move || {
///     let greeting = read_file();
///     if broadcast.post(|_, scope| scope.greeting = greeting).is_err() {
///         log::warn!("the loop has ended, or too many changes wait for it");
///     }
/// })
/// # }
/// ```
///
/// # Errors
///
/// As for [`drain_on_termination`].
#[doc(alias = "SIGHUP")]
#[doc(alias = "logrotate")]
pub fn on_hangup(f: impl Fn() + Send + 'static) -> io::Result<()> {
    handle_signals("hangup", [SIGHUP], move |mut signals| {
        for _ in signals.forever() {
            // A panic must not end the thread: the signal handler stays installed, and SIGHUP would
            // be ignored from then on.
            if let Err(panicked) = guard(&f) {
                log_guarded!(error, "the function of `on_hangup` {panicked}");
            }
        }
    })
}

/// Handles signals on a thread of their own. Once this has returned without an error, they no
/// longer have their default effect, which is to end the process.
fn handle_signals<const N: usize>(
    thread_name: &str,
    signals: [c_int; N],
    wait: impl FnOnce(Signals) + Send + 'static,
) -> io::Result<()> {
    // The thread first: a handler cannot be undone. Without a thread, the signals would be ignored
    // from then on.
    let (sender, receiver) = mpsc::channel();
    let wait = move || receiver.recv().map_or((), wait);
    Builder::new().name(thread_name.to_owned()).spawn(wait)?;
    // Installed here and not in the thread, so that the caller gets the error.
    let signals = Signals::new(signals)?;
    // The thread waits for this alone, so this cannot fail.
    let _ignored = sender.send(signals);
    Ok(())
}
