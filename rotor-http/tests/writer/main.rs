//! What the message writers put on the wire. Every misuse is refused without a written byte or a
//! changed state.

mod requests;
mod responses;

use rotor_http::h1::{MessageError, ReplyTo, RequestState, ResponseState, Status, Version};

const REPLY: ReplyTo = ReplyTo { keep_alive: true, ..ReplyTo::unreadable() };
const OLD_REPLY: ReplyTo = ReplyTo { version: Version::Http10, ..REPLY };
const HEAD_REPLY: ReplyTo = ReplyTo { is_head: true, ..REPLY };

/// A response that is being written.
struct Writer {
    out: Vec<u8>,
    state: ResponseState,
}

type Outcome = Result<(), MessageError>;

impl Writer {
    fn new(reply: ReplyTo) -> Writer {
        Writer { out: Vec::new(), state: ResponseState::new(reply) }
    }

    fn with_status(reply: ReplyTo, code: u16) -> Writer {
        let mut writer = Writer::new(reply);
        writer.accept(|state, out| state.status(out, status(code)));
        writer
    }

    fn accept(
        &mut self,
        call: impl FnOnce(&mut ResponseState, &mut Vec<u8>) -> Outcome,
    ) -> &mut Writer {
        call(&mut self.state, &mut self.out).expect("a call in its place");
        self
    }

    /// The call must be refused and change nothing.
    fn reject(
        &mut self,
        call: impl FnOnce(&mut ResponseState, &mut Vec<u8>) -> Outcome,
        error: MessageError,
    ) -> &mut Writer {
        let before = (self.out.clone(), format!("{:?}", self.state));
        assert_eq!(call(&mut self.state, &mut self.out), Err(error));
        assert_eq!(
            (self.out.clone(), format!("{:?}", self.state)),
            before,
            "a refused call leaves no trace: {error}"
        );
        self
    }

    fn headers_done(&mut self) -> &mut Writer {
        self.accept(|state, out| state.done_headers(out, None, None))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.out).expect("ASCII")
    }

    fn body(&self) -> &str {
        self.text().split_once("\r\n\r\n").expect("a whole head").1
    }
}

fn status(code: u16) -> Status {
    Status::new(code).expect("three digits")
}

#[test]
fn codec_states_stay_small() {
    assert!(size_of::<ResponseState>() <= 40, "{}", size_of::<ResponseState>());
    assert!(size_of::<RequestState>() <= 32, "{}", size_of::<RequestState>());
    assert!(size_of::<rotor_http::h1::HeadReader>() <= 8);
    assert!(
        size_of::<rotor_http::h1::BodyDecoder>() <= 40,
        "{}",
        size_of::<rotor_http::h1::BodyDecoder>()
    );
}
