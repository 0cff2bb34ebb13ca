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
use crate::query::QuerySeed;
use crate::questions::Questions;
use crate::record::{Kind, Question};
use crate::report::{QueryReport, ReportSender};
use crate::result::LookupResult;
use crate::rotation::Rotation;
use crate::special::SpecialName;
use crate::without_edns::NonEdnsServers;

/// How many lookups of each kind are started before the other machines of the loop get their turn.
const LOOKUPS_PER_EVENT: usize = 64;

pub(crate) struct StubResolver {
    config: Arc<ResolverConfig>,
    counters: Arc<DnsCounters>,
    records: Calls<Question, LookupResult>,
    hosts: Calls<HostName, ResolveResult>,
    reports: Mailbox<QueryReport>,
    report_sender: Sender<QueryReport>,
    cache: Cache,
    // Sorted, like all maps here: the order of a hash map differs from run to run, in a simulation
    // as well.
    lookups: BTreeMap<LookupId, Lookup>,
    last_id: LookupId,
    /// The deadlines of the lookups, in order.
    deadlines: BTreeSet<(Time, LookupId)>,
    questions: Questions,
    without_edns: NonEdnsServers,
    queries: usize,
    /// Whether a lookup of a host is to be started next, not one of records.
    host_is_next: bool,
    rotation: Rotation,
    pub(crate) is_draining: bool,
}

