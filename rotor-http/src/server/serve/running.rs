//! `Serve::run`: it opens the address, makes the loops, prints where it listens, and runs them.

use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};

use rotor_core::net::{Listener, ListenerLayer, Net};
use rotor_core::service_manager::{ServiceManager, ServiceManagerThread};
use rotor_core::threads::{GroupHandle, LoopGroup};
use rotor_core::{
    BoxError, Drain, EarlyScope, Exit, Loop, LoopInstance, LoopKind, Pulses,
    Response as MachineResponse, SpawnCause, SpawnError, signals,
};
use rotor_stream::Accept;

use super::super::connection::HttpSeed;
use super::super::handler::Server;
use super::super::listen::HttpAccept;
use super::super::opened::{OpenListeners, TakeOver, from_listener, open, open_first};
use super::Serve;
use crate::health::PortSource;

/// The listeners of a kind of loop.
type ListenerOf<K> = <<K as LoopKind>::Net as Net>::Listener;

/// Such listeners with a layer around them.
type Layered<K, L> = <L as ListenerLayer>::Over<ListenerOf<K>>;

/// A loop of this kind that serves.
type Listening<S, K, L> = LoopInstance<HttpAccept<S, Layered<K, L>>, <K as LoopKind>::Backend>;

impl<K: LoopKind, L: ListenerLayer> Serve<K, L> {
    pub(super) fn serve<S: Server + 'static>(
        mut self,
        parts: impl Fn() -> (S::Seed, S::Context) + Clone + Send + 'static,
    ) -> Result<(), BoxError> {
        let no_hand_over = self.settings.hand_over.path.is_none();
        if self.settings.listener.is_some() && !no_hand_over {
            return Err("a listener that was given is not handed over".into());
        }
        check_protocols(&self.layer.protocols(), cfg!(feature = "http2"))?;
        let addresses = self.addresses()?;
        // Before the address is opened, so that probes hear that the process is starting. In a
        // hand-over it is opened, or taken, with the other listeners.
        let port = self.settings.port.as_ref().filter(|_| no_hand_over);
        let _port = port
            .map(|port| port.open(&port.health, PortSource::Address(port.address)))
            .transpose()?;
        if let Some((_, pulses)) = &mut self.settings.attended {
            // Not those of a clone, which may run as well.
            *pulses = Pulses::new();
        }
        let health = self.settings.health.clone();
        let ended = match self.settings.threads {
            1 if no_hand_over => self.run_here::<S>(&addresses, parts),
            _ => self.run_group::<S>(&addresses, parts),
        };
        if let Some(health) = health {
            // Another server may be started with it.
            health.set_ready(false);
        }
        ended
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, BoxError> {
        // The system's message, "invalid socket address", does not say what is missing. And text
        // that cannot be a name (`:3000`, `http://..`) would be looked up as one.
        let malformed = || Err("it should be like 127.0.0.1:3000".into());
        let host = self.settings.address.rsplit_once(':').map_or("", |(host, _)| host);
        if host.is_empty() || !host.bytes().all(is_host_byte) {
            return malformed();
        }
        match self.settings.address.to_socket_addrs() {
            Ok(addresses) => Ok(addresses.collect()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => malformed(),
            Err(error) => Err(error.into()),
        }
    }

    fn run_here<S: Server + 'static>(
        mut self,
        addresses: &[SocketAddr],
        parts: impl Fn() -> (S::Seed, S::Context),
    ) -> Result<(), BoxError> {
        let mut bound = None;
        // Taken out, so that it does not stay open after the loop has closed its copy in a drain:
        // clients would wait in a queue from which nobody accepts.
        let given = self.settings.listener.take();
        let mut instance = self.build_loop::<S>(&parts, |scope| {
            let listener = match given {
                Some(given) => self.kind.take_listener(given.try_clone()?, scope)?,
                None => open_first(addresses, |address| {
                    Ok(ListenerOf::<K>::bind(address, &self.settings.listen, scope)?)
                })?,
            };
            bound = listener.local_address();
            Ok(vec![listener])
        })?;
        let address = bound.ok_or("the system does not say where it listens")?;
        // Before the line is printed, because its reader may ask the process to end at once.
        signals::drain_on_termination_with(instance.handle(), self.settings.drain)?;
        print_line(format_args!("listening on {}://{address}/", self.scheme()))?;
        let attending =
            attend(&self.settings.attended, instance.handle(), self.settings.drain, false);
        self.set_ready();
        let exit = instance.run();
        end_attending(attending);
        check_exit(&exit?)
    }

    fn run_group<S: Server + 'static>(
        self,
        addresses: &[SocketAddr],
        parts: impl Fn() -> (S::Seed, S::Context) + Clone + Send + 'static,
    ) -> Result<(), BoxError> {
        let (threads, drain, health) =
            (self.settings.threads, self.settings.drain, self.settings.health.clone());
        let attended = self.settings.attended.clone();
        let (scheme, hand_over) = (self.scheme(), &self.settings.hand_over);
        let may_have_predecessor = hand_over.path.is_some();
        let (opened, on_started) = match (hand_over.path.as_deref(), &self.settings.listener) {
            (Some(path), _) => {
                let take_over = TakeOver {
                    path,
                    name: scheme,
                    settings: hand_over,
                    addresses,
                    options: &self.settings.listen,
                    threads,
                    drain_time: drain.time(),
                    manager: attended.as_ref().map(|(manager, _)| manager),
                    port: self.settings.port.as_ref(),
                };
                take_over.run()?
            }
            (None, Some(given)) => from_listener(given, threads)?,
            (None, None) => open(addresses, &self.settings.listen, threads)?,
        };
        let OpenListeners { queues, address } = opened;
        let group = LoopGroup::start(queues, move |listeners, _| {
            self.build_loop::<S>(&parts, |scope| {
                let listen = |listener| Ok(self.kind.take_listener(listener, scope)?);
                listeners.into_iter().map(listen).collect()
            })
        })?;
        let started = signals::drain_on_termination_with(group.handle(), drain)
            .map_err(BoxError::from)
            .and_then(|()| {
                let with_threads = match threads {
                    1 => String::new(),
                    threads => format!(" with {threads} threads"),
                };
                Ok(print_line(format_args!("listening on {scheme}://{address}/{with_threads}"))?)
            })
            .and_then(|()| on_started(&group));
        if let (Ok(_), Some(health)) = (&started, &health) {
            health.set_ready(true);
        }
        let attending = match &started {
            Ok(started) => attend(&attended, group.handle(), drain, started.is_successor),
            Err(_) => None,
        };
        let port = match started {
            Ok(started) => started.port,
            Err(error) => {
                // If the group were only dropped, it would be told to stop, but not waited for.
                if may_have_predecessor {
                    // The other process goes on, but the requests that were accepted here from the
                    // common queues would be lost.
                    group.handle().drain(drain.time());
                } else {
                    group.handle().stop();
                }
                group.join();
                return Err(error);
            }
        };
        let ended = group.join();
        // Until now, probes were told that the process is about to end.
        drop(port);
        end_attending(attending);
        ended.into_iter().try_for_each(|ended| check_exit(&ended?))
    }

    /// Makes one loop with its listeners.
    fn build_loop<S: Server + 'static>(
        &self,
        parts: &impl Fn() -> (S::Seed, S::Context),
        open: impl FnOnce(&mut EarlyScope<'_>) -> Result<Vec<ListenerOf<K>>, BoxError>,
    ) -> Result<Listening<S, K, L>, BoxError> {
        // On the loop's own thread, so that neither has to be `Send`.
        let (seed, context) = parts();
        let seed = HttpSeed::new(seed, (self.settings.config)());
        let backend = self.kind.open(&self.settings.loop_config)?;
        let mut creator = Loop::with_backend(backend, &self.settings.loop_config)?;
        // Each listener has its own machine; all listeners are opened with the scope of the first
        // one.
        let mut listeners = Vec::new();
        creator
            .add_machine_with(|scope| {
                MachineResponse::attempt(|| {
                    listeners = open(scope)?;
                    let first = listeners.pop().ok_or("there is no listener for this loop")?;
                    Ok(self.listen(first, seed.clone(), scope))
                })
            })
            .map_err(spawn_error_cause)?;
        for listener in listeners {
            creator
                .add_machine_with(|scope| self.listen(listener, seed.clone(), scope))
                .map_err(spawn_error_cause)?;
        }
        let mut instance = creator.instantiate(context);
        if let Some(health) = &self.settings.health {
            health.watch(&mut instance);
        }
        if let Some((_, pulses)) = &self.settings.attended {
            pulses.watch(&mut instance);
        }
        Ok(instance)
    }

    /// Makes the machine of one listener, with the layer around it.
    fn listen<S: Server>(
        &self,
        listener: ListenerOf<K>,
        seed: HttpSeed<S>,
        scope: &mut EarlyScope<'_>,
    ) -> MachineResponse<HttpAccept<S, Layered<K, L>>> {
        Accept::listen(self.layer.over(listener), seed, self.settings.accept.clone(), scope)
    }

    /// Returns the scheme of the server's URLs.
    fn scheme(&self) -> &'static str {
        if self.layer.is_secure() { "https" } else { "http" }
    }

    fn set_ready(&self) {
        if let Some(health) = &self.settings.health {
            health.set_ready(true);
        }
    }
}

