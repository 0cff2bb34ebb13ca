//! A read stops before an urgent byte, so an event must report it: a machine that reads on edges
//! would miss what follows it.
#![cfg(any(target_os = "linux", target_os = "android"))]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream as StdStream};

use rotor_core::net::TcpStream;
use rotor_core::{Config, EventSet, Infallible, Interest, Loop, Machine, Response, Scope};

/// Records each event, reads once, and ends when it has what follows the urgent byte.
struct Reader(TcpStream);

impl Machine for Reader {
    type Context = (EventSet, Vec<Vec<u8>>);
    type Seed = Infallible;

    fn ready(
        mut self,
        events: EventSet,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Response<Self, Infallible> {
        scope.0 |= events;
        let mut chunk = [0; 100];
        while let Ok(count) = self.0.read(&mut chunk) {
            scope.1.push(chunk[..count].to_vec());
            if chunk[..count].ends_with(b"after") {
                return Response::done();
            }
        }
        Response::ok(self)
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the other end is no machine")]
fn an_urgent_byte_is_reported_by_an_event() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut peer = StdStream::connect(listener.local_addr()?)?;
    let (socket, _) = listener.accept()?;
    socket2::SockRef::from(&socket).set_out_of_band_inline(true)?;
    peer.write_all(b"before")?;
    socket2::SockRef::from(&peer).send_out_of_band(b"!")?;
    peer.write_all(b"after")?;

    let mut creator = Loop::<Reader>::new(&Config::new())?;
    creator
        .add_machine_with(|scope| {
            Response::attempt(|| {
                let mut socket = TcpStream::from_std(socket, scope)?;
                scope.register(&mut socket, Interest::Both)?;
                Ok(Response::ok(Reader(socket)))
            })
        })
        .expect("a machine");
    let mut instance = creator.instantiate((EventSet::EMPTY, Vec::new()));
    instance.run()?;
    let (events, reads) = instance.into_context();
    assert!(events.contains(EventSet::URGENT), "{events:?}");
    assert_eq!(
        reads,
        [&b"before"[..], b"!after"],
        "each read but the last is short, and none drains"
    );
    Ok(())
}
