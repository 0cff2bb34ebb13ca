//! `Feed`: where a connection gets its requests from.

use rotor_core::Scope;
use rotor_stream::Fatal;

use super::handler::Client;
use super::job::Job;

/// Where one connection gets its requests from: a pool, a queue, a single request.
///
/// It belongs to the connection and is dropped with it, so its `Drop` tells that the connection has
/// ended.
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives a connection no requests of `{K}`",
    note = "a `Pool` has a feed of its own; one connection by itself needs a type that implements `Feed`"
)]
pub trait Feed<K: Client>: Sized {
    /// Called when the connection has nothing to do; returns its next request, if there is one.
    ///
    /// On HTTP/1.1 it is called when the connection is set up, after each exchange that left it fit
    /// for use (then `is_new` is false), and when it is woken while it has nothing to do. A feed
    /// that returns [`Idle`](Offer::Idle) wakes the connection, by a notifier from this scope, when
    /// it has something else to say. Until then the connection watches for its end.
    fn next(&mut self, is_new: bool, scope: &mut Scope<'_, K::Context>) -> Offer<K>;

    /// Called with a request that is to be made on another connection: this one died under it and
    /// it [may be made again](Job::is_repeated), or was found unfit before the request was begun,
    /// or the server refused the request without looking at it (HTTP/2). The connection ends,
    /// except in the last case: then it may go on with others, if it has [`room`](Feed::room).
    fn give_back(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>);

    /// Called when the connection speaks HTTP/2, with what it has under way and how many more it
    /// takes. It is called before the first [`next`](Feed::next), and whenever this changes by more
    /// than taking a request does. `next` is called while there is room; on a new connection once,
    /// and again when the server has said how many it takes.
    ///
    /// The default does nothing.
    fn room(&mut self, room: Room, scope: &mut Scope<'_, K::Context>) {
        let _ = (room, scope);
    }

    /// Returns whether the same server can be reached over HTTP/1.1 alone. It is asked, if this
    /// connection speaks HTTP/2, about a request that wants another protocol where the server takes
    /// none there (RFC 8441 §3), and about one that the server answers over HTTP/1.1 only
    /// (HTTP_1_1_REQUIRED, RFC 9113 §7).
    ///
    /// The default is no: the first is made as if it had not asked for another protocol, the second
    /// fails.
    fn has_http1(&self) -> bool {
        false
    }

    /// Called with such a request, which is to be made over HTTP/1.1: nothing of it was sent, or it
    /// may be made again. Only called if [`has_http1`](Feed::has_http1) returns true. The connection
    /// goes on.
    ///
    /// The default calls [`give_back`](Feed::give_back).
    fn give_to_http1(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>) {
        self.give_back(job, scope);
    }

    /// Called when the connection could not be made. It is the last call.
    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, K::Context>);
}

/// How many requests a connection of HTTP/2 has under way, and how many more it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// How many requests are under way.
    pub under_way: u32,
    /// How many more it takes. With 0 it may take none ever again, and end after those that are
    /// under way.
    pub further: u32,
}

/// What a connection is to do next.
#[derive(Debug)]
pub enum Offer<K: Client> {
    /// Make this request.
    Job(Job<K>),
    /// Wait: there is nothing at the moment.
    Idle,
    /// End the connection.
    Close,
}