/// What is known about a host without asking a server.
enum LocalResolution {
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
        let (report_sender, reports) = scope.create_mailbox(config.queries_max);
        let counters = Arc::<DnsCounters>::default();
        let stub = StubResolver {
            counters: counters.clone(),
            cache: Cache::new(config.cache_bytes_max),
            config: Arc::new(config),
            records: record_calls,
            hosts,
            reports,
            report_sender,
            lookups: BTreeMap::new(),
            last_id: 0,
            deadlines: BTreeSet::new(),
            questions: Questions::default(),
            without_edns: NonEdnsServers::default(),
            queries: 0,
            host_is_next: false,
            rotation: Rotation::default(),
            is_draining: false,
        };
        (Dns { records, addresses, counters }, stub)
    }

    /// Returns whether nobody waits, and either nobody can ask any more or the loop ends.
    pub(crate) fn is_finished(&mut self, is_closed: bool) -> bool {
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
        while let Some(report) = self.reports.receive() {
            let QueryReport { question, result, without_edns, is_abandoned } = report;
            self.queries = self.queries.saturating_sub(1);
            if let Some(server) = without_edns {
                self.without_edns.insert(server, now);
            }
            if is_abandoned {
                self.questions.query_abandoned(&question);
                continue;
            }
            let (reply, valid_for) = (&result.reply, result.valid_for);
            match (valid_for, reply) {
                (Some(valid_for), _) => {
                    self.cache.insert(question.clone(), reply.clone(), valid_for, now)
                }
                (None, Err(error)) => {
                    self.cache.insert_failure(question.clone(), error.clone(), now)
                }
                (None, Ok(_)) => {}
            }
            self.deliver_reply(&question, reply, now);
        }
        self.receive_calls(scope)
    }

    fn receive_calls<C>(&mut self, scope: &mut Scope<'_, C>) -> bool {
        // The last result of each kind; at the end neither service has a call.
        let mut empty = [None; 2];
        for _ in 0..2 * LOOKUPS_PER_EVENT {
            if self.lookups.len() >= self.config.lookups_max {
                return false; // a lookup that ends makes room, and then this is called again
            }
            // The kinds take turns, also if there is never room for more than one lookup.
            let is_host = self.host_is_next;
            self.host_is_next = !is_host;
            empty[usize::from(is_host)] = self.receive_call(is_host, scope).err();
            if let [Some(records), Some(hosts)] = empty {
                return [records, hosts] == [ReceiveError::Closed; 2];
            }
        }
        // There may be more; the other machines get their turn first.
        scope.notifier().wakeup();
        false
    }

    /// Starts the next lookup of one kind, if one waits in the service.
    fn receive_call<C>(
        &mut self,
        is_host: bool,
        scope: &mut Scope<'_, C>,
    ) -> Result<(), ReceiveError> {
        if is_host {
            let (host, port) = self.hosts.try_receive()?.into_parts();
            self.start_addresses_lookup(&host, port, scope);
        } else {
            let (question, port) = self.records.try_receive()?.into_parts();
            self.start_records_lookup(question, port, scope);
        }
        Ok(())
    }

    /// Ends the lookups whose time is over.
    pub(crate) fn timeout(&mut self, now: Time) {
        while let Some((time, id)) =
            self.deadlines.first().copied().filter(|(time, _)| *time <= now)
        {
            self.deadlines.remove(&(time, id));
            match self.lookups.remove(&id) {
                Some(Lookup::Records { question, port, deadline }) if deadline <= now => {
                    self.questions.remove_waiter(&question, id);
                    self.finish_records(port, Err(LookupError::Timeout));
                }
                Some(Lookup::Addresses { search, port, deadline }) if deadline <= now => {
                    self.forget_search(search.name(), id);
                    let too_late = || resolve_error(LookupError::Timeout);
                    self.finish_addresses(port, search.known_addresses().ok_or_else(too_late));
                }
                // There is time left: this was the delay for IPv6 addresses (RFC 8305 §3).
                Some(Lookup::Addresses { search, port, deadline }) => {
                    self.advance_search(id, search, port, deadline, now)
                }
                Some(lookup) => self.insert_lookup(id, lookup),
                None => {}
            }
        }
    }

    fn start_records_lookup<C>(
        &mut self,
        question: Question,
        port: Port<LookupResult>,
        scope: &mut Scope<'_, C>,
    ) {
        let (id, now) = (self.next_id(), scope.now());
        match self.known_or_ask(&question, id, now) {
            Some(reply) => self.finish_records(port, reply),
            None => {
                let deadline = now + self.config.lookup_timeout;
                self.insert_lookup(id, Lookup::Records { question, port, deadline });
                self.watch_cancellation(id, scope);
            }
        }
    }

    fn start_addresses_lookup<C>(
        &mut self,
        host: &HostName,
        port: Port<ResolveResult>,
        scope: &mut Scope<'_, C>,
    ) {
        let mut search = match self.resolve_locally(host) {
            LocalResolution::Search(search) => search,
            LocalResolution::Addresses(addresses) => {
                return self.finish_addresses(port, Ok(addresses));
            }
            LocalResolution::Error(error) => {
                return self.finish_addresses(port, Err(resolve_error(error)));
            }
        };
        let (id, now) = (self.next_id(), scope.now());
        self.ask_both_families(id, &mut search, now);
        self.advance_search(id, search, port, now + self.config.lookup_timeout, now);
        self.watch_cancellation(id, scope);
    }

    /// Has the resolver woken for this lookup alone if it is cancelled while it waits, so that no
    /// walk over all lookups is needed.
    fn watch_cancellation<C>(&mut self, id: LookupId, scope: &mut Scope<'_, C>) {
        if let Some(lookup) = self.lookups.get(&id) {
            lookup.on_cancel(scope.part(id).notifier());
            // It may have been cancelled before.
            self.drop_if_cancelled(id);
        }
    }

    /// Returns what is known without a server: addresses as text, this machine, the hosts file;
    /// otherwise the names to look up.
    fn resolve_locally(&self, host: &str) -> LocalResolution {
        if let Ok(address) = host.parse::<IpAddr>() {
            return LocalResolution::Addresses([address].into());
        }
        let (candidates, name) = match (self.config.conf.candidates(host), host.parse::<Name>()) {
            (Ok(candidates), Ok(name)) => (candidates, name),
            (Err(error), _) | (_, Err(error)) => return LocalResolution::Error(error.into()),
        };
        // The file has priority over the servers, as with `hosts: files dns` in nsswitch.conf(5).
        let in_file = self.config.hosts.addresses(&name);
        if !in_file.is_empty() {
            return LocalResolution::Addresses(in_file.into());
        }
        match SpecialName::classify(&name) {
            Some(SpecialName::Localhost) => {
                let this_machine = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
                return LocalResolution::Addresses(this_machine.into());
            }
            Some(SpecialName::NonExistent) => {
                return LocalResolution::Error(LookupError::NoSuchName(name));
            }
            None => {}
        }
        if let Err(error) = check_host(host) {
            return LocalResolution::Error(error.into());
        }
        match Search::new(name.clone(), candidates) {
            Some(search) => LocalResolution::Search(search),
            None => LocalResolution::Error(LookupError::NoSuchName(name)),
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

    fn ask_both_families(&mut self, id: LookupId, search: &mut Search, now: Time) {
        // AAAA first (RFC 8305 §3).
        for kind in [Kind::Aaaa, Kind::A] {
            let question = Question { name: search.name().clone(), kind };
            if let Some(reply) = self.known_or_ask(&question, id, now) {
                search.record_reply(&question, &reply, now);
            }
        }
    }

    /// Returns what is known; otherwise has the question asked for this lookup too.
    fn known_or_ask(
        &mut self,
        question: &Question,
        id: LookupId,
        now: Time,
    ) -> Option<LookupResult> {
        // A search list, too, may lead to such a name.
        if let Some(special) = SpecialName::classify(&question.name) {
            return Some(special.reply(&question.name, question.clone(), TTL_MAX));
        }
        if let Some(reply) = self.cache.find(question, now) {
            DnsCounters::add(&self.counters.cached);
            return Some(reply.clone());
        }
        if self.questions.add_waiter(question, id) {
            DnsCounters::add(&self.counters.shared);
        }
        None
    }

    fn insert_lookup(&mut self, id: LookupId, lookup: Lookup) {
        self.deadlines.insert((lookup.deadline(), id));
        self.lookups.insert(id, lookup);
    }

    fn remove_lookup(&mut self, id: LookupId) -> Option<Lookup> {
        let lookup = self.lookups.remove(&id)?;
        self.deadlines.remove(&(lookup.deadline(), id));
        Some(lookup)
    }

    /// Passes a reply to all lookups that wait for it.
    fn deliver_reply(&mut self, question: &Question, reply: &LookupResult, now: Time) {
        for id in self.questions.take_waiters(question) {
            match self.remove_lookup(id) {
                Some(Lookup::Records { port, .. }) => self.finish_records(port, reply.clone()),
                Some(Lookup::Addresses { mut search, port, deadline }) => {
                    search.record_reply(question, reply, now);
                    self.advance_search(id, search, port, deadline, now);
                }
                None => {}
            }
        }
    }

    fn advance_search(
        &mut self,
        id: LookupId,
        mut search: Search,
        port: Port<ResolveResult>,
        deadline: Time,
        now: Time,
    ) {
        loop {
            match search.next_step(now) {
                SearchStep::Wait => {
                    return self.insert_lookup(id, Lookup::Addresses { search, port, deadline });
                }
                SearchStep::Ask => self.ask_both_families(id, &mut search, now),
                SearchStep::Done(resolved) => {
                    self.forget_search(&search.name().clone(), id);
                    return self.finish_addresses(port, resolved);
                }
            }
        }
    }

    fn drop_if_cancelled(&mut self, id: LookupId) {
        if !self.lookups.get(&id).is_some_and(Lookup::is_cancelled) {
            return;
        }
        DnsCounters::add(&self.counters.given_up);
        match self.remove_lookup(id) {
            Some(Lookup::Records { question, .. }) => self.questions.remove_waiter(&question, id),
            Some(Lookup::Addresses { search, .. }) => self.forget_search(search.name(), id),
            None => {}
        }
    }

    fn forget_search(&mut self, name: &Name, id: LookupId) {
        // Of the current candidate: the questions for earlier ones have been answered.
        for kind in [Kind::Aaaa, Kind::A] {
            self.questions.remove_waiter(&Question { name: name.clone(), kind }, id);
        }
    }

    /// Returns the next query, if there is one and it may begin.
    pub(crate) fn take_next_query(&mut self, now: Time) -> Option<QuerySeed> {
        if self.queries >= self.config.queries_max {
            // The end of such a query wakes this machine, and then the next one begins.
            self.questions.make_room();
            return None;
        }
        let (question, link) = self.questions.start_next()?;
        let mut servers = self.config.servers.clone();
        if self.config.conf.rotate {
            self.rotation.apply(&question, &mut servers);
        }
        self.queries += 1;
        DnsCounters::add(&self.counters.asked);
        let report = ReportSender::new(question.clone(), self.report_sender.clone());
        let without_edns = self.without_edns.valid_at(now);
        let (config, counters) = (self.config.clone(), self.counters.clone());
        Some(QuerySeed { question, servers, without_edns, config, counters, link, report })
    }

    /// Ends a lookup of records.
    fn finish_records(&self, port: Port<LookupResult>, result: LookupResult) {
        let counter = self.counters.for_records(&result);
        self.count_outcome(counter, port.set(result).is_ok());
    }

    /// Ends a lookup of addresses.
    fn finish_addresses(&self, port: Port<ResolveResult>, result: ResolveResult) {
        let counter = self.counters.for_addresses(&result);
        self.count_outcome(counter, port.set(result).is_ok());
    }

    fn count_outcome(&self, counter: &AtomicU64, was_delivered: bool) {
        DnsCounters::add(if was_delivered { counter } else { &self.counters.given_up });
    }

    pub(crate) fn describe(&self, to: &mut Description) {
        to.set_state(if self.lookups.is_empty() { "idle" } else { "looking up" });
        to.add_held(self.cache.held_bytes());
    }

    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.lookups.len(), self.queries, self.cache.len())
    }
}
