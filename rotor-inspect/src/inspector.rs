//! `Inspector`: the loops to inspect, and the loop that serves the page.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use quick_error::quick_error;
use rotor_core::backend::Backend;
use rotor_core::net::{Either, ListenOptions, Listener, TcpListener, UnixListener};
use rotor_core::threads::{LoopGroup, StartError};
use rotor_core::{BoxError, Config, Loop, LoopInstance, Machine, Response, with_causes};
use rotor_http::server::{Counters, HttpAccept, HttpSeed, ServerConfig, listen};

use crate::failures::Failures;
use crate::inspected::Inspected;
use crate::page::Page;
use crate::socket_file::SocketFile;
use crate::watched::WatchedLoop;

/// The limit of machines on the inspector's own loop: its listener and 100 visitors.
const MACHINES_MAX: usize = 101;

/// The minimum length of a token in bytes, so that a random one cannot be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// The loops and servers to inspect, and the rules of access.
///
/// ```no_run
/// # use rotor_core as rotor;
/// use rotor::{Config, Infallible, Loop, Machine};
/// use rotor_inspect::Inspector;
///
/// # struct App;
/// # impl Machine for App { type Context = (); type Seed = Infallible; }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut instance = Loop::<App>::new(&Config::new())?.instantiate(());
/// let inspector = Inspector::new().watch("main", &instance).start("127.0.0.1:3621".parse()?)?;
/// println!("look at http://{}/", inspector.address().expect("a socket address"));
/// instance.run()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
#[derive(Default)]
pub struct Inspector {
    inspected: Inspected,
    has_token: bool,
    is_token_short: bool,
}

quick_error! {
    /// Why an inspector was not started. All errors except the last are the caller's mistakes.
    ///
    /// `Debug` shows the message with its causes, because `main` prints the error that it returns
    /// with `Debug`.
    #[non_exhaustive]
    pub enum InspectError {
        /// The address is not a loopback address, and there is no token, so anybody could see
        /// everything that the process does.
        Remote(address: SocketAddr) {
            display("{} can be reached from other machines, but no token is required", address)
        }
        /// The token is shorter than 16 bytes.
        Token {
            display("the token is shorter than {} bytes", TOKEN_BYTES_MIN)
        }
        /// Two watched loops have this name, so the second could not be selected.
        SameName(name: String) {
            display("two loops have the name {name:?}")
        }
        /// The inspector's loop could not be started; for example, the address is in use.
        Start(error: StartError) {
            display("the loop of the inspector could not start")
            source(error)
        }
    }
}

impl Inspector {
    /// Makes an inspector without loops.
    pub fn new() -> Inspector {
        Inspector::default()
    }

    /// Adds a loop. Two loops must not have the same name: [`InspectError::SameName`].
    pub fn watch<M: Machine + 'static, B: Backend>(
        mut self,
        name: impl Into<String>,
        instance: &LoopInstance<M, B>,
    ) -> Inspector {
        self.inspected.loops.push(WatchedLoop::new(name.into(), instance));
        self
    }

    /// Adds the counters of a server.
    pub fn server(mut self, name: impl Into<String>, counters: Arc<Counters>) -> Inspector {
        self.inspected.servers.push((name.into(), counters));
        self
    }

    /// Adds the latest failures.
    pub fn failures(mut self, failures: &Failures) -> Inspector {
        self.inspected.failures = Some(failures.clone());
        self
    }

    /// Sets whether visitors may wake, expire, drain and end machines, and drain loops. Default:
    /// no.
    ///
    /// The drain of a loop takes 60 s at most. If the loop is blocked, it begins once its handler
    /// returns.
    pub fn allow_changes(mut self, yes: bool) -> Inspector {
        self.inspected.access.allows_changes = yes;
        self
    }

    /// Requires a token of at least 16 bytes. A browser asks for it as the password of the user
    /// `rotor`. With a token, the page may be served on any address. The token is sent unencrypted,
    /// so put TLS in front of any address that is not a loopback address.
    pub fn token(mut self, token: &str) -> Inspector {
        self.inspected.access.set_token(token);
        self.has_token = true;
        self.is_token_short = token.len() < TOKEN_BYTES_MIN;
        self
    }

    /// Serves the page on a loopback address, or on any address if there is a
    /// [token](Inspector::token). The page is served by a loop of its own on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`InspectError`]. Nothing keeps running.
    pub fn start(self, address: SocketAddr) -> Result<Inspecting, InspectError> {
        if !self.has_token && !address.ip().is_loopback() {
            return Err(InspectError::Remote(address));
        }
        self.start_at(Either::A(address))
    }

    /// Serves the page on a Unix socket to which only this user can connect (mode 0600). The
    /// socket's file is removed when the inspector ends. An existing file at the path is not
    /// replaced, even if a killed process left it; remove it first. To query it:
    /// `curl --unix-socket PATH http://localhost/api/loops`.
    ///
    /// # Errors
    ///
    /// As for [`start`](Inspector::start).
    pub fn start_unix(self, path: impl Into<PathBuf>) -> Result<Inspecting, InspectError> {
        self.start_at(Either::B(path.into()))
    }

    fn start_at(self, at: Either<SocketAddr, PathBuf>) -> Result<Inspecting, InspectError> {
        if self.is_token_short {
            return Err(InspectError::Token);
        }
        let loops = &self.inspected.loops;
        for (number, watched) in loops.iter().enumerate() {
            if loops[..number].iter().any(|other| other.name == watched.name) {
                return Err(InspectError::SameName(watched.name.clone()));
            }
        }
        let inspected = Arc::new(self.inspected);
        let refused = inspected.refused.clone();
        let (sender, bound) = std::sync::mpsc::channel();
        let group = LoopGroup::start([(inspected, sender)], move |(inspected, sender), _| {
            let mut creator = Loop::<App>::new(&Config::new().machines_max(MACHINES_MAX))?;
            creator.add_machine_with(|scope| {
                Response::attempt(|| {
                    let options = ListenOptions::new().unix_mode(0o600);
                    let listener = AnyListener::bind(&at, &options, scope)?;
                    let socket_file = match &at {
                        Either::A(_) => None,
                        Either::B(path) => Some(SocketFile::new(path)?),
                    };
                    let _ignored = sender.send((listener.local_address(), socket_file));
                    Ok(listen(listener, HttpSeed::new(inspected, ServerConfig::new()), scope))
                })
            })?;
            Ok::<_, BoxError>(creator.instantiate(()))
        })
        .map_err(InspectError::Start)?;
        let (address, socket_file) = bound.try_recv().unwrap_or_default();
        Ok(Inspecting { group, address, refused, _socket_file: socket_file })
    }
}

type AnyListener = Either<TcpListener, UnixListener>;
type App = HttpAccept<Page, AnyListener>;

/// A running inspector. It ends when this value is dropped.
#[must_use = "dropping it ends it"]
pub struct Inspecting {
    group: LoopGroup,
    address: Option<SocketAddr>,
    refused: Arc<AtomicU64>,
    _socket_file: Option<SocketFile>,
}

impl Inspecting {
    /// Returns the address of the page; `None` for a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns how many requests were refused by the rules of access: for a host that is not
    /// allowed, from a page of another origin, without the token or the field that changes require,
    /// or for changes while these are not allowed. `/api/loops` shows this number too.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Ends the inspector.
    pub fn stop(self) {
        self.group.handle().stop();
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inspector({} loops)", self.inspected.loops.len())
    }
}

impl fmt::Debug for InspectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", with_causes(self))
    }
}

impl fmt::Debug for Inspecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspecting").field("address", &self.address).finish_non_exhaustive()
    }
}
