//! `Sender`: sends the messages of a handler.

use std::fmt;

use rotor_stream::Output;

use crate::config::WebSocketConfig;
use crate::counters::Count;
use crate::frame::close::CONTROL_BYTES_MAX;
use crate::frame::header::Opcode;
use crate::frame::utf8::Utf8Validator;
use crate::message::{Kind, Message};
use crate::outgoing::{OpenMessage, Outgoing, opcode_of};
use crate::prepared::Prepared;
use crate::send_error::SendError;

/// Sends messages to the peer of a WebSocket. Each call of a handler gets one.
///
/// Nothing is sent before the handler has returned. Output that the peer does not take yet waits:
/// [`unsent`](Sender::unsent) returns how much that is, and once it reaches
/// [`unsent_high_water`](crate::WebSocketConfig::unsent_high_water), further messages are refused.
/// In [`message`](crate::Handler::message) there is always room for one message, whatever its
/// length. A handler that sends more than one, or that sends without being asked, continues in
/// [`flushed`](crate::Handler::flushed).
pub struct Sender<'a> {
    outgoing: &'a mut Outgoing,
    output: &'a mut Output,
    config: &'a WebSocketConfig,
    /// The message that the handler was given, if it is still in the input.
    given: &'a [u8],
    /// Set if the given message is to be sent first, as this kind. It need not be copied if nothing
    /// follows it.
    forwarded: Option<Kind>,
}

/// From this length in bytes, a message that was just received is sent from the input. A shorter
/// one is copied in less time.
const FORWARD_MIN: usize = 4096;

/// The length of the header of such a message: the message is complete in the input, so its length
/// takes two bytes (RFC 6455 §5.2).
const FORWARD_HEADER_BYTES: usize = 4;

