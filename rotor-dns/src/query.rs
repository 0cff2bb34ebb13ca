//! `Query`: one question, which is sent to the servers in turn until one answers; a machine of its
//! own.

mod answering;

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::net::{DatagramSocket, Net, StreamSocket};
use rotor_core::{Description, Response, Scope, Time};

use crate::chain::CHAIN_MAX;
use crate::config::ResolverConfig;
use crate::counters::DnsCounters;
use crate::error::{LookupError, ServerFault};
use crate::message::QueryMessage;
use crate::query_link::QueryLink;
use crate::record::Question;
use crate::report::ReportSender;
use crate::resolv_conf::{ATTEMPTS_MAX, TIMEOUT_MAX};
use crate::result::QueryResult;
use crate::special::SpecialName;
use crate::tcp::{self, Culprit, Tcp};
use crate::unguessable::{bind_random_port, query_message};

/// How long a server has for an answer that nobody waits for, if another question needs the place of
/// the query. One second: what has not been answered by then seldom is, and an answer is still worth
/// caching.
const UNAWAITED_TIME: Duration = Duration::from_secs(1);

/// The seed of a query.
pub(crate) struct QuerySeed {
    pub(crate) question: Question,
    /// The servers, in the order in which they are to be asked.
    pub(crate) servers: Vec<SocketAddr>,
    /// The servers that are known not to support EDNS.
    pub(crate) without_edns: BTreeSet<SocketAddr>,
    pub(crate) config: Arc<ResolverConfig>,
    pub(crate) counters: Arc<DnsCounters>,
    pub(crate) link: Arc<QueryLink>,
    pub(crate) report: ReportSender,
}

/// ```text
///              ┌──── late, at fault: the next server, or the next round ────┐
///              ▼                                                            │
///  create ─▶ Udp ──truncated, forgeries──▶ Tcp ─────────────────────────────┤
///              └───────────┬────────────────┴──── an answer, none left ──▶ report, end
///                          ├── the chain leads on: asks the same server for its end
///                          └── it does not know EDNS: asks the same server without it, once
/// ```
pub(crate) struct Query<N: Net> {
    seed: QuerySeed,
    /// What is asked now: the question, or the end of a chain that an answer did not complete.
    current_question: Question,
    hops_left: usize,
    chain_ttl: Option<Duration>,
    /// How many times a server was asked.
    tries: usize,
    /// The servers that have told this query that they do not support EDNS.
    without_edns: BTreeSet<SocketAddr>,
    /// The servers that have answered in another case, and not over TCP since.
    case_changers: BTreeSet<SocketAddr>,
    channel: Channel<N>,
    query: QueryMessage,
    /// When the server was asked, by datagram or over TCP.
    asked_at: Time,
    deadline: Time,
    /// Whether it was told to make room. As long as nobody waits for it, its time does not start
    /// again.
    gives_way: bool,
    /// Why the tries so far have failed, if any has.
    failure: Option<LookupError>,
}

enum Channel<N: Net> {
    /// Between two tries.
    None,
    Udp {
        socket: N::Datagram,
        /// Some kinds of socket cannot be connected to a peer, and are used without.
        is_connected: bool,
        is_sent: bool,
        forgeries: u32,
    },
    Tcp(Tcp<N::Stream>),
}

/// The outcome of a step.
enum Step {
    /// Wait for the server.
    Wait,
    /// There is more to do once the other machines had their turn.
    Again,
    /// This try has failed.
    Fail(LookupError),
    /// Ask the same server over TCP.
    UseTcp,
    /// Ask the same server without EDNS.
    WithoutEdns,
    /// Ask the same server for the end of the chain.
    Follow(Question),
    /// End without an answer, because nobody waits for one.
    Abandon,
    /// The query is done: it has an answer, or all tries have failed.
    Done(QueryResult),
}

type Dgram<N> = <N as Net>::Datagram;

