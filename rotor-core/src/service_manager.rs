//! Notifications to the service manager that started the process: systemd, or one that uses the
//! same protocol (sd_notify(3)).
//!
//! ```no_run
//! # use rotor_core as rotor;
//! use rotor::service_manager::ServiceManager;
//! use rotor::{Drain, Pulses};
//! # use rotor::threads::LoopGroup;
//! # fn serve(group: &LoopGroup, pulses: &Pulses) -> std::io::Result<()> {
//! use std::time::Duration;
//!
//! let drain = Drain::new(Duration::from_secs(30));
//! rotor::signals::drain_on_termination_with(group.handle(), drain)?;
//! if let Some(manager) = ServiceManager::from_env()? {
//!     manager.attend(group.handle(), pulses.clone(), drain)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | message | when |
//! |--|--|
//! | `READY=1` | by [`attend`](ServiceManager::attend), and by [`ready`](ServiceManager::ready) |
//! | `WATCHDOG=1` | twice in each `WATCHDOG_USEC`, as long as all loops make turns |
//! | `STOPPING=1`, `EXTEND_TIMEOUT_USEC=` | when the loops are asked to end, unless a successor has the listeners: then the service goes on |
//! | `RELOADING=1`, `MONOTONIC_USEC=` | by [`reloading`](ServiceManager::reloading): when a successor is about to be started |
//! | `MAINPID=`, `READY=1` | by a [hand-over](crate::hand_over::HandOver::service_manager) before the predecessor drains, by `attend` of a [successor](ServiceManager::successor), and by [`ready_as_successor`](ServiceManager::ready_as_successor) |
//!
//! `doc/decisions/0062` says why no existing crate is used for this.

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io;
use std::mem;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::clock::Clock;
use crate::drain::Drain;
use crate::guard::log_guarded;
use crate::pulses::Pulses;
use crate::threads::GroupHandle;
use crate::time::Time;

/// A connection to the service manager of this process.
///
/// A message is one datagram, which is sent at once or not at all. The manager does not answer.
/// Clones share the connection.
#[doc(alias = "sd_notify")]
#[doc(alias = "NOTIFY_SOCKET")]
#[derive(Clone)]
pub struct ServiceManager {
    socket: Arc<UnixDatagram>,
    /// The time within which the manager expects watchdog messages.
    watchdog: Option<Duration>,
    /// The same for another process, from whose environment this one has its own.
    watchdog_of_predecessor: Option<Duration>,
    is_successor: bool,
}

/// The time that is announced to the manager in addition to the length of the drain: for leaving
/// `main`.
const EXIT_TIME: Duration = Duration::from_secs(5);

/// How often the thread checks whether the loops are asked to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The smallest age of a loop's last pulse at which the loop counts as held up: two pulses, and a
/// little.
const PULSE_AGE_MIN: Duration = Duration::from_millis(2_500);

