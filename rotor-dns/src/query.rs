//! `Query`: one question, asked of the servers in turn until one answers; a machine of its own.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::net::{DatagramSocket, Net, StreamSocket};
use rotor_core::{Description, Response, Scope, Sender, Time};

use crate::chain::{CHAIN_MAX, least};
use crate::config::ResolverConfig;
use crate::counters::DnsCounters;
use crate::error::{LookupError, ServerFault};
use crate::message::{self, Decoded, Match, QueryMessage};
use crate::record::{Question, RecordSet};
use crate::resolv_conf::{ATTEMPTS_MAX, TIMEOUT_MAX};
use crate::result::QueryResult;
use crate::special::Special;
use crate::tcp::Tcp;
use crate::unguessable::{bind, query_message};

/// How many datagrams are taken before the other machines of the loop have their turn.
const DATAGRAMS_PER_EVENT: u32 = 32;
/// How many datagrams that answer nothing are passed over before TCP is used, where none can be
/// slipped in. Somebody who guesses has sent this many of 2^30 or more possible ones.
const FORGERIES_MAX: u32 = 32;
/// The longest datagram that a server may send; what is longer is cut, does not decode, and is its
/// fault.
const DATAGRAM_MAX: usize = 4096;

/// What a query is made from, by the resolver.
pub(crate) struct QuerySeed {
    pub(crate) question: Question,
    /// The servers, in the order in which they are to be asked.
    pub(crate) servers: Vec<SocketAddr>,
    /// Those of them that are known not to know EDNS.
    pub(crate) without_edns: BTreeSet<SocketAddr>,
    pub(crate) config: Arc<ResolverConfig>,
    pub(crate) counters: Arc<DnsCounters>,
    pub(crate) report: Report,
}

/// The one message from a query to its resolver. Dropped without one it says that there will be
/// none.
pub(crate) struct Report {
    question: Question,
    without_edns: Option<SocketAddr>,
    sender: Option<Sender<Reported>>,
}

pub(crate) struct Reported {
    pub(crate) question: Question,
    pub(crate) result: QueryResult,
    /// A server that has refused EDNS, and answered without it.
    pub(crate) without_edns: Option<SocketAddr>,
}

impl Report {
    pub(crate) fn new(question: Question, sender: Sender<Reported>) -> Report {
        Report { question, without_edns: None, sender: Some(sender) }
    }

    pub(crate) fn send(mut self, result: QueryResult) {
        self.give(result);
    }