impl<N: Net> Query<N>
where
    N::Datagram: DatagramSocket<Address = SocketAddr>,
    N::Stream: StreamSocket<Target = SocketAddr>,
{
    pub(crate) fn start<C>(seed: QuerySeed, scope: &Scope<'_, C>) -> Response<Query<N>> {
        let current_question = seed.question.clone();
        let Some(query) = query_message(&current_question, false, false, scope) else {
            seed.report
                .send(QueryResult::failed(LookupError::Name(crate::name::NameError::TooLong)));
            return Response::done();
        };
        seed.link.query_began(scope.notifier());
        let mut query = Query {
            current_question,
            hops_left: CHAIN_MAX,
            chain_ttl: None,
            tries: 0,
            without_edns: BTreeSet::new(),
            case_changers: BTreeSet::new(),
            channel: Channel::None,
            query,
            asked_at: scope.now(),
            deadline: Time::NEVER,
            gives_way: false,
            failure: None,
            seed,
        };
        let step = query.try_next(scope);
        query.run(step, scope)
    }

    pub(crate) fn ready<C, M>(mut self, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        let step = match &mut self.channel {
            // A late event of a socket that has been closed.
            Channel::None => Step::Wait,
            Channel::Udp { .. } => self.receive_datagrams(scope.now()),
            Channel::Tcp(tcp) => match tcp.poll() {
                Ok(None) => Step::Wait,
                Ok(Some(message)) => self.handle_tcp_message(&message),
                Err(error) => Step::Fail(self.tcp_error(error)),
            },
        };
        self.run(step, scope)
    }

    pub(crate) fn timeout<C, M>(mut self, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        let (now, full_time) = (scope.now(), self.asked_at + self.server_timeout());
        // Somebody may have asked again after the query was told to make room.
        if self.is_awaited() {
            (self.deadline, self.gives_way) = (full_time, false);
        }
        let step = match self.deadline <= now {
            true if now < full_time => Step::Abandon,
            true => Step::Fail(LookupError::Timeout),
            // A deadline that comes early belongs to an earlier try.
            false => Step::Wait,
        };
        self.run(step, scope)
    }

    /// Handles a wake-up: the resolver has ended, so an answer is of no use, not even for the cache;
    /// or another question needs the place of a query that nobody waits for.
    pub(crate) fn wakeup<C, M>(mut self, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        if self.seed.report.is_resolver_gone() {
            return self.run(Step::Abandon, scope);
        }
        if !self.is_awaited() {
            self.deadline = self.deadline.min(self.asked_at + UNAWAITED_TIME);
            self.gives_way = true;
        }
        self.timeout(scope)
    }

    /// Returns whether any lookup waits for this query.
    pub(crate) fn is_awaited(&self) -> bool {
        self.seed.link.is_awaited()
    }

    pub(crate) fn describe(&self, to: &mut Description) {
        to.set_state(match self.channel {
            Channel::None => "between servers",
            Channel::Udp { .. } => "asking over UDP",
            Channel::Tcp(_) => "asking over TCP",
        });
        to.set_peer(self.server());
    }

    fn server(&self) -> Option<SocketAddr> {
        let servers = &self.seed.servers;
        let try_index = self.tries.checked_sub(1)?;
        servers.get(try_index % servers.len().max(1)).copied()
    }

    /// Returns how long a server has. The field is public, and only `parse` keeps it within its
    /// range. With no limit, each server that does not answer would occupy one of the `queries_max`
    /// queries.
    fn server_timeout(&self) -> Duration {
        self.seed.config.conf.timeout.min(TIMEOUT_MAX)
    }

    fn server_error(&self, fault: ServerFault) -> LookupError {
        self.server().map_or(LookupError::NoServer, |server| LookupError::Server(server, fault))
    }

    /// Follows steps until there is something to wait for.
    fn run<C, M>(mut self, mut step: Step, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        loop {
            step = match step {
                Step::Wait => {
                    let deadline = self.deadline;
                    return Response::ok(self).deadline(deadline);
                }
                Step::Again => {
                    let deadline = self.deadline;
                    return Response::again(self).deadline(deadline);
                }
                Step::Done(result) => {
                    self.seed.report.send(result);
                    return Response::done();
                }
                Step::UseTcp => {
                    DnsCounters::add(&self.seed.counters.tries_over_tcp);
                    self.ask_over_tcp(scope)
                }
                Step::WithoutEdns => {
                    DnsCounters::add(&self.seed.counters.tries_without_edns);
                    self.without_edns.extend(self.server());
                    self.ask_server(scope)
                }
                Step::Follow(end) => match SpecialName::classify(&end.name) {
                    // No server is asked about these names, even if a server's answer leads to
                    // them.
                    Some(special) => {
                        let ttl = self.chain_ttl.unwrap_or_default();
                        let reply = special.reply(&self.seed.question.name, end, ttl);
                        Step::Done(QueryResult { reply, valid_for: Some(ttl) })
                    }
                    None => {
                        self.current_question = end;
                        self.ask_server(scope)
                    }
                },
                Step::Fail(error) => {
                    self.record_failure(error);
                    // A query that has no try left has a result, even if the last lookup has just
                    // run out of time: that the servers have failed is to be cached (RFC 9520 §3.2).
                    match self.is_awaited() || !self.has_tries_left() {
                        true => self.try_next(scope),
                        // Its place is for a question that somebody waits for.
                        false => Step::Abandon,
                    }
                }
                Step::Abandon => {
                    self.seed.report.is_abandoned = true;
                    Step::Done(QueryResult::failed(LookupError::Lost))
                }
            };
        }
    }

    /// Asks the next server; after the last one, begins the next round with the first. Ends the
    /// query when all servers were asked as often as allowed.
    fn try_next<C>(&mut self, scope: &Scope<'_, C>) -> Step {
        // The socket is closed, so a late answer reaches nobody.
        self.channel = Channel::None;
        if !self.has_tries_left() {
            // No server has failed if there was none to ask.
            let failure = self.failure.take().unwrap_or(LookupError::NoServer);
            return Step::Done(QueryResult::failed(failure));
        }
        self.tries += 1;
        DnsCounters::add(&self.seed.counters.tries);
        self.ask_server(scope)
    }

    /// Returns whether any server may be asked once more.
    fn has_tries_left(&self) -> bool {
        // The field is public, and only `parse` keeps it within its range. Tries may fail one after
        // the other without a wait, so with a huge number of attempts the loop would practically
        // never end.
        let attempts = self.seed.config.conf.attempts.clamp(1, ATTEMPTS_MAX);
        self.tries < self.seed.servers.len() * attempts
    }

    /// Keeps the failure that says most; of equal ones the last.
    fn record_failure(&mut self, error: LookupError) {
        match self.server() {
            Some(server) => log::debug!("asking {server} for {:?}: {error}", self.current_question),
            None => log::debug!("asking for {:?}: {error}", self.current_question),
        }
        DnsCounters::add(self.seed.counters.for_failed_try(&error));
        // An error from one server says more than that there is no way to another one.
        if self.failure.as_ref().is_none_or(|known| error.weight() >= known.weight()) {
            self.failure = Some(error);
        }
    }

    /// Asks the server whose turn it is, with a new id from a new port.
    fn ask_server<C>(&mut self, scope: &Scope<'_, C>) -> Step {
        let config = &self.seed.config;
        let Some(server) = self.server() else { return Step::Fail(LookupError::NoServer) };
        let knows_edns =
            ![&self.seed.without_edns, &self.without_edns].iter().any(|it| it.contains(&server));
        let edns = config.conf.edns0 && knows_edns;
        // The server changed the case in an earlier round, and TCP failed as well.
        let mixed_case = config.mixed_case && !self.case_changers.contains(&server);
        // Each try has a new id and new letters, so what a forger has seen of the last try is
        // worthless.
        let Some(query) = query_message(&self.current_question, mixed_case, edns, scope) else {
            return Step::Fail(self.server_error(ServerFault::Malformed));
        };
        self.query = query;
        // `options use-vc` of resolv.conf(5).
        if config.conf.tcp_only {
            return Step::UseTcp;
        }
        self.start_clock(scope.now());
        match bind_random_port::<Dgram<N>, C>(server, scope) {
            Ok((socket, is_connected)) => {
                self.channel = Channel::Udp { socket, is_connected, is_sent: false, forgeries: 0 };
                self.send(server)
            }
            Err(error) => Step::Fail(LookupError::Network(Arc::new(error))),
        }
    }

    fn ask_over_tcp<C>(&mut self, scope: &Scope<'_, C>) -> Step {
        let Some(server) = self.server() else { return Step::Fail(LookupError::NoServer) };
        // The time starts again: the datagrams may have used all of it.
        self.start_clock(scope.now());
        match Tcp::<N::Stream>::connect(server, self.query.bytes(), scope) {
            Ok(tcp) => {
                self.channel = Channel::Tcp(tcp);
                Step::Wait
            }
            Err(error) => Step::Fail(self.tcp_error(error)),
        }
    }

    fn start_clock(&mut self, now: Time) {
        self.asked_at = now;
        if self.is_awaited() || !self.gives_way {
            self.deadline = now + self.server_timeout();
        }
    }

    fn send(&mut self, server: SocketAddr) -> Step {
        let Channel::Udp { socket, is_connected, is_sent, .. } = &mut self.channel else {
            return Step::Wait;
        };
        let query = self.query.bytes();
        match if *is_connected { socket.send(query) } else { socket.send_to(query, &server) } {
            Ok(_) => {
                *is_sent = true;
                Step::Wait
            }
            // The next event means that there is room, and then the query is sent.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Step::Wait,
            // A signal came first, and no event follows.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Step::Again,
            Err(error) => Step::Fail(self.datagram_error(error)),
        }
    }

    /// Interprets an error of a datagram socket: it is about the way to the server, or about this
    /// system.
    fn datagram_error(&self, error: io::Error) -> LookupError {
        match error.kind() {
            // An ICMP message, which the system reports because the socket is connected to the
            // server: no need to wait.
            io::ErrorKind::ConnectionRefused => self.server_error(ServerFault::PortClosed),
            _ => LookupError::Network(Arc::new(error)),
        }
    }

    /// Interprets an error of a TCP connection, in the same way.
    fn tcp_error(&self, error: io::Error) -> LookupError {
        match tcp::culprit(&error) {
            Culprit::Server => self.server_error(ServerFault::Closed),
            Culprit::Silence => LookupError::Timeout,
            Culprit::System => LookupError::Network(Arc::new(error)),
        }
    }
}
