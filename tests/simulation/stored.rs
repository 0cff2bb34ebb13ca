//! Stored bodies, on disks of every kind, under all faults. Each request gets its own body back, or
//! the status for the state of its disk. When all have ended, no file is left.

use std::time::Duration;

use rotor::body::{Body, Faults, Spool, SpoolConfig};
use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, RecvMode, Server, ServerConfig,
};
use rotor::http::{Limits, Status};
use rotor::net::{ListenOptions, Listener};
use rotor::stream::Accept;
use rotor::{BoxError, Response, Scope};
use rotor_sim::net::{SimTcpListener, SimTcpStream};
use rotor_sim::{Script, Sim};

use crate::stage::{self, Clients};

/// Larger bodies go to a file.
const RAM_MAX: usize = 200;

/// The length of a piece.
const PIECE: usize = 400;

/// The offset where a disk is full or broken.
const BAD_AT: usize = 1_000;

/// Sends a body back.
struct Mirror;

impl Server for Mirror {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(Mirror, RecvMode::Stored { ram_max: RAM_MAX, max: 100_000 }).keep_deadline()
    }

    fn request_stored(
        self,
        body: Body,
        response: &mut server::Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let written = response.status(Status::OK).and_then(|()| {
            response.add_length(body.len())?;
            response.done_headers()?;
            response.write_stored(&body)?;
            response.done()
        });
        written.expect("it is in order");
        Next::finished()
    }
}

/// The kinds of disks, and for each the status of a body of a given length.
fn disk(kind: u64) -> (Faults, fn(usize) -> u16) {
    let none = Faults::none();
    match kind % 6 {
        0 => (none, |_| 200),
        1 => (none.short_writes(70), |_| 200),
        2 => (none.full_at(BAD_AT as u64), |len| if len > BAD_AT { 507 } else { 200 }),
        3 => (none.broken_at(BAD_AT as u64), |len| if len > BAD_AT { 500 } else { 200 }),
        4 => (none.without_descriptor(), |len| if len > RAM_MAX { 503 } else { 200 }),
        _ => (none.short_writes(30).full_at(BAD_AT as u64 - 1), |len| {
            if len >= BAD_AT { 507 } else { 200 }
        }),
    }
}

fn request(body: &[u8], number: u32) -> Vec<u8> {
    let mut request = b"POST / HTTP/1.1\r\nHost: server\r\n".to_vec();
    if number.is_multiple_of(2) {
        request.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
        request.extend_from_slice(body);
        return request;
    }
    request.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    for chunk in body.chunks(1 + number as usize * 177) {
        request.extend(format!("{:x}\r\n", chunk.len()).bytes());
        request.extend_from_slice(chunk);
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"0\r\n\r\n");
    request
}

/// Bodies that grow until one is refused, or to the end.
fn script(number: u32, status: fn(usize) -> u16) -> Script {
    let refusals = [&b"HTTP/1.1 408"[..], b"HTTP/1.1 500", b"HTTP/1.1 503"];
    let mut script =
        refusals.iter().fold(stage::persistent_script(), |script, at| script.may_refuse(at));
    for (index, len) in [10, RAM_MAX, RAM_MAX + 1, BAD_AT, 1_800].into_iter().enumerate() {
        let body: Vec<u8> = (0..len).map(|at| (at * (number as usize + 1) % 251) as u8).collect();
        script = script.send(&request(&body, number + index as u32));
        match status(len) {
            200 => {
                script = script.expect(b"HTTP/1.1 200 OK\r\n").receive_until(b"\r\n\r\n");
                script = script.expect(&body).pause(stage::think_time(number, index as u32));
            }
            status => {
                return script.expect(format!("HTTP/1.1 {status} ").as_bytes()).shutdown();
            }
        }
    }
    script.shutdown().expect_end()
}

fn scenario(sim: &mut Sim) -> Result<(), BoxError> {
    let (faults, status) = disk(sim.seed());
    let config = SpoolConfig::new("").ram_bytes_max(RAM_MAX).piece_bytes(PIECE);
    let spool = Spool::in_memory(config.unwritten_bytes_max(4 * PIECE), faults);
    let of_server = spool.clone();
    let server = sim.host("server", move |boot| {
        let mut creator = boot.new_loop()?;
        let address = std::net::SocketAddr::new(boot.address(), stage::PORT);
        // The slowest of these networks has windows of 64 bytes; the default minimum rates would
        // end its bodies. A client that is refused sends the rest of its body before it reads the
        // response.
        let minute = Duration::from_secs(60);
        let limits = Limits::new().body_rate_min(10).response_rate_min(10);
        let limits = limits.linger_timeout(minute).shutdown_timeout(minute);
        let config = ServerConfig::new().limits(limits).spool(of_server.clone());
        let seed = HttpSeed::<Mirror>::new((), config);
        creator.add_machine_with(|scope| {
            rotor_sim::Watched::<HttpAccept<Mirror, SimTcpListener>>::make(scope, |scope| {
                match SimTcpListener::bind(&address, &ListenOptions::new(), scope) {
                    Ok(listener) => Accept::listen(listener, seed, stage::patient(), scope),
                    Err(error) => Response::error(error),
                }
            })
        })?;
        Ok(creator.instantiate(()))
    })?;
    let of_all = spool.clone();
    sim.always("what is not written is bounded", move |_| {
        // Each may exceed it by a block or two.
        let (bytes, most) = (of_all.unwritten_bytes(), 4 * PIECE);
        if bytes <= most { Ok(()) } else { Err(format!("{bytes} bytes")) }
    });
    let mut clients = Clients::<SimTcpStream>::of(sim, server)?;
    for number in 0..6 {
        clients.add(sim, script(number, status));
    }
    stage::play(sim, server, &clients)?;
    // Work for a peer that has gone is dropped when its turn comes.
    sim.run_for(Duration::from_secs(60))?;
    if (spool.files(), spool.bytes(), spool.unwritten_bytes()) != (0, 0, 0) {
        return Err(format!("something is left: {spool:?}").into());
    }
    Ok(())
}

#[test]
fn each_body_is_echoed_or_fails_with_its_disk_and_no_file_is_left() {
    stage::check(scenario);
}
