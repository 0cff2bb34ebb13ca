//! `QueryReport`: what a query tells its resolver at its end.

use std::net::SocketAddr;

use rotor_core::Sender;

use crate::error::LookupError;
use crate::record::Question;
use crate::result::QueryResult;

/// The one message from a query to its resolver. If it is dropped without a result, it reports that
/// there will be none.
pub(crate) struct ReportSender {
    question: Question,
    pub(crate) without_edns: Option<SocketAddr>,
    pub(crate) is_abandoned: bool,
    sender: Option<Sender<QueryReport>>,
}

pub(crate) struct QueryReport {
    pub(crate) question: Question,
    pub(crate) result: QueryResult,
    /// A server that has refused EDNS, and answered without it.
    pub(crate) without_edns: Option<SocketAddr>,
    /// Whether the query has no answer because no lookup was waiting for one.
    pub(crate) is_abandoned: bool,
}

impl ReportSender {
    pub(crate) fn new(question: Question, sender: Sender<QueryReport>) -> ReportSender {
        ReportSender { question, without_edns: None, is_abandoned: false, sender: Some(sender) }
    }

    /// Returns whether the resolver has ended, so that the report would reach nobody.
    pub(crate) fn is_resolver_gone(&self) -> bool {
        self.sender.as_ref().is_none_or(Sender::is_closed)
    }

    pub(crate) fn send(mut self, result: QueryResult) {
        self.send_once(result);
    }

    fn send_once(&mut self, result: QueryResult) {
        // The mailbox has room for one message from each query. If the resolver is gone, there is
        // nobody to tell.
        if let Some(sender) = self.sender.take() {
            let (question, without_edns) = (self.question.clone(), self.without_edns);
            let is_abandoned = self.is_abandoned;
            let _ = sender.send(QueryReport { question, result, without_edns, is_abandoned });
        }
    }
}

impl Drop for ReportSender {
    fn drop(&mut self) {
        self.send_once(QueryResult::failed(LookupError::Lost));
    }
}
