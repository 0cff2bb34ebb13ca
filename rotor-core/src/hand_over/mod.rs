//! Passing listeners to a successor process, so that no connection is refused during a restart.
//!
//! The running process listens at a path. The next process connects there and gets copies of all
//! listeners, by name. It starts its loops and reports that it is ready. Then the first process
//! [drains](crate::Drain), with a [grace](crate::Grace::WholeDrain) as long as the drain, during
//! which the peers of its connections may send further requests. Clients notice nothing: the
//! listeners are never closed, and connections in their queues are served by whichever process
//! accepts them.
//!
//! ```no_run
//! # use rotor_core as rotor;
//! use rotor::hand_over::HandOver;
//! use rotor::net::{ListenOptions, TcpListener};
//! use rotor::threads::LoopGroup;
//! use std::time::Duration;
//! # use rotor::{BoxError, Config, Infallible, Loop, Machine, Response};
//! # struct Accepting(TcpListener);
//! # impl Machine for Accepting { type Context = (); type Seed = Infallible; }
//!
//! # fn main() -> Result<(), BoxError> {
//! // Connects to the running process, if there is one.
//! let mut hand_over = HandOver::at("/run/hello/hand-over")?;
//! let queues = hand_over.tcp("web", ([0, 0, 0, 0], 80).into(), &ListenOptions::new(), 4)?;
//! let group = LoopGroup::start(queues, |listeners, _| {
//!     let mut creator = Loop::new(&Config::new())?;
//!     for listener in listeners {
//!         creator.add_machine_with(|scope| Response::attempt(|| {
//!             Ok(Response::ok(Accepting(TcpListener::from_std(listener, scope)?)))
//!         }))?;
//!     }
//!     Ok(creator.instantiate(()))
//! })?;
//! rotor::signals::drain_on_termination(group.handle(), Duration::from_secs(30))?;
//! // This process serves, so the other one may end. Now this one waits for its own successor.
//! hand_over.ready(group.handle(), Duration::from_secs(60))?;
//! group.join();
//! # Ok(())
//! # }
//! ```
//!
//! # What is lost if something fails
//!
//! | | |
//! |--|--|
//! | the successor dies before it is ready | connections that its loops have accepted, if they run already: the predecessor goes on, with its own copies |
//! | it is not ready within [`ready_within`](HandOver::ready_within) | nothing, if it drains its loops: it is given up, and is told so when it reports that it is ready |
//! | two successors start at the same time | nothing: the second gets [`Busy`](HandOverErrorKind::Busy) |
//! | the socket of a process that was killed is at the path | nothing: the new process opens its listeners, and takes the path |
//! | the process at the other end belongs to another user | nothing: neither side speaks to the other |
//! | the path is too long, or has something else at it | nothing: nothing is changed |
//! | the other process violates the protocol | nothing: it is sent away |
//! | the successor dies before it has taken the path, or cannot take it | nothing: the predecessor goes on |
//! | the successor dies *after* it has taken the path | its connections, and those in the queues: the predecessor is draining already |
//!
//! If a process gets the listeners and does not serve, this is logged and
//! [counted](HandOver::rejected_successors).
//!
//! A successor with more loops than its predecessor opens further queues in [`tcp`](HandOver::tcp).
//! The system puts connections into these at once, and they wait until the loops run. If the
//! successor dies before, they are lost, as with any process that dies. So call `tcp` after
//! everything that takes long.
//!
//! # When no process runs
//!
//! If no process runs, the listeners are taken from the environment (`LISTEN_FDS`;
//! sd_listen_fds(3)): by the names in `LISTEN_FDNAMES` or, if there are no names, in the order of
//! the calls. Listeners that are missing there are opened. A socket that is there and was not
//! requested by the time of [`ready`](HandOver::ready) is logged.
//!
//! # The path
//!
//! The path has at most 96 bytes; its socket has mode 0600. While a process starts and none runs
//! yet, there is also a locked file, with `.lock` appended to the path, and a second process gets
//! [`Busy`](HandOverErrorKind::Busy). Put the path into a directory that no other user can write
//! to. Call `at` and `ready` as the same user: a process is identified by the user that it had when
//! it called `ready` (SO_PEERCRED, unix(7)). No other state is handed over: counters begin at zero,
//! and connections stay with their process.
//!
//! Linux only.

mod control;
mod error;
mod inherited;
mod names;
mod offer;
mod queues;
mod rejected_successors;
mod start_lock;
mod wire;

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

