//! `WatchedLoop`: an inspected loop, whatever the type of its machines.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::backend::Backend;
use rotor_core::{Broadcast, LoopHandle, LoopInstance, Machine, Port, StatsHandle, Token, Verdict};

use crate::walk::{Query, Snapshot, start_walk};

/// An inspected loop.
#[derive(Clone)]
pub(crate) struct WatchedLoop {
    pub(crate) name: String,
    pub(crate) stats: StatsHandle,
    handle: LoopHandle,
    machines: Arc<dyn LoopRequests>,
}

/// Requests to the machines of a loop, without the machines' type.
trait LoopRequests: Send + Sync {
    fn walk(&self, query: Query, port: Port<Snapshot>) -> bool;
    fn decide(&self, token: Token, verdict: Verdict, port: Port<bool>) -> bool;
}

impl<M: Machine + 'static> LoopRequests for Broadcast<M> {
    fn walk(&self, query: Query, port: Port<Snapshot>) -> bool {
        start_walk(self, query, port)
    }

    fn decide(&self, token: Token, verdict: Verdict, port: Port<bool>) -> bool {
        let posted = self.post(move |mut machines, _| {
            // If the requester has been told that the loop does not answer, nothing changes.
            if !port.is_cancelled() {
                let _gone = port.set(machines.decide(token, verdict));
            }
        });
        posted.is_ok()
    }
}

impl WatchedLoop {
    pub(crate) fn new<M: Machine + 'static, B: Backend>(
        name: String,
        instance: &LoopInstance<M, B>,
    ) -> WatchedLoop {
        let (stats, handle) = (instance.stats(), instance.handle());
        WatchedLoop { name, stats, handle, machines: Arc::new(instance.broadcast()) }
    }

    /// Lets the loop walk over its machines. Returns whether the loop accepts that.
    pub(crate) fn walk(&self, query: Query, port: Port<Snapshot>) -> bool {
        self.machines.walk(query, port)
    }

    /// Lets the loop apply a verdict to a machine. The port receives whether the machine exists.
    /// Returns whether the loop accepts that.
    pub(crate) fn decide(&self, token: Token, verdict: Verdict, port: Port<bool>) -> bool {
        self.machines.decide(token, verdict, port)
    }

    pub(crate) fn drain(&self, time: Duration) {
        self.handle.drain(time);
    }
}
