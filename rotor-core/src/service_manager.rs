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
//! | `READY=1` | by `attend`, and by [`ready`](ServiceManager::ready) |
//! | `WATCHDOG=1` | twice in each `WATCHDOG_USEC`, as long as all loops make turns |
//! | `STOPPING=1`, `EXTEND_TIMEOUT_USEC=` | when the loops are asked to end, unless a successor has the listeners: then the service goes on |
//! | `RELOADING=1`, `MONOTONIC_USEC=` | by [`reloading`](ServiceManager::reloading): when a successor is about to be started |
//! | `MAINPID=`, `READY=1` | by [`ready_as_successor`](ServiceManager::ready_as_successor) |
//!
//! `doc/decisions/0062` says why no existing crate is used for this.

use std::env;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process;
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
#[doc(alias = "sd_notify")]
#[doc(alias = "NOTIFY_SOCKET")]
pub struct ServiceManager {
    socket: UnixDatagram,
    /// The time within which the manager expects watchdog messages.
    watchdog: Option<Duration>,
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
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_for_this_process && *micros > 0);
        let manager = ServiceManager::at(Path::new(&path))?;
        Ok(Some(manager.watchdog(watchdog.map(Duration::from_micros))))
    }

    /// Connects to the manager at a path. A path that begins with `@` stands for a name in the
    /// abstract namespace, which is not in the file system (unix(7)).
    ///
    /// # Errors
    ///
    /// Nothing listens at that path, or no descriptor is left.
    pub fn at(path: impl AsRef<Path>) -> io::Result<ServiceManager> {
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address(path.as_ref().as_os_str())?)?;
        // A manager that does not read must not hold up the sender.
        socket.set_nonblocking(true)?;
        Ok(ServiceManager { socket, watchdog: None })
    }

    /// Sets the time within which the manager expects watchdog messages. Default: the value of
    /// `WATCHDOG_USEC`, or none.
    #[must_use]
    pub fn watchdog(mut self, within: Option<Duration>) -> ServiceManager {
        self.watchdog = within;
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

    /// Tells the manager that a successor is about to be started, or that the service reads its
    /// configuration again. [`ready`](ServiceManager::ready) ends this state. For
    /// `Type=notify-reload`.
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
    /// sent, that is logged.
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
            // By the thread, so that the manager is told only if there is one.
            let sent = self.ready();
            let is_sent = sent.is_ok();
            // The caller is still waiting for this.
            let _is_awaited = ready_sender.send(sent);
            if !is_sent {
                return;
            }
            let mut watch =
                AttendState { is_stopping: false, next_watchdog_message: Duration::ZERO };
            let clock = Clock::new();
            let started = clock.now();
            let pause = self.watchdog.map_or(CHECK_INTERVAL, |time| CHECK_INTERVAL.min(time / 4));
            loop {
                let now = clock.now();
                if let Err(error) = watch.check(&self, &loops, &pulses, drain, (now, now - started))
                {
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
    is_stopping: bool,
    /// When the next watchdog message is due, since the thread began.
    next_watchdog_message: Duration,
}

impl AttendState {
    fn check(
        &mut self,
        manager: &ServiceManager,
        loops: &GroupHandle,
        pulses: &Pulses,
        drain: Drain,
        (now, passed): (Time, Duration),
    ) -> io::Result<()> {
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
mod tests {
    use rotor_test_kit::Directory;

    use super::*;
    use crate::{Config, Infallible, Loop, LoopInstance, Machine};

    struct Idle;

    impl Machine for Idle {
        type Context = ();
        type Seed = Infallible;
    }

    /// The test's own manager, and a loop for it to attend.
    struct Fixture {
        receiver: UnixDatagram,
        manager: ServiceManager,
        instance: LoopInstance<Idle>,
        pulses: Pulses,
        watch: AttendState,
    }

    impl Fixture {
        fn new(watchdog: Option<Duration>) -> Fixture {
            let directory = Directory::create();
            let path = directory.join("notify");
            let receiver = UnixDatagram::bind(&path).expect("the path is free");
            receiver.set_nonblocking(true).expect("it can");
            let manager = ServiceManager::at(&path).expect("it listens").watchdog(watchdog);
            drop(directory);
            let mut instance =
                Loop::new(&Config::new()).expect("there are descriptors").instantiate(());
            let pulses = Pulses::new();
            pulses.watch(&mut instance);
            let watch = AttendState { is_stopping: false, next_watchdog_message: Duration::ZERO };
            Fixture { receiver, manager, instance, pulses, watch }
        }

        fn received(&self) -> String {
            let mut bytes = [0; 512];
            let len = self.receiver.recv(&mut bytes).unwrap_or(0);
            String::from_utf8_lossy(&bytes[..len]).into_owned()
        }

        /// The messages sent this long after the start.
        fn check(&mut self, passed: Duration) -> String {
            let loops = GroupHandle::from(self.instance.handle());
            let drain = Drain::new(Duration::from_secs(20)).announce(Duration::from_secs(5));
            let now = self.instance.now() + passed;
            let result =
                self.watch.check(&self.manager, &loops, &self.pulses, drain, (now, passed));
            result.expect("it can be told");
            self.received()
        }
    }

    #[test]
    fn watchdog_messages_are_sent_only_while_all_loops_make_turns() {
        let mut test = Fixture::new(Some(Duration::from_secs(2)));
        let ms = Duration::from_millis;
        assert_eq!(test.check(ms(0)), "WATCHDOG=1\n");
        assert_eq!(test.check(ms(999)), "", "half of it is often enough");
        assert_eq!(test.check(ms(1_000)), "WATCHDOG=1\n");
        assert_eq!(test.check(ms(2_400)), "WATCHDOG=1\n");
        // The loop has run no turn since the start.
        assert_eq!(test.check(ms(3_500)), "");
        assert_eq!(test.check(ms(60_000)), "");
    }

    #[test]
    fn without_a_watchdog_no_watchdog_message_is_sent() {
        let mut test = Fixture::new(None);
        assert_eq!(test.check(Duration::ZERO), "");
    }

    #[test]
    fn the_stopping_message_is_sent_once_with_the_drain_time() {
        let mut test = Fixture::new(None);
        assert_eq!(test.check(Duration::ZERO), "");
        test.instance.handle().drain(Duration::from_secs(1));
        assert_eq!(test.check(Duration::ZERO), "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\n");
        assert_eq!(test.check(Duration::ZERO), "");
    }

    #[test]
    fn a_message_that_does_not_fit_is_sent_again() {
        let mut test = Fixture::new(Some(Duration::from_secs(2)));
        while test.manager.status("it does not read").is_ok() {}
        test.instance.handle().drain(Duration::from_secs(1));
        let loops = GroupHandle::from(test.instance.handle());
        let drain = Drain::new(Duration::from_secs(25));
        let at = (test.instance.now(), Duration::ZERO);
        assert!(test.watch.check(&test.manager, &loops, &test.pulses, drain, at).is_err());
        while !test.received().is_empty() {}
        let sent = test.check(Duration::ZERO) + &test.received();
        assert_eq!(sent, "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000\nWATCHDOG=1\n");
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_process_with_a_successor_sends_no_stopping_message() {
        let mut test = Fixture::new(None);
        test.instance.handle().set_has_successor();
        test.instance.handle().drain(Duration::from_secs(1));
        assert_eq!(test.check(Duration::ZERO), "");
    }

    #[test]
    fn messages_have_the_documented_format() {
        let test = Fixture::new(None);
        let manager = &test.manager;
        manager.ready().expect("it can be told");
        assert_eq!(test.received(), "READY=1\n");
        manager.ready_as_successor().expect("it can be told");
        assert_eq!(test.received(), format!("MAINPID={}\nREADY=1\n", process::id()));
        manager.status("two\nlines").expect("it can be told");
        assert_eq!(test.received(), "STATUS=two lines\n");
        manager.reloading().expect("it can be told");
        let received = test.received();
        let micros = received.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("it says so");
        assert!(micros.trim_end().parse::<u64>().expect("a number") > 0);
    }

    #[test]
    fn the_thread_sends_ready_and_ends_on_request() {
        // The loop runs no turn in the meantime, which is accepted for half of this time.
        let test = Fixture::new(Some(Duration::from_secs(1_000)));
        let Fixture { receiver, manager, mut instance, pulses, .. } = test;
        receiver.set_nonblocking(false).expect("it can");
        receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("not zero");
        let drain = Drain::new(Duration::from_secs(1));
        let attendance = manager.attend(instance.handle(), pulses, drain).expect("a thread");
        let mut received = Vec::new();
        while received.last().is_none_or(|word: &String| !word.starts_with("STOPPING")) {
            let mut bytes = [0; 512];
            let len = match receiver.recv(&mut bytes) {
                // A process that was stopped and continued must repeat the call (signal(7)).
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                sent => sent.expect("it is told in time"),
            };
            received.push(String::from_utf8_lossy(&bytes[..len]).into_owned());
            if received.len() == 2 {
                instance.handle().drain(Duration::ZERO);
            }
        }
        assert_eq!(received[..2], ["READY=1\n", "WATCHDOG=1\n"]);
        attendance.end();
        instance.run().expect("it drains");
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_manager_with_an_abstract_name_is_found() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("rotor-notify-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("it is short");
        let receiver = UnixDatagram::bind_addr(&address).expect("it is free");
        let manager = ServiceManager::at(format!("@{name}")).expect("it listens");
        manager.ready().expect("it can be told");
        let mut bytes = [0; 16];
        assert_eq!(receiver.recv(&mut bytes).expect("it was told"), 8);
        drop(receiver);
        assert!(manager.ready().is_err(), "nobody listens any more");
    }
}
