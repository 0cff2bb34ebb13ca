//! Packets with a virtio header, which leaves checksums and segmentation to the device.
//!
//! ```text
//!  segments ──Batch──▶ a packet of up to 64 KiB, its Header ──▶ the device makes segments, sums
//!
//!  the device ──▶ Header, and a packet of up to 64 KiB ──Arrival──▶ TCP takes it as one segment
//! ```

mod arrival;
mod batch;
mod header;
#[cfg(test)]
mod tests;

use self::arrival::{Arrival, Refusal};
pub(super) use self::batch::Batch;
use super::Stack;

impl Stack {
    /// Handles a packet from a device with virtio headers.
    pub(super) fn handle_arrival(&mut self, bytes: &[u8]) {
        match arrival::parse(self.wire.medium, bytes, self.config.verify_checksums) {
            Ok(Arrival::Packet(packet)) => self.handle_packet(packet),
            Ok(Arrival::Large(packet)) => {
                self.stats.received_large += 1;
                self.handle_packet(packet);
            }
            Ok(Arrival::Datagrams(mut datagrams)) => {
                self.stats.received_large += 1;
                let mut packet = Vec::new();
                while datagrams.next(&mut packet) {
                    self.handle_packet(&packet);
                }
            }
            Err(Refusal::Header) => self.stats.headers_refused += 1,
            Err(Refusal::Checksum) => self.stats.refused += 1,
        }
    }
}
