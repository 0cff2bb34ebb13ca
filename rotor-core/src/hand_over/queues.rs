//! `TcpQueues`: the listeners of one address, spread over the loops of a process.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::SockRef;

use crate::net::{ListenOptions, TcpListeners};

/// The listeners on one address, spread over several loops so that **every queue is served**. This
/// is an iterator that returns the listeners of one loop after the other, at least one for each.
///
/// Usually there is one listener for each loop. A process with fewer loops than its predecessor
/// gets more of them, because clients in a queue from which no loop accepts would wait forever. So
/// create an [accepting machine](https://docs.rs/rotor-stream) for each listener.
///
/// ```no_run
/// # use rotor_core::{BoxError, Config, Infallible, Loop, LoopInstance, Machine, Response};
/// # use rotor_core::hand_over::TcpQueues;
/// # use rotor_core::net::TcpListener;
/// # use rotor_core::threads::LoopGroup;
/// # struct Accepting(TcpListener);
/// # impl Machine for Accepting { type Context = (); type Seed = Infallible; }
/// # fn start(queues: TcpQueues) -> Result<(), BoxError> {
/// let group = LoopGroup::start(queues, |listeners, _| {
///     let mut creator = Loop::new(&Config::new())?;
///     for listener in listeners {
///         creator.add_machine_with(|scope| Response::attempt(|| {
///             Ok(Response::ok(Accepting(TcpListener::from_std(listener, scope)?)))
///         }))?;
///     }
///     Ok(creator.instantiate(()))
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct TcpQueues {
    /// In reverse order.
    loops: Vec<Vec<TcpListener>>,
    address: SocketAddr,
}

impl TcpQueues {
    /// Spreads the queues that were handed over. If there are more loops than queues, it opens more
    /// queues if the address can be shared; otherwise several loops share a queue.
    pub(super) fn spread(
        mut queues: Vec<TcpListener>,
        options: &ListenOptions,
        loops: usize,
    ) -> io::Result<TcpQueues> {
        let loops = loops.max(1);
        let first = queues.first().ok_or(io::ErrorKind::NotFound)?;
        let address = first.local_addr()?;
        if SockRef::from(first).reuse_port()? && queues.len() < loops {
            queues.extend(TcpListeners::bind(address, options, loops - queues.len())?);
        }
        let own = queues.len();
        for copied in own..loops {
            queues.push(queues[copied % own].try_clone()?);
        }
        let mut spread: Vec<Vec<TcpListener>> = (0..loops).map(|_| Vec::new()).collect();
        for (number, queue) in queues.into_iter().enumerate() {
            spread[number % loops].push(queue);
        }
        spread.reverse();
        Ok(TcpQueues { loops: spread, address })
    }

    /// Returns the address of the listeners, with the port that the system chose.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Returns each remaining queue once, even if several loops share it, for a successor.
    pub(super) fn distinct_listeners(&self) -> io::Result<Vec<&TcpListener>> {
        let mut known = BTreeSet::new();
        let mut distinct = Vec::new();
        for listener in self.loops.iter().rev().flatten() {
            if known.insert(rustix::fs::fstat(listener)?.st_ino) {
                distinct.push(listener);
            }
        }
        Ok(distinct)
    }
}

impl Iterator for TcpQueues {
    type Item = Vec<TcpListener>;

    fn next(&mut self) -> Option<Vec<TcpListener>> {
        self.loops.pop()
    }
}

impl fmt::Debug for TcpQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TcpQueues({} loops on {})", self.loops.len(), self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(count: usize) -> Vec<TcpListener> {
        let address = ([127, 0, 0, 1], 0).into();
        TcpListeners::bind(address, &ListenOptions::new(), count).expect("a free port").collect()
    }

    fn inode(listener: &TcpListener) -> u64 {
        rustix::fs::fstat(listener).expect("it is open").st_ino
    }

    #[test]
    fn every_queue_is_served_and_every_loop_has_one() {
        for before in 1..=5 {
            for loops in 1..=5 {
                let given = queues(before);
                let old: Vec<u64> = given.iter().map(inode).collect();
                let spread: Vec<Vec<TcpListener>> =
                    TcpQueues::spread(given, &ListenOptions::new(), loops)
                        .expect("descriptors are left")
                        .collect();
                assert_eq!(spread.len(), loops);
                assert!(spread.iter().all(|own| !own.is_empty()), "{before} to {loops}");
                let mut served: Vec<u64> = spread.iter().flatten().map(inode).collect();
                assert!(old.iter().all(|old| served.contains(old)), "{before} to {loops}");
                served.sort_unstable();
                served.dedup();
                assert_eq!(served.len(), before.max(loops), "{before} to {loops}: none is shared");
                let most = spread.iter().map(Vec::len).max();
                assert_eq!(most, Some(before.div_ceil(loops).max(1)), "{before} to {loops}");
            }
        }
    }

    #[test]
    fn a_queue_that_allows_no_port_sharing_is_shared_by_all_loops() {
        #[expect(clippy::disallowed_methods, reason = "as a supervisor opens it")]
        let given = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let inode_of_given = inode(&given);
        let spread = TcpQueues::spread(vec![given], &ListenOptions::new(), 3).expect("copies");
        assert_eq!(spread.distinct_listeners().expect("all are open").len(), 1, "handed on once");
        let all: Vec<Vec<u64>> = spread.map(|own| own.iter().map(inode).collect()).collect();
        assert_eq!(all, vec![vec![inode_of_given]; 3]);
    }
}
