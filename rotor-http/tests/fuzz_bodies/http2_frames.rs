//! Frames, settings, priorities and Huffman codes, from any bytes.

use rotor_http::h2::frame::{Frame, FrameHeader};
use rotor_http::h2::hpack::{decode_huffman, encode_huffman};
use rotor_http::h2::{PeerSettings, Priority};

/// Reads frame after frame, as a connection does.
pub(super) fn run(data: &[u8]) {
    let mut rest = data;
    let mut settings = PeerSettings::default();
    while let Some(header) = FrameHeader::read(rest) {
        let Some(payload) = rest[9..].get(..header.len) else { break };
        rest = &rest[9 + header.len..];
        let Ok(frame) = Frame::read(header, payload) else { continue };
        match frame {
            Frame::Settings { payload } => {
                let before = settings;
                match settings.apply(payload) {
                    Ok(change) => {
                        let after = i64::from(settings.initial_window);
                        assert_eq!(after - i64::from(before.initial_window), change);
                        assert!((1 << 14..1 << 24).contains(&settings.frame_bytes_max));
                    }
                    Err(_) => return,
                }
            }
            Frame::Data { data, .. } => assert!(data.len() <= payload.len()),
            Frame::Headers { fragment, .. } => assert!(fragment.len() <= payload.len()),
            Frame::PriorityUpdate { value, .. } => assert!(Priority::read(value).urgency <= 7),
            Frame::WindowUpdate(more) => assert!((1..1 << 31).contains(&more)),
            _ => {}
        }
    }
    let mut text = Vec::new();
    if decode_huffman(data, &mut text, 4096).is_ok() {
        let mut coded = Vec::new();
        encode_huffman(&text, &mut coded);
        assert_eq!(coded, data, "there is one code for each text");
    }
    assert!(text.len() <= 4096);
}
