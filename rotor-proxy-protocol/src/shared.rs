//! `Shared`: what all connections behind the same balancers share.

use std::sync::Arc;

use crate::config::ProxyProtocolConfig;
use crate::counters::ProxyCounters;

pub(crate) struct Shared {
    pub(crate) config: ProxyProtocolConfig,
    pub(crate) counters: Arc<ProxyCounters>,
}
