//! The server: 8 MiB in chunks, from memory that all responses share.

use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor::http::{MessageError, Status};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::stream::Block;
use rotor::{Config, Loop, Response as Answer};

use crate::BoxError;

/// The length of a chunk, in bytes.
const CHUNK: usize = 32 << 10;

struct Sends;

impl Sends {
    fn write(chunks: &[Block], response: &mut Response<'_>) -> Result<(), MessageError> {
        response.status(Status::OK)?;
        response.add_chunked()?;
        response.done_headers()?;
        for chunk in chunks {
            response.write_block(chunk.clone())?;
        }
        response.done()
    }
}

impl Server for Sends {
    type Context = Vec<Block>;
    type Seed = ();
    type Upgrade = NoUpgrade<Vec<Block>>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Vec<Block>>,
    ) -> Next<Self> {
        match Sends::write(scope, response) {
            Ok(()) => Next::finished(),
            Err(_) => Next::fail(Status::INTERNAL_SERVER_ERROR),
        }
    }
}

pub(crate) fn serve() -> Result<(), BoxError> {
    let mut creator = Loop::<HttpAccept<Sends, TcpListener>>::new(&Config::new())?;
    let mut address = None;
    creator.add_machine_with(|scope| {
        Answer::attempt(|| {
            let any = "127.0.0.1:0".parse()?;
            let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
            address = listener.local_address();
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    println!("{}", address.ok_or("it listens nowhere")?);
    let octets = bodies_work::octets();
    let chunks = octets.chunks(CHUNK).map(|chunk| Block::from(chunk.to_vec())).collect();
    creator.instantiate(chunks).run()?;
    Ok(())
}
