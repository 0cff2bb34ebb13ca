//! `StubResolver`: the machine behind the handle. It answers lookups from what is known, and has
//! the rest asked. (A stub, RFC 9499 §6, does not resolve names by itself, but asks servers that
//! do.)

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rotor_core::{Calls, Description, Mailbox, Port, ReceiveError, Scope, Sender, Time};
use rotor_stream::{HostName, ResolveResult};

use crate::cache::{Cache, TTL_MAX};
use crate::config::ResolverConfig;
use crate::counters::DnsCounters;
use crate::dns::Dns;
use crate::error::LookupError;
use crate::lookup::{Lookup, LookupId, Search, SearchStep, resolve_error};
use crate::name::{Name, check_host};
use crate::query::{QuerySeed, Report, Reported};
use crate::questions::Questions;
use crate::record::{Kind, Question};
use crate::result::LookupResult;
use crate::special::Special;
use crate::without_edns::WithoutEdns;

/// How many lookups of each kind are started before the other machines of the loop get their turn.
const LOOKUPS_PER_EVENT: usize = 64;

pub(crate) struct StubResolver {
    config: Arc<ResolverConfig>,
    counters: Arc<DnsCounters>,
    records: Calls<Question, LookupResult>,
    hosts: Calls<HostName, ResolveResult>,
    reports: Mailbox<Reported>,
    reporter: Sender<Reported>,
    cache: Cache,
    // Sorted, like all maps here: the order of a hash map differs from run to run, in a simulation
    // as well.
    lookups: BTreeMap<LookupId, Lookup>,
    last_id: LookupId,
    /// The deadlines of the lookups, in order.
    deadlines: BTreeSet<(Time, LookupId)>,
    questions: Questions,
    without_edns: WithoutEdns,
    queries: usize,
    /// How many queries were started. With `rotate` it selects the first server.
    begun: usize,
    pub(crate) is_draining: bool,
}

/// What is known about a host without asking a server.
enum Known {
    Addresses(Arc<[IpAddr]>),
    /// The host has no addresses, or the text is not a name.
    Error(LookupError),
    /// Nothing is known: these names have to be looked up.
    Search(Search),
}

impl StubResolver {
    pub(crate) fn new<C>(config: ResolverConfig, scope: &Scope<'_, C>) -> (Dns, StubResolver) {
        let (records, record_calls) = scope.create_service(config.lookups_max);
        let (addresses, hosts) = scope.create_service(config.lookups_max);
        // Each query sends one message, so the mailbox is never full.
        let (reporter, reports) = scope.create_mailbox(config.queries_max);
        let counters = Arc::<DnsCounters>::default();
        let stub = StubResolver {
            counters: counters.clone(),
            cache: Cache::new(config.cache_bytes_max),
            config: Arc::new(config),
            records: record_calls,
            hosts,
            reports,
            reporter,
            lookups: BTreeMap::new(),
            last_id: 0,
            deadlines: BTreeSet::new(),
            questions: Questions::default(),
            without_edns: WithoutEdns::default(),
            queries: 0,
            begun: 0,
            is_draining: false,
        };
        (Dns { records, addresses, counters }, stub)
    }

