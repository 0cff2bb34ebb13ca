//! Handlers that write as there is room: they are told of it, whatever arrives at the same time.

use rotor_core::Scope;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server, ServerConfig,
};
use rotor_http::{MessageError, Status};
use rotor_stream::testing::Driver;

use crate::probe::{get, request};
use crate::wire::answers;

/// Writes more than the mark at once, and ends its response when it is told that there is room. In
/// the meantime it waits for its peer's end, and for larger pieces of the body than those that come.
struct Paced;

impl Paced {
    fn begin(response: &mut Response<'_>) -> Result<(), MessageError> {
        response.status(Status::OK)?;
        response.add_chunked()?;
        response.done_headers()?;
        response.write_body([b'x'; 100_000])
    }
}

impl Server for Paced {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    const HEARS_END: bool = true;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Paced::begin(response).expect("a response that begins");
        match head.has_body() {
            true => Next::recv(Paced, RecvMode::Progressive(1_000)).keep_deadline(),
            false => Next::go_on(Paced).keep_deadline(),
        }
    }

    fn response_flushed(self, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        response.done().expect("a response that ends");
        Next::finished()
    }
}

/// Sends a head, and more once the output is above its mark. Returns how many responses come when
/// there is room.
fn responses(head: &[u8], more: &[u8]) -> usize {
    let mut driver = Driver::<Connection<Paced>>::new(HttpSeed::new((), ServerConfig::new()), ());
    driver.limit_room(10);
    driver.send(head);
    driver.send(more);
    assert_eq!(driver.unread_len(), more.len(), "nothing is read above the mark");
    driver.make_room(1 << 20);
    answers(&driver.take_received()).len()
}

#[test]
fn a_handler_is_told_of_room_when_the_next_request_comes_with_it() {
    assert_eq!(responses(&get("/"), &get("/")), 2);
}

#[test]
fn a_handler_is_told_of_room_when_a_part_of_a_piece_comes_with_it() {
    let head = request("POST /", "Content-Length: 2000\r\n", "");
    assert_eq!(responses(&head, b"0123456789"), 1);
}
