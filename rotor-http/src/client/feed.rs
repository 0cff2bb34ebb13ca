//! `Feed`: where a connection gets its requests from.

use rotor_core::Scope;
use rotor_stream::Fatal;

use super::handler::Client;
use super::job::Job;

/// Where one connection gets its requests from: a pool, a queue, a single request.
///
/// It belongs to the connection and is dropped with it; so its `Drop` says that the connection has
/// ended.
#[diagnostic::on_unimplemented(
    message = "`{Self}` gives a connection no requests of `{K}`",
    note = "a `Pool` has a feed of its own; one connection by itself needs a type that implements `Feed`"
)]
pub trait Feed<K: Client>: Sized {
    /// The connection has nothing to do: its next request, if there is one.
    ///
    /// Of HTTP/1.1: called when the connection stands, after each exchange that left it fit for use
    /// (`is_new` is false then), and when it is woken while it has nothing to do. A feed that
    /// returns [`Idle`](Offer::Idle) wakes it, by a notifier from this scope, when it has something
    /// else to say; until then the connection watches for its end.
    fn next(&mut self, is_new: bool, scope: &mut Scope<'_, K::Context>) -> Offer<K>;

    /// A request that is to be made on another connection: this one died under it and it [may be
    /// made again](Job::is_repeated), was found unfit before the request was begun, or refused it
    /// without looking at it (HTTP/2). The connection ends, but for the last: then it may go on
    /// with others, if it has [`room`](Feed::room).
    fn give_back(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>);

    /// The connection speaks HTTP/2, and this is what it has under way and takes beside that: told
    /// before the first [`next`](Feed::next), and whenever it changes by more than that one was
    /// taken. `next` is called while there is room; on a new connection once, and again when the
    /// server has said how many it takes.
    ///
    /// Default: nothing.
    fn room(&mut self, room: Room, scope: &mut Scope<'_, K::Context>) {
        let _ = (room, scope);
    }

    /// Whether there is a way to the same server over HTTP/1.1 alone: for a request that asks for
    /// another protocol, where this connection speaks HTTP/2 and has none (RFC 8441 §3).
    ///
    /// Default: there is none, and the request is made as if it had not asked.
    fn has_http1(&self) -> bool {
        false
    }

    /// Such a request, nothing of which was sent, to be made there. Called where there [is
    /// one](Feed::has_http1). The connection goes on.
    ///
    /// Default: [`give_back`](Feed::give_back).
    fn give_to_http1(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>) {
        self.give_back(job, scope);
    }

    /// There is no connection. The last call.
    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, K::Context>);
}

/// How many requests a connection of HTTP/2 has and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// Requests that are under way.
    pub under_way: u32,
    /// Further ones that it takes. With none it may be that it takes none again, and ends after
    /// those that are under way.
    pub further: u32,
}

/// What a connection is to do next.
#[derive(Debug)]
pub enum Offer<K: Client> {
    /// This.
    Job(Job<K>),
    /// Nothing at the moment.
    Idle,
    /// End.
    Close,
}
