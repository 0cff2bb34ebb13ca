//! `Watched`: a loop that is looked at, whatever its machines are.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::backend::Backend;
use rotor_core::{Broadcast, LoopHandle, LoopInstance, Machine, Port, StatsHandle, Token, Verdict};

use crate::walk::{Query, Snapshot, begin};

/// A loop that is looked at.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) name: String,
    pub(crate) stats: StatsHandle,
    handle: LoopHandle,
    machines: Arc<dyn Asked>,
}

/// What can be asked of the machines of any loop.
trait Asked: Send + Sync {
    fn walk(&self, query: Query, port: Port<Snapshot>) -> bool;
    fn decide(&self, token: Token, verdict: Verdict, port: Port<bool>) -> bool;
}

impl<M: Machine + 'static> Asked for Broadcast<M> {
    fn walk(&self, query: Query, port: Port<Snapshot>) -> bool {
        begin(self, query, port)
    }

    fn decide(&self, token: Token, verdict: Verdict, port: Port<bool>) -> bool {
        let posted = self.post(move |mut machines, _| {
            let _gone = port.set(machines.decide(token, verdict));
        });
        posted.is_ok()
    }
}

impl Watched {
    pub(crate) fn new<M: Machine + 'static, B: Backend>(
        name: String,
        instance: &LoopInstance<M, B>,
    ) -> Watched {
        let (stats, handle) = (instance.stats(), instance.handle());
        Watched { name, stats, handle, machines: Arc::new(instance.broadcast()) }
    }

    /// Has the loop look at its machines. Returns whether it takes that.
    pub(crate) fn walk(&self, query: Query, port: Port<Snapshot>) -> bool {
        self.machines.walk(query, port)
    }

    /// Has the loop do something with a machine. The port is told whether there is such a one.
    pub(crate) fn decide(&self, token: Token, verdict: Verdict, port: Port<bool>) -> bool {
        self.machines.decide(token, verdict, port)
    }

    pub(crate) fn drain(&self, time: Duration) {
        self.handle.drain(time);
    }
}
