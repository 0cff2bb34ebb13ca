//! The handler: it sees the body piece by piece, computes its length and checksum, and discards it.

use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{BodyError, Method, Status, Trailers};

/// The smallest piece in bytes, about as much as one system call reads, so that small segments do
/// not cause a call each.
const PIECE_MIN: usize = 8 << 10;

/// One upload.
pub(crate) struct Upload {
    count: u64,
    checksum: Fnv,
}

/// FNV-1a with 64 bits. It takes three lines in any language, so that a client can compare, and is
/// enough to detect that something was lost or swapped. It is no protection against an attacker; an
/// application would use a cryptographic hash.
struct Fnv(u64);

impl Fnv {
    const START: Fnv = Fnv(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl Server for Upload {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if matches!(head.method(), Method::Post | Method::Put) {
            // No deadline: however long the body takes, the connection checks that the client keeps
            // sending.
            let upload = Upload { count: 0, checksum: Fnv::START };
            return Next::recv(upload, RecvMode::Progressive(PIECE_MIN)).no_deadline();
        }
        let allow: &[(&str, &[u8])] = &[("Allow", b"POST, PUT")];
        response
            .reply_with(
                Status::METHOD_NOT_ALLOWED,
                allow,
                "text/plain",
                b"405 Method Not Allowed\n",
            )
            .into()
    }

    fn request_chunk(
        mut self,
        chunk: &[u8],
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        self.count += chunk.len() as u64;
        self.checksum.add(chunk);
        Next::go_on(self).keep_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let line = format!("{} bytes, FNV-1a {:016x}\n", self.count, self.checksum.0);
        response.reply(Status::OK, "text/plain", line.as_bytes()).into()
    }

    fn bad_request(self, error: BodyError, _: &mut Scope<'_, ()>) {
        log::debug!("an upload ended after {} bytes: {error}", self.count);
    }
}
