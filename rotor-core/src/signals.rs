//! Ending well when the system asks: SIGINT and SIGTERM.

use std::io;
use std::thread::Builder;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::threads::GroupHandle;

/// Drains the loops, for at most `time`, when the process is asked to end (SIGINT or SIGTERM); a second request stops
/// them at once.
///
/// A [`LoopHandle`](crate::LoopHandle) becomes a group of one. A small thread waits for the signals as long as the
/// process lives.
///
/// # Errors
///
/// When the system refuses the handlers, or has no thread or descriptor left.
pub fn drain_on_termination(loops: impl Into<GroupHandle>, time: Duration) -> io::Result<()> {
    let loops = loops.into();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let wait = move || {
        let mut asked = false;
        for _ in signals.forever() {
            if asked {
                loops.stop();
            } else {
                log::info!("asked to end: draining for {time:?} at most");
                loops.drain(time);
            }
            asked = true;
        }
    };
    Builder::new().name("signals".into()).spawn(wait).map(drop)
}