pub use self::control::PATH_BYTES_MAX;
use self::control::{ControlSocket, check_path, connect};
pub use self::error::{HandOverError, HandOverErrorKind};
use self::inherited::Inherited;
use self::offer::Offer;
pub use self::queues::TcpQueues;
pub use self::rejected_successors::RejectedSuccessors;
use self::start_lock::StartLock;
pub use self::wire::ANSWER_TIME;
use self::wire::{NamedSocket, SocketKind, receive_sockets, report_ready, report_taken};
use crate::net::{ListenError, ListenOptions, TcpListeners, listen_unix};
use crate::service_manager::ServiceManager;
use crate::threads::GroupHandle;

/// How long a successor may take between getting its copies and being ready, unless
/// [set](HandOver::ready_within): 60 s, enough to fill a cache first.
pub const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long the service manager's queue may be full before the hand-over goes on without it: 5 s.
/// A manager that reads its configuration again reads no messages meanwhile. The predecessor waits
/// twice as long.
const MANAGER_TIME: Duration = Duration::from_secs(5);

/// The listeners of a process that follows another one, or that will be followed by one.
///
/// See the [module](self).
#[must_use = "the process before this one drains at `ready`, and not before"]
pub struct HandOver {
    path: PathBuf,
    predecessor: Option<UnixStream>,
    /// Prevents other processes from opening the same listeners if there is no predecessor.
    start_lock: Option<StartLock>,
    /// The sockets that were handed over and not taken yet.
    received: Vec<NamedSocket>,
    inherited: Inherited,
    /// Copies of the sockets that were taken, for the next process.
    sockets: Vec<NamedSocket>,
    ready_within: Duration,
    rejected_successors: RejectedSuccessors,
    /// Told of this process before the predecessor may end.
    service_manager: Option<ServiceManager>,
    /// Loops that drain as well once a successor serves.
    side_loops: Vec<GroupHandle>,
}

impl HandOver {
    /// Gets the listeners of the process that serves at `path`. If no process serves there, looks
    /// for listeners in the environment.
    ///
    /// Call this once, and before any other code takes the listeners of the environment
    /// (`InheritedListeners` of rotor-stream). It waits at most 10 s for each answer of the other
    /// process.
    ///
    /// # Errors
    ///
    /// See [`HandOverErrorKind`]. After an error, the other process goes on as if nothing had
    /// happened.
    pub fn at(path: impl Into<PathBuf>) -> Result<HandOver, HandOverError> {
        let path = path.into();
        HandOver::open(&path).map_err(|kind| HandOverError::new(&path, kind))
    }

    fn open(path: &Path) -> Result<HandOver, HandOverErrorKind> {
        check_path(path)?;
        let mut predecessor = connect(path)?;
        let mut start_lock = None;
        if predecessor.is_none() {
            start_lock = Some(StartLock::acquire(path)?);
            // The process that had the lock before may serve by now.
            predecessor = connect(path)?;
            if predecessor.is_some() {
                start_lock = None;
            }
        }
        let received = predecessor.as_ref().map_or(Ok(Vec::new()), receive_sockets)?;
        // If a supervisor passes listeners to both processes, they are the same ones that the other
        // process has.
        let inherited = match predecessor {
            Some(_) => Inherited::unused_from_env(),
            None => Inherited::from_env(),
        };
        Ok(HandOver {
            path: path.to_owned(),
            predecessor,
            start_lock,
            received,
            inherited,
            sockets: Vec::new(),
            ready_within: READY_WITHIN,
            rejected_successors: RejectedSuccessors::default(),
            service_manager: None,
            side_loops: Vec::new(),
        })
    }

    /// Sets how long a successor of this process may take to be ready. After that it is given up,
    /// and another one can connect. Default: 60 s, enough to fill a cache first.
    pub fn ready_within(mut self, time: Duration) -> HandOver {
        self.ready_within = time;
        self
    }

    /// Returns the count of processes that got or requested the listeners of this process, once it
    /// is [ready](HandOver::ready), and did not follow it.
    #[doc(alias = "sent_away")]
    pub fn rejected_successors(&self) -> RejectedSuccessors {
        self.rejected_successors.clone()
    }

    /// Sets the count of processes that were sent away, for a program that shows the count before
    /// it calls [`at`](HandOver::at). Default: a new count.
    pub fn counting(mut self, rejected_successors: &RejectedSuccessors) -> HandOver {
        self.rejected_successors = rejected_successors.clone();
        self
    }