/// Tells the service manager that the server serves, and keeps it informed.
fn attend(
    attended: &Option<(ServiceManager, Pulses)>,
    loops: impl Into<GroupHandle>,
    drain: Drain,
    is_successor: bool,
) -> Option<ServiceManagerThread> {
    let (manager, pulses) = attended.clone()?;
    let manager = if is_successor { manager.successor() } else { manager };
    let attending = manager.attend(loops, pulses, drain);
    // The server serves. If the manager waits for this message, it is the one that ends it.
    attending.inspect_err(|error| log::error!("the service manager cannot be told: {error}")).ok()
}

fn end_attending(attending: Option<ServiceManagerThread>) {
    if let Some(attending) = attending {
        attending.end();
    }
}

/// Checks that the server speaks each protocol on which a handshake may agree.
pub(super) fn check_protocols(protocols: &[Vec<u8>], has_http2: bool) -> Result<(), BoxError> {
    let not_spoken = protocols.iter().find(|protocol| match &***protocol {
        b"h2" => !has_http2,
        b"http/1.1" | b"http/1.0" => false,
        _ => true,
    });
    let Some(protocol) = not_spoken else { return Ok(()) };
    let problem = match &**protocol {
        b"h2" => "needs the feature `http2`",
        _ => "is not spoken here: h2 and http/1.1 are",
    };
    Err(format!("clients may agree on {} (ALPN), which {problem}", protocol.escape_ascii()).into())
}

/// Returns whether a byte may occur in a name or a literal address, including IPv6 with a scope.
/// Bytes beyond ASCII are left to the system.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._:[]%".contains(&byte) || !byte.is_ascii()
}

/// Prints a line to the standard output. With port 0, this line is the only way for the program
/// that started this one to know the address.
fn print_line(line: fmt::Arguments<'_>) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    // Flushed even if the standard output is no terminal: a reader waits for this line.
    stdout.flush()
}

/// Returns the cause without the words about machines, which the user of a program need not know:
/// for example only that the address is in use.
fn spawn_error_cause<S: 'static>(error: SpawnError<S>) -> BoxError {
    match error.cause {
        SpawnCause::Failed(cause) => cause,
        cause => SpawnError::<()> { cause, seed: None }.into(),
    }
}

/// A loop that serves ends only when it is told to; any other end is an error.
fn check_exit(exit: &Exit) -> Result<(), BoxError> {
    match exit {
        Exit::Drained { .. } | Exit::Stopped => Ok(()),
        other => Err(format!("the loop ended by itself: {other:?}").into()),
    }
}
