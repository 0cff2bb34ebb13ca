//! `PeerSettings`: the settings of a peer (RFC 9113 §6.5).

use super::error::{ErrorCode, Violation};
use super::frame::{PAYLOAD_BYTES_MAX, U31_MAX};

/// Identifiers of settings.
pub mod setting {
    #![allow(missing_docs)]
    pub const HEADER_TABLE_SIZE: u16 = 0x1;
    pub const ENABLE_PUSH: u16 = 0x2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub const MAX_FRAME_SIZE: u16 = 0x5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    pub const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
    pub const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

/// The window with which every stream and connection starts.
pub const WINDOW_DEFAULT: u32 = 65_535;

/// The settings of a peer; the defaults before it has sent any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerSettings {
    /// The size of its decoding table, in bytes.
    pub header_table_size: u32,
    /// The window of future streams, in bytes.
    pub initial_window: u32,
    /// The longest payload that it accepts, in bytes.
    pub frame_bytes_max: u32,
    /// The maximum number of concurrent streams that this side opens.
    pub streams_max: u32,
    /// How many bytes of fields it accepts in a head, with 32 more for each field; `u32::MAX` if it
    /// has not said.
    pub list_bytes_max: u32,
    /// Whether it accepts requests for other protocols on a stream (RFC 8441 §3).
    pub connect_protocol: bool,
}

impl PeerSettings {
    /// Applies the pairs of a frame in order, and ignores unknown ones. Returns the change of each
    /// stream's window.
    ///
    /// # Errors
    ///
    /// A value that the setting cannot have: the peer's fault, which ends the connection.
    pub fn apply(&mut self, payload: &[u8]) -> Result<i64, Violation> {
        let before = self.initial_window;
        for pair in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([pair[0], pair[1]]);
            let value = u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]);
            match name {
                setting::HEADER_TABLE_SIZE => self.header_table_size = value,
                setting::ENABLE_PUSH if value > 1 => {
                    return Err(Violation::protocol("ENABLE_PUSH is neither 0 nor 1"));
                }
                setting::MAX_CONCURRENT_STREAMS => self.streams_max = value,
                setting::INITIAL_WINDOW_SIZE if value > U31_MAX => {
                    let why = "INITIAL_WINDOW_SIZE is beyond 2^31 - 1";
                    return Err(Violation::Connection(ErrorCode::FlowControlError, why));
                }
                setting::INITIAL_WINDOW_SIZE => self.initial_window = value,
                setting::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Violation::protocol("MAX_FRAME_SIZE is not within its bounds"));
                }
                setting::MAX_FRAME_SIZE => self.frame_bytes_max = value,
                setting::MAX_HEADER_LIST_SIZE => self.list_bytes_max = value,
                // RFC 8441 §3: 0 or 1, and not 0 after 1.
                setting::ENABLE_CONNECT_PROTOCOL
                    if value > 1 || (value == 0 && self.connect_protocol) =>
                {
                    return Err(Violation::protocol(
                        "ENABLE_CONNECT_PROTOCOL is none or taken back",
                    ));
                }
                setting::ENABLE_CONNECT_PROTOCOL => self.connect_protocol = value == 1,
                _ => {}
            }
        }
        Ok(i64::from(self.initial_window) - i64::from(before))
    }
}

impl Default for PeerSettings {
    fn default() -> PeerSettings {
        PeerSettings {
            header_table_size: 4096,
            initial_window: WINDOW_DEFAULT,
            frame_bytes_max: PAYLOAD_BYTES_MAX as u32,
            // RFC 9113 §6.5.2: "there is no limit to this value" initially.
            streams_max: u32::MAX,
            list_bytes_max: u32::MAX,
            connect_protocol: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::frame_writer;

    fn applied(pairs: &[(u16, u32)]) -> Result<(PeerSettings, i64), ErrorCode> {
        let mut frame = Vec::new();
        frame_writer::settings(pairs, &mut frame);
        let mut settings = PeerSettings::default();
        match settings.apply(&frame[9..]) {
            Ok(change) => Ok((settings, change)),
            Err(Violation::Connection(code, _)) => Err(code),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_last_value_of_a_setting_counts_and_unknown_ones_are_ignored() {
        let defaults = PeerSettings::default();
        for (pairs, settings, change) in [
            (&[][..], defaults, 0),
            (&[(1, 0)], PeerSettings { header_table_size: 0, ..defaults }, 0),
            (&[(2, 0), (2, 1), (7, 0), (0xff, 7)], defaults, 0),
            (&[(3, 9), (3, 0)], PeerSettings { streams_max: 0, ..defaults }, 0),
            (&[(6, 9), (6, 0)], PeerSettings { list_bytes_max: 0, ..defaults }, 0),
            (&[(8, 0), (8, 1), (8, 1)], PeerSettings { connect_protocol: true, ..defaults }, 0),
            (&[(4, 0)], PeerSettings { initial_window: 0, ..defaults }, -65_535),
            (&[(4, 1), (4, 65_536)], PeerSettings { initial_window: 65_536, ..defaults }, 1),
            (
                &[(5, 16_384), (5, 16_777_215)],
                PeerSettings { frame_bytes_max: 16_777_215, ..defaults },
                0,
            ),
        ] {
            assert_eq!(applied(pairs), Ok((settings, change)), "{pairs:?}");
        }
    }

    #[test]
    fn values_out_of_bounds_are_refused() {
        for (pair, code) in [
            ((2, 2), ErrorCode::ProtocolError),
            ((4, 1 << 31), ErrorCode::FlowControlError),
            ((5, 16_383), ErrorCode::ProtocolError),
            ((8, 2), ErrorCode::ProtocolError),
            ((5, 1 << 24), ErrorCode::ProtocolError),
        ] {
            assert_eq!(applied(&[pair]), Err(code), "{pair:?}");
        }
        assert!(applied(&[(4, U31_MAX)]).is_ok());
        assert_eq!(applied(&[(8, 1), (8, 0)]), Err(ErrorCode::ProtocolError), "taken back");
    }
}