impl<'a> Sender<'a> {
    pub(crate) fn new(
        outgoing: &'a mut Outgoing,
        output: &'a mut Output,
        config: &'a WebSocketConfig,
    ) -> Sender<'a> {
        Sender { outgoing, output, config, given: &[], forwarded: None }
    }

    /// Sets the bytes of the input that the handler is given.
    pub(crate) fn with_input(self, given: &'a [u8]) -> Sender<'a> {
        Sender { given, ..self }
    }

    /// Returns the kind as which the given message is to be passed on, if it is. The caller moves
    /// it to the output.
    pub(crate) fn forwarded(self) -> Option<Kind> {
        self.forwarded
    }

    /// Copies the message that is to be passed on, because something follows it.
    #[cold]
    pub(crate) fn copy_forwarded(&mut self) {
        if let Some(kind) = self.forwarded.take() {
            self.outgoing.message(kind, self.given, self.output);
        }
    }

    /// Returns whether these are the given bytes themselves, and can be sent from the input.
    fn can_forward(&self, payload: &[u8]) -> bool {
        payload.len() >= FORWARD_MIN
            && std::ptr::eq(payload, self.given)
            && self.output.is_empty()
            && self.outgoing.sends_unmodified(payload.len())
    }

    /// Sends a text message.
    ///
    /// # Errors
    ///
    /// `Closing`, `Full`, `Unfinished`. Nothing was sent.
    pub fn text(&mut self, text: &str) -> Result<(), SendError> {
        self.send_message(Kind::Text, text.as_bytes())
    }

    /// Sends a binary message.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    pub fn binary(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.send_message(Kind::Binary, bytes)
    }

    /// Sends a [`Message`], the type of received messages; an echo does this.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    pub fn message(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.send_message(message.kind(), message.as_bytes())
    }

    /// Sends a message that was prepared for many peers. A server sends it without copying, unless
    /// it is short.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    #[doc(alias = "broadcast")]
    pub fn prepared(&mut self, message: &Prepared) -> Result<(), SendError> {
        self.check_message()?;
        match message.frame_for(self.outgoing) {
            // An output fails only after its end.
            Some(block) => self.output.push_block(block).map_err(|_| SendError::Closing),
            None => {
                self.outgoing.message(message.kind(), message.payload(), self.output);
                Ok(())
            }
        }
    }

    /// Begins a message whose pieces follow, in this call of the handler or in later ones. The
    /// message is not compressed.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    #[doc(alias = "fragmentation")]
    pub fn begin(&mut self, kind: Kind) -> Result<(), SendError> {
        self.check_message()?;
        self.outgoing.open_message =
            Some(OpenMessage { kind, utf8: Utf8Validator::default(), is_first: true });
        Ok(())
    }

    /// Sends a piece of the begun message, as a frame of its own. A piece of a text may end within
    /// a character.
    ///
    /// # Errors
    ///
    /// `NotBegun`, `NotUtf8`, `Closing`, `Full`. Nothing was sent.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.send_fragment(bytes, false)
    }

    /// Ends the begun message.
    ///
    /// # Errors
    ///
    /// `NotBegun`; `Closing`; `NotUtf8` for a text that ends within a character. The message is not
    /// ended.
    pub fn end(&mut self) -> Result<(), SendError> {
        self.send_fragment(&[], true)
    }

    /// Sends a ping with these bytes, at most 125. The connection itself sends pings after
    /// [`ping_after`](crate::WebSocketConfig::ping_after). The answer comes to
    /// [`Handler::pong`](crate::Handler::pong).
    ///
    /// # Errors
    ///
    /// `TooLong` for more than 125 bytes; `Closing`, `Full`.
    pub fn ping(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.check()?;
        if bytes.len() > CONTROL_BYTES_MAX {
            return Err(SendError::TooLong);
        }
        self.outgoing.ping(bytes, self.output);
        Ok(())
    }

    /// Returns how many bytes are unsent.
    #[doc(alias = "bufferedAmount")]
    pub fn unsent(&self) -> usize {
        let forwarded = self.forwarded.map_or(0, |_| FORWARD_HEADER_BYTES + self.given.len());
        self.output.len() + forwarded
    }

    /// Returns how many bytes may be sent before further messages are refused.
    #[doc(alias = "backpressure")]
    pub fn room(&self) -> usize {
        self.config.unsent_high_water.saturating_sub(self.unsent())
    }

    fn send_message(&mut self, kind: Kind, payload: &[u8]) -> Result<(), SendError> {
        self.check_message()?;
        if self.can_forward(payload) {
            self.forwarded = Some(kind);
        } else {
            self.outgoing.message(kind, payload, self.output);
        }
        Ok(())
    }

    fn send_fragment(&mut self, bytes: &[u8], is_last: bool) -> Result<(), SendError> {
        let Some(mut open_message) = self.outgoing.open_message else {
            return Err(SendError::NotBegun);
        };
        if is_last && !self.outgoing.is_closing {
            // Ending needs no room: a message that cannot be ended would hold up all others.
        } else {
            self.check()?;
        }
        if open_message.kind == Kind::Text {
            open_message.utf8.push(bytes).map_err(|_| SendError::NotUtf8)?;
            if is_last && !open_message.utf8.is_complete() {
                return Err(SendError::NotUtf8);
            }
        }
        let opcode =
            if open_message.is_first { opcode_of(open_message.kind) } else { Opcode::Continuation };
        open_message.is_first = false;
        self.outgoing.open_message = (!is_last).then_some(open_message);
        self.outgoing.frame(opcode, is_last, false, bytes, self.output);
        Ok(())
    }

    fn check_message(&mut self) -> Result<(), SendError> {
        if self.outgoing.open_message.is_some() && !self.outgoing.is_closing {
            return Err(SendError::Unfinished);
        }
        self.check()
    }

    /// Checks whether something may be sent now. If so, a message to be passed on is copied to the
    /// output first.
    fn check(&mut self) -> Result<(), SendError> {
        if self.forwarded.is_some() {
            self.copy_forwarded();
        }
        if self.outgoing.is_closing {
            return Err(SendError::Closing);
        }
        if self.room() == 0 {
            self.config.counters.count(Count::sends_refused);
            return Err(SendError::Full);
        }
        Ok(())
    }
}

