//! `Incoming`: the receiving half of a connection: from bytes to messages. What it has of one that
//! is not whole is in `partial`.

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

/// Frames up to this length are handled where they stand in the input; longer ones are taken as
/// they come.
const WHOLE_MAX: u64 = 32 << 10;

/// How much of a longer frame is waited for, at most: fewer calls for the same bytes.
const PART_WANTED: u64 = 16 << 10;

/// As how many bytes one counts that is decompressed. A block of twenty with a table of codes of its own takes as
/// long as it takes to make a kilobyte of what was compressed well, and may come to nothing.
const COST_OF_COMPRESSED: usize = 64;

/// The receiving half of a connection.
pub(crate) struct Incoming {
    is_client: bool,
    decompression: Decompression,
    /// The frame whose payload is coming.
    frame: Option<Frame>,
    /// The message that has begun and is not whole.
    message: Option<Box<Partial>>,
    /// What the messages that are not whole take, of all connections together.
    held: Arc<BytesHeld>,
    control: Bucket,
    /// What is waited for cannot come at once: frames are taken as they come, however short.
    pub(crate) is_stepwise: bool,
    /// How many bytes were decompressed since somebody looked: what came of them, or what they cost,
    /// whichever is more.
    pub(crate) inflated: usize,
}

/// How messages are decompressed.
pub(crate) enum Decompression {
    None,
    /// Each by itself, by a codec of the thread.
    Alone,
    /// Each with what came before it.
    Own(Box<Decompress>),
}

/// A frame whose header has come.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    is_final: bool,
    is_compressed: bool,
    /// Turned so that it begins with the next byte that has one.
    mask: Option<Mask>,
    /// How much of the payload was not consumed.
    left: u64,
    /// From how many bytes at the front of the input the mask was taken already.
    clear: usize,
}

/// What has come, for whoever is to have it.
pub(crate) enum Given<'a> {
    Message(Message<'a>),
    /// A message that is the first thing in the input. Whoever has it may want it
    /// [passed on](Step::PassOn).
    Standing(Message<'a>),
    Piece(Piece<'a>),
    Ping(&'a [u8]),
    Pong,
    Close(Code, &'a str),
}

/// What a step has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Something: go on.
    Did,
    /// Nothing before so many bytes are in the input.
    Needs(usize),
    /// So many bytes, a whole message that was given, are still in the input, and are to be passed
    /// on as this.
    PassOn(Kind, usize),
    /// Nothing: all messages that are not whole take as much as they may.
    NoRoom,
}

/// How a step is made.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) limits: Limits,
    pub(crate) now: Time,
    /// For messages that begin now.
    pub(crate) mode: Mode,
    /// Messages are thrown away: the connection is closing.
    pub(crate) discards: bool,
    /// The peer was sent a ping that it has not answered.
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

    /// What it holds beside its own size: what has come of a message, and codecs.
    pub(crate) fn held_bytes(&self) -> usize {
        let own = match self.decompression {
            Decompression::Own(_) => codec::DECOMPRESSOR_BYTES,
            Decompression::None | Decompression::Alone => 0,
        };
        own + self.message.as_ref().map_or(0, |message| message.held_bytes())
    }

    /// Does the next thing that can be done with the input, and gives what comes of it; to which the
    /// answer may be to pass it on.
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
            // Pieces should go on as soon as they come.
            Mode::Pieces => 1,
            Mode::Messages => frame.left.min(PART_WANTED),
        };
        if have < wanted.min(frame.left) {
            return Ok(Step::Needs(wanted as usize));
        }
        self.data(frame, have as usize, input, terms, give)
    }

    /// Looks at a header: may there be such a frame here?
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
            // It has to come (RFC 6455 §5.5.2).
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

    /// Takes `have` bytes of a frame of a message.
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
            // The rest is discarded, so neither the mask nor where it was taken off matters.
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
        // A message of a single frame has nothing noted yet, unless it goes in pieces.
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

    /// Decompresses some of a message that has come whole, and gives that once it is all.
    fn inflate_step(
        &mut self,
        terms: &Terms,
        give: impl FnOnce(Given<'_>) -> Option<Kind>,
    ) -> Result<Step, Fault> {
        let Some(partial) = &mut self.message else { return Ok(Step::Did) };
        let kind = partial.kind;
        let whole = if terms.discards {
            // What the next one refers to need not be right: it is discarded, too.
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

    /// Decompresses a piece of `have` bytes of a frame; there may be more to come of them.
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
        // The end of a message takes steps of its own, after the payload.
        let goes_on = frame.left > 0 || is_end;
        self.frame = goes_on.then_some(frame);
        if is_over {
            self.end_message();
        }
        Ok(())
    }

    /// A message of one frame, which is all in the input: it is handed over where it stands.
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

    /// Goes on behind so many bytes of a frame.
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

/// What it costs to decompress so many bytes to so many.
fn cost(compressed: usize, inflated: usize) -> usize {
    compressed.saturating_mul(COST_OF_COMPRESSED).max(inflated)
}

fn message(kind: Kind, bytes: &[u8]) -> Result<Message<'_>, Fault> {
    Ok(match kind {
        Kind::Text => Message::Text(utf8::whole(bytes)?),
        Kind::Binary => Message::Binary(bytes),
    })
}
