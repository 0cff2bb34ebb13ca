//! Handlers that write as there is room: they are told of it, whatever arrives at the same time.

use rotor_core::{Port, Scope};
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server, ServerConfig,
};
use rotor_http::{MessageError, Status};
use rotor_stream::testing::Driver;

#[cfg(feature = "http2")]
use crate::http2::client::{Client, config, frame, preface_and_settings};
use crate::probe::{get, request, seconds};
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

#[test]
fn the_notice_of_room_comes_after_a_piece_of_the_body_for_which_nothing_is_written() {
    let head = request("POST /", "Content-Length: 2000\r\n", "");
    assert_eq!(responses(&head, &[b'x'; 1_500]), 1);
}

/// Writes the beginning of its response, waits for a value, and ends when it is told that there is
/// room: the beginning was sent while nothing could be told.
struct Waits;

type PortOfWaits = Option<Port<()>>;

impl Server for Waits {
    type Context = PortOfWaits;
    type Seed = ();
    type Upgrade = NoUpgrade<PortOfWaits>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, PortOfWaits>,
    ) -> Next<Self> {
        Paced::begin(response).expect("a response that begins");
        let (port, future) = scope.create_future();
        **scope = Some(port);
        Next::wait(future, scope.now() + seconds(1), |_, _, _| Next::go_on(Waits).keep_deadline())
    }

    fn response_flushed(
        self,
        response: &mut Response<'_>,
        _: &mut Scope<'_, PortOfWaits>,
    ) -> Next<Self> {
        response.done().expect("a response that ends");
        Next::finished()
    }
}

fn waiting_server(config: ServerConfig) -> Driver<Connection<Waits>> {
    Driver::new(HttpSeed::new((), config), None)
}

fn set_value(driver: &mut Driver<Connection<Waits>>) {
    let port = driver.context_mut().take().expect("the handler waits for it");
    port.set(()).expect("the handler waits for it");
    driver.settle();
}

#[test]
fn the_notice_of_room_comes_after_a_wait_in_which_everything_was_sent() {
    let mut driver = waiting_server(ServerConfig::new());
    driver.send(&get("/"));
    set_value(&mut driver);
    assert_eq!(answers(&driver.take_received()).len(), 1);
}

#[cfg(feature = "http2")]
#[test]
fn the_notice_of_room_on_a_stream_comes_after_a_wait_in_which_everything_was_sent() {
    let mut client = Client::on(waiting_server(config()));
    client.send(&preface_and_settings(&[(4, 1 << 20)]));
    client.send(&frame(8, 0, 0, &(1u32 << 20).to_be_bytes()));
    client.get(1, "/");
    assert_eq!(client.body_len(1), 100_000);
    set_value(&mut client.driver);
    client.read();
    assert!(client.answer(1).is_whole);
}