impl fmt::Debug for Sender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("unsent", &self.unsent()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outgoing::Compression;
    use rotor_stream::Buf;

    fn server() -> Outgoing {
        Outgoing::new(None, Compression::None)
    }

    /// What is sent when a handler receives `bytes` and runs `act`, and whether the bytes were
    /// forwarded.
    fn sent(
        mut outgoing: Outgoing,
        bytes: &[u8],
        act: impl FnOnce(&mut Sender<'_>, &[u8]),
    ) -> (Vec<u8>, bool) {
        let (config, mut output, mut input) = (WebSocketConfig::new(), Output::new(), Buf::new());
        input.extend(b"a header");
        input.extend(bytes);
        input.consume(8);
        let mut sender = Sender::new(&mut outgoing, &mut output, &config).with_input(&input);
        act(&mut sender, &input);
        let unsent = sender.unsent();
        let forwarded = sender.forwarded();
        let place = input.as_ptr();
        if let Some(kind) = forwarded {
            assert!(output.is_empty());
            outgoing.forward_from_input(kind, &mut input, bytes.len(), &mut output);
            assert!(input.is_empty());
            assert_eq!(output.front()[FORWARD_HEADER_BYTES..].as_ptr(), place, "it was copied");
        }
        assert_eq!(output.len(), unsent);
        (output.front().to_vec(), forwarded.is_some())
    }

    #[test]
    fn an_echoed_message_is_not_copied_whatever_kind_is_sent() {
        for len in [FORWARD_MIN, 16384, 32768] {
            let bytes = vec![b'x'; len];
            let header = [(len >> 8) as u8, len as u8];
            let (back, forwarded) = sent(server(), &bytes, |out, given| out.binary(given).unwrap());
            assert!(forwarded);
            assert_eq!(back, [&[0x82, 126], &header[..], &bytes[..]].concat());
            let (back, forwarded) = sent(server(), &bytes, |out, given| {
                out.text(std::str::from_utf8(given).unwrap()).unwrap();
            });
            assert!(forwarded);
            assert_eq!(back, [&[0x81, 126], &header[..], &bytes[..]].concat());
        }
    }

    #[test]
    fn output_around_a_forwarded_message_stays_in_order() {
        let bytes = vec![7; 5000];
        let frame = [&[0x82, 126, 0x13, 0x88][..], &bytes].concat();
        type Act = fn(&mut Sender<'_>, &[u8]);
        let cases: [(Act, &[u8], &[u8]); 6] = [
            (|out, given| (out.text("a"), out.binary(given)).1.unwrap(), b"\x81\x01a", b""),
            (|out, given| (out.binary(given), out.text("a")).1.unwrap(), b"", b"\x81\x01a"),
            (|out, given| (out.binary(given), out.ping(b"p")).1.unwrap(), b"", b"\x89\x01p"),
            (
                |out, given| (out.binary(given), out.prepared(&Prepared::text("a"))).1.unwrap(),
                b"",
                b"\x81\x01a",
            ),
            (
                |out, given| {
                    let done =
                        (out.binary(given), out.begin(Kind::Text), out.piece(b"a"), out.end());
                    done.3.unwrap();
                },
                b"",
                b"\x01\x01a\x80\x00",
            ),
            (|out, given| (out.binary(given), out.copy_forwarded()).0.unwrap(), b"", b""),
        ];
        for (at, (act, before, after)) in cases.into_iter().enumerate() {
            let (all, forwarded) = sent(server(), &bytes, act);
            assert!(!forwarded, "{at}");
            assert!(all == [before, &frame, after].concat(), "{at}");
        }
        let (twice, _) = sent(server(), &bytes, |out, given| {
            (out.binary(given), out.binary(given)).1.unwrap();
        });
        assert!(twice == [&frame[..], &frame].concat());
    }

    #[test]
    fn other_masked_and_short_messages_are_copied() {
        let bytes = vec![7; 5000];
        let copy = bytes.clone();
        assert!(!sent(server(), &bytes, |out, _| out.binary(&copy).unwrap()).1);
        assert!(!sent(server(), &bytes, |out, given| out.binary(&given[1..]).unwrap()).1);
        assert!(!sent(server(), &bytes, |out, given| out.binary(&given[..4500]).unwrap()).1);
        let short = &bytes[..FORWARD_MIN - 1];
        assert!(!sent(server(), short, |out, given| out.binary(given).unwrap()).1);
        let client = Outgoing::new(Some([1; 16]), Compression::None);
        assert!(!sent(client, &bytes, |out, given| out.binary(given).unwrap()).1);
    }

    #[test]
    fn an_open_message_can_end_when_there_is_no_room() {
        let long = vec![7; 70_000];
        let (back, _) = sent(server(), b"", |out, _| {
            out.begin(Kind::Binary).unwrap();
            out.piece(&long).unwrap();
            assert_eq!((out.room(), out.piece(b"x")), (0, Err(SendError::Full)));
            out.end().unwrap();
            assert_eq!(out.end(), Err(SendError::NotBegun));
        });
        assert!(
            back == [&[0x02, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70][..], &long, &[0x80, 0]].concat()
        );
    }
}