    fn give(&mut self, result: QueryResult) {
        // The mailbox has room for one message of each query. If the resolver is gone, nobody is
        // left to tell.
        if let Some(sender) = self.sender.take() {
            let (question, without_edns) = (self.question.clone(), self.without_edns);
            let _ = sender.send(Reported { question, result, without_edns });
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.give(QueryResult::failed(LookupError::Lost));
    }
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
    /// What is asked now: the question, or the end of a chain that an answer left open.
    asked: Question,
    hops_left: usize,
    chain_ttl: Option<Duration>,
    /// How many times a server was asked.
    tries: usize,
    /// The servers that have said that they do not know EDNS, to this query.
    without_edns: BTreeSet<SocketAddr>,
    /// Those that have answered in other letters, and not over TCP since.
    change_case: BTreeSet<SocketAddr>,
    channel: Channel<N>,
    query: QueryMessage,
    until: Time,
    /// Why no try was of use, once one was not.
    failure: Option<LookupError>,
}

enum Channel<N: Net> {
    /// Between two tries.
    None,
    Udp {
        socket: N::Datagram,
        /// Kinds of socket that cannot be tied to a peer are used without.
        is_connected: bool,
        is_sent: bool,
        forgeries: u32,
    },
    Tcp(Tcp<N::Stream>),
}

/// What a step has come to.
enum Step {
    /// Waits for the server.
    Wait,
    /// Has more to do, when the others had their turn.
    Again,
    /// This try was of no use.
    Fail(LookupError),
    /// Ask the same server over TCP.
    UseTcp,
    /// Ask the same server without EDNS.
    WithoutEdns,
    /// Ask the same server for the end of the chain.
    Follow(Question),
    /// The question is answered, or nobody could.
    Done(QueryResult),
}

type Dgram<N> = <N as Net>::Datagram;

impl<N: Net> Query<N>
where
    N::Datagram: DatagramSocket<Address = SocketAddr>,
    N::Stream: StreamSocket<Target = SocketAddr>,
{
    pub(crate) fn begin<C>(seed: QuerySeed, scope: &Scope<'_, C>) -> Response<Query<N>> {
        let asked = seed.question.clone();
        let Some(query) = query_message(&asked, false, false, scope) else {
            seed.report
                .send(QueryResult::failed(LookupError::Name(crate::name::NameError::TooLong)));
            return Response::done();
        };
        let mut query = Query {
            asked,
            hops_left: CHAIN_MAX,
            chain_ttl: None,
            tries: 0,
            without_edns: BTreeSet::new(),
            change_case: BTreeSet::new(),
            channel: Channel::None,
            query,
            until: Time::NEVER,
            failure: None,
            seed,
        };
        let step = query.try_next(scope);
        query.run(step, scope)
    }

    pub(crate) fn ready<C, M>(mut self, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        let step = match &mut self.channel {
            // A late event of a socket that is closed by now.
            Channel::None => Step::Wait,
            Channel::Udp { .. } => self.datagrams(),
            Channel::Tcp(tcp) => match tcp.poll() {
                Ok(None) => Step::Wait,
                Ok(Some(message)) => self.tcp_message(&message),
                Err(_) => Step::Fail(self.at_fault(ServerFault::Closed)),
            },
        };
        self.run(step, scope)
    }

    pub(crate) fn timeout<C, M>(self, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        // A deadline that comes early is that of an earlier try.
        let step =
            if self.until <= scope.now() { Step::Fail(LookupError::Timeout) } else { Step::Wait };
        self.run(step, scope)
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

    /// How long a server has. The field is public, and `parse` alone keeps it within its range:
    /// without an end, each silent server would take one of the queries that there may be.
    fn patience(&self) -> Duration {
        self.seed.config.conf.timeout.min(TIMEOUT_MAX)
    }

    fn at_fault(&self, fault: ServerFault) -> LookupError {
        self.server().map_or(LookupError::NoServer, |server| LookupError::Server(server, fault))
    }

    /// Acts on a step until there is something to wait for.
    fn run<C, M>(mut self, mut step: Step, scope: &Scope<'_, C>) -> Response<Query<N>, M> {
        loop {
            step = match step {
                Step::Wait => {
                    let until = self.until;
                    return Response::ok(self).deadline(until);
                }
                Step::Again => {
                    let until = self.until;
                    return Response::again(self).deadline(until);
                }
                Step::Done(result) => {
                    self.seed.report.send(result);
                    return Response::done();
                }
                Step::UseTcp => {
                    DnsCounters::add(&self.seed.counters.tries_over_tcp);
                    self.open_tcp(scope)
                }
                Step::WithoutEdns => {
                    DnsCounters::add(&self.seed.counters.tries_without_edns);
                    self.without_edns.extend(self.server());
                    self.open(scope)
                }
                Step::Follow(end) => match Special::of(&end.name) {
                    // No server is asked for these, whoever leads to them.
                    Some(special) => {
                        let ttl = self.chain_ttl.unwrap_or_default();
                        let reply = special.reply(&self.seed.question.name, end, ttl);
                        Step::Done(QueryResult { reply, good_for: Some(ttl) })
                    }
                    None => {
                        self.asked = end;
                        self.open(scope)
                    }
                },
                Step::Fail(error) => {
                    self.note(error);
                    self.try_next(scope)
                }
            };
        }
    }

    /// Asks the next server, or the first one again for the next round; when all were asked as
    /// often as they may be, that is the end.
    fn try_next<C>(&mut self, scope: &Scope<'_, C>) -> Step {
        // Its socket is closed, so a late answer reaches nobody.
        self.channel = Channel::None;
        // The field is public, and `parse` alone keeps it within its range. Tries may fail one after
        // the other without a wait, so beyond all numbers they would be without end.
        let attempts = self.seed.config.conf.attempts.clamp(1, ATTEMPTS_MAX);
        if self.tries >= self.seed.servers.len() * attempts {
            // No server has failed if there was none to ask.
            let failure = self.failure.take().unwrap_or(LookupError::NoServer);
            return Step::Done(QueryResult::failed(failure));
        }
        self.tries += 1;
        DnsCounters::add(&self.seed.counters.tries);
        self.open(scope)
    }

    /// Keeps the failure that says most; of equal ones the last.
    fn note(&mut self, error: LookupError) {
        match self.server() {
            Some(server) => log::debug!("asking {server} for {:?}: {error}", self.asked),
            None => log::debug!("asking for {:?}: {error}", self.asked),
        }
        DnsCounters::add(self.seed.counters.of_failed_try(&error));
        // One server's word is worth more than that there is no way to another one.
        if self.failure.as_ref().is_none_or(|known| error.weight() >= known.weight()) {
            self.failure = Some(error);
        }
    }

    /// Asks the server whose turn it is, with a new id from a new port.
    fn open<C>(&mut self, scope: &Scope<'_, C>) -> Step {
        let config = &self.seed.config;
        let Some(server) = self.server() else { return Step::Fail(LookupError::NoServer) };
        let knows_edns =
            ![&self.seed.without_edns, &self.without_edns].iter().any(|it| it.contains(&server));
        let edns = config.conf.edns0 && knows_edns;
        // In an earlier round TCP was of no use either.
        let mixed_case = config.mixed_case && !self.change_case.contains(&server);
        // A new id and new letters for each try, so that what was seen of the last one is
        // worthless.
        let Some(query) = query_message(&self.asked, mixed_case, edns, scope) else {
            return Step::Fail(self.at_fault(ServerFault::Malformed));
        };
        self.query = query;
        // `options use-vc` of resolv.conf(5).
        if config.conf.tcp_only {
            return Step::UseTcp;
        }
        self.until = scope.now() + self.patience();
        match bind::<Dgram<N>, C>(server, scope) {
            Ok((socket, is_connected)) => {
                self.channel = Channel::Udp { socket, is_connected, is_sent: false, forgeries: 0 };
                self.send(server)
            }
            Err(error) => Step::Fail(LookupError::Network(Arc::new(error))),
        }
    }

    fn open_tcp<C>(&mut self, scope: &Scope<'_, C>) -> Step {
        let Some(server) = self.server() else { return Step::Fail(LookupError::NoServer) };
        // The time begins anew: datagrams may have used up all of the time before.
        self.until = scope.now() + self.patience();
        match Tcp::<N::Stream>::connect(server, self.query.bytes(), scope) {
            Ok(tcp) => {
                self.channel = Channel::Tcp(tcp);
                Step::Wait
            }
            Err(error) => Step::Fail(LookupError::Network(Arc::new(error))),
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
            // It is sent with the next event, which means that there is room.
            Err(error) if is_retry(&error) => Step::Wait,
            Err(error) => Step::Fail(self.datagrams_failed(error)),
        }
    }

    /// What a socket for datagrams says of the way to its server, or of this system.
    fn datagrams_failed(&self, error: io::Error) -> LookupError {
        match error.kind() {
            // By ICMP, which the system shows since the socket is tied to the server: no need to
            // wait.
            io::ErrorKind::ConnectionRefused => self.at_fault(ServerFault::PortClosed),
            _ => LookupError::Network(Arc::new(error)),
        }
    }

    /// Takes what has come, until it is the answer.
    fn datagrams(&mut self) -> Step {
        let Some(server) = self.server() else { return Step::Wait };
        if matches!(self.channel, Channel::Udp { is_sent: false, .. }) {
            let step = self.send(server);
            if !matches!(step, Step::Wait) {
                return step;
            }
        }
        let mut buffer = [0; DATAGRAM_MAX];
        for _ in 0..DATAGRAMS_PER_EVENT {
            let Channel::Udp { socket, forgeries, .. } = &mut self.channel else {
                return Step::Wait;
            };
            let (length, from) = match socket.receive_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Wait,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Step::Fail(self.datagrams_failed(error)),
            };
            let message = &buffer[..length];
            // What came between opening the socket and tying it to the server may be from anybody.
            let matched = if from == server { self.query.matches(message) } else { Match::No };
            match matched {
                Match::Exact => return self.decide(message),
                // A server that changes letters, or somebody who has guessed the rest: over TCP a
                // forger would have to guess the sequence numbers as well.
                Match::OtherCase => {
                    self.change_case.insert(server);
                    return Step::UseTcp;
                }
                // It could not even read the question. Who guesses the rest wins nothing: the same
                // is asked again, from another port.
                Match::NoQuestion if self.query.is_refused_for_edns(message) => {
                    return Step::WithoutEdns;
                }
                Match::NoQuestion | Match::No => {
                    *forgeries += 1;
                    DnsCounters::add(&self.seed.counters.strays);
                }
            }
            if *forgeries >= FORGERIES_MAX {
                log::warn!(
                    "{forgeries} datagrams that answer nothing came for a question to {server}: uses TCP"
                );
                return Step::UseTcp;
            }
        }
        // A flood gets its share of the loop and no more. No edge will come for what is left.
        Step::Again
    }

    fn tcp_message(&mut self, message: &[u8]) -> Step {
        let matched = self.query.matches(message);
        if let Some(server) = self.server().filter(|_| matched != Match::No) {
            // Its letters may change, since it has TCP.
            self.change_case.remove(&server);
        }
        match matched {
            // Nobody else can have sent it: the letters need not tell.
            Match::Exact | Match::OtherCase => self.decide(message),
            Match::NoQuestion if self.query.is_refused_for_edns(message) => Step::WithoutEdns,
            Match::NoQuestion | Match::No => Step::Fail(self.at_fault(ServerFault::OtherQuestion)),
        }
    }

    /// What an answer from the right place to the right question means.
    fn decide(&mut self, message: &[u8]) -> Step {
        let is_tcp = matches!(self.channel, Channel::Tcp(_));
        if self.query.is_refused_for_edns(message) {
            return Step::WithoutEdns;
        }
        let decoded = message::decode(&self.asked, message, self.hops_left);
        if decoded.is_ok() {
            // One that cannot read the plain question either says nothing of EDNS.
            self.seed.report.without_edns =
                self.server().filter(|server| self.without_edns.contains(server));
        }
        match decoded {
            Err(fault) => Step::Fail(self.at_fault(fault)),
            // RFC 7766 §5: there TCP carries all of it; asking again would bring the same.
            Ok(Decoded::Truncated) if is_tcp => Step::Fail(self.at_fault(ServerFault::Truncated)),
            Ok(Decoded::Truncated) => Step::UseTcp,
            Ok(Decoded::Found { end, data, ttl }) => {
                let ttl = self.chain_ttl.map_or(ttl, |chain| chain.min(ttl));
                let answer = RecordSet { name: end, data, ttl };
                Step::Done(QueryResult { reply: Ok(Arc::new(answer)), good_for: Some(ttl) })
            }
            Ok(Decoded::None { is_no_name, ttl }) => {
                let name = self.seed.question.name.clone();
                let error = if is_no_name {
                    LookupError::NoSuchName(name)
                } else {
                    LookupError::NoRecords(name)
                };
                let good_for = ttl.map(|ttl| self.chain_ttl.map_or(ttl, |chain| chain.min(ttl)));
                Step::Done(QueryResult { reply: Err(error), good_for })
            }
            // It is one chain, however many answers tell of its parts, so hops and time go on
            // counting.
            Ok(Decoded::Onward { end, hops, ttl }) => {
                self.hops_left -= hops;
                self.chain_ttl = least(self.chain_ttl, ttl);
                Step::Follow(Question { name: end, kind: self.asked.kind })
            }
        }
    }
}

fn is_retry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
