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
use crate::frame::header::{self, Header, HeaderRead, Opcode};
use crate::frame::mask::{self, Mask};
use crate::frame::utf8;
use crate::message::{Kind, Message, Piece};
use crate::next::Mode;
use crate::partial::{Limits, PartialMessage, kind_of, wire_bytes_max};

/// Frames up to this length are handled in the input, when they are complete. Longer ones are taken
/// as they arrive.
const WHOLE_FRAME_MAX: u64 = 32 << 10;

/// How much of a longer frame is waited for at most, so that there are fewer calls.
const PART_WANTED: u64 = 16 << 10;

/// As how many bytes of output a byte of compressed input counts. A block of twenty bytes with its
/// own code table takes as long as producing a kilobyte of well compressed data, and may produce
/// nothing.
const COMPRESSED_BYTE_COST: usize = 64;

/// The receiving half of a connection.
pub(crate) struct Incoming {
    is_client: bool,
    decompression: Decompression,
    /// The frame whose payload is arriving.
    frame: Option<Frame>,
    /// The incomplete message.
    message: Option<Box<PartialMessage>>,
    /// The memory of all incomplete messages, of all connections.
    held: Arc<BytesHeld>,
    control: Bucket,
    /// The input cannot hold what would be waited for: frames are taken as they arrive, however
    /// short they are.
    pub(crate) is_stepwise: bool,
    /// How many bytes were decompressed in this turn: the larger one of the output and the cost of
    /// the input.
    pub(crate) inflated: usize,
    /// The time of that turn.
    pub(crate) inflated_at: Time,
}

/// How messages are decompressed.
pub(crate) enum Decompression {
    None,
    /// Each by itself, with a codec of the thread.
    PerMessage,
    /// Each with a codec that knows the earlier ones.
    WithTakeover(Box<Decompress>),
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
    remaining: u64,
    /// How many bytes at the front of the input are unmasked already.
    unmasked: usize,
}

