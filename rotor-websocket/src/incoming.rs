//! `Incoming`: the receiving half of a connection, from bytes to messages. An incomplete message is
//! in `partial`.

use std::sync::Arc;

use flate2::Decompress;
use rotor_core::Time;
use rotor_stream::{Buf, BytesHeld};

use crate::bucket::Bucket;
use crate::deflate::codec;
use crate::frame::close::{self, CONTROL_BYTES_MAX};
use crate::frame::code::Code;
use crate::frame::fault::Fault;
use crate::frame::header::{self, Header, Opcode, Read};
use crate::frame::mask::{self, Mask};
use crate::frame::utf8;
use crate::message::{Kind, Message, Piece};
use crate::next::Mode;
use crate::partial::{Limits, Partial, STEP_MAX, kind_of, most_bytes};

/// Frames up to this length are handled in the input, when they are complete. Longer ones are taken
/// as they arrive.
const WHOLE_MAX: u64 = 32 << 10;

/// How much of a longer frame is waited for at most, so that there are fewer calls.
const PART_WANTED: u64 = 16 << 10;

/// As how many bytes of output a byte of compressed input counts. A block of twenty bytes with its
/// own code table takes as long as producing a kilobyte of well compressed data, and may produce
/// nothing.
const COST_OF_COMPRESSED: usize = 64;

/// The receiving half of a connection.
pub(crate) struct Incoming {
    is_client: bool,
    decompression: Decompression,
    /// The frame whose payload is arriving.
    frame: Option<Frame>,
    /// The incomplete message.
    message: Option<Box<Partial>>,
    /// The memory of all incomplete messages, of all connections.
    held: Arc<BytesHeld>,
    control: Bucket,
    /// The input cannot hold what would be waited for: frames are taken as they arrive, however
    /// short they are.
    pub(crate) is_stepwise: bool,
    /// How many bytes were decompressed since this was last reset: the larger one of the output and
    /// the cost of the input.
    pub(crate) inflated: usize,
}

/// How messages are decompressed.
pub(crate) enum Decompression {
    None,
    /// Each by itself, with a codec of the thread.
    Alone,
    /// Each with a codec that knows the earlier ones.
    Own(Box<Decompress>),
}

/// A frame whose header has arrived.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    is_compressed: bool,
    /// Rotated for the next masked byte.
    mask: Option<Mask>,
    /// How many bytes of the payload are not consumed yet.
    left: u64,
    /// How many bytes at the front of the input are unmasked already.
    clear: usize,
}