    /// Returns whether nobody waits, and either nobody can ask any more or the loop ends.
    pub(crate) fn is_over(&mut self, is_closed: bool) -> bool {
        self.lookups.is_empty() && (self.is_draining || is_closed)
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| *time)
    }

    /// Handles every cause of a wake-up. Returns whether no handle is left.
    pub(crate) fn wakeup<C>(&mut self, scope: &mut Scope<'_, C>) -> bool {
        let now = scope.now();
        // Part 0 is the resolver itself, not a lookup.
        scope.woken_parts().for_each(|id| self.drop_if_cancelled(id));
        // Before new lookups, because these reports end some lookups and so make room for others.
        while let Some(Reported { question, result, without_edns }) = self.reports.receive() {
            self.queries = self.queries.saturating_sub(1);
            if let Some(server) = without_edns {
                self.without_edns.note(server, now);
            }
            let (reply, good_for) = (&result.reply, result.good_for);
            match (good_for, reply) {
                (Some(good_for), _) => {
                    self.cache.keep(question.clone(), reply.clone(), good_for, now)
                }
                (None, Err(error)) => self.cache.keep_failure(question.clone(), error.clone(), now),
                (None, Ok(_)) => {}
            }
            self.replied(&question, reply, now);
        }
        self.receive(scope)
    }

    fn receive<C>(&mut self, scope: &mut Scope<'_, C>) -> bool {
        let mut closed = [false; 2];
        for _ in 0..LOOKUPS_PER_EVENT {
            if self.lookups.len() >= self.config.lookups_max {
                return false; // a lookup that ends makes room, and then this is called again
            }
            let (record, host) = (self.records.try_receive(), self.hosts.try_receive());
            closed = [is_closed(&record), is_closed(&host)];
            if record.is_err() && host.is_err() {
                return closed == [true; 2];
            }
            if let Ok(call) = record {
                let (question, port) = call.into_parts();
                self.begin_records(question, port, scope);
            }
            if let Ok(call) = host {
                let (host, port) = call.into_parts();
                self.begin_addresses(&host, port, scope);
            }
        }
        // There may be more; the other machines get their turn first.
        scope.notifier().wakeup();
        closed == [true; 2]
    }

    /// Ends the lookups whose time is over.
    pub(crate) fn timeout(&mut self, now: Time) {
        while let Some((time, id)) =
            self.deadlines.first().copied().filter(|(time, _)| *time <= now)
        {
            self.deadlines.remove(&(time, id));
            match self.lookups.remove(&id) {
                Some(Lookup::Records { question, port, until }) if until <= now => {
                    self.questions.forget(&question, id);
                    self.set_records(port, Err(LookupError::Timeout));
                }
                Some(Lookup::Addresses { search, port, until }) if until <= now => {
                    self.forget_name(search.name(), id);
                    let too_late = || resolve_error(LookupError::Timeout);
                    self.set_addresses(port, search.found_in_time().ok_or_else(too_late));
                }
                // There is time left: this was the delay for the other family (RFC 8305 §3).
                Some(Lookup::Addresses { search, port, until }) => {
                    self.advance(id, search, port, until, now)
                }
                Some(lookup) => self.keep(id, lookup),
                None => {}
            }
        }
    }

    fn begin_records<C>(
        &mut self,
        question: Question,
        port: Port<LookupResult>,
        scope: &mut Scope<'_, C>,
    ) {
        let (id, now) = (self.next_id(), scope.now());
        let known = Special::of(&question.name)
            .map(|special| special.reply(&question.name, question.clone(), TTL_MAX));
        match known.or_else(|| self.ask(&question, id, now)) {
            Some(reply) => self.set_records(port, reply),
            None => {
                let until = now + self.config.lookup_timeout;
                self.keep(id, Lookup::Records { question, port, until });
                self.hear_of_its_end(id, scope);
            }
        }
    }

    fn begin_addresses<C>(
        &mut self,
        host: &HostName,
        port: Port<ResolveResult>,
        scope: &mut Scope<'_, C>,
    ) {
        let mut search = match self.known(host) {
            Known::Search(search) => search,
            Known::Addresses(addresses) => return self.set_addresses(port, Ok(addresses)),
            Known::Error(error) => return self.set_addresses(port, Err(resolve_error(error))),
        };
        let (id, now) = (self.next_id(), scope.now());
        self.ask_both(id, &mut search, now);
        self.advance(id, search, port, now + self.config.lookup_timeout, now);
        self.hear_of_its_end(id, scope);
    }

    /// Has the resolver woken for this lookup alone if it is cancelled while it waits, so that no
    /// walk over all lookups is needed.
    fn hear_of_its_end<C>(&mut self, id: LookupId, scope: &mut Scope<'_, C>) {
        if let Some(lookup) = self.lookups.get(&id) {
            lookup.on_cancel(scope.part(id).notifier());
            // It may have been cancelled before.
            self.drop_if_cancelled(id);
        }
    }

    /// Returns what is known without a server: addresses as text, this machine, the hosts file;
    /// otherwise the names to look up.
    fn known(&self, host: &str) -> Known {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Known::Addresses([address].into());
        }
        let (candidates, name) = match (self.config.conf.candidates(host), host.parse::<Name>()) {
            (Ok(candidates), Ok(name)) => (candidates, name),
            (Err(error), _) | (_, Err(error)) => return Known::Error(error.into()),
        };
        // The file has priority over the servers, as with `hosts: files dns` in nsswitch.conf(5).
        let in_file = self.config.hosts.addresses(&name);
        if !in_file.is_empty() {
            return Known::Addresses(in_file.into());
        }
        match Special::of(&name) {
            Some(Special::ThisMachine) => {
                let this_machine = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
                return Known::Addresses(this_machine.into());
            }
            Some(Special::Nowhere) => return Known::Error(LookupError::NoSuchName(name)),
            None => {}
        }
        if let Err(error) = check_host(host) {
            return Known::Error(error.into());
        }
        match Search::new(candidates) {
            Some(search) => Known::Search(search),
            None => Known::Error(LookupError::NoSuchName(name)),
        }
    }

    fn next_id(&mut self) -> LookupId {
        loop {
            // Numbers are used again in a resolver that lives for long; 0 is the resolver itself.
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.lookups.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    fn ask_both(&mut self, id: LookupId, search: &mut Search, now: Time) {
        // AAAA first (RFC 8305 §3).
        for kind in [Kind::Aaaa, Kind::A] {
            let question = Question { name: search.name().clone(), kind };
            if let Some(reply) = self.ask(&question, id, now) {
                search.note(&question, &reply, now);
            }
        }
    }

    /// Returns what is known; otherwise has the question asked for this lookup too.
    fn ask(&mut self, question: &Question, id: LookupId, now: Time) -> Option<LookupResult> {
        if let Some(reply) = self.cache.find(question, now) {
            DnsCounters::add(&self.counters.cached);
            return Some(reply.clone());
        }
        if self.questions.want(question, id) {
            DnsCounters::add(&self.counters.shared);
        }
        None
    }

    fn keep(&mut self, id: LookupId, lookup: Lookup) {
        self.deadlines.insert((lookup.deadline(), id));
        self.lookups.insert(id, lookup);
    }

    fn take(&mut self, id: LookupId) -> Option<Lookup> {
        let lookup = self.lookups.remove(&id)?;
        self.deadlines.remove(&(lookup.deadline(), id));
        Some(lookup)
    }

    /// Passes a reply to all lookups that wait for it.
    fn replied(&mut self, question: &Question, reply: &LookupResult, now: Time) {
        for id in self.questions.answered(question) {
            match self.take(id) {
                Some(Lookup::Records { port, .. }) => self.set_records(port, reply.clone()),
                Some(Lookup::Addresses { mut search, port, until }) => {
                    search.note(question, reply, now);
                    self.advance(id, search, port, until, now);
                }
                None => {}
            }
        }
    }

    fn advance(
        &mut self,
        id: LookupId,
        mut search: Search,
        port: Port<ResolveResult>,
        until: Time,
        now: Time,
    ) {
        loop {
            match search.next_step(now) {
                SearchStep::Wait => {
                    return self.keep(id, Lookup::Addresses { search, port, until });
                }
                SearchStep::Ask => self.ask_both(id, &mut search, now),
                SearchStep::Done(resolved) => {
                    self.forget_name(&search.name().clone(), id);
                    return self.set_addresses(port, resolved);
                }
            }
        }
    }

    fn drop_if_cancelled(&mut self, id: LookupId) {
        if !self.lookups.get(&id).is_some_and(Lookup::is_cancelled) {
            return;
        }
        DnsCounters::add(&self.counters.given_up);
        match self.take(id) {
            Some(Lookup::Records { question, .. }) => self.questions.forget(&question, id),
            Some(Lookup::Addresses { search, .. }) => self.forget_name(search.name(), id),
            None => {}
        }
    }

    fn forget_name(&mut self, name: &Name, id: LookupId) {
        // Of the current candidate: the questions for earlier ones have been answered.
        for kind in [Kind::Aaaa, Kind::A] {
            self.questions.forget(&Question { name: name.clone(), kind }, id);
        }
    }

    /// Returns the next query, if there is one and it may begin.
    pub(crate) fn next_query(&mut self, now: Time) -> Option<QuerySeed> {
        if self.queries >= self.config.queries_max {
            return None;
        }
        let question = self.questions.begin_next()?;
        let mut servers = self.config.servers.clone();
        // `rotate` (resolv.conf(5)) spreads the load: without it the second server gets only the
        // questions at which the first has failed.
        if self.config.conf.rotate && !servers.is_empty() {
            let first = self.begun % servers.len();
            servers.rotate_left(first);
        }
        self.queries += 1;
        DnsCounters::add(&self.counters.asked);
        self.begun = self.begun.wrapping_add(1);
        let report = Report::new(question.clone(), self.reporter.clone());
        let without_edns = self.without_edns.known(now);
        let (config, counters) = (self.config.clone(), self.counters.clone());
        Some(QuerySeed { question, servers, without_edns, config, counters, report })
    }

    /// Ends a lookup of records.
    fn set_records(&self, port: Port<LookupResult>, result: LookupResult) {
        let counter = self.counters.of_records(&result);
        self.count_end(counter, port.set(result).is_ok());
    }

    /// Ends a lookup of addresses.
    fn set_addresses(&self, port: Port<ResolveResult>, result: ResolveResult) {
        let counter = self.counters.of_addresses(&result);
        self.count_end(counter, port.set(result).is_ok());
    }

    fn count_end(&self, counter: &AtomicU64, has_waited: bool) {
        DnsCounters::add(if has_waited { counter } else { &self.counters.given_up });
    }

    pub(crate) fn describe(&self, to: &mut Description) {
        to.set_state(if self.lookups.is_empty() { "idle" } else { "looking up" });
        to.add_held(self.cache.held_bytes());
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.lookups.len(), self.queries, self.cache.len())
    }
}

fn is_closed<T>(received: &Result<T, ReceiveError>) -> bool {
    matches!(received, Err(ReceiveError::Closed))
}