    /// Reports this process to the service manager as the one in which the service goes on
    /// ([`ready_as_successor`](ServiceManager::ready_as_successor)), if there is a predecessor.
    /// Default: nothing is reported.
    ///
    /// This is done by [`ready`](HandOver::ready), once nothing can fail any more and before the
    /// predecessor begins to drain. A predecessor without connections ends at once. If the manager
    /// saw its end before it knows of this process, it would take it for the end of the service,
    /// and kill this process. If the manager's queue is full, `ready` waits for up to 5 s.
    #[doc(alias = "MAINPID")]
    pub fn service_manager(mut self, manager: &ServiceManager) -> HandOver {
        self.service_manager = Some(manager.clone());
        self
    }

    /// Drains these loops too, once a successor serves: for ports beside the service, such as one
    /// for probes, whose listeners are handed over as well. Unlike the loops that are given to
    /// [`ready`](HandOver::ready), they may go on when the service drains for another reason.
    pub fn side_loops(mut self, loops: impl Into<GroupHandle>) -> HandOver {
        self.side_loops.push(loops.into());
        self
    }

    /// Returns whether another process has handed over its listeners.
    pub fn has_predecessor(&self) -> bool {
        self.predecessor.is_some()
    }

    /// Returns the listeners with this name, for `loops` loops: those of the other process or of
    /// the environment, whatever their address. If there are none, it opens `address`.
    ///
    /// The name is the program's own word for a service ("web", "admin"), of 1 to 255 bytes. An
    /// address would not identify it: with port 0 it is different each time.
    ///
    /// # Errors
    ///
    /// Fails with `InvalidInput` if the name was used before, is empty or too long, or belongs to
    /// another kind of socket. Otherwise returns the system's error: for example the address is in
    /// use or not an address of this machine, or no descriptor is left.
    pub fn tcp(
        &mut self,
        name: &str,
        address: SocketAddr,
        options: &ListenOptions,
        loops: usize,
    ) -> io::Result<TcpQueues> {
        self.check_name(name)?;
        self.inherited.check_name(name)?;
        // Copies, so that a second call after an error finds the same sockets again.
        let mut queues = self.tcp_copies(name)?;
        if queues.is_empty() {
            let (inherited, result) = self.inherited.tcp(name);
            let inherited = inherited.into_iter();
            self.received.extend(inherited.map(|one| NamedSocket::new(name, SocketKind::Tcp, one)));
            result?;
            queues = self.tcp_copies(name)?;
        }
        if queues.is_empty() {
            // Always shared, even for one loop: the next process may have more.
            queues = TcpListeners::bind(address, options, loops.max(1))?.collect();
        }
        let queues = TcpQueues::spread(queues, options, loops)?;
        let copies = queues
            .distinct_listeners()?
            .into_iter()
            .map(|listener| NamedSocket::copy(name, SocketKind::Tcp, listener))
            .collect::<io::Result<Vec<NamedSocket>>>()?;
        self.sockets.extend(copies);
        self.received.retain(|socket| socket.name != name);
        Ok(queues)
    }

    /// Returns the Unix listener with this name. If there is none, it opens `path`. For several
    /// loops, give a [clone](UnixListener::try_clone) to each.
    ///
    /// # Errors
    ///
    /// Fails as [`tcp`](HandOver::tcp) does. If the last process has ended without a successor, its
    /// socket is still at `path`, and the address is in use until somebody removes it: this program
    /// may, before this call, if it [has no predecessor](HandOver::has_predecessor) and got no
    /// listener from the environment.
    pub fn unix(
        &mut self,
        name: &str,
        path: &Path,
        options: &ListenOptions,
    ) -> io::Result<UnixListener> {
        self.check_name(name)?;
        self.inherited.check_name(name)?;
        let listener = match self.take_received(name, SocketKind::Unix)?.pop() {
            Some(received) => UnixListener::from(received),
            None => match self.inherited.unix(name)? {
                Some(inherited) => inherited,
                None => listen_unix(path, options)?,
            },
        };
        self.keep_copy(name, SocketKind::Unix, listener)
    }

    /// Returns the UDP socket with this name. If there is none, it opens `address`. While both
    /// processes have the socket, each datagram goes to one of them.
    ///
    /// # Errors
    ///
    /// Fails as [`tcp`](HandOver::tcp) does.
    pub fn udp(&mut self, name: &str, address: SocketAddr) -> io::Result<UdpSocket> {
        self.check_name(name)?;
        let socket = match self.take_received(name, SocketKind::Udp)?.pop() {
            Some(received) => UdpSocket::from(received),
            None => match self.inherited.udp(name)? {
                Some(inherited) => inherited,
                #[expect(clippy::disallowed_methods, reason = "there is no loop yet")]
                None => UdpSocket::bind(address).map_err(ListenError::on(&address))?,
            },
        };
        self.keep_copy(name, SocketKind::Udp, socket)
    }

