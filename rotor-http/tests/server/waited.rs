//! The timeout of a handler after a wait in its place.

use std::time::Duration;

use rotor_core::{Port, Scope};
use rotor_http::Status;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Routed, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::later::SingleRoute;
use crate::probe::get;
use crate::wire::transcript;

const SECOND: Duration = Duration::from_secs(1);

/// What the test and the handlers share.
#[derive(Default)]
struct Shared {
    port: Option<Port<String>>,
}

/// Waits for another result first, then for what its path says, within its timeout.
struct WaitingServer;

impl WaitingServer {
    fn ask(scope: &mut Scope<'_, Shared>) -> Next<WaitingServer> {
        let (port, future) = scope.create_future();
        scope.port = Some(port);
        Next::wait(future, scope.now() + SECOND, |_, _, _| {
            Next::go_on(WaitingServer).keep_deadline()
        })
    }
}

impl Server for WaitingServer {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        match head.path() {
            "/wait" => WaitingServer::ask(scope),
            "/after" => {
                Next::after(scope.now() + SECOND, |_, _| Next::go_on(WaitingServer).keep_deadline())
            }
            "/long" => Next::after(scope.now() + 100 * SECOND, |_, _| {
                Next::go_on(WaitingServer).keep_deadline()
            }),
            "/body" => Next::after(scope.now() + SECOND, |_, _| {
                Next::recv(WaitingServer, RecvMode::Buffered(9)).keep_deadline()
            }),
            _ => Next::go_on(WaitingServer).deadline(scope.now() + 9 * SECOND),
        }
    }

    fn wakeup(self, _: &mut Response<'_>, scope: &mut Scope<'_, Shared>) -> Next<Self> {
        match scope.port.is_none() {
            true => WaitingServer::ask(scope),
            false => Next::go_on(self).keep_deadline(),
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        response.reply(Status::OK, "text/plain", body).into()
    }
}

/// The length of the wait does not change the handler timeout.
#[test]
fn a_handler_after_a_wait_has_the_full_handler_timeout() {
    const MILLI: Duration = Duration::from_millis(1);
    fn test<S: Server<Context = Shared> + 'static>(seed: HttpSeed<S>) {
        let new = || Driver::<Connection<S>>::new(seed.clone(), Shared::default());
        // As after a part of the body, the timeout starts anew.
        for (path, waits) in [("/wait", SECOND / 2), ("/after", SECOND), ("/long", 100 * SECOND)] {
            let mut driver = new();
            driver.send(&get(path));
            driver.advance(waits);
            if let Some(port) = driver.context_mut().port.take() {
                port.set(String::new()).expect("somebody waits");
                driver.settle();
            }
            driver.advance(60 * SECOND - MILLI);
            assert_eq!((driver.take_received(), driver.is_ended()), (vec![], false), "{path}");
            driver.advance(2 * MILLI);
            assert!(driver.take_received().starts_with(b"HTTP/1.1 503 "), "{path}");
        }
        // While the body comes, only the peer is timed.
        let mut driver = new();
        driver.send(b"POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
        driver.advance(SECOND);
        driver.advance(4 * SECOND);
        driver.send(b"b");
        assert_eq!(transcript(&driver.take_received()), "200 ab");
        // A deadline that the handler has set itself is kept.
        let mut driver = new();
        driver.send(&get("/own"));
        driver.advance(SECOND);
        driver.wakeup();
        let port = driver.context_mut().port.take().expect("it waits");
        port.set(String::new()).expect("somebody waits");
        driver.settle();
        driver.advance(8 * SECOND - 2 * MILLI);
        assert_eq!((driver.take_received(), driver.is_ended()), (vec![], false));
        driver.advance(3 * MILLI);
        assert!(driver.take_received().starts_with(b"HTTP/1.1 503 "));
    }
    test::<WaitingServer>(HttpSeed::new((), ServerConfig::new()));
    test::<Routed<SingleRoute<WaitingServer, true>>>(HttpSeed::new(((), ()), ServerConfig::new()));
}
