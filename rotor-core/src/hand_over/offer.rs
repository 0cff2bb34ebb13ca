//! The thread that waits for a successor and passes the sockets to it.
//!
//! ```text
//!            connects             `R`               `T`
//!   Waiting ─────────▶ Offered ─────────▶ Followed ─────▶ end
//!      ▲                  │                   │
//!      └──────────────────┴───────────────────┘ gone, late, nonsense: all goes on
//!
//!   the loops begin to drain for another reason: the copies are dropped ──▶ end
//! ```

use std::io::{self, Write};
use std::mem;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::control::{ControlSocket, check_user};
use super::error::HandOverErrorKind as Kind;
use super::rejected_successors::RejectedSuccessors;
use super::wire::{
    GO, LATE, NamedSocket, READY, TAKEN, read_byte, send_busy, send_sockets, set_timeouts,
};
use crate::clock::Clock;
use crate::drain::{Drain, Grace};
use crate::guard::log_guarded;
use crate::threads::GroupHandle;
use crate::time::Time;

/// The state of the thread.
pub(super) struct Offer {
    pub(super) path: PathBuf,
    pub(super) control: ControlSocket,
    pub(super) sockets: Vec<NamedSocket>,
    pub(super) loops: GroupHandle,
    /// How long the drain takes at most once a successor serves.
    pub(super) drain_time: Duration,
    /// How long a successor may take until it serves.
    pub(super) ready_within: Duration,
    /// Becomes readable when the loops begin to drain, or are dropped.
    pub(super) draining: UnixStream,
    pub(super) rejected_successors: RejectedSuccessors,
    /// Loops that drain as well once a successor serves.
    pub(super) side_loops: Vec<GroupHandle>,
}

/// A process that has got copies and does not serve yet.
struct Successor {
    peer: UnixStream,
    until: Time,
}

/// How long nothing is accepted after accept has failed, usually because no descriptor was left. A
/// process that connects waits in the queue meanwhile, for up to 10 s. Without this pause `poll`
/// would report it again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Whether accepting failed the last time, and until when it pauses.
#[derive(Default)]
struct AcceptFailures {
    until: Option<Time>,
    /// Consecutive failures are logged once.
    is_logged: bool,
}

/// Which of the three sources is ready.
struct ReadySources {
    draining: bool,
    connects: bool,
    successor: bool,
}

impl Offer {
    /// Waits until a successor serves, or the loops drain.
    pub(super) fn run(mut self) {
        let clock = Clock::new();
        let mut successor: Option<Successor> = None;
        let mut accept_failures = AcceptFailures::default();
        loop {
            let ends = successor.as_ref().map(|successor| successor.until);
            let next = ends.into_iter().chain(accept_failures.until).min();
            let left = next.map(|next| next - clock.now());
            let ready = match wait_for_sources(
                &self,
                successor.as_ref(),
                accept_failures.until.is_none(),
                left,
            ) {
                Ok(ready) => ready,
                Err(error) => {
                    log_guarded!(error, "no hand-over any more: {error}");
                    // So that the successor does not take the end of the connection for the end of
                    // this process.
                    if let Some(given_up) = &successor {
                        let _ignored = (&given_up.peer).write_all(&[LATE]);
                    }
                    return self.withdraw();
                }
            };
            if ready.draining {
                return self.withdraw();
            }
            if ready.successor
                && let Some(offered) = successor.take()
            {
                if self.complete_hand_over(offered) {
                    return;
                }
                self.rejected_successors.add();
            }
            let now = clock.now();
            if let Some(late) = successor.take_if(|successor| successor.until <= now) {
                let time = self.ready_within;
                log_guarded!(warn, "a successor was not ready within {time:?}: it was given up");
                let _ignored = (&late.peer).write_all(&[LATE]);
                self.rejected_successors.add();
            }
            accept_failures.until.take_if(|until| *until <= now);
            if ready.connects {
                self.accept_successor(&mut successor, &mut accept_failures, &clock);
            }
        }
    }

    /// Ends without a successor, because the loops end: clients in the queues are refused instead
    /// of left waiting.
    fn withdraw(self) {
        // The path first, because a successor that sees the end takes it.
        self.control.remove_from(&self.path);
    }

    /// Takes the path back if a successor that is gone had taken it, so that the next one finds
    /// this process.
    fn retake_path(&mut self) {
        if self.control.is_at(&self.path) {
            return;
        }
        let retaken = ControlSocket::bind_beside(&self.path)
            .and_then(|control| control.move_to(&self.path).map(|()| control));
        match retaken {
            Ok(control) => self.control = control,
            Err(error) => log_guarded!(error, "no successor will find this process: {error}"),
        }
    }