/// The result of a step, for the handler or the connection.
pub(crate) enum InputEvent<'a> {
    Message(Message<'a>),
    /// A message that is still at the front of the input. The handler may want to [pass it
    /// on](Step::PassOn).
    MessageInPlace(Message<'a>),
    Piece(Piece<'a>),
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    Close(Code, &'a str),
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Something was done; continue.
    Progress,
    /// Nothing can be done before the input has this many bytes.
    Needs(usize),
    /// A complete message of this many bytes was given, is still in the input, and is to be passed
    /// on as this kind.
    Forward(Kind, usize),
    /// Nothing more fits into the memory of incomplete messages.
    NoRoom,
}

/// The conditions of a step.
#[derive(Clone, Copy)]
pub(crate) struct StepOptions {
    pub(crate) limits: Limits,
    pub(crate) now: Time,
    /// How messages that begin now are taken.
    pub(crate) mode: Mode,
    /// Messages are discarded, because the connection is closing.
    pub(crate) discards: bool,
    /// The peer has not answered a ping.
    pub(crate) awaits_pong: bool,
}

impl Decompression {
    pub(crate) fn of(has_takeover: bool) -> Decompression {
        if has_takeover {
            Decompression::WithTakeover(Box::new(codec::take_decompressor()))
        } else {
            Decompression::PerMessage
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
            inflated_at: Time::ZERO,
        }
    }

    /// Returns how many bytes it holds beside its own size: an incomplete message, and codecs.
    pub(crate) fn held_bytes(&self) -> usize {
        let own = match self.decompression {
            Decompression::WithTakeover(_) => codec::DECOMPRESSOR_BYTES,
            Decompression::None | Decompression::PerMessage => 0,
        };
        own + self.message.as_ref().map_or(0, |message| message.held_bytes())
    }

    /// Returns whether a message is complete and is being decompressed.
    pub(crate) fn is_inflating(&self) -> bool {
        self.message.as_ref().is_some_and(|message| message.is_inflating())
    }

    /// Does the next thing that is possible with the input, and calls `emit` with the result. If
    /// `emit` returns a kind, the message is to be passed on.
    pub(crate) fn step(
        &mut self,
        input: &mut Buf,
        terms: &StepOptions,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        if self.is_inflating() {
            return self.inflate_step(terms, emit);
        }
        let frame = match self.frame {
            Some(frame) => frame,
            None => match header::read(input)? {
                HeaderRead::Needs(count) => return Ok(Step::Needs(count)),
                HeaderRead::Header(header, size) => {
                    self.begin_frame(&header, terms)?;
                    input.consume(size);
                    let Header { opcode, is_final, is_compressed, mask, len: remaining } = header;
                    let frame =
                        Frame { opcode, is_final, is_compressed, mask, remaining, unmasked: 0 };
                    *self.frame.insert(frame)
                }
            },
        };
        if frame.opcode.is_control() {
            return self.handle_control(frame, input, emit);
        }
        let have = frame.remaining.min(input.len() as u64);
        let is_waited_for = frame.remaining <= WHOLE_FRAME_MAX && !self.is_stepwise;
        let wanted = match terms.mode {
            _ if is_waited_for => frame.remaining,
            _ if self.is_stepwise => 1,
            // Pieces are handed over as soon as they arrive.
            Mode::Pieces => 1,
            Mode::Messages => frame.remaining.min(PART_WANTED),
        };
        if have < wanted.min(frame.remaining) {
            return Ok(Step::Needs(wanted as usize));
        }
        self.handle_data(frame, have as usize, input, terms, emit)
    }

    /// Checks whether a frame with this header is allowed here.
    fn begin_frame(&mut self, header: &Header, terms: &StepOptions) -> Result<(), Fault> {
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
            Opcode::Pong if terms.awaits_pong => Ok(()),
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
                    let message = self.message.insert(PartialMessage::new(
                        header.opcode,
                        header.is_compressed,
                        terms.mode,
                    ));
                    // A message of a single frame has no fragments.
                    if !header.is_final {
                        message.count_fragment(header.len, limits)?;
                    }
                }
                let is_delivered_whole = terms.mode == Mode::Messages;
                let most = wire_bytes_max(header.is_compressed, limits);
                if is_delivered_whole && header.len > most as u64 {
                    Err(Fault::TooLong)
                } else {
                    Ok(())
                }
            }
        }
    }

    fn handle_control(
        &mut self,
        frame: Frame,
        input: &mut Buf,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        let len = frame.remaining as usize;
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
                emit(InputEvent::Ping(payload));
            }
            Opcode::Close => {
                let (code, reason) = close::read(payload)?;
                emit(InputEvent::Close(code, reason));
            }
            _ => {
                emit(InputEvent::Pong(payload));
            }
        }
        Ok(Step::Progress)
    }

    /// Takes `have` bytes of a data frame.
    fn handle_data(
        &mut self,
        mut frame: Frame,
        have: usize,
        input: &mut Buf,
        terms: &StepOptions,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        if terms.discards {
            input.consume(have);
            frame.remaining -= have as u64;
            // The rest is discarded, so neither the mask nor the unmasked part matters.
            self.frame =
                (frame.remaining > 0).then_some(Frame { mask: None, unmasked: 0, ..frame });
            match &mut self.message {
                message if frame.remaining == 0 && frame.is_final => *message = None,
                Some(message) => message.discard(),
                None => {}
            }
            return Ok(Step::Progress);
        }
        if let Some(mask) = frame.mask {
            mask::apply(&mut input[frame.unmasked..have], mask);
            frame.mask = Some(mask::rotated(mask, have - frame.unmasked));
            frame.unmasked = have;
        }
        let is_whole_frame = have as u64 == frame.remaining;
        let is_short = !frame.is_compressed || terms.limits.inflates_at_once(have);
        if is_whole_frame && self.message.is_none() && is_short {
            return self.handle_whole_frame(frame, have, input, terms, emit);
        }
        // A message of a single frame was not recorded by `begin`, unless it is taken in pieces.
        let message = self.message.get_or_insert_with(|| {
            PartialMessage::new(frame.opcode, frame.is_compressed, Mode::Messages)
        });
        let is_end = is_whole_frame && frame.is_final;
        match (message.mode, message.is_compressed) {
            (Mode::Messages, _) => {
                message.add(&input[..have])?;
                if message.reserve_memory(&self.held).is_err() {
                    return Ok(Step::NoRoom);
                }
                input.consume(have);
                if !is_end {
                    self.consume_payload(frame, have);
                    return Ok(Step::Progress);
                }
                self.frame = None;
                if message.needs_stepwise_inflation(terms.limits) {
                    return Ok(Step::Progress);
                }
                let Some(message) = self.message.take() else { return Ok(Step::Progress) };
                let PartialMessage { kind, is_compressed, bytes, .. } = *message;
                self.emit_message(kind, is_compressed, &bytes, terms, emit)?;
            }
            (Mode::Pieces, false) => {
                message.piece(&input[..have], is_end, |piece| {
                    emit(InputEvent::Piece(piece));
                })?;
                input.consume(have);
                self.consume_payload(frame, have);
            }
            (Mode::Pieces, true) => self.inflate_piece(frame, have, is_end, input, emit)?,
        }
        Ok(Step::Progress)
    }

    /// Decompresses a part of a complete message, and gives the message once all of it is
    /// decompressed.
    fn inflate_step(
        &mut self,
        terms: &StepOptions,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        let Some(partial) = &mut self.message else { return Ok(Step::Progress) };
        let kind = partial.kind;
        let whole = if terms.discards {
            // The data to which later messages refer may become wrong, since those are discarded
            // too.
            Some(None)
        } else {
            let own = match &mut self.decompression {
                Decompression::WithTakeover(codec) => Some(&mut **codec),
                _ => None,
            };
            let (used, inflated, whole) = partial.inflate_step(own, terms.limits.message_max)?;
            self.inflated += inflation_cost(used, inflated);
            if partial.reserve_memory(&self.held).is_err() {
                return Ok(Step::NoRoom);
            }
            whole.map(Some)
        };
        if let Some(whole) = whole {
            self.end_message();
            if let Some(bytes) = whole {
                emit(InputEvent::Message(to_message(kind, &bytes)?));
            }
        }
        Ok(Step::Progress)
    }

    /// Decompresses a piece from `have` bytes of a frame. It may not use all of them.
    fn inflate_piece(
        &mut self,
        mut frame: Frame,
        have: usize,
        is_end: bool,
        input: &mut Buf,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<(), Fault> {
        let Some(message) = &mut self.message else { return Ok(()) };
        let own = match &mut self.decompression {
            Decompression::WithTakeover(codec) => Some(&mut **codec),
            _ => None,
        };
        let emit = |piece: Piece<'_>| {
            emit(InputEvent::Piece(piece));
        };
        let (used, inflated) = message.inflate_piece(&input[..have], is_end, own, emit)?;
        let is_finished = message.is_finished;
        self.inflated += inflation_cost(used, inflated);
        input.consume(used);
        frame.remaining -= used as u64;
        frame.unmasked = frame.unmasked.saturating_sub(used);
        // The end of a message takes its own steps, after the payload.
        let has_more = frame.remaining > 0 || is_end;
        self.frame = has_more.then_some(frame);
        if is_finished {
            self.end_message();
        }
        Ok(())
    }

    /// Gives a message of one frame that is complete in the input, without copying it.
    fn handle_whole_frame(
        &mut self,
        frame: Frame,
        have: usize,
        input: &mut Buf,
        terms: &StepOptions,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        self.frame = None;
        let kind = kind_of(frame.opcode);
        if frame.is_compressed {
            self.emit_message(kind, true, &input[..have], terms, emit)?;
        } else if let Some(kind) =
            emit(InputEvent::MessageInPlace(to_message(kind, &input[..have])?))
        {
            return Ok(Step::Forward(kind, have));
        }
        input.consume(have);
        Ok(Step::Progress)
    }

    fn emit_message(
        &mut self,
        kind: Kind,
        is_compressed: bool,
        bytes: &[u8],
        terms: &StepOptions,
        emit: impl FnOnce(InputEvent<'_>) -> Option<Kind>,
    ) -> Result<(), Fault> {
        if !is_compressed {
            emit(InputEvent::Message(to_message(kind, bytes)?));
            return Ok(());
        }
        codec::with_scratch(|scratch| {
            let max = terms.limits.message_max;
            let result = match &mut self.decompression {
                Decompression::WithTakeover(codec) => {
                    codec::decompress(codec, false, bytes, scratch, max)
                }
                _ => {
                    let mut codec = codec::take_decompressor();
                    let result = codec::decompress(&mut codec, true, bytes, scratch, max);
                    codec::return_decompressor(codec);
                    result
                }
            };
            self.inflated += inflation_cost(bytes.len(), scratch.len());
            result?;
            emit(InputEvent::Message(to_message(kind, scratch)?));
            Ok(())
        })
    }

    /// Advances by `used` bytes of a frame.
    fn consume_payload(&mut self, mut frame: Frame, used: usize) {
        frame.remaining -= used as u64;
        frame.unmasked = 0;
        let is_complete = frame.remaining == 0;
        if is_complete && frame.is_final {
            return self.end_message();
        }
        self.frame = (!is_complete).then_some(frame);
    }

    fn end_message(&mut self) {
        self.frame = None;
        if let Some(codec) = self.message.take().and_then(|message| message.codec) {
            codec::return_decompressor(codec);
        }
    }
}

/// Returns what it costs to decompress this much input to this much output.
fn inflation_cost(compressed: usize, inflated: usize) -> usize {
    compressed.saturating_mul(COMPRESSED_BYTE_COST).max(inflated)
}

fn to_message(kind: Kind, bytes: &[u8]) -> Result<Message<'_>, Fault> {
    Ok(match kind {
        Kind::Text => Message::Text(utf8::check_text(bytes)?),
        Kind::Binary => Message::Binary(bytes),
    })
}
