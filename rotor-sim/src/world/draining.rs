//! What had reached a host when its drain began, and what becomes of it.

use rotor_core::Time;

use super::World;
use super::host_state::DrainCheck;
use super::link::Link;
use crate::faults::Fault;
use crate::property;
use crate::table::Key;

impl World {
    /// Notes at the beginning of a drain what has reached the host and has to be read.
    pub(crate) fn begin_drain_check(&mut self, host: u32, until: Time) {
        // Only in connections to the host's listeners: a client may well ignore a response.
        let of_host = |(key, link): (Key, &Link)| (link.ends[1].host == host).then_some(key);
        let keys: Vec<Key> = self.links.iter().filter_map(of_host).collect();
        for key in keys {
            if let Some(link) = self.links.get_mut(key) {
                link.ends[1].input.must_be_read = link.ends[1].input.arrived;
            }
        }
        let excusing_faults = self.excusing_faults();
        self.host(host).draining = Some(DrainCheck { until, excusing_faults });
    }

    /// Fails the run because something was thrown away, unless the drain's time is over, or a fault
    /// has taken connections from their machines meanwhile.
    pub(super) fn check_nothing_lost(&mut self, host: u32, what: impl FnOnce() -> String) {
        let Some(draining) = &self.hosts[host as usize].draining else { return };
        if self.local_time(host) < draining.until
            && self.excusing_faults() == draining.excusing_faults
        {
            self.fail(property::NOTHING_ARRIVED_IS_LOST, what());
        }
    }

    fn excusing_faults(&self) -> u64 {
        [Fault::RegisterFails, Fault::HandlerPanics]
            .map(|fault| self.strikes.of(fault))
            .iter()
            .sum()
    }

    /// Returns how many bytes were delivered from one host to another, in connections that the
    /// first has not closed.
    pub(crate) fn delivered(&self, from: u32, to: u32) -> u64 {
        let are_between = |link: &Link| (link.ends[0].host, link.ends[1].host) == (from, to);
        let open_links =
            self.links.iter().filter(|(_, link)| are_between(link) && link.ends[0].is_open);
        open_links.map(|(_, link)| link.ends[1].input.delivered).sum()
    }
}
