//! `RequestSource`: where a connection gets its requests from.

use rotor_core::Scope;
use rotor_stream::Fatal;

use super::handler::Client;
use super::job::Job;

/// The source of one connection's requests: a pool, a queue, or a single request.
///
/// The source belongs to the connection and is dropped with it, so its `Drop` shows that the
/// connection has ended.
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives a connection no requests of `{K}`",
    note = "a `Pool` has a source of its own; one connection by itself needs a type that implements `RequestSource`"
)]
#[doc(alias = "Feed")]
pub trait RequestSource<K: Client>: Sized {
    /// Called when the connection has nothing to do. Returns its next request, if there is one.
    ///
    /// With HTTP/1.1, it is called when the connection is set up, after each exchange after which
    /// the connection can be reused, and when the connection is woken while it has nothing to do;
    /// `is_new` is true until a request was made. A source that returns [`Idle`](Offer::Idle) must
    /// wake the connection, by a notifier from this scope, when it has something else to return.
    /// Until then the connection watches for its end.
    fn next(&mut self, is_new: bool, scope: &mut Scope<'_, K::Context>) -> Offer<K>;

    /// Called with a request that is to be made on another connection: this connection ended during
    /// the request, and the request [may be made again](Job::is_repeated); or the connection turned
    /// out to be unusable before the request was begun; or the server refused the request without
    /// processing it (HTTP/2). The connection then ends, except in the last case: it may continue
    /// with other requests if it has [`room`](RequestSource::room).
    #[doc(alias = "give_back")]
    fn return_job(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>);

    /// Called when the connection speaks HTTP/2, with the number of requests under way and of
    /// further requests that it accepts. It is called before the first
    /// [`next`](RequestSource::next), and whenever the numbers change by more than the taking of a
    /// request. While there is room, `next` is called; on a new connection only while no request is
    /// under way, until the server has said how many requests it accepts.
    ///
    /// The default does nothing.
    fn room(&mut self, room: Room, scope: &mut Scope<'_, K::Context>) {
        let _ = (room, scope);
    }

    /// Returns whether the same server can be reached over HTTP/1.1 alone. It is called if this
    /// connection speaks HTTP/2, for two kinds of request: one that wants another protocol, which
    /// the server does not support on streams (RFC 8441 §3), and one that the server answers over
    /// HTTP/1.1 only (HTTP_1_1_REQUIRED, RFC 9113 §7).
    ///
    /// The default returns false. Then the first kind of request is made as if it had not asked for
    /// another protocol, and the second kind fails.
    fn has_http1(&self) -> bool {
        false
    }

    /// Called with such a request, which is to be made over HTTP/1.1. No part of it was sent, or it
    /// may be made again. Only called if [`has_http1`](RequestSource::has_http1) returns true. The
    /// connection goes on.
    ///
    /// The default calls [`return_job`](RequestSource::return_job).
    #[doc(alias = "give_to_http1")]
    fn return_for_http1(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>) {
        self.return_job(job, scope);
    }

    /// Called when the connection could not be made. This is the last call.
    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, K::Context>);
}

/// How many requests an HTTP/2 connection has under way, and how many more it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// How many requests are under way.
    pub under_way: u32,
    /// How many more it accepts. If this is 0, the connection may accept none ever again, and end
    /// after those that are under way.
    pub further: u32,
}

/// What a connection is to do next.
#[derive(Debug)]
pub enum Offer<K: Client> {
    /// Make this request.
    Job(Job<K>),
    /// Wait, because there is no request at the moment.
    Idle,
    /// End the connection.
    Close,
}
