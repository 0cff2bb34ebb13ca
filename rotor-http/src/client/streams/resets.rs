//! How many streams the client resets on one connection: servers end connections with more resets
//! than they allow (CVE-2023-44487), and so fail the requests of others on them.
//!
//! ```text
//!               a reset beyond the limit
//!   any request ────────────────────────▶ only requests whose reset was counted when they began;
//!     begins                              what is counted for one that ends without is for another
//! ```

use std::time::Duration;

use rotor_core::Time;

use super::Streams;
use crate::client::handler::Client;
use crate::client::io::Io;
use crate::client::request_source::RequestSource;
use crate::h2::Nuisance;

impl<K: Client, F: RequestSource<K>> Streams<K, F> {
    /// Counts a reset that was not counted when its request began.
    pub(super) fn count_reset(&mut self, io: &Io<'_, '_, '_, K::Context>) {
        let (limits, now) = (&io.config.http2_ref().floods, io.scope.now());
        if self.floods.count(Nuisance::Reset, limits, now).is_err() {
            self.spare_resets.get_or_insert(0);
        }
    }

    /// Beyond the limit, counts a reset for the next request, as soon as the limit allows one more.
    pub(super) fn count_reset_ahead(&mut self, io: &Io<'_, '_, '_, K::Context>) {
        if self.spare_resets != Some(0) {
            return;
        }
        let (limits, now) = (&io.config.http2_ref().floods, io.scope.now());
        self.spare_reset_at = Time::NEVER;
        if self.floods.count(Nuisance::Reset, limits, now).is_ok() {
            self.spare_resets = Some(1);
        } else if limits.resets.burst > 0 && limits.resets.per_second > 0 {
            let nanos = 1_000_000_000_u64.div_ceil(limits.resets.per_second.into());
            self.spare_reset_at = now + Duration::from_nanos(nanos);
        }
    }
}