impl ServiceManager {
    /// Connects to the manager that the environment names (`NOTIFY_SOCKET`, `WATCHDOG_USEC`,
    /// `WATCHDOG_PID`). Returns `None` if it names none.
    ///
    /// The variables stay in the environment: code that starts other processes, such as a
    /// successor, decides what these get.
    ///
    /// # Errors
    ///
    /// Nothing listens on that socket, or no descriptor is left.
    pub fn from_env() -> io::Result<Option<ServiceManager>> {
        let Some(path) = env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let number = |name| env::var(name).ok()?.parse::<u64>().ok();
        let is_for_this_process =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process::id()));
        let within = number("WATCHDOG_USEC").filter(|micros| *micros > 0);
        let within = within.map(Duration::from_micros);
        let mut manager = ServiceManager::at(Path::new(&path))?;
        match is_for_this_process {
            true => manager.watchdog = within,
            false => manager.watchdog_of_predecessor = within,
        }
        Ok(Some(manager))
    }

    /// Connects to the manager at a path. A path that begins with `@` stands for a name in the
    /// abstract namespace, which is not in the file system (unix(7)).
    ///
    /// # Errors
    ///
    /// Nothing listens at that path, or no descriptor is left.
    pub fn at(path: impl AsRef<Path>) -> io::Result<ServiceManager> {
        let socket = UnixDatagram::unbound()?;
        let connected = address(path.as_ref().as_os_str()).and_then(|at| socket.connect_addr(&at));
        // Often returned from `main`, where the system's error alone says nothing.
        connected.map_err(|error| {
            let text = format!("cannot reach a service manager at {:?}: {error}", path.as_ref());
            io::Error::new(error.kind(), text)
        })?;
        // A manager that does not read must not hold up the sender.
        socket.set_nonblocking(true)?;
        Ok(ServiceManager {
            socket: Arc::new(socket),
            watchdog: None,
            watchdog_of_predecessor: None,
            is_successor: false,
        })
    }

    /// Sets the time within which the manager expects watchdog messages. Default: the value of
    /// `WATCHDOG_USEC`, or none.
    #[must_use]
    pub fn watchdog(mut self, within: Option<Duration>) -> ServiceManager {
        self.watchdog = within;
        self
    }

    /// Makes [`attend`](ServiceManager::attend) report this process as the successor of another one
    /// ([`ready_as_successor`](ServiceManager::ready_as_successor)).
    ///
    /// If the predecessor has started this process, the environment has the watchdog's time for the
    /// predecessor (`WATCHDOG_PID`). The manager goes on to expect the messages, now from this
    /// process, so that time is used.
    #[must_use]
    pub fn successor(mut self) -> ServiceManager {
        self.is_successor = true;
        self.watchdog = self.watchdog.or(self.watchdog_of_predecessor);
        self
    }

    /// Tells the manager that the service has started.
    ///
    /// # Errors
    ///
    /// For this and all following methods: the system's error. The manager has received nothing.
    pub fn ready(&self) -> io::Result<()> {
        self.send("READY=1\n")
    }

    /// Tells the manager that the service goes on in this process, which was started by its
    /// predecessor and not by the manager. The unit needs `NotifyAccess=all`.
    #[doc(alias = "MAINPID")]
    pub fn ready_as_successor(&self) -> io::Result<()> {
        self.send(&format!("MAINPID={}\nREADY=1\n", process::id()))
    }

    /// Does the same, and waits for up to `time` if the manager's queue is full.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn ready_as_successor_within(&self, time: Duration) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let clock = Clock::new();
        let until = clock.now() + time;
        loop {
            let left = until - clock.now();
            match self.ready_as_successor() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !left.is_zero() => {
                    // If this fails, the message is tried again nevertheless.
                    let has_room = &mut [PollFd::new(&self.socket, PollFlags::OUT)];
                    let _ignored = poll(has_room, Timespec::try_from(left).ok().as_ref());
                }
                sent => return sent,
            }
        }
    }

    /// Tells the manager that a successor is about to be started, or that the service reads its
    /// configuration again. [`ready`](ServiceManager::ready) ends this state: of the successor, or,
    /// if that fails, of this process. For `Type=notify-reload`.
    pub fn reloading(&self) -> io::Result<()> {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", Clock::since_start_micros()))
    }

    /// Tells the manager that the service is ending, and may take up to `within`.
    #[doc(alias = "EXTEND_TIMEOUT_USEC")]
    pub fn stopping(&self, within: Duration) -> io::Result<()> {
        let micros = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
        self.send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={micros}\n"))
    }

    /// Sends a watchdog message: the service works. [`attend`](ServiceManager::attend) does this by
    /// itself.
    #[doc(alias = "WATCHDOG")]
    #[doc(alias = "is_well")]
    pub fn notify_watchdog(&self) -> io::Result<()> {
        self.send("WATCHDOG=1\n")
    }

    /// Sends a status for people to read: one line. Line breaks in it are replaced by spaces.
    pub fn status(&self, line: &str) -> io::Result<()> {
        let mut message = String::from("STATUS=");
        let _never_fails = writeln!(message, "{}", line.replace(['\n', '\r'], " "));
        self.send(&message)
    }

    fn send(&self, message: &str) -> io::Result<()> {
        self.socket.send(message.as_bytes()).map(drop)
    }

    /// Tells the manager that the service has started, then keeps it informed until the loops have
    /// been asked to end. This uses a thread of its own.
    ///
    /// `drain` is how the loops end, from which the manager learns how long that may take. With a
    /// [watchdog](ServiceManager::watchdog), the manager gets watchdog messages as long as all
    /// loops that `pulses` watches make turns, also during a drain. If a loop is held up for longer
    /// than the watchdog's time, and for at least 2.5 s, the manager kills the process.
    ///
    /// # Errors
    ///
    /// The first message cannot be sent, or no thread can be started. If later messages cannot be
    /// sent, that is logged, once until a message is sent again. A message for which the manager's
    /// queue has no room is sent again.
    pub fn attend(
        self,
        loops: impl Into<GroupHandle>,
        pulses: Pulses,
        drain: Drain,
    ) -> io::Result<ServiceManagerThread> {
        let (alive, ended) = channel();
        let (ready_sender, ready) = channel();
        let loops = loops.into();
        // The thread has a sender itself, so that it goes on if the `ServiceManagerThread` is
        // dropped.
        let thread_alive = alive.clone();
        let attend = move || {
            let _end = thread_alive;
            let mut watch = AttendState::new();
            // By the thread, so that the manager is told only if there is one.
            let sent = watch.send_ready(&self);
            let is_possible = sent.is_ok();
            // The caller is still waiting for this.
            let _is_awaited = ready_sender.send(sent);
            if !is_possible {
                return;
            }
            let clock = Clock::new();
            let started = clock.now();
            let pause = self.watchdog.map_or(CHECK_INTERVAL, |time| CHECK_INTERVAL.min(time / 4));
            loop {
                let now = clock.now();
                let checked = watch.check(&self, &loops, &pulses, drain, (now, now - started));
                if let Some(error) = watch.first_failure(checked) {
                    log_guarded!(warn, "the service manager cannot be told: {error}");
                }
                // If a successor has the listeners, the successor keeps the manager informed.
                if loops.has_successor() {
                    return;
                }
                match ended.recv_timeout(pause.max(Duration::from_millis(1))) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = Builder::new().name("service-manager".into()).spawn(attend)?;
        ready.recv().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))?;
        Ok(ServiceManagerThread { end: alive, thread })
    }
}