    /// Reports that this process serves. Call it when all loops run.
    ///
    /// The other process begins to drain, for at most the `drain_time` that it passed to its own
    /// call of `ready`. From now on this process waits for its own successor, on a thread, and will
    /// then drain its `loops` for at most `drain_time`.
    ///
    /// When all loops drain for another reason (a signal), the copies of their listeners that were
    /// kept for a successor are closed, so that clients are refused instead of waiting in vain. If
    /// one loop is stuck in a handler, its own listener stays open, so the copies are kept: a
    /// successor can still serve the clients in all queues.
    ///
    /// # Errors
    ///
    /// See [`HandOverErrorKind`]. The loops are not changed: they serve, and the caller decides
    /// whether they go on. If not, drain them rather than stop them: they may have accepted
    /// connections already. The other process goes on as well, because it drains only once this one
    /// has taken the path. If the other process is [`Gone`](HandOverErrorKind::Gone), this is not
    /// an error here: then this process is the only one. [`NoPath`](HandOverErrorKind::NoPath)
    /// means that it is the only one and that no successor will find it: let it serve. After
    /// [`Silent`](HandOverErrorKind::Silent) and [`Nonsense`](HandOverErrorKind::Nonsense), the
    /// other process may be serving as well.
    pub fn ready(
        self,
        loops: impl Into<GroupHandle>,
        drain_time: Duration,
    ) -> Result<(), HandOverError> {
        let path = self.path.clone();
        self.take_over(loops.into(), drain_time).map_err(|kind| HandOverError::new(&path, kind))
    }

    fn take_over(self, loops: GroupHandle, drain_time: Duration) -> Result<(), HandOverErrorKind> {
        let HandOver {
            path,
            predecessor,
            start_lock,
            received,
            sockets,
            ready_within,
            rejected_successors,
            service_manager,
            inherited,
            side_loops,
        } = self;
        for NamedSocket { name, kind, .. } in &received {
            let kind = kind.name();
            log::warn!("{kind} {name:?} was handed over but not claimed: it is closed");
        }
        drop(received);
        inherited.report_rest(predecessor.is_none());
        // Everything that can fail, except taking the path, which is all that is left after the
        // `G`.
        let control = ControlSocket::bind_beside(&path)?;
        let refused = HandOverErrorKind::refused("make the sockets of the thread");
        let (draining, drain_markers) = UnixStream::pair().map_err(&refused)?;
        let drain_markers = loops.for_each_loop(|| drain_markers.try_clone()).map_err(&refused)?;
        let (offer_sender, offer_receiver) = mpsc::channel::<Offer>();
        Builder::new()
            .name("hand-over".into())
            .spawn(move || offer_receiver.recv().map_or((), Offer::run))
            .map_err(HandOverErrorKind::refused("start the thread that waits for a successor"))?;
        let mut predecessor_gone = predecessor.is_none();
        match predecessor.as_ref().map_or(Ok(()), report_ready) {
            Ok(()) => {}
            // The other process has ended by itself meanwhile, by a signal or a crash.
            Err(HandOverErrorKind::Gone) => predecessor_gone = true,
            Err(error) => return Err(error),
        }
        // If no process holds the path, another one may have become ready meanwhile.
        if predecessor_gone && connect(&path)?.is_some() {
            return Err(HandOverErrorKind::Busy);
        }
        match control.move_to(&path) {
            Ok(()) => {}
            Err(HandOverErrorKind::Refused { cause, .. })
                if predecessor_gone && start_lock.is_none() =>
            {
                return Err(HandOverErrorKind::NoPath(cause));
            }
            // The other process gets no `T`, and goes on.
            Err(error) => return Err(error),
        }
        drop(start_lock);
        if predecessor.is_some()
            && let Some(manager) = service_manager
            && let Err(error) = manager.ready_as_successor_within(MANAGER_TIME)
        {
            log::warn!("the service manager cannot be told of this process: {error}");
        }
        if let Some(Err(error)) =
            predecessor.filter(|_| !predecessor_gone).as_ref().map(report_taken)
        {
            log::warn!("the process before has gone, or serves as well: {error}: see that it ends");
        }
        loops.keep_until_draining(drain_markers);
        // The thread waits for this alone, so this cannot fail.
        let _ignored = offer_sender.send(Offer {
            path,
            control,
            sockets,
            loops,
            drain_time,
            ready_within,
            draining,
            rejected_successors,
            side_loops,
        });
        Ok(())
    }
}

impl fmt::Debug for HandOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOver")
            .field("path", &self.path)
            .field("has_predecessor", &self.has_predecessor())
            .field("sockets", &self.sockets.len())
            .finish_non_exhaustive()
    }
}