/// The result of a step, for the handler or the connection.
pub(crate) enum Given<'a> {
    Message(Message<'a>),
    /// A message that is still at the front of the input. The handler may want to [pass it
    /// on](Step::PassOn).
    Standing(Message<'a>),
    Piece(Piece<'a>),
    Ping(&'a [u8]),
    Pong,
    Close(Code, &'a str),
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Something was done; continue.
    Did,
    /// Nothing can be done before the input has this many bytes.
    Needs(usize),
    /// A complete message of this many bytes was given, is still in the input, and is to be passed
    /// on as this kind.
    PassOn(Kind, usize),
    /// Nothing more fits into the memory of incomplete messages.
    NoRoom,
}

/// The conditions of a step.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) now: Time,
    /// How messages that begin now are taken.
    pub(crate) mode: Mode,
    /// Messages are discarded, because the connection is closing.
    pub(crate) discards: bool,
    /// The peer has not answered a ping.
    pub(crate) owes_pong: bool,
}

impl Decompression {
    pub(crate) fn of(takes_over: bool) -> Decompression {
        if takes_over {
            Decompression::Own(Box::new(codec::decompressor()))
        } else {
            Decompression::Alone
        }
    }
}

impl Incoming {
    pub(crate) fn new(
        is_client: bool,
        decompression: Decompression,
        held: Arc<BytesHeld>,
    ) -> Incoming {
        Incoming {
            is_client,
            decompression,
            frame: None,
            message: None,
            held,
            control: Bucket::new(),
            is_stepwise: false,
            inflated: 0,
        }
    }

    /// Returns how many bytes it holds beside its own size: an incomplete message, and codecs.
    pub(crate) fn held_bytes(&self) -> usize {
        let own = match self.decompression {
            Decompression::Own(_) => codec::DECOMPRESSOR_BYTES,
            Decompression::None | Decompression::Alone => 0,
        };
        own + self.message.as_ref().map_or(0, |message| message.held_bytes())
    }

    /// Does the next thing that is possible with the input, and calls `give` with the result. If
    /// `give` returns a kind, the message is to be passed on.
    pub(crate) fn step(
        &mut self,
        input: &mut Buf,
        terms: &Terms,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        if self.message.as_ref().is_some_and(|message| message.is_inflating()) {
            return self.inflate_step(terms, give);
        }
        let frame = match self.frame {
            Some(frame) => frame,
            None => match header::read(input)? {
                Read::Needs(count) => return Ok(Step::Needs(count)),
                Read::Header(header, size) => {
                    self.begin(&header, terms)?;
                    input.consume(size);
                    let Header { opcode, is_final, is_compressed, mask, len: left } = header;
                    let frame = Frame { opcode, is_final, is_compressed, mask, left, clear: 0 };
                    *self.frame.insert(frame)
                }
            },
        };
        if frame.opcode.is_control() {
            return self.control(frame, input, give);
        }
        let have = frame.left.min(input.len() as u64);
        let is_waited_for = frame.left <= WHOLE_MAX && !self.is_stepwise;
        let wanted = match terms.mode {
            _ if is_waited_for => frame.left,
            _ if self.is_stepwise => 1,
            // Pieces are handed over as soon as they arrive.
            Mode::Pieces => 1,
            Mode::Messages => frame.left.min(PART_WANTED),
        };
        if have < wanted.min(frame.left) {
            return Ok(Step::Needs(wanted as usize));
        }
        self.data(frame, have as usize, input, terms, give)
    }

    /// Checks whether a frame with this header is allowed here.
    fn begin(&mut self, header: &Header, terms: &Terms) -> Result<(), Fault> {
        // A client masks, a server does not.
        if header.mask.is_some() == self.is_client {
            return Err(Fault::Mask);
        }
        if header.is_compressed && matches!(self.decompression, Decompression::None) {
            return Err(Fault::ReservedBits);
        }
        let limits = terms.limits;
        match header.opcode {
            Opcode::Close => Ok(()),
            // This pong is required (RFC 6455 §5.5.2).
            Opcode::Pong if terms.owes_pong => Ok(()),
            Opcode::Ping | Opcode::Pong => {
                let may = self.control.take(terms.now, limits.control_max, limits.control_rate);
                if may { Ok(()) } else { Err(Fault::ControlFlood) }
            }
            Opcode::Continuation => {
                let message = self.message.as_mut().ok_or(Fault::Order)?;
                message.count_fragment(header.len, limits)?;
                message.check_len(header.len, limits)
            }
            Opcode::Text | Opcode::Binary => {
                if self.message.is_some() {
                    return Err(Fault::Order);
                }
                let is_alone = header.is_final && terms.mode == Mode::Messages;
                if !is_alone {
                    let message = self.message.insert(Partial::begin(
                        header.opcode,
                        header.is_compressed,
                        terms.mode,
                    ));
                    message.count_fragment(header.len, limits)?;
                }
                let is_whole = terms.mode == Mode::Messages;
                let most = most_bytes(header.is_compressed, limits);
                if is_whole && header.len > most as u64 { Err(Fault::TooLong) } else { Ok(()) }
            }
        }
    }

    fn control(
        &mut self,
        frame: Frame,
        input: &mut Buf,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        let len = frame.left as usize;
        if input.len() < len {
            return Ok(Step::Needs(len));
        }
        let mut payload = [0; CONTROL_BYTES_MAX];
        let payload = &mut payload[..len];
        payload.copy_from_slice(&input[..len]);
        mask::apply(payload, frame.mask.unwrap_or_default());
        input.consume(len);
        self.frame = None;
        match frame.opcode {
            Opcode::Ping => {
                give(Given::Ping(payload));
            }
            Opcode::Close => {
                let (code, reason) = close::read(payload)?;
                give(Given::Close(code, reason));
            }
            _ => {
                give(Given::Pong);
            }
        }
        Ok(Step::Did)
    }

    /// Takes `have` bytes of a data frame.
    fn data(
        &mut self,
        mut frame: Frame,
        have: usize,
        input: &mut Buf,
        terms: &Terms,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        if terms.discards {
            input.consume(have);
            frame.left -= have as u64;
            // The rest is discarded, so neither the mask nor the unmasked part matters.
            self.frame = (frame.left > 0).then_some(Frame { mask: None, clear: 0, ..frame });
            match &mut self.message {
                message if frame.left == 0 && frame.is_final => *message = None,
                Some(message) => message.discard(),
                None => {}
            }
            return Ok(Step::Did);
        }
        if let Some(mask) = frame.mask {
            mask::apply(&mut input[frame.clear..have], mask);
            frame.mask = Some(mask::after(mask, have - frame.clear));
            frame.clear = have;
        }
        let is_whole_frame = have as u64 == frame.left;
        let is_short = !frame.is_compressed || have <= STEP_MAX;
        if is_whole_frame && self.message.is_none() && is_short {
            return self.whole(frame, have, input, terms, give);
        }
        // A message of a single frame was not recorded by `begin`, unless it is taken in pieces.
        let message = self.message.get_or_insert_with(|| {
            Partial::begin(frame.opcode, frame.is_compressed, Mode::Messages)
        });
        let is_end = is_whole_frame && frame.is_final;
        match (message.mode, message.is_compressed) {
            (Mode::Messages, _) => {
                message.add(&input[..have])?;
                if message.hold(&self.held).is_err() {
                    return Ok(Step::NoRoom);
                }
                input.consume(have);
                if !is_end {
                    self.advance(frame, have);
                    return Ok(Step::Did);
                }
                self.frame = None;
                if message.inflates_in_steps() {
                    return Ok(Step::Did);
                }
                let Some(message) = self.message.take() else { return Ok(Step::Did) };
                let Partial { kind, is_compressed, bytes, .. } = *message;
                self.give_whole(kind, is_compressed, &bytes, terms, give)?;
            }
            (Mode::Pieces, false) => {
                message.piece(&input[..have], is_end, |piece| {
                    give(Given::Piece(piece));
                })?;
                input.consume(have);
                self.advance(frame, have);
            }
            (Mode::Pieces, true) => self.inflate_piece(frame, have, is_end, input, give)?,
        }
        Ok(Step::Did)
    }

    /// Decompresses a part of a complete message, and gives the message once all of it is
    /// decompressed.
    fn inflate_step(
        &mut self,
        terms: &Terms,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        let Some(partial) = &mut self.message else { return Ok(Step::Did) };
        let kind = partial.kind;
        let whole = if terms.discards {
            // The data to which later messages refer may become wrong, since those are discarded
            // too.
            Some(None)
        } else {
            let own = match &mut self.decompression {
                Decompression::Own(codec) => Some(&mut **codec),
                _ => None,
            };
            let (used, inflated, whole) = partial.inflate_step(own, terms.limits.message_max)?;
            self.inflated += cost(used, inflated);
            if partial.hold(&self.held).is_err() {
                return Ok(Step::NoRoom);
            }
            whole.map(Some)
        };
        if let Some(whole) = whole {
            self.end_message();
            if let Some(bytes) = whole {
                give(Given::Message(message(kind, &bytes)?));
            }
        }
        Ok(Step::Did)
    }

    /// Decompresses a piece from `have` bytes of a frame. It may not use all of them.
    fn inflate_piece(
        &mut self,
        mut frame: Frame,
        have: usize,
        is_end: bool,
        input: &mut Buf,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<(), Fault> {
        let Some(message) = &mut self.message else { return Ok(()) };
        let own = match &mut self.decompression {
            Decompression::Own(codec) => Some(&mut **codec),
            _ => None,
        };
        let give = |piece: Piece<'_>| {
            give(Given::Piece(piece));
        };
        let (used, inflated) = message.inflated_piece(&input[..have], is_end, own, give)?;
        let is_over = message.is_over;
        self.inflated += cost(used, inflated);
        input.consume(used);
        frame.left -= used as u64;
        frame.clear = frame.clear.saturating_sub(used);
        // The end of a message takes its own steps, after the payload.
        let goes_on = frame.left > 0 || is_end;
        self.frame = goes_on.then_some(frame);
        if is_over {
            self.end_message();
        }
        Ok(())
    }

    /// Gives a message of one frame that is complete in the input, without copying it.
    fn whole(
        &mut self,
        frame: Frame,
        have: usize,
        input: &mut Buf,
        terms: &Terms,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        self.frame = None;
        let kind = kind_of(frame.opcode);
        if frame.is_compressed {
            self.give_whole(kind, true, &input[..have], terms, give)?;
        } else if let Some(kind) = give(Given::Standing(message(kind, &input[..have])?)) {
            return Ok(Step::PassOn(kind, have));
        }
        input.consume(have);
        Ok(Step::Did)
    }

    fn give_whole(
        &mut self,
        kind: Kind,
        is_compressed: bool,
        bytes: &[u8],
        terms: &Terms,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<(), Fault> {
        if !is_compressed {
            give(Given::Message(message(kind, bytes)?));
            return Ok(());
        }
        codec::with_scratch(|scratch| {
            let max = terms.limits.message_max;
            let result = match &mut self.decompression {
                Decompression::Own(codec) => codec::decompress(codec, bytes, scratch, max),
                _ => {
                    let mut codec = codec::decompressor();
                    let result = codec::decompress(&mut codec, bytes, scratch, max);
                    codec::give_back(codec);
                    result
                }
            };
            self.inflated += cost(bytes.len(), scratch.len());
            result?;
            give(Given::Message(message(kind, scratch)?));
            Ok(())
        })
    }

    /// Advances by `used` bytes of a frame.
    fn advance(&mut self, mut frame: Frame, used: usize) {
        frame.left -= used as u64;
        frame.clear = 0;
        let is_over = frame.left == 0;
        if is_over && frame.is_final {
            return self.end_message();
        }
        self.frame = (!is_over).then_some(frame);
    }

    fn end_message(&mut self) {
        self.frame = None;
        if let Some(codec) = self.message.take().and_then(|message| message.codec) {
            codec::give_back(codec);
        }
    }
}

/// Returns what it costs to decompress this much input to this much output.
fn cost(compressed: usize, inflated: usize) -> usize {
    compressed.saturating_mul(COST_OF_COMPRESSED).max(inflated)
}

fn message(kind: Kind, bytes: &[u8]) -> Result<Message<'_>, Fault> {
    Ok(match kind {
        Kind::Text => Message::Text(utf8::whole(bytes)?),
        Kind::Binary => Message::Binary(bytes),
    })
}
