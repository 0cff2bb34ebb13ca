//! `PoolSeed`: what a connection of a pool is made from.

use std::fmt;

use super::member::Member;
use crate::client::connection::ConnectionSeed;
use crate::client::handler::Client;

/// What a connection of a pool is made from. Only the pool makes one.
pub struct PoolSeed<K: Client, O: Ord + Clone> {
    pub(super) origin: O,
    pub(super) seed: ConnectionSeed<Member<K, O>>,
}

impl<K: Client, O: Ord + Clone + fmt::Debug> fmt::Debug for PoolSeed<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolSeed").field(&self.origin).finish()
    }
}