    /// Sends the sockets to a process that connects, unless another one has them already.
    fn accept_successor(
        &self,
        successor: &mut Option<Successor>,
        accept_failures: &mut AcceptFailures,
        clock: &Clock,
    ) {
        let peer = match accept(&self.control.listener) {
            Ok(Some(peer)) => peer,
            Ok(None) => return,
            Err(error) => {
                if matches!(error, Kind::Refused { .. }) {
                    accept_failures.until = Some(clock.now() + ACCEPT_PAUSE);
                    if mem::replace(&mut accept_failures.is_logged, true) {
                        return;
                    }
                } else {
                    self.rejected_successors.add();
                }
                log_guarded!(warn, "a process that asked for the listeners gets none: {error}");
                return;
            }
        };
        *accept_failures = AcceptFailures::default();
        if successor.is_some() {
            log_guarded!(warn, "a second successor was sent away");
            let _ignored = send_busy(&peer);
            self.rejected_successors.add();
            return;
        }
        match send_sockets(&peer, &self.sockets) {
            Ok(()) => {
                let until = clock.now() + self.ready_within;
                *successor = Some(Successor { peer, until });
            }
            Err(error) => {
                log_guarded!(warn, "a successor has not taken the listeners: {error}");
                self.rejected_successors.add();
            }
        }
    }

    /// Returns whether the successor serves and this process drains.
    fn complete_hand_over(&mut self, successor: Successor) -> bool {
        let mut peer = &successor.peer;
        match read_byte(peer) {
            Ok(Some(READY)) => {}
            Ok(None) => {
                log_guarded!(warn, "a successor has gone before it served: all goes on");
                return false;
            }
            Ok(_) => {
                log_guarded!(warn, "a successor talks nonsense, and was sent away: all goes on");
                return false;
            }
            Err(error) => {
                log_guarded!(warn, "a successor has gone before it served: {error}: all goes on");
                return false;
            }
        }
        if peer.write_all(&[GO]).is_err() {
            log_guarded!(warn, "a successor has gone as it began to serve: all goes on");
            return false;
        }
        // Not before the successor has taken the path: otherwise a third process could find one
        // there that is ending, and open listeners of its own beside those that were handed over.
        // If the successor never takes the path, this process goes on.
        match read_byte(peer) {
            Ok(Some(TAKEN)) => {}
            // The successor has the path and is merely slow. It will find nobody to answer, but it
            // has everything that it needs.
            Err(error) if is_timeout(&error) && !self.control.is_at(&self.path) => {}
            _ => {
                log_guarded!(warn, "a successor has not taken the path: all goes on");
                self.retake_path();
                return false;
            }
        }
        log_guarded!(info, "a successor serves: draining for {:?} at most", self.drain_time);
        self.sockets.clear();
        // Before the loops drain, so that code that sees the drain knows its reason.
        self.loops.set_has_successor();
        // At once: the successor serves there, too.
        self.side_loops.iter().for_each(|loops| loops.drain(self.drain_time));
        self.loops.drain_with(Drain::new(self.drain_time).grace(Grace::WholeDrain));
        true
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn accept(listener: &UnixListener) -> Result<Option<UnixStream>, Kind> {
    let refused = Kind::refused("accept");
    let peer = match listener.accept() {
        Ok((peer, _)) => peer,
        Err(error)
            if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(refused(error)),
    };
    check_user(&peer)?;
    set_timeouts(&peer).map_err(refused)?;
    Ok(Some(peer))
}

/// Waits until one of the sources is ready, or the time is over.
fn wait_for_sources(
    offer: &Offer,
    successor: Option<&Successor>,
    accepts: bool,
    left: Option<Duration>,
) -> io::Result<ReadySources> {
    let connects = if accepts { PollFlags::IN } else { PollFlags::empty() };
    let mut sources = vec![
        PollFd::new(&offer.draining, PollFlags::IN),
        PollFd::new(&offer.control.listener, connects),
    ];
    if let Some(successor) = successor {
        sources.push(PollFd::new(&successor.peer, PollFlags::IN));
    }
    // One millisecond more, so that a wait does not end slightly too early and has to be repeated.
    let left = left.map(|left| left + Duration::from_millis(1));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut sources, left.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready = |index: usize| {
        sources.get(index).is_some_and(|source: &PollFd<'_>| !source.revents().is_empty())
    };
    Ok(ReadySources { draining: is_ready(0), connects: is_ready(1), successor: is_ready(2) })
}
