//! `Sender`: sends the messages of a handler.

use std::fmt;

use rotor_stream::Output;

use crate::config::WebSocketConfig;
use crate::counters::Count;
use crate::frame::close::CONTROL_BYTES_MAX;
use crate::frame::header::Opcode;
use crate::frame::utf8::Utf8;
use crate::message::{Kind, Message};
use crate::outgoing::{Begun, Outgoing, opcode_of};
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
    passed_on: Option<Kind>,
}

/// From this length in bytes, a message that was just received is sent from the input. A shorter
/// one is copied in less time.
const PASSED_ON_MIN: usize = 4096;

/// The length of the header of such a message: the message is complete in the input, so its length
/// takes two bytes (RFC 6455 §5.2).
const PASSED_ON_HEADER: usize = 4;

impl<'a> Sender<'a> {
    pub(crate) fn new(
        outgoing: &'a mut Outgoing,
        output: &'a mut Output,
        config: &'a WebSocketConfig,
    ) -> Sender<'a> {
        Sender { outgoing, output, config, given: &[], passed_on: None }
    }

    /// Sets the bytes of the input that the handler is given.
    pub(crate) fn giving(self, given: &'a [u8]) -> Sender<'a> {
        Sender { given, ..self }
    }

    /// Returns the kind as which the given message is to be passed on, if it is. The caller moves
    /// it to the output.
    pub(crate) fn passed_on(self) -> Option<Kind> {
        self.passed_on
    }

    /// Copies the message that is to be passed on, because something follows it.
    #[cold]
    pub(crate) fn copy_passed_on(&mut self) {
        if let Some(kind) = self.passed_on.take() {
            self.outgoing.message(kind, self.given, self.output);
        }
    }

    /// Returns whether these are the given bytes themselves, and can be sent from the input.
    fn can_pass_on(&self, payload: &[u8]) -> bool {
        payload.len() >= PASSED_ON_MIN
            && std::ptr::eq(payload, self.given)
            && self.output.is_empty()
            && self.outgoing.sends_plain(payload.len())
    }

    /// Sends a text message.
    ///
    /// # Errors
    ///
    /// `Closing`, `Full`, `Unfinished`. Nothing was sent.
    pub fn text(&mut self, text: &str) -> Result<(), SendError> {
        self.whole(Kind::Text, text.as_bytes())
    }

    /// Sends a binary message.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    pub fn binary(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.whole(Kind::Binary, bytes)
    }

    /// Sends a [`Message`], the type of received messages; an echo does this.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    pub fn message(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.whole(message.kind(), message.as_bytes())
    }

    /// Sends a message that was prepared for many peers. A server sends it without copying, unless
    /// it is short.
    ///
    /// # Errors
    ///
    /// As [`text`](Sender::text).
    #[doc(alias = "broadcast")]
    pub fn prepared(&mut self, message: &Prepared) -> Result<(), SendError> {
        self.check_whole()?;
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
        self.check_whole()?;
        self.outgoing.begun = Some(Begun { kind, utf8: Utf8::default(), is_first: true });
        Ok(())
    }

    /// Sends a piece of the begun message, as a frame of its own. A piece of a text may end within
    /// a character.
    ///
    /// # Errors
    ///
    /// `NotBegun`, `NotUtf8`, `Closing`, `Full`. Nothing was sent.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.fragment(bytes, false)
    }

    /// Ends the begun message.
    ///
    /// # Errors
    ///
    /// `NotBegun`; `Closing`; `NotUtf8` for a text that ends within a character. The message is not
    /// ended.
    pub fn end(&mut self) -> Result<(), SendError> {
        self.fragment(&[], true)
    }

    /// Sends a ping with these bytes, at most 125. The connection itself sends pings after
    /// [`ping_after`](crate::WebSocketConfig::ping_after). Pongs are not passed to the handler.
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
        let passed_on = self.passed_on.map_or(0, |_| PASSED_ON_HEADER + self.given.len());
        self.output.len() + passed_on
    }

    /// Returns how many bytes may be sent before further messages are refused.
    #[doc(alias = "backpressure")]
    pub fn room(&self) -> usize {
        self.config.unsent_high_water.saturating_sub(self.unsent())
    }

    fn whole(&mut self, kind: Kind, payload: &[u8]) -> Result<(), SendError> {
        self.check_whole()?;
        if self.can_pass_on(payload) {
            self.passed_on = Some(kind);
        } else {
            self.outgoing.message(kind, payload, self.output);
        }
        Ok(())
    }

    fn fragment(&mut self, bytes: &[u8], is_last: bool) -> Result<(), SendError> {
        let Some(mut begun) = self.outgoing.begun else { return Err(SendError::NotBegun) };
        if is_last && !self.outgoing.is_closing {
            // Ending needs no room: a message that cannot be ended would hold up all others.
        } else {
            self.check()?;
        }
        if begun.kind == Kind::Text {
            begun.utf8.push(bytes).map_err(|_| SendError::NotUtf8)?;
            if is_last && !begun.utf8.is_whole() {
                return Err(SendError::NotUtf8);
            }
        }
        let opcode = if begun.is_first { opcode_of(begun.kind) } else { Opcode::Continuation };
        begun.is_first = false;
        self.outgoing.begun = (!is_last).then_some(begun);
        self.outgoing.frame(opcode, is_last, false, bytes, self.output);
        Ok(())
    }

    fn check_whole(&mut self) -> Result<(), SendError> {
        if self.outgoing.begun.is_some() && !self.outgoing.is_closing {
            return Err(SendError::Unfinished);
        }
        self.check()
    }

    /// Checks whether something may be sent now. If so, a message to be passed on is copied to the
    /// output first.
    fn check(&mut self) -> Result<(), SendError> {
        if self.passed_on.is_some() {
            self.copy_passed_on();
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

    /// What goes out when a handler is given these bytes and does this, and whether they were
    /// passed on.
    fn sent(
        mut outgoing: Outgoing,
        bytes: &[u8],
        act: impl FnOnce(&mut Sender<'_>, &[u8]),
    ) -> (Vec<u8>, bool) {
        let (config, mut output, mut input) = (WebSocketConfig::new(), Output::new(), Buf::new());
        input.extend(b"a header");
        input.extend(bytes);
        input.consume(8);
        let mut sender = Sender::new(&mut outgoing, &mut output, &config).giving(&input);
        act(&mut sender, &input);
        let unsent = sender.unsent();
        let passed_on = sender.passed_on();
        let place = input.as_ptr();
        if let Some(kind) = passed_on {
            assert!(output.is_empty());
            outgoing.pass_on(kind, &mut input, bytes.len(), &mut output);
            assert!(input.is_empty());
            assert_eq!(output.front()[PASSED_ON_HEADER..].as_ptr(), place, "it was copied");
        }
        assert_eq!(output.len(), unsent);
        (output.front().to_vec(), passed_on.is_some())
    }

    #[test]
    fn what_was_given_and_is_sent_back_stays_where_it_is_whatever_the_kind_sent() {
        for len in [PASSED_ON_MIN, 16384, 32768] {
            let bytes = vec![b'x'; len];
            let header = [(len >> 8) as u8, len as u8];
            let (back, passed_on) = sent(server(), &bytes, |out, given| out.binary(given).unwrap());
            assert!(passed_on);
            assert_eq!(back, [&[0x82, 126], &header[..], &bytes[..]].concat());
            let (back, passed_on) = sent(server(), &bytes, |out, given| {
                out.text(std::str::from_utf8(given).unwrap()).unwrap();
            });
            assert!(passed_on);
            assert_eq!(back, [&[0x81, 126], &header[..], &bytes[..]].concat());
        }
    }

    #[test]
    fn what_follows_or_goes_before_is_in_its_order() {
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
            (|out, given| (out.binary(given), out.copy_passed_on()).0.unwrap(), b"", b""),
        ];
        for (at, (act, before, after)) in cases.into_iter().enumerate() {
            let (all, passed_on) = sent(server(), &bytes, act);
            assert!(!passed_on, "{at}");
            assert!(all == [before, &frame, after].concat(), "{at}");
        }
        let (twice, _) = sent(server(), &bytes, |out, given| {
            (out.binary(given), out.binary(given)).1.unwrap();
        });
        assert!(twice == [&frame[..], &frame].concat());
    }

    #[test]
    fn what_is_not_what_was_given_is_copied_and_so_is_what_is_masked_or_short() {
        let bytes = vec![7; 5000];
        let copy = bytes.clone();
        assert!(!sent(server(), &bytes, |out, _| out.binary(&copy).unwrap()).1);
        assert!(!sent(server(), &bytes, |out, given| out.binary(&given[1..]).unwrap()).1);
        assert!(!sent(server(), &bytes, |out, given| out.binary(&given[..4500]).unwrap()).1);
        let short = &bytes[..PASSED_ON_MIN - 1];
        assert!(!sent(server(), short, |out, given| out.binary(given).unwrap()).1);
        let client = Outgoing::new(Some([1; 16]), Compression::None);
        assert!(!sent(client, &bytes, |out, given| out.binary(given).unwrap()).1);
    }

    #[test]
    fn a_message_that_was_begun_can_end_where_no_more_of_it_may_be_sent() {
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
