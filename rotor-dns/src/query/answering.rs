//! Receives what servers send for a query, and interprets it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::Time;
use rotor_core::net::{DatagramSocket, Net, StreamSocket};

use super::{Channel, Query, Step};
use crate::chain::min_ttl;
use crate::counters::DnsCounters;
use crate::error::{LookupError, ServerFault};
use crate::message::{self, DecodedAnswer, Match};
use crate::record::{Question, RecordSet};
use crate::result::QueryResult;
use crate::unguessable::report_forgeries;

/// How many datagrams are received before the other machines of the loop get their turn.
const DATAGRAMS_PER_EVENT: u32 = 32;
/// How many datagrams that do not match the query are ignored before TCP is used, where none can be
/// injected. A forger who guesses has then sent this many of at least 2^30 possible ones.
const FORGERIES_MAX: u32 = 32;
/// The longest datagram that a server may send. A longer one is truncated and cannot be decoded,
/// which is the server's fault.
const DATAGRAM_MAX: usize = 4096;

impl<N: Net> Query<N>
where
    N::Datagram: DatagramSocket<Address = SocketAddr>,
    N::Stream: StreamSocket<Target = SocketAddr>,
{
    /// Receives datagrams until one of them is the answer.
    pub(super) fn receive_datagrams(&mut self, now: Time) -> Step {
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
                Err(error) => return Step::Fail(self.datagram_error(error)),
            };
            let message = &buffer[..length];
            // A datagram that arrived before the socket was connected to the server may be from
            // anybody.
            let matched = if from == server { self.query.matches(message) } else { Match::No };
            match matched {
                Match::Exact => return self.handle_answer(message),
                // Either the server changes the case, or somebody has guessed the rest. Over TCP, a
                // forger would have to guess the sequence numbers as well.
                Match::OtherCase => {
                    self.case_changers.insert(server);
                    return Step::UseTcp;
                }
                // The server could not even read the question. A forger gains nothing by this: the
                // same question is sent again, from another port.
                Match::NoQuestion if self.query.is_edns_refusal(message) => {
                    return Step::WithoutEdns;
                }
                Match::NoQuestion | Match::No => {
                    *forgeries += 1;
                    DnsCounters::add(&self.seed.counters.strays);
                }
            }
            if *forgeries >= FORGERIES_MAX {
                report_forgeries(*forgeries, server, now);
                return Step::UseTcp;
            }
        }
        // A flood gets no more than its share of the loop. There will be no event for the rest.
        Step::Again
    }

    pub(super) fn handle_tcp_message(&mut self, message: &[u8]) -> Step {
        let matched = self.query.matches(message);
        if let Some(server) = self.server().filter(|_| matched != Match::No) {
            // The server has TCP, so it does not matter if it changes the case.
            self.case_changers.remove(&server);
        }
        match matched {
            // Nobody else can have sent this, so the case does not matter.
            Match::Exact | Match::OtherCase => self.handle_answer(message),
            Match::NoQuestion if self.query.is_edns_refusal(message) => Step::WithoutEdns,
            Match::NoQuestion | Match::No => {
                Step::Fail(self.server_error(ServerFault::OtherQuestion))
            }
        }
    }

    /// Interprets an answer to the right question from the right server.
    fn handle_answer(&mut self, message: &[u8]) -> Step {
        let is_tcp = matches!(self.channel, Channel::Tcp(_));
        if self.query.is_edns_refusal(message) {
            return Step::WithoutEdns;
        }
        let decoded = message::decode(&self.current_question, message, self.hops_left);
        if decoded.is_ok() {
            // If the question without EDNS fails as well, the server has shown nothing about EDNS.
            self.seed.report.without_edns =
                self.server().filter(|server| self.without_edns.contains(server));
        }
        match decoded {
            Err(fault) => Step::Fail(self.server_error(fault)),
            // RFC 7766 §5: TCP carries the whole answer, and asking again would give the same.
            Ok(DecodedAnswer::Truncated) if is_tcp => {
                Step::Fail(self.server_error(ServerFault::Truncated))
            }
            Ok(DecodedAnswer::Truncated) => Step::UseTcp,
            Ok(DecodedAnswer::Found { end, data, ttl }) => {
                let ttl = self.chain_ttl.map_or(ttl, |chain| chain.min(ttl));
                let answer = RecordSet { name: end, data, ttl };
                Step::Done(QueryResult { reply: Ok(Arc::new(answer)), valid_for: Some(ttl) })
            }
            Ok(DecodedAnswer::None { is_nxdomain, ttl }) => {
                let name = self.seed.question.name.clone();
                let error = if is_nxdomain {
                    LookupError::NoSuchName(name)
                } else {
                    LookupError::NoRecords(name)
                };
                let valid_for = ttl.map(|ttl| self.chain_ttl.map_or(ttl, |chain| chain.min(ttl)));
                Step::Done(QueryResult { reply: Err(error), valid_for })
            }
            // All answers are parts of one chain, so hops and lifetimes accumulate.
            Ok(DecodedAnswer::PartialChain { end, hops, ttl }) => {
                self.hops_left -= hops;
                self.chain_ttl = min_ttl(self.chain_ttl, ttl);
                Step::Follow(Question { name: end, kind: self.current_question.kind })
            }
        }
    }
}