/// The state of the thread.
struct AttendState {
    is_ready: bool,
    is_stopping: bool,
    /// Whether the last check has failed.
    is_failing: bool,
    /// When the next watchdog message is due, since the thread began.
    next_watchdog_message: Duration,
}

impl AttendState {
    fn new() -> AttendState {
        let next_watchdog_message = Duration::ZERO;
        AttendState {
            is_ready: false,
            is_stopping: false,
            is_failing: false,
            next_watchdog_message,
        }
    }

    /// Tells the manager that the service has started. If the manager's queue is full, because many
    /// services start, it is told with the next check.
    fn send_ready(&mut self, manager: &ServiceManager) -> io::Result<()> {
        let sent = match manager.is_successor {
            true => manager.ready_as_successor(),
            false => manager.ready(),
        };
        match sent {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => {
                sent?;
                self.is_ready = true;
            }
        }
        Ok(())
    }

    fn check(
        &mut self,
        manager: &ServiceManager,
        loops: &GroupHandle,
        pulses: &Pulses,
        drain: Drain,
        (now, passed): (Time, Duration),
    ) -> io::Result<()> {
        if !self.is_ready {
            self.send_ready(manager)?;
            // It comes before the other messages.
            if !self.is_ready {
                return Ok(());
            }
        }
        if !self.is_stopping && loops.is_ending() && !loops.has_successor() {
            // Set only after the message was sent: if the manager's queue was full, the message is
            // sent again next time.
            manager.stopping(drain.in_all().saturating_add(EXIT_TIME))?;
            self.is_stopping = true;
        }
        let Some(within) = manager.watchdog else { return Ok(()) };
        if passed < self.next_watchdog_message {
            return Ok(());
        }
        let age = (within / 2).max(PULSE_AGE_MIN);
        if pulses.stalled_loops(now, age).is_empty() {
            manager.notify_watchdog()?;
            // Half of the time, as sd_watchdog_enabled(3) advises.
            self.next_watchdog_message = passed + within / 2;
        }
        Ok(())
    }

    /// Returns the error of a check, unless the check before has failed, too: a manager that is gone
    /// would cause a message with each check.
    fn first_failure(&mut self, checked: io::Result<()>) -> Option<io::Error> {
        let error = checked.err();
        let has_failed_before = mem::replace(&mut self.is_failing, error.is_some());
        error.filter(|_| !has_failed_before)
    }
}

/// The thread that keeps the service manager informed. Dropping this changes nothing.
#[doc(alias = "Attendance")]
pub struct ServiceManagerThread {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl ServiceManagerThread {
    /// Ends the thread and waits for its end. The manager gets no more messages from it.
    pub fn end(self) {
        // The thread may have ended by itself, or panicked, which was reported then.
        let _is_there = self.end.send(());
        let _ended = self.thread.join();
    }
}

/// Returns the address of a socket from its path or abstract name.
fn address(path: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        if let Some(name) = path.as_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(path)
}

impl fmt::Debug for ServiceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceManager").field("watchdog", &self.watchdog).finish_non_exhaustive()
    }
}

impl fmt::Debug for ServiceManagerThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceManagerThread")
    }
}

#[cfg(test)]
mod tests;
