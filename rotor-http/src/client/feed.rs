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
    /// Called when the connection stands, after each exchange that left it fit for use (`is_new` is
    /// false then), and when it is woken while it has nothing to do. A feed that returns
    /// [`Idle`](Offer::Idle) wakes it, by a notifier from this scope, when it has something else to
    /// say; until then the connection watches for its end.
    fn next(&mut self, is_new: bool, scope: &mut Scope<'_, K::Context>) -> Offer<K>;

    /// A request that is to be made on another connection: this one died under it and it [may be
    /// made again](Job::is_repeated), or was found unfit before the request was begun. The
    /// connection ends.
    fn give_back(&mut self, job: Job<K>, scope: &mut Scope<'_, K::Context>);

    /// There is no connection. The last call.
    fn not_connected(self, error: Fatal, scope: &mut Scope<'_, K::Context>);
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
